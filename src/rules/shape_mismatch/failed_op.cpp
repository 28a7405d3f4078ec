#include "rules/shape_mismatch/failed_op.h"

#include "base/hash.h"

namespace faultline {
namespace {

constexpr std::size_t kMaxOperands = 64;

bool says_what_it_is(std::string_view word) {
  return word == "parameter" || word == "buffer" || word == "attribute" || word == "variable";
}

// What a program that has died of an exception no longer does.
bool goes_on(const Event& event) {
  switch (event.kind) {
    case EventKind::kFree:
    case EventKind::kUnmap:
    case EventKind::kHostUnpin:
    case EventKind::kTensorNote: return false;
    case EventKind::kOpEnd: return !event.has(kFailed);
    default: return true;
  }
}

Given given_of(const Trace& trace, const Lifetimes& lifetimes, const Event& note) {
  const Tensor& tensor = trace.tensors.at(TensorId(note.extra));
  Given given;
  given.shape = tensor.shape;
  given.dtype = trace.strings.at(tensor.dtype);
  given.argument = trace.strings.at(tensor.operands);
  given.name = trace.strings.at(tensor.name);
  const std::string_view op = trace.strings.at(tensor.op);
  (says_what_it_is(op) ? given.kind : given.made_by) = op;
  given.made_at = note.stack;
  given.whole = tensor.shape;
  if (note.allocation.value == 0 || lifetimes.of(note.allocation).born == kNever) return given;
  const Event& birth = lifetimes.birth(note.allocation);
  if (given.made_at.value == 0) given.made_at = birth.stack;
  if (birth.kind != EventKind::kAlloc) return given;  // pinned, but host memory all the same
  given.allocation = note.allocation;
  if (birth.extra == 0) return given;
  const Tensor& born = trace.tensors.at(TensorId(birth.extra));
  if (element_count(born.shape) == element_count(given.shape)) given.whole = born.shape;
  if (given.made_by.empty()) given.made_by = trace.strings.at(born.op);
  return given;
}

}  // namespace

std::vector<FailedOp> failed_operations(const Trace& trace, const Lifetimes& lifetimes, bool ended_in_order) {
  struct Open {
    std::uint32_t begin = 0;
    std::vector<std::uint32_t> notes;
    StringId inner_words;  // of a failed operation inside this one
  };
  HashMap<std::uint16_t, std::vector<Open>> open_by_thread;
  std::vector<FailedOp> failed;
  std::uint32_t last_doing = 0;
  for (std::uint32_t index = 0; index < trace.events.size(); ++index) {
    const Event& event = trace.events[index];
    if (goes_on(event)) last_doing = index;
    if (event.kind == EventKind::kOpBegin) {
      open_by_thread[event.thread.value].push_back({index, {}, {}});
      continue;
    }
    if (event.kind != EventKind::kTensorNote && event.kind != EventKind::kOpEnd) continue;
    std::vector<Open>& open = open_by_thread[event.thread.value];
    if (open.empty()) continue;
    if (event.kind == EventKind::kTensorNote) {
      if (event.extra != 0) open.back().notes.push_back(index);
      continue;
    }
    const Open done = std::move(open.back());
    open.pop_back();
    if (!event.has(kFailed)) continue;
    const StringId words(event.extra);
    if (!open.empty()) open.back().inner_words = words;
    if (words.value != 0 && done.inner_words == words) continue;
    const Event& begin = trace.events[done.begin];
    FailedOp op;
    op.op = trace.strings.at(StringId(begin.extra));
    op.words = trace.strings.at(words);
    op.stack = begin.stack.value != 0 ? begin.stack : event.stack;
    op.device = begin.device;
    op.end = index;
    op.has_all_operands = done.notes.size() <= kMaxOperands;
    for (const std::uint32_t note : done.notes) {
      if (op.operands.size() == kMaxOperands) break;
      op.operands.push_back(given_of(trace, lifetimes, trace.events[note]));
    }
    failed.push_back(std::move(op));
  }
  // Work on the host leaves no events, and may have gone on.
  for (FailedOp& op : failed) op.is_last = last_doing < op.end && !ended_in_order;
  return failed;
}

std::optional<Layer> layer_of(const FailedOp& failed) {
  std::optional<Layer> layer;
  std::optional<std::size_t> input;
  for (std::size_t at = 0; at < failed.operands.size(); ++at) {
    const Given& given = failed.operands[at];
    if (given.kind != "parameter") {
      if (input) return std::nullopt;
      input = at;
      continue;
    }
    const std::size_t dot = given.name.rfind('.');
    if (dot == std::string_view::npos) return std::nullopt;
    const std::string name(given.name.substr(0, dot));
    if (layer && (layer->name != name || layer->dtype != given.dtype)) return std::nullopt;
    layer = Layer{name, given.dtype, 0};
  }
  if (!layer || !input || failed.operands[*input].dtype == layer->dtype) return std::nullopt;
  layer->input = *input;
  return layer;
}

}  // namespace faultline
