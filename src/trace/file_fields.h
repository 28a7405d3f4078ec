// What the definition records of a trace file hold: the fields of each, listed once for both directions. `file` is a Payload, which writes them, or
// PayloadFields, which reads them; what was read is only worth something when that is still ok() afterwards. The ids in it are the file's.
//
// A kernel's pointers stand close together and on round addresses, so each is written as the difference from the one before it, divided by 512
// where that leaves nothing over: a launch with four of them takes about 30 bytes.
#pragma once

#include <algorithm>
#include <concepts>
#include <string>
#include <vector>

#include "trace/calls.h"
#include "trace/file_payload.h"
#include "trace/trace.h"

namespace faultline {

// A stack as a file has it.
struct StackNode {
  StackId caller;
  FrameId frame;
};

template <class Value>
inline constexpr RecordTag kRecordTag = RecordTag::kNothingYet;
template <>
inline constexpr RecordTag kRecordTag<std::string> = RecordTag::kString;
template <>
inline constexpr RecordTag kRecordTag<Frame> = RecordTag::kFrame;
template <>
inline constexpr RecordTag kRecordTag<StackNode> = RecordTag::kStack;
template <>
inline constexpr RecordTag kRecordTag<Tensor> = RecordTag::kTensor;
template <>
inline constexpr RecordTag kRecordTag<Heap> = RecordTag::kHeap;
template <>
inline constexpr RecordTag kRecordTag<Stream> = RecordTag::kStream;
template <>
inline constexpr RecordTag kRecordTag<Device> = RecordTag::kDevice;
template <>
inline constexpr RecordTag kRecordTag<FinalBlock> = RecordTag::kFinalBlock;
template <>
inline constexpr RecordTag kRecordTag<FinalSegment> = RecordTag::kFinalSegment;
template <>
inline constexpr RecordTag kRecordTag<Launch> = RecordTag::kLaunch;
template <>
inline constexpr RecordTag kRecordTag<Copy> = RecordTag::kCopy;
template <>
inline constexpr RecordTag kRecordTag<Fault> = RecordTag::kFault;
template <>
inline constexpr RecordTag kRecordTag<Violation> = RecordTag::kViolation;

// A value to write, or a place to read it into.
template <class T, class Value>
concept Either = std::same_as<std::remove_const_t<T>, Value>;

template <class File, Either<std::string> T>
void fields(File& file, T& text) {
  file.field(text);
}

template <class File, Either<Frame> T>
void fields(File& file, T& frame) {
  file.field(frame.function).field(frame.file).field(frame.line);
}

template <class File, Either<StackNode> T>
void fields(File& file, T& stack) {
  file.field(stack.caller).field(stack.frame);
}

template <class File, Either<Tensor> T>
void fields(File& file, T& tensor) {
  file.field(tensor.dtype).field(tensor.op).field(tensor.name);
  file.list(tensor.shape, kMostDimensions, [&](auto& extent) { file.signed_number(extent); });
  file.added_later(tensor.operands, tensor.operands.value != 0);
}

template <class File, Either<Heap> T>
void fields(File& file, T& heap) {
  file.choice(heap.kind, HeapKind{kHeapKindCount - 1}, HeapKind::kOther);
  file.field(heap.device).field(heap.below).field(heap.pool_major).field(heap.pool_minor).field(heap.name);
}

template <class File, Either<Stream> T>
void fields(File& file, T& stream) {
  file.field(stream.device).field(stream.handle).added_later(stream.waits_for_default);
}

template <class File, Either<Device> T>
void fields(File& file, T& device) {
  file.field(device.index).field(device.name).field(device.capacity_bytes).field(device.allowed_bytes);
}

template <class File, Either<FinalBlock> T>
void fields(File& file, T& block) {
  file.field(block.address).field(block.size_bytes).field(block.requested_bytes).field(block.stack);
  file.choice(block.state, FinalBlock::State::kPendingFree);
}

template <class File, Either<FinalSegment> T>
void fields(File& file, T& segment) {
  enum : std::uint32_t { kSmall = 1, kExpandable = 2 };
  file.field(segment.address)
      .field(segment.size_bytes)
      .field(segment.device)
      .field(segment.heap)
      .field(segment.stream)
      .field(segment.stack);
  const std::uint64_t said = file.said((segment.is_small ? kSmall : 0u) | (segment.is_expandable ? kExpandable : 0u));
  file.told(segment.is_small, (said & kSmall) != 0);
  file.told(segment.is_expandable, (said & kExpandable) != 0);
  file.field(segment.first_block).field(segment.block_count);
}

template <class File, class Call>
void names(File& file, Call& call) {
  for (auto* const id : strings_of(call)) file.field(*id);
}

template <class File, Either<Extent3> T>
void extent(File& file, T& extent) {
  for (auto& part : extent) file.field(part);
}

// What of a place are no names.
template <class File, class Call>
void place(File& file, Call& place) {
  file.field(place.line).field(place.pc).field(place.pc_offset);
  for (auto* const part : {&place.grid, &place.block, &place.block_index, &place.thread_index}) extent(file, *part);
}

constexpr bool is_row(const Extent3& extent) { return extent[1] == 1 && extent[2] == 1; }

// Without a rest the two other extents are 1.
template <class File, Either<Extent3> T>
void launch_extent(File& file, T& extent, bool has_rest) {
  file.field(extent[0]);
  for (auto* const part : {&extent[1], &extent[2]}) {
    if (has_rest)
      file.field(*part);
    else
      file.told(*part, 1u);
  }
}

// Differences wrap, so that any order of offsets comes back.
template <class File, Either<std::vector<LaunchArgument>> T>
void arguments(File& file, T& arguments) {
  LaunchArgument last;
  file.list(arguments, kNoLimit, [&](auto& argument) {
    const bool in_blocks = is_in_blocks(argument.address - last.address);
    const std::uint64_t place =
        file.said(std::uint64_t{argument.offset_bytes - last.offset_bytes} << 1 | (in_blocks ? 1 : 0),
                  (std::uint64_t{1} << 33) - 1);
    file.told(argument.offset_bytes, last.offset_bytes + static_cast<std::uint32_t>(place >> 1));
    file.step(argument.address, last.address, (place & 1) != 0);
    last = argument;
  });
}

// What a launch says beyond its kernel and the first extents; what it does not say is 1 (an extent) or 0.
template <class File, Either<Launch> T>
void fields(File& file, T& launch) {
  enum : std::uint32_t { kGridRest = 1, kBlockRest = 2, kShared = 4, kGraph = 8 };
  const std::uint64_t said =
      file.said((is_row(launch.grid) ? 0u : kGridRest) | (is_row(launch.block) ? 0u : kBlockRest) |
                (launch.shared_bytes != 0 ? kShared : 0u) | (launch.graph != 0 ? kGraph : 0u));
  names(file, launch);
  launch_extent(file, launch.grid, (said & kGridRest) != 0);
  launch_extent(file, launch.block, (said & kBlockRest) != 0);
  if (said & kShared) file.field(launch.shared_bytes);
  if (said & kGraph) file.field(launch.graph);
  arguments(file, launch.arguments);
}

inline bool is_one_row(const Copy& copy) {
  return copy.width_bytes == 0 && copy.height == 1 && copy.depth == 1 && copy.source_pitch_bytes == 0 &&
         copy.destination_pitch_bytes == 0;
}

template <class File, Either<Copy> T>
void fields(File& file, T& copy) {
  enum : std::uint32_t { kAsynchronous = 16, kSourceDevice = 32, kRows = 64 };  // the low four bits are the two sides
  const std::uint64_t said =
      file.said(static_cast<std::uint32_t>(copy.source_side) | static_cast<std::uint32_t>(copy.destination_side) << 2 |
                (copy.asynchronous ? kAsynchronous : 0u) | (copy.source_device != 0 ? kSourceDevice : 0u) |
                (is_one_row(copy) ? 0u : kRows));
  file.told(copy.source_side, static_cast<MemorySide>(said & 3));
  file.told(copy.destination_side, static_cast<MemorySide>(said >> 2 & 3));
  file.told(copy.asynchronous, (said & kAsynchronous) != 0);
  file.field(copy.source);
  if (said & kSourceDevice) file.field(copy.source_device);
  if (said & kRows)
    file.field(copy.width_bytes)
        .field(copy.height)
        .field(copy.depth)
        .field(copy.source_pitch_bytes)
        .field(copy.destination_pitch_bytes);
}

template <class File, Either<Fault> T>
void fields(File& file, T& fault) {
  enum : std::uint32_t { kHasThread = 1, kIsStore = 2 };
  const std::uint64_t said = file.said((fault.has_thread ? kHasThread : 0u) | (fault.is_store ? kIsStore : 0u));
  file.told(fault.has_thread, (said & kHasThread) != 0);
  file.told(fault.is_store, (said & kIsStore) != 0);
  names(file, fault);
  file.field(fault.code);
  place(file, fault);
  file.field(fault.lanes);
  std::uint64_t last = 0;
  file.list(fault.addresses, kNoLimit, [&](auto& address) {
    file.step(address, last, false);
    last = address;
  });
  arguments(file, fault.parameters);
}

template <class File, Either<Violation> T>
void fields(File& file, T& violation) {
  const std::uint64_t said =
      file.said((violation.has_thread ? 1u : 0u) | static_cast<std::uint32_t>(violation.access) << 1);
  file.told(violation.has_thread, (said & 1) != 0);
  file.told(violation.access, static_cast<AccessKind>(std::min<std::uint64_t>(
                                  said >> 1 & 3, static_cast<std::uint64_t>(AccessKind::kAtomic))));
  file.choice(violation.kind, ViolationKind::kMisaligned, ViolationKind::kOther);
  names(file, violation);
  place(file, violation);
}

}  // namespace faultline
