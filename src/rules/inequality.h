// Sums of sizes compared in print: what a verdict rests on, in numbers that a reader can add up.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/byte_interval.h"

namespace faultline {

struct Term {
  ByteInterval bytes;
  std::string_view what;  // "free", "requested"
};

// So wide that its middle tells little.
bool is_wide(ByteInterval bytes);
ByteInterval total(const std::vector<Term>& terms);
// "1.00 GiB free + 3.00 GiB idle < 4.00 GiB requested", with "<", ">" or "≥": of a number that is known between bounds the bound that the claim rests on; in rounded numbers, or to the byte where the rounded ones would not show it.
std::string compared(const std::vector<Term>& left, const char* sign, const std::vector<Term>& right);
// "1.00 GiB free + 3.00 GiB idle", each as it was given; claims nothing.
std::string sum_words(const std::vector<Term>& terms);
// "3.99 GiB to 4.01 GiB", or one number where the bounds print alike.
std::string range_words(ByteInterval bytes);

}  // namespace faultline
