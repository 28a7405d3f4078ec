// Writes a replay as a trace: the recording's events with the model's addresses and the model's driver calls in place of the recorded ones.
//
// It stands between the model and its driver and notes what the driver is asked. Allocation ids are given anew, because the recorded segments
// are gone and others have come.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "models/torch/allocator.h"
#include "models/torch/recording.h"

namespace faultline {

class TraceWriter : public TorchDriver {
 public:
  TraceWriter(const TorchRecording& recording, TorchDriver& below);

  // The recorded event whose time, stack and thread the next driver calls get.
  void begin(const Event& cause) { cause_ = cause; }
  void copy_preexisting(std::size_t count);
  void allocated(const Event& recorded, std::uint64_t address);
  void freed(const Event& recorded, FreePhase phase);
  void completed_early(AllocationId recorded);
  void failed(const Event& recorded);
  void served_and_dropped(const Event& recorded, std::uint64_t address);
  void other(const Event& recorded);
  Trace finish(const TorchAllocator& allocator, const TorchSettings& settings);

  std::optional<ByteRange> take(std::uint64_t size_bytes, const SegmentOwner& owner) override;
  void give_back(ByteRange segment, const SegmentOwner& owner) override;
  std::optional<ByteRange> reserve(std::uint64_t handle_bytes, const SegmentOwner& owner) override { return below_.reserve(handle_bytes, owner); }
  bool map(ByteRange range, const SegmentOwner& owner) override;
  void unmap(ByteRange range, const SegmentOwner& owner) override;

 private:
  Event driver_event(EventKind kind, ByteRange range, const SegmentOwner& owner) const;
  AllocationId new_id() { return AllocationId(++trace_.allocation_count); }
  void write_final_state(const TorchAllocator& allocator);
  HeapId heap_of(std::uint32_t arena) const;

  struct Known {
    AllocationId id;               // in the new trace; 0: not there
    std::uint64_t recorded = 0;    // addresses
    std::uint64_t replayed = 0;
    StackId stack;
    std::uint64_t size_bytes = 0;
  };
  const TorchRecording& recording_;
  TorchDriver& below_;
  Event cause_;
  Trace trace_;
  std::vector<Known> known_;                                     // by recorded id
  std::unordered_map<std::uint64_t, AllocationId> segment_ids_;  // plain segments by address
};

}  // namespace faultline
