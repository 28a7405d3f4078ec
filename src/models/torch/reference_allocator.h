// The caching allocator once more, for tests only: slow, obvious, and sharing no code with the model. Blocks are single objects in ordered sets,
// every step is written out; only where a segment lies it asks of the same rule as the model's driver. What it does is what the model must do.
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <vector>

#include "models/torch/segment_addresses.h"

namespace faultline::reference {

struct Settings {
  std::uint64_t max_split = ~0ull;
  std::uint64_t rounding = 20ull << 20;
  std::uint64_t large_segment = 20ull << 20;
  double gc = 0;
  std::uint64_t divisions = 0;  // one for all sizes
  bool expandable = false;
  std::optional<std::uint64_t> limit;
  std::uint64_t budget = ~0ull;
  std::uint64_t reservation = 1ull << 42;
};

struct Call {
  char what;  // A segment alloc, F segment free, M map, U unmap
  std::uint64_t address;
  std::uint64_t size;
  bool operator==(const Call&) const = default;
};

class Allocator {
 public:
  Allocator(Settings settings, std::vector<std::uint64_t> handles, int arenas)
      : s_(settings), handles_(handles), pools_(static_cast<std::size_t>(arenas) * 2) {}

  struct Pool;
  struct Block {
    std::uint64_t stream, size, at;
    Pool* pool;
    std::uint64_t base;  // of the reservation, for expandable blocks
    std::uint64_t step;  // handle size; 0 for plain blocks
    bool used = false, pending = false, mapped = true;
    Block* left = nullptr;
    Block* right = nullptr;
    std::uint64_t born = 0;
    bool idle() const { return !used && !pending; }
  };
  struct BySize {
    bool operator()(const Block* a, const Block* b) const {
      return std::tie(a->stream, a->size, a->at) < std::tie(b->stream, b->size, b->at);
    }
  };
  struct ByAddress {
    bool operator()(const Block* a, const Block* b) const {
      return std::tie(a->stream, a->at) < std::tie(b->stream, b->at);
    }
  };
  struct Pool {
    std::set<Block*, BySize> free;
    std::set<Block*, ByAddress> holes;
    std::uint64_t searches = 0;
  };

  std::vector<Call> calls;
  std::uint64_t reserved = 0;

  std::uint64_t round(std::uint64_t n) const {
    if (n < 512) return 512;
    if (s_.divisions > 1 && n > 512 * s_.divisions) {
      std::uint64_t power = 1;
      while (power * 2 <= n) power *= 2;
      if (power == n) return n;
      const std::uint64_t slice = power / s_.divisions;
      if (slice == 0) return power * 2;
      std::uint64_t result = power;
      while (result < n) result += slice;
      return result;
    }
    return (n + 511) / 512 * 512;
  }

  Block* malloc(std::uint64_t requested, std::size_t stream, int arena) {
    const std::uint64_t size = round(requested);
    const bool small = size <= 1u << 20;
    Pool& pool = pools_[static_cast<std::size_t>(arena) * 2 + (small ? 1 : 0)];
    const std::uint64_t handle = handles_[stream];
    Block* block = from_cache(pool, handle, size);
    if (block == nullptr) {
      if (s_.limit && s_.gc > 0) collect();
      block = from_driver(pool, handle, size, small);
      if (block == nullptr && give_back_enough(pool, handle, size)) block = from_driver(pool, handle, size, small);
      if (block == nullptr && arena == 0) {
        empty_cache();
        block = from_driver(pool, handle, size, small);
      }
      if (block == nullptr) return nullptr;
    }
    const std::uint64_t rest = block->size - size;
    const bool split = small || s_.expandable ? rest >= 512 : size < s_.max_split && rest > 1u << 20;
    if (split) {
      Block* high = make(*block);
      high->at = block->at + size;
      high->size = rest;
      block->size = size;
      link(block, high, block->right);
      add_free(high);
    }
    block->used = true;
    return block;
  }

  void request_free(Block* block) {
    block->used = false;
    block->pending = true;
    waiting_.push_back(block);
  }
  void complete_free(Block* block) {
    waiting_.remove(block);
    block->pending = false;
    swallow(block, block->left);
    swallow(block, block->right);
    add_free(block);
  }
  bool is_pending(const Block* block) const {
    for (const Block* one : waiting_) {
      if (one == block) return true;
    }
    return false;
  }

  void empty_cache() {
    while (!waiting_.empty()) complete_free(waiting_.front());
    empty_pool(pools_[0]);
    empty_pool(pools_[1]);
  }

 private:
  Block* make(const Block& like) {
    blocks_.push_back(like);
    Block* block = &blocks_.back();
    block->left = block->right = nullptr;
    block->used = block->pending = false;
    return block;
  }
  static void link(Block* a, Block* middle, Block* b) {
    middle->left = a;
    middle->right = b;
    if (a != nullptr) a->right = middle;
    if (b != nullptr) b->left = middle;
  }
  void add_free(Block* block) {
    block->born = block->pool->searches;
    block->pool->free.insert(block);
  }
  void swallow(Block* block, Block* other) {
    if (other == nullptr || !other->idle() || other->mapped != block->mapped) return;
    if (other->mapped)
      other->pool->free.erase(other);
    else
      other->pool->holes.erase(other);
    if (other == block->left) {
      block->at = other->at;
      block->left = other->left;
      if (block->left != nullptr) block->left->right = block;
    } else {
      block->right = other->right;
      if (block->right != nullptr) block->right->left = block;
    }
    block->size += other->size;
  }
  static std::uint64_t reach(const Block* block) {
    return block->size + (block->right != nullptr && !block->right->mapped ? block->right->size : 0);
  }

  Block* from_cache(Pool& pool, std::uint64_t stream, std::uint64_t size) {
    if (s_.limit && s_.gc > 0) ++pool.searches;
    Block key{stream, size, 0, nullptr, 0, 0};
    auto it = pool.free.lower_bound(&key);
    if (it == pool.free.end() || (*it)->stream != stream) return nullptr;
    if ((*it)->step != 0) {
      for (auto after = std::next(it);
           (*it)->step != 0 && after != pool.free.end() && (*after)->stream == stream && reach(*after) < reach(*it);
           ++after) {
        it = after;
      }
    }
    if (size < s_.max_split && (*it)->size >= s_.max_split) return nullptr;
    if (size >= s_.max_split && (*it)->size >= size + s_.rounding) return nullptr;
    Block* block = *it;
    pool.free.erase(it);
    return block;
  }

  Block* from_driver(Pool& pool, std::uint64_t stream, std::uint64_t size, bool small) {
    const std::uint64_t segment = small              ? 2u << 20
                                  : size < 10u << 20 ? s_.large_segment
                                                     : (size + (2u << 20) - 1) / (2u << 20) * (2u << 20);
    if (s_.limit && reserved + segment > *s_.limit) return nullptr;
    if (s_.expandable) return grow(pool, stream, size, small);
    if (reserved + segment > s_.budget) return nullptr;
    const std::uint64_t at = segments_.take(segment).value();
    calls.push_back({'A', at, segment});
    reserved += segment;
    return make({stream, segment, at, &pool, 0, 0});
  }

  Block* grow(Pool& pool, std::uint64_t stream, std::uint64_t size, bool small) {
    Block* start = nullptr;
    for (Block* hole : pool.holes) {
      if (hole->stream != stream) continue;
      Block* first = hole->left != nullptr && hole->left->idle() ? hole->left : hole;
      std::uint64_t room = 0;
      for (Block* at = first; at != nullptr && at->idle() && room < size; at = at->right) room += at->size;
      if (room >= size) {
        start = first;
        break;
      }
    }
    if (start == nullptr) {
      const std::uint64_t step = small ? 2u << 20 : s_.large_segment;
      const std::uint64_t bytes = (s_.reservation + step - 1) / step * step;
      start = make({stream, bytes, next_, &pool, next_, step});
      next_ += (bytes + (2u << 20) - 1) / (2u << 20) * (2u << 20);
      start->mapped = false;
      pool.holes.insert(start);
    }
    if (!start->mapped && !map(start, std::min(start->size, size))) return nullptr;
    while (start->size < size) {
      Block* more = start->right;
      if (!map(more, std::min(size - start->size, more->size))) return nullptr;
      start = more;
    }
    pool.free.erase(start);
    return start;
  }

  bool map(Block* block, std::uint64_t size) {
    const std::uint64_t bytes = (size + block->step - 1) / block->step * block->step;
    if (reserved + bytes > s_.budget) return false;
    calls.push_back({'M', block->at, bytes});
    reserved += bytes;
    block->pool->holes.erase(block);
    block->mapped = true;
    if (bytes < block->size) {
      Block* rest = make(*block);
      rest->at = block->at + bytes;
      rest->size = block->size - bytes;
      rest->mapped = false;
      block->size = bytes;
      link(block, rest, block->right);
      rest->pool->holes.insert(rest);
    }
    swallow(block, block->left);
    swallow(block, block->right);
    add_free(block);
    return true;
  }

  void give_back(Block* block) {
    calls.push_back({'F', block->at, block->size});
    segments_.give_back(ByteRange::of(block->at, block->size));
    reserved -= block->size;
    block->pool->free.erase(block);
  }

  void empty_pool(Pool& pool) {
    std::vector<Block*> expandable;
    const std::vector<Block*> all(pool.free.begin(), pool.free.end());
    for (Block* block : all) {
      if (block->step != 0)
        expandable.push_back(block);
      else if (block->left == nullptr && block->right == nullptr)
        give_back(block);
    }
    for (Block* block : expandable) unmap(block);
  }

  void unmap(Block* block) {
    const std::uint64_t from = block->base + (block->at - block->base + block->step - 1) / block->step * block->step;
    const std::uint64_t to = block->base + (block->at + block->size - block->base) / block->step * block->step;
    if (from >= to) return;
    Pool& pool = *block->pool;
    pool.free.erase(block);
    if (from > block->at) {
      Block* before = make(*block);
      before->size = from - block->at;
      link(block->left, before, block);
      add_free(before);
    }
    if (to < block->at + block->size) {
      Block* after = make(*block);
      after->at = to;
      after->size = block->at + block->size - to;
      link(block, after, block->right);
      add_free(after);
    }
    block->at = from;
    block->size = to - from;
    block->mapped = false;
    swallow(block, block->left);
    swallow(block, block->right);
    calls.push_back({'U', from, to - from});
    reserved -= to - from;
    if (block->left == nullptr && block->right == nullptr) return;
    pool.holes.insert(block);
  }

  void collect() {
    const auto threshold = static_cast<std::uint64_t>(s_.gc * static_cast<double>(*s_.limit));
    if (reserved <= threshold) return;
    const std::uint64_t target = reserved - threshold;
    Pool& pool = pools_[0];
    std::uint64_t ages = 0, back = 0, count = 0;
    const auto old = [&](const Block* b) { return pool.searches - b->born; };
    const auto whole = [](const Block* b) { return b->left == nullptr && b->right == nullptr && b->step == 0; };
    for (const Block* b : pool.free) {
      if (whole(b)) ages += old(b), ++count;
    }
    for (bool some = true; some && back < target && count > 0;) {
      const double average = static_cast<double>(ages) / static_cast<double>(count);
      some = false;
      const std::vector<Block*> all(pool.free.begin(), pool.free.end());
      for (Block* b : all) {
        if (!whole(b) || static_cast<double>(old(b)) < average) continue;
        some = true;
        back += b->size;
        ages -= old(b);
        --count;
        give_back(b);
      }
    }
  }

  bool give_back_enough(Pool& pool, std::uint64_t stream, std::uint64_t size) {
    if (s_.max_split == ~0ull) return false;
    const std::uint64_t needed = std::max(size, s_.max_split);
    Block key{stream, needed, 0, nullptr, 0, 0};
    auto it = pool.free.lower_bound(&key);
    if (it != pool.free.end() && (*it)->stream == stream && (*it)->step == 0) {
      give_back(*it);
      return true;
    }
    std::uint64_t total = 0;
    while (it != pool.free.begin() && total < needed) {
      --it;
      if ((*it)->stream != stream || (*it)->size < s_.max_split) break;
      if ((*it)->step != 0) continue;
      Block* block = *it;
      total += block->size;
      ++it;
      give_back(block);
    }
    return total >= needed;
  }

  Settings s_;
  std::vector<std::uint64_t> handles_;
  std::vector<Pool> pools_;
  std::list<Block> blocks_;
  std::list<Block*> waiting_;
  SegmentAddresses segments_{{0, 0x7f0000000000}};
  std::uint64_t next_ = 0x7f0000000000;  // of expandable segments
};

}  // namespace faultline::reference
