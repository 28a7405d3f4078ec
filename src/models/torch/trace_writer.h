// Writes a replay as a trace: the recording's events with the model's addresses and the model's driver calls in place of the recorded ones.
#pragma once

#include <cstdint>

#include "models/replayed_trace.h"
#include "models/torch/allocator.h"
#include "models/torch/noting_driver.h"
#include "models/torch/recording.h"

namespace faultline {

class TraceWriter : public NotingDriver {
 public:
  TraceWriter(const TorchRecording& recording, TorchDriver& below);

  void copy_preexisting(std::size_t count);
  void allocated(const Event& recorded, std::uint64_t address) { replayed_.allocated(recorded, address); }
  void freed(const Event& recorded, FreePhase phase) { replayed_.freed(recorded, phase); }
  void completed_early(AllocationId recorded);
  void failed(const Event& recorded) { replayed_.failed(recorded); }
  void served_and_dropped(const Event& recorded, std::uint64_t address) {
    replayed_.served_and_dropped(recorded, address);
  }
  void other(const Event& recorded);
  Trace finish(const TorchAllocator& allocator, const TorchSettings& settings);

 private:
  void note(const Event& event) override { replayed_.append(event); }
  AllocationId new_id() override { return replayed_.new_id(); }
  void write_final_state(const TorchAllocator& allocator);
  HeapId heap_of(std::uint32_t arena) const;

  const TorchRecording& recording_;
  ReplayedTrace replayed_;
};

}  // namespace faultline
