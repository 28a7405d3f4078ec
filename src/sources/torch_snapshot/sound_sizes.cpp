// Sizes that no snapshot of PyTorch's can have: a file with one is refused, since nothing of what it says could be shown as a fact.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/units.h"
#include "sources/bounds.h"
#include "sources/torch_snapshot/trace_builder.h"

namespace faultline::torch_snapshot {
namespace {

std::string segment_at(const FinalSegment& segment) { return fmt::format("the segment at {:#x}", segment.address); }

Error larger(const std::string& what, std::uint64_t size_bytes, const std::string& than, std::uint64_t room_bytes) {
  return Error{fmt::format("{} has {} bytes, more than {}, which has {}", what, format_count(size_bytes), than,
                           format_count(room_bytes)),
               {},
               "The file is damaged, or was not written by PyTorch."};
}

}  // namespace

// PyTorch's segments are the sum of their blocks, which follow one another. Less is counted (a snapshot that somebody thinned out), more is refused.
Status TraceBuilder::check_segments() const {
  std::map<std::uint16_t, std::uint64_t> reserved;  // by device
  std::uint64_t incomplete = 0;
  for (std::size_t index = 0; index < trace_.final_segments.size(); ++index) {
    const FinalSegment& segment = trace_.final_segments[index];
    if (segment.size_bytes > kMostDeviceBytes)
      return absurd_size("the size of " + segment_at(segment), segment.size_bytes);
    if (const std::uint64_t claimed = machine_.claimed_bytes_[index]; claimed > segment.size_bytes) {
      if (claimed > kMostDeviceBytes) return absurd_size("what is used of " + segment_at(segment), claimed);
      return larger("what is used of " + segment_at(segment), claimed, "the segment", segment.size_bytes);
    }
    std::uint64_t covered = 0, end = segment.address;
    for (std::uint32_t at = segment.first_block; at < segment.first_block + segment.block_count; ++at) {
      const FinalBlock& block = trace_.final_blocks[at];
      const std::string name = fmt::format("the block at {:#x}", block.address);
      if (block.size_bytes > kMostDeviceBytes) return absurd_size("the size of " + name, block.size_bytes);
      // a free block still states what its last owner asked for, before it was split
      if (block.state != FinalBlock::State::kFree && block.requested_bytes > block.size_bytes) {
        if (block.requested_bytes > kMostDeviceBytes)
          return absurd_size("what was asked for of " + name, block.requested_bytes);
        return larger("what was asked for of " + name, block.requested_bytes, "the block", block.size_bytes);
      }
      covered += block.size_bytes;
      if (covered > segment.size_bytes || block.address < end ||
          block.address - segment.address > segment.size_bytes - block.size_bytes)
        return larger(fmt::format("{} with those before it", name), covered, segment_at(segment), segment.size_bytes);
      end = block.address + block.size_bytes;
    }
    if (segment.block_count != 0 && covered < segment.size_bytes) ++incomplete;
    std::uint64_t& sum = reserved[segment.device];
    sum += segment.size_bytes;
    if (sum > kMostDeviceBytes)
      return absurd_size(fmt::format("the sum of the segments of device {}", segment.device), sum);
  }
  trace_.count("segments whose blocks do not add up to their size", incomplete);
  return Ok{};
}

Status TraceBuilder::check_sizes() {
  if (Status sound = check_segments(); !sound) return sound;
  std::uint64_t largest = 0, mapped = 0;  // of the segments; what may be one expandable segment
  for (const FinalSegment& segment : trace_.final_segments)
    (segment.is_expandable ? mapped += segment.size_bytes : largest = std::max(largest, segment.size_bytes));
  for (std::size_t index = 0; index < trace_.events.size(); ++index) {
    Event& event = trace_.events[index];
    if (event.kind == EventKind::kAllocFailed) {
      if (event.size_bytes == ~std::uint64_t{0})
        return absurd_size(fmt::format("the size of entry {}", index), event.size_bytes);
      if (event.address <= kMostDeviceBytes) continue;
      event.address = 0;
      event.bits = 0;  // the device's free memory is not known
      trace_.count("failed requests that state more free memory than any device has");
      continue;
    }
    if (event.size_bytes > kMostDeviceBytes)
      return absurd_size(fmt::format("the size of entry {}", index), event.size_bytes);
    switch (actions_[index]) {
      case Action::kSegmentAlloc:
      case Action::kSegmentFree: largest = std::max(largest, event.size_bytes); break;
      case Action::kSegmentMap:
      case Action::kSegmentUnmap: mapped += event.size_bytes; break;
      default: break;
    }
  }
  const std::uint64_t room = std::max(largest, mapped);
  if (room == 0) return Ok{};  // it tells of no segments
  // A block lies in a segment, and every segment of a block in the recording is in it or in the end state.
  for (std::size_t index = 0; index < trace_.events.size(); ++index) {
    const Event& event = trace_.events[index];
    if (actions_[index] == Action::kAlloc && event.size_bytes > room)
      return larger(fmt::format("the block of entry {}", index), event.size_bytes, "the largest segment", room);
  }
  return Ok{};
}

}  // namespace faultline::torch_snapshot
