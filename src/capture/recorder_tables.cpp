// What the recorder tells apart by number: names, stacks, heaps and streams, each defined in the trace when it is first met.
#include <cstdio>

#include "capture/recorder.h"

namespace faultline::capture {
namespace {

constexpr std::uint64_t kPerThreadStream = 2;  // CU_STREAM_PER_THREAD

std::string_view name_of_heap(HeapKind kind) {
  switch (kind) {
    case HeapKind::kDriver: return "driver";
    case HeapKind::kStreamOrderedPool: return "stream-ordered pool";
    case HeapKind::kManaged: return "managed memory";
    case HeapKind::kImported: return "memory of another process";
    case HeapKind::kPinnedHost: return "pinned host memory";
    case HeapKind::kRegisteredHost: return "registered host memory";
    default: return "other";
  }
}

}  // namespace

StringId Recorder::locked_string(ThreadRecorder& by, std::string_view text) {
  if (text.size() > kMostText) {
    text = text.substr(0, kMostText);
    ++counters_["capture.names_cut_short"];
  }
  if (const std::optional<StringId> known = names_.find(text)) return *known;
  const std::optional<StringId> fresh = names_.add(text);
  if (fresh)
    (void)by.writer().define_string(*fresh, text);
  else
    ++counters_["capture.names_left_out"];
  return fresh.value_or(StringId{});
}

StringId Recorder::string(ThreadRecorder& by, std::string_view text) {
  const std::lock_guard hold(names_lock_);
  return locked_string(by, text);
}

StackId Recorder::push(ThreadRecorder& by, StackId caller, const Frame& frame) {
  const std::size_t frames = stacks_.frame_count(), stacks = stacks_.size();
  const FrameId id = stacks_.intern_frame(frame);
  if (stacks_.frame_count() != frames) (void)by.writer().define_frame(id, frame);
  const StackId stack = stacks_.push(caller, id);
  if (stacks_.size() != stacks) (void)by.writer().define_stack(stack, caller, id);
  return stack;
}

StackId Recorder::intern_stack(ThreadRecorder& by, std::span<const std::uintptr_t> natives,
                               std::span<const PythonFrame> frames) {
  // Described before the lock is taken: the loader's own lock is needed for it, and whoever holds that may be waiting for ours.
  std::vector<PythonFrameText> texts;  // outermost first
  for (auto at = frames.rbegin(); at != frames.rend(); ++at) {
    PythonFrameText text;
    if (describe_python_frame(*at, text)) texts.push_back(std::move(text));
  }
  for (auto at = natives.rbegin(); at != natives.rend(); ++at) {
    NativeFrameText text;
    if (!describe_native_frame(*at, text)) continue;
    char offset[24];
    std::snprintf(offset, sizeof offset, "+0x%llx", static_cast<unsigned long long>(text.offset));
    texts.push_back({std::move(text.module), offset, 0});
  }
  const std::lock_guard hold(names_lock_);
  StackId stack;
  if (stacks_.size() + texts.size() > kMostStacks || stacks_.frame_count() + texts.size() > kMostFrames) {
    ++counters_["capture.stacks_left_out"];
    return stack;
  }
  for (const PythonFrameText& text : texts)
    stack = push(by, stack, {locked_string(by, text.function), locked_string(by, text.file), text.line});
  return stack;
}

HeapId Recorder::heap(ThreadRecorder& by, HeapKind kind, std::uint16_t device) {
  const auto find_or_define = [&](auto& self, HeapKind wanted) -> HeapId {
    const auto [at, fresh] = heaps_.try_emplace({wanted, device}, HeapId(static_cast<std::uint16_t>(heaps_.size())));
    if (!fresh) return at->second;
    const HeapId id = at->second;
    Heap heap;
    heap.kind = wanted;
    heap.device = device;
    heap.name = name_of_heap(wanted);
    heap.below = id;
    if (wanted == HeapKind::kStreamOrderedPool) heap.below = self(self, HeapKind::kDriver);
    (void)by.writer().define_heap(id, heap);
    return id;
  };
  const std::lock_guard hold(names_lock_);
  return find_or_define(find_or_define, kind);
}

Recorder::KnownStream Recorder::define_stream(ThreadRecorder& by, std::uint64_t key, const Stream& stream) {
  if (streams_.size() >= kMostStreams) throw EndOfRecording{"the program has more streams than can be told apart"};
  const KnownStream known{StreamId(streams_given_.next()), stream.device};
  (void)by.writer().define_stream(known.id, stream);
  streams_[key] = known;
  return known;
}

void Recorder::set_stream(ThreadRecorder& by, Event& event, CUstream handle, driver::StreamKind kind) {
  const std::uint32_t epoch = stream_epoch_.load(std::memory_order_acquire);
  ThreadRecorder::LastStream& last = by.last_stream_;
  const auto number = reinterpret_cast<std::uintptr_t>(handle);
  const bool is_default = number <= kPerThreadStream;
  if (last.epoch == epoch && last.handle == handle && last.kind == kind &&
      (!is_default || device_count_.load(std::memory_order_relaxed) <= 1)) {
    event.stream = last.id;
    event.device = last.device;
    return;
  }
  const std::uint16_t device = current_device();  // asked before the lock is taken: the driver has locks of its own
  const std::lock_guard hold(names_lock_);
  KnownStream known;
  if (!is_default) {
    const auto at = streams_.find(number);
    known = at != streams_.end() ? at->second : define_stream(by, number, {device, number, true});
  } else {
    const bool per_thread = number == kPerThreadStream || (number == 0 && kind == driver::StreamKind::kPerThread);
    // Default streams have no handle of their own: 0 with the device above, and each thread's own with the thread above that.
    const std::uint64_t key =
        std::uint64_t{device} << 48 | (per_thread ? std::uint64_t{by.thread_.value} << 16 | kPerThreadStream : 0);
    const auto at = streams_.find(key);
    if (key == 0) {
      known = {StreamId(0), 0};
    } else {
      known = at != streams_.end() ? at->second
                                   : define_stream(by, key, {device, per_thread ? key & 0xffffffffffff : 0, true});
    }
  }
  last = {handle, kind, epoch, known.device, known.id};
  event.stream = known.id;
  event.device = known.device;
}

void Recorder::stream_created(ThreadRecorder& by, CUstream handle, bool waits_for_default) {
  const auto number = reinterpret_cast<std::uintptr_t>(handle);
  const std::uint16_t device = current_device();
  const std::lock_guard hold(names_lock_);
  define_stream(by, number, {device, number, waits_for_default});
  stream_epoch_.fetch_add(1, std::memory_order_release);
}

void Recorder::stream_destroyed(CUstream handle) {
  const std::lock_guard hold(names_lock_);
  streams_.erase(reinterpret_cast<std::uintptr_t>(handle));
  stream_epoch_.fetch_add(1, std::memory_order_release);
}

}  // namespace faultline::capture
