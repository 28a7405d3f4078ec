// What is mapped at a moment: addresses that the driver gave first and put memory behind later, and perhaps took it away again, in other pieces.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "base/byte_range.h"
#include "trace/trace.h"

namespace faultline {

struct MappedRange {
  ByteRange range;
  const Event* by = nullptr;  // what mapped it
};

// Right after `event`, by address, as Map and Unmap events left it; only those that count are looked at.
std::vector<MappedRange> mapped_at(const Trace& trace, std::uint32_t event,
                                   const std::function<bool(const Event&)>& counts);

}  // namespace faultline
