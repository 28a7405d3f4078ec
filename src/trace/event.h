// One thing that happened to GPU memory.
//
// An event is 48 bytes, whatever it is: names, stacks, streams and tensors are ids into the trace's tables. What the common fields mean
// depends on the kind; the table below is the whole contract. A field that a kind does not use is zero.
//
//   kind          address          size_bytes        allocation    extra                    phase/flags
//   Alloc         start or 0       bytes requested   the new id    tensor (0: none)         kPreexisting: alive before recording began
//   Free          start or 0       as its Alloc      the id        context_end.h            phase: requested, completed, or both at once;
//                                                                                           kFailed: refused, address is the pointer that was given
//   AllocFailed   device free      bytes requested   -             -                        kHasDeviceFree when address is meaningful
//   Map, Unmap    start            bytes             -             -                        physical memory put behind / taken from addresses
//   HostPin …     host start       bytes             the id        context_end.h (HostUnpin)
//   Copy          destination      bytes             destination   copy table (calls.h)     kCaptured; kFailed: refused
//   Set           start            bytes             target        -                        kCaptured; kFailed: refused
//   Launch        -                -                 -             launch table (calls.h)   kCaptured; kFailed: refused
//   Record        -                -                 -             event number             the stream's work so far is what the event stands for
//   Wait          -                -                 -             event number             the stream goes on after what the event stands for
//   Sync          -                -                 -             SyncTarget               the host waited: for the stream, the event (in size_bytes),
//                                                                                           or all of the device
//   OpBegin/End   graph number     -                 -             string: the name         kFailed: see there. A stream's capture into a graph is an Op
//                                                                                           "capture"; its OpEnd has the graph's number as address
//   TensorNote    -                -                 the id or 0   tensor                   stack: where the tensor was made, or, behind an Alloc
//                                                                                           of backward, the forward line it belongs to
//   StepMark      -                step number       -             string: the name
//   Violation     address          bytes             nearest       violation table
//   Fault         address          access bytes      nearest       fault table (calls.h)    kAddressKnown: the address was rebuilt
//   Estimate      at least, bytes  at most, bytes    the id or 0   string: what is          the size of that request is not known, only its bounds; 0: a
//                                                                  estimated                request that was not made, and may be, to be returned at once
//
// A call that failed is its event flagged kFailed, where there is one, and then an OpEnd flagged kFailed whose extra is "function: error". A free of a
// pointer that the heap never handed out names no allocation.
//
// Heaps stack: a torch block is an Alloc in a torch heap; its segment is an Alloc (or Maps) in the heap below, the driver's.
// size_bytes of an Alloc is what the program asked for; what the heap set aside for it is the heap's model's to say.
#pragma once

#include <cstdint>
#include <limits>
#include <string_view>

#include "base/ids.h"

namespace faultline {

using AllocationId = Id<struct AllocationTag>;  // 0 is none; ids are dense and start at 1
using StackId = Id<struct StackTag>;            // 0 is the empty stack
using FrameId = Id<struct FrameTag>;
using StringId = Id<struct StringTag>;  // 0 is the empty string
using StreamId = Id<struct StreamTag>;  // index into Trace::streams; 0 is the default stream
using TensorId = Id<struct TensorTag>;  // 0 is none
using HeapId = Id<struct HeapTag, std::uint16_t>;
using ThreadId = Id<struct ThreadTag, std::uint16_t>;

enum class EventKind : std::uint8_t {
  kAlloc,
  kFree,
  kAllocFailed,
  kMap,
  kUnmap,
  kHostPin,
  kHostUnpin,
  kCopy,
  kSet,
  kLaunch,
  kRecord,
  kWait,
  kSync,
  kOpBegin,
  kOpEnd,
  kTensorNote,
  kStepMark,
  kViolation,
  kFault,
  kEstimate,
};
inline constexpr int kEventKindCount = 20;
std::string_view name_of(EventKind kind);

// A Free in two halves: the program lets go (requested); the heap may hand the bytes out again (completed). They differ where other
// streams still use the memory. A source that cannot tell them apart says kBoth.
enum class FreePhase : std::uint8_t { kBoth, kRequested, kCompleted };

enum EventFlag : std::uint8_t {
  kPreexisting = 1,    // existed before the recording began; its time is the recording's first
  kHasDeviceFree = 2,  // AllocFailed: address holds the device's free bytes at that moment
  kAddressKnown = 4,   // address holds an address (0 is then a real value)
  // a call: it was refused; OpEnd: the operation raised; extra is the error's own words, and the TensorNotes since its
  // OpBegin are its operands
  kFailed = 8,
  kCaptured = 16,  // put into a graph by stream capture: it runs when the graph is launched, not now
};

// Sync: what the host waited for. A query that found the work done counts as a wait.
enum class SyncTarget : std::uint8_t { kStream, kEvent, kDevice };

struct Event {
  std::int64_t time_ns = 0;
  std::uint64_t address = 0;
  std::uint64_t size_bytes = 0;
  AllocationId allocation;
  StackId stack;
  StreamId stream;
  std::uint32_t extra = 0;
  std::uint16_t device = 0;
  HeapId heap;
  ThreadId thread;
  EventKind kind = EventKind::kAlloc;
  std::uint8_t bits = 0;  // low two bits: FreePhase; the rest: EventFlag << 2

  FreePhase phase() const { return static_cast<FreePhase>(bits & 3); }
  void set_phase(FreePhase p) { bits = static_cast<std::uint8_t>((bits & ~3) | static_cast<std::uint8_t>(p)); }
  bool has(EventFlag flag) const { return (bits >> 2) & flag; }
  void set(EventFlag flag) { bits = static_cast<std::uint8_t>(bits | (flag << 2)); }

  // A Free that was refused does neither.
  bool ends_use() const { return kind == EventKind::kFree && phase() != FreePhase::kCompleted && !has(kFailed); }
  bool returns_to_heap() const { return kind == EventKind::kFree && phase() != FreePhase::kRequested && !has(kFailed); }
  friend bool operator==(const Event&, const Event&) = default;
};
static_assert(sizeof(Event) == 48);

}  // namespace faultline
