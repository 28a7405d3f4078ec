#include "dryrun/recorder.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <limits>

namespace faultline {
namespace {

// Threads in the order of their first event; the last number stands for all that come after.
ThreadId this_thread() {
  constexpr std::uint32_t kLast = std::numeric_limits<std::uint16_t>::max();
  static std::atomic<std::uint32_t> next{0};
  thread_local const std::uint32_t number = std::min(next.fetch_add(1, std::memory_order_relaxed), kLast);
  return ThreadId(static_cast<std::uint16_t>(number));
}

}  // namespace

Result<std::unique_ptr<Recorder>> Recorder::create(const std::string& path) {
  Result<std::unique_ptr<TraceFile>> file = TraceFile::create(path);
  if (!file) return file.error();
  return std::unique_ptr<Recorder>(new Recorder(std::move(*file)));
}

StringId Recorder::string(std::string_view text) {
  const std::size_t before = strings_.size();
  const StringId id = strings_.intern(text);
  if (strings_.size() != before) keep(writer_.define_string(id, text));
  return id;
}

FrameId Recorder::frame(const Frame& frame) {
  const std::size_t before = stacks_.frame_count();
  const FrameId id = stacks_.intern_frame(frame);
  if (stacks_.frame_count() != before) keep(writer_.define_frame(id, frame));
  return id;
}

StackId Recorder::stack(StackId caller, FrameId frame) {
  const std::size_t before = stacks_.size();
  const StackId id = stacks_.push(caller, frame);
  if (stacks_.size() != before) keep(writer_.define_stack(id, caller, frame));
  return id;
}

TensorId Recorder::tensor(const Tensor& tensor) {
  const std::size_t before = tensors_.size();
  const TensorId id = tensors_.intern(tensor);
  if (tensors_.size() != before) keep(writer_.define_tensor(id, tensor));
  return id;
}

Event Recorder::stamp(EventKind kind, StackId stack) const {
  Event event;
  event.time_ns =
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch()).count();
  event.stack = known(stack);
  event.thread = this_thread();
  event.kind = kind;
  return event;
}

void Recorder::finish() {
  keep(writer_.finish());
  keep(file_->close());
}

}  // namespace faultline
