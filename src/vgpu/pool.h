// Stream-ordered memory: pools that take segments of device memory and hand out pieces.
//
// An allocation is there when the call returns. A free takes effect when its stream gets there; if memory is short before that, the pool hands the
// memory out at once and the asking stream waits for the freeing one, so a program that runs ahead of its streams sees no shortage that a real
// device would not have. Segments without pieces go back to the device at the next synchronisation, down to the release threshold, or when
// somebody else's allocation would fail.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "vgpu/memory.h"
#include "vgpu/stream.h"

namespace faultline::vgpu {

class Pool {
 public:
  Pool(CUdevice device, std::uint64_t largest_bytes);
  ~Pool();

  // takes the order lock where it must make the stream wait
  std::uint64_t allocate(std::uint64_t size_bytes, const StreamPointer& stream);
  // Gives a piece back now.
  void free_now(std::uint64_t address);
  // Gives a piece back when `done`, unless it was needed before; settle() is what the stream then calls.
  void free_when(std::uint64_t address, const CompletionPointer& done);
  void settle(std::uint64_t address, const CompletionPointer& done);
  bool release_down_to(std::uint64_t keep_bytes);  // true: something went back to the device

  const CUdevice device;
  CUmemoryPool handle = nullptr;

  struct Account {
    std::uint64_t reserved_bytes = 0, reserved_high_bytes = 0, used_bytes = 0, used_high_bytes = 0;
  };
  Account account() const;
  void reset_high(bool reserved);

  std::atomic<std::uint64_t> release_threshold_bytes{0};
  std::atomic<int> reuse_follow_events{1}, reuse_opportunistic{1}, reuse_internal{1};

 private:
  struct LeavingPiece {
    ByteRange range;
    CompletionPointer done;
  };
  std::optional<std::uint64_t> take_piece(std::uint64_t size_bytes);
  bool add_segment(std::uint64_t size_bytes);
  void give_back(ByteRange piece);

  mutable std::mutex mutex_;
  std::map<std::uint64_t, RangeAllocator> segments_;
  std::map<std::uint64_t, LeavingPiece> leaving_;  // asked to be freed, by address
  Account account_;
  const std::uint64_t largest_bytes_;  // 0: the device's capacity
};
using PoolPointer = std::shared_ptr<Pool>;

PoolPointer default_pool(CUdevice device);
PoolPointer current_pool(CUdevice device);  // what cuMemAllocAsync takes from
void set_current_pool(CUdevice device, const PoolPointer& pool);
PoolPointer require_pool(CUmemoryPool handle);
CUmemoryPool create_pool(CUdevice device, std::uint64_t largest_bytes);
void destroy_pool(CUmemoryPool handle);

std::uint64_t allocate_async(Pool& pool, std::uint64_t size_bytes, const StreamPointer& stream);
void free_async(std::uint64_t address, const StreamPointer& stream);
void free_pool_memory(std::uint64_t address);  // at once

bool release_unused_pool_memory(CUdevice device);
void release_pool_memory_over_threshold(CUdevice device);

}  // namespace faultline::vgpu
