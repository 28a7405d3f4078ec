// A short question to another process: something that may crash, hang or be missing, asked where it can hurt nobody.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

namespace faultline::process {

struct ChildAnswer {
  std::string output;   // what it wrote to standard output, cut at a mebibyte
  std::string trouble;  // "ended by signal 11", "did not answer within 5 s"; empty: it ended with status 0
  int status = 0;
};

// Runs `inside` in a forked child whose standard input and error are /dev/null. The child and all it started end when the time is up. The caller has
// one thread.
ChildAnswer ask_child(const std::function<void()>& inside, std::chrono::milliseconds limit);

// The same for a program, found on PATH where it is no path. `settings`: NAME=value, put into its environment. `folder`: where it works; none: here.
ChildAnswer ask_program(std::vector<std::string> command, std::vector<std::string> settings,
                        std::chrono::milliseconds limit, const char* folder = nullptr);

}  // namespace faultline::process
