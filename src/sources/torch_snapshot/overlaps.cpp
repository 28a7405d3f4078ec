#include "sources/torch_snapshot/overlaps.h"

#include <algorithm>
#include <bit>
#include <utility>
#include <vector>

#include "sources/torch_snapshot/address_table.h"

namespace faultline::torch_snapshot {
namespace {

// Some of the numbers below a bound. Each level has a bit for every word of the one below that is not zero, so a neighbour is found in a few looks.
class NumberSet {
 public:
  static constexpr std::size_t kNone = ~std::size_t{0};

  explicit NumberSet(std::size_t bound) {
    do {
      bound = (bound + 63) / 64;
      levels_.emplace_back(bound);
    } while (bound > 1);
  }

  void insert(std::size_t number) {
    for (auto& level : levels_) {
      level[number / 64] |= std::uint64_t{1} << number % 64;
      number /= 64;
    }
  }
  void erase(std::size_t number) {
    for (auto& level : levels_) {
      level[number / 64] &= ~(std::uint64_t{1} << number % 64);
      if (level[number / 64] != 0) return;
      number /= 64;
    }
  }
  // The first that is not less.
  std::size_t from(std::size_t number) const {
    for (std::size_t level = 0; level < levels_.size() && number / 64 < levels_[level].size(); ++level) {
      const std::uint64_t rest = levels_[level][number / 64] >> number % 64;
      if (rest == 0) {
        number = number / 64 + 1;
        continue;
      }
      number += static_cast<std::size_t>(std::countr_zero(rest));
      while (level-- > 0) number = number * 64 + static_cast<std::size_t>(std::countr_zero(levels_[level][number]));
      return number;
    }
    return kNone;
  }
  // The last that is less.
  std::size_t before(std::size_t number) const {
    for (std::size_t level = 0; level < levels_.size(); ++level) {
      const std::uint64_t rest = levels_[level][number / 64] & ((std::uint64_t{1} << number % 64) - 1);
      number /= 64;
      if (rest == 0) continue;
      number = number * 64 + last_of(rest);
      while (level-- > 0) number = number * 64 + last_of(levels_[level][number]);
      return number;
    }
    return kNone;
  }

 private:
  static std::size_t last_of(std::uint64_t word) { return 63 - static_cast<std::size_t>(std::countl_zero(word)); }
  std::vector<std::vector<std::uint64_t>> levels_;
};

bool is_of_a_block(const Trace& trace, const Event& event) {
  return (event.kind == EventKind::kAlloc || event.kind == EventKind::kFree) && event.allocation.value != 0 &&
         trace.heaps[event.heap.index()].kind == HeapKind::kTorchCaching;
}

// Every place where a block ever began.
struct Places {
  std::vector<std::pair<std::uint16_t, std::uint64_t>> in_order;  // device and address
  std::vector<std::uint32_t> of_allocation;                       // into in_order
};

Places places_of(const Trace& trace) {
  Places places;
  places.of_allocation.resize(trace.allocation_count + std::size_t{1});
  AddressTable known;
  for (const Event& event : trace.events) {
    if (event.kind != EventKind::kAlloc || !is_of_a_block(trace, event)) continue;
    bool fresh = false;
    AddressTable::Slot& slot = known.at(event.address, event.device, &fresh);
    if (fresh) {
      slot.id = static_cast<std::uint32_t>(places.in_order.size());
      places.in_order.emplace_back(event.device, event.address);
    }
    places.of_allocation[event.allocation.index()] = slot.id;
  }
  std::vector<std::uint32_t> order(places.in_order.size()), rank(places.in_order.size());
  for (std::uint32_t at = 0; at < order.size(); ++at) order[at] = at;
  std::sort(order.begin(), order.end(),
            [&](std::uint32_t a, std::uint32_t b) { return places.in_order[a] < places.in_order[b]; });
  for (std::uint32_t at = 0; at < order.size(); ++at) rank[order[at]] = at;
  std::sort(places.in_order.begin(), places.in_order.end());
  for (std::uint32_t& place : places.of_allocation) place = rank.empty() ? 0 : rank[place];
  return places;
}

}  // namespace

std::uint64_t overlapping_blocks(const Trace& trace) {
  const Places places = places_of(trace);
  NumberSet in_use(places.in_order.size());
  std::vector<std::uint64_t> ends(places.in_order.size());  // of what is in use
  std::uint64_t overlapping = 0;
  for (const Event& event : trace.events) {
    if (!is_of_a_block(trace, event) || places.in_order.empty()) continue;
    const std::size_t place = places.of_allocation[event.allocation.index()];
    if (event.kind == EventKind::kFree) {
      if (event.phase() != FreePhase::kRequested) in_use.erase(place);
      continue;
    }
    const std::uint64_t end = event.address + event.size_bytes;
    const std::size_t next = in_use.from(place), before = in_use.before(place);
    const auto on_device = [&](std::size_t other) {
      return other != NumberSet::kNone && places.in_order[other].first == event.device;
    };
    overlapping +=
        (on_device(next) && places.in_order[next].second < end) || (on_device(before) && ends[before] > event.address)
            ? 1
            : 0;
    ends[place] = end;
    in_use.insert(place);
  }
  return overlapping;
}

}  // namespace faultline::torch_snapshot
