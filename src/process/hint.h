// What Faultline says beside a program's own output and beside a report.
#pragma once

#include <string>

namespace faultline::process {

// Prints "faultline: SENTENCE" to standard error, and nothing changes: a choice that was made for the user.
void hint(const std::string& sentence);

}  // namespace faultline::process
