#include "sources/torch_snapshot/trace_builder.h"

#include <algorithm>
#include <limits>

#include "base/byte_range.h"
#include "sources/bounds.h"

namespace faultline::torch_snapshot {
namespace {

constexpr std::size_t kLongestKeyName = 64;
constexpr std::size_t kMostKeyNames = 32;

}  // namespace

Status TraceBuilder::build(Value top) {
  if (Status taken = take_top(top); !taken) return taken;
  deduce_version();
  assign_kinds();
  if (Status sound = check_sizes(); !sound) return sound;
  make_heaps();
  pair_events();
  compare_with_final_state();
  find_preexisting_segments();
  find_preexisting_mappings();
  settle_pools();
  add_annotations();
  insert_and_prepend();
  name_devices();
  for (const auto& [name, times] : machine_.unknown_keys_) {
    count_unknown_key(machine_.names_.at(StringId(static_cast<std::uint32_t>(name))), times);
  }
  return Ok{};
}

// A few names help whoever reads the report; a file full of them would drown it.
void TraceBuilder::count_unknown_key(std::string_view name, std::uint64_t times) {
  const bool named = name.size() <= kLongestKeyName && unknown_key_names_ < kMostKeyNames;
  if (named) ++unknown_key_names_;
  trace_.count(named ? "unknown key '" + std::string(name) + "'" : "other unknown keys", times);
}

Event TraceBuilder::preexisting(EventKind kind, std::uint64_t address, std::uint64_t size_bytes, std::uint16_t device) {
  Event event;
  event.kind = kind;
  event.address = address;
  event.size_bytes = size_bytes;
  event.device = device;
  event.set(kPreexisting);
  event.set(kAddressKnown);
  return event;
}

void TraceBuilder::assign_kinds() {
  std::vector<Event>& events = trace_.events;
  std::uint64_t kept = 0;
  std::uint64_t without_stack = 0;
  actions_.resize(events.size());
  for (std::uint64_t index = 0; index < events.size(); ++index) {
    Event event = events[index];
    const auto action = static_cast<Action>(event.thread.value);
    event.thread = ThreadId{};
    switch (action) {
      case Action::kAlloc:
      case Action::kSegmentAlloc: event.kind = EventKind::kAlloc; break;
      case Action::kFreeRequested:
        event.kind = EventKind::kFree;
        event.set_phase(FreePhase::kRequested);
        ++requested_count_;
        break;
      case Action::kFreeCompleted:
        event.kind = EventKind::kFree;
        event.set_phase(FreePhase::kCompleted);
        ++completed_count_;
        break;
      case Action::kSegmentFree: event.kind = EventKind::kFree; break;
      case Action::kSegmentMap: event.kind = EventKind::kMap; break;
      case Action::kSegmentUnmap: event.kind = EventKind::kUnmap; break;
      case Action::kOutOfMemory:
        event.kind = EventKind::kAllocFailed;
        event.bits = 0;
        event.set(kHasDeviceFree);
        break;
      default: continue;  // snapshot marks and notes carry no memory
    }
    if (event.stack.value == 0) ++without_stack;
    actions_[kept] = action;
    events[kept++] = event;
  }
  events.resize(kept);
  actions_.resize(kept);
  trace_.capabilities = kAddresses | kStreams;
  if (kept != 0) trace_.capabilities |= kEvents;
  if (without_stack != kept) trace_.capabilities |= kStacks;
  if (machine_.has_seen(Key::k_time_us)) trace_.capabilities |= kTimes;
  const bool any_pending =
      std::any_of(trace_.final_blocks.begin(), trace_.final_blocks.end(),
                  [](const FinalBlock& block) { return block.state == FinalBlock::State::kPendingFree; });
  requests_complete_ = requested_count_ != 0 && completed_count_ == 0 && !any_pending;
  if (requests_complete_) trace_.count("recordings without completed frees");
}

void TraceBuilder::make_heaps() {
  std::vector<bool> used(entry_count_of_device_.size());
  for (std::size_t device = 0; device < used.size(); ++device) used[device] = entry_count_of_device_[device] != 0;
  for (const FinalSegment& segment : trace_.final_segments) {
    if (segment.device >= used.size()) used.resize(segment.device + 1u);
    used[segment.device] = true;
  }
  if (std::find(used.begin(), used.end(), true) == used.end()) used.assign(1, true);
  for (std::size_t device = 0; device < used.size(); ++device) {
    if (!used[device]) continue;
    const auto index = static_cast<std::uint16_t>(device);
    trace_.devices.push_back({index, {}, 0, 0});
    const HeapId driver(static_cast<std::uint16_t>(trace_.heaps.size()));
    trace_.heaps.push_back({HeapKind::kDriver, index, driver, 0, 0, "driver"});
    heap_of_pool_[static_cast<std::uint32_t>(device << 16 | 0xffff)] = driver;
    heap_for(index, 0);
  }
  pools_matter_ = machine_.pools().size() > 1 && !machine_.has_seen(Key::k_pool_id);
}

HeapId TraceBuilder::heap_for(std::uint16_t device, std::uint16_t pool) {
  std::uint32_t wanted = static_cast<std::uint32_t>(device) << 16 | pool;
  if (wanted == last_pool_) return last_heap_;
  if (trace_.heaps.size() == kMostHeaps && !heap_of_pool_.contains(wanted)) {
    trace_.count("private pools without a heap of their own");
    wanted &= 0xffff0000;  // the device's default pool, which make_heaps made
  }
  const auto [at, fresh] = heap_of_pool_.try_emplace(wanted, static_cast<std::uint16_t>(trace_.heaps.size()));
  if (fresh) {
    const PoolKey key = machine_.pools()[pool];
    const HeapId driver = heap_of_pool_.at(static_cast<std::uint32_t>(device) << 16 | 0xffff);
    const std::string name =
        pool == 0 ? "torch"
                  : "torch private pool (" + std::to_string(key.major) + ", " + std::to_string(key.minor) + ")";
    trace_.heaps.push_back({HeapKind::kTorchCaching, device, driver, key.major, key.minor, name});
  }
  last_pool_ = wanted;
  last_heap_ = at->second;
  return last_heap_;
}

// ---- one pass over the events: who is who

void TraceBuilder::pair_events() {
  for (std::uint64_t index = 0; index < trace_.events.size(); ++index) {
    const Action action = actions_[index];
    switch (action) {
      case Action::kAlloc: pair_alloc(index); break;
      case Action::kFreeRequested:
      case Action::kFreeCompleted: pair_free(index, action); break;
      case Action::kSegmentAlloc:
      case Action::kSegmentFree:
      case Action::kSegmentMap:
      case Action::kSegmentUnmap: pair_segment(index, action); break;
      default: {
        Event& event = trace_.events[index];
        event.heap = heap_for(event.device, event.heap.value);
        break;
      }
    }
  }
}

void TraceBuilder::pair_alloc(std::uint64_t index) {
  Event& event = trace_.events[index];
  event.heap = heap_for(event.device, event.heap.value);
  bool fresh = false;
  AddressTable::Slot& slot = blocks_.at(event.address, event.device, &fresh);
  if (slot.id != 0) {  // its free is not in the recording
    Event missing = event;
    missing.kind = EventKind::kFree;
    missing.bits = 0;
    missing.set(kAddressKnown);
    missing.set_phase(slot.pending ? FreePhase::kCompleted : FreePhase::kBoth);
    missing.allocation = AllocationId(slot.id);
    missing.stack = StackId{};
    missing.extra = 0;
    insertions_.push_back({index, missing});
    trace_.count("frees missing from the recording");
  }
  event.allocation = new_allocation();
  slot.id = event.allocation.value;
  slot.pending = false;
  if (pools_matter_) {
    instance_of_allocation_.resize(trace_.allocation_count + 1u);
    auto segment = live_segments_.upper_bound({event.device, event.address});
    if (segment != live_segments_.begin()) {
      --segment;
      if (segment->first.first == event.device && event.address - segment->first.second < segment->second.size_bytes) {
        instance_of_allocation_[event.allocation.index()] = segment->second.instance + 1;
      }
    }
  }
}

void TraceBuilder::pair_free(std::uint64_t index, Action action) {
  Event& event = trace_.events[index];
  event.heap = heap_for(event.device, event.heap.value);
  bool fresh = false;
  AddressTable::Slot& slot = blocks_.at(event.address, event.device, &fresh);
  const bool completes = action == Action::kFreeCompleted || requests_complete_;
  if (fresh) {  // it was there before the recording began
    Event born = preexisting(EventKind::kAlloc, event.address, event.size_bytes, event.device);
    born.stream = event.stream;
    born.heap = event.heap;
    born.allocation = new_allocation();
    front_blocks_.push_back(born);
    slot.id = born.allocation.value;
    if (action == Action::kFreeCompleted && requested_count_ != 0) {
      born.kind = EventKind::kFree;
      born.set_phase(FreePhase::kRequested);
      front_blocks_.push_back(born);
      slot.pending = true;
    }
  }
  if (slot.id == 0 || (!completes && slot.pending)) {
    trace_.count("frees of memory that was not allocated");
    event.allocation = AllocationId{};
    return;
  }
  event.allocation = AllocationId(slot.id);
  if (completes) {
    if (!slot.pending) event.set_phase(FreePhase::kBoth);
    slot.id = 0;
    slot.pending = false;
  } else {
    slot.pending = true;
  }
}

void TraceBuilder::pair_segment(std::uint64_t index, Action action) {
  Event& event = trace_.events[index];
  const std::uint16_t pool = event.heap.value;
  event.heap = heap_of_pool_.at(static_cast<std::uint32_t>(event.device) << 16 | 0xffff);
  if (action == Action::kSegmentMap || action == Action::kSegmentUnmap) return;  // ranges, handled as such
  const std::pair<std::uint16_t, std::uint64_t> key{event.device, event.address};
  if (action == Action::kSegmentAlloc) {
    const auto [at, fresh] = live_segments_.try_emplace(key);
    if (!fresh) {
      trace_.count("segments taken twice at one address");
      Event missing = event;
      missing.kind = EventKind::kFree;
      missing.set_phase(FreePhase::kBoth);
      missing.stack = StackId{};
      missing.allocation = AllocationId(at->second.id);
      insertions_.push_back({index, missing});
    }
    event.allocation = new_allocation();
    at->second = {event.allocation.value, event.size_bytes, static_cast<std::uint32_t>(instance_pools_.size())};
    instance_pools_.push_back(pool);
    return;
  }
  const auto found = live_segments_.find(key);
  if (found != live_segments_.end()) {
    event.allocation = AllocationId(found->second.id);
    live_segments_.erase(found);
    return;
  }
  Event born = preexisting(EventKind::kAlloc, event.address, event.size_bytes, event.device);
  born.stream = event.stream;
  born.heap = event.heap;
  born.allocation = event.allocation = new_allocation();
  front_segments_.push_back(born);
}

// ---- the end state

std::uint16_t TraceBuilder::final_pool_at(std::uint64_t address, std::uint16_t device) {
  if (segments_by_place_.empty()) {
    for (const FinalSegment& segment : trace_.final_segments) segments_by_place_.push_back(&segment);
    std::sort(segments_by_place_.begin(), segments_by_place_.end(), [](const FinalSegment* a, const FinalSegment* b) {
      return std::pair(a->device, a->address) < std::pair(b->device, b->address);
    });
  }
  auto after = std::upper_bound(segments_by_place_.begin(), segments_by_place_.end(), std::pair(device, address),
                                [](const auto& place, const FinalSegment* segment) {
                                  return place < std::pair(segment->device, segment->address);
                                });
  if (after == segments_by_place_.begin()) return 0;
  const FinalSegment& segment = **--after;
  return segment.device == device && address - segment.address < segment.size_bytes ? segment.heap.value
                                                                                    : std::uint16_t{0};
}

void TraceBuilder::compare_with_final_state() {
  if (trace_.final_segments.empty()) return;
  std::uint64_t disagreements = 0;
  for (const FinalSegment& segment : trace_.final_segments) {
    const HeapId heap = heap_for(segment.device, segment.heap.value);
    for (std::uint32_t at = segment.first_block; at < segment.first_block + segment.block_count; ++at) {
      const FinalBlock& block = trace_.final_blocks[at];
      if (block.state == FinalBlock::State::kFree) continue;
      bool fresh = false;
      AddressTable::Slot& slot = blocks_.at(block.address, segment.device, &fresh);
      if (!fresh && slot.id == 0) {
        ++disagreements;  // the state says alive, the events say freed: they are taken one after the other
        continue;
      }
      slot.in_final = true;
      if (!fresh) continue;
      Event born = preexisting(EventKind::kAlloc, block.address, block.requested_bytes, segment.device);
      born.stream = segment.stream;
      born.heap = heap;
      born.stack = block.stack;
      born.allocation = new_allocation();
      slot.id = born.allocation.value;
      front_blocks_.push_back(born);
      if (block.state == FinalBlock::State::kPendingFree) {
        born.kind = EventKind::kFree;
        born.set_phase(FreePhase::kRequested);
        born.stack = StackId{};
        front_blocks_.push_back(born);
      }
    }
  }
  if (trace_.can(kEvents)) {
    blocks_.for_each([&](const AddressTable::Slot& slot) { disagreements += slot.id != 0 && !slot.in_final; });
  }
  trace_.count("blocks on which events and end state disagree", disagreements);
}

void TraceBuilder::find_preexisting_segments() {
  for (const FinalSegment& segment : trace_.final_segments) {
    if (segment.is_expandable) continue;
    const auto live = live_segments_.find({segment.device, segment.address});
    if (live != live_segments_.end()) {
      instance_pools_[live->second.instance] = segment.heap.value;
      continue;
    }
    Event born = preexisting(EventKind::kAlloc, segment.address, segment.size_bytes, segment.device);
    born.stream = segment.stream;
    born.stack = segment.stack;
    born.heap = heap_of_pool_.at(static_cast<std::uint32_t>(segment.device) << 16 | 0xffff);
    born.allocation = new_allocation();
    front_segments_.push_back(born);
  }
}

// Mapped ranges at the beginning: those at the end, with every map and unmap undone from the last to the first.
void TraceBuilder::find_preexisting_mappings() {
  struct Mapped {
    std::uint64_t end = 0;
    StreamId stream;
  };
  std::map<std::pair<std::uint16_t, std::uint64_t>, Mapped> mapped;  // (device, begin) → end; disjoint
  const auto remove = [&](std::uint16_t device, ByteRange range) {
    auto at = mapped.upper_bound({device, range.begin});
    if (at != mapped.begin()) --at;
    while (at != mapped.end() && at->first.first <= device &&
           !(at->first.first == device && at->first.second >= range.end)) {
      const ByteRange held{at->first.second, at->second.end};
      if (at->first.first != device || !held.overlaps(range)) {
        ++at;
        continue;
      }
      const Mapped rest = at->second;
      at = mapped.erase(at);
      if (held.begin < range.begin) mapped[{device, held.begin}] = {range.begin, rest.stream};
      if (range.end < held.end) at = mapped.insert_or_assign({device, range.end}, Mapped{held.end, rest.stream}).first;
    }
  };
  const auto add = [&](std::uint16_t device, ByteRange range, StreamId stream) {
    remove(device, range);
    mapped[{device, range.begin}] = {range.end, stream};
  };
  for (const FinalSegment& segment : trace_.final_segments) {
    if (segment.is_expandable) add(segment.device, ByteRange::of(segment.address, segment.size_bytes), segment.stream);
  }
  const bool has_maps = std::any_of(actions_.begin(), actions_.end(),
                                    [](Action a) { return a == Action::kSegmentMap || a == Action::kSegmentUnmap; });
  if (mapped.empty() && !has_maps) return;
  for (std::uint64_t index = trace_.events.size(); index-- > 0;) {
    const Event& event = trace_.events[index];
    if (event.size_bytes > std::numeric_limits<std::uint64_t>::max() - event.address) continue;
    if (event.kind == EventKind::kMap) remove(event.device, ByteRange::of(event.address, event.size_bytes));
    if (event.kind == EventKind::kUnmap)
      add(event.device, ByteRange::of(event.address, event.size_bytes), event.stream);
  }
  for (const auto& [place, range] : mapped) {
    Event born = preexisting(EventKind::kMap, place.second, range.end - place.second, place.first);
    born.stream = range.stream;
    born.heap = heap_of_pool_.at(static_cast<std::uint32_t>(place.first) << 16 | 0xffff);
    front_segments_.push_back(born);
  }
}

// Entries written before pool ids were recorded: the segment that holds a block tells its pool, if the segment lived to the end.
void TraceBuilder::settle_pools() {
  if (!pools_matter_) return;
  std::vector<HeapId> heap_of_allocation(trace_.allocation_count + 1u, HeapId(0xffff));
  const auto settle = [&](Event& event) {
    if (event.kind == EventKind::kAlloc && trace_.heaps[event.heap.index()].kind == HeapKind::kTorchCaching) {
      std::uint16_t pool = 0;
      const std::uint32_t instance = event.allocation.index() < instance_of_allocation_.size()
                                         ? instance_of_allocation_[event.allocation.index()]
                                         : 0;
      pool = instance != 0 ? instance_pools_[instance - 1] : final_pool_at(event.address, event.device);
      if (pool != 0) event.heap = heap_for(event.device, pool);
      heap_of_allocation[event.allocation.index()] = event.heap;
    } else if (event.kind == EventKind::kFree && event.allocation.value != 0 &&
               heap_of_allocation[event.allocation.index()].value != 0xffff) {
      event.heap = heap_of_allocation[event.allocation.index()];
    }
  };
  for (Event& event : front_blocks_) settle(event);
  for (Event& event : trace_.events) settle(event);
}

// ---- putting it together

void TraceBuilder::add_annotations() {
  const std::span<const Annotation> annotations = machine_.annotations();
  if (annotations.empty() || trace_.events.empty()) return;
  std::vector<Annotation> ordered(annotations.begin(), annotations.end());
  std::stable_sort(ordered.begin(), ordered.end(),
                   [](const Annotation& a, const Annotation& b) { return a.time_ns < b.time_ns; });
  std::uint64_t index = 0;
  std::uint64_t steps = 0;
  for (const Annotation& annotation : ordered) {
    while (index < trace_.events.size() && trace_.events[index].time_ns <= annotation.time_ns) ++index;
    Event event;
    event.kind = annotation.begin ? EventKind::kOpBegin : EventKind::kOpEnd;
    event.time_ns = annotation.time_ns;
    event.device = annotation.device;
    event.extra = annotation.name.value;
    insertions_.push_back({index, event});
    const std::string_view name = trace_.strings.at(annotation.name);
    const bool ends_step = (name.starts_with("Optimizer.step#") && !annotation.begin) ||
                           (name.starts_with("ProfilerStep#") && annotation.begin);
    if (!ends_step) continue;
    event.kind = EventKind::kStepMark;
    event.size_bytes = steps++;
    insertions_.push_back({index, event});
  }
  if (steps != 0) trace_.capabilities |= kSteps;
}

// A free that was put in says what its allocation says; until here it says what the next allocation at its address does.
void TraceBuilder::complete_missing_frees() {
  HashMap<std::uint32_t, Event*> missing;  // by allocation
  for (Insertion& insertion : insertions_) {
    if (insertion.event.kind == EventKind::kFree) missing[insertion.event.allocation.value] = &insertion.event;
  }
  if (missing.empty()) return;
  for (const std::vector<Event>* part : {&front_segments_, &front_blocks_, &trace_.events}) {
    for (const Event& event : *part) {
      if (event.kind != EventKind::kAlloc) continue;
      const auto found = missing.find(event.allocation.value);
      if (found == missing.end()) continue;
      found->second->size_bytes = event.size_bytes;
      found->second->stream = event.stream;
      found->second->heap = event.heap;
    }
  }
}

void TraceBuilder::insert_and_prepend() {
  complete_missing_frees();
  const auto by_place = [](const Event& a, const Event& b) {
    return std::pair(a.device, a.address) < std::pair(b.device, b.address);
  };
  std::stable_sort(front_segments_.begin(), front_segments_.end(), by_place);
  std::stable_sort(front_blocks_.begin(), front_blocks_.end(), by_place);
  std::stable_sort(insertions_.begin(), insertions_.end(),
                   [](const Insertion& a, const Insertion& b) { return a.before < b.before; });
  std::vector<Event>& events = trace_.events;
  const std::int64_t first_time = events.empty() ? 0 : events.front().time_ns;
  const std::size_t front = front_segments_.size() + front_blocks_.size();
  trace_.preexisting_count = static_cast<std::uint32_t>(front);
  if (front == 0 && !events.empty()) trace_.capabilities |= kCompleteFromStart;
  if (front + insertions_.size() == 0) return;

  // One backward sweep in place: each event moves once.
  std::size_t from = events.size();
  events.resize(events.size() + front + insertions_.size());
  std::size_t to = events.size();
  for (auto next = insertions_.rbegin(); next != insertions_.rend(); ++next) {
    while (from > next->before) events[--to] = events[--from];
    events[--to] = next->event;
  }
  while (from > 0) events[--to] = events[--from];
  for (std::vector<Event>* part : {&front_blocks_, &front_segments_}) {
    for (auto event = part->rbegin(); event != part->rend(); ++event) {
      event->time_ns = first_time;
      events[--to] = *event;
    }
  }
}

void TraceBuilder::name_devices() {
  for (Event& event : trace_.events) {
    if (event.stream.value != 0) trace_.streams[event.stream.index()].device = event.device;
  }
  for (FinalSegment& segment : trace_.final_segments) segment.heap = heap_for(segment.device, segment.heap.value);
}

}  // namespace faultline::torch_snapshot
