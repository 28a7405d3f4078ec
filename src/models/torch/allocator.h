// A model of PyTorch's CUDACachingAllocator for one device: same requests, same placements.
//
// Memory comes from the driver in segments. A segment is a chain of blocks, each allocated, pending (freed by the program, still used by
// another stream), free, or unmapped (addresses of an expandable segment without memory behind them). Free blocks are found by best fit in the
// index of their list.
//
//   arena   the default pool, or one private pool (CUDA graphs, MemPool)
//   pool    an arena's small (requests up to 1 MiB) or large half
//   list    a pool's blocks of one stream: blocks never change streams
//
// The model does nothing on its own: find, claim, obtain, free and release are single steps, so that a proof can compare each with a recording;
// allocate() puts them together in PyTorch's order for a replay on its own. What would be released is computed by plan_* without changing
// anything. Invariants: neighbouring blocks of a segment are never both free or both unmapped; a free block is in its list's index and only
// there; reserved_bytes() is the sum of plain segments and mapped ranges.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "models/free_index.h"
#include "models/torch/driver.h"
#include "models/torch/segment_sizes.h"
#include "models/torch/settings.h"
#include "trace/trace.h"

namespace faultline {

using BlockIndex = std::uint32_t;
using ListIndex = std::uint32_t;
using SegmentIndex = std::uint32_t;
inline constexpr std::uint32_t kNoIndex = 0xFFFFFFFF;

// beyond any device; larger requests are refused unseen
inline constexpr std::uint64_t kTorchLargestRequest = 1ull << 46;

struct TorchBlock {
  enum class State : std::uint8_t { kFree, kAllocated, kPending, kUnmapped, kGone };
  std::uint64_t address = 0;
  std::uint64_t size_bytes = 0;
  BlockIndex previous = kNoIndex;
  BlockIndex next = kNoIndex;
  ListIndex list = kNoIndex;  // kNoIndex: outside every known segment (a proof met an address it cannot explain)
  SegmentIndex segment = kNoIndex;
  std::uint32_t mark = 0;   // free: the pool's search count when it became so; pending: its place among the pending
  AllocationId allocation;  // while allocated or pending
  State state = State::kGone;
};

struct TorchSegment {
  std::uint64_t address = 0;
  std::uint64_t size_bytes = 0;    // expandable: of the whole reservation
  std::uint64_t handle_bytes = 0;  // expandable: how much is mapped at a time; 0 for a plain segment
  std::uint64_t mapped_bytes = 0;
  ListIndex list = kNoIndex;
  BlockIndex first = kNoIndex;
  bool pool_known = true;  // false: a proof only supposes that it belongs to this arena
  bool live = false;
  bool expandable() const { return handle_bytes != 0; }
};

// One step of giving memory back.
struct TorchRelease {
  BlockIndex block = kNoIndex;
  ByteRange range;
  bool unmap = false;
};

class TorchAllocator {
  using State = TorchBlock::State;

 public:
  TorchAllocator(const TorchSettings& settings, const TorchTraits& traits, std::span<const Stream> streams);

  // --- arenas and lists
  std::uint32_t add_arena(bool is_private);
  std::uint32_t arena_count() const { return static_cast<std::uint32_t>(arenas_.size()); }
  bool is_private(std::uint32_t arena) const { return arenas_[arena].is_private; }
  // A private pool that brings its own allocator never grows expandable segments.
  void set_own_allocator(std::uint32_t arena) { arenas_[arena].own_allocator = true; }
  bool has_own_allocator(std::uint32_t arena) const { return arenas_[arena].own_allocator; }
  bool expandable_in(std::uint32_t arena) const;
  ListIndex list_for(std::uint32_t arena, bool is_small, StreamId stream) {
    const std::uint32_t pool = arena * 2 + (is_small ? 1 : 0);
    const std::uint64_t key = std::uint64_t{pool} << 32 | stream.value;
    const RecentList& recent = recent_lists_[(pool ^ stream.value * 2u) % recent_lists_.size()];
    return recent.key == key ? recent.list : look_up_list(pool, stream);
  }
  SegmentOwner owner_of(ListIndex list) const;
  // The next stream, before anything is asked for on it.
  void add_stream(std::uint64_t handle) { stream_handles_.push_back(handle); }
  void set_limit(std::optional<std::uint64_t> limit_bytes) { limit_bytes_ = limit_bytes; }
  // Ages are only counted where garbage collection can happen; a proof, which may not know the limit, counts them always.
  void count_ages(bool on) { count_ages_ = on; }

  // --- sizes
  std::uint64_t round(std::uint64_t size_bytes) const {
    if (size_bytes < kTorchSmallestBlock) return kTorchSmallestBlock;
    if (rounds_up_) return round_by_divisions(size_bytes);
    return (size_bytes + kTorchSmallestBlock - 1) & ~(kTorchSmallestBlock - 1);
  }
  std::uint64_t segment_bytes(std::uint64_t rounded_bytes) const;
  std::uint64_t handle_bytes(bool is_small) const {
    return is_small ? kTorchSmallSegment : settings_.large_segment_bytes;
  }
  bool keeps_whole(std::uint64_t rounded_bytes) const {
    return rounded_bytes >= settings_.max_split_bytes;
  }  // such a block is never split

  // --- one request, step by step
  // The free block that serves a request of this rounded size, or kNoIndex.
  BlockIndex find(ListIndex list, std::uint64_t rounded_bytes) const;
  // One search has been made (ages count searches).
  void note_search(ListIndex list) {
    if (count_ages_) ++pools_[lists_[list].pool].searches;
  }
  // New memory: a block that is in no index yet, or kNoIndex when the driver or the limit refuses.
  BlockIndex obtain(ListIndex list, std::uint64_t rounded_bytes, TorchDriver& driver);
  // Hands out the low part of a free block; the rest, where worth it, stays free.
  void claim(BlockIndex block, std::uint64_t rounded_bytes, AllocationId allocation);      // found
  void claim_new(BlockIndex block, std::uint64_t rounded_bytes, AllocationId allocation);  // obtained
  // Puts an obtained block back unused.
  void return_new(BlockIndex block) {
    merge_neighbours(block, State::kFree);
    insert_free(block);
  }
  // For a caller that knows an allocation's id only once it is served.
  void name(BlockIndex block, AllocationId allocation) { blocks_[block].allocation = allocation; }
  void request_free(BlockIndex block);
  void complete_free(BlockIndex block);
  void free_now(BlockIndex block);

  // Whether the list has room to grow, but not at this address.
  bool room_elsewhere(ListIndex list, std::uint64_t rounded_bytes, std::uint64_t address) const;

  // --- giving memory back
  std::vector<BlockIndex> plan_collection(std::uint64_t target_bytes, std::uint32_t rounds) const;
  struct Available {
    std::vector<BlockIndex> blocks;
    bool enough = false;
  };
  Available plan_available(ListIndex list, std::uint64_t rounded_bytes) const;
  std::vector<TorchRelease> plan_cached(std::uint32_t arena) const;
  void release(const TorchRelease& step, TorchDriver& driver);
  void release_segment(BlockIndex block, TorchDriver& driver);
  void complete_pending();
  // Told of each pending block that a flush completes before the program's own wait would have.
  void on_early_completion(std::function<void(AllocationId)> tell) { tell_early_completion_ = std::move(tell); }

  // --- PyTorch's own order: search, collect, ask, release what is enough, release everything, fail
  BlockIndex allocate(ListIndex list, std::uint64_t rounded_bytes, AllocationId allocation,
                      std::span<const std::uint32_t> freeable, TorchDriver& driver);
  void empty_cache(std::span<const std::uint32_t> freeable, TorchDriver& driver);

  // --- building a given state, and forcing one
  // kNoIndex: overlaps a known one
  SegmentIndex add_segment(ListIndex list, ByteRange range, std::uint64_t handle_bytes);
  // The next block of a segment that is being built in address order; `last` is the one before it, kNoIndex for the first.
  BlockIndex append_block(SegmentIndex segment, BlockIndex last, std::uint64_t size_bytes, TorchBlock::State state,
                          AllocationId allocation);
  void drop_segment(SegmentIndex segment);
  std::size_t move_segment(SegmentIndex segment, std::uint32_t arena);  // how many blocks it has
  SegmentIndex segment_at(std::uint64_t address) const;
  // Places an allocation at an address whatever the rules say; a block outside every segment if it cannot be there.
  BlockIndex force(std::uint64_t address, std::uint64_t rounded_bytes, AllocationId allocation);
  bool force_map(ByteRange range);
  bool force_unmap(ByteRange range);

  // --- reading
  const TorchBlock& block(BlockIndex index) const { return blocks_[index]; }
  const TorchSegment& segment(SegmentIndex index) const { return segments_[index]; }
  TorchSegment& segment(SegmentIndex index) { return segments_[index]; }
  std::uint32_t segment_count() const { return static_cast<std::uint32_t>(segments_.size()); }
  std::size_t free_block_count() const { return free_blocks_; }
  const FreeIndex& index_of(ListIndex list) const { return lists_[list].index; }
  std::uint32_t arena_of(ListIndex list) const { return lists_[list].pool / 2; }
  std::uint64_t allocated_bytes() const { return allocated_bytes_; }
  std::uint64_t peak_allocated_bytes() const { return peak_allocated_bytes_; }
  std::uint64_t reserved_bytes() const { return reserved_bytes_; }
  std::uint64_t peak_reserved_bytes() const { return peak_reserved_bytes_; }
  std::uint64_t segments_taken() const { return segments_taken_; }
  std::uint64_t segments_returned() const { return segments_returned_; }
  std::uint64_t cache_flushes() const { return cache_flushes_; }
  void reset_peaks() {
    peak_allocated_bytes_ = allocated_bytes_;
    peak_reserved_bytes_ = reserved_bytes_;
  }

 private:
  struct Arena {
    bool is_private = false;
    bool own_allocator = false;
  };
  struct Pool {
    std::uint32_t searches = 0;
    std::uint32_t whole_free = 0;  // free blocks without neighbours: what a flush could give back of plain segments
    std::vector<ListIndex> lists;
    bool lists_sorted = true;
  };
  struct List {
    FreeIndex index;
    std::set<std::pair<std::uint64_t, BlockIndex>> holes;  // unmapped blocks by address
    std::uint32_t pool = 0;                                // arena * 2 + (small ? 1 : 0)
    StreamId stream;
    bool is_small() const { return (pool & 1) != 0; }
  };

  // By stream handle, the order in which PyTorch walks a pool.
  const std::vector<ListIndex>& lists_of(std::uint32_t pool) const;
  ListIndex look_up_list(std::uint32_t pool, StreamId stream);
  std::uint64_t round_by_divisions(std::uint64_t size_bytes) const;
  BlockIndex new_block(std::uint64_t address, std::uint64_t size_bytes, ListIndex list, SegmentIndex segment,
                       State state);
  void return_block(BlockIndex index);
  void recycle(BlockIndex block);
  void insert_free(BlockIndex block);
  bool is_alone(const TorchBlock& block) const { return block.previous == kNoIndex && block.next == kNoIndex; }
  void erase_free(BlockIndex block);
  // Joins `block` with a neighbour in the state `same`; the neighbour's number is recycled.
  void merge_neighbours(BlockIndex block, State same);
  void split_after(BlockIndex block, std::uint64_t size_bytes, State rest);
  void hand_out(BlockIndex block, std::uint64_t rounded_bytes, AllocationId allocation);
  FreeIndex::Cursor search(const List& list, std::uint64_t rounded_bytes) const;
  FreeIndex::Cursor search_past_expandable(const List& list, FreeIndex::Cursor at) const;
  bool split_worth_it(const TorchBlock& block, std::uint64_t rounded_bytes) const;
  void add_reserved(std::uint64_t size_bytes);
  void remove_from_pending(BlockIndex block);

  // expandable.cpp
  std::uint64_t growable_bytes(const TorchBlock& block) const;
  BlockIndex find_room(const List& list, std::uint64_t rounded_bytes) const;
  BlockIndex grow(ListIndex list, std::uint64_t rounded_bytes, TorchDriver& driver);
  bool map_front(BlockIndex block, std::uint64_t size_bytes, TorchDriver& driver);
  void make_mapped(BlockIndex block, std::uint64_t size_bytes);
  ByteRange whole_handles(const TorchBlock& block) const;
  void unmap(BlockIndex block, ByteRange range, TorchDriver& driver);

  TorchSettings settings_;
  TorchTraits traits_;
  std::vector<std::uint64_t> stream_handles_;
  std::optional<std::uint64_t> limit_bytes_;
  bool count_ages_ = false;
  bool rounds_up_ = false;  // some interval of roundup_power2_divisions is set

  std::vector<TorchBlock> blocks_;
  std::vector<BlockIndex> unused_blocks_;
  std::vector<TorchSegment> segments_;
  std::vector<SegmentIndex> unused_segments_;
  std::uint32_t expandable_count_ = 0;  // live expandable segments
  std::map<std::uint64_t, SegmentIndex> segments_by_address_;
  std::vector<Arena> arenas_;
  mutable std::vector<Pool> pools_;  // lists_of() sorts on demand
  std::vector<List> lists_;
  HashMap<std::uint64_t, ListIndex> list_numbers_;
  struct RecentList {
    std::uint64_t key = ~0ull;
    ListIndex list = kNoIndex;
  };
  std::array<RecentList, 64> recent_lists_{};
  std::vector<BlockIndex> pending_;
  std::function<void(AllocationId)> tell_early_completion_;
  // steps that force() may walk in all, so that a hostile trace cannot make it quadratic
  std::uint64_t walk_budget_ = 50'000'000;

  std::size_t free_blocks_ = 0;
  std::uint64_t allocated_bytes_ = 0;
  std::uint64_t peak_allocated_bytes_ = 0;
  std::uint64_t reserved_bytes_ = 0;
  std::uint64_t peak_reserved_bytes_ = 0;
  std::uint64_t segments_taken_ = 0;
  std::uint64_t segments_returned_ = 0;
  std::uint64_t cache_flushes_ = 0;
};

}  // namespace faultline
