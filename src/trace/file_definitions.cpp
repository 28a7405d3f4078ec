#include "trace/file_definitions.h"

#include <algorithm>
#include <bitset>
#include <memory>

#include "trace/file_calls.h"
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
    case RecordTag::kString: {
      const std::uint32_t id = fields.id();
      std::string text = fields.text();
      if (fields.ok()) strings_.emplace_back(id, std::move(text));
      return fields.ok();
    }
    case RecordTag::kFrame: {
      const std::uint32_t id = fields.id();
      const FileFrame frame{fields.id(), fields.id(), fields.as<std::uint32_t>()};
      if (fields.ok()) frames_.emplace_back(id, frame);
      return fields.ok();
    }
    case RecordTag::kStack: {
      const std::uint32_t id = fields.id();
      const FileStack stack{fields.id(), fields.id()};
      if (fields.ok()) stacks_.emplace_back(id, stack);
      return fields.ok();
    }
    case RecordTag::kStream: {
      const std::uint32_t id = fields.id();
      Stream stream{fields.as<std::uint16_t>(), fields.number(), true};
      if (fields.ok() && fields.left() != 0) stream.waits_for_default = fields.number() != 0;
      if (fields.ok()) streams_.emplace_back(id, stream);
      return fields.ok();
    }
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
      const std::uint32_t capabilities = fields.as<std::uint32_t>();
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
    case RecordTag::kLaunch: return take_defined<Launch>(fields);
    case RecordTag::kCopy: return take_defined<Copy>(fields);
    case RecordTag::kFault: return take_defined<Fault>(fields);
    case RecordTag::kViolation: return take_defined<Violation>(fields);
    case RecordTag::kTensor: return take_tensor(fields);
    case RecordTag::kHeap: return take_heap(fields);
    case RecordTag::kDevice: return take_device(fields);
    case RecordTag::kFinalBlock: return take_final_block(fields);
    case RecordTag::kFinalSegment: return take_final_segment(fields);
    default: return false;
  }
}

template <class Call>
bool Definitions::take_defined(PayloadFields& fields) {
  const std::uint32_t id = fields.id();
  Call call;
  take_call(fields, call);
  if (fields.ok()) std::get<Defined<Call>>(calls_).emplace_back(id, std::move(call));
  return fields.ok();
}

bool Definitions::take_tensor(PayloadFields& fields) {
  const std::uint32_t id = fields.id();
  FileTensor tensor{fields.id(), fields.id(), fields.id(), {}, 0};
  const std::size_t rank = fields.count();
  if (rank > kMostDimensions) return false;
  tensor.shape.reserve(rank);
  for (std::size_t i = 0; i < rank; ++i) tensor.shape.push_back(static_cast<std::int64_t>(unzigzag(fields.number())));
  if (fields.ok() && fields.left() != 0) tensor.operands = fields.id();
  if (fields.ok()) tensors_.emplace_back(id, std::move(tensor));
  return fields.ok();
}

bool Definitions::take_heap(PayloadFields& fields) {
  const auto id = fields.as<std::uint16_t>();
  Heap heap;
  const std::uint64_t kind = fields.number();
  heap.kind = kind < kHeapKindCount ? static_cast<HeapKind>(kind) : HeapKind::kOther;
  heap.device = fields.as<std::uint16_t>();
  heap.below = HeapId(fields.as<std::uint16_t>());
  heap.pool_major = fields.number();
  heap.pool_minor = fields.number();
  heap.name = fields.text();
  if (fields.ok()) heaps_.emplace_back(id, std::move(heap));
  return fields.ok();
}

bool Definitions::take_device(PayloadFields& fields) {
  const std::uint32_t position = fields.id();
  Device device;
  device.index = fields.as<std::uint16_t>();
  device.name = fields.text();
  device.capacity_bytes = fields.number();
  device.allowed_bytes = fields.number();
  if (fields.ok()) devices_.emplace_back(position, std::move(device));
  return fields.ok();
}

bool Definitions::take_final_block(PayloadFields& fields) {
  const std::uint32_t index = fields.id();
  FinalBlock block;
  block.address = fields.number();
  block.size_bytes = fields.number();
  block.requested_bytes = fields.number();
  block.stack = StackId(fields.id());
  block.state = static_cast<FinalBlock::State>(fields.number(static_cast<std::uint64_t>(FinalBlock::State::kPendingFree)));
  if (fields.ok()) final_blocks_.emplace_back(index, block);
  return fields.ok();
}

bool Definitions::take_final_segment(PayloadFields& fields) {
  const std::uint32_t index = fields.id();
  FinalSegment segment;
  segment.address = fields.number();
  segment.size_bytes = fields.number();
  segment.device = fields.as<std::uint16_t>();
  segment.heap = HeapId(fields.as<std::uint16_t>());
  segment.stream = StreamId(fields.id());
  segment.stack = StackId(fields.id());
  const std::uint64_t flags = fields.number();
  segment.is_small = (flags & kSegmentSmall) != 0;
  segment.is_expandable = (flags & kSegmentExpandable) != 0;
  segment.first_block = fields.as<std::uint32_t>();
  segment.block_count = fields.as<std::uint32_t>();
  if (fields.ok()) final_segments_.emplace_back(index, segment);
  return fields.ok();
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
  for (const auto& [id, frame] : frames_) {
    const std::uint32_t function = ids.strings.find(frame.function);
    const std::uint32_t file = ids.strings.find(frame.file);
    if (id == 0 || function == IdMap::kUnknown || file == IdMap::kUnknown) continue;
    ids.frames.set(id, trace.stacks.intern_frame({StringId(function), StringId(file), frame.line}).value);
  }
  // A caller has a smaller id than whom it calls, so in this order it is already there.
  sort_by_id(stacks_, Keep::kFirst);
  ids.stacks.set(0, 0);
  for (const auto& [id, stack] : stacks_) {
    const std::uint32_t caller = ids.stacks.find(stack.caller);
    const std::uint32_t frame = ids.frames.find(stack.frame);
    if (id == 0 || caller == IdMap::kUnknown || frame == IdMap::kUnknown) continue;
    ids.stacks.set(id, trace.stacks.push(StackId(caller), FrameId(frame)).value);
  }
}

void Definitions::resolve_tensors(Trace& trace, TraceIds& ids) {
  sort_by_id(tensors_, Keep::kFirst);
  ids.tensors.set(0, 0);
  for (auto& [id, file_tensor] : tensors_) {
    const std::uint32_t dtype = ids.strings.find(file_tensor.dtype);
    const std::uint32_t op = ids.strings.find(file_tensor.op);
    const std::uint32_t name = ids.strings.find(file_tensor.name);
    const std::uint32_t operands = ids.strings.find(file_tensor.operands);
    if (id == 0 || dtype == IdMap::kUnknown || op == IdMap::kUnknown || name == IdMap::kUnknown || operands == IdMap::kUnknown) continue;
    const Tensor tensor{std::move(file_tensor.shape), StringId(dtype), StringId(op), StringId(name), StringId(operands)};
    ids.tensors.set(id, trace.tensors.intern(tensor).value);
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
      for (StringId* const string : strings_of(call)) {
        *string = StringId(ids.strings.find(string->value));
        is_known &= string->value != IdMap::kUnknown;
      }
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
    const std::uint32_t stack = ids.stacks.find(block.stack.value);
    usable &= index + 1 == trace.final_blocks.size() && stack != IdMap::kUnknown;
    trace.final_blocks.back().stack = StackId(stack);
  }
  for (const auto& [index, file_segment] : final_segments_) {
    trace.final_segments.push_back(file_segment);
    FinalSegment& segment = trace.final_segments.back();
    const std::uint32_t heap = ids.heaps.find(segment.heap.value);
    const std::uint32_t stream = ids.streams.find(segment.stream.value);
    const std::uint32_t stack = ids.stacks.find(segment.stack.value);
    usable &= index + 1 == trace.final_segments.size() && heap != IdMap::kUnknown && stream != IdMap::kUnknown && stack != IdMap::kUnknown &&
              std::uint64_t{segment.first_block} + segment.block_count <= trace.final_blocks.size();
    segment.heap = HeapId(static_cast<std::uint16_t>(heap));
    segment.stream = StreamId(stream);
    segment.stack = StackId(stack);
  }
  if (usable) return;
  trace.final_blocks.clear();
  trace.final_segments.clear();
  trace.count(kLostFinalState);
}

}  // namespace faultline
