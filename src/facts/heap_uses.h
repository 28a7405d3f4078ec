// What a heap's memory counts as in the account of its device.
//
// Where a framework's heap is seen, its blocks are what the program uses, and what it took from the driver are its segments; everything else taken
// from the driver was taken beside it. Where there is none, what was taken from the driver is what the program uses.
#pragma once

#include <cstdint>
#include <vector>

#include "trace/trace.h"

namespace faultline {

enum class HeapUse : std::uint8_t {
  kProgram,    // the program's own memory: a framework's blocks, or without a framework the driver's allocations
  kSegments,   // what a framework took from the driver to hand out
  kOutside,    // taken beside the framework; managed memory always, as only a part of it need lie on the device
  kElsewhere,  // host memory and memory of other processes: nothing of this device is taken for it
};

class HeapUses {
 public:
  explicit HeapUses(const Trace& trace);

  HeapUse of(HeapId heap) const { return uses_[heap.index()]; }
  bool is_program(HeapId heap) const { return of(heap) == HeapUse::kProgram; }
  bool has_framework(std::uint16_t device) const { return device < framework_.size() && framework_[device]; }

 private:
  std::vector<HeapUse> uses_;    // by heap
  std::vector<bool> framework_;  // by device
};

// An AllocFailed that its asker got over: a driver's refusal after which the same asker soon got memory, as allocators do that give back what they
// cache, or ask for less. What a framework reports as failed is never handled in this sense.
class HandledFailures {
 public:
  explicit HandledFailures(const Trace& trace);
  bool contains(std::uint32_t event) const;

 private:
  std::vector<std::uint32_t> handled_;  // sorted
};

}  // namespace faultline
