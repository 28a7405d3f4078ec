// Writes a replay of BFC pools as a trace: the recording's events with the model's addresses, and the model's regions in place of the recorded ones.
#pragma once

#include <cstdint>
#include <vector>

#include "base/hash.h"
#include "models/bfc/recording.h"

namespace faultline {

class BfcReplayTrace {
 public:
  explicit BfcReplayTrace(const BfcRecording& recording);

  void copy_preexisting(std::size_t count);
  void begin(const Event& cause) { cause_ = cause; }  // whose time, stack and thread the next regions get
  void region_taken(std::uint32_t pool, ByteRange region);
  void region_returned(std::uint32_t pool, ByteRange region);
  void allocated(const Event& recorded, std::uint64_t address);
  void freed(const Event& recorded);
  void failed(const Event& recorded);
  void served_and_dropped(const Event& recorded, std::uint64_t address);
  void other(const Event& recorded);
  // The end state, and the settings that led to it.
  Trace finish(const std::vector<BfcPool>& pools);

 private:
  struct Known {
    AllocationId id;  // in the new trace; 0: not there
    std::uint64_t recorded = 0, replayed = 0;
  };
  AllocationId new_id() { return AllocationId(++trace_.allocation_count); }
  Known* known(AllocationId recorded) { return recording_.valid(recorded) ? &known_[recorded.index()] : nullptr; }
  Event region_event(EventKind kind, std::uint32_t pool, ByteRange region) const;

  const BfcRecording& recording_;
  Trace trace_;
  Event cause_;
  std::vector<Known> known_;                         // by recorded id
  HashMap<std::uint64_t, AllocationId> region_ids_;  // by address
};

}  // namespace faultline
