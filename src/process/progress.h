// Progress: what is being done and how far, on one line of the terminal, while something takes longer than a second.
//
// Only where standard error is a terminal that is not dumb, and only while Faultline is in the foreground: never in a pipe, a log or a file. A thread of its
// own draws the line, five times a second at most; who works is not slowed, and says only what is begun. How far a file is read, the thread asks the system.
// The line goes when the Progress goes, when anything else is said (make_way), and when a signal ends Faultline. There is one at a time.
//
//     Progress progress("reading oom.pickle", "oom.pickle");   faultline: reading oom.pickle: 43% of 1.02 GiB, 3 s
//     progress.step("judging what was recorded");              faultline: judging what was recorded, 5 s
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "process/progress_line.h"

namespace faultline::process {

class Progress {
 public:
  using Line = std::function<std::string()>;  // asked by another thread

  explicit Progress(std::string what = {}, std::string file = {});
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // Now this is done, to that file where one is named.
  void step(std::string what, std::string file = {});
  void step(Line line);

  // Before anybody else writes to the terminal: the line goes, and comes back later if it still has to.
  static void make_way();

 private:
  void draw_until_over();

  std::mutex mutex_;
  std::condition_variable over_;
  Line line_;
  bool is_over_ = false;
  std::thread thread_;
};

}  // namespace faultline::process
