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
// hole that is larger than it: the driver asks for a little more than it keeps, so a hole of exactly its size does not do. Below the lowest region
// there is always room. All of this is measured (docs/measurements/allocator-model.md), none of it is documented by NVIDIA.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

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
  struct Region {
    std::uint64_t number = 0;  // the higher the newer
    ByteRange range;
    std::map<std::uint64_t, std::uint64_t> rests;                  // address, size
    std::set<std::pair<std::uint64_t, std::uint64_t>> by_size;     // size, address
    void add_rest(std::uint64_t address, std::uint64_t size_bytes);
    void remove_rest(std::uint64_t address, std::uint64_t size_bytes);
    std::uint64_t largest_rest() const { return by_size.empty() ? 0 : by_size.rbegin()->first; }
  };
  // What the search reads, apart from the regions so that it is quick to walk.
  struct Candidate {
    std::uint64_t number;
    std::uint64_t largest_rest_bytes;
    std::uint64_t begin;
  };

  std::optional<std::uint64_t> take_rest(std::uint64_t size_bytes);
  std::optional<std::uint64_t> room_for_region(std::uint64_t size_bytes);
  void add_hole(ByteRange range);
  std::vector<Candidate>::iterator candidate_of(const Region& region);

  std::uint64_t floor_;
  std::uint64_t lowest_;                                // where the lowest region begins
  std::map<std::uint64_t, Region> regions_;             // by where they begin
  std::map<std::uint64_t, std::uint64_t> holes_;        // begin and end of returned regions; all above lowest_
  std::vector<Candidate> candidates_;                   // one for each region, the newest last
  std::uint64_t made_count_ = 0;
};

}  // namespace faultline
