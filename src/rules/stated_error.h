// A finding made of a message: its place, its counts and its words, in the same form as a finding made of a recording.
#pragma once

#include <string>
#include <string_view>

#include "rules/rule.h"

namespace faultline {

// With device, place and count set; proved until something else is said.
Finding begin_stated(const Case& subject, std::string_view rule);
// Adds what the message itself is, and the fingerprint.
void finish_stated(const Case& subject, Finding& finding);

// "python train.py", by the traceback's outermost file; a stand-in where there is none.
std::string program_words(const Case& subject);
// "GPU 0", or "the GPU" where the message names none.
std::string device_words(const Case& subject);

}  // namespace faultline
