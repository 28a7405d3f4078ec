#include "sources/torch_snapshot/object_machine.h"

#include <algorithm>
#include <cstring>
#include <limits>

namespace faultline::torch_snapshot {
namespace {

Action action_named(std::string_view text) {
  struct Named {
    std::string_view text;
    Action action;
  };
  static constexpr std::array<Named, 12> kActions = {{{"alloc", Action::kAlloc},
                                                      {"free_requested", Action::kFreeRequested},
                                                      {"free_completed", Action::kFreeCompleted},
                                                      {"segment_alloc", Action::kSegmentAlloc},
                                                      {"segment_free", Action::kSegmentFree},
                                                      {"segment_map", Action::kSegmentMap},
                                                      {"segment_unmap", Action::kSegmentUnmap},
                                                      {"oom", Action::kOutOfMemory},
                                                      {"snapshot", Action::kSnapshot},
                                                      {"user_defined", Action::kNote},
                                                      {"annotate", Action::kNote},
                                                      {"free", Action::kFreeCompleted}}};
  for (const Named& named : kActions) {
    if (named.text == text) return named.action;
  }
  return Action::kUnknown;
}

Error malformed(const char* what) { return {what, {}, {}}; }

std::uint64_t hash_values(std::span<const Value> values) { return hash_bytes(values.data(), values.size_bytes()); }

}  // namespace

ObjectMachine::ObjectMachine(Trace& trace) : trace_(trace) {
  name_uses_.emplace_back();  // the empty string
  for (std::size_t number = 1; number < kKeyCount; ++number) {
    const Value name = make_string(kKeyNames[number]);
    name_uses_[name.index()].key = static_cast<Key>(number);
  }
  pools_.push_back({});
  if (trace_.streams.empty()) trace_.streams.push_back({});
}

// ---- values

Value ObjectMachine::make_integer(std::int64_t number) {
  if (Value::fits_inline(number)) return Value::integer(number);
  big_integers_.push_back(number);
  return Value::make(Tag::kBigInt, big_integers_.size() - 1);
}

void ObjectMachine::push_unsigned(std::uint64_t number) {
  push_integer(static_cast<std::int64_t>(std::min<std::uint64_t>(number, std::numeric_limits<std::int64_t>::max())));
}

void ObjectMachine::push_float(double value) {
  floats_.push_back(value);
  push(Value::make(Tag::kFloat, floats_.size() - 1));
}

Value ObjectMachine::make_string(std::string_view text) {
  if (text.empty()) return Value::make(Tag::kString, 0);
  Value& recent = recent_names_[(text.size() * 31 + static_cast<unsigned char>(text.front())) & 255];
  if (recent.tag() == Tag::kString && names_.at(StringId(static_cast<std::uint32_t>(recent.index()))) == text)
    return recent;
  const StringId id = names_.intern(text);
  if (id.index() == name_uses_.size()) name_uses_.push_back({Key::kUnknown, action_named(text), {}});
  recent = Value::make(Tag::kString, id.value);
  return recent;
}

Value ObjectMachine::new_node(NodeKind node_kind, std::uint64_t node_payload) {
  nodes_.push_back(node_payload << 4 | static_cast<std::uint64_t>(node_kind));
  return Value::make(Tag::kNode, nodes_.size() - 1);
}

std::optional<std::int64_t> ObjectMachine::integer(Value value) const {
  if (value.tag() == Tag::kInt) return value.integer();
  if (value.tag() == Tag::kBigInt) return big_integers_[value.index()];
  if (value.tag() == Tag::kBool) return static_cast<std::int64_t>(value.index());
  return {};
}

std::optional<double> ObjectMachine::number(Value value) const {
  if (value.tag() == Tag::kFloat) return floats_[value.index()];
  if (const auto whole = integer(value)) return static_cast<double>(*whole);
  return {};
}

std::string_view ObjectMachine::text(Value value) const {
  return value.tag() == Tag::kString ? names_.at(StringId(static_cast<std::uint32_t>(value.index())))
                                     : std::string_view{};
}

std::span<const Value> ObjectMachine::cells(Value list_or_dict) const {
  if (list_or_dict.tag() != Tag::kNode) return {};
  const NodeKind node_kind = kind(list_or_dict);
  if (node_kind != NodeKind::kList && node_kind != NodeKind::kDict && node_kind != NodeKind::kTuple) return {};
  const Slice& slice = slices_[payload(list_or_dict)];
  return std::span(cells_).subspan(slice.first, slice.count);
}

// ---- building

Status ObjectMachine::close(NodeKind empty, Extend extend, const char* never_begun) {
  if (marks_.empty()) return malformed(never_begun);
  const std::size_t from = take_mark();
  const Value node = new_node(empty, 0);
  Status done = (this->*extend)(node, std::span(stack_).subspan(from));
  stack_.resize(from);
  push(node);
  return done;
}

Status ObjectMachine::extend_marked(Extend extend, const char* no_target) {
  if (marks_.empty() || marks_.back() == 0) return malformed(no_target);
  return extend_top(take_mark(), extend);
}

// What lies from there on goes into what lies before it.
Status ObjectMachine::extend_top(std::size_t from, Extend extend) {
  Status done = (this->*extend)(stack_[from - 1], std::span(stack_).subspan(from));
  stack_.resize(from);
  return done;
}

Status ObjectMachine::append_one() {
  if (open_count() < 2) return malformed("APPEND finds no list");
  return extend_top(stack_.size() - 1, &ObjectMachine::extend_list);
}

Status ObjectMachine::set_one() {
  if (open_count() < 3) return malformed("SETITEM finds no dict");
  return extend_top(stack_.size() - 2, &ObjectMachine::extend_dict);
}

Status ObjectMachine::close_tuple(std::size_t count) {
  if (open_count() < count) return malformed("a tuple wants more items than there are");
  const Value tuple = new_node(NodeKind::kTuple, 0);
  extend_cells(tuple, NodeKind::kTuple, std::span(stack_).subspan(stack_.size() - count));
  stack_.resize(stack_.size() - count);
  push(tuple);
  return Ok{};
}

Status ObjectMachine::close_marked_tuple() {
  if (marks_.empty()) return malformed("a tuple is closed that was never begun");
  return close_tuple(stack_.size() - take_mark());
}

Status ObjectMachine::memo_put(std::uint64_t index) {
  // Writers number their memo without gaps. A small slack is harmless; a jump is an attempt to make us allocate.
  if (index > memo_.size() + 1024) return malformed("a memo number jumps ahead");
  memo_is_stable_ = memo_is_stable_ && index == memo_.size();
  if (index >= memo_.size()) memo_.resize(index + 1);
  memo_[index] = stack_.back();
  return Ok{};
}

void ObjectMachine::extend_cells(Value node, NodeKind node_kind, std::span<const Value> values) {
  const NodeKind before = kind(node);
  if (before == NodeKind::kEmptyList || before == NodeKind::kEmptyDict ||
      (before == NodeKind::kTuple && node_kind == NodeKind::kTuple)) {
    slices_.push_back({cells_.size(), 0, 0});
    set_node(node, node_kind, slices_.size() - 1);
  }
  Slice& slice = slices_[payload(node)];
  const std::uint64_t wanted = slice.count + values.size();
  if (slice.first + slice.room == cells_.size() && wanted > slice.room) {  // the last one grows where it is
    slice.room = wanted;
    cells_.resize(slice.first + slice.room);
  } else if (wanted > slice.room) {  // others move to the end, with room to spare: lists that grow in turns stay linear
    const std::uint64_t first = cells_.size();
    slice.room = wanted * 2;
    cells_.resize(first + slice.room);
    std::copy_n(cells_.begin() + static_cast<std::ptrdiff_t>(slice.first), slice.count,
                cells_.begin() + static_cast<std::ptrdiff_t>(first));
    slice.first = first;
  }
  std::copy(values.begin(), values.end(), cells_.begin() + static_cast<std::ptrdiff_t>(slice.first + slice.count));
  slice.count = wanted;
}

Status ObjectMachine::extend_list(Value list, std::span<const Value> items) {
  if (list.tag() != Tag::kNode) return malformed("items are appended to something that is no list");
  if (items.empty()) return Ok{};
  const NodeKind list_kind = kind(list);
  if (list_kind == NodeKind::kEmptyList) {
    if (items[0].tag() == Tag::kNode) {
      switch (kind(items[0])) {
        case NodeKind::kFrame: {
          const std::optional<StackId> stack = stack_of_frames(items);
          if (!stack) break;
          set_node(list, NodeKind::kStack, stack->value);
          return Ok{};
        }
        case NodeKind::kEntry: return extend_records(list, NodeKind::kEntryList, items);
        case NodeKind::kBlock: return extend_records(list, NodeKind::kBlockList, items);
        case NodeKind::kSegment: return extend_records(list, NodeKind::kSegmentList, items);
        default: break;
      }
    }
    extend_cells(list, NodeKind::kList, items);
    return Ok{};
  }
  switch (list_kind) {
    case NodeKind::kList: extend_cells(list, NodeKind::kList, items); return Ok{};
    case NodeKind::kStack: {  // a list that arrives in parts: further frames are outer callers
      std::vector<FrameId> frames;
      for (StackId at(static_cast<std::uint32_t>(payload(list))); at.value != 0; at = trace_.stacks.parent(at))
        frames.push_back(trace_.stacks.frame_id(at));
      for (const Value item : items) {
        if (!is_node(item, NodeKind::kFrame)) return malformed("a list of frames holds something else");
        frames.push_back(FrameId(static_cast<std::uint32_t>(payload(item))));
      }
      // Each part makes a new stack of all frames so far. Writers use parts of a thousand; a frame at a time would be quadratic.
      regrown_frames_ += frames.size();
      appended_frames_ += items.size();
      if (regrown_frames_ > kMostRegrownFrames + 8 * appended_frames_)
        return malformed("a list of frames grows bit by bit");
      set_node(list, NodeKind::kStack, trace_.stacks.intern(frames).value);
      return Ok{};
    }
    case NodeKind::kEntryList:
    case NodeKind::kBlockList:
    case NodeKind::kSegmentList: return extend_records(list, list_kind, items);
    default: return malformed("items are appended to something that is no list");
  }
}

Status ObjectMachine::extend_records(Value list, NodeKind list_kind, std::span<const Value> items) {
  const NodeKind item_kind = list_kind == NodeKind::kEntryList   ? NodeKind::kEntry
                             : list_kind == NodeKind::kBlockList ? NodeKind::kBlock
                                                                 : NodeKind::kSegment;
  if (kind(list) == NodeKind::kEmptyList) {
    record_lists_.emplace_back();
    set_node(list, list_kind, record_lists_.size() - 1);
  }
  std::vector<Run>& runs = record_lists_[payload(list)];
  for (const Value item : items) {
    if (!is_node(item, item_kind)) return malformed("a list of trace entries, blocks or segments holds something else");
    const std::uint64_t record = payload(item);
    if (!runs.empty() && runs.back().first + runs.back().count == record) {
      ++runs.back().count;
    } else {
      runs.push_back({record, 1});
    }
  }
  return Ok{};
}

Status ObjectMachine::extend_dict(Value dict, std::span<const Value> pairs) {
  if (dict.tag() != Tag::kNode) return malformed("keys are set on something that is no dict");
  if (pairs.size() % 2 != 0) return malformed("a dict has a key without a value");
  const NodeKind before = kind(dict);
  if (before == NodeKind::kEmptyDict) {
    if (pairs.empty() || lower_dict(dict, pairs)) return Ok{};
  } else if (before != NodeKind::kDict) {
    return malformed("a dict changes after it was complete");
  }
  extend_cells(dict, NodeKind::kDict, pairs);
  return Ok{};
}

// ---- lowering

bool ObjectMachine::lower_dict(Value dict, std::span<const Value> pairs) {
  fields_.seen = 0;
  std::uint64_t unknown = 0;
  for (std::size_t at = 0; at < pairs.size(); at += 2) {
    const Key name = key(pairs[at]);
    if (name == Key::kUnknown) {
      ++unknown;
      continue;
    }
    fields_.values[static_cast<std::size_t>(name)] = pairs[at + 1];
    fields_.seen |= std::uint64_t{1} << static_cast<int>(name);
  }
  if (fields_.has(Key::k_action)) {
    lower_entry(dict);
  } else if (fields_.has(Key::k_filename) && fields_.has(Key::k_line)) {
    lower_frame(dict);
  } else if (fields_.has(Key::k_blocks) && fields_.has(Key::k_total_size)) {
    lower_segment(dict);
  } else if (fields_.has(Key::k_state) && fields_.has(Key::k_size)) {
    lower_block(dict);
  } else if (fields_.has(Key::k_stage) && fields_.has(Key::k_time_us)) {
    lower_annotation(dict);
  } else if (fields_.has(Key::k_real_size)) {
    lower_history(dict);
  } else {
    return false;
  }
  keys_seen_ |= fields_.seen;
  if (unknown != 0) {
    for (std::size_t at = 0; at < pairs.size(); at += 2) {
      if (key(pairs[at]) == Key::kUnknown && pairs[at].tag() == Tag::kString) ++unknown_keys_[pairs[at].index()];
    }
  }
  return true;
}

std::uint64_t ObjectMachine::unsigned_field(Key wanted) const {
  if (!fields_.has(wanted)) return 0;
  const auto value = integer(fields_[wanted]);
  return value && *value > 0 ? static_cast<std::uint64_t>(*value) : 0;
}

std::uint64_t ObjectMachine::size_field(Key wanted) const {
  if (!fields_.has(wanted) || fields_[wanted].tag() == Tag::kNone) return 0;
  const auto value = integer(fields_[wanted]);
  return value && *value >= 0 ? static_cast<std::uint64_t>(*value) : ~std::uint64_t{0};
}

StringId ObjectMachine::trace_string(Value value) {
  if (value.tag() != Tag::kString || value.index() == 0) return {};
  StringId& known = name_uses_[value.index()].in_trace;
  if (known.value == 0) known = trace_.strings.intern(names_.at(StringId(static_cast<std::uint32_t>(value.index()))));
  return known;
}

StreamId ObjectMachine::stream_of(Value handle) {
  const auto number_or_none = integer(handle);
  const auto raw = static_cast<std::uint64_t>(number_or_none.value_or(0));
  if (raw == 0) return {};
  if (raw == last_stream_handle_) return last_stream_;
  const auto [at, fresh] = streams_.try_emplace(raw, static_cast<std::uint32_t>(trace_.streams.size()));
  if (fresh) trace_.streams.push_back({0, raw});
  last_stream_handle_ = raw;
  last_stream_ = StreamId(at->second);
  return last_stream_;
}

std::uint16_t ObjectMachine::pool_of(Value tuple) {
  const std::span<const Value> ids = cells(tuple);
  if (ids.size() != 2) return 0;
  const PoolKey wanted{static_cast<std::uint64_t>(integer(ids[0]).value_or(0)),
                       static_cast<std::uint64_t>(integer(ids[1]).value_or(0))};
  if (wanted == PoolKey{}) return 0;
  const auto found = pool_numbers_.find({wanted.major, wanted.minor});
  if (found != pool_numbers_.end()) return found->second;
  if (pools_.size() >= 4096) {
    trace_.count("private pools beyond 4096");
    return 0;
  }
  pools_.push_back(wanted);
  return pool_numbers_[{wanted.major, wanted.minor}] = static_cast<std::uint16_t>(pools_.size() - 1);
}

// None when the list holds something else than frames. Equal lists are recognised by their values alone, without looking at a frame.
std::optional<StackId> ObjectMachine::stack_of_frames(std::span<const Value> frames) {
  const std::uint64_t hash = hash_values(frames);
  const auto [first, last] = stack_cache_.equal_range(hash);
  for (auto at = first; at != last; ++at) {
    const CachedStack& cached = at->second;
    if (cached.count == frames.size() &&
        std::memcmp(cached_values_.data() + cached.first, frames.data(), frames.size_bytes()) == 0)
      return cached.stack;
  }
  std::vector<FrameId> ids;
  ids.reserve(frames.size());
  for (const Value frame : frames) {
    if (!is_node(frame, NodeKind::kFrame)) return {};
    ids.emplace_back(static_cast<std::uint32_t>(payload(frame)));
  }
  const StackId stack = trace_.stacks.intern(ids);
  stack_cache_.emplace(hash, CachedStack{cached_values_.size(), static_cast<std::uint32_t>(frames.size()), stack});
  cached_values_.insert(cached_values_.end(), frames.begin(), frames.end());
  return stack;
}

StackId ObjectMachine::stack_from_field(Value value) const {
  return is_node(value, NodeKind::kStack) ? StackId(static_cast<std::uint32_t>(payload(value))) : StackId{};
}

void ObjectMachine::lower_frame(Value dict) {
  const auto line = integer(fields_[Key::k_line]).value_or(0);
  Frame frame{trace_string(fields_.has(Key::k_name) ? fields_[Key::k_name] : Value{}),
              trace_string(fields_[Key::k_filename]), 0};
  // 2^64-1 stands for "no line".
  if (line > 0 && line < std::numeric_limits<std::int32_t>::max()) frame.line = static_cast<std::uint32_t>(line);
  set_node(dict, NodeKind::kFrame, trace_.stacks.intern_frame(frame).value);
}

void ObjectMachine::lower_entry(Value dict) {
  const Value action_value = fields_[Key::k_action];
  const Action action = action_value.tag() == Tag::kString ? name_uses_[action_value.index()].action : Action::kUnknown;
  Event event;
  event.size_bytes = size_field(Key::k_size);
  event.address = unsigned_field(Key::k_addr);
  if (fields_.has(Key::k_time_us))
    event.time_ns =
        static_cast<std::int64_t>(std::min<std::uint64_t>(unsigned_field(Key::k_time_us), std::uint64_t{1} << 53)) *
        1000;
  if (fields_.has(Key::k_stream)) event.stream = stream_of(fields_[Key::k_stream]);
  if (fields_.has(Key::k_pool_id)) event.heap = HeapId(pool_of(fields_[Key::k_pool_id]));
  if (fields_.has(Key::k_frames)) event.stack = stack_from_field(fields_[Key::k_frames]);
  if (event.stack.value == 0 && fields_.has(Key::k_forward_frames)) {
    event.stack = stack_of_lines(fields_[Key::k_forward_frames]);
    if (event.stack.value != 0) trace_.count("stacks taken from forward_frames");
  }
  event.set(kAddressKnown);
  // The action travels in `thread` until the builder gives the event its kind: an entry is exactly one event, built in place.
  event.thread = ThreadId(static_cast<std::uint16_t>(action));
  if (action == Action::kAlloc && fields_.has(Key::k_user_metadata) && !text(fields_[Key::k_user_metadata]).empty()) {
    Tensor tensor;
    tensor.name = trace_string(fields_[Key::k_user_metadata]);
    event.extra = trace_.tensors.intern(tensor).value;
  }
  if (action == Action::kOutOfMemory) event.address = size_field(Key::k_device_free);
  if (action == Action::kUnknown) trace_.count("entries with an unknown action");
  trace_.events.push_back(event);
  set_node(dict, NodeKind::kEntry, trace_.events.size() - 1);
}

void ObjectMachine::lower_block(Value dict) {
  FinalBlock block;
  block.address = unsigned_field(Key::k_address);
  block.size_bytes = size_field(Key::k_size);
  block.requested_bytes = fields_.has(Key::k_requested_size) ? size_field(Key::k_requested_size) : block.size_bytes;
  const std::string_view state = text(fields_[Key::k_state]);
  if (state == "active_allocated") {
    block.state = FinalBlock::State::kActive;
  } else if (state == "active_pending_free" || state == "active_awaiting_free") {
    block.state = FinalBlock::State::kPendingFree;
  } else if (state != "inactive") {
    trace_.count("blocks with an unknown state");
  }
  if (fields_.has(Key::k_frames)) block.stack = stack_from_field(fields_[Key::k_frames]);
  if (fields_.has(Key::k_history)) {  // PyTorch 2.0
    const std::span<const Value> history = cells(fields_[Key::k_history]);
    if (!history.empty() && is_node(history[0], NodeKind::kHistory)) block.stack = history_stacks_[payload(history[0])];
  }
  trace_.final_blocks.push_back(block);
  set_node(dict, NodeKind::kBlock, trace_.final_blocks.size() - 1);
}

void ObjectMachine::lower_history(Value dict) {
  history_stacks_.push_back(fields_.has(Key::k_frames) ? stack_from_field(fields_[Key::k_frames]) : StackId{});
  set_node(dict, NodeKind::kHistory, history_stacks_.size() - 1);
}

void ObjectMachine::lower_segment(Value dict) {
  FinalSegment segment;
  segment.address = unsigned_field(Key::k_address);
  segment.size_bytes = size_field(Key::k_total_size);
  segment.device = static_cast<std::uint16_t>(std::min<std::uint64_t>(unsigned_field(Key::k_device), 1023));
  if (fields_.has(Key::k_stream)) segment.stream = stream_of(fields_[Key::k_stream]);
  if (fields_.has(Key::k_segment_pool_id)) segment.heap = HeapId(pool_of(fields_[Key::k_segment_pool_id]));
  if (fields_.has(Key::k_frames)) segment.stack = stack_from_field(fields_[Key::k_frames]);
  if (fields_.has(Key::k_segment_type)) segment.is_small = text(fields_[Key::k_segment_type]) == "small";
  if (fields_.has(Key::k_is_expandable))
    segment.is_expandable = integer(fields_[Key::k_is_expandable]).value_or(0) != 0;
  const Value blocks = fields_[Key::k_blocks];
  if (is_node(blocks, NodeKind::kBlockList)) {
    const std::vector<Run>& runs = record_lists_[payload(blocks)];
    // Blocks are written inside their segment, so they are one run, and new; anything else is not PyTorch's doing.
    if (runs.size() == 1 && runs[0].first >= owned_blocks_) {
      owned_blocks_ = runs[0].first + runs[0].count;
      segment.first_block = static_cast<std::uint32_t>(runs[0].first);
      segment.block_count = static_cast<std::uint32_t>(runs[0].count);
      std::uint64_t running = segment.address;  // PyTorch 2.0 gives blocks no address: they follow one another
      for (std::uint64_t at = runs[0].first; at < runs[0].first + runs[0].count; ++at) {
        FinalBlock& block = trace_.final_blocks[at];
        if (block.address == 0) block.address = running;
        running = block.address + block.size_bytes;
      }
    } else {
      trace_.count("segments whose blocks are scattered");
    }
  }
  trace_.final_segments.push_back(segment);
  claimed_bytes_.push_back(
      std::max({size_field(Key::k_allocated_size), size_field(Key::k_active_size), size_field(Key::k_requested_size)}));
  set_node(dict, NodeKind::kSegment, trace_.final_segments.size() - 1);
}

void ObjectMachine::lower_annotation(Value dict) {
  Annotation annotation;
  annotation.name = trace_string(fields_.has(Key::k_name) ? fields_[Key::k_name] : Value{});
  annotation.device = static_cast<std::uint16_t>(std::min<std::uint64_t>(unsigned_field(Key::k_device), 1023));
  annotation.time_ns =
      static_cast<std::int64_t>(std::min<std::uint64_t>(unsigned_field(Key::k_time_us), std::uint64_t{1} << 53)) * 1000;
  annotation.begin = text(fields_[Key::k_stage]) == "START";
  annotations_.push_back(annotation);
  set_node(dict, NodeKind::kAnnotation, annotations_.size() - 1);
}

}  // namespace faultline::torch_snapshot
