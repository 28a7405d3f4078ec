// What XLA says of the program that it had compiled, when its memory ran out: how much it needs, its largest buffers, what shrinks them.
#pragma once

#include <string>

#include "rules/finding.h"
#include "sources/stated_error.h"

namespace faultline {

// The largest buffers of the program that XLA compiled, where the text lists them.
std::string buffer_words(const StatedError& stated, Finding& finding);

// The message says what the program needs and what the device has.
void judge_whole_program(const StatedError& stated, const std::string& buffers, Finding& finding);
// Of a TPU, which tells how much was free.
void judge_told_room(const StatedError& stated, Finding& finding);

// What the request was for, and where its memory would have been.
void tell_request(const StatedError& stated, Finding& finding);
void tell_compiled_program(const StatedError& stated, const std::string& buffers, Finding& finding);
void add_what_shrinks(const StatedError& stated, const std::string& buffers, Finding& finding);

}  // namespace faultline
