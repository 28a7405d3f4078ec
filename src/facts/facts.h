// Facts: what is derived once from a trace and shared by all rules.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "facts/address_map.h"
#include "facts/categories.h"
#include "facts/free_space.h"
#include "facts/growth.h"
#include "facts/heap_uses.h"
#include "facts/lifetimes.h"
#include "facts/stack_facts.h"
#include "facts/steps.h"
#include "facts/usage.h"
#include "trace/trace.h"

namespace faultline {

struct Facts {
  // held_bytes: see Lifetimes. Both arguments must outlive the facts. The sizes may still be under way: what does not need them is
  // derived first, then await_sizes is called, and after it they must be there.
  Facts(const Trace& trace, std::span<const std::uint64_t> held_bytes, const std::function<void()>& await_sizes = {});

  const Trace& trace;
  HeapUses uses;
  Lifetimes lifetimes;
  StackFacts stacks;
  Steps steps;
  std::vector<std::uint32_t> faults;      // event indices: what hardware and driver reported
  std::vector<std::uint32_t> violations;  // likewise: the accesses that were caught
  std::vector<DeviceUsage> usage;         // one per Trace::devices, in that order
  std::vector<Categories> categories;     // likewise, each with its device's focus

  // The first fault that the driver reported, after which every call fails; the number of events where there is none.
  std::uint32_t first_reported_fault() const;
  // The moment a device's live memory is looked at: its last failure, else its peak.
  const UsageMoment& focus(std::size_t device_slot) const;
  CategoryBytes live_by_category(std::size_t device_slot, std::uint32_t event) const;
};

}  // namespace faultline
