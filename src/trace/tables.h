// The trace's interned tables: strings, stacks, tensors. Each value is stored once and named by a small id; id 0 is the empty one.
//
// Stacks are a tree that grows inward: the root is the empty stack, a node is its caller plus one frame, so two stacks share the frames of
// their common callers and a stack costs one node. Walking parent() from a stack visits its frames innermost first.
//
// A text is cut at 64 KiB: it may be a name that every event has, and is copied wherever it is spoken of.
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/hash.h"
#include "trace/event.h"

namespace faultline {

class StringTable {
 public:
  StringTable() { intern({}); }
  StringTable(const StringTable&) = delete;
  StringTable& operator=(const StringTable&) = delete;
  StringTable(StringTable&&) = default;
  StringTable& operator=(StringTable&&) = default;

  StringId intern(std::string_view text);
  std::string_view at(StringId id) const { return strings_[id.index()]; }
  std::size_t size() const { return strings_.size(); }
  std::uint64_t cut_count() const { return cut_count_; }

 private:
  static constexpr std::size_t kLongestBytes = 64 * 1024;

  std::uint64_t cut_count_ = 0;
  std::deque<std::string> strings_;  // a deque: the map's keys point into it
  HashMap<std::string_view, std::uint32_t> ids_;
};

struct Frame {
  StringId function;
  StringId file;
  std::uint32_t line = 0;  // 0: unknown
  friend bool operator==(const Frame&, const Frame&) = default;
};

class StackTable {
 public:
  StackTable();
  FrameId intern_frame(const Frame& frame);
  // The stack made by a call from `caller` into `frame`.
  StackId push(StackId caller, FrameId frame);
  // Frames innermost first, as PyTorch and tracebacks-of-C list them.
  StackId intern(std::span<const FrameId> innermost_first);

  StackId parent(StackId stack) const { return nodes_[stack.index()].parent; }
  FrameId frame_id(StackId stack) const { return nodes_[stack.index()].frame; }
  const Frame& frame(StackId stack) const { return frames_[frame_id(stack).index()]; }
  const Frame& frame(FrameId id) const { return frames_[id.index()]; }
  std::uint32_t depth(StackId stack) const { return nodes_[stack.index()].depth; }
  std::size_t size() const { return nodes_.size(); }          // the empty stack included
  std::size_t frame_count() const { return frames_.size(); }  // the empty frame included

 private:
  struct Node {
    StackId parent;
    FrameId frame;
    std::uint32_t depth = 0;
  };
  struct FrameHash {
    std::size_t operator()(const Frame& f) const noexcept {
      return static_cast<std::size_t>(
          hash_onto(hash_number(std::uint64_t{f.function.value} << 32 | f.file.value), f.line));
    }
  };
  std::vector<Frame> frames_;
  std::vector<Node> nodes_;
  std::unordered_map<Frame, std::uint32_t, FrameHash> frame_ids_;
  HashMap<std::uint64_t, std::uint32_t> node_ids_;  // parent << 32 | frame
};

// What is known of a tensor behind an allocation.
struct Tensor {
  std::vector<std::int64_t> shape;
  StringId dtype;  // "float32"
  StringId op;     // the operation that made it
  // a name the program or a rule's reader would recognise; of a module's tensors its path, "encoder.layers.3.linear1"
  StringId name;
  // what the operation was given: "float16[8,1024,768] float32[768]", a tensor on the host as "float64[100]@cpu"
  StringId operands;
  friend bool operator==(const Tensor&, const Tensor&) = default;
};

inline constexpr std::size_t kMostDimensions = 256;  // frameworks stop at 64

// Of every field: a hash that leaves one out puts all values that differ in it alone on one place.
std::uint64_t hash_of(const Tensor& tensor);

template <class ValueType, class IdType>
class InternedTable {
 public:
  using Value = ValueType;
  using Id = IdType;

  InternedTable() { values_.emplace_back(); }
  IdType intern(const Value& value) {
    const std::uint64_t hash = hash_of(value);
    const auto [first, last] = ids_.equal_range(hash);
    for (auto at = first; at != last; ++at) {
      if (values_[at->second] == value) return IdType(at->second);
    }
    const auto id = static_cast<std::uint32_t>(values_.size());
    ids_.emplace(hash, id);
    values_.push_back(value);
    return IdType(id);
  }
  const Value& at(IdType id) const { return values_[id.index()]; }
  std::size_t size() const { return values_.size(); }  // the empty one included

 private:
  std::vector<Value> values_;
  HashMultimap<std::uint64_t, std::uint32_t> ids_;  // by hash; equality is checked against values_
};

using TensorTable = InternedTable<Tensor, TensorId>;

}  // namespace faultline
