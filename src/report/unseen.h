// What stands between "nothing was found" and "clean": a program that did not end well, and what of it was not recorded or could not be run.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sources/input.h"

namespace faultline {

// In sentences; none: all that the input can tell was seen, and the program ended well as far as anybody knows. `is_explained`: a finding tells why it failed.
std::vector<std::string> unseen_of(const Input& input, bool is_explained);

// "signal 11 (SIGSEGV)".
std::string signal_words(int signal);

// "3 events are missing", of a counter that reading a recording kept.
std::string loss_words(const std::string& counter, std::uint64_t count);

}  // namespace faultline
