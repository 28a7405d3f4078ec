// Writes a replay as a trace: the recording's events with the model's addresses and the model's driver calls in place of the recorded ones.
//
// Allocation ids are given anew, because the recorded segments are gone and others have come.
#pragma once

#include <cstdint>
#include <vector>

#include "models/torch/allocator.h"
#include "models/torch/noting_driver.h"
#include "models/torch/recording.h"

namespace faultline {

class TraceWriter : public NotingDriver {
 public:
  TraceWriter(const TorchRecording& recording, TorchDriver& below);

  void copy_preexisting(std::size_t count);
  void allocated(const Event& recorded, std::uint64_t address);
  void freed(const Event& recorded, FreePhase phase);
  void completed_early(AllocationId recorded);
  void failed(const Event& recorded);
  void served_and_dropped(const Event& recorded, std::uint64_t address);
  void other(const Event& recorded);
  Trace finish(const TorchAllocator& allocator, const TorchSettings& settings);

 private:
  void note(const Event& event) override { trace_.events.push_back(event); }
  AllocationId new_id() override { return AllocationId(++trace_.allocation_count); }
  void write_final_state(const TorchAllocator& allocator);
  HeapId heap_of(std::uint32_t arena) const;

  struct Known {
    AllocationId id;             // in the new trace; 0: not there
    std::uint64_t recorded = 0;  // addresses
    std::uint64_t replayed = 0;
    StackId stack;
    std::uint64_t size_bytes = 0;
  };
  const TorchRecording& recording_;
  Trace trace_;
  std::vector<Known> known_;  // by recorded id
};

}  // namespace faultline
