// Which files Faultline may write over: none but its own.
#pragma once

#include <string>
#include <string_view>

namespace faultline::process {

// Writing the one would be the end of the other.
bool is_same_file(const std::string& a, const std::string& b);
// it is not there, is empty, or is what Faultline itself writes: a file that begins like that; a trace
bool may_be_overwritten(const std::string& path, std::string_view ours);
bool may_be_overwritten(const std::string& path);

}  // namespace faultline::process
