// A device of a given size with PyTorch's allocator on it, and the host memory a program pins: every change is an event.
//
//   heap 0  driver    segments and mappings, as the allocator of the first device takes them
//   heap 1  torch     its default pool; private pools, and the two heaps of each further device, follow from heap 3 on
//   heap 2  pinned    page-locked host memory, of no device
//
// The allocator's budget is the device less the context. With overcommit the budget, or the program's own limit, grows by
// what is missing once PyTorch's own attempts have failed; budget_.budget_bytes() is then the least that was enough.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "dryrun/recorder.h"
#include "models/torch/allocator.h"
#include "models/torch/final_state.h"
#include "models/torch/noting_driver.h"
#include "models/torch/settings.h"

namespace faultline {

struct DeviceSpec {
  std::string name;
  std::uint64_t capacity_bytes = 0;  // 0: without end
  std::uint64_t context_bytes = 0;
  TorchSettings settings;
  TorchVersion version;
  std::string alloc_conf;  // as written
};
// Checks what the program was started with; the error says which part of it does not hold.
Result<DeviceSpec> device_spec(std::string name, std::uint64_t capacity_bytes, std::uint64_t context_bytes,
                               std::string alloc_conf, std::string_view torch_version);

struct DeviceStats {
  std::uint64_t requested_bytes = 0, peak_requested_bytes = 0;
  std::uint64_t current_allocations = 0, allocations = 0;
  std::uint64_t out_of_memories = 0;
};

// The numbers that are dense over all devices of a dry run.
struct DryRunTables {
  std::vector<Heap> heaps;
  std::vector<Stream> streams;
  std::uint32_t last_allocation = 0;
};

class DryRunDevice final : private NotingDriver {
 public:
  static constexpr HeapId kFirstTorchHeap{1};
  static constexpr HeapId kPinnedHeap{2};

  DryRunDevice(const DeviceSpec& spec, std::uint16_t index, Recorder& recorder, DryRunTables& tables);

  void know_streams();  // all in the tables, in their order
  HeapId pool(std::uint64_t major, std::uint64_t minor);
  void release_pool(std::uint64_t major, std::uint64_t minor, std::optional<StackId> empty_now);

  struct Placed {
    AllocationId allocation;
    std::uint64_t address = 0;
  };
  std::optional<Placed> alloc(std::uint64_t size_bytes, StreamId stream, HeapId heap, StackId stack, TensorId tensor);
  bool free(AllocationId allocation, StackId stack);  // is it one of this device?
  void empty_cache(StackId stack);
  void set_limit(std::uint64_t limit_bytes);  // 0: none
  void set_overcommit(bool on);

  bool take_outside(std::uint64_t size_bytes, StackId stack);  // beside PyTorch's allocator, for good

  AllocationId pin(std::uint64_t size_bytes, StackId stack, TensorId tensor);
  void unpin(AllocationId allocation, StackId stack);

  const TorchAllocator& allocator() const { return allocator_; }
  const DeviceStats& stats() const { return stats_; }
  void reset_peaks();
  std::uint64_t free_bytes() const;  // as cudaMemGetInfo would say; kUnlimitedBytes of an endless device
  const Heap& heap(HeapId id) const { return tables_.heaps[id.index()]; }
  std::uint64_t stream_handle(StreamId id) const { return tables_.streams[id.index()].handle; }
  TorchFinalState state() const;

 private:
  struct Live {
    std::uint64_t address = 0;
    std::uint64_t size_bytes = 0;
    BlockIndex block = kNoIndex;
    StackId stack;
    StreamId stream;
    HeapId heap;
  };

  void note(const Event& event) override { recorder_.append(event); }
  AllocationId new_id() override { return AllocationId(++tables_.last_allocation); }

  bool is_own(HeapId heap) const { return heap == torch_heap_ || arenas_.contains(heap.index()); }
  HeapId next_heap() const { return HeapId(static_cast<std::uint16_t>(tables_.heaps.size())); }
  HeapId add_heap(const Heap& heap);
  StreamId own_stream(StreamId stream) const;
  void define_device();
  AllocationId remember(Event& event, Live live);
  Event freeing(const Live& live, AllocationId id, StackId stack) const;
  void refused(const Event& request, std::uint64_t rounded_bytes);
  BlockIndex serve_beyond(const Event& request, ListIndex list, std::uint64_t rounded_bytes);

  Recorder& recorder_;
  DryRunTables& tables_;
  std::uint16_t index_;
  DeviceSpec spec_;
  BudgetDriver budget_;
  std::uint64_t full_budget_bytes_;  // without overcommit
  TorchAllocator allocator_;
  HeapId driver_heap_, torch_heap_;
  std::unordered_map<std::size_t, std::uint32_t> arenas_;  // by private heap
  std::vector<HeapId> heap_of_arena_;
  std::map<std::pair<std::uint64_t, std::uint64_t>, HeapId> pools_;
  std::vector<std::uint32_t> released_;  // arenas of pools that nobody holds
  std::size_t streams_known_ = 0;
  StreamId default_stream_;
  std::unordered_map<std::uint32_t, Live> live_;
  std::optional<std::uint64_t> own_limit_bytes_;    // the program's
  std::optional<std::uint64_t> grown_limit_bytes_;  // with overcommit, once it was too low
  bool overcommit_ = false;
  bool told_ = false;  // the first failure of an overcommitted device is in the trace
  std::uint64_t outside_bytes_ = 0;
  DeviceStats stats_;
};

}  // namespace faultline
