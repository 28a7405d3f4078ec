#include "confine/processes.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

#include "confine/paths.h"

namespace faultline::confine {
namespace {

constexpr std::size_t kMostNotes = 256;

std::string proc(pid_t process, const char* name) { return "/proc/" + std::to_string(process) + "/" + name; }

std::string first_line(const std::string& path) {
  char line[512] = "";
  if (std::FILE* file = std::fopen(path.c_str(), "re")) {
    if (std::fgets(line, sizeof line, file) == nullptr) line[0] = '\0';
    std::fclose(file);
  }
  std::string text = line;
  if (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

}  // namespace

void Processes::remove(pid_t process) {
  const auto known = threads_.find(process);
  if (known != threads_.end() && --known->second <= 0) threads_.erase(known);
}

std::vector<pid_t> Processes::others(pid_t process) const {
  std::vector<pid_t> list;
  for (const auto& [one, threads] : threads_) {
    if (one != process) list.push_back(one);
  }
  return list;
}

void Processes::note_unsent(int signal, const std::string& whom) {
  ++unsent_count_;
  const char* name = ::sigabbrev_np(signal);
  const std::string text =
      (name != nullptr ? "SIG" + std::string(name) : "signal " + std::to_string(signal)) + " to " + whom;
  if (const auto known = unsent_.find(text); known != unsent_.end())
    ++known->second;
  else if (unsent_.size() < kMostNotes)
    unsent_.emplace(text, 1);
}

std::string named_process(pid_t process) {
  const std::string name = first_line(proc(process, "comm"));
  return std::to_string(process) + (name.empty() ? "" : " (" + name + ")");
}

bool is_over(pid_t process) {
  const std::string stat = first_line(proc(process, "stat"));
  const std::size_t name_ends = stat.rfind(')');  // the name may have any letters
  if (name_ends == std::string::npos || name_ends + 2 >= stat.size()) return true;
  const char state = stat[name_ends + 2];
  return state == 'Z' || state == 'X';
}

bool is_faultline(pid_t process) {
  struct stat ours {
  }, theirs{};
  return ::stat("/proc/self/exe", &ours) == 0 && ::stat(proc(process, "exe").c_str(), &theirs) == 0 &&
         ours.st_dev == theirs.st_dev && ours.st_ino == theirs.st_ino;
}

}  // namespace faultline::confine
