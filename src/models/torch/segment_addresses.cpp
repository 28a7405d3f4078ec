#include "models/torch/segment_addresses.h"

#include <iterator>

#include "base/units.h"

namespace faultline {

namespace {
constexpr std::uint64_t kRegionBytes = 32 * kMiB;
constexpr std::uint64_t kSegmentBytes = 2 * kMiB;      // what a segment's size is rounded up to inside its region
constexpr std::uint64_t kLargestSegment = 1ull << 62;  // so that rounding up cannot overflow

std::uint64_t round_up(std::uint64_t size_bytes, std::uint64_t unit) { return (size_bytes + unit - 1) / unit * unit; }
}  // namespace

void SegmentAddresses::RankedRoom::add(std::uint64_t size_bytes, Key key) { by_size_[size_bytes].insert(key); }

void SegmentAddresses::RankedRoom::remove(std::uint64_t size_bytes, Key key) {
  const auto found = by_size_.find(size_bytes);
  found->second.erase(key);
  if (found->second.empty()) by_size_.erase(found);
}

std::optional<SegmentAddresses::RankedRoom::Key> SegmentAddresses::RankedRoom::highest(
    std::uint64_t least_bytes) const {
  std::optional<Key> best;
  for (auto at = by_size_.lower_bound(least_bytes); at != by_size_.end(); ++at) {
    const Key key = *at->second.rbegin();
    if (!best || key > *best) best = key;
  }
  return best;
}

void SegmentAddresses::Region::add_rest(std::uint64_t address, std::uint64_t size_bytes) {
  rests.emplace(address, size_bytes);
  by_size.emplace(size_bytes, address);
}

void SegmentAddresses::Region::remove_rest(std::uint64_t address, std::uint64_t size_bytes) {
  rests.erase(address);
  by_size.erase({size_bytes, address});
}

SegmentAddresses::SegmentAddresses(ByteRange room)
    : floor_(room.begin), lowest_(room.end / kRegionBytes * kRegionBytes) {}

void SegmentAddresses::rank(const Region& region) {
  if (region.largest_rest() != 0) newest_.add(region.largest_rest(), {region.number, region.range.begin});
}

void SegmentAddresses::unrank(const Region& region) {
  if (region.largest_rest() != 0) newest_.remove(region.largest_rest(), {region.number, region.range.begin});
}

std::optional<std::uint64_t> SegmentAddresses::take(std::uint64_t size_bytes) {
  if (size_bytes == 0 || size_bytes > kLargestSegment) return std::nullopt;
  size_bytes = round_up(size_bytes, kSegmentBytes);
  if (const auto address = take_rest(size_bytes)) return address;
  const std::uint64_t region_bytes = round_up(size_bytes, kRegionBytes);
  const auto begin = room_for_region(region_bytes);
  if (!begin) return std::nullopt;
  Region& region = regions_[*begin];
  region.number = made_count_++;
  region.range = ByteRange::of(*begin, region_bytes);
  if (region_bytes > size_bytes) region.add_rest(*begin + size_bytes, region_bytes - size_bytes);
  rank(region);
  return begin;
}

std::optional<std::uint64_t> SegmentAddresses::take_rest(std::uint64_t size_bytes) {
  const auto newest = newest_.highest(size_bytes);
  if (!newest) return std::nullopt;
  Region& region = regions_.at(newest->second);
  unrank(region);
  const auto [rest_bytes, address] = *region.by_size.lower_bound({size_bytes, 0});
  region.remove_rest(address, rest_bytes);
  if (rest_bytes > size_bytes) region.add_rest(address + size_bytes, rest_bytes - size_bytes);
  rank(region);
  return address;
}

std::optional<std::uint64_t> SegmentAddresses::room_for_region(std::uint64_t size_bytes) {
  if (const auto hole = highest_hole_.highest(size_bytes + 1)) {
    const auto [begin, end] = *hole;
    remove_hole({begin, end});
    add_hole({begin, end - size_bytes});
    return end - size_bytes;
  }
  if (lowest_ < floor_ || size_bytes > lowest_ - floor_) return std::nullopt;
  lowest_ -= size_bytes;
  return lowest_;
}

void SegmentAddresses::give_back(ByteRange segment) {
  const auto after = regions_.upper_bound(segment.begin);
  if (after == regions_.begin()) return;
  Region& region = std::prev(after)->second;
  if (region.range.contains(segment)) give_back_in(region, segment);
}

void SegmentAddresses::give_back_in(Region& region, ByteRange segment) {
  unrank(region);
  ByteRange rest = ByteRange::of(segment.begin, round_up(segment.size(), kSegmentBytes));
  auto next = region.rests.lower_bound(rest.begin);
  if (next != region.rests.begin()) {
    const auto [address, size_bytes] = *std::prev(next);
    if (address + size_bytes == rest.begin) {
      rest.begin = address;
      region.remove_rest(address, size_bytes);
    }
  }
  next = region.rests.find(rest.end);
  if (next != region.rests.end()) {
    const auto [address, size_bytes] = *next;
    rest.end += size_bytes;
    region.remove_rest(address, size_bytes);
  }
  if (rest == region.range) {
    regions_.erase(rest.begin);
    add_hole(rest);
    return;
  }
  region.add_rest(rest.begin, rest.size());
  rank(region);
}

void SegmentAddresses::remove_hole(ByteRange range) {
  holes_.erase(range.begin);
  highest_hole_.remove(range.size(), {range.begin, range.end});
}

void SegmentAddresses::add_hole(ByteRange range) {
  const auto above = holes_.find(range.end);
  if (above != holes_.end()) {
    const ByteRange hole{above->first, above->second};
    range.end = hole.end;
    remove_hole(hole);
  }
  const auto next = holes_.lower_bound(range.begin);
  if (next != holes_.begin() && std::prev(next)->second == range.begin) {
    const ByteRange hole{std::prev(next)->first, std::prev(next)->second};
    range.begin = hole.begin;
    remove_hole(hole);
  }
  if (range.begin == lowest_) {
    lowest_ = range.end;
    return;
  }
  holes_.emplace(range.begin, range.end);
  highest_hole_.add(range.size(), {range.begin, range.end});
}

}  // namespace faultline
