#include "rules/out_of_memory/request.h"

#include <algorithm>

#include "rules/describe.h"
#include "rules/shapes.h"

namespace faultline {
namespace {

// A failure is told with the size that the allocator looks for.
constexpr std::uint64_t rounded(std::uint64_t size_bytes) { return (size_bytes + 511) / 512; }

}  // namespace

std::string describe_request(const Facts& facts, std::uint32_t failure_event) {
  const Trace& trace = facts.trace;
  constexpr std::uint32_t kLooksAhead = 6;  // driver events may stand between the failure and what follows it
  const std::uint32_t end = static_cast<std::uint32_t>(
      std::min<std::size_t>(trace.events.size(), std::size_t{failure_event} + 1 + kLooksAhead));
  TensorId made;
  AllocationId served;
  StackId forward;
  for (std::uint32_t index = failure_event + 1; index < end; ++index) {
    const Event& event = trace.events[index];
    if (event.kind == EventKind::kAlloc && rounded(event.size_bytes) != rounded(trace.events[failure_event].size_bytes))
      break;  // the program went on, and asked for something else
    if (event.kind == EventKind::kAlloc && event.extra != 0 && made.value == 0) {
      made = TensorId(event.extra);
      served = event.allocation;
    } else if (event.kind == EventKind::kTensorNote && event.extra != 0 && event.allocation == served) {
      if (made.value == 0) made = TensorId(event.extra);
      forward = event.stack;
      break;
    } else if (event.kind == EventKind::kAllocFailed || event.kind == EventKind::kOpBegin ||
               event.kind == EventKind::kStepMark) {
      break;
    }
  }
  if (made.value == 0) return {};
  const Tensor& tensor = trace.tensors.at(made);
  std::string text =
      tensor.shape.empty() ? std::string("working memory") : tensor_text(trace.strings.at(tensor.dtype), tensor.shape);
  if (tensor.op.value != 0)
    text +=
        ", " + std::string(tensor.shape.empty() ? "" : "a result ") + "of " + std::string(trace.strings.at(tensor.op));
  const bool in_backward = facts.stacks.has(trace.events[failure_event].stack, kInBackward);
  // an operation that backward itself began belongs to no line of the forward
  if (in_backward && forward.value != 0 && !facts.stacks.has(forward, kInBackward) &&
      facts.stacks.program(forward) != facts.stacks.program(trace.events[failure_event].stack))
    text += ", for the gradient of " + short_place(location_of(facts, forward));
  if (tensor.name.value != 0) text += ", in " + std::string(trace.strings.at(tensor.name));
  return text;
}

}  // namespace faultline
