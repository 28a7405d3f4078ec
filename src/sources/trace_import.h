// Takes events of one trace into another: strings, stacks, tensors, launches, copies, faults, violations, streams and heaps are renumbered on the way.
//
// Tables are taken over whole, once; streams and heaps as events name them. Allocations are the caller's to number: what is one memory in both
// traces must get one id.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "trace/trace.h"

namespace faultline {

class TraceImport {
 public:
  TraceImport(const Trace& from, Trace& into);

  // The event with the other trace's numbers in it, its allocation left as it was.
  Event renumbered(const Event& event);

  StringId string(StringId id) const { return strings_[id.index()]; }
  StackId stack(StackId id) const { return stacks_[id.index()]; }

  // From now on events of this heap happen in that one. A heap without a place of its own is added, with its `below` followed.
  void put_heap(HeapId from, HeapId into) { heaps_[from.index()] = into.value; }
  HeapId heap(HeapId id);

 private:
  StreamId stream(StreamId id);

  const Trace& from_;
  Trace& into_;
  std::vector<StringId> strings_;
  std::vector<StackId> stacks_;
  std::vector<TensorId> tensors_;
  std::vector<LaunchId> launches_;
  std::vector<CopyId> copies_;
  std::vector<FaultId> faults_;
  std::vector<ViolationId> violations_;
  std::vector<std::int64_t> streams_;                                            // -1: not yet named
  std::vector<std::int64_t> heaps_;                                              // likewise
  std::map<std::pair<std::uint16_t, std::uint64_t>, std::size_t> into_streams_;  // by device and handle
  std::size_t streams_seen_ = 0;
};

// Devices of both, the one's blanks filled by the other's knowledge.
void merge_devices(const Trace& from, Trace& into);

}  // namespace faultline
