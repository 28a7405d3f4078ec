#include "facts/address_map.h"

#include <algorithm>

#include "facts/mapped_ranges.h"

namespace faultline {
namespace {

// A tensor is named rather than its segment's neighbour unless that is nearer by more than a page of the device.
constexpr std::uint64_t kPageBytes = std::uint64_t{2} << 20;

std::vector<ByteRange> joined(std::vector<ByteRange> ranges) {
  std::sort(ranges.begin(), ranges.end());
  std::vector<ByteRange> result;
  for (const ByteRange& range : ranges) {
    if (range.empty()) continue;
    if (!result.empty() && range.begin <= result.back().end) {
      result.back().end = std::max(result.back().end, range.end);
    } else {
      result.push_back(range);
    }
  }
  return result;
}

bool is_in(const std::vector<ByteRange>& ranges, std::uint64_t address) {
  const auto after = std::upper_bound(ranges.begin(), ranges.end(), address,
                                      [](std::uint64_t a, const ByteRange& range) { return a < range.begin; });
  return after != ranges.begin() && std::prev(after)->contains(address);
}

}  // namespace

AddressMap::AddressMap(const Trace& trace, const Lifetimes& lifetimes, const HeapUses& uses, std::uint32_t event)
    : trace_(trace), lifetimes_(lifetimes), uses_(uses), event_(event) {
  std::vector<ByteRange> ranges;
  for (const MappedRange& mapped : mapped_at(trace, event, [](const Event&) { return true; }))
    ranges.push_back(mapped.range);
  lifetimes.for_each([&](AllocationId, const Lifetime& life, const Event& birth) {
    // A framework's block lies in a segment, which is mapped or not whatever the block is.
    const bool is_block =
        uses.is_program(birth.heap) && uses.has_framework(birth.device) && trace.can(kCompleteFromStart);
    if (!life.taken_at(event) || !birth.has(kAddressKnown) || birth.size_bytes > ~birth.address || is_block) return;
    ranges.push_back(ByteRange::of(birth.address, birth.size_bytes));
  });
  mapped_ = joined(std::move(ranges));
}

bool AddressMap::is_mapped(std::uint64_t address) const { return is_in(mapped_, address); }

bool AddressMap::was_memory(std::uint64_t address) const {
  if (!ever_) {
    std::vector<ByteRange> ranges;
    lifetimes_.for_each([&](AllocationId id, const Lifetime& life, const Event& birth) {
      if (life.born <= event_ && birth.has(kAddressKnown)) ranges.push_back(range_of(id));
    });
    ever_ = joined(std::move(ranges));
  }
  return is_in(*ever_, address);
}

ByteRange AddressMap::range_of(AllocationId allocation) const {
  const Event& birth = lifetimes_.birth(allocation);
  return {birth.address, birth.address + std::min(birth.size_bytes, ~birth.address)};
}

AddressPlace AddressMap::relative_to(AllocationId allocation, std::uint64_t address) const {
  const ByteRange range = range_of(allocation);
  const bool freed = lifetimes_.of(allocation).released <= event_;
  if (range.contains(address)) return {freed ? Where::kFreed : Where::kInside, allocation, address - range.begin};
  if (address >= range.end) return {Where::kPastEnd, allocation, address - range.end};
  return {Where::kBeforeStart, allocation, range.begin - address};
}

AddressPlace AddressMap::place(std::uint64_t address) const {
  struct Nearest {
    AddressPlace place;
    void offer(const AddressPlace& other) {
      if (place.where == Where::kUnknown || other.distance_bytes < place.distance_bytes) place = other;
    }
  };
  AddressPlace inside, freed;
  bool inside_own = false, freed_own = false;
  std::uint32_t freed_at = 0;
  Nearest own, other;
  lifetimes_.for_each([&](AllocationId id, const Lifetime& life, const Event& birth) {
    if (life.born > event_ || !birth.has(kAddressKnown)) return;
    const bool is_own = uses_.is_program(birth.heap);
    const AddressPlace here = relative_to(id, address);
    if (here.where == Where::kInside) {
      if (inside.where == Where::kUnknown || (is_own && !inside_own)) inside = here, inside_own = is_own;
    } else if (here.where == Where::kFreed) {
      const bool better =
          freed.where == Where::kUnknown || (is_own && !freed_own) || (is_own == freed_own && life.released > freed_at);
      if (better) freed = here, freed_own = is_own, freed_at = life.released;
    } else if (life.released > event_) {
      (is_own ? own : other).offer(here);
    }
  });
  if (inside.where != Where::kUnknown && (inside_own || own.place.where == Where::kUnknown)) return inside;
  if (inside.where == Where::kUnknown && freed.where != Where::kUnknown) return freed;
  if (own.place.where == Where::kUnknown) return other.place;
  if (other.place.where == Where::kUnknown) return own.place;
  return own.place.distance_bytes <= other.place.distance_bytes + kPageBytes ? own.place : other.place;
}

}  // namespace faultline
