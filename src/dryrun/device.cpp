#include "dryrun/device.h"

#include <algorithm>
#include <limits>

#include "fmt/format.h"
#include "models/torch/recording.h"

namespace faultline {
namespace {

constexpr std::uint16_t kNoDevice = std::numeric_limits<std::uint16_t>::max();  // pinned host memory
constexpr std::uint64_t kAddressesOfADevice = std::uint64_t{1} << 47;
constexpr std::size_t kMostHeaps = std::numeric_limits<std::uint16_t>::max();
constexpr std::uint32_t kCapabilities =
    kAddresses | kStacks | kStreams | kTensors | kCompleteFromStart | kEvents | kTimes | kSteps;

std::uint64_t budget_of(const DeviceSpec& spec) {
  return spec.capacity_bytes == 0 ? kNoBudget : spec.capacity_bytes - spec.context_bytes;
}

}  // namespace

Result<DeviceSpec> device_spec(std::string name, std::uint64_t capacity_bytes, std::uint64_t context_bytes,
                               std::string alloc_conf, std::string_view torch_version) {
  DeviceSpec spec{std::move(name), capacity_bytes, context_bytes, {}, kNewestTorch, std::move(alloc_conf)};
  if (capacity_bytes > kNoBudget)
    return Error{fmt::format("a device of {} bytes is larger than any", capacity_bytes), {}, {}};
  if (capacity_bytes != 0 && context_bytes >= capacity_bytes) {
    return Error{fmt::format("the context of {} leaves nothing of a device of {}", format_bytes(context_bytes),
                             format_bytes(capacity_bytes)),
                 {},
                 {}};
  }
  if (!torch_version.empty()) {
    const auto version = parse_torch_version(torch_version);
    if (!version) return version.error();
    spec.version = *version;
  }
  auto settings = parse_torch_settings(spec.alloc_conf, TorchTraits::of(spec.version));
  if (!settings) return settings.error();
  if (!settings->native)
    return Error{"the allocator settings choose backend:cudaMallocAsync, which has no model", {}, {}};
  spec.settings = *settings;
  return spec;
}

DryRunDevice::DryRunDevice(const DeviceSpec& spec, std::uint16_t index, Recorder& recorder, DryRunTables& tables)
    : NotingDriver(budget_, index, HeapId(static_cast<std::uint16_t>(tables.heaps.size()))),
      recorder_(recorder),
      tables_(tables),
      index_(index),
      spec_(spec),
      budget_(budget_of(spec), kFirstSegmentAddress + index * kAddressesOfADevice,
              reservation_bytes(spec.capacity_bytes)),
      full_budget_bytes_(budget_of(spec)),
      allocator_(spec.settings, TorchTraits::of(spec.version), {}) {
  TraceFileWriter& writer = recorder_.writer();
  if (index_ == 0) recorder_.keep(writer.define_origin({"dry-run", {}, 0, kCapabilities}));
  driver_heap_ = add_heap({HeapKind::kDriver, index_, next_heap(), 0, 0, "driver"});
  torch_heap_ = add_heap({HeapKind::kTorchCaching, index_, driver_heap_, 0, 0, "torch"});
  if (index_ == 0) add_heap({HeapKind::kTorchPinnedHost, kNoDevice, kPinnedHeap, 0, 0, "pinned"});
  heap_of_arena_ = {torch_heap_};
  default_stream_ = StreamId(static_cast<std::uint32_t>(tables_.streams.size()));
  tables_.streams.push_back({index_, 0});
  recorder_.keep(writer.define_stream(default_stream_, tables_.streams.back()));
  know_streams();
  allocator_.count_ages(spec_.settings.gc_threshold > 0);
  if (spec_.settings.memory_fraction < 1 && spec_.capacity_bytes != 0) {
    own_limit_bytes_ =
        static_cast<std::uint64_t>(spec_.settings.memory_fraction * static_cast<double>(spec_.capacity_bytes));
    allocator_.set_limit(own_limit_bytes_);
  }
  define_device();
  recorder_.keep(
      writer.define_property(index_ == 0 ? "dry-run.context_bytes" : fmt::format("dry-run.context_bytes.{}", index_),
                             std::to_string(spec_.context_bytes)));
  if (index_ != 0) return;
  const std::string version = fmt::format("{}.{}", spec_.version.major, spec_.version.minor);
  recorder_.keep(writer.define_property("torch.alloc_conf", spec_.alloc_conf));
  recorder_.keep(writer.define_property("torch.min_version", version));
  recorder_.keep(writer.define_property("torch.max_version", version));
}

void DryRunDevice::define_device() {
  recorder_.keep(recorder_.writer().define_device(
      index_, {index_, spec_.name, spec_.capacity_bytes, own_limit_bytes_.value_or(0)}));
}

HeapId DryRunDevice::add_heap(const Heap& heap) {
  const HeapId id = next_heap();
  tables_.heaps.push_back(heap);
  recorder_.keep(recorder_.writer().define_heap(id, heap));
  return id;
}

void DryRunDevice::know_streams() {
  while (streams_known_ < tables_.streams.size()) allocator_.add_stream(tables_.streams[streams_known_++].handle);
}

StreamId DryRunDevice::own_stream(StreamId stream) const {
  return stream.index() < tables_.streams.size() && tables_.streams[stream.index()].device == index_ ? stream
                                                                                                     : default_stream_;
}

HeapId DryRunDevice::pool(std::uint64_t major, std::uint64_t minor) {
  if (major == 0 && minor == 0) return torch_heap_;
  if (const auto found = pools_.find({major, minor}); found != pools_.end()) {
    std::erase(released_, arenas_.at(found->second.index()));
    return found->second;
  }
  if (tables_.heaps.size() >= kMostHeaps) {
    recorder_.keep(recorder_.writer().count("dry-run.pools_beyond_number", 1));
    return torch_heap_;
  }
  const HeapId heap = add_heap({HeapKind::kTorchCaching, index_, driver_heap_, major, minor,
                                fmt::format("torch private pool ({}, {})", major, minor)});
  pools_.emplace(std::pair(major, minor), heap);
  arenas_[heap.index()] = allocator_.add_arena(true);
  heap_of_arena_.push_back(heap);
  return heap;
}

void DryRunDevice::release_pool(std::uint64_t major, std::uint64_t minor, std::optional<StackId> empty_now) {
  const auto found = pools_.find({major, minor});
  if (found == pools_.end()) return;
  const std::uint32_t arena = arenas_.at(found->second.index());
  if (std::find(released_.begin(), released_.end(), arena) == released_.end()) released_.push_back(arena);
  if (!empty_now) return;
  begin(recorder_.stamp(EventKind::kFree, *empty_now));
  for (const TorchRelease& step : allocator_.plan_cached(arena)) allocator_.release(step, *this);
}

AllocationId DryRunDevice::remember(Event& event, Live live) {
  const AllocationId id = new_id();
  live.stack = event.stack;
  live.stream = event.stream;
  live.heap = event.heap;
  live.size_bytes = event.size_bytes;
  event.allocation = id;
  live_.emplace(id.value, live);
  note(event);
  return id;
}

std::optional<DryRunDevice::Placed> DryRunDevice::alloc(std::uint64_t size_bytes, StreamId stream, HeapId heap,
                                                        StackId stack, TensorId tensor) {
  Event event = recorder_.stamp(EventKind::kAlloc, stack);
  event.size_bytes = size_bytes;
  event.device = index_;
  event.stream = own_stream(stream);
  event.heap = is_own(heap) ? heap : torch_heap_;
  event.extra = recorder_.known(tensor).value;
  begin(event);
  if (size_bytes > kTorchLargestRequest) {
    refused(event, size_bytes);
    return std::nullopt;
  }
  const std::uint64_t rounded = allocator_.round(size_bytes);
  const ListIndex list = allocator_.list_for(event.heap == torch_heap_ ? 0 : arenas_.at(event.heap.index()),
                                             rounded <= kTorchSmallRequest, event.stream);
  BlockIndex block = allocator_.allocate(list, rounded, {}, released_, *this);
  if (block == kNoIndex) block = serve_beyond(event, list, rounded);
  if (block == kNoIndex) return std::nullopt;
  event.address = allocator_.block(block).address;
  event.set(kAddressKnown);
  Live live;
  live.address = event.address;
  live.block = block;
  const AllocationId id = remember(event, live);
  allocator_.name(block, id);
  stats_.requested_bytes += size_bytes;
  stats_.peak_requested_bytes = std::max(stats_.peak_requested_bytes, stats_.requested_bytes);
  ++stats_.current_allocations;
  ++stats_.allocations;
  return Placed{id, event.address};
}

void DryRunDevice::refused(const Event& request, std::uint64_t rounded_bytes) {
  Event event = request;
  event.kind = EventKind::kAllocFailed;
  event.extra = 0;
  event.size_bytes = rounded_bytes;
  if (spec_.capacity_bytes != 0) {
    event.address = free_bytes();
    event.set(kHasDeviceFree);
  }
  note(event);
  ++stats_.out_of_memories;
}

// PyTorch has tried everything. With overcommit the device grows by what is missing.
BlockIndex DryRunDevice::serve_beyond(const Event& request, ListIndex list, std::uint64_t rounded_bytes) {
  const bool tell = !overcommit_ || !told_;
  if (tell) refused(request, rounded_bytes);
  if (!overcommit_) return kNoIndex;
  if (tell) allocator_.note_search(list);  // the trace shows the request twice, so whoever reads it sees two searches
  told_ = true;
  const std::uint64_t budget = budget_.budget_bytes();
  budget_.set_budget(kNoBudget);
  allocator_.set_limit(std::nullopt);
  const BlockIndex block = allocator_.obtain(list, rounded_bytes, *this);
  budget_.set_budget(std::max(budget, budget_.in_use_bytes()));
  if (own_limit_bytes_) {
    const std::uint64_t limit = grown_limit_bytes_.value_or(*own_limit_bytes_);
    if (allocator_.reserved_bytes() > limit) grown_limit_bytes_ = allocator_.reserved_bytes();
    allocator_.set_limit(grown_limit_bytes_ ? grown_limit_bytes_ : own_limit_bytes_);
  }
  if (block == kNoIndex) {
    if (!tell) refused(request, rounded_bytes);
    return kNoIndex;
  }
  allocator_.claim_new(block, rounded_bytes, {});
  return block;
}

bool DryRunDevice::take_outside(std::uint64_t size_bytes, StackId stack) {
  if (spec_.capacity_bytes != 0 && size_bytes > free_bytes()) {
    Event event = recorder_.stamp(EventKind::kAlloc, stack);
    event.device = index_;
    event.stream = default_stream_;
    event.heap = torch_heap_;
    if (!overcommit_ || !told_) refused(event, size_bytes);
    if (!overcommit_) return false;
    told_ = true;
  }
  outside_bytes_ += size_bytes;
  if (spec_.capacity_bytes != 0) {
    full_budget_bytes_ -= std::min(full_budget_bytes_, size_bytes);
    const std::uint64_t budget = budget_.budget_bytes();
    budget_.set_budget(std::max(budget - std::min(budget, size_bytes), budget_.in_use_bytes()));
  }
  recorder_.keep(recorder_.writer().define_property(
      index_ == 0 ? "dry-run.outside_bytes" : fmt::format("dry-run.outside_bytes.{}", index_),
      std::to_string(outside_bytes_)));
  return true;
}

Event DryRunDevice::freeing(const Live& live, AllocationId id, StackId stack) const {
  Event event = recorder_.stamp(EventKind::kFree, stack);
  event.address = live.address;
  event.size_bytes = live.size_bytes;
  event.allocation = id;
  event.device = index_;
  event.stream = live.stream;
  event.heap = live.heap;
  event.set_phase(FreePhase::kBoth);
  event.set(kAddressKnown);
  return event;
}

bool DryRunDevice::free(AllocationId allocation, StackId stack) {
  const auto live = live_.find(allocation.value);
  if (live == live_.end() || !is_own(live->second.heap)) return false;
  note(freeing(live->second, allocation, stack));
  stats_.requested_bytes -= live->second.size_bytes;
  --stats_.current_allocations;
  allocator_.free_now(live->second.block);
  live_.erase(live);
  return true;
}

void DryRunDevice::empty_cache(StackId stack) {
  begin(recorder_.stamp(EventKind::kFree, stack));
  allocator_.empty_cache(released_, *this);
}

void DryRunDevice::set_limit(std::uint64_t limit_bytes) {
  own_limit_bytes_ = limit_bytes == 0 ? std::nullopt : std::optional(limit_bytes);
  grown_limit_bytes_.reset();
  allocator_.set_limit(own_limit_bytes_);
  define_device();
}

void DryRunDevice::set_overcommit(bool on) {
  overcommit_ = on;
  if (on) return;
  told_ = false;
  budget_.set_budget(full_budget_bytes_);
  grown_limit_bytes_.reset();
  allocator_.set_limit(own_limit_bytes_);
}

AllocationId DryRunDevice::pin(std::uint64_t size_bytes, StackId stack, TensorId tensor) {
  Event event = recorder_.stamp(EventKind::kHostPin, stack);
  event.size_bytes = size_bytes;
  event.heap = kPinnedHeap;
  event.device = kNoDevice;
  const AllocationId id = remember(event, {});
  if (recorder_.known(tensor).value != 0) {
    Event described = recorder_.stamp(EventKind::kTensorNote, stack);
    described.allocation = id;
    described.extra = tensor.value;
    note(described);
  }
  return id;
}

void DryRunDevice::unpin(AllocationId allocation, StackId stack) {
  const auto live = live_.find(allocation.value);
  if (live == live_.end() || live->second.heap != kPinnedHeap) return;
  Event event = freeing(live->second, allocation, stack);
  event.bits = 0;  // it has no address
  event.kind = EventKind::kHostUnpin;
  event.device = kNoDevice;
  note(event);
  live_.erase(live);
}

void DryRunDevice::reset_peaks() {
  allocator_.reset_peaks();
  stats_.peak_requested_bytes = stats_.requested_bytes;
}

std::uint64_t DryRunDevice::free_bytes() const {
  if (spec_.capacity_bytes == 0) return kUnlimitedBytes;
  return full_budget_bytes_ > budget_.in_use_bytes() ? full_budget_bytes_ - budget_.in_use_bytes() : 0;
}

TorchFinalState DryRunDevice::state() const {
  return final_state(
      allocator_, index_, [this](std::uint32_t arena) { return heap_of_arena_[arena]; },
      [this](AllocationId id) {
        const auto live = live_.find(id.value);
        return live == live_.end() ? TorchRequest{} : TorchRequest{live->second.size_bytes, live->second.stack};
      });
}

}  // namespace faultline
