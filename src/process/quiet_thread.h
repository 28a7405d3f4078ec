// A thread that works beside a running program: what is sent to Faultline is for the thread that waits for the program, and trouble here never reaches either.
#pragma once

#include <csignal>
#include <exception>
#include <thread>
#include <utility>

namespace faultline::process {

// Not joinable where the system gives no thread. What `work` throws ends it, and nothing else.
template <class Work>
std::thread thread_without_signals(Work work) noexcept {
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread thread;
  try {
    thread = std::thread([work = std::move(work)]() mutable {
      try {
        work();
      } catch (const std::exception&) {
        // the program goes on
      }
    });
  } catch (const std::exception&) {
    // the caller sees it
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return thread;
}

}  // namespace faultline::process
