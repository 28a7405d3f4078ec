// A device with TensorFlow's or JAX's allocator on it: one BFC pool, made as the framework makes it on a GPU of that size. Every change is an event.
//
//   heap 0  driver    the regions that the pool takes
//   heap 1  bfc       GPU_0_bfc, as docs/bfc.md describes it
//
// With overcommit a request that would fail gets a region of just its size beyond the limit, so that the rest of the program can be seen. How large a GPU would have been enough is for a
// replay to tell.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "dryrun/recorder.h"
#include "models/bfc/pool.h"
#include "models/torch/final_state.h"
#include "models/torch/segment_addresses.h"

namespace faultline {

struct BfcDeviceSpec {
  std::string name;
  std::uint64_t capacity_bytes = 0, context_bytes = 0;
  Framework framework = Framework::kJax;
  BfcSettings settings;
  // Of the device's memory, what the pool may take; 1 where its limit is counted otherwise.
  double share = 1;
  bool own_limit = false;  // the limit is the program's own number, whatever the device has
};
// `changes` are settings by their names, as the program's environment or the program itself has them: "XLA_CLIENT_MEM_FRACTION=0.5".
Result<BfcDeviceSpec> bfc_device_spec(std::string name, std::uint64_t capacity_bytes, std::uint64_t context_bytes,
                                      std::string_view framework, int compute_major, std::string_view changes);

class BfcDevice final : private BfcDriver {
 public:
  BfcDevice(const BfcDeviceSpec& spec, Recorder& recorder);

  struct Placed {
    AllocationId allocation;
    std::uint64_t address = 0;
  };
  std::optional<Placed> alloc(std::uint64_t size_bytes, StackId stack, TensorId tensor);
  // From the driver, beside the pool: what a compiled program brings with it. free() gives it back.
  std::optional<AllocationId> take_outside(std::uint64_t size_bytes, StackId stack, TensorId tensor);
  void free(AllocationId allocation, StackId stack);
  void set_overcommit(bool on) { overcommit_ = on; }
  void reset_peaks() { peak_requested_bytes_ = pool_.requested_bytes(), peak_in_use_bytes_ = pool_.in_use_bytes(); }

  const BfcPool& pool() const { return pool_; }
  bool made(AllocationId id) const { return id.value != 0 && id.value <= last_allocation_; }
  std::uint64_t peak_requested_bytes() const { return peak_requested_bytes_; }
  std::uint64_t peak_in_use_bytes() const { return peak_in_use_bytes_; }
  std::uint64_t live_allocations() const { return live_.size(); }
  std::uint64_t allocations() const { return allocations_; }
  std::uint64_t out_of_memories() const { return out_of_memories_; }
  std::uint64_t free_bytes() const;  // of the device
  TorchFinalState state() const;

 private:
  static constexpr HeapId kDriverHeap{0}, kPoolHeap{1}, kOutsideHeap{2};

  std::optional<ByteRange> take(std::uint64_t size_bytes) override;
  void give_back(ByteRange region) override;
  Event region_event(EventKind kind, ByteRange region) const;
  void refused(const Event& request);

  struct Live {
    BfcChunkIndex chunk = kNoChunk;
    std::uint64_t size_bytes = 0;
    StackId stack;
  };

  Recorder& recorder_;
  BfcDeviceSpec spec_;
  BfcPool pool_;
  SegmentAddresses addresses_;
  std::uint64_t budget_bytes_;  // of the driver
  std::unordered_map<std::uint64_t, AllocationId> regions_;
  std::unordered_map<std::uint32_t, Live> live_;
  Event cause_;
  std::uint32_t last_allocation_ = 0;
  std::uint64_t allocations_ = 0, out_of_memories_ = 0, overcommitted_ = 0;
  std::uint64_t peak_requested_bytes_ = 0, peak_in_use_bytes_ = 0;
  std::unordered_map<std::uint32_t, ByteRange> outside_;
  std::uint64_t outside_bytes_ = 0;
  bool overcommit_ = false, told_ = false, has_outside_heap_ = false;
};

}  // namespace faultline
