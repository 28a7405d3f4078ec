#include "trace/tables.h"

#include <algorithm>

namespace faultline {

StringId StringTable::intern(std::string_view text) {
  if (text.size() > kLongestBytes) {
    text = text.substr(0, kLongestBytes);
    ++cut_count_;
  }
  if (const auto found = ids_.find(text); found != ids_.end()) return StringId(found->second);
  const auto id = static_cast<std::uint32_t>(strings_.size());
  strings_.emplace_back(text);
  ids_.emplace(strings_.back(), id);
  return StringId(id);
}

StackTable::StackTable() {
  frames_.emplace_back();
  nodes_.emplace_back();
  frame_ids_.emplace(Frame{}, 0);
}

FrameId StackTable::intern_frame(const Frame& frame) {
  const auto [at, fresh] = frame_ids_.try_emplace(frame, static_cast<std::uint32_t>(frames_.size()));
  if (fresh) frames_.push_back(frame);
  return FrameId(at->second);
}

namespace {

// Whoever walks every stack walks this much of each: without an end to it the work grows with the square of the input.
// Of a deeper one what lies in between is left out: the innermost frame is always the true one.
constexpr std::uint32_t kDeepestStack = 1024;

}  // namespace

StackId StackTable::push(StackId caller, FrameId frame) {
  if (nodes_[caller.index()].depth == kDeepestStack) caller = parent(caller);
  const std::uint64_t key = std::uint64_t{caller.value} << 32 | frame.value;
  const auto [at, fresh] = node_ids_.try_emplace(key, static_cast<std::uint32_t>(nodes_.size()));
  if (fresh) nodes_.push_back({caller, frame, nodes_[caller.index()].depth + 1});
  return StackId(at->second);
}

StackId StackTable::intern(std::span<const FrameId> innermost_first) {
  StackId stack;
  innermost_first = innermost_first.first(std::min<std::size_t>(innermost_first.size(), kDeepestStack));
  for (auto at = innermost_first.rbegin(); at != innermost_first.rend(); ++at) stack = push(stack, *at);
  return stack;
}

std::uint64_t hash_of(const Tensor& tensor) {
  std::uint64_t hash = hash_number(std::uint64_t{tensor.dtype.value} << 32 | tensor.op.value);
  hash = hash_onto(hash, std::uint64_t{tensor.name.value} << 32 | tensor.operands.value);
  for (const std::int64_t extent : tensor.shape) hash = hash_onto(hash, static_cast<std::uint64_t>(extent));
  return hash;
}

}  // namespace faultline
