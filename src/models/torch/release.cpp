// Giving memory back: which segments, and in which order.
#include <algorithm>

#include "models/torch/allocator.h"

namespace faultline {

// Garbage collection looks at the whole large segments of the default pool that lie free, and gives back those at least as old as the average,
// again and again until enough is back. Age is the number of searches in the pool since the block became free.
std::vector<BlockIndex> TorchAllocator::plan_collection(std::uint64_t target_bytes, std::uint32_t rounds) const {
  const Pool& pool = pools_[0];
  std::vector<BlockIndex> candidates;
  if (pool.whole_free == 0) return candidates;
  std::uint64_t total_age = 0;
  const auto age = [&](BlockIndex block) { return std::uint64_t{pool.searches - blocks_[block].mark}; };
  for (const ListIndex list : lists_of(0)) {
    const FreeIndex& index = lists_[list].index;
    for (FreeIndex::Cursor at = index.first(); at.at != nullptr; at = index.next(at)) {
      const TorchBlock& block = blocks_[at.at->block];
      if (!is_alone(block) || segments_[block.segment].expandable()) continue;
      total_age += age(at.at->block);
      candidates.push_back(at.at->block);
    }
  }
  std::vector<BlockIndex> plan;
  std::uint64_t reclaimed = 0;
  for (std::uint32_t round = 0; round < rounds && reclaimed < target_bytes && !candidates.empty(); ++round) {
    const double threshold = static_cast<double>(total_age) / static_cast<double>(candidates.size());
    std::vector<BlockIndex> kept;
    for (const BlockIndex block : candidates) {
      if (static_cast<double>(age(block)) < threshold) {
        kept.push_back(block);
        continue;
      }
      reclaimed += blocks_[block].size_bytes;
      total_age -= age(block);
      plan.push_back(block);
    }
    if (kept.size() == candidates.size()) break;
    candidates = std::move(kept);
  }
  return plan;
}

// With max_split_size set, one oversize cached block that is large enough is given back, else oversize blocks from the largest down until they add up.
TorchAllocator::Available TorchAllocator::plan_available(ListIndex list, std::uint64_t rounded_bytes) const {
  Available plan;
  if (settings_.max_split_bytes == kUnlimitedBytes) return plan;
  const std::uint64_t needed = std::max(rounded_bytes, settings_.max_split_bytes);
  const FreeIndex& index = lists_[list].index;
  const auto releasable = [&](BlockIndex block) { return !segments_[blocks_[block].segment].expandable(); };
  const auto whole = [&](BlockIndex block) { return is_alone(blocks_[block]); };
  const FreeIndex::Cursor fit = index.first_at_least(needed);
  if (fit.at != nullptr && releasable(fit.at->block)) {
    if (!whole(fit.at->block)) return plan;
    plan.blocks.push_back(fit.at->block);
    plan.enough = true;
    return plan;
  }
  std::uint64_t total = 0;
  FreeIndex::Cursor at = fit.at == nullptr ? index.last() : index.previous(fit);
  while (at.at != nullptr && total < needed && at.at->size_bytes >= settings_.max_split_bytes) {
    if (releasable(at.at->block) && whole(at.at->block)) {
      total += at.at->size_bytes;
      plan.blocks.push_back(at.at->block);
    }
    at = index.previous(at);
  }
  plan.enough = total >= needed;
  return plan;
}

// The default pool gives back large before small, a private pool small before large; in each pool first whole plain segments by stream, size and
// address, then the whole handles inside the free blocks of expandable segments in the same order.
std::vector<TorchRelease> TorchAllocator::plan_cached(std::uint32_t arena) const {
  std::vector<TorchRelease> plan;
  const std::uint32_t first_pool = arena * 2 + (arenas_[arena].is_private ? 1 : 0);
  for (const std::uint32_t pool : {first_pool, first_pool ^ 1u}) {
    if (pools_[pool].whole_free == 0 && expandable_count_ == 0) continue;
    std::vector<TorchRelease> unmaps;
    for (const ListIndex list : lists_of(pool)) {
      const FreeIndex& index = lists_[list].index;
      for (FreeIndex::Cursor at = index.first(); at.at != nullptr; at = index.next(at)) {
        const TorchBlock& block = blocks_[at.at->block];
        if (segments_[block.segment].expandable()) {
          const ByteRange range = whole_handles(block);
          if (!range.empty()) unmaps.push_back({at.at->block, range, true});
        } else if (is_alone(block)) {
          plan.push_back({at.at->block, ByteRange::of(block.address, block.size_bytes), false});
        }
      }
    }
    plan.insert(plan.end(), unmaps.begin(), unmaps.end());
  }
  return plan;
}

void TorchAllocator::release(const TorchRelease& step, TorchDriver& driver) {
  if (step.unmap)
    unmap(step.block, step.range, driver);
  else
    release_segment(step.block, driver);
}

void TorchAllocator::release_segment(BlockIndex block, TorchDriver& driver) {
  const SegmentIndex segment = blocks_[block].segment;
  driver.give_back(ByteRange::of(segments_[segment].address, segments_[segment].size_bytes),
                   owner_of(segments_[segment].list));
  ++segments_returned_;
  drop_segment(segment);
}

}  // namespace faultline
