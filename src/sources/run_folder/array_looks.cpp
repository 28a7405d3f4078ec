#include "sources/run_folder/array_looks.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "sources/trace_import.h"
#include "trace/marks.h"

namespace faultline {
namespace {

constexpr std::size_t kMostEvents = std::size_t{1} << 21;
// A few arrays that are larger or smaller than before were made anew; of many the mean moves with every one that comes or goes.
constexpr std::size_t kMostMadeAnew = 64;

struct Alive {
  std::uint64_t count = 0, bytes = 0;
  Event like;  // one of them
};
using Lines = std::map<std::tuple<std::uint16_t, std::uint32_t, std::uint32_t>, Alive>;  // device, stack, tensor

class LookJoiner {
 public:
  void add(const ArrayLook& look) {
    const Lines now = lines_of(look);
    for (auto& [line, made] : made_) {
      if (!now.contains(line)) let_go(look, made, 0);
    }
    for (const auto& [line, alive] : now) follow(look, alive, made_[line]);
    for (const EventKind kind : {EventKind::kOpBegin, EventKind::kOpEnd}) {
      Event mark;
      mark.kind = kind;
      mark.time_ns = look.time_ns;
      mark.extra = trace_.strings.intern(kLookMark).value;
      trace_.events.push_back(mark);
    }
    is_first_ = false;
  }
  bool has_room(const ArrayLook& look) const {
    return trace_.events.size() + 2 * look.trace.events.size() < kMostEvents;
  }
  Trace take() { return std::move(trace_); }
  Trace& trace() { return trace_; }

 private:
  Lines lines_of(const ArrayLook& look) {
    TraceImport taken(look.trace, trace_);
    for (std::size_t at = 0; at < look.trace.heaps.size(); ++at) {
      const HeapId from(static_cast<std::uint16_t>(at));
      const auto [known, is_new] = heaps_.try_emplace(look.trace.heaps[at].device);
      if (is_new)
        known->second = taken.heap(from);
      else
        taken.put_heap(from, known->second);
    }
    merge_devices(look.trace, trace_);
    Lines lines;
    for (const Event& event : look.trace.events) {
      if (event.kind != EventKind::kAlloc) continue;
      const Event here = taken.renumbered(event);
      Alive& line = lines[{here.device, here.stack.value, here.extra}];
      ++line.count;
      line.bytes += here.size_bytes;
      line.like = here;
    }
    return lines;
  }

  struct Made {
    std::vector<std::size_t> events;  // those that are alive, oldest first
    std::uint64_t bytes = 0;
  };

  void follow(const ArrayLook& look, const Alive& alive, Made& made) {
    if (alive.count < made.events.size()) let_go(look, made, alive.count);
    const bool as_many = alive.count == made.events.size();
    const std::uint64_t off = std::max(made.bytes, alive.bytes) - std::min(made.bytes, alive.bytes);
    if (as_many && alive.count <= kMostMadeAnew && off > alive.bytes / 100) let_go(look, made, 0);
    const std::uint64_t more = alive.count - made.events.size();
    if (more == 0) return;
    const std::uint64_t bytes = alive.bytes > made.bytes ? alive.bytes - made.bytes : alive.bytes / alive.count * more;
    for (std::uint64_t at = 0; at < more; ++at) {
      Event event = alive.like;
      event.time_ns = look.time_ns;
      event.size_bytes = bytes / more + (at < bytes % more ? 1 : 0);
      event.allocation = AllocationId(++trace_.allocation_count);
      event.bits = 0;
      if (is_first_) {
        event.set(kPreexisting);
        ++trace_.preexisting_count;
      }
      made.events.push_back(trace_.events.size());
      made.bytes += event.size_bytes;
      trace_.events.push_back(event);
    }
  }

  void let_go(const ArrayLook& look, Made& made, std::size_t left) {
    while (made.events.size() > left) {
      Event event = trace_.events[made.events.back()];
      made.events.pop_back();
      made.bytes -= event.size_bytes;
      event.kind = EventKind::kFree;
      event.time_ns = look.time_ns;
      event.extra = 0;
      event.bits = 0;
      event.set_phase(FreePhase::kBoth);
      trace_.events.push_back(event);
    }
  }

  Trace trace_;
  std::map<std::uint16_t, HeapId> heaps_;  // by device
  std::map<std::tuple<std::uint16_t, std::uint32_t, std::uint32_t>, Made> made_;
  bool is_first_ = true;
};

}  // namespace

Trace join_looks(std::vector<ArrayLook> looks) {
  LookJoiner joiner;
  std::uint64_t left_out = 0;
  for (ArrayLook& look : looks) {
    if (joiner.has_room(look))
      joiner.add(look);
    else
      ++left_out;
    for (const auto& [what, times] : look.trace.lost) joiner.trace().count(what, times);
    look.trace = {};
  }
  Trace trace = joiner.take();
  trace.capabilities = kStacks | kTimes | kEvents;
  trace.count("looks at JAX's arrays for which there was no room", left_out);
  return trace;
}

}  // namespace faultline
