// From a place in the page to the line itself: "file:line" to copy, and an address that editors open.
#pragma once

#include <cstdint>
#include <string>

namespace faultline::view {

// vscode://file/…:12 of a file named by its whole path; empty for others. Whatever the name holds, it is that scheme and nothing else.
std::string editor_address(const std::string& file, std::uint32_t line);

// A button that copies the place, hidden until the script runs, and a link into the editor. Empty where no line is known.
std::string source_links(const std::string& file, std::uint32_t line);

}  // namespace faultline::view
