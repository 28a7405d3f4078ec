// What launches, copies, faults and violations say beyond an event's own fields: interned values, named by Event::extra. Id 0 is the empty one.
//
// Training repeats itself: the same kernel with the same grid on the same addresses in every step. Interned, such a launch costs its event alone.
#pragma once

#include <array>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "trace/event.h"
#include "trace/tables.h"

namespace faultline {

using LaunchId = Id<struct LaunchTag>;
using CopyId = Id<struct CopyTag>;
using FaultId = Id<struct FaultTag>;
using ViolationId = Id<struct ViolationTag>;
using Extent3 = std::array<std::uint32_t, 3>;  // x, y, z

// A pointer that a kernel was given: the word at this place in its parameters pointed into memory the source knew of.
struct LaunchArgument {
  std::uint32_t offset_bytes = 0;
  std::uint64_t address = 0;
  friend bool operator==(const LaunchArgument&, const LaunchArgument&) = default;
};

struct Launch {
  StringId kernel;  // as the driver names it (mangled)
  Extent3 grid = {};
  Extent3 block = {};
  std::uint32_t shared_bytes = 0;         // dynamic
  std::uint32_t graph = 0;                // not 0: no kernel but the graph of this number was launched
  std::vector<LaunchArgument> arguments;  // by offset
  friend bool operator==(const Launch&, const Launch&) = default;
};

// Whose memory an end of a copy is, as far as the call itself says it.
enum class MemorySide : std::uint8_t { kUnified, kHost, kDevice, kArray };  // kUnified: the driver tells by the address

// The event has the destination, the stream and the bytes of the whole copy; a copy of several rows has height or depth over 1.
struct Copy {
  std::uint64_t source = 0;
  MemorySide source_side = MemorySide::kUnified;
  MemorySide destination_side = MemorySide::kUnified;
  bool asynchronous = false;        // the call may return before the bytes have moved
  std::uint16_t source_device = 0;  // the event's device is the destination's
  std::uint64_t width_bytes = 0;    // of a row; 0: one row, the event's size
  std::uint32_t height = 1;
  std::uint32_t depth = 1;
  std::uint64_t source_pitch_bytes = 0;
  std::uint64_t destination_pitch_bytes = 0;
  friend bool operator==(const Copy&, const Copy&) = default;
};

// Which thread of which launch did something, and where in the kernel's code.
struct KernelPlace {
  StringId kernel;
  StringId file;  // of the kernel's source line, where the line table leads there
  std::uint32_t line = 0;
  StringId function;  // the device function, where it is not the kernel itself
  std::uint64_t pc = 0;
  std::uint64_t pc_offset = 0;  // from the start of the function that holds it
  Extent3 grid = {};
  Extent3 block = {};
  Extent3 block_index = {};
  Extent3 thread_index = {};
  bool has_thread = false;  // block_index and thread_index are meaningful
  friend bool operator==(const KernelPlace&, const KernelPlace&) = default;
};

// What the hardware or the driver reported. Of one fault there may be two events: the driver's error as the program met it, and what a core dump
// says of the kernel; the second has a kernel.
struct Fault : KernelPlace {
  StringId what;            // "Warp Illegal Address", "CUDA_ERROR_ILLEGAL_ADDRESS"
  StringId reported_by;     // the driver function that returned it; empty: a core dump
  std::uint32_t code = 0;   // CUresult, or the exception's number in the core dump
  StringId instruction;     // "LDG.E R0, [R22.64]"; empty: not decoded
  std::uint32_t lanes = 0;  // threads of the warp that were executing it; 0: unknown
  bool is_store = false;
  // of each lane that was executing it, where they could be rebuilt; the event has the first that is bad
  std::vector<std::uint64_t> addresses;
  std::vector<LaunchArgument> parameters;  // the kernel's 8-byte words as the device had them
  friend bool operator==(const Fault&, const Fault&) = default;
};

enum class ViolationKind : std::uint8_t { kOther, kOutOfBounds, kUseAfterFree, kUninitialized, kMisaligned };
enum class AccessKind : std::uint8_t { kRead, kWrite, kAtomic };

// An access that was caught: what is wrong with it, and who made it. The event has its address, its size and the allocation that it belongs to, or that is nearest.
struct Violation : KernelPlace {
  ViolationKind kind = ViolationKind::kOther;
  AccessKind access = AccessKind::kRead;
  friend bool operator==(const Violation&, const Violation&) = default;
};

// Of which kind the events are that name a call, and the word for it.
template <class Call>
struct CallKind;
template <>
struct CallKind<Launch> {
  static constexpr EventKind kEvent = EventKind::kLaunch;
  static constexpr const char* kWord = "launch";
};
template <>
struct CallKind<Copy> {
  static constexpr EventKind kEvent = EventKind::kCopy;
  static constexpr const char* kWord = "copy";
};
template <>
struct CallKind<Fault> {
  static constexpr EventKind kEvent = EventKind::kFault;
  static constexpr const char* kWord = "fault";
};
template <>
struct CallKind<Violation> {
  static constexpr EventKind kEvent = EventKind::kViolation;
  static constexpr const char* kWord = "violation";
};

// The names in a call, in the order in which files and texts have them.
template <class Call>
auto strings_of(Call& call) {
  using Value = std::remove_const_t<Call>;
  if constexpr (std::is_same_v<Value, Launch>)
    return std::array{&call.kernel};
  else if constexpr (std::is_same_v<Value, Copy>)
    return std::array<StringId*, 0>{};
  else if constexpr (std::is_same_v<Value, Violation>)
    return std::array{&call.kernel, &call.file, &call.function};
  else
    return std::array{&call.what, &call.reported_by, &call.kernel, &call.file, &call.function, &call.instruction};
}

// Of every field: a hash that leaves one out puts all values that differ in it alone on one place.
std::uint64_t hash_of(const Launch& launch);
std::uint64_t hash_of(const Copy& copy);
std::uint64_t hash_of(const Fault& fault);
std::uint64_t hash_of(const Violation& violation);

using LaunchTable = InternedTable<Launch, LaunchId>;
using CopyTable = InternedTable<Copy, CopyId>;
using FaultTable = InternedTable<Fault, FaultId>;
using ViolationTable = InternedTable<Violation, ViolationId>;

}  // namespace faultline
