// What a failed FAULTLINE_CHECK (base/result.h) does in place of stopping the process: for a library inside somebody else's program, which must not end it.
#pragma once

namespace faultline {

// Must not return; it may throw.
using CheckHandler = void (*)(const char* condition, const char* file, int line);
void set_check_handler(CheckHandler instead);

}  // namespace faultline
