#include "confine/paths.h"

#include <unistd.h>

#include <algorithm>
#include <climits>

namespace faultline::confine {

bool lies_in(std::string_view path, std::string_view folder) {
  return path.starts_with(folder) && (path.size() == folder.size() || path[folder.size()] == '/');
}

std::string joined(std::string_view folder, std::string_view name) {
  std::string path(folder);
  if (path.empty() || path.back() != '/') path += '/';
  return path.append(name);
}

std::string parent_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == 0 || slash == std::string::npos ? "/" : path.substr(0, slash);
}

std::string name_in(const std::string& path) { return path.substr(path.rfind('/') + 1); }

void split_before(std::deque<std::string>& parts, std::string_view path) {
  std::deque<std::string> more;
  for (std::size_t at = 0; at < path.size();) {
    const std::size_t slash = std::min(path.find('/', at), path.size());
    if (slash > at) more.emplace_back(path.substr(at, slash - at));
    at = slash + 1;
  }
  parts.insert(parts.begin(), more.begin(), more.end());
}

std::string read_link(const std::string& real) {
  char target[PATH_MAX];
  const ssize_t size = ::readlink(real.c_str(), target, sizeof target);
  return size > 0 ? std::string(target, static_cast<std::size_t>(size)) : std::string();
}

}  // namespace faultline::confine
