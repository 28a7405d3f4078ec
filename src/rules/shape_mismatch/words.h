// PyTorch's own words about an operation it refused: what they are about, and the numbers in them that operands do not show.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "rules/shapes.h"

namespace faultline {

enum class Trouble : std::uint8_t {
  kUnknown,    // the words do not say
  kUnrelated,  // they say something else: an index, memory, a missing kernel
  kShape,
  kDtype,
  kDevice,
  kIndex,  // a dry run saw that an index lies outside its dimension
};

Trouble trouble_of(std::string_view words);
// There is no kernel for a type that was given.
bool say_no_kernel(std::string_view words);

// What a dry run says of such an index: "index 10 is out of range for dimension 1, which has 10"; empty: it is another error.
std::string_view index_words(std::string_view words);

// The first "[2, 3]" behind the marker.
std::optional<Shape> list_after(std::string_view words, std::string_view marker);
// The number right behind the marker.
std::optional<std::int64_t> number_after(std::string_view words, std::string_view marker);
// The first line, of a length fit for a report.
std::string first_words(std::string_view words);

}  // namespace faultline
