// A folder of files: whatever in it has a name that snapshots, traces, core dumps and logs have, and a source that knows it. Folders inside are not entered.
#pragma once

#include <string>

#include "sources/input.h"

namespace faultline {

bool holds_files(const std::string& folder);
Result<Input> read_files(const std::string& folder);

}  // namespace faultline
