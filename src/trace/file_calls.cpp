#include "trace/file_calls.h"

#include <algorithm>

namespace faultline {
namespace {

constexpr unsigned kBlockBits = 9;
constexpr std::uint64_t kBlockMask = (1u << kBlockBits) - 1;

// What a launch says beyond its kernel and the first extents; what it does not say is 1 (an extent) or 0.
enum LaunchField : std::uint32_t { kGridRest = 1, kBlockRest = 2, kShared = 4, kGraph = 8 };
// The low four bits are the two sides.
enum CopyField : std::uint32_t { kAsynchronous = 16, kSourceDevice = 32, kRows = 64 };
enum FaultField : std::uint32_t { kHasThread = 1, kIsStore = 2 };  // a violation has the first, and its kind of access above it

void put_extent(Payload& payload, const Extent3& extent) { payload.number(extent[0]).number(extent[1]).number(extent[2]); }

Extent3 take_extent(PayloadFields& fields) {
  Extent3 extent;
  for (std::uint32_t& part : extent) part = fields.as<std::uint32_t>();
  return extent;
}

template <class Call>
void put_strings(Payload& payload, const Call& call) {
  for (const StringId* const id : strings_of(call)) payload.number(id->value);
}
template <class Call>
void take_strings(PayloadFields& fields, Call& call) {
  for (StringId* const id : strings_of(call)) *id = StringId(fields.id());
}

// What of a place are no names.
void put_place(Payload& payload, const KernelPlace& place) {
  payload.number(place.line).number(place.pc).number(place.pc_offset);
  for (const Extent3& extent : {place.grid, place.block, place.block_index, place.thread_index}) put_extent(payload, extent);
}
void take_place(PayloadFields& fields, KernelPlace& place) {
  place.line = fields.as<std::uint32_t>();
  place.pc = fields.number();
  place.pc_offset = fields.number();
  for (Extent3* const extent : {&place.grid, &place.block, &place.block_index, &place.thread_index}) *extent = take_extent(fields);
}

bool is_row(const Extent3& extent) { return extent[1] == 1 && extent[2] == 1; }

void put_launch_extent(Payload& payload, const Extent3& extent) {
  payload.number(extent[0]);
  if (!is_row(extent)) payload.number(extent[1]).number(extent[2]);
}

Extent3 take_launch_extent(PayloadFields& fields, bool has_rest) {
  Extent3 extent = {fields.as<std::uint32_t>(), 1, 1};
  if (!has_rest) return extent;
  extent[1] = fields.as<std::uint32_t>();
  extent[2] = fields.as<std::uint32_t>();
  return extent;
}

std::uint64_t shift_down(std::uint64_t difference) { return static_cast<std::uint64_t>(static_cast<std::int64_t>(difference) >> kBlockBits); }

// Differences wrap, so that any order of offsets comes back.
void put_arguments(Payload& payload, const std::vector<LaunchArgument>& arguments) {
  payload.number(arguments.size());
  LaunchArgument last;
  for (const LaunchArgument& argument : arguments) {
    const std::uint64_t step = argument.address - last.address;
    const bool in_blocks = (step & kBlockMask) == 0;
    payload.number(std::uint64_t{argument.offset_bytes - last.offset_bytes} << 1 | (in_blocks ? 1 : 0));
    payload.number(zigzag(in_blocks ? shift_down(step) : step));
    last = argument;
  }
}

std::vector<LaunchArgument> take_arguments(PayloadFields& fields) {
  std::vector<LaunchArgument> arguments;
  LaunchArgument last;
  for (std::size_t left = fields.count(); left > 0 && fields.ok(); --left) {
    const std::uint64_t place = fields.number((std::uint64_t{1} << 33) - 1);
    const std::uint64_t step = unzigzag(fields.number());
    last.offset_bytes += static_cast<std::uint32_t>(place >> 1);
    last.address += place & 1 ? step << kBlockBits : step;
    arguments.push_back(last);
  }
  return arguments;
}

bool is_one_row(const Copy& copy) {
  return copy.width_bytes == 0 && copy.height == 1 && copy.depth == 1 && copy.source_pitch_bytes == 0 && copy.destination_pitch_bytes == 0;
}

}  // namespace

void put_call(Payload& payload, const Launch& launch) {
  std::uint32_t said = 0;
  if (!is_row(launch.grid)) said |= kGridRest;
  if (!is_row(launch.block)) said |= kBlockRest;
  if (launch.shared_bytes != 0) said |= kShared;
  if (launch.graph != 0) said |= kGraph;
  payload.number(said).number(launch.kernel.value);
  put_launch_extent(payload, launch.grid);
  put_launch_extent(payload, launch.block);
  if (said & kShared) payload.number(launch.shared_bytes);
  if (said & kGraph) payload.number(launch.graph);
  put_arguments(payload, launch.arguments);
}

void take_call(PayloadFields& fields, Launch& launch) {
  const std::uint64_t said = fields.number();
  launch.kernel = StringId(fields.id());
  launch.grid = take_launch_extent(fields, (said & kGridRest) != 0);
  launch.block = take_launch_extent(fields, (said & kBlockRest) != 0);
  if (said & kShared) launch.shared_bytes = fields.as<std::uint32_t>();
  if (said & kGraph) launch.graph = fields.as<std::uint32_t>();
  launch.arguments = take_arguments(fields);
}

void put_call(Payload& payload, const Copy& copy) {
  std::uint32_t said = static_cast<std::uint32_t>(copy.source_side) | static_cast<std::uint32_t>(copy.destination_side) << 2;
  if (copy.asynchronous) said |= kAsynchronous;
  if (copy.source_device != 0) said |= kSourceDevice;
  if (!is_one_row(copy)) said |= kRows;
  payload.number(said).number(copy.source);
  if (said & kSourceDevice) payload.number(copy.source_device);
  if (said & kRows) {
    payload.number(copy.width_bytes).number(copy.height).number(copy.depth).number(copy.source_pitch_bytes).number(copy.destination_pitch_bytes);
  }
}

void take_call(PayloadFields& fields, Copy& copy) {
  const std::uint64_t said = fields.number();
  copy.source_side = static_cast<MemorySide>(said & 3);
  copy.destination_side = static_cast<MemorySide>(said >> 2 & 3);
  copy.asynchronous = (said & kAsynchronous) != 0;
  copy.source = fields.number();
  if (said & kSourceDevice) copy.source_device = fields.as<std::uint16_t>();
  if (said & kRows) {
    copy.width_bytes = fields.number();
    copy.height = fields.as<std::uint32_t>();
    copy.depth = fields.as<std::uint32_t>();
    copy.source_pitch_bytes = fields.number();
    copy.destination_pitch_bytes = fields.number();
  }
}

void put_call(Payload& payload, const Fault& fault) {
  payload.number((fault.has_thread ? kHasThread : 0u) | (fault.is_store ? kIsStore : 0u));
  put_strings(payload, fault);
  payload.number(fault.code);
  put_place(payload, fault);
  payload.number(fault.lanes).number(fault.addresses.size());
  std::uint64_t last = 0;
  for (const std::uint64_t address : fault.addresses) {
    payload.number(zigzag(address - last));
    last = address;
  }
  put_arguments(payload, fault.parameters);
}

void take_call(PayloadFields& fields, Fault& fault) {
  const std::uint64_t said = fields.number();
  fault.has_thread = (said & kHasThread) != 0;
  fault.is_store = (said & kIsStore) != 0;
  take_strings(fields, fault);
  fault.code = fields.as<std::uint32_t>();
  take_place(fields, fault);
  fault.lanes = fields.as<std::uint32_t>();
  std::uint64_t last = 0;
  for (std::size_t left = fields.count(); left > 0 && fields.ok(); --left) fault.addresses.push_back(last += unzigzag(fields.number()));
  fault.parameters = take_arguments(fields);
}

void put_call(Payload& payload, const Violation& violation) {
  payload.number((violation.has_thread ? kHasThread : 0u) | static_cast<unsigned>(violation.access) << 1).number(static_cast<std::uint64_t>(violation.kind));
  put_strings(payload, violation);
  put_place(payload, violation);
}

void take_call(PayloadFields& fields, Violation& violation) {
  const std::uint64_t said = fields.number(), kind = fields.number();
  violation.has_thread = (said & kHasThread) != 0;
  violation.access = static_cast<AccessKind>(std::min<std::uint64_t>(said >> 1 & 3, static_cast<std::uint64_t>(AccessKind::kAtomic)));
  if (kind <= static_cast<std::uint64_t>(ViolationKind::kMisaligned)) violation.kind = static_cast<ViolationKind>(kind);
  take_strings(fields, violation);
  take_place(fields, violation);
}

}  // namespace faultline
