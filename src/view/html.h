// Text made safe for its place in HTML. Whatever comes from an input passes through escaped(): it can end no element and no attribute, and is valid
// UTF-8 without characters that hide or turn around. Nothing of an input is ever written into a script or a style.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace faultline::view {

// For the text of an element and for an attribute between double quotes; on one line.
std::string escaped(std::string_view text, std::size_t limit = 4096);
// The same for text of several lines that was made harmless before (a page of the terminal).
std::string escaped_lines(std::string_view text);

}  // namespace faultline::view
