// Paths as words: nothing here looks at a file, but for read_link.
#pragma once

#include <deque>
#include <string>
#include <string_view>

namespace faultline::confine {

bool lies_in(std::string_view path, std::string_view folder);  // or is it
std::string joined(std::string_view folder, std::string_view name);
std::string parent_of(const std::string& path);                            // of an absolute one; "/" is its own
std::string name_in(const std::string& path);                              // the last part
void split_before(std::deque<std::string>& parts, std::string_view path);  // the path's parts go to the front
std::string read_link(const std::string& real);                            // empty: it is none

}  // namespace faultline::confine
