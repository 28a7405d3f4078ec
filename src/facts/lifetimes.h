// When each allocation was born, let go, and given back; and how many bytes it held in its heap meanwhile.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "trace/trace.h"

namespace faultline {

inline constexpr std::uint32_t kNever = std::numeric_limits<std::uint32_t>::max();

struct Lifetime {
  std::uint32_t born = kNever;      // event index of its Alloc
  std::uint32_t released = kNever;  // the program let go (Free requested, or both)
  std::uint32_t returned = kNever;  // the heap can hand it out again
  bool alive_at(std::uint32_t event) const { return born <= event && event < released; }
  bool taken_at(std::uint32_t event) const {
    return born <= event && event < returned;
  }  // alive, or let go and not yet given back
};

class Lifetimes {
 public:
  // held_bytes[id] is what the heap set aside for allocation id, where a model knows it; without it (empty) the request is taken,
  // rounded up to the least a caching heap hands out.
  Lifetimes(const Trace& trace, std::span<const std::uint64_t> held_bytes);

  const Lifetime& of(AllocationId id) const { return lifetimes_[id.index()]; }
  const Event& birth(AllocationId id) const { return trace_->events[lifetimes_[id.index()].born]; }
  std::uint64_t held_bytes(AllocationId id) const;
  // Calls visit(AllocationId, const Lifetime&, birth) for every allocation that the trace shows being made, in the order of their ids.
  template <class Visit>
  void for_each(Visit visit) const {
    for (std::uint32_t number = 1; number < lifetimes_.size(); ++number) {
      const AllocationId id(number);
      if (of(id).born != kNever) visit(id, of(id), birth(id));
    }
  }

 private:
  const Trace* trace_;
  std::vector<Lifetime> lifetimes_;  // by allocation id; [0] unused
  std::span<const std::uint64_t> held_bytes_;
};

}  // namespace faultline
