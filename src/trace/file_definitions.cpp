#include "trace/file_definitions.h"

#include <algorithm>
#include <bitset>
#include <memory>

#include "trace/pushed_frame.h"
#include "trace/validate.h"

namespace faultline {
namespace {

constexpr std::uint64_t kIdSlack = 1 << 20;

enum class Keep : std::uint8_t { kFirst, kLast };

// Brings definitions into the order of their ids, one for each.
template <class T>
void sort_by_id(std::vector<std::pair<std::uint32_t, T>>& defined, Keep keep) {
  const auto by_id = [](const auto& a, const auto& b) { return a.first < b.first; };
  if (!std::is_sorted(defined.begin(), defined.end(), by_id)) std::stable_sort(defined.begin(), defined.end(), by_id);
  std::size_t kept = 0;
  for (std::size_t i = 0; i < defined.size(); ++i) {
    if (kept > 0 && defined[kept - 1].first == defined[i].first) {
      if (keep == Keep::kLast) defined[kept - 1] = std::move(defined[i]);
      continue;
    }
    if (kept != i) defined[kept] = std::move(defined[i]);
    ++kept;
  }
  defined.erase(defined.begin() + static_cast<std::ptrdiff_t>(kept), defined.end());
}

using Position = Id<struct PositionTag>;

template <class Id, class T>
bool take_defined(PayloadFields& payload, std::vector<std::pair<std::uint32_t, T>>& defined) {
  Id id;
  T value;
  fields(payload.field(id), value);
  if (payload.ok()) defined.emplace_back(id.value, std::move(value));
  return payload.ok();
}

}  // namespace

Definitions::Definitions(std::uint64_t file_bytes)
    : most_id_(static_cast<std::uint32_t>(std::min<std::uint64_t>(file_bytes + kIdSlack, IdMap::kUnknown - 1))) {}

void Definitions::add(const Record& record) {
  if (record.tag > RecordTag::kViolation) {
    small_.count(kLostUnknownRecords);
    return;
  }
  PayloadFields fields(record.payload, most_id_);
  if (!take(record.tag, fields)) small_.count(kLostBadDefinitions);
}

bool Definitions::take(RecordTag tag, PayloadFields& fields) {
  switch (tag) {
    case RecordTag::kString: return take_defined<StringId>(fields, strings_);
    case RecordTag::kFrame: return take_defined<FrameId>(fields, frames_);
    case RecordTag::kStack: return take_defined<StackId>(fields, stacks_);
    case RecordTag::kTensor: return take_defined<TensorId>(fields, tensors_);
    case RecordTag::kHeap: return take_defined<HeapId>(fields, heaps_);
    case RecordTag::kStream: return take_defined<StreamId>(fields, streams_);
    case RecordTag::kDevice: return take_defined<Position>(fields, devices_);
    case RecordTag::kFinalBlock: return take_defined<Position>(fields, final_blocks_);
    case RecordTag::kFinalSegment: return take_defined<Position>(fields, final_segments_);
    case RecordTag::kLaunch: return take_defined<LaunchId>(fields, std::get<Defined<Launch>>(calls_));
    case RecordTag::kCopy: return take_defined<CopyId>(fields, std::get<Defined<Copy>>(calls_));
    case RecordTag::kFault: return take_defined<FaultId>(fields, std::get<Defined<Fault>>(calls_));
    case RecordTag::kViolation: return take_defined<ViolationId>(fields, std::get<Defined<Violation>>(calls_));
    case RecordTag::kProperty: {
      std::string key = fields.text();
      std::string value = fields.text();
      if (fields.ok()) small_.properties[std::move(key)] = std::move(value);
      return fields.ok();
    }
    case RecordTag::kCounter: {
      const std::string what = fields.text();
      const std::uint64_t times = fields.number();
      if (fields.ok()) small_.lost[what] += times;
      return fields.ok();
    }
    case RecordTag::kSource: {
      std::string kind = fields.text();
      std::string path = fields.text();
      const std::uint64_t events = fields.number();
      std::uint32_t capabilities = 0;
      fields.field(capabilities);
      if (!fields.ok()) return false;
      small_.source_kind = std::move(kind);
      small_.source_path = std::move(path);
      small_.source_events = events;
      small_.capabilities = capabilities;
      return true;
    }
    case RecordTag::kFinalState: {
      const std::uint64_t segments = fields.number();
      const std::uint64_t blocks = fields.number();
      if (!fields.ok()) return false;
      final_segment_count_ = segments;
      final_block_count_ = blocks;
      return true;
    }
    default: return false;
  }
}

TraceIds Definitions::resolve(Trace& trace) {
  trace.properties = std::move(small_.properties);
  for (const auto& [what, times] : small_.lost) trace.lost[what] += times;
  trace.source_kind = std::move(small_.source_kind);
  trace.source_path = std::move(small_.source_path);
  trace.source_events = small_.source_events;
  trace.capabilities = small_.capabilities;
  TraceIds ids;
  resolve_strings(trace, ids);
  resolve_stacks(trace, ids);
  resolve_tensors(trace, ids);
  resolve_calls(trace, ids);
  resolve_places(trace, ids);
  resolve_final_state(trace, ids);
  return ids;
}

void Definitions::resolve_strings(Trace& trace, TraceIds& ids) {
  sort_by_id(strings_, Keep::kFirst);
  ids.strings.set(0, 0);
  for (auto& [id, text] : strings_) {
    if (id != 0) ids.strings.set(id, trace.strings.intern(text).value);
    text = {};
  }
}

void Definitions::resolve_stacks(Trace& trace, TraceIds& ids) {
  sort_by_id(frames_, Keep::kFirst);
  ids.frames.set(0, 0);
  for (auto& [id, frame] : frames_) {
    if (id != 0 && ids.strings.rename(frame.function) && ids.strings.rename(frame.file))
      ids.frames.set(id, trace.stacks.intern_frame(frame).value);
  }
  // A caller has a smaller id than whom it calls, so in this order it is already there.
  sort_by_id(stacks_, Keep::kFirst);
  ids.stacks.set(0, 0);
  for (auto& [id, stack] : stacks_) {
    if (id != 0 && ids.stacks.rename(stack.caller) && ids.frames.rename(stack.frame))
      ids.stacks.set(id, push_frame(trace, stack.caller, stack.frame).value);
  }
}

void Definitions::resolve_tensors(Trace& trace, TraceIds& ids) {
  sort_by_id(tensors_, Keep::kFirst);
  ids.tensors.set(0, 0);
  for (auto& [id, tensor] : tensors_) {
    bool is_known = id != 0;
    for (StringId* const string : {&tensor.dtype, &tensor.op, &tensor.name, &tensor.operands})
      is_known &= ids.strings.rename(*string);
    if (is_known) ids.tensors.set(id, trace.tensors.intern(tensor).value);
  }
}

void Definitions::resolve_calls(Trace& trace, TraceIds& ids) {
  each_call_table(trace, [&](auto& table) {
    using Call = typename std::remove_cvref_t<decltype(table)>::Value;
    Defined<Call>& defined = std::get<Defined<Call>>(calls_);
    IdMap& ours = ids.calls[static_cast<std::size_t>(CallKind<Call>::kEvent)];
    sort_by_id(defined, Keep::kFirst);
    ours.set(0, 0);
    for (auto& [id, call] : defined) {
      bool is_known = id != 0;
      for (StringId* const string : strings_of(call)) is_known &= ids.strings.rename(*string);
      if (is_known) ours.set(id, table.intern(call).value);
      call = {};
    }
  });
}

void Definitions::resolve_places(Trace& trace, TraceIds& ids) {
  sort_by_id(heaps_, Keep::kLast);
  for (auto& [id, heap] : heaps_) {
    ids.heaps.set(id, static_cast<std::uint32_t>(trace.heaps.size()));
    trace.heaps.push_back(std::move(heap));
  }
  for (std::size_t i = 0; i < trace.heaps.size(); ++i) {
    const std::uint32_t below = ids.heaps.find(trace.heaps[i].below.value);
    trace.heaps[i].below = HeapId(static_cast<std::uint16_t>(below == IdMap::kUnknown ? i : below));
  }
  for (const HeapId heap : heaps_in_circles(trace.heaps)) trace.heaps[heap.index()].below = heap;

  sort_by_id(streams_, Keep::kLast);
  ids.streams.set(0, 0);
  for (const auto& [id, stream] : streams_) {
    // The default stream keeps number 0, even where its own definition is missing.
    if (trace.streams.empty() && id != 0) trace.streams.emplace_back();
    ids.streams.set(id, static_cast<std::uint32_t>(trace.streams.size()));
    trace.streams.push_back(stream);
  }

  sort_by_id(devices_, Keep::kLast);
  auto seen = std::make_unique<std::bitset<65536>>();
  for (auto& [position, device] : devices_) {
    if (seen->test(device.index)) {
      trace.count(kLostBadDefinitions);
      continue;
    }
    seen->set(device.index);
    trace.devices.push_back(std::move(device));
  }
}

void Definitions::resolve_final_state(Trace& trace, const TraceIds& ids) {
  sort_by_id(final_blocks_, Keep::kLast);
  sort_by_id(final_segments_, Keep::kLast);
  bool usable = final_segments_.size() == final_segment_count_ && final_blocks_.size() == final_block_count_;
  for (const auto& [index, block] : final_blocks_) {
    trace.final_blocks.push_back(block);
    usable &= index + 1 == trace.final_blocks.size() && ids.stacks.rename(trace.final_blocks.back().stack);
  }
  for (const auto& [index, file_segment] : final_segments_) {
    trace.final_segments.push_back(file_segment);
    FinalSegment& segment = trace.final_segments.back();
    usable &= index + 1 == trace.final_segments.size() && ids.heaps.rename(segment.heap) &&
              ids.streams.rename(segment.stream) && ids.stacks.rename(segment.stack) &&
              std::uint64_t{segment.first_block} + segment.block_count <= trace.final_blocks.size();
  }
  if (usable) return;
  trace.final_blocks.clear();
  trace.final_segments.clear();
  trace.count(kLostFinalState);
}

}  // namespace faultline
