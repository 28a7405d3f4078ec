#include "process/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <csignal>

#include "base/environment.h"
#include "base/units.h"
#include "process/quiet_thread.h"
#include "process/terminal.h"

namespace faultline::process {
namespace {

constexpr std::chrono::milliseconds kQuietAtFirst{1000}, kBetweenLines{200};
constexpr std::array<int, 4> kEnding = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
constexpr char kClearLine[] = "\r\x1b[K";

std::mutex line_in_use;  // who writes the line
std::atomic<bool> is_drawn = false;
std::array<struct sigaction, kEnding.size()> before_drawing;

// Who ends Faultline in the middle finds the terminal as it was.
void clear_and_end(int signal) {
  if (is_drawn) (void)!::write(STDERR_FILENO, kClearLine, sizeof kClearLine - 1);
  for (std::size_t i = 0; i < kEnding.size(); ++i) {
    if (kEnding[i] == signal) ::sigaction(signal, &before_drawing[i], nullptr);
  }
  ::raise(signal);
}

// Nobody else's: where a program runs, signals are handled already, and the line goes with the Progress.
void hear_endings() {
  for (std::size_t i = 0; i < kEnding.size(); ++i) {
    if (::sigaction(kEnding[i], nullptr, &before_drawing[i]) != 0 || before_drawing[i].sa_handler != SIG_DFL) continue;
    struct sigaction own {};
    own.sa_handler = clear_and_end;
    ::sigaction(kEnding[i], &own, nullptr);
  }
}
void hear_nothing() {
  for (std::size_t i = 0; i < kEnding.size(); ++i) {
    struct sigaction now {};
    if (::sigaction(kEnding[i], nullptr, &now) == 0 && now.sa_handler == clear_and_end)
      ::sigaction(kEnding[i], &before_drawing[i], nullptr);
  }
}

bool may_draw() {
  const std::string terminal_name = environment("TERM");
  return ::isatty(STDERR_FILENO) != 0 && !terminal_name.empty() && terminal_name != "dumb";
}

void clear_line() {
  if (is_drawn.exchange(false)) (void)!::write(STDERR_FILENO, kClearLine, sizeof kClearLine - 1);
}

}  // namespace

Progress::Progress(std::string what, std::string file) {
  if (!may_draw()) return;
  step(std::move(what), std::move(file));
  hear_endings();
  thread_ = thread_without_signals([this] { draw_until_over(); });
}

Progress::~Progress() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard held(mutex_);
    is_over_ = true;
  }
  over_.notify_all();
  thread_.join();
  make_way();
  hear_nothing();
}

void Progress::step(std::string what, std::string file) {
  step([what = std::move(what), file = std::move(file)] {
    const auto position = position_in(file);
    // of some inputs all is read before anything is understood
    if (position && position->first == position->second)
      return fmt::format("{}: all of {} is read, working through it", what, format_bytes(position->second));
    if (position)
      return fmt::format("{}: {}% of {}", what, position->first * 100 / position->second,
                         format_bytes(position->second));
    return what;
  });
}

void Progress::step(Line line) {
  const std::lock_guard held(mutex_);
  line_ = std::move(line);
}

void Progress::make_way() {
  const std::lock_guard held(line_in_use);
  clear_line();
}

void Progress::draw_until_over() {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point begun = Clock::now();
  std::unique_lock held(mutex_);
  for (auto pause = kQuietAtFirst; !over_.wait_for(held, pause, [&] { return is_over_; }); pause = kBetweenLines) {
    const Line ask = line_;
    held.unlock();
    const std::string what = ask ? ask() : std::string();
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(Clock::now() - begun).count();
    // not into the terminal of whoever put us into the background
    if (!what.empty() && ::tcgetpgrp(STDERR_FILENO) == ::getpgrp()) {
      const std::string line = kClearLine + fitted(fmt::format("faultline: {}, {} s", what, seconds),
                                                   terminal_width(STDERR_FILENO), speaks_utf8(STDERR_FILENO));
      const std::lock_guard writing(line_in_use);
      is_drawn = true;
      (void)!::write(STDERR_FILENO, line.data(), line.size());
    }
    held.lock();
  }
}

}  // namespace faultline::process
