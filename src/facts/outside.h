// Device memory beside the framework, by who asked the driver for it; and what no one asked for.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "facts/heap_uses.h"
#include "facts/lifetimes.h"
#include "trace/trace.h"

namespace faultline {

struct OutsidePart {
  std::string what;  // "cuBLAS", "NCCL", "managed memory", "another library"
  std::uint64_t bytes = 0;
  std::uint64_t count = 0;
};

// Right after `event`, most bytes first.
std::vector<OutsidePart> outside_parts(const Trace& trace, const Lifetimes& lifetimes, const HeapUses& uses,
                                       std::uint16_t device, std::uint32_t event);

// A context and its libraries: 0.6 to 0.8 GiB were measured; what is beyond this, others hold.
inline constexpr std::uint64_t kUsualOutsideBytes = std::uint64_t{3} << 29;

// What was taken of the device without a request that the recording shows: the CUDA context, loaded code, other processes. Known where the recording
// says how much the device had free before the program's first request, or looked later on.
struct Unasked {
  std::uint64_t bytes = 0;
  std::uint64_t before_start = 0;  // of that, taken before the program asked for anything
};
std::optional<Unasked> unasked_memory(const Trace& trace, const Device& device);

}  // namespace faultline
