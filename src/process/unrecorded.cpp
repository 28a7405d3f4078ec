#include "process/unrecorded.h"

#include <chrono>
#include <filesystem>
#include <fstream>

#include "process/hint.h"
#include "process/quiet_thread.h"

namespace faultline::process {
namespace {

namespace fs = std::filesystem;

constexpr auto kBetweenLooks = std::chrono::milliseconds(250);
constexpr int kDeepest = 32;
constexpr std::size_t kMostFound = 8;

std::string first_line(const fs::path& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

struct Mapped {
  bool driver = false, recorder = false;
};

Mapped mapped_by(const fs::path& about, const std::string& recorder) {
  std::ifstream maps(about / "maps");
  Mapped mapped;
  for (std::string line; std::getline(maps, line) && !mapped.recorder;) {
    mapped.recorder = line.ends_with(recorder);
    const std::size_t name = line.rfind('/');
    mapped.driver |= name != std::string::npos && line.compare(name + 1, 10, "libcuda.so") == 0;
  }
  return mapped;
}

}  // namespace

UnrecordedWatch::UnrecordedWatch(pid_t program, const std::string& recorder) : program_(program) {
  std::error_code problem;
  if (!recorder.empty()) recorder_ = fs::canonical(recorder, problem).string();
  if (recorder_.empty()) return;
  thread_ = thread_without_signals([this] { watch(); });
  if (!thread_.joinable())
    hint("processes that use the driver without the recorder are not looked for: the system gives no thread for it");
}

UnrecordedWatch::~UnrecordedWatch() { finish(); }

void UnrecordedWatch::watch() {
  while (!is_over_.load()) {
    look(program_, 0);
    for (int part = 0; part < 10 && !is_over_.load(); ++part) std::this_thread::sleep_for(kBetweenLooks / 10);
  }
}

void UnrecordedWatch::look(pid_t process, int depth) {
  const fs::path about = "/proc/" + std::to_string(process);
  std::error_code problem;
  const std::string runs = fs::read_symlink(about / "exe", problem).string();
  const auto known = recorded_.find(process);
  if (found_.size() < kMostFound && !found_.contains(process) && (known == recorded_.end() || known->second != runs)) {
    const Mapped mapped = mapped_by(about, recorder_);
    if (mapped.recorder)
      recorded_[process] = runs;
    else if (mapped.driver)
      found_[process] = first_line(about / "comm");
  }
  for (auto thread = fs::directory_iterator(about / "task", problem); !problem && thread != fs::directory_iterator();
       thread.increment(problem)) {
    std::ifstream children(thread->path() / "children");
    for (pid_t child = 0; depth < kDeepest && children >> child;) look(child, depth + 1);
  }
}

std::map<std::string, std::string> UnrecordedWatch::finish() {
  is_over_.store(true);
  if (thread_.joinable()) thread_.join();
  std::map<std::string, std::string> found;
  for (const auto& [process, name] : found_) found[std::to_string(process)] = name;
  return found;
}

}  // namespace faultline::process
