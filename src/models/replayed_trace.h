// The trace of a replay: a recording's events with a model's addresses, and its tables as they are.
//
// Allocation ids are given anew, because the recorded segments are gone and others have come.
#pragma once

#include <cstdint>
#include <vector>

#include "trace/trace.h"

namespace faultline {

class ReplayedTrace {
 public:
  struct Known {
    AllocationId id;             // in the new trace; 0: not there
    std::uint64_t recorded = 0;  // addresses
    std::uint64_t replayed = 0;
    StackId stack;
    std::uint64_t size_bytes = 0;
  };

  // No event of the recording names an allocation above the largest.
  ReplayedTrace(const Trace& recording, std::uint32_t largest_allocation);

  AllocationId new_id() { return AllocationId(++trace_.allocation_count); }
  // Null for an id that no event of the recording can name.
  const Known* known(AllocationId recorded) const {
    return recorded.value != 0 && recorded.index() < known_.size() ? &known_[recorded.index()] : nullptr;
  }
  // Whom this event makes is at the address at which it was recorded, from here on.
  AllocationId keeps_its_place(const Event& recorded) { return now_at(recorded, recorded.address); }

  void append(const Event& event) { trace_.events.push_back(event); }
  void allocated(const Event& recorded, std::uint64_t address);
  void freed(const Event& recorded, FreePhase phase = FreePhase::kBoth);
  void failed(const Event& recorded);
  // A request that failed when it was recorded and is served now; nobody says when it would have been returned.
  void served_and_dropped(const Event& recorded, std::uint64_t address);
  // What the model has no part in: it refers to its allocations where they are now.
  void copied(const Event& recorded);

  Trace& trace() { return trace_; }

 private:
  AllocationId now_at(const Event& recorded, std::uint64_t address);

  Trace trace_;
  std::vector<Known> known_;  // by recorded id
};

}  // namespace faultline
