#include "models/torch/segment_addresses.h"

#include <algorithm>
#include <iterator>

#include "base/units.h"

namespace faultline {

namespace {
constexpr std::uint64_t kRegionBytes = 32 * kMiB;
constexpr std::uint64_t kSegmentBytes = 2 * kMiB;  // what a segment's size is rounded up to inside its region
constexpr std::uint64_t kLargestSegment = 1ull << 62;  // so that rounding up cannot overflow
// How many regions or holes a search walks at most: 512 GiB of the smallest regions, more than a GPU has. It keeps a hostile trace from being slow.
constexpr std::size_t kLongestWalk = 16384;

std::uint64_t round_up(std::uint64_t size_bytes, std::uint64_t unit) { return (size_bytes + unit - 1) / unit * unit; }
}  // namespace

void SegmentAddresses::Region::add_rest(std::uint64_t address, std::uint64_t size_bytes) {
  rests.emplace(address, size_bytes);
  by_size.emplace(size_bytes, address);
}

void SegmentAddresses::Region::remove_rest(std::uint64_t address, std::uint64_t size_bytes) {
  rests.erase(address);
  by_size.erase({size_bytes, address});
}

SegmentAddresses::SegmentAddresses(ByteRange room) : floor_(room.begin), lowest_(room.end / kRegionBytes * kRegionBytes) {}

std::vector<SegmentAddresses::Candidate>::iterator SegmentAddresses::candidate_of(const Region& region) {
  return std::lower_bound(candidates_.begin(), candidates_.end(), region.number, [](const Candidate& one, std::uint64_t number) { return one.number < number; });
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
  candidates_.push_back({region.number, region_bytes - size_bytes, *begin});
  return begin;
}

std::optional<std::uint64_t> SegmentAddresses::take_rest(std::uint64_t size_bytes) {
  const auto oldest = candidates_.rbegin() + static_cast<std::ptrdiff_t>(std::min(candidates_.size(), kLongestWalk));
  const auto found = std::find_if(candidates_.rbegin(), oldest, [size_bytes](const Candidate& one) { return one.largest_rest_bytes >= size_bytes; });
  if (found == oldest) return std::nullopt;
  Region& region = regions_.at(found->begin);
  const auto [rest_bytes, address] = *region.by_size.lower_bound({size_bytes, 0});
  region.remove_rest(address, rest_bytes);
  if (rest_bytes > size_bytes) region.add_rest(address + size_bytes, rest_bytes - size_bytes);
  found->largest_rest_bytes = region.largest_rest();
  return address;
}

std::optional<std::uint64_t> SegmentAddresses::room_for_region(std::uint64_t size_bytes) {
  std::size_t walked = 0;
  for (auto hole = holes_.rbegin(); hole != holes_.rend() && walked < kLongestWalk; ++hole, ++walked) {
    if (hole->second - hole->first <= size_bytes) continue;
    hole->second -= size_bytes;
    return hole->second;
  }
  if (lowest_ < floor_ || size_bytes > lowest_ - floor_) return std::nullopt;
  lowest_ -= size_bytes;
  return lowest_;
}

void SegmentAddresses::give_back(ByteRange segment) {
  auto found = regions_.upper_bound(segment.begin);
  if (found == regions_.begin()) return;
  Region& region = std::prev(found)->second;
  if (!region.range.contains(segment)) return;
  std::uint64_t begin = segment.begin;
  std::uint64_t end = begin + round_up(segment.size(), kSegmentBytes);
  auto next = region.rests.lower_bound(begin);
  if (next != region.rests.end() && next->first == end) {
    end += next->second;
    region.remove_rest(next->first, next->second);
  }
  next = region.rests.lower_bound(begin);
  if (next != region.rests.begin() && std::prev(next)->first + std::prev(next)->second == begin) {
    begin = std::prev(next)->first;
    region.remove_rest(begin, std::prev(next)->second);
  }
  const auto candidate = candidate_of(region);
  if (ByteRange{begin, end} == region.range) {
    candidates_.erase(candidate);
    add_hole(region.range);
    regions_.erase(begin);
    return;
  }
  region.add_rest(begin, end - begin);
  candidate->largest_rest_bytes = region.largest_rest();
}

void SegmentAddresses::add_hole(ByteRange range) {
  const auto above = holes_.find(range.end);
  if (above != holes_.end()) {
    range.end = above->second;
    holes_.erase(above);
  }
  const auto next = holes_.lower_bound(range.begin);
  if (next != holes_.begin() && std::prev(next)->second == range.begin) {
    range.begin = std::prev(next)->first;
    holes_.erase(std::prev(next));
  }
  if (range.begin == lowest_) lowest_ = range.end;
  else holes_.emplace(range.begin, range.end);
}

}  // namespace faultline
