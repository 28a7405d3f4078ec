// The free blocks of one (pool, stream), ordered by size and then address: best fit is the first entry that is large enough.
//
// Sizes fall into buckets (sixteen per power of two) and bitmaps say which buckets hold anything, so most searches touch one bucket of a few
// entries. A bucket is one short sorted array; once it outgrows that it becomes a row of sorted chunks with the chunks' upper bounds side by
// side, so a hundred thousand blocks of one size cost two binary searches, not a scan. The index does not own blocks: an entry names one by
// number and repeats its size and address, which must not change while it is in.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace faultline {

struct FreeEntry {
  std::uint64_t size_bytes = 0;
  std::uint64_t address = 0;
  std::uint32_t block = 0;

  bool before(std::uint64_t other_size, std::uint64_t other_address) const {
    // Without short-circuits: the answer is as good as random, so a branch would be mispredicted.
    return static_cast<bool>(
        static_cast<unsigned>(size_bytes < other_size) |
        (static_cast<unsigned>(size_bytes == other_size) & static_cast<unsigned>(address < other_address)));
  }
};

class FreeIndex {
 public:
  // A position in the order; `at` is null past the end.
  struct Cursor {
    std::uint16_t octave = 0;
    std::uint16_t bucket = 0;
    std::uint32_t chunk = 0;
    std::uint32_t entry = 0;
    const FreeEntry* at = nullptr;
  };

  bool empty() const { return octaves_used_ == 0; }
  void insert(const FreeEntry& entry);
  // True if it was there.
  bool erase(std::uint64_t size_bytes, std::uint64_t address);
  void erase(const Cursor& cursor);  // ends every cursor
  Cursor first_at_least(std::uint64_t size_bytes) const;
  Cursor first() const { return first_at_least(0); }
  Cursor last() const;
  Cursor next(Cursor from) const;
  Cursor previous(Cursor from) const;

 private:
  static constexpr std::size_t kOctaves = 54;
  static constexpr unsigned kBuckets = 16;
  static constexpr std::size_t kFlat = 32;
  static constexpr std::size_t kChunk = 64;
  using Entries = std::vector<FreeEntry>;
  struct Chunks {
    Entries bounds;              // no entry of a chunk is above the chunk's bound; bounds ascend
    std::vector<Entries> parts;  // none is empty
    std::size_t chunk_for(std::uint64_t size_bytes, std::uint64_t address) const {
      return position(bounds, size_bytes, address);
    }
  };
  struct Bucket {
    Entries flat;
    std::unique_ptr<Chunks> chunks;  // instead of flat, once it has been outgrown
    const Entries& part(std::size_t chunk) const { return chunks == nullptr ? flat : chunks->parts[chunk]; }
    std::size_t part_count() const { return chunks == nullptr ? 1 : chunks->parts.size(); }
  };
  struct Place {
    std::uint16_t octave;
    std::uint16_t bucket;
  };

  static Place place_of(std::uint64_t size_bytes) {
    const std::uint64_t units = size_bytes >> 9;
    if (units < kBuckets) return {0, static_cast<std::uint16_t>(units)};
    const int top = 63 - std::countl_zero(units);
    return {static_cast<std::uint16_t>(top - 3), static_cast<std::uint16_t>((units >> (top - 4)) & (kBuckets - 1))};
  }
  static void insert_sorted(Entries& entries, const FreeEntry& entry);
  static std::size_t position(const Entries& entries, std::uint64_t size_bytes, std::uint64_t address);
  static void insert_into_chunks(Chunks& chunks, const FreeEntry& entry);
  static bool erase_from_chunks(Chunks& chunks, std::uint64_t size_bytes, std::uint64_t address);

  void mark_empty(Place place);
  const Bucket& bucket_at(std::uint16_t octave, std::uint16_t bucket) const {
    return octaves_[octave_at_[octave]][bucket];
  }
  Cursor front_of(std::uint16_t octave, std::uint16_t bucket) const;
  Cursor back_of(std::uint16_t octave, std::uint16_t bucket) const;
  // The first used bucket at or after (octave, bucket), or the end.
  Cursor front_from(std::uint16_t octave, unsigned bucket) const;

  std::uint64_t octaves_used_ = 0;              // bit per octave that holds an entry
  std::array<std::uint16_t, kOctaves> used_{};  // bit per bucket of an octave that holds an entry
  // where in octaves_ an octave's buckets are; octaves_[0] is never used
  std::array<std::uint8_t, kOctaves> octave_at_{};
  std::vector<std::array<Bucket, kBuckets>> octaves_;
};

}  // namespace faultline
