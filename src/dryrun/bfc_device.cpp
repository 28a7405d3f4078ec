#include "dryrun/bfc_device.h"

#include <algorithm>

#include "fmt/format.h"
#include "models/bfc/recording.h"
#include "models/torch/driver.h"
#include "trace/framework.h"

namespace faultline {
namespace {

constexpr std::string_view kPoolName = "GPU_0_bfc";
constexpr std::uint64_t kLowestAddress = 2 * kMiB;
// JAX's pool is made of pages of this size, and its limit is rounded up to them.
constexpr std::uint64_t kJaxPage = 2 * kMiB;
constexpr std::uint32_t kPoolCapabilities =
    kAddresses | kStacks | kTensors | kCompleteFromStart | kEvents | kTimes | kSteps;

std::uint64_t budget_of(const BfcDeviceSpec& spec) {
  return spec.capacity_bytes == 0 ? kNoBudget : spec.capacity_bytes - std::min(spec.capacity_bytes, spec.context_bytes);
}

}  // namespace

Result<BfcDeviceSpec> bfc_device_spec(std::string name, std::uint64_t capacity_bytes, std::uint64_t context_bytes,
                                      std::string_view framework, int compute_major, std::string_view changes) {
  const Framework named = framework_named(framework);
  const bool is_jax = named == Framework::kJax;
  if (!is_jax && named != Framework::kTensorFlow)
    return Error{fmt::format("'{}' is no framework with a BFC pool", framework), {}, {}};
  BfcDeviceSpec spec{std::move(name), capacity_bytes, context_bytes, named, {}, 1, false};
  const Result<SettingChanges> parsed = parse_setting_changes(changes);
  if (!parsed) return parsed.error();
  const BfcTarget target{spec.framework, TargetGpu{capacity_bytes, compute_major}};
  if (!is_jax && context_bytes == 0) spec.context_bytes = tensorflow_context_bytes(*target.gpu, *parsed);
  if (capacity_bytes == 0 || capacity_bytes > kBfcNoLimit || spec.context_bytes >= capacity_bytes)
    return Error{fmt::format("a device of {} with a context of {} leaves no pool", format_bytes(capacity_bytes),
                             format_bytes(spec.context_bytes)),
                 {},
                 {}};
  spec.settings.growth = false;
  spec.settings.garbage_collection = !is_jax;
  if (Status applied = apply_changes(spec.settings, target, *parsed); !applied) return applied.error();
  if (is_jax) spec.settings.limit_bytes = (spec.settings.limit_bytes + kJaxPage - 1) / kJaxPage * kJaxPage;
  if (is_jax) spec.share = kJaxShare;
  for (const auto& [name_of, value] : *parsed) {
    spec.own_limit |= name_of == "memory_limit";
    if (name_of.find("FRACTION") != std::string::npos || name_of == "per_process_gpu_memory_fraction")
      spec.share = std::clamp(std::strtod(value.c_str(), nullptr), 0.0001, 1.0);
  }
  return spec;
}

BfcDevice::BfcDevice(const BfcDeviceSpec& spec, Recorder& recorder)
    : recorder_(recorder),
      spec_(spec),
      pool_(spec.settings),
      addresses_({kLowestAddress, kFirstSegmentAddress}),
      budget_bytes_(budget_of(spec)) {
  TraceFileWriter& writer = recorder_.writer();
  recorder_.keep(writer.define_origin({"dry-run", {}, 0, kPoolCapabilities}));
  recorder_.keep(writer.define_heap(kDriverHeap, {HeapKind::kDriver, 0, kDriverHeap, 0, 0, "driver"}));
  recorder_.keep(writer.define_heap(kPoolHeap, {HeapKind::kBfc, 0, kDriverHeap, 0, 0, std::string(kPoolName)}));
  recorder_.keep(writer.define_stream(StreamId(0), {0, 0}));
  recorder_.keep(
      writer.define_device(0, {0, spec_.name, spec_.capacity_bytes, spec_.own_limit ? spec_.settings.limit_bytes : 0}));
  const auto state = [&](std::string_view what, std::string value) {
    recorder_.keep(writer.define_property(bfc_property(kPoolName, what), value));
  };
  recorder_.keep(writer.define_property(kPoolsFramework, file_name_of(spec_.framework)));
  state("limit", std::to_string(spec_.settings.limit_bytes));
  state("growth", spec_.settings.growth ? "true" : "false");
  state("garbage_collection", spec_.settings.garbage_collection ? "true" : "false");
  recorder_.keep(writer.define_property("dry-run.context_bytes", std::to_string(spec_.context_bytes)));
  recorder_.keep(writer.define_property("dry-run.pool_share", fmt::format("{}", spec_.share)));
}

Event BfcDevice::region_event(EventKind kind, ByteRange region) const {
  Event event = cause_;
  event.kind = kind;
  event.heap = kDriverHeap;
  event.address = region.begin;
  event.size_bytes = region.size();
  event.extra = 0;
  event.set(kAddressKnown);
  return event;
}

std::optional<ByteRange> BfcDevice::take(std::uint64_t size_bytes) {
  const std::uint64_t taken = pool_.reserved_bytes() + outside_bytes_;
  if (!overcommit_ && (taken > budget_bytes_ || size_bytes > budget_bytes_ - taken)) return std::nullopt;
  const std::optional<std::uint64_t> address = addresses_.take(size_bytes);
  if (!address) return std::nullopt;
  const ByteRange region = ByteRange::of(*address, size_bytes);
  Event event = region_event(EventKind::kAlloc, region);
  event.allocation = regions_[region.begin] = AllocationId(++last_allocation_);
  recorder_.append(event);
  return region;
}

void BfcDevice::give_back(ByteRange region) {
  addresses_.give_back(region);
  Event event = region_event(EventKind::kFree, region);
  event.allocation = regions_[region.begin];
  event.set_phase(FreePhase::kBoth);
  recorder_.append(event);
  regions_.erase(region.begin);
}

std::optional<BfcDevice::Placed> BfcDevice::alloc(std::uint64_t size_bytes, StackId stack, TensorId tensor) {
  if (size_bytes == 0) return Placed{};
  Event event = recorder_.stamp(EventKind::kAlloc, stack);
  event.size_bytes = size_bytes;
  event.heap = kPoolHeap;
  event.extra = recorder_.known(tensor).value;
  cause_ = event;
  if (size_bytes > kBfcLargestRequest) return refused(event), std::nullopt;
  // Its own number comes behind those of the regions that are taken for it.
  BfcChunkIndex chunk = pool_.allocate(size_bytes, AllocationId(1), *this);
  if (chunk == kNoChunk) {
    if (!overcommit_ || !told_) refused(event);
    if (!overcommit_) return std::nullopt;
    told_ = true;
    pool_.set_limit(std::max(pool_.settings().limit_bytes, pool_.reserved_bytes() + bfc_rounded(size_bytes)));
    chunk = pool_.allocate(size_bytes, AllocationId(1), *this);
    if (chunk == kNoChunk) return refused(event), std::nullopt;
    recorder_.keep(
        recorder_.writer().define_property("dry-run.overcommitted_requests", std::to_string(++overcommitted_)));
  }
  event.allocation = AllocationId(++last_allocation_);
  event.address = pool_.chunk(chunk).address;
  event.set(kAddressKnown);
  recorder_.append(event);
  live_.emplace(event.allocation.value, Live{chunk, size_bytes, event.stack});
  ++allocations_;
  peak_requested_bytes_ = std::max(peak_requested_bytes_, pool_.requested_bytes());
  peak_in_use_bytes_ = std::max(peak_in_use_bytes_, pool_.in_use_bytes());
  return Placed{event.allocation, event.address};
}

std::optional<AllocationId> BfcDevice::take_outside(std::uint64_t size_bytes, StackId stack, TensorId tensor) {
  Event event = recorder_.stamp(EventKind::kAlloc, stack);
  event.size_bytes = size_bytes;
  event.heap = kOutsideHeap;
  event.extra = recorder_.known(tensor).value;
  if (!has_outside_heap_)
    recorder_.keep(recorder_.writer().define_heap(
        kOutsideHeap, {HeapKind::kDriver, 0, kDriverHeap, 0, 0, "driver, beside the pool"}));
  has_outside_heap_ = true;
  // JAX's pool takes its share as it begins, so before anything is compiled.
  if (!pool_.settings().growth && pool_.reserved_bytes() == 0) {
    cause_ = event;
    if (const BfcChunkIndex first = pool_.allocate(1, AllocationId(1), *this); first != kNoChunk) pool_.free(first);
  }
  const std::optional<std::uint64_t> address =
      overcommit_ || size_bytes <= free_bytes() ? addresses_.take(size_bytes) : std::nullopt;
  if (!address) return refused(event), std::nullopt;
  if (size_bytes > free_bytes()) {
    if (!told_) refused(event);
    told_ = true;
    budget_bytes_ = pool_.reserved_bytes() + outside_bytes_ + size_bytes;
  }
  event.allocation = AllocationId(++last_allocation_);
  event.address = *address;
  event.set(kAddressKnown);
  recorder_.append(event);
  outside_.emplace(event.allocation.value, ByteRange::of(*address, size_bytes));
  outside_bytes_ += size_bytes;
  return event.allocation;
}

void BfcDevice::refused(const Event& request) {
  Event event = request;
  event.kind = EventKind::kAllocFailed;
  event.extra = 0;
  event.address = free_bytes();
  event.set(kHasDeviceFree);
  recorder_.append(event);
  ++out_of_memories_;
}

void BfcDevice::free(AllocationId allocation, StackId stack) {
  if (const auto outside = outside_.find(allocation.value); outside != outside_.end()) {
    Event event = recorder_.stamp(EventKind::kFree, stack);
    event.allocation = allocation;
    event.address = outside->second.begin;
    event.size_bytes = outside->second.size();
    event.heap = kOutsideHeap;
    event.set_phase(FreePhase::kBoth);
    event.set(kAddressKnown);
    recorder_.append(event);
    addresses_.give_back(outside->second);
    outside_bytes_ -= outside->second.size();
    outside_.erase(outside);
    return;
  }
  const auto live = live_.find(allocation.value);
  if (live == live_.end()) return;
  Event event = recorder_.stamp(EventKind::kFree, stack);
  event.allocation = allocation;
  event.address = pool_.chunk(live->second.chunk).address;
  event.size_bytes = live->second.size_bytes;
  event.heap = kPoolHeap;
  event.set_phase(FreePhase::kBoth);
  event.set(kAddressKnown);
  recorder_.append(event);
  pool_.free(live->second.chunk);
  live_.erase(live);
}

std::uint64_t BfcDevice::free_bytes() const {
  return budget_bytes_ - std::min(budget_bytes_, pool_.reserved_bytes() + outside_bytes_);
}

TorchFinalState BfcDevice::state() const {
  std::unordered_map<std::uint64_t, std::pair<AllocationId, StackId>> owners;  // by address
  for (const auto& [id, live] : live_) owners[pool_.chunk(live.chunk).address] = {AllocationId(id), live.stack};
  TorchFinalState state;
  for (const auto& [address, region] : pool_.regions()) {
    FinalSegment segment;
    segment.address = address;
    segment.size_bytes = region.size_bytes;
    segment.heap = kPoolHeap;
    segment.first_block = static_cast<std::uint32_t>(state.blocks.size());
    for (BfcChunkIndex at = region.first; at != kNoChunk; at = pool_.chunk(at).next) {
      const BfcChunk& chunk = pool_.chunk(at);
      const auto owner = chunk.in_use() ? owners.find(chunk.address) : owners.end();
      const bool known = owner != owners.end();
      state.blocks.push_back({chunk.address, chunk.size_bytes, chunk.in_use() ? chunk.requested_bytes : 0,
                              known ? owner->second.second : StackId{},
                              chunk.in_use() ? FinalBlock::State::kActive : FinalBlock::State::kFree});
      state.allocations.push_back(known ? owner->second.first : AllocationId{});
    }
    segment.block_count = static_cast<std::uint32_t>(state.blocks.size()) - segment.first_block;
    state.segments.push_back(segment);
  }
  return state;
}

}  // namespace faultline
