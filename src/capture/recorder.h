// The recorder: what the capture library writes while the program runs. One Recorder per process, one ThreadRecorder per thread that calls the driver.
//
// A thread writes its own chunks of the process's trace (trace/file_writer.h) into memory shared with `run` (trace/shared_room.h), so recording takes no lock except
// where a name, a stack or an allocation is new, and opens no file. Nothing here ever changes what the program sees: errno is kept, no exception leaves, and on any trouble
// recording ends quietly (capture/trouble.h), with a sentence in the report, while the calls go on.
//
// What is kept of names, stacks, kernels and allocations has a limit each (kMost…): what is new beyond it is recorded as unknown, and counted. Ids are
// never used twice: where they run out, recording ends.
//
//   the program ─▶ wrapper ─▶ Recording (this thread's turn; empty when off, nested or ended) ─▶ observer ─▶ real driver
//
// Fork: the child has a new trace and new ids; what it inherited of its parent's is dropped unseen. Exit: a destructor of the library says what is left to say;
// calls that come later (from other threads, or from the program's own destructors) pass through unrecorded.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "capture/kernels.h"
#include "capture/key_map.h"
#include "capture/known_memory.h"
#include "capture/names.h"
#include "capture/native_stack.h"
#include "capture/new_ids.h"
#include "capture/observed_calls.h"
#include "capture/python_stack.h"
#include "capture/real_driver.h"
#include "capture/trouble.h"
#include "driver/functions.h"
#include "trace/file_writer.h"
#include "trace/shared_room.h"
#include "trace/trace.h"

namespace faultline::capture {

// How much of the native stack an event is worth. Python frames are read for all of them.
enum class Natives : std::uint8_t {
  kIfNoPython,  // native frames in programs without Python, or when asked for
  kAlways,      // also to tell which library takes memory
};

class Recorder;

bool recording_is_on();
void first_launch_was_made();  // of the process

// The ranges of NVTX that are open in a thread, the outermost ones: a pop does not say which it ends.
struct OpenRanges {
  std::array<StringId, 256> names;
  std::array<bool, 256> recorded{};
};

class ThreadRecorder {
 public:
  ThreadRecorder(Recorder& recorder, ThreadId thread);

  // An event of this kind, now, on this thread, with its stack.
  Event stamp(EventKind kind, Natives natives = Natives::kIfNoPython);
  Event stamp_without_stack(EventKind kind);
  void append(const Event& event) {
    check_still_on();
    if (!writer_.append(event).ok()) [[unlikely]]
      throw EndOfRecording{""};
  }
  // Lets Python's layout be learned before the first event needs it: at a program's first calls no memory is taken yet.
  void meet_python() { (void)read_python_stack(frames_); }
  // A launch, a copy or a wait that is not recorded any more.
  void leave_call_out();

  Recorder& recorder() { return recorder_; }
  TraceFileWriter& writer() { return writer_; }
  KeyMap& launches() { return launches_; }
  KeyMap& copies() { return copies_; }
  KernelCache& kernels() { return kernels_; }
  std::span<LaunchArgument> room_for_arguments() { return arguments_; }
  OpenRanges& open_ranges() { return open_ranges_; }

 private:
  friend class Recorder;
  friend class Recording;
  StackId stack(Natives natives);
  // A thread may come back from the driver when all is over.
  static void check_still_on() {
    if (!recording_is_on()) [[unlikely]]
      throw EndOfRecording{""};
  }

  struct LastStream {
    CUstream handle = nullptr;
    driver::StreamKind kind = driver::StreamKind::kLegacy;
    std::uint32_t epoch = 0;  // 0: none yet
    std::uint16_t device = 0;
    StreamId id;
  };

  Recorder& recorder_;
  TraceFileWriter writer_;
  ThreadId thread_;
  KeyMap stacks_, launches_, copies_;
  LastStream last_stream_;
  KernelCache kernels_;
  OpenRanges open_ranges_;
  // Room that is not cleared between calls: clearing it would cost more than what is put there.
  std::array<PythonFrame, 128> frames_;
  std::array<std::uintptr_t, 48> addresses_;
  // all 8-byte words of the 4 KiB that a kernel's parameters usually may have
  std::array<LaunchArgument, 512> arguments_;
  std::atomic<std::uint64_t> calls_left_out_{0};  // this thread alone adds
  bool inside_ = false;
};

class Recorder {
  struct KnownStream {
    StreamId id;
    std::uint16_t device = 0;
  };

 public:
  explicit Recorder(RoomSpace& space);

  StringId string(ThreadRecorder& by, std::string_view text);
  StackId intern_stack(ThreadRecorder& by, std::span<const std::uintptr_t> natives,
                       std::span<const PythonFrame> frames);
  HeapId heap(ThreadRecorder& by, HeapKind kind, std::uint16_t device);
  // `handle` as the program gave it; what 0 means depends on the function it was given to.
  // and the device it is on
  void set_stream(ThreadRecorder& by, Event& event, CUstream handle, driver::StreamKind kind);
  void stream_created(ThreadRecorder& by, CUstream handle, bool waits_for_default);
  void stream_destroyed(CUstream handle);
  std::uint16_t current_device() const;
  const void* current_context() const;  // null: none is
  // Memory that goes with a context is told as freed by the call that ends it.
  // Where that call is refused after all, context_stays takes it back.
  using EndedMemory = std::vector<std::pair<Event, LiveAllocation>>;
  EndedMemory context_ends(ThreadRecorder& by, const void* context);
  void context_stays(ThreadRecorder& by, const EndedMemory& ended);
  void primary_context_is(int device, const void* context);
  const void* primary_context(int device);
  void devices_found(ThreadRecorder& by);

  AllocationId next_allocation() { return AllocationId(allocations_.next()); }
  LaunchId next_launch() { return LaunchId(launch_ids_.next()); }
  CopyId next_copy() { return CopyId(copy_ids_.next()); }
  FaultId next_fault() { return FaultId(fault_ids_.next()); }
  ViolationId next_violation() { return ViolationId(violation_ids_.next()); }
  std::uint32_t violation_count() const { return violation_ids_.given(); }
  // Small numbers for handles: events, graphs.
  std::uint32_t number_of(const void* handle);
  void forget(const void* handle);
  void same_number(const void* handle, const void* as);

  void property(ThreadRecorder& by, std::string_view key, std::string_view value);
  void count(std::string_view what);
  void count_passed_through();  // a function that the headers do not know: told, but nothing was lost by it
  // The failure is told as "function: CUDA_ERROR_…"; errors that end the context become a Fault, once each.
  void failed(ThreadRecorder& by, const char* function, CUresult error);

  LiveAllocations& live() { return live_; }
  PhysicalMemory& physical() { return physical_; }
  Kernels& kernels() { return kernels_; }

  // Nothing while a stream is captured: the driver may end a capture over calls that the program did not make.
  std::optional<DeviceMemory> device_memory() const;
  // How much of the current device was free when its first context stood.
  void note_free_memory(ThreadRecorder& by);
  // Device memory that is taken and that nobody asked for here, as an allocation finds it: the context, kernels' code, other processes.
  void note_unasked(ThreadRecorder& by, const Event& event);

  void capture_began() { captures_under_way_.fetch_add(1); }
  void capture_ended();
  bool is_capturing() const { return captures_under_way_.load(std::memory_order_relaxed) > 0; }

  bool wants_natives() const { return wants_natives_; }
  // False: memory alone is recorded from now on.
  bool wants_calls() const { return space_.wanted() == Wanted::kAll; }
  // Says from when on, and why (a clause; empty: a limit of the run).
  void ends(std::string_view why) noexcept;
  // The stack of a pass (backward) that other threads work for meanwhile.
  void set_pass(StackId stack) { pass_.store(stack.value, std::memory_order_relaxed); }
  StackId pass() const { return StackId(pass_.load(std::memory_order_relaxed)); }

  ThreadRecorder* join_thread();
  void leave_thread(ThreadRecorder* thread);
  void finish(bool recorded_to_the_end, int exit_status);  // 0: well, or not known

 private:
  friend class ThreadRecorder;
  KnownStream define_stream(ThreadRecorder& by, std::uint64_t key, const Stream& stream);  // names_lock_ held
  StackId push(ThreadRecorder& by, StackId caller, const Frame& frame);
  StringId locked_string(ThreadRecorder& by, std::string_view text);

  static constexpr std::size_t kMostText = 32 * 1024;  // of one name; the rest is cut off
  static constexpr std::size_t kMostFrames = 1 << 17, kMostStacks = 1 << 19, kMostStreams = 1 << 16,
                               kMostNumbers = 1 << 18;

  RoomSpace& space_;
  bool wants_natives_ = false;

  std::mutex names_lock_;  // strings, frames, stacks, heaps, streams, numbers, counters
  Names names_;
  StackTable stacks_;
  std::map<std::pair<HeapKind, std::uint16_t>, HeapId> heaps_;
  std::unordered_map<std::uint64_t, KnownStream> streams_;  // by handle; the default streams by device and thread
  std::unordered_map<const void*, std::uint32_t> numbers_;
  std::map<int, const void*> primary_contexts_;  // by device
  std::map<std::string, std::uint64_t, std::less<>> counters_;
  std::uint64_t passed_through_ = 0;
  std::unordered_map<std::string, std::uint32_t> failures_;

  NewIds allocations_, launch_ids_, copy_ids_, fault_ids_, violation_ids_, numbers_given_, streams_given_;
  std::atomic<std::uint32_t> pass_{0};
  std::atomic<int> device_count_{0};
  std::atomic<std::uint32_t> stream_epoch_{1};  // grows when a handle may mean another stream than before
  std::atomic<std::uint64_t> faults_seen_{0};
  LiveAllocations live_;
  PhysicalMemory physical_;
  Kernels kernels_;
  std::atomic<int> captures_under_way_{0};
  std::atomic<std::uint64_t> free_memory_noted_{0};  // a bit per device
  std::atomic<std::int64_t> looked_ns_{0};
  std::array<std::atomic<std::uint64_t>, 64> most_unasked_bytes_{};

  std::mutex threads_lock_;
  std::vector<ThreadRecorder*> threads_;
  std::vector<ThreadRecorder*> idle_;  // of threads that have ended: the next one goes on in the same piece of the file
  std::uint32_t threads_begun_ = 0;
};

// Unix time that never runs backwards.
std::int64_t now_ns();

inline std::uint64_t address_of(const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer); }
inline std::uint64_t address_of(CUdeviceptr pointer) { return pointer; }

// The call's stream is being captured: what it does is put into a graph, and nothing happens yet.
bool is_captured(const ObservedCall& call, CUstream stream);

// An event of a call, now, on its stream; flagged where that is being captured into a graph: the work was noted, not done.
Event stamp_work(ObservedCall& call, EventKind kind, CUstream stream);
// Appends it, flagged where the call was refused, and tells of that.
CUresult append_work(ObservedCall& call, Event event, CUresult result);

// This thread's turn to record. Empty when nothing is to be recorded: then the call is just passed on.
class Recording {
 public:
  enum class Inside : bool {
    // too: also while this thread is inside a call that is being recorded; only what the driver itself tells may
    kNot,
    kToo
  };
  explicit Recording(Inside inside = Inside::kNot);
  ~Recording();
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;
  explicit operator bool() const { return thread_ != nullptr; }
  ThreadRecorder& operator*() const { return *thread_; }
  ThreadRecorder* operator->() const { return thread_; }

 private:
  ThreadRecorder* thread_ = nullptr;
  bool was_inside_ = false;
  int errno_;
};

}  // namespace faultline::capture
