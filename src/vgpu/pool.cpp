#include "vgpu/pool.h"

#include <algorithm>

#include "vgpu/call.h"
#include "vgpu/device.h"

namespace faultline::vgpu {
namespace {

constexpr std::uint64_t kPieceAlignment = 512;
constexpr std::uint64_t kSegmentBytes = std::uint64_t{32} << 20;

}  // namespace

Pool::Pool(CUdevice device_, std::uint64_t largest_bytes) : device(device_), largest_bytes_(largest_bytes) {}

Pool::~Pool() { release_down_to(0); }

// The lock is held.
bool Pool::add_segment(std::uint64_t size_bytes) {
  if (largest_bytes_ != 0 && account_.reserved_bytes + size_bytes > largest_bytes_) return false;
  if (!Memory::get().charge(device, size_bytes)) return false;
  const ByteRange range = Memory::get().take_addresses(size_bytes, kBlockBytes);
  segments_.emplace(range.begin, RangeAllocator(range));
  account_.reserved_bytes += size_bytes;
  account_.reserved_high_bytes = std::max(account_.reserved_high_bytes, account_.reserved_bytes);
  return true;
}

// The lock is held.
std::optional<std::uint64_t> Pool::take_piece(std::uint64_t size_bytes) {
  const std::uint64_t rounded = round_up(size_bytes, kPieceAlignment);
  const auto from_segments = [&]() -> std::optional<std::uint64_t> {
    for (auto& [begin, segment] : segments_) {
      if (const std::optional<ByteRange> piece = segment.take(rounded, kPieceAlignment)) return piece->begin;
    }
    return std::nullopt;
  };
  if (const std::optional<std::uint64_t> address = from_segments()) return address;
  if (!add_segment(round_up(size_bytes, kSegmentBytes)) && !add_segment(round_up(size_bytes, kBlockBytes)))
    return std::nullopt;
  return from_segments();
}

std::uint64_t Pool::allocate(std::uint64_t size_bytes, const StreamPointer& stream) {
  require(size_bytes != 0);
  require(size_bytes <= devices().capacity_bytes, CUDA_ERROR_OUT_OF_MEMORY);
  std::unique_lock lock(mutex_);
  std::vector<CompletionPointer> after;
  std::optional<std::uint64_t> address = take_piece(size_bytes);
  if (!address && !leaving_.empty()) {
    for (const auto& [begin, piece] : leaving_) {
      give_back(piece.range);
      after.push_back(piece.done);
    }
    leaving_.clear();
    address = take_piece(size_bytes);
  }
  if (!address) {
    lock.unlock();
    release_unused_pool_memory(device);
    lock.lock();
    address = take_piece(size_bytes);
  }
  require(address.has_value(), CUDA_ERROR_OUT_OF_MEMORY);
  account_.used_bytes += round_up(size_bytes, kPieceAlignment);
  account_.used_high_bytes = std::max(account_.used_high_bytes, account_.used_bytes);
  Allocation allocation{.range = ByteRange::of(*address, size_bytes), .kind = MemoryKind::kPool, .device = device};
  allocation.pool = handle;
  allocation.bytes = Memory::get().backing(*address);
  Memory::get().add(allocation);
  lock.unlock();
  if (!after.empty()) {
    const auto order = order_lock();
    stream->push({}, std::move(after));
  }
  return *address;
}

// The lock is held.
void Pool::give_back(ByteRange piece) {
  Memory::get().remove(piece.begin, {MemoryKind::kPool});
  const ByteRange rounded = ByteRange::of(piece.begin, round_up(piece.size(), kPieceAlignment));
  std::prev(segments_.upper_bound(piece.begin))->second.give_back(rounded);
  account_.used_bytes -= rounded.size();
}

void Pool::free_now(std::uint64_t address) {
  const std::lock_guard lock(mutex_);
  const std::optional<Allocation> allocation = Memory::get().find(address);
  require(allocation && allocation->range.begin == address && !allocation->free_asked);
  give_back(allocation->range);
}

void Pool::free_when(std::uint64_t address, const CompletionPointer& done) {
  const std::lock_guard lock(mutex_);
  const std::optional<Allocation> allocation = Memory::get().find(address);
  if (allocation) leaving_[address] = {allocation->range, done};
}

void Pool::settle(std::uint64_t address, const CompletionPointer& done) {
  const std::lock_guard lock(mutex_);
  const auto piece = leaving_.find(address);
  if (piece == leaving_.end() || piece->second.done != done) return;  // it was needed before
  give_back(piece->second.range);
  leaving_.erase(piece);
}

bool Pool::release_down_to(std::uint64_t keep_bytes) {
  const std::lock_guard lock(mutex_);
  const std::uint64_t before = account_.reserved_bytes;
  for (auto at = segments_.begin(); at != segments_.end() && account_.reserved_bytes > keep_bytes;) {
    if (!at->second.all_free()) {
      ++at;
      continue;
    }
    const ByteRange range = at->second.range();
    at = segments_.erase(at);
    Memory::get().give_back_addresses(range);
    Memory::get().discharge(device, range.size());
    account_.reserved_bytes -= range.size();
  }
  return account_.reserved_bytes < before;
}

Pool::Account Pool::account() const {
  const std::lock_guard lock(mutex_);
  return account_;
}

void Pool::reset_high(bool reserved) {
  const std::lock_guard lock(mutex_);
  if (reserved) {
    account_.reserved_high_bytes = account_.reserved_bytes;
  } else {
    account_.used_high_bytes = account_.used_bytes;
  }
}

}  // namespace faultline::vgpu
