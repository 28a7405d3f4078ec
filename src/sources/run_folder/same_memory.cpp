#include "sources/run_folder/same_memory.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "base/byte_range.h"

namespace faultline {
namespace {

constexpr std::uint64_t kFarthestNs = 1'000'000'000;  // two records of one call are not a second apart

using Key = std::tuple<EventKind, std::uint16_t, std::uint64_t, std::uint64_t>;  // kind, device, address, size

struct Sides {
  std::vector<std::uint32_t> torch, capture;  // event numbers, in order
};

bool is_lowest_driver(const Trace& trace, const Event& event) {
  const Heap& heap = trace.heaps[event.heap.index()];
  return heap.kind == HeapKind::kDriver && heap.below == event.heap;
}

bool is_driver_call(const Trace& trace, const Event& event) {
  const bool kind = event.kind == EventKind::kAlloc || event.kind == EventKind::kFree ||
                    event.kind == EventKind::kMap || event.kind == EventKind::kUnmap;
  return kind && !event.has(kFailed) && is_lowest_driver(trace, event);
}

// Handles are mapped one by one: a growth is found by where it begins.
Key key_of(const Event& event) {
  const bool whole = event.kind == EventKind::kAlloc || event.kind == EventKind::kFree;
  return {event.kind, event.device, event.address, whole ? event.size_bytes : 0};
}

std::int64_t less(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) - static_cast<std::uint64_t>(b));
}

std::uint64_t distance(std::int64_t a, std::int64_t b) {
  return a > b ? static_cast<std::uint64_t>(a) - static_cast<std::uint64_t>(b)
               : static_cast<std::uint64_t>(b) - static_cast<std::uint64_t>(a);
}

class Finder {
 public:
  Finder(const Trace& torch, const Trace& capture) : torch_(torch), capture_(capture) {
    result_.torch_of.assign(capture.events.size(), kNoEvent);
    result_.is_torch.assign(capture.events.size(), false);
    result_.in_order.assign(capture.events.size(), false);
    result_.has_times = torch.can(kTimes) && capture.can(kTimes);
  }

  SameMemory find() {
    gather();
    result_.offset_ns = estimate_offset();
    for (const auto& [key, sides] : keys_) pair(sides);
    pair_preexisting();
    find_order();
    claim_mappings();
    claim_freed_later();
    return std::move(result_);
  }

 private:
  // Times of a damaged file may be anything; differences wrap.
  std::int64_t difference(std::uint32_t torch, std::uint32_t capture) const {
    return less(torch_.events[torch].time_ns, capture_.events[capture].time_ns);
  }

  void gather() {
    for (std::uint32_t index = torch_.preexisting_count; index < torch_.events.size(); ++index) {
      if (is_driver_call(torch_, torch_.events[index])) keys_[key_of(torch_.events[index])].torch.push_back(index);
    }
    for (std::uint32_t index = 0; index < capture_.events.size(); ++index) {
      if (!is_driver_call(capture_, capture_.events[index])) continue;
      if (const auto found = keys_.find(key_of(capture_.events[index])); found != keys_.end())
        found->second.capture.push_back(index);
    }
  }

  // The median over calls that both sides have equally often; else over all, aligned at the end.
  std::int64_t estimate_offset() const {
    if (!result_.has_times) return 0;
    std::vector<std::int64_t> sure, unsure;
    for (const auto& [key, sides] : keys_) {
      const std::size_t count = std::min(sides.torch.size(), sides.capture.size());
      std::vector<std::int64_t>& differences = sides.torch.size() == sides.capture.size() ? sure : unsure;
      for (std::size_t back = 1; back <= count; ++back)
        differences.push_back(
            difference(sides.torch[sides.torch.size() - back], sides.capture[sides.capture.size() - back]));
    }
    std::vector<std::int64_t>& all = sure.empty() ? unsure : sure;
    if (all.empty()) return 0;
    const auto middle = all.begin() + static_cast<std::ptrdiff_t>(all.size() / 2);
    std::nth_element(all.begin(), middle, all.end());
    return *middle;
  }

  void pair(const Sides& sides) {
    if (sides.torch.empty() || sides.capture.empty()) return;
    const bool torch_is_longer = sides.torch.size() > sides.capture.size();
    const std::vector<std::uint32_t>& longer = torch_is_longer ? sides.torch : sides.capture;
    const std::vector<std::uint32_t>& shorter = torch_is_longer ? sides.capture : sides.torch;
    const auto miss = [&](std::size_t at_longer, std::size_t at_shorter) {
      const std::int64_t apart = torch_is_longer ? difference(longer[at_longer], shorter[at_shorter])
                                                 : difference(shorter[at_shorter], longer[at_longer]);
      return distance(apart, result_.offset_ns);
    };
    std::size_t shift = longer.size() - shorter.size();  // without times: both end together
    if (result_.has_times) {
      std::uint64_t least = ~0ull;
      for (std::size_t tried = 0; tried + shorter.size() <= longer.size(); ++tried) {
        const std::uint64_t here = miss(tried, 0) / 2 + miss(tried + shorter.size() - 1, shorter.size() - 1) / 2;
        if (here <= least) least = here, shift = tried;
      }
    }
    for (std::size_t at = 0; at < shorter.size(); ++at) {
      if (result_.has_times && miss(at + shift, at) > kFarthestNs) continue;
      const std::uint32_t capture = torch_is_longer ? shorter[at] : longer[at + shift];
      result_.torch_of[capture] = torch_is_longer ? longer[at + shift] : shorter[at];
    }
  }

  // What stood when PyTorch's history begins: the capture saw it made.
  void pair_preexisting() {
    if (torch_.preexisting_count == 0) return;
    std::map<Key, std::uint32_t> standing;
    for (std::uint32_t index = 0; index < torch_.preexisting_count; ++index) {
      const Event& event = torch_.events[index];
      if (is_driver_call(torch_, event) && event.kind == EventKind::kAlloc) standing.emplace(key_of(event), index);
    }
    // Backwards from the end: the last making before the pairs begin is the one that stood.
    for (std::uint32_t index = static_cast<std::uint32_t>(capture_.events.size()); index-- > 0;) {
      const Event& event = capture_.events[index];
      if (!is_driver_call(capture_, event) || event.kind != EventKind::kAlloc || result_.torch_of[index] != kNoEvent)
        continue;
      const auto found = standing.find(key_of(event));
      if (found == standing.end()) continue;
      if (result_.has_times && torch_.preexisting_count < torch_.events.size()) {
        const std::int64_t before = less(difference(torch_.preexisting_count, index), result_.offset_ns);
        if (before < -static_cast<std::int64_t>(kFarthestNs)) continue;  // made after the history began
      }
      result_.torch_of[index] = found->second;
      standing.erase(found);
    }
  }

  // Both sides tell of one program: pairs do not cross. Those outside the longest run in order say nothing about it.
  void find_order() {
    std::vector<std::uint32_t> paired;
    for (std::uint32_t index = 0; index < result_.torch_of.size(); ++index) {
      const std::uint32_t torch = result_.torch_of[index];
      if (torch == kNoEvent) continue;
      result_.is_torch[index] = true;
      if (torch >= torch_.preexisting_count) paired.push_back(index);
    }
    std::vector<std::uint32_t> tails;  // capture events that end the best run of each length
    std::vector<std::uint32_t> before(result_.torch_of.size(), kNoEvent);
    for (const std::uint32_t index : paired) {
      const auto less = [&](std::uint32_t a, std::uint32_t torch) { return result_.torch_of[a] < torch; };
      const auto at = std::lower_bound(tails.begin(), tails.end(), result_.torch_of[index], less);
      before[index] = at == tails.begin() ? kNoEvent : *std::prev(at);
      if (at == tails.end())
        tails.push_back(index);
      else
        *at = index;
    }
    for (std::uint32_t at = tails.empty() ? kNoEvent : tails.back(); at != kNoEvent; at = before[at])
      result_.in_order[at] = true;
    result_.pairs = paired.size();
  }

  // Addresses that PyTorch ever mapped are its own reservation: every mapping in them is its doing.
  void claim_mappings() {
    std::vector<std::pair<std::uint16_t, ByteRange>> ranges;
    for (const Event& event : torch_.events) {
      if (event.kind == EventKind::kMap && event.size_bytes <= ~event.address)
        ranges.emplace_back(event.device, ByteRange::of(event.address, event.size_bytes));
    }
    std::sort(ranges.begin(), ranges.end());
    std::vector<std::pair<std::uint16_t, ByteRange>> joined;
    for (const auto& [device, range] : ranges) {
      if (!joined.empty() && joined.back().first == device && range.begin <= joined.back().second.end) {
        joined.back().second.end = std::max(joined.back().second.end, range.end);
      } else {
        joined.emplace_back(device, range);
      }
    }
    for (std::size_t index = 0; index < capture_.events.size(); ++index) {
      const Event& event = capture_.events[index];
      if ((event.kind != EventKind::kMap && event.kind != EventKind::kUnmap) || event.size_bytes > ~event.address)
        continue;
      const auto after =
          std::upper_bound(joined.begin(), joined.end(), std::pair(event.device, ByteRange{event.address, ~0ull}));
      if (after == joined.begin()) continue;
      const auto& [device, range] = *std::prev(after);
      if (device == event.device && range.overlaps(ByteRange::of(event.address, event.size_bytes)))
        result_.is_torch[index] = true;
    }
  }

  // A segment that PyTorch's history shows made belongs to it until it is freed, though the history may end before.
  void claim_freed_later() {
    std::vector<bool> is_torch(capture_.allocation_count + std::size_t{1});
    for (std::size_t index = 0; index < capture_.events.size(); ++index) {
      const Event& event = capture_.events[index];
      if (event.allocation.value == 0 || event.allocation.value > capture_.allocation_count) continue;
      if (event.kind == EventKind::kAlloc && result_.is_torch[index]) is_torch[event.allocation.index()] = true;
      if (event.kind == EventKind::kFree && !event.has(kFailed) && is_torch[event.allocation.index()])
        result_.is_torch[index] = true;
    }
  }

  const Trace& torch_;
  const Trace& capture_;
  SameMemory result_;
  std::map<Key, Sides> keys_;
};

}  // namespace

SameMemory find_same_memory(const Trace& torch, const Trace& capture) { return Finder(torch, capture).find(); }

}  // namespace faultline
