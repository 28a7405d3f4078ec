#include "sources/trace_import.h"

#include <algorithm>

#include "sources/bounds.h"

namespace faultline {
namespace {

// What a damaged file names and does not hold reads as nothing.
template <class Id>
std::uint32_t renumber(const std::vector<Id>& ids, std::uint32_t id) {
  return id < ids.size() ? ids[id].value : 0;
}

}  // namespace

TraceImport::TraceImport(const Trace& from, Trace& into)
    : from_(from),
      into_(into),
      streams_(std::max<std::size_t>(from.streams.size(), 1), -1),
      heaps_(from.heaps.size(), -1) {
  if (into.streams.empty()) into.streams.emplace_back();
  for (std::uint32_t i = 0; i < from.strings.size(); ++i)
    strings_.push_back(into.strings.intern(from.strings.at(StringId(i))));
  std::vector<FrameId> frames;
  for (std::uint32_t i = 0; i < from.stacks.frame_count(); ++i) {
    const Frame& frame = from.stacks.frame(FrameId(i));
    frames.push_back(i == 0 ? FrameId()
                            : into.stacks.intern_frame({string(frame.function), string(frame.file), frame.line}));
  }
  stacks_.emplace_back();
  for (std::uint32_t i = 1; i < from.stacks.size(); ++i) {  // callers stand before those they call
    stacks_.push_back(
        into.stacks.push(stack(from.stacks.parent(StackId(i))), frames[from.stacks.frame_id(StackId(i)).index()]));
  }
  for (std::uint32_t i = 0; i < from.tensors.size(); ++i) {
    Tensor tensor = from.tensors.at(TensorId(i));
    for (StringId* id : {&tensor.dtype, &tensor.op, &tensor.name, &tensor.operands}) *id = string(*id);
    tensors_.push_back(i == 0 ? TensorId() : into.tensors.intern(tensor));
  }
  for (std::uint32_t i = 0; i < from.launches.size(); ++i) {
    Launch launch = from.launches.at(LaunchId(i));
    launch.kernel = string(launch.kernel);
    launches_.push_back(i == 0 ? LaunchId() : into.launches.intern(launch));
  }
  for (std::uint32_t i = 0; i < from.copies.size(); ++i)
    copies_.push_back(i == 0 ? CopyId() : into.copies.intern(from.copies.at(CopyId(i))));
  for (std::uint32_t i = 0; i < from.faults.size(); ++i) {
    Fault fault = from.faults.at(FaultId(i));
    for (StringId* const id : strings_of(fault)) *id = string(*id);
    faults_.push_back(i == 0 ? FaultId() : into.faults.intern(fault));
  }
  for (std::uint32_t i = 0; i < from.violations.size(); ++i) {
    Violation violation = from.violations.at(ViolationId(i));
    for (StringId* const id : strings_of(violation)) *id = string(*id);
    violations_.push_back(i == 0 ? ViolationId() : into.violations.intern(violation));
  }
}

HeapId TraceImport::heap(HeapId id) {
  if (heaps_[id.index()] >= 0) return HeapId(static_cast<std::uint16_t>(heaps_[id.index()]));
  // Down to a heap that has its place or is the lowest, then up again: a file may stack sixty thousand.
  std::vector<HeapId> without_place;
  for (HeapId at = id; heaps_[at.index()] < 0; at = from_.heaps[at.index()].below) {
    if (into_.heaps.size() >= kMostHeaps) {
      heaps_[at.index()] = 0;  // there is no room for more: what lies below is not told
      break;
    }
    heaps_[at.index()] = static_cast<std::int64_t>(into_.heaps.size());
    into_.heaps.push_back(from_.heaps[at.index()]);
    without_place.push_back(at);
  }
  for (const HeapId at : without_place) {
    const auto place = [&](HeapId heap) { return HeapId(static_cast<std::uint16_t>(heaps_[heap.index()])); };
    into_.heaps[place(at).index()].below = place(from_.heaps[at.index()].below);
  }
  return HeapId(static_cast<std::uint16_t>(heaps_[id.index()]));
}

StreamId TraceImport::stream(StreamId id) {
  if (id.index() >= from_.streams.size()) return {};
  std::int64_t& known = streams_[id.index()];
  if (known < 0) {
    const Stream& wanted = from_.streams[id.index()];
    // The other trace's own may have grown since it was last asked.
    for (; streams_seen_ < into_.streams.size(); ++streams_seen_)
      into_streams_.try_emplace({into_.streams[streams_seen_].device, into_.streams[streams_seen_].handle},
                                streams_seen_);
    const auto at = into_streams_.find({wanted.device, wanted.handle});
    known = static_cast<std::int64_t>(at == into_streams_.end() ? into_.streams.size() : at->second);
    if (at == into_streams_.end())
      into_.streams.push_back(wanted);
    else
      into_.streams[at->second].waits_for_default = wanted.waits_for_default;
  }
  return StreamId(static_cast<std::uint32_t>(known));
}

Event TraceImport::renumbered(const Event& from) {
  Event event = from;
  event.stack = stack(from.stack);
  event.stream = stream(from.stream);
  switch (from.kind) {
    case EventKind::kAlloc:
    case EventKind::kFree:
    case EventKind::kAllocFailed:
    case EventKind::kMap:
    case EventKind::kUnmap:
    case EventKind::kHostPin:
    case EventKind::kHostUnpin: event.heap = heap(from.heap); break;
    default: event.heap = {}; break;
  }
  switch (from.kind) {
    case EventKind::kAlloc:
    case EventKind::kTensorNote: event.extra = renumber(tensors_, from.extra); break;
    case EventKind::kOpBegin:
    case EventKind::kOpEnd:
    case EventKind::kEstimate:
    case EventKind::kStepMark: event.extra = renumber(strings_, from.extra); break;
    case EventKind::kLaunch: event.extra = renumber(launches_, from.extra); break;
    case EventKind::kCopy: event.extra = renumber(copies_, from.extra); break;
    case EventKind::kFault: event.extra = renumber(faults_, from.extra); break;
    case EventKind::kViolation: event.extra = renumber(violations_, from.extra); break;
    default: break;
  }
  return event;
}

void merge_devices(const Trace& from, Trace& into) {
  std::map<std::uint16_t, std::size_t> places;
  for (std::size_t i = 0; i < into.devices.size(); ++i) places.try_emplace(into.devices[i].index, i);
  for (const Device& device : from.devices) {
    const auto [at, is_new] = places.try_emplace(device.index, into.devices.size());
    if (is_new) {
      into.devices.push_back(device);
      continue;
    }
    Device& known = into.devices[at->second];
    if (known.name.empty()) known.name = device.name;
    if (known.capacity_bytes == 0) known.capacity_bytes = device.capacity_bytes;
    if (known.allowed_bytes == 0) known.allowed_bytes = device.allowed_bytes;
  }
  std::sort(into.devices.begin(), into.devices.end(),
            [](const Device& a, const Device& b) { return a.index < b.index; });
}

}  // namespace faultline
