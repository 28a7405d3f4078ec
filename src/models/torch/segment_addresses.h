// Where cudaMalloc puts segments. PyTorch takes the lowest of equally large free blocks, so the order of the segments' addresses decides ties.
//
// The driver takes addresses in regions: the request rounded up to 32 MiB, each new region directly below the one before. What a request leaves of
// its region is a rest, and a later segment of any size goes into a rest before a new region is made. The newest region with room serves, by its
// smallest rest that is large enough, from that rest's start:
//
//      ◀─ lower addresses                      20 MiB asked for: newest region with room is the middle one
//      ┌ third: 26 ───── 6 ┐┌ second: 36 ────────── 28 ┐┌ first: 20 ──── 12 ┐
//      │█████████████░░░░░░││██████████████████▒▒▒▒▒▒▒▒││██████████░░░░░░░░░│
//
// A region whose last segment is returned goes back as a whole; neighbouring ones join into a hole. A new region takes the upper end of the highest
// hole that is larger than it; a hole of exactly its size does not do. Below the lowest region there is always room. NVIDIA documents none of this:
// it is read off recordings (docs/measurements/allocator-model.md), which leave open whether a region's smallest fitting rest serves or its last.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "base/byte_range.h"

namespace faultline {

class SegmentAddresses {
 public:
  // Addresses inside `room` are handed out, from its end downwards.
  explicit SegmentAddresses(ByteRange room);
  std::optional<std::uint64_t> take(std::uint64_t size_bytes);
  // A segment that did not come from here is left alone.
  void give_back(ByteRange segment);

 private:
  // Room of some size, ranked: the highest rank among all that is large enough. There are few different sizes, so it looks at each.
  class RankedRoom {
   public:
    using Key = std::pair<std::uint64_t, std::uint64_t>;  // rank, and what it stands for
    void add(std::uint64_t size_bytes, Key key);
    void remove(std::uint64_t size_bytes, Key key);
    std::optional<Key> highest(std::uint64_t least_bytes) const;

   private:
    std::map<std::uint64_t, std::set<Key>> by_size_;
  };

  struct Region {
    std::uint64_t number = 0;  // the higher the newer
    ByteRange range;
    std::map<std::uint64_t, std::uint64_t> rests;               // address, size
    std::set<std::pair<std::uint64_t, std::uint64_t>> by_size;  // size, address
    void add_rest(std::uint64_t address, std::uint64_t size_bytes);
    void remove_rest(std::uint64_t address, std::uint64_t size_bytes);
    std::uint64_t largest_rest() const { return by_size.empty() ? 0 : by_size.rbegin()->first; }
  };

  std::optional<std::uint64_t> take_rest(std::uint64_t size_bytes);
  std::optional<std::uint64_t> room_for_region(std::uint64_t size_bytes);
  void give_back_in(Region& region, ByteRange segment);
  void add_hole(ByteRange range);
  void remove_hole(ByteRange range);
  // Around every change of a region's rests.
  void unrank(const Region& region);
  void rank(const Region& region);

  std::uint64_t floor_;
  std::uint64_t lowest_;                     // where the lowest region begins
  std::map<std::uint64_t, Region> regions_;  // by where they begin
  RankedRoom newest_;  // largest rests of regions, ranked by the region's number, standing for its begin
  std::map<std::uint64_t, std::uint64_t> holes_;  // begin and end of what returned regions left; all above lowest_
  RankedRoom highest_hole_;                       // the same, ranked by begin, standing for the end
  std::uint64_t made_count_ = 0;
};

}  // namespace faultline
