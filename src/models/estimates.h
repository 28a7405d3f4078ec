// Requests whose size is an estimate: how large a replay takes them for.
#pragma once

#include <cstdint>

#include "base/hash.h"
#include "trace/trace.h"

namespace faultline {

// The likely size that was recorded, or one end of all that may be.
enum class EstimateEnd : std::uint8_t { kLikely, kLeast, kMost };

class EstimatedSizes {
 public:
  EstimatedSizes(const Trace& trace, EstimateEnd end);

  // Of an Alloc; 0: it is not made.
  std::uint64_t of(const Event& alloc) const;
  // Of an Estimate: bytes of a request that was not made and is now, to be returned at once; 0: none.
  std::uint64_t of_unmade(const Event& event) const {
    return event.kind == EventKind::kEstimate && event.allocation.value == 0 && end_ != EstimateEnd::kLikely
               ? at_end(event)
               : 0;
  }
  // A failure that is served right after (a device that grew): it is that request, which has another size now.
  bool is_of_estimate(std::size_t failure) const { return served_after_.contains(failure); }

 private:
  std::uint64_t at_end(const Event& estimate) const {
    return end_ == EstimateEnd::kLeast ? estimate.address : estimate.size_bytes;
  }

  EstimateEnd end_;
  HashMap<std::uint32_t, std::uint64_t> sizes_;  // by allocation
  HashSet<std::size_t> served_after_;            // failures
};

// Are any requests of this device estimates?
bool has_estimates(const Trace& trace, std::uint16_t device);

}  // namespace faultline
