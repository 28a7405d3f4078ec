#include "capture/recorder.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <limits>
#include <memory>

#include "trace/context_end.h"

namespace faultline::capture {
namespace {

constexpr std::uint32_t kMostFailuresOfAKind = 64;

// Errors after which every call of the process fails: something happened on the device.
bool ends_context(CUresult error) {
  switch (error) {
    case CUDA_ERROR_ILLEGAL_ADDRESS:
    case CUDA_ERROR_LAUNCH_TIMEOUT:
    case CUDA_ERROR_ASSERT:
    case CUDA_ERROR_HARDWARE_STACK_ERROR:
    case CUDA_ERROR_ILLEGAL_INSTRUCTION:
    case CUDA_ERROR_MISALIGNED_ADDRESS:
    case CUDA_ERROR_INVALID_ADDRESS_SPACE:
    case CUDA_ERROR_INVALID_PC:
    case CUDA_ERROR_LAUNCH_FAILED:
    case CUDA_ERROR_ECC_UNCORRECTABLE:
    case CUDA_ERROR_NVLINK_UNCORRECTABLE: return true;
    default: return false;
  }
}

std::string name_of_error(CUresult error) {
  const char* name = nullptr;
  if (own().error_name != nullptr && own().error_name(error, &name) == CUDA_SUCCESS && name != nullptr) return name;
  return "error " + std::to_string(static_cast<int>(error));
}

}  // namespace

// The real clock is read once.
std::int64_t now_ns() {
  const auto read = [](clockid_t clock) {
    timespec time;
    ::clock_gettime(clock, &time);
    return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
  };
  static const std::int64_t offset = read(CLOCK_REALTIME) - read(CLOCK_MONOTONIC);
  return read(CLOCK_MONOTONIC) + offset;
}

ThreadRecorder::ThreadRecorder(Recorder& recorder, ThreadId thread)
    : recorder_(recorder), writer_(recorder.space_), thread_(thread) {}

StackId ThreadRecorder::stack(Natives natives) {
  const std::size_t frame_count = read_python_stack(frames_);
  const bool native = natives == Natives::kAlways || recorder_.wants_natives() ||
                      (frame_count == 0 && python_state() == PythonState::kNoPython);
  const std::size_t address_count = native ? read_native_stack(addresses_) : 0;
  if (frame_count + address_count == 0) return recorder_.pass();
  Key key;
  for (std::size_t at = 0; at < address_count; ++at) key.add(addresses_[at]);
  for (std::size_t at = 0; at < frame_count; ++at) {
    const std::uint64_t place = reinterpret_cast<std::uintptr_t>(frames_[at].code) +
                                static_cast<std::uint64_t>(frames_[at].instruction) * 0x9E3779B97F4A7C15ull;
    key.add(place ^ (frames_[at].identity << 32 | frames_[at].identity >> 32));
  }
  if (const std::uint32_t known = stacks_.find(key); known != KeyMap::kNone) return StackId(known);
  const StackId id =
      recorder_.intern_stack(*this, std::span(addresses_).first(address_count), std::span(frames_).first(frame_count));
  if (id.value != KeyMap::kNone) stacks_.insert(key, id.value);
  return id;
}

Event ThreadRecorder::stamp_without_stack(EventKind kind) {
  check_still_on();
  Event event;
  event.kind = kind;
  event.time_ns = now_ns();
  event.thread = thread_;
  return event;
}

Event ThreadRecorder::stamp(EventKind kind, Natives natives) {
  Event event = stamp_without_stack(kind);
  event.stack = stack(natives);
  return event;
}

void ThreadRecorder::leave_call_out() {
  if (calls_left_out_.fetch_add(1, std::memory_order_relaxed) == 0) recorder_.space_.calls_end(now_ns());
}

void Recorder::ends(std::string_view why) noexcept { space_.recording_ends(now_ns(), why); }

Recorder::Recorder(RoomSpace& space) : space_(space) {
  const char* natives = std::getenv("FAULTLINE_NATIVE_STACKS");
  wants_natives_ = natives != nullptr && *natives == '1';
  ThreadRecorder* by = join_thread();
  (void)by->writer().define_origin(
      {"capture", {}, 0, kAddresses | kStacks | kStreams | kCompleteFromStart | kEvents | kTimes | kSteps});
  (void)by->writer().define_stream(StreamId(0), Stream{});
  property(*by, "process.pid", std::to_string(::getpid()));
  property(*by, "driver.library", real_library_path());
  leave_thread(by);
}

std::uint16_t Recorder::current_device() const {
  CUdevice device = 0;
  if (device_count_.load(std::memory_order_relaxed) <= 1 || own().current_device == nullptr) return 0;
  return own().current_device(&device) == CUDA_SUCCESS ? static_cast<std::uint16_t>(device) : std::uint16_t{0};
}

const void* Recorder::current_context() const {
  CUcontext context = nullptr;
  return own().current_context != nullptr && own().current_context(&context) == CUDA_SUCCESS ? context : nullptr;
}

Recorder::EndedMemory Recorder::context_ends(ThreadRecorder& by, const void* context) {
  EndedMemory ended;
  if (context == nullptr) return ended;
  Event event = by.stamp(EventKind::kFree);
  live_.take_all_of(context, [&](std::uint64_t address, const LiveAllocation& allocation) {
    const bool is_host = allocation.kind == HeapKind::kPinnedHost || allocation.kind == HeapKind::kRegisteredHost;
    event.kind = is_host ? EventKind::kHostUnpin : EventKind::kFree;
    event.address = address;
    event.set(kAddressKnown);
    event.size_bytes = allocation.size_bytes;
    event.allocation = allocation.id;
    event.heap = allocation.heap;
    event.device = allocation.device;
    event.extra = kWithItsContext;
    ended.emplace_back(event, allocation);
    by.append(event);
  });
  return ended;
}

void Recorder::context_stays(ThreadRecorder& by, const EndedMemory& ended) {
  for (auto [event, allocation] : ended) {
    live_.add(event.address, allocation);
    event.set(kFailed);
    by.append(event);
  }
}

void Recorder::primary_context_is(int device, const void* context) {
  const std::lock_guard hold(names_lock_);
  primary_contexts_[device] = context;
}

const void* Recorder::primary_context(int device) {
  const std::lock_guard hold(names_lock_);
  const auto at = primary_contexts_.find(device);
  return at != primary_contexts_.end() ? at->second : nullptr;
}

void Recorder::devices_found(ThreadRecorder& by) {
  int count = 0;
  if (device_count_.load() != 0 || own().device_count == nullptr || own().device_count(&count) != CUDA_SUCCESS) return;
  for (int index = 0; index < count; ++index) {
    Device device;
    device.index = static_cast<std::uint16_t>(index);
    char name[256] = {};
    if (own().device_name != nullptr && own().device_name(name, sizeof name - 1, index) == CUDA_SUCCESS)
      device.name = name;
    std::size_t bytes = 0;
    if (own().device_memory != nullptr && own().device_memory(&bytes, index) == CUDA_SUCCESS)
      device.capacity_bytes = bytes;
    (void)by.writer().define_device(static_cast<std::uint32_t>(index), device);
  }
  device_count_.store(count);
  int version = 0;
  if (own().driver_version != nullptr && own().driver_version(&version) == CUDA_SUCCESS)
    property(by, "driver.version", std::to_string(version));
}

std::uint32_t Recorder::number_of(const void* handle) {
  const std::lock_guard hold(names_lock_);
  if (numbers_.size() >= kMostNumbers && !numbers_.contains(handle))
    throw EndOfRecording{"the program has more events and graphs than can be told apart"};
  const auto [at, fresh] = numbers_.try_emplace(handle, 0);
  if (fresh) at->second = numbers_given_.next();
  return at->second;
}

void Recorder::forget(const void* handle) {
  const std::lock_guard hold(names_lock_);
  numbers_.erase(handle);
}

void Recorder::same_number(const void* handle, const void* as) {
  const std::uint32_t number = number_of(as);
  const std::lock_guard hold(names_lock_);
  numbers_[handle] = number;
}

void Recorder::property(ThreadRecorder& by, std::string_view key, std::string_view value) {
  (void)by.writer().define_property(key, value);
}

void Recorder::count(std::string_view what) {
  const std::lock_guard hold(names_lock_);
  const auto at = counters_.find(what);
  if (at != counters_.end())
    ++at->second;
  else
    counters_.emplace(what, 1);
}

void Recorder::count_passed_through() {
  const std::lock_guard hold(names_lock_);
  ++passed_through_;
}

void Recorder::failed(ThreadRecorder& by, const char* function, CUresult error) {
  // an answer, and the end of the process
  if (error == CUDA_ERROR_NOT_READY || error == CUDA_ERROR_DEINITIALIZED) return;
  const std::string name = name_of_error(error), words = std::string(function) + ": " + name;
  if (ends_context(error)) {
    // From here on every call returns it; only the first is news.
    const std::uint64_t bit = std::uint64_t{1} << (static_cast<unsigned>(error) % 64);
    if ((faults_seen_.fetch_or(bit) & bit) != 0) return;
    Event event = by.stamp(EventKind::kFault, Natives::kIfNoPython);
    Fault fault;
    fault.what = string(by, name);
    fault.reported_by = string(by, function);
    fault.code = static_cast<std::uint32_t>(error);
    const FaultId id = next_fault();
    (void)by.writer().define_call(id, fault);
    event.extra = id.value;
    event.device = current_device();
    by.append(event);
    return;
  }
  {
    const std::lock_guard hold(names_lock_);
    if (++failures_[words] > kMostFailuresOfAKind) {
      ++counters_["capture.failed_calls_left_out"];
      return;
    }
  }
  Event event = by.stamp(EventKind::kOpEnd);
  event.set(kFailed);
  event.extra = string(by, words).value;
  by.append(event);
}

std::optional<DeviceMemory> Recorder::device_memory() const {
  std::size_t free_bytes = 0, total_bytes = 0;
  if (is_capturing() || own().memory_info == nullptr || own().memory_info(&free_bytes, &total_bytes) != CUDA_SUCCESS)
    return std::nullopt;
  return DeviceMemory{free_bytes, total_bytes};
}

// Needs a current context; cuCtxCreate makes it so, a retained one becomes so later (cuCtxSetCurrent).
void Recorder::note_free_memory(ThreadRecorder& by) {
  CUdevice device = 0;
  if (own().current_device == nullptr || own().current_device(&device) != CUDA_SUCCESS || device < 0 || device >= 64)
    return;
  const std::uint64_t bit = std::uint64_t{1} << device;
  if ((free_memory_noted_.load(std::memory_order_relaxed) & bit) != 0) return;
  const std::optional<DeviceMemory> memory = device_memory();
  if (!memory || (free_memory_noted_.fetch_or(bit) & bit) != 0) return;  // a retained context may not be up yet
  property(by, "driver.free_at_start." + std::to_string(device), std::to_string(memory->free_bytes));
}

// Looked at when the program takes memory, which is when it is slow anyway, and not more often than needed; the most that was seen is kept.
void Recorder::note_unasked(ThreadRecorder& by, const Event& event) {
  constexpr std::int64_t kBetweenLooksNs = 100'000'000;
  std::int64_t before = looked_ns_.load(std::memory_order_relaxed);
  if (event.device >= most_unasked_bytes_.size() || event.device != current_device() ||
      event.time_ns - before < kBetweenLooksNs)
    return;
  if (!looked_ns_.compare_exchange_strong(before, event.time_ns)) return;
  const std::optional<DeviceMemory> memory = device_memory();
  if (!memory) return;
  const std::uint64_t accounted = memory->free_bytes + live_.device_bytes(event.device);
  const std::uint64_t unasked = memory->total_bytes > accounted ? memory->total_bytes - accounted : 0;
  if (unasked <= most_unasked_bytes_[event.device].load()) return;
  most_unasked_bytes_[event.device].store(unasked);
  property(by, "driver.unasked." + std::to_string(event.device), std::to_string(unasked));
}

void Recorder::capture_ended() {
  int under_way = captures_under_way_.load();
  while (under_way > 0 && !captures_under_way_.compare_exchange_weak(under_way, under_way - 1)) {
  }
}

CUresult ObservedCall::told(CUresult result) {
  if (result != CUDA_SUCCESS) [[unlikely]]
    thread.recorder().failed(thread, name, result);
  return result;
}

bool is_captured(const ObservedCall& call, CUstream stream) {
  if (!call.thread.recorder().is_capturing() || own().is_capturing == nullptr) return false;
  if (stream == nullptr && call.stream == driver::StreamKind::kPerThread) stream = CU_STREAM_PER_THREAD;
  if (stream == nullptr || stream == CU_STREAM_LEGACY) return false;  // cannot be captured
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  return own().is_capturing(stream, &status) == CUDA_SUCCESS && status != CU_STREAM_CAPTURE_STATUS_NONE;
}

Event stamp_work(ObservedCall& call, EventKind kind, CUstream stream) {
  Event event = call.thread.stamp(kind);
  call.thread.recorder().set_stream(call.thread, event, stream, call.stream);
  if (is_captured(call, stream)) event.set(kCaptured);
  return event;
}

CUresult append_work(ObservedCall& call, Event event, CUresult result) {
  if (result != CUDA_SUCCESS) event.set(kFailed);
  call.thread.append(event);
  return call.told(result);
}

ThreadRecorder* Recorder::join_thread() {
  const std::lock_guard hold(threads_lock_);
  const ThreadId number(
      static_cast<std::uint16_t>(std::min<std::uint32_t>(threads_begun_++, std::numeric_limits<std::uint16_t>::max())));
  if (!idle_.empty()) {
    ThreadRecorder* again = idle_.back();
    idle_.pop_back();
    again->thread_ = number;
    again->last_stream_ = {};
    return again;
  }
  std::unique_ptr<ThreadRecorder> fresh(new ThreadRecorder(*this, number));
  idle_.reserve(threads_.size() + 1);  // so that leaving needs no memory
  threads_.push_back(fresh.get());
  return fresh.release();
}

void Recorder::leave_thread(ThreadRecorder* thread) {
  const std::lock_guard hold(threads_lock_);
  idle_.push_back(thread);
}

// Nobody is waited for: a thread may be inside the driver for good, and a process that lingers at its end is changed (its other threads run on into what has ended).
// The writers of other threads are closed from outside, once the process is gone.
void Recorder::finish(bool recorded_to_the_end, int exit_status) {
  space_.closes();
  std::uint64_t calls_left_out = 0;
  if (const std::unique_lock hold(threads_lock_, std::try_to_lock); hold) {
    for (const ThreadRecorder* thread : threads_) calls_left_out += thread->calls_left_out_.load();
  }
  {
    TraceFileWriter last(space_);
    if (const std::unique_lock hold(names_lock_, std::try_to_lock); hold) {
      for (const auto& [what, times] : counters_) (void)last.count(what, times);
    }
    if (calls_left_out != 0) (void)last.count("capture.calls_left_out", calls_left_out);
    if (passed_through_ != 0)
      (void)last.define_property("driver.functions_passed_through", std::to_string(passed_through_));
    if (exit_status != 0) (void)last.define_property("process.exit_status", std::to_string(exit_status & 0xff));
    if (recorded_to_the_end) (void)last.define_property("process.ended", "exit");
  }
  space_.has_ended();
}

}  // namespace faultline::capture
