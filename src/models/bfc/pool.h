// The model of the BFC allocator ("best fit with coalescing"): one pool, as TensorFlow and JAX have one for each GPU.
//
//     region  [ chunk 256 | chunk 1024 ........ | free | chunk 4 MiB .......... ]      memory of the driver, never merged with its neighbours
//               in use      in use, of which      merges with free neighbours of the same region as soon as it is freed
//                           700 were asked for
//
// A request is rounded up to 256 bytes and gets the smallest free chunk that holds it, of equal ones the one at the lowest address. The chunk is split where half
// of it or 128 MiB would stay unused; else it is handed out whole, and what was not asked for is slack. Where no chunk fits, the pool takes a region from
// the driver: as large as the last one twice over, or than the request needs, but not beyond the pool's limit; a driver that refuses is asked for 0.9 of it,
// and again, down to the request. Regions stay, unless garbage collection is on and the request would fail without those that are empty.
//
// A state that is known (a dump of the pool) is put in with add_region() and force(): chunks that are in use, with their sizes, are the whole state.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "base/byte_range.h"
#include "models/bfc/settings.h"
#include "models/free_index.h"
#include "trace/event.h"

namespace faultline {

// What stands below the pool: the driver, a recording of it, or a budget.
class BfcDriver {
 public:
  virtual ~BfcDriver() = default;
  // A region of this size, or nothing. A recording may answer with another size.
  virtual std::optional<ByteRange> take(std::uint64_t size_bytes) = 0;
  virtual void give_back(ByteRange region) = 0;
};

using BfcChunkIndex = std::uint32_t;
inline constexpr BfcChunkIndex kNoChunk = ~BfcChunkIndex{0};

struct BfcChunk {
  std::uint64_t address = 0;
  std::uint64_t size_bytes = 0;
  std::uint64_t requested_bytes = 0;  // of a chunk in use
  AllocationId allocation;            // 0: free
  BfcChunkIndex previous = kNoChunk;  // in its region, by address
  BfcChunkIndex next = kNoChunk;
  bool in_use() const { return allocation.value != 0; }
};

class BfcPool {
 public:
  explicit BfcPool(const BfcSettings& settings);

  // The chunk, or kNoChunk: out of memory. `id` is not 0, `bytes` neither.
  BfcChunkIndex allocate(std::uint64_t bytes, AllocationId id, BfcDriver& driver);
  void free(BfcChunkIndex chunk);

  // The steps of allocate, for a proof that follows a recording, and the state of a pool that was not watched from its start.
  BfcChunkIndex find(std::uint64_t rounded_bytes) const;
  BfcChunkIndex claim(BfcChunkIndex chunk, std::uint64_t bytes, AllocationId id);
  // Regions do not overlap; one that does is refused.
  bool add_region(ByteRange region);
  // Of a region without a chunk in use; false where there is none at this address.
  bool drop_region(std::uint64_t address);
  // A chunk in use at this place, cut out of free memory; kNoChunk where that is not free or not inside one region.
  BfcChunkIndex force(std::uint64_t address, std::uint64_t chunk_bytes, std::uint64_t requested_bytes, AllocationId id);
  // What the next region would be, where the pool has grown already: a dump states it.
  void set_next_region(std::uint64_t size_bytes) { next_region_bytes_ = size_bytes; }
  std::uint64_t next_region_bytes() const { return next_region_bytes_; }
  void set_limit(std::uint64_t size_bytes) { settings_.limit_bytes = size_bytes; }
  void set_garbage_collection(bool collects) { settings_.garbage_collection = collects; }

  const BfcSettings& settings() const { return settings_; }
  const BfcChunk& chunk(BfcChunkIndex index) const { return chunks_[index]; }
  struct Region {
    std::uint64_t size_bytes = 0;
    BfcChunkIndex first = kNoChunk;
  };
  const std::map<std::uint64_t, Region>& regions() const { return regions_; }  // by address
  bool is_empty(const Region& region) const;

  std::uint64_t in_use_bytes() const { return in_use_bytes_; }  // whole chunks: slack is in it
  std::uint64_t requested_bytes() const { return requested_bytes_; }
  std::uint64_t reserved_bytes() const { return reserved_bytes_; }
  // Of the limit, what no region has taken: what the pool may still ask the driver for.
  std::uint64_t available_bytes() const;
  std::uint64_t largest_free_bytes() const;
  std::uint64_t peak_in_use_bytes() const { return peak_in_use_bytes_; }
  std::uint64_t peak_reserved_bytes() const { return peak_reserved_bytes_; }
  std::uint64_t regions_taken() const { return regions_taken_; }
  std::uint64_t regions_returned() const { return regions_returned_; }
  std::uint64_t collections() const { return collections_; }

 private:
  BfcChunkIndex new_chunk(std::uint64_t address, std::uint64_t size_bytes);
  void drop_chunk(BfcChunkIndex index);
  void make_free(BfcChunkIndex index);
  void split(BfcChunkIndex index, std::uint64_t size_bytes);
  void merge_with_next(BfcChunkIndex index);
  void put_in_use(BfcChunkIndex index, std::uint64_t bytes, AllocationId id);
  bool extend(std::uint64_t rounded_bytes, BfcDriver& driver);
  bool collect(std::uint64_t rounded_bytes, BfcDriver& driver);
  void remove_region(std::map<std::uint64_t, Region>::iterator at);

  BfcSettings settings_;
  std::uint64_t next_region_bytes_ = 0;
  std::vector<BfcChunk> chunks_;
  std::vector<BfcChunkIndex> unused_;
  std::map<std::uint64_t, BfcChunkIndex> by_address_;
  FreeIndex free_;
  std::map<std::uint64_t, Region> regions_;
  std::uint64_t in_use_bytes_ = 0, requested_bytes_ = 0, reserved_bytes_ = 0;
  std::uint64_t peak_in_use_bytes_ = 0, peak_reserved_bytes_ = 0;
  std::uint64_t regions_taken_ = 0, regions_returned_ = 0, collections_ = 0;
};

// What a driver that refuses this much is asked for next: 0.9 of it in single precision, in whole units, and always less.
std::uint64_t bfc_less(std::uint64_t region_bytes);

}  // namespace faultline
