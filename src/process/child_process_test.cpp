#include "process/child_process.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <functional>
#include <string>
#include <thread>

namespace faultline::process {
namespace {

const Placement kQuiet{Output::kAsIs, "/dev/null", -1, false};

// In a process of its own: what was asked to end stays so.
int in_child(const std::function<int()>& work) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(work());
  int status = 0;
  return ::waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

std::string children() {
  std::string numbers;
  std::getline(std::ifstream("/proc/self/task/" + std::to_string(::getpid()) + "/children"), numbers);
  return numbers;
}

TEST(ChildProcess, ASignalThatComesAsSoonAsAQuietProgramIsThereEndsIt) {
  if (::access(("/proc/self/task/" + std::to_string(::getpid()) + "/children").c_str(), F_OK) != 0)
    GTEST_SKIP() << "this kernel does not list children";
  for (int round = 0; round < 5; ++round) {
    EXPECT_EQ(in_child([] {
                const InterruptsNoted noted;
                const std::string known = children();
                std::thread sender([&] {
                  while (children() == known) {
                  }
                  ::kill(::getpid(), SIGTERM);
                });
                const Result<pid_t> process = start_program({"sleep", "10"}, Environment(), kQuiet);
                const int signal = process ? wait_for_program(*process).signal : -1;
                sender.join();
                return signal;
              }),
              SIGTERM);
  }
}

TEST(ChildProcess, NoQuietProgramIsStartedAfterSomebodyAskedForAnEnd) {
  EXPECT_EQ(in_child([] {
              const InterruptsNoted noted;
              ::kill(::getpid(), SIGTERM);
              return start_program({"true"}, Environment(), kQuiet) ? 1 : 0;
            }),
            0);
}

TEST(ChildProcess, AQuietProgramEndsAsItWants) {
  const Result<pid_t> process = start_program({"sh", "-c", "exit 7"}, Environment(), kQuiet);
  ASSERT_TRUE(process.ok()) << process.error().message();
  EXPECT_EQ(wait_for_program(*process).status, 7);
  EXPECT_FALSE(start_program({"/no/such/program"}, Environment(), kQuiet).ok());
}

}  // namespace
}  // namespace faultline::process
