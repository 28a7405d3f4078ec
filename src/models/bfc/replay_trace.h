// Writes a replay of BFC pools as a trace: the recording's events with the model's addresses, and the model's regions in place of the recorded ones.
#pragma once

#include <cstdint>
#include <vector>

#include "base/hash.h"
#include "models/bfc/recording.h"
#include "models/replayed_trace.h"

namespace faultline {

class BfcReplayTrace : public ReplayedTrace {
 public:
  explicit BfcReplayTrace(const BfcRecording& recording);

  void copy_preexisting(std::size_t count);
  void begin(const Event& cause) { cause_ = cause; }  // whose time, stack and thread the next regions get
  void region_taken(std::uint32_t pool, ByteRange region);
  void region_returned(std::uint32_t pool, ByteRange region);
  void other(const Event& recorded);
  // The end state, and the settings that led to it.
  Trace finish(const std::vector<BfcPool>& pools);

 private:
  Event region_event(EventKind kind, std::uint32_t pool, ByteRange region) const;

  const BfcRecording& recording_;
  Event cause_;
  HashMap<std::uint64_t, AllocationId> region_ids_;  // by address
};

}  // namespace faultline
