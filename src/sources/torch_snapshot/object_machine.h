// ObjectMachine: the stack machine that snapshot files are read with, and the place where their objects turn into trace records.
//
// Readers (pickle, JSON) push values, mark, and close lists and dicts. The machine keeps no general object tree: the moment a dict is
// closed its keys say what it is, and it is lowered at once:
//
//   {action, addr, size, …}      → an Event appended to the trace          (node kEntry)
//   {filename, line, name}       → a Frame in the trace's stack table      (node kFrame)
//   [frame, frame, …]            → a StackId                               (node kStack)
//   {address, size, state, …}    → a FinalBlock                            (node kBlock)
//   {blocks, total_size, …}      → a FinalSegment                          (node kSegment)
//   {stage, name, time_us, …}    → an Annotation                           (node kAnnotation)
//   anything else                → kept as it is                           (kList, kDict)
//
// So memory stays near the size of the trace, and shared frames stay shared. A lowered dict cannot change afterwards (no writer does that);
// an attempt is an Error. Nothing here recurses over input, and no value is ever executed or imported.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/hash.h"
#include "base/result.h"
#include "sources/torch_snapshot/keys.h"
#include "sources/torch_snapshot/value.h"
#include "trace/trace.h"

namespace faultline::torch_snapshot {

enum class NodeKind : std::uint8_t {
  kEmptyList,
  kEmptyDict,
  kList,
  kDict,
  kTuple,
  kEntry,
  kEntryList,
  kFrame,
  kStack,
  kBlock,
  kBlockList,
  kSegment,
  kSegmentList,
  kAnnotation,
  kHistory
};

enum class Action : std::uint8_t {
  kUnknown,
  kAlloc,
  kFreeRequested,
  kFreeCompleted,
  kSegmentAlloc,
  kSegmentFree,
  kSegmentMap,
  kSegmentUnmap,
  kOutOfMemory,
  kSnapshot,
  kNote
};

struct Annotation {
  StringId name;
  std::uint16_t device = 0;
  std::int64_t time_ns = 0;
  bool begin = false;
};

// Consecutive records of one kind: [first, first + count).
struct Run {
  std::uint64_t first = 0;
  std::uint64_t count = 0;
};

// Pool ids as they stand in entries and segments, before devices are known; index 0 is the default pool (0, 0).
struct PoolKey {
  std::uint64_t major = 0;
  std::uint64_t minor = 0;
  friend bool operator==(const PoolKey&, const PoolKey&) = default;
};

class ObjectMachine {
 public:
  explicit ObjectMachine(Trace& trace);
  // Address space for an input of about this many objects; what is not used costs nothing.
  void reserve(std::size_t objects) {
    nodes_.reserve(objects);
    memo_.reserve(objects);
  }

  // -- values
  void push(Value value) { stack_.push_back(value); }
  void push_integer(std::int64_t number) { push(make_integer(number)); }
  void push_unsigned(std::uint64_t number);  // beyond the signed range it saturates
  void push_float(double number);
  void push_string(std::string_view text) { push(make_string(text)); }
  void push_none() { push(Value::make(Tag::kNone, 0)); }
  void push_bool(bool value) { push(Value::make(Tag::kBool, value)); }
  void push_empty_list() { push(new_node(NodeKind::kEmptyList, 0)); }
  void push_empty_dict() { push(new_node(NodeKind::kEmptyDict, 0)); }
  std::size_t depth() const { return stack_.size(); }
  // Whether there are more objects than the bytes read so far can stand for: an entry takes some seventy bytes, an empty list one.
  bool has_too_many(std::uint64_t bytes_read) const {
    const std::uint64_t objects =
        stack_.size() + marks_.size() + nodes_.size() + memo_.size() + floats_.size() + big_integers_.size();
    return objects > kObjectSlack + bytes_read / 4;
  }
  Value top() const { return stack_.back(); }
  void mark() { marks_.push_back(stack_.size()); }
  std::size_t mark_count() const { return marks_.size(); }

  // -- building. The reader has checked nothing: each of these checks its operands.
  // MARK items… → list; MARK key value … → dict
  Status close_list() {
    return close(NodeKind::kEmptyList, &ObjectMachine::extend_list, "a list is closed that was never begun");
  }
  Status close_dict() {
    return close(NodeKind::kEmptyDict, &ObjectMachine::extend_dict, "a dict is closed that was never begun");
  }
  Status append_one();  // list item → list
  Status set_one();     // dict key value → dict
  // list MARK items… → list; dict MARK key value … → dict
  Status append_marked() { return extend_marked(&ObjectMachine::extend_list, "APPENDS finds no list"); }
  Status set_marked() { return extend_marked(&ObjectMachine::extend_dict, "SETITEMS finds no dict"); }
  Status close_tuple(std::size_t count);
  Status close_marked_tuple();

  // -- memo (pickles only)
  void memoize() { memo_.push_back(stack_.back()); }
  Status memo_put(std::uint64_t index);
  bool memo_is_stable() const {
    return memo_is_stable_;
  }  // no entry was ever replaced, so equal look-ups mean equal values
  std::span<const Value> memo() const { return memo_; }

  // The empty list on top becomes this stack, as if its frames had been appended.
  void make_top_stack(StackId stack) { set_node(stack_.back(), NodeKind::kStack, stack.value); }
  std::optional<StackId> top_stack() const {
    return is_node(stack_.back(), NodeKind::kStack)
               ? std::optional(StackId(static_cast<std::uint32_t>(payload(stack_.back()))))
               : std::nullopt;
  }

  // -- what came out
  NodeKind kind(Value value) const { return static_cast<NodeKind>(nodes_[value.index()] & 15); }
  bool is_node(Value value, NodeKind wanted) const { return value.tag() == Tag::kNode && kind(value) == wanted; }
  std::uint64_t payload(Value value) const { return nodes_[value.index()] >> 4; }
  std::span<const Value> cells(Value list_or_dict) const;
  std::span<const Run> runs(Value record_list) const { return record_lists_[payload(record_list)]; }
  std::optional<std::int64_t> integer(Value value) const;
  std::optional<double> number(Value value) const;
  std::string_view text(Value value) const;  // empty for anything that is not a string
  Key key(Value value) const { return value.tag() == Tag::kString ? name_uses_[value.index()].key : Key::kUnknown; }
  std::span<const Annotation> annotations() const { return annotations_; }
  std::span<const PoolKey> pools() const { return pools_; }
  bool has_seen(Key wanted) const {
    return keys_seen_ >> static_cast<int>(wanted) & 1;
  }  // in any lowered dict: tells the PyTorch version

 private:
  struct Fields {  // the pairs of the dict at hand, by key
    std::array<Value, kKeyCount> values;
    std::uint64_t seen = 0;
    bool has(Key wanted) const { return seen >> static_cast<int>(wanted) & 1; }
    Value operator[](Key wanted) const { return values[static_cast<std::size_t>(wanted)]; }
  };
  struct Slice {  // a generic list's or dict's cells
    std::uint64_t first = 0;
    std::uint64_t count = 0;
    std::uint64_t room = 0;  // cells it may grow into without moving
  };
  struct CachedStack {
    std::uint64_t first = 0;  // into cached_values_
    std::uint32_t count = 0;
    StackId stack;
  };

  static constexpr std::uint64_t kMostRegrownFrames = 1'000'000;
  static constexpr std::uint64_t kObjectSlack = 4'000'000;

  // Values that an opcode may take off the stack: those above the last mark.
  std::size_t open_count() const { return stack_.size() - (marks_.empty() ? 0 : marks_.back()); }
  Value make_integer(std::int64_t number);
  Value make_string(std::string_view text);
  Value new_node(NodeKind node_kind, std::uint64_t node_payload);
  void set_node(Value value, NodeKind node_kind, std::uint64_t node_payload) {
    nodes_[value.index()] = node_payload << 4 | static_cast<std::uint64_t>(node_kind);
  }

  std::size_t take_mark() {
    const std::size_t from = marks_.back();
    marks_.pop_back();
    return from;
  }
  using Extend = Status (ObjectMachine::*)(Value, std::span<const Value>);
  Status close(NodeKind empty, Extend extend, const char* never_begun);
  Status extend_marked(Extend extend, const char* no_target);
  Status extend_top(std::size_t from, Extend extend);
  Status extend_list(Value list, std::span<const Value> items);
  Status extend_dict(Value dict, std::span<const Value> pairs);
  Status extend_records(Value list, NodeKind list_kind, std::span<const Value> items);
  void extend_cells(Value node, NodeKind node_kind, std::span<const Value> values);
  bool lower_dict(Value dict, std::span<const Value> pairs);
  void lower_entry(Value dict);
  void lower_frame(Value dict);
  void lower_block(Value dict);
  void lower_segment(Value dict);
  void lower_annotation(Value dict);
  void lower_history(Value dict);

  std::optional<StackId> stack_of_frames(std::span<const Value> frames);
  StackId stack_from_field(Value value) const;
  StackId stack_of_lines(Value list);  // forward_frames: a list of traceback lines
  StringId trace_string(Value value);
  StreamId stream_of(Value handle);
  std::uint16_t pool_of(Value tuple);
  std::uint64_t unsigned_field(Key wanted) const;
  std::uint64_t size_field(Key wanted) const;  // all bits set where it is negative or no whole number

  Trace& trace_;
  std::vector<Value> stack_;
  std::vector<std::size_t> marks_;
  std::vector<Value> memo_;
  bool memo_is_stable_ = true;
  std::vector<std::uint64_t> nodes_;  // payload << 4 | kind

  StringTable names_;                      // the file's strings; ids are Value payloads
  std::array<Value, 256> recent_names_{};  // by length and first byte: the few strings that repeat in every entry
  struct NameUse {
    Key key = Key::kUnknown;
    Action action = Action::kUnknown;
    StringId in_trace;  // filled on demand
  };
  std::vector<NameUse> name_uses_;  // by names_ id
  std::vector<std::int64_t> big_integers_;
  std::vector<double> floats_;
  std::vector<Value> cells_;
  std::vector<Slice> slices_;
  std::vector<std::vector<Run>> record_lists_;  // of entries, blocks or segments
  std::vector<Annotation> annotations_;
  std::vector<PoolKey> pools_;
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::uint16_t> pool_numbers_;  // by major and minor
  std::vector<StackId> history_stacks_;
  std::vector<std::uint64_t> claimed_bytes_;  // by final segment: the largest size that it states of its blocks
  std::uint64_t owned_blocks_ = 0;            // final blocks below this belong to a segment already
  std::uint64_t regrown_frames_ = 0;          // frames interned for stacks that came in parts …
  std::uint64_t appended_frames_ = 0;         // … and those among them that were new

  std::vector<Value> cached_values_;
  HashMultimap<std::uint64_t, CachedStack> stack_cache_;
  HashMap<std::uint64_t, StackId> line_stacks_;  // by node
  HashMap<std::uint64_t, std::uint32_t> streams_;
  std::uint64_t last_stream_handle_ = 0;
  StreamId last_stream_;
  std::map<std::uint64_t, std::uint64_t> unknown_keys_;  // by names_ id, so in the order of the file

  Fields fields_;
  std::uint64_t keys_seen_ = 0;
  friend class TraceBuilder;
};

}  // namespace faultline::torch_snapshot
