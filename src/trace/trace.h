// The trace: the one model of what happened to GPU memory. Every source writes it, everything after reads it.
//
// Invariants (check_trace in trace/validate.h tests them; every source must hold them):
//  - events are in order of happening; times never decrease by more than the source's own clock does (order is by position, not time);
//  - allocation ids are dense from 1; each has exactly one Alloc or HostPin event; a Free names an id whose Alloc stands before it, or 0
//    when the source saw the free of something it never saw allocated (counted);
//  - events that existed before the recording began come first, flagged kPreexisting;
//  - every id in an event is valid in its table.
// What the source could not understand or lost is a named counter, never silence.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "trace/calls.h"
#include "trace/event.h"
#include "trace/tables.h"

namespace faultline {

enum class HeapKind : std::uint8_t {
  kDriver,
  kTorchCaching,
  kTorchPinnedHost,
  kBfc,
  kStreamOrderedPool,
  kOther,
  kManaged,         // moves between host and device: takes device memory as it is used
  kImported,        // another process's memory, opened here
  kPinnedHost,      // the driver's page-locked host memory
  kRegisteredHost,  // the program's own host memory, page-locked by the driver
};
inline constexpr int kHeapKindCount = 10;
std::string_view name_of(HeapKind kind);

// A place that allocations come from. Its segments are allocations of the heap below.
struct Heap {
  HeapKind kind = HeapKind::kOther;
  std::uint16_t device = 0;
  HeapId below;                  // itself for the lowest
  std::uint64_t pool_major = 0;  // a private pool's id; (0, 0) is the default pool
  std::uint64_t pool_minor = 0;
  std::string name;  // "torch", "driver", "torch private pool (0, 1)"
  bool is_private() const { return pool_major != 0 || pool_minor != 0; }
  friend bool operator==(const Heap&, const Heap&) = default;
};

struct Stream {
  std::uint16_t device = 0;
  std::uint64_t handle = 0;       // as the program knows it; 0 is the default stream
  bool waits_for_default = true;  // false: made so that it does not wait for the default stream, nor that for it
  friend bool operator==(const Stream&, const Stream&) = default;
};

struct Device {
  std::uint16_t index = 0;
  std::string name;                  // empty: unknown
  std::uint64_t capacity_bytes = 0;  // 0: unknown
  std::uint64_t allowed_bytes = 0;   // the program's own limit; 0: none known
  friend bool operator==(const Device&, const Device&) = default;
};

// What a source can tell. A rule names what it needs; what is missing becomes "not judged".
enum Capability : std::uint32_t {
  kAddresses = 1,
  kStacks = 2,
  kStreams = 4,
  kAccesses = 8,
  kTensors = 16,
  kCompleteFromStart = 32,
  kEvents = 64,
  kTimes = 128,
  kSteps = 256,
};
std::string describe_capabilities(std::uint32_t set);  // "addresses, stacks"

// The property of a trace whose addresses are a model's own, not an allocator's.
inline constexpr std::string_view kPlacedBy = "placements.by";

// A block as the recording's own end state shows it: the check on whatever we rebuild.
struct FinalBlock {
  std::uint64_t address = 0;
  std::uint64_t size_bytes = 0;  // what the heap set aside
  std::uint64_t requested_bytes = 0;
  StackId stack;
  enum class State : std::uint8_t { kFree, kActive, kPendingFree } state = State::kFree;
  friend bool operator==(const FinalBlock&, const FinalBlock&) = default;
};
struct FinalSegment {
  std::uint64_t address = 0;
  std::uint64_t size_bytes = 0;
  std::uint16_t device = 0;
  HeapId heap;
  StreamId stream;
  StackId stack;
  bool is_small = false;
  bool is_expandable = false;
  std::uint32_t first_block = 0;  // into Trace::final_blocks
  std::uint32_t block_count = 0;
  friend bool operator==(const FinalSegment&, const FinalSegment&) = default;
};

struct Trace {
  std::vector<Event> events;
  StringTable strings;
  StackTable stacks;
  TensorTable tensors;
  LaunchTable launches;
  CopyTable copies;
  FaultTable faults;
  ViolationTable violations;
  std::vector<Heap> heaps;
  std::vector<Stream> streams;  // [0] is the default stream
  std::vector<Device> devices;
  std::uint32_t allocation_count = 0;   // ids run 1..allocation_count
  std::uint32_t preexisting_count = 0;  // the first so many events existed before the recording began
  std::uint32_t capabilities = 0;

  std::vector<FinalSegment> final_segments;  // empty when the source has no end state
  std::vector<FinalBlock> final_blocks;

  std::string source_kind;  // "torch-snapshot"
  std::string source_path;
  std::uint64_t source_events = 0;  // entries in the input itself
  // "torch.alloc_conf" → "expandable_segments:True"; keys are the source's
  std::map<std::string, std::string> properties;
  std::map<std::string, std::uint64_t> lost;  // named counters of what was odd, unknown or missing

  // Entries of the input itself, where it says how many; else the events that are not rebuilt.
  std::uint64_t source_event_count() const {
    return source_events != 0 ? source_events : events.size() - preexisting_count;
  }
  bool can(std::uint32_t needed) const { return (capabilities & needed) == needed; }
  void count(std::string_view what, std::uint64_t times = 1) {
    if (times != 0) lost[std::string(what)] += times;
  }
};

// Calls visit(table) for each table of calls.h.
template <class AnyTrace, class Visit>
void each_call_table(AnyTrace& trace, Visit visit) {
  visit(trace.launches);
  visit(trace.copies);
  visit(trace.faults);
  visit(trace.violations);
}

}  // namespace faultline
