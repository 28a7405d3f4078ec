// The C interface: locks, looks whether the handle may still be used, and lets no exception out.
#include "dryrun/dryrun.h"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

#include "dryrun/bfc_device.h"
#include "dryrun/machine.h"
#include "dryrun/recorder.h"

namespace {

using namespace faultline;

std::atomic<std::uint32_t> forks{0};  // how many fork()s lie between the first process and this one

void count_forks() {
  [[maybe_unused]] static const int registered =
      ::pthread_atfork(nullptr, nullptr, [] { forks.fetch_add(1, std::memory_order_relaxed); });
}

// Returns how long the text is; what does not fit is cut.
std::uint64_t copy_text(std::string_view text, char* to, std::uint64_t room) {
  if (to != nullptr && room != 0) {
    const std::size_t kept = std::min<std::size_t>(text.size(), room - 1);
    std::memcpy(to, text.data(), kept);
    to[kept] = '\0';
  }
  return text.size();
}

HeapId heap_id(std::uint32_t heap) {
  return heap <= 0xFFFF ? HeapId(static_cast<std::uint16_t>(heap)) : DryRunDevice::kFirstTorchHeap;
}

const char* or_empty(const char* text) { return text != nullptr ? text : ""; }

}  // namespace

struct faultline_dryrun {
  std::mutex mutex;
  std::atomic<bool> let_go{false};  // of the file, by a child's own word or because the model broke
  std::uint32_t forks_at_open = 0;
  std::unique_ptr<Recorder> recorder;
  std::unique_ptr<DryRunMachine> machine;
  std::unique_ptr<BfcDevice>
      pool;  // of TensorFlow or JAX, in the place of PyTorch's devices: the machine has none then
  TorchFinalState snapshot;
  std::string trouble;  // why the model cannot go on

  // Without the lock, which in a forked child may be held by a thread that is not there.
  bool in_child() const { return forks.load(std::memory_order_relaxed) != forks_at_open; }
  bool usable() const { return !in_child() && !let_go.load(std::memory_order_relaxed); }
};

namespace {

// Runs `use` under the lock; an unusable handle, or trouble, gives the empty value: "served", id 0.
template <class Use>
auto use_handle(faultline_dryrun* handle, Use use) noexcept -> std::invoke_result_t<Use, DryRunMachine&, Recorder&> {
  using Value = std::invoke_result_t<Use, DryRunMachine&, Recorder&>;
  if (handle == nullptr || !handle->usable()) return Value();
  const std::lock_guard lock(handle->mutex);
  try {
    return use(*handle->machine, *handle->recorder);
  } catch (const std::bad_alloc&) {
    handle->trouble = "this machine has no memory left for it";
  } catch (const std::exception& problem) {
    handle->trouble = problem.what();
  } catch (...) {
    handle->trouble = "for a reason that is not known";
  }
  handle->let_go = true;
  return Value();
}

// What only PyTorch's allocator has: of another one it is the empty value.
template <class Use>
auto use_torch(faultline_dryrun* handle, Use use) noexcept -> std::invoke_result_t<Use, DryRunMachine&, Recorder&> {
  if (handle != nullptr && handle->pool) return std::invoke_result_t<Use, DryRunMachine&, Recorder&>();
  return use_handle(handle, use);
}

faultline_segment segment_of(const FinalSegment& segment, const TorchFinalState& state, const DryRunDevice& device) {
  faultline_segment out{};
  out.address = segment.address;
  out.size_bytes = segment.size_bytes;
  for (std::size_t at = segment.first_block; at < std::size_t{segment.first_block} + segment.block_count; ++at) {
    const FinalBlock& block = state.blocks[at];
    if (block.state == FinalBlock::State::kActive) out.allocated_bytes += block.size_bytes;
    out.requested_bytes += block.requested_bytes;
  }
  out.stream_handle = device.stream_handle(segment.stream);
  out.pool_major = device.heap(segment.heap).pool_major;
  out.pool_minor = device.heap(segment.heap).pool_minor;
  out.first_block = segment.first_block;
  out.block_count = segment.block_count;
  out.is_small = segment.is_small;
  out.is_expandable = segment.is_expandable;
  out.device = segment.device;
  return out;
}

void mark(Recorder& recorder, EventKind kind, std::uint32_t extra, std::uint32_t stack, bool failed = false) {
  Event event = recorder.stamp(kind, StackId(stack));
  event.extra = recorder.known(StringId(extra)).value;
  if (failed) event.set(kFailed);
  recorder.append(event);
}

thread_local std::string no_trace;  // why the last handle could not be opened, where that was its trace's file

std::unique_ptr<faultline_dryrun> new_handle(const char* trace_path, char* error_text, std::uint64_t error_bytes) {
  auto recorder = Recorder::create(or_empty(trace_path));
  if (!recorder) {
    no_trace = recorder.error().what;
    return copy_text(recorder.error().message(or_empty(trace_path)), error_text, error_bytes), nullptr;
  }
  count_forks();
  auto handle = std::make_unique<faultline_dryrun>();
  handle->forks_at_open = forks.load(std::memory_order_relaxed);
  handle->recorder = std::move(*recorder);
  return handle;
}

faultline_stats stats_of(const BfcDevice& device) {
  faultline_stats stats{};
  const BfcPool& pool = device.pool();
  stats.allocated_bytes = pool.in_use_bytes();
  stats.peak_allocated_bytes = device.peak_in_use_bytes();
  stats.reserved_bytes = pool.reserved_bytes();
  stats.peak_reserved_bytes = pool.peak_reserved_bytes();
  stats.requested_bytes = pool.requested_bytes();
  stats.peak_requested_bytes = device.peak_requested_bytes();
  stats.inactive_split_bytes = pool.largest_free_bytes();
  stats.current_allocations = device.live_allocations();
  stats.allocations = device.allocations();
  stats.current_segments = pool.regions().size();
  stats.segments_taken = pool.regions_taken();
  stats.segments_returned = pool.regions_returned();
  stats.alloc_retries = pool.collections();
  stats.out_of_memories = device.out_of_memories();
  stats.device_free_bytes = device.free_bytes();
  stats.limit_bytes = pool.settings().limit_bytes;
  return stats;
}

}  // namespace

extern "C" {

faultline_dryrun* faultline_open(const char* trace_path, const char* device_name, uint64_t capacity_bytes,
                                 uint64_t context_bytes, const char* alloc_conf, const char* torch_version,
                                 char* error_text, uint64_t error_bytes) {
  no_trace.clear();
  copy_text("", error_text, error_bytes);
  try {
    auto spec = device_spec(or_empty(device_name), capacity_bytes, context_bytes, or_empty(alloc_conf),
                            or_empty(torch_version));
    if (!spec) return copy_text(spec.error().message(), error_text, error_bytes), nullptr;
    auto handle = new_handle(trace_path, error_text, error_bytes);
    if (!handle) return nullptr;
    handle->machine = std::make_unique<DryRunMachine>(*spec, *handle->recorder);
    return handle.release();
  } catch (const std::exception& trouble) {
    copy_text(trouble.what(), error_text, error_bytes);
    return nullptr;
  }
}

faultline_dryrun* faultline_open_pool(const char* trace_path, const char* device_name, uint64_t capacity_bytes,
                                      uint64_t context_bytes, const char* framework, int32_t compute_major,
                                      const char* settings, char* error_text, uint64_t error_bytes) {
  no_trace.clear();
  copy_text("", error_text, error_bytes);
  try {
    auto spec = bfc_device_spec(or_empty(device_name), capacity_bytes, context_bytes, or_empty(framework),
                                compute_major, or_empty(settings));
    if (!spec) return copy_text(spec.error().message(), error_text, error_bytes), nullptr;
    auto handle = new_handle(trace_path, error_text, error_bytes);
    if (!handle) return nullptr;
    handle->machine = std::make_unique<DryRunMachine>(*handle->recorder);
    handle->pool = std::make_unique<BfcDevice>(*spec, *handle->recorder);
    return handle.release();
  } catch (const std::exception& trouble) {
    copy_text(trouble.what(), error_text, error_bytes);
    return nullptr;
  }
}

uint32_t faultline_add_device(faultline_dryrun* handle, const char* device_name, uint64_t capacity_bytes,
                              uint64_t context_bytes) {
  return use_torch(handle, [&](DryRunMachine& machine, Recorder&) -> std::uint32_t {
    DeviceSpec spec = machine.first_spec();
    spec.name = or_empty(device_name);
    spec.capacity_bytes = capacity_bytes;
    spec.context_bytes = std::min(context_bytes, capacity_bytes);
    machine.add_device(spec);
    return machine.device_count() - 1;
  });
}

void faultline_close(faultline_dryrun* handle) {
  // a child's copy stays: to take it apart would write into the parent's file
  if (handle == nullptr || handle->in_child()) return;
  const bool is_whole = handle->usable();
  use_handle(handle, [&](DryRunMachine& machine, Recorder& recorder) {
    const TorchFinalState state = handle->pool ? handle->pool->state() : machine.state();
    recorder.keep(recorder.writer().define_final_state(state.segments, state.blocks));
    recorder.finish();
  });
  if (is_whole) delete handle;
}

uint64_t faultline_no_trace(char* error_text, uint64_t error_bytes) {
  return copy_text(no_trace, error_text, error_bytes);
}

uint64_t faultline_error(faultline_dryrun* handle, char* error_text, uint64_t error_bytes) {
  copy_text("", error_text, error_bytes);
  if (handle == nullptr || handle->in_child()) return 0;
  const std::lock_guard lock(handle->mutex);
  if (!handle->trouble.empty())
    return copy_text("the dry run's device stopped: " + handle->trouble, error_text, error_bytes);
  const std::optional<std::string>& error = handle->recorder->error();
  return error ? copy_text(*error, error_text, error_bytes) : 0;
}

void faultline_after_fork_child(faultline_dryrun* handle) {
  if (handle != nullptr) handle->let_go = true;
}

uint32_t faultline_string(faultline_dryrun* handle, const char* text, uint64_t text_bytes) {
  return use_handle(handle, [&](DryRunMachine&, Recorder& recorder) {
    return text == nullptr ? 0 : recorder.string({text, static_cast<std::size_t>(text_bytes)}).value;
  });
}

uint32_t faultline_frame(faultline_dryrun* handle, uint32_t function, uint32_t file, uint32_t line) {
  return use_handle(handle, [&](DryRunMachine&, Recorder& recorder) {
    return recorder.frame({recorder.known(StringId(function)), recorder.known(StringId(file)), line}).value;
  });
}

uint32_t faultline_stack(faultline_dryrun* handle, uint32_t caller, uint32_t frame) {
  return use_handle(handle, [&](DryRunMachine&, Recorder& recorder) {
    return recorder.stack(recorder.known(StackId(caller)), recorder.known(FrameId(frame))).value;
  });
}

uint32_t faultline_tensor(faultline_dryrun* handle, uint32_t dtype, uint32_t op, uint32_t name, uint32_t operands,
                          uint32_t rank, const int64_t* dims) {
  return use_handle(handle, [&](DryRunMachine&, Recorder& recorder) {
    Tensor tensor;
    if (dims != nullptr) tensor.shape.assign(dims, dims + rank);
    tensor.dtype = recorder.known(StringId(dtype));
    tensor.op = recorder.known(StringId(op));
    tensor.name = recorder.known(StringId(name));
    tensor.operands = recorder.known(StringId(operands));
    return recorder.tensor(tensor).value;
  });
}

uint32_t faultline_stream(faultline_dryrun* handle, uint32_t device, uint64_t stream_handle) {
  return use_torch(handle,
                   [&](DryRunMachine& machine, Recorder&) { return machine.stream(device, stream_handle).value; });
}

uint32_t faultline_pool(faultline_dryrun* handle, uint32_t device, uint64_t pool_major, uint64_t pool_minor) {
  return use_torch(handle, [&](DryRunMachine& machine, Recorder&) {
    return std::uint32_t{machine.device(device).pool(pool_major, pool_minor).value};
  });
}

void faultline_release_pool(faultline_dryrun* handle, uint32_t device, uint64_t pool_major, uint64_t pool_minor,
                            int64_t empty_stack) {
  use_torch(handle, [&](DryRunMachine& machine, Recorder&) {
    const std::optional<StackId> stack =
        empty_stack < 0 ? std::nullopt : std::optional(StackId(static_cast<std::uint32_t>(empty_stack)));
    machine.device(device).release_pool(pool_major, pool_minor, stack);
  });
}

int32_t faultline_alloc(faultline_dryrun* handle, uint32_t device, uint64_t size_bytes, uint32_t stream, uint32_t heap,
                        uint32_t stack, uint32_t tensor, uint32_t* allocation, uint64_t* address) {
  DryRunDevice::Placed placed;
  const std::int32_t answer = use_handle(handle, [&](DryRunMachine& machine, Recorder&) -> std::int32_t {
    if (handle->pool && heap == FAULTLINE_HEAP_DRIVER) {
      const auto outside = handle->pool->take_outside(size_bytes, StackId(stack), TensorId(tensor));
      if (outside) placed.allocation = *outside;
      return outside ? FAULTLINE_SERVED : FAULTLINE_OUT_OF_MEMORY;
    }
    if (handle->pool) {
      const auto chunk = handle->pool->alloc(size_bytes, StackId(stack), TensorId(tensor));
      if (chunk) placed = {chunk->allocation, chunk->address};
      return chunk ? FAULTLINE_SERVED : FAULTLINE_OUT_OF_MEMORY;
    }
    const auto block =
        machine.device(device).alloc(size_bytes, StreamId(stream), heap_id(heap), StackId(stack), TensorId(tensor));
    if (!block) return FAULTLINE_OUT_OF_MEMORY;
    placed = *block;
    return FAULTLINE_SERVED;
  });
  if (allocation != nullptr) *allocation = placed.allocation.value;
  if (address != nullptr) *address = placed.address;
  return answer;
}

void faultline_estimate(faultline_dryrun* handle, uint32_t device, uint32_t stream, uint32_t allocation,
                        uint64_t least_bytes, uint64_t most_bytes, uint32_t what, uint32_t stack) {
  use_handle(handle, [&](DryRunMachine& machine, Recorder& recorder) {
    const AllocationId id(allocation);
    const bool made = handle->pool ? handle->pool->made(id) : machine.made(id);
    if (id.value != 0 && !made) return;
    Event event = recorder.stamp(EventKind::kEstimate, StackId(stack));
    event.device = static_cast<std::uint16_t>(!handle->pool && device < machine.device_count() ? device : 0);
    event.stream = handle->pool ? StreamId{} : machine.known(StreamId(stream));
    event.allocation = id;
    event.address = least_bytes;
    event.size_bytes = most_bytes;
    event.extra = recorder.known(StringId(what)).value;
    recorder.append(event);
  });
}

void faultline_free(faultline_dryrun* handle, uint32_t allocation, uint32_t stack) {
  use_handle(handle, [&](DryRunMachine& machine, Recorder&) {
    if (handle->pool) return handle->pool->free(AllocationId(allocation), StackId(stack));
    machine.free(AllocationId(allocation), StackId(stack));
  });
}

void faultline_empty_cache(faultline_dryrun* handle, uint32_t device, uint32_t stack) {
  use_torch(handle, [&](DryRunMachine& machine, Recorder&) { machine.device(device).empty_cache(StackId(stack)); });
}

void faultline_set_limit(faultline_dryrun* handle, uint32_t device, uint64_t limit_bytes) {
  use_torch(handle, [&](DryRunMachine& machine, Recorder&) { machine.device(device).set_limit(limit_bytes); });
}

void faultline_set_overcommit(faultline_dryrun* handle, int32_t on) {
  use_handle(handle, [&](DryRunMachine& machine, Recorder&) {
    handle->pool ? handle->pool->set_overcommit(on != 0) : machine.set_overcommit(on != 0);
  });
}

int32_t faultline_take_outside(faultline_dryrun* handle, uint32_t device, uint64_t size_bytes, uint32_t stack) {
  return use_torch(handle, [&](DryRunMachine& machine, Recorder&) -> std::int32_t {
    return machine.device(device).take_outside(size_bytes, StackId(stack)) ? FAULTLINE_SERVED : FAULTLINE_OUT_OF_MEMORY;
  });
}

uint32_t faultline_pin(faultline_dryrun* handle, uint64_t size_bytes, uint32_t stack, uint32_t tensor) {
  return use_torch(handle, [&](DryRunMachine& machine, Recorder&) {
    return machine.device(0).pin(size_bytes, StackId(stack), TensorId(tensor)).value;
  });
}

void faultline_unpin(faultline_dryrun* handle, uint32_t allocation, uint32_t stack) {
  use_torch(handle, [&](DryRunMachine& machine, Recorder&) {
    machine.device(0).unpin(AllocationId(allocation), StackId(stack));
  });
}

void faultline_op_begin(faultline_dryrun* handle, uint32_t name, uint32_t stack) {
  use_handle(handle, [&](DryRunMachine&, Recorder& recorder) { mark(recorder, EventKind::kOpBegin, name, stack); });
}

void faultline_op_end(faultline_dryrun* handle, uint32_t text, int32_t failed, uint32_t stack) {
  use_handle(handle,
             [&](DryRunMachine&, Recorder& recorder) { mark(recorder, EventKind::kOpEnd, text, stack, failed != 0); });
}

void faultline_tensor_note(faultline_dryrun* handle, uint32_t allocation, uint32_t tensor, uint32_t stack) {
  use_handle(handle, [&](DryRunMachine& machine, Recorder& recorder) {
    Event event = recorder.stamp(EventKind::kTensorNote, StackId(stack));
    event.extra = recorder.known(TensorId(tensor)).value;
    const AllocationId id(allocation);
    if (handle->pool ? handle->pool->made(id) : machine.made(id)) event.allocation = id;
    recorder.append(event);
  });
}

void faultline_step_mark(faultline_dryrun* handle, uint64_t number, uint32_t name) {
  use_handle(handle, [&](DryRunMachine&, Recorder& recorder) {
    Event event = recorder.stamp(EventKind::kStepMark, {});
    event.size_bytes = number;
    event.extra = recorder.known(StringId(name)).value;
    recorder.append(event);
  });
}

void faultline_property(faultline_dryrun* handle, const char* key, const char* value) {
  use_handle(handle, [&](DryRunMachine&, Recorder& recorder) {
    recorder.keep(recorder.writer().define_property(or_empty(key), or_empty(value)));
  });
}

void faultline_lost(faultline_dryrun* handle, const char* name, uint64_t count) {
  use_handle(handle, [&](DryRunMachine&, Recorder& recorder) {
    recorder.keep(recorder.writer().count(or_empty(name), count));
  });
}

void faultline_get_stats(faultline_dryrun* handle, uint32_t number, faultline_stats* stats) {
  if (stats == nullptr) return;
  *stats = {};
  use_handle(handle, [&](DryRunMachine& machine, Recorder&) {
    if (handle->pool) {
      *stats = stats_of(*handle->pool);
      return;
    }
    const DryRunDevice& device = machine.device(number);
    const TorchAllocator& allocator = device.allocator();
    const DeviceStats& own = device.stats();
    stats->allocated_bytes = allocator.allocated_bytes();
    stats->peak_allocated_bytes = allocator.peak_allocated_bytes();
    stats->reserved_bytes = allocator.reserved_bytes();
    stats->peak_reserved_bytes = allocator.peak_reserved_bytes();
    stats->requested_bytes = own.requested_bytes;
    stats->peak_requested_bytes = own.peak_requested_bytes;
    for (SegmentIndex index = 0; index < allocator.segment_count(); ++index) {
      const TorchSegment& segment = allocator.segment(index);
      if (!segment.live) continue;
      ++stats->current_segments;
      for (BlockIndex at = segment.first; at != kNoIndex; at = allocator.block(at).next) {
        const TorchBlock& block = allocator.block(at);
        const bool alone = block.previous == kNoIndex && block.next == kNoIndex;
        if (block.state == TorchBlock::State::kFree && !alone) stats->inactive_split_bytes += block.size_bytes;
      }
    }
    stats->current_allocations = own.current_allocations;
    stats->allocations = own.allocations;
    stats->segments_taken = allocator.segments_taken();
    stats->segments_returned = allocator.segments_returned();
    stats->alloc_retries = allocator.cache_flushes();
    stats->out_of_memories = own.out_of_memories;
    stats->device_free_bytes = device.free_bytes();
  });
}

void faultline_reset_peaks(faultline_dryrun* handle, uint32_t device) {
  use_handle(handle, [&](DryRunMachine& machine, Recorder&) {
    handle->pool ? handle->pool->reset_peaks() : machine.device(device).reset_peaks();
  });
}

void faultline_snapshot(faultline_dryrun* handle, uint64_t* segment_count, uint64_t* block_count) {
  std::size_t segments = 0;
  std::size_t blocks = 0;
  use_torch(handle, [&](DryRunMachine& machine, Recorder&) {
    handle->snapshot = machine.state();
    segments = handle->snapshot.segments.size();
    blocks = handle->snapshot.blocks.size();
  });
  if (segment_count != nullptr) *segment_count = segments;
  if (block_count != nullptr) *block_count = blocks;
}

uint64_t faultline_snapshot_segments(faultline_dryrun* handle, faultline_segment* segments, uint64_t room) {
  return use_torch(handle, [&](DryRunMachine& machine, Recorder&) -> std::uint64_t {
    const TorchFinalState& state = handle->snapshot;
    const std::uint64_t count = segments == nullptr ? 0 : std::min<std::uint64_t>(room, state.segments.size());
    for (std::size_t at = 0; at < count; ++at)
      segments[at] = segment_of(state.segments[at], state, machine.device(state.segments[at].device));
    return count;
  });
}

uint64_t faultline_snapshot_blocks(faultline_dryrun* handle, faultline_block* blocks, uint64_t room) {
  return use_torch(handle, [&](DryRunMachine&, Recorder&) -> std::uint64_t {
    const TorchFinalState& state = handle->snapshot;
    const std::uint64_t count = blocks == nullptr ? 0 : std::min<std::uint64_t>(room, state.blocks.size());
    for (std::size_t at = 0; at < count; ++at) {
      const FinalBlock& block = state.blocks[at];
      blocks[at] = {block.address, block.size_bytes, block.requested_bytes, state.allocations[at].value,
                    block.stack.value};
    }
    return count;
  });
}

}  // extern "C"
