// A program that is to end, by its time or because somebody asks: asked first, then ended by force, whatever it ignores.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>

namespace faultline::process {

struct Patience {
  std::function<bool()> is_over;  // whether the program's time is over
  // the process is the program's keeper (keep-aside): told to end the program, it still tells what that did
  bool has_keeper = false;
};

// What a keeper is told by SIGTERM with this value: its program is to be ended by force.
constexpr int kByForce = 0x5ea1;

class Ending {
 public:
  using Time = std::chrono::steady_clock::time_point;
  explicit Ending(pid_t process, Patience patience);
  // interrupts: how often somebody has asked for an end
  Ending(pid_t process, Patience patience, std::function<Time()> now, std::function<int()> interrupts);
  void look();  // to be called a few times a second while the program runs
  bool out_of_time() const { return out_of_time_; }

  static constexpr int kLookEveryMs = 100;

 private:
  enum class Stage : std::uint8_t { kRuns, kAsked, kForced, kKilled };
  void enter(Stage stage);
  void end_by_force();

  pid_t process_;
  Patience patience_;
  Stage stage_ = Stage::kRuns;
  std::function<Time()> now_;
  std::function<int()> interrupts_;
  Time since_{};
  int seen_interrupts_ = 0;  // that led to the stage
  bool out_of_time_ = false;
};

}  // namespace faultline::process
