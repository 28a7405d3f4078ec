#include "process/ending.h"

#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "process/signals.h"

namespace faultline::process {
namespace {

namespace fs = std::filesystem;

constexpr auto kToEndByItself = std::chrono::seconds(5);
// it gives the program's children a moment, and writes down what the program did
constexpr auto kForKeeper = std::chrono::seconds(10);
// timeout(1) sends its signal twice, to the process and to its group
constexpr auto kOneAndTheSame = std::chrono::milliseconds(500);

void add_family(pid_t process, std::vector<pid_t>& all) {
  all.push_back(process);
  std::error_code problem;
  for (auto thread = fs::directory_iterator("/proc/" + std::to_string(process) + "/task", problem);
       !problem && thread != fs::directory_iterator(); thread.increment(problem)) {
    std::ifstream children(thread->path() / "children");
    for (pid_t child = 0; children >> child;) add_family(child, all);
  }
}

}  // namespace

Ending::Ending(pid_t process, Patience patience)
    : Ending(process, std::move(patience), std::chrono::steady_clock::now, interrupts) {}

Ending::Ending(pid_t process, Patience patience, std::function<Time()> now, std::function<int()> interrupts)
    : process_(process), patience_(std::move(patience)), now_(std::move(now)), interrupts_(std::move(interrupts)) {}

void Ending::enter(Stage stage) {
  stage_ = stage;
  since_ = now_();
  seen_interrupts_ = interrupts_();
}

void Ending::end_by_force() {
  if (patience_.has_keeper) {
    sigval value{};
    value.sival_int = kByForce;
    ::sigqueue(process_, SIGTERM, value);
    return;
  }
  std::vector<pid_t> all;
  add_family(process_, all);
  for (const pid_t one : all) ::kill(one, SIGKILL);
}

void Ending::look() {
  const auto waited = now_() - since_;
  switch (stage_) {
    case Stage::kRuns:
      // the program has it already: handed on, or sent to the whole group
      if (interrupts_() != 0) return enter(Stage::kAsked);
      if (!patience_.is_over || !patience_.is_over()) return;
      out_of_time_ = true;
      ::kill(process_, SIGTERM);
      return enter(Stage::kAsked);
    case Stage::kAsked: {
      const bool again = interrupts_() > seen_interrupts_;
      if (again && waited < kOneAndTheSame)
        seen_interrupts_ = interrupts_();
      else if (again || waited > kToEndByItself) {
        end_by_force();
        enter(Stage::kForced);
      }
      return;
    }
    case Stage::kForced:
      if (waited <= kForKeeper) return;
      ::kill(process_, SIGKILL);
      return enter(Stage::kKilled);
    case Stage::kKilled: return;
  }
}

}  // namespace faultline::process
