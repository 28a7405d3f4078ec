// Which allocations of a device are wider than anybody asked for.
//
//   double      float64 that came from the host as float64 (NumPy's default type), and all that was computed from it
//   promotion   a float32 result of a large half-precision operand and a small float32 one
//   copy        a float32 copy of a half-precision tensor, made inside a library's function
//
// What the program asked for is not here: a cast written on the user's own line, a float64 model, float64 made by a factory function,
// parameters, the optimizer's state and master weights, and whatever backward does on its own.
#pragma once

#include <cstdint>
#include <vector>

#include "facts/facts.h"

namespace faultline {

enum class Widening : std::uint8_t { kDouble, kPromotion, kCopy };

struct Widened {
  AllocationId id;
  Widening how = Widening::kDouble;
  bool is_entry = false;          // double: it came from the host
  std::uint64_t extra_bytes = 0;  // what it holds beyond the narrow form; of a copy, all
};

// In the order they were made.
std::vector<Widened> find_widened(const Facts& facts, std::size_t device_slot);

}  // namespace faultline
