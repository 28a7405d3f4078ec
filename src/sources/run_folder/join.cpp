#include "sources/run_folder/join.h"

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include "sources/bounds.h"
#include "sources/run_folder/same_memory.h"
#include "sources/trace_import.h"

namespace faultline {
namespace {

constexpr std::int64_t kSoonNs = 2'000'000'000;
constexpr std::size_t kSoonEvents = 6;
constexpr std::size_t kMostFrames = 64;  // of CUDA's runtime that may stand above who asked

class Join {
 public:
  Join(Trace torch, const Trace& capture)
      : trace_(std::move(torch)),
        capture_(capture),
        same_(find_same_memory(trace_, capture)),
        torch_events_(std::move(trace_.events)),
        import_(capture, trace_),
        ids_(capture.allocation_count + std::size_t{1}) {}

  Trace run() {
    give_heaps();
    merge_devices(capture_, trace_);
    find_ids();
    begin();
    merge();
    finish();
    return std::move(trace_);
  }

 private:
  // The capture's plain allocations come to stand beside PyTorch's segments, not among them: on them, as PyTorch has no part in them.
  void give_heaps() {
    std::map<std::uint16_t, HeapId> driver_of;  // by device: PyTorch's lowest
    for (std::size_t index = 0; index < trace_.heaps.size(); ++index) {
      const Heap& heap = trace_.heaps[index];
      if (heap.kind == HeapKind::kDriver && heap.below.index() == index)
        driver_of.try_emplace(heap.device, static_cast<std::uint16_t>(index));
    }
    for (std::size_t index = 0; index < capture_.heaps.size() && trace_.heaps.size() < kMostHeaps; ++index) {
      const Heap& heap = capture_.heaps[index];
      const HeapId id(static_cast<std::uint16_t>(index));
      if (heap.kind != HeapKind::kDriver || heap.below != id) continue;
      const auto driver = driver_of.find(heap.device);
      if (driver == driver_of.end()) continue;
      import_.put_heap(id, HeapId(static_cast<std::uint16_t>(trace_.heaps.size())));
      trace_.heaps.push_back({HeapKind::kDriver, heap.device, driver->second, 0, 0, "driver, outside PyTorch"});
    }
  }

  void find_ids() {
    paired_.assign(torch_events_.size(), kNoEvent);
    for (std::uint32_t index = 0; index < capture_.events.size(); ++index) {
      const std::uint32_t torch = same_.torch_of[index];
      if (torch == kNoEvent) continue;
      paired_[torch] = index;
      const AllocationId id = capture_.events[index].allocation;
      if (capture_.events[index].kind == EventKind::kAlloc && id.index() < ids_.size())
        ids_[id.index()] = torch_events_[torch].allocation;
    }
  }

  // What stood before either recording began comes first; its time is that of the first event of all.
  void begin() {
    std::int64_t first_ns = std::numeric_limits<std::int64_t>::max();
    if (capture_.preexisting_count < capture_.events.size())
      first_ns = on_torch_clock(capture_.events[capture_.preexisting_count].time_ns);
    trace_.events.reserve(torch_events_.size() + capture_.events.size());
    for (; next_torch_ < trace_.preexisting_count; ++next_torch_) {
      Event event = torch_events_[next_torch_];
      event.time_ns = std::min(event.time_ns, first_ns);
      add_torch(event, next_torch_);
    }
    for (; next_capture_ < capture_.preexisting_count; ++next_capture_) {
      if (add_capture(next_capture_)) ++trace_.preexisting_count;
    }
  }

  void merge() {
    while (next_torch_ < torch_events_.size() || next_capture_ < capture_.events.size()) {
      if (take_torch()) {
        add_torch(torch_events_[next_torch_], next_torch_);
        ++next_torch_;
      } else {
        add_capture(next_capture_++);
      }
    }
  }

  // Whether PyTorch's event comes next. A pair is taken together: what stands before it on either side goes first.
  bool take_torch() const {
    if (next_torch_ == torch_events_.size()) return false;
    if (next_capture_ == capture_.events.size()) return true;
    const std::uint32_t partner = paired_[next_torch_];
    const bool torch_waits = partner != kNoEvent && same_.in_order[partner] && partner >= next_capture_;
    if (torch_waits) return partner == next_capture_;
    if (same_.torch_of[next_capture_] != kNoEvent && same_.in_order[next_capture_] &&
        same_.torch_of[next_capture_] >= next_torch_)
      return true;
    if (!same_.has_times) return true;
    return torch_events_[next_torch_].time_ns <= on_torch_clock(capture_.events[next_capture_].time_ns);
  }

  std::int64_t on_torch_clock(std::int64_t time_ns) const {
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(time_ns) + static_cast<std::uint64_t>(same_.offset_ns));
  }

  void add_torch(Event event, std::size_t index) {
    const std::uint32_t partner = paired_[index];
    if (partner != kNoEvent) {
      const Event& seen = capture_.events[partner];
      if (event.stack.value == 0) event.stack = import_.stack(seen.stack);
      event.thread = seen.thread;
    }
    trace_.events.push_back(event);
  }

  bool add_capture(std::size_t index) {
    const Event& seen = capture_.events[index];
    if (same_.is_torch[index]) return false;
    if (seen.kind == EventKind::kAllocFailed && was_torchs_request(index)) return false;
    Event event = import_.renumbered(seen);
    event.time_ns = on_torch_clock(seen.time_ns);
    if (seen.allocation.value != 0 && seen.allocation.index() < ids_.size()) {
      AllocationId& id = ids_[seen.allocation.index()];
      const bool makes = seen.kind == EventKind::kAlloc || seen.kind == EventKind::kHostPin;
      if (makes) id = AllocationId(++trace_.allocation_count);
      event.allocation = id;
    }
    trace_.events.push_back(event);
    return true;
  }

  // The driver refused PyTorch, which then gave back its cache and asked again, or reports the failure itself.
  bool was_torchs_request(std::size_t index) const {
    const Event& refused = capture_.events[index];
    switch (asker(refused.stack)) {
      case Asker::kTorch: return true;
      case Asker::kOther: return false;
      case Asker::kUnknown: break;
    }
    const std::int64_t time_ns = on_torch_clock(refused.time_ns);
    const std::size_t end = std::min(torch_events_.size(), next_torch_ + kSoonEvents);
    for (std::size_t at = next_torch_; at < end; ++at) {
      const Event& event = torch_events_[at];
      if (event.device != refused.device) continue;
      if (same_.has_times && (event.time_ns < time_ns || event.time_ns - time_ns > kSoonNs)) return false;
      if (event.kind == EventKind::kAllocFailed) return event.size_bytes <= refused.size_bytes;
      const bool of_segments = trace_.heaps[event.heap.index()].kind == HeapKind::kDriver;
      if (of_segments && event.kind != EventKind::kMap)
        return event.kind == EventKind::kFree || event.size_bytes == refused.size_bytes;
    }
    return false;
  }

  enum class Asker { kTorch, kOther, kUnknown };
  // By the innermost module that is not CUDA's runtime.
  Asker asker(StackId stack) const {
    for (std::size_t looked_at = 0; stack.value != 0 && looked_at < kMostFrames;
         stack = capture_.stacks.parent(stack), ++looked_at) {
      std::string_view name = capture_.strings.at(capture_.stacks.frame(stack).file);
      if (name.ends_with(".py") || name.find(".so") == std::string_view::npos) return Asker::kUnknown;
      name.remove_prefix(name.rfind('/') + 1);
      if (name.starts_with("libcudart") || name.starts_with("libcuda.") || name.starts_with("libfaultline")) continue;
      return name.starts_with("libc10") || name.starts_with("libtorch") ? Asker::kTorch : Asker::kOther;
    }
    return Asker::kUnknown;
  }

  void finish() {
    trace_.source_events += capture_.source_events != 0 ? capture_.source_events : capture_.events.size();
    const std::uint32_t complete = trace_.preexisting_count == 0 ? std::uint32_t{kCompleteFromStart} : 0;
    trace_.capabilities =
        ((trace_.capabilities | capture_.capabilities) & ~std::uint32_t{kCompleteFromStart}) | complete;
    for (const auto& [name, value] : capture_.properties) trace_.properties.try_emplace(name, value);
    for (const auto& [what, times] : capture_.lost) trace_.count(what, times);
    trace_.properties["run.pairs"] = std::to_string(same_.pairs);
    if (same_.has_times) trace_.properties["run.clock_difference_ns"] = std::to_string(same_.offset_ns);
  }

  Trace trace_;
  const Trace& capture_;
  SameMemory same_;
  std::vector<Event> torch_events_;
  TraceImport import_;
  std::vector<AllocationId> ids_;      // by the capture's ids
  std::vector<std::uint32_t> paired_;  // by PyTorch's events: the capture's
  std::size_t next_torch_ = 0;
  std::size_t next_capture_ = 0;
};

}  // namespace

Trace join_traces(Trace torch, const Trace& capture) { return Join(std::move(torch), capture).run(); }

}  // namespace faultline
