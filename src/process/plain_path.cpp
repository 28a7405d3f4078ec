#include "process/plain_path.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <vector>

#include "fmt/format.h"

namespace faultline::process {
namespace {

namespace fs = std::filesystem;

bool is_plain(std::string_view path, std::string_view separators) {
  return path.find_first_of(separators) == std::string_view::npos;
}

// A folder of this user's that nobody else can write, made if need be. Others may pass through it: a program that gives up its rights is still preloaded.
bool is_own_folder(const std::string& path) {
  if (::mkdir(path.c_str(), 0711) == 0) ::chmod(path.c_str(), 0711);  // whatever the umask is
  struct stat found {};
  return ::lstat(path.c_str(), &found) == 0 && S_ISDIR(found.st_mode) && found.st_uid == ::geteuid() &&
         (found.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

// Two runs at once may want the same link: it appears whole or not at all.
bool link_to(const std::string& target, const std::string& link) {
  std::error_code problem;
  if (fs::read_symlink(link, problem) == target) return true;
  const std::string fresh = fmt::format("{}.{}", link, ::getpid());
  ::unlink(fresh.c_str());
  if (::symlink(target.c_str(), fresh.c_str()) != 0) return false;
  if (::rename(fresh.c_str(), link.c_str()) == 0) return true;
  ::unlink(fresh.c_str());
  return false;
}

}  // namespace

Result<std::string> plain_path(const std::string& path, std::string_view separators, const std::string& folder) {
  if (is_plain(path, separators)) return path;
  std::vector<std::string> places;
  if (!folder.empty()) places.push_back(folder + "/links");
  std::error_code problem;
  for (const std::string& temporary : {fs::temp_directory_path(problem).string(), std::string("/tmp")}) {
    if (!temporary.empty()) places.push_back(fmt::format("{}/faultline-{}", temporary, ::geteuid()));
  }
  std::string name = fs::path(path).filename().string();
  if (!is_plain(name, separators)) name = "linked";
  for (const std::string& place : places) {
    if (!place.starts_with('/') || !is_plain(place, separators) || !is_own_folder(place)) continue;
    const std::string link = fmt::format("{}/{:016x}-{}", place, std::hash<std::string>()(path), name);
    if (link_to(path, link)) return link;
  }
  return Error{fmt::format("{} has one of '{}' in its path, and a link without could not be made in {}", path,
                           separators, places.back()),
               {},
               {}};
}

}  // namespace faultline::process
