// Hands out pieces of one range of addresses, so that what was given back comes round again as late as possible: the search for a free place always
// goes on from where the last piece ended (next fit). A dangling address therefore stays dangling for a whole round.
#pragma once

#include <cstdint>
#include <iterator>
#include <map>
#include <optional>

#include "base/byte_range.h"

namespace faultline::vgpu {

class RangeAllocator {
 public:
  explicit RangeAllocator(ByteRange range) : range_(range), cursor_(range.begin) {
    free_.emplace(range.begin, range.end);
  }

  // `alignment` is a power of two.
  std::optional<ByteRange> take(std::uint64_t size_bytes, std::uint64_t alignment) {
    std::optional<ByteRange> found = take_from(cursor_, size_bytes, alignment);
    if (!found) found = take_from(range_.begin, size_bytes, alignment);
    if (found) cursor_ = found->end;
    return found;
  }

  // False: not all of it is free.
  bool take_exactly(ByteRange wanted) {
    auto at = free_.upper_bound(wanted.begin);
    if (at == free_.begin()) return false;
    at = std::prev(at);
    if (wanted.end > at->second) return false;
    cut(at, wanted);
    return true;
  }

  void give_back(ByteRange piece) {
    auto after = free_.lower_bound(piece.begin);
    if (after != free_.end() && after->first == piece.end) {
      piece.end = after->second;
      after = free_.erase(after);
    }
    if (after != free_.begin() && std::prev(after)->second == piece.begin) {
      std::prev(after)->second = piece.end;
    } else {
      free_.emplace(piece.begin, piece.end);
    }
  }

  ByteRange range() const { return range_; }
  bool all_free() const { return free_.size() == 1 && free_.begin()->second - free_.begin()->first == range_.size(); }

 private:
  using FreeRanges = std::map<std::uint64_t, std::uint64_t>;  // begin to end; never two that touch

  std::optional<ByteRange> take_from(std::uint64_t start, std::uint64_t size_bytes, std::uint64_t alignment) {
    auto at = free_.upper_bound(start);
    if (at != free_.begin()) at = std::prev(at);
    for (; at != free_.end(); ++at) {
      const std::uint64_t lowest = at->first > start ? at->first : start;
      const std::uint64_t begin = (lowest + alignment - 1) & ~(alignment - 1);
      if (begin >= at->second || at->second - begin < size_bytes) continue;
      const ByteRange piece = ByteRange::of(begin, size_bytes);
      cut(at, piece);
      return piece;
    }
    return std::nullopt;
  }

  void cut(FreeRanges::iterator at, ByteRange piece) {
    const ByteRange whole{at->first, at->second};
    free_.erase(at);
    if (whole.begin < piece.begin) free_.emplace(whole.begin, piece.begin);
    if (piece.end < whole.end) free_.emplace(piece.end, whole.end);
  }

  ByteRange range_;
  std::uint64_t cursor_;
  FreeRanges free_;
};

}  // namespace faultline::vgpu
