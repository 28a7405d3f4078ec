#include "trace/validate.h"

#include <fmt/format.h>

#include <algorithm>
#include <bitset>
#include <memory>

namespace faultline {
namespace {

constexpr std::size_t kMostHeaps = std::size_t{1} << 16;

using Problem = std::optional<TraceProblem>;

template <class Id>
Problem id_problem(const char* what, Id id, std::size_t size) {
  if (id.index() < size) return std::nullopt;
  return TraceProblem{{}, fmt::format("names {} {}, the trace has {}", what, id.value, size)};
}

template <class Id>
Problem id_problem(const char* what, Id id, std::size_t size, const char* owner, std::size_t index) {
  if (id.index() < size) return std::nullopt;
  return TraceProblem{{}, fmt::format("{} {} names {} {}, the trace has {}", owner, index, what, id.value, size)};
}

// Stream 0 is the default stream, whether or not the source lists it.
std::size_t stream_count(const Trace& trace) { return std::max<std::size_t>(trace.streams.size(), 1); }

Problem find_table_problem(const Trace& trace) {
  const std::size_t strings = trace.strings.size();
  for (std::uint32_t i = 0; i < trace.stacks.frame_count(); ++i) {
    const Frame& frame = trace.stacks.frame(FrameId(i));
    for (const StringId id : {frame.function, frame.file}) {
      if (auto problem = id_problem("string", id, strings, "frame", i)) return problem;
    }
  }
  for (std::uint32_t i = 0; i < trace.tensors.size(); ++i) {
    const Tensor& tensor = trace.tensors.at(TensorId(i));
    for (const StringId id : {tensor.dtype, tensor.op, tensor.name, tensor.operands}) {
      if (auto problem = id_problem("string", id, strings, "tensor", i)) return problem;
    }
  }
  for (std::uint32_t i = 0; i < trace.copies.size(); ++i) {
    const Copy& copy = trace.copies.at(CopyId(i));
    if (std::max(copy.source_side, copy.destination_side) > MemorySide::kArray)
      return TraceProblem{{}, fmt::format("copy {} has no known side", i)};
  }
  for (std::uint32_t i = 0; i < trace.violations.size(); ++i) {
    const Violation& violation = trace.violations.at(ViolationId(i));
    if (violation.kind > ViolationKind::kMisaligned || violation.access > AccessKind::kAtomic)
      return TraceProblem{{}, fmt::format("violation {} is of no known kind", i)};
  }
  Problem in_calls;
  each_call_table(trace, [&](const auto& table) {
    using Table = std::remove_cvref_t<decltype(table)>;
    for (std::uint32_t i = 0; i < table.size(); ++i) {
      for (const StringId* const id : strings_of(table.at(typename Table::Id(i)))) {
        if (!in_calls) in_calls = id_problem("string", *id, strings, CallKind<typename Table::Value>::kWord, i);
      }
    }
  });
  if (in_calls) return in_calls;
  for (std::uint32_t i = 1; i < trace.stacks.size(); ++i) {
    const StackId stack(i);
    if (trace.stacks.parent(stack) >= stack)
      return TraceProblem{{}, fmt::format("stack {} stands before its caller", i)};
    if (auto problem = id_problem("frame", trace.stacks.frame_id(stack), trace.stacks.frame_count(), "stack", i))
      return problem;
  }
  return std::nullopt;
}

Problem find_place_problem(const Trace& trace) {
  if (trace.heaps.size() > kMostHeaps)
    return TraceProblem{{}, fmt::format("{} heaps, the most a trace can name is {}", trace.heaps.size(), kMostHeaps)};
  for (std::size_t i = 0; i < trace.heaps.size(); ++i) {
    if (static_cast<int>(trace.heaps[i].kind) >= kHeapKindCount)
      return TraceProblem{{}, fmt::format("heap {} is of no known kind", i)};
    if (auto problem = id_problem("heap", trace.heaps[i].below, trace.heaps.size(), "heap", i)) return problem;
  }
  if (const auto circles = heaps_in_circles(trace.heaps); !circles.empty()) {
    return TraceProblem{{}, fmt::format("heap {} has no lowest heap below it", circles.front().value)};
  }
  auto seen = std::make_unique<std::bitset<65536>>();
  for (const Device& device : trace.devices) {
    if (seen->test(device.index)) return TraceProblem{{}, fmt::format("device {} is listed twice", device.index)};
    seen->set(device.index);
  }
  return std::nullopt;
}

Problem find_final_problem(const Trace& trace) {
  for (std::size_t i = 0; i < trace.final_segments.size(); ++i) {
    const FinalSegment& segment = trace.final_segments[i];
    const char* const owner = "final segment";
    if (auto problem = id_problem("heap", segment.heap, trace.heaps.size(), owner, i)) return problem;
    if (auto problem = id_problem("stream", segment.stream, stream_count(trace), owner, i)) return problem;
    if (auto problem = id_problem("stack", segment.stack, trace.stacks.size(), owner, i)) return problem;
    if (std::uint64_t{segment.first_block} + segment.block_count > trace.final_blocks.size()) {
      return TraceProblem{
          {},
          fmt::format("{} {} names blocks {} to {}, the trace has {}", owner, i, segment.first_block,
                      std::uint64_t{segment.first_block} + segment.block_count, trace.final_blocks.size())};
    }
  }
  for (std::size_t i = 0; i < trace.final_blocks.size(); ++i) {
    const FinalBlock& block = trace.final_blocks[i];
    if (block.state > FinalBlock::State::kPendingFree)
      return TraceProblem{{}, fmt::format("final block {} is in no known state", i)};
    if (auto problem = id_problem("stack", block.stack, trace.stacks.size(), "final block", i)) return problem;
  }
  return std::nullopt;
}

class EventCheck {
 public:
  explicit EventCheck(const Trace& trace)
      : trace_(trace), made_(std::size_t{std::min<std::uint64_t>(trace.allocation_count, trace.events.size())} + 1) {
    for (const Device& device : trace.devices) devices_->set(device.index);
  }

  Problem find() {
    if (trace_.allocation_count > trace_.events.size()) {
      return TraceProblem{
          {}, fmt::format("{} allocations, but only {} events", trace_.allocation_count, trace_.events.size())};
    }
    if (trace_.preexisting_count > trace_.events.size()) {
      return TraceProblem{{},
                          fmt::format("{} events before the recording, but only {} events", trace_.preexisting_count,
                                      trace_.events.size())};
    }
    std::uint64_t made_count = 0;
    for (std::size_t i = 0; i < trace_.events.size(); ++i) {
      const Event& event = trace_.events[i];
      if (auto problem = check(event, i)) {
        problem->event = i;
        return problem;
      }
      if (makes_allocation(event.kind)) ++made_count;
    }
    if (made_count != trace_.allocation_count) {
      return TraceProblem{
          {}, fmt::format("{} allocations, but {} have an Alloc or HostPin", trace_.allocation_count, made_count)};
    }
    return std::nullopt;
  }

 private:
  Problem check(const Event& event, std::size_t index) {
    if (static_cast<int>(event.kind) >= kEventKindCount) return TraceProblem{{}, "is of no known kind"};
    if ((event.bits & 3) == 3) return TraceProblem{{}, "is in no known phase"};
    if (event.has(kPreexisting) != (index < trace_.preexisting_count)) {
      return TraceProblem{{},
                          fmt::format("{} marked as before the recording, but the first {} events are",
                                      event.has(kPreexisting) ? "is" : "is not", trace_.preexisting_count)};
    }
    if (auto problem = id_problem("stack", event.stack, trace_.stacks.size())) return problem;
    if (auto problem = id_problem("stream", event.stream, stream_count(trace_))) return problem;
    if (happens_in_heap(event.kind)) {
      if (auto problem = id_problem("heap", event.heap, trace_.heaps.size())) return problem;
    }
    if (happens_on_device(event.kind) && !trace_.devices.empty() && !devices_->test(event.device)) {
      return TraceProblem{{}, fmt::format("names device {}, which the trace does not list", event.device)};
    }
    if (extra_is_tensor(event.kind)) {
      if (auto problem = id_problem("tensor", TensorId(event.extra), trace_.tensors.size())) return problem;
    }
    if (extra_is_string(event.kind)) {
      if (auto problem = id_problem("string", StringId(event.extra), trace_.strings.size())) return problem;
    }
    if (auto problem = check_call(event)) return problem;
    return check_allocation(event);
  }

  Problem check_call(const Event& event) const {
    Problem problem;
    each_call_table(trace_, [&](const auto& table) {
      using Table = std::remove_cvref_t<decltype(table)>;
      using Kind = CallKind<typename Table::Value>;
      if (event.kind == Kind::kEvent) problem = id_problem(Kind::kWord, typename Table::Id(event.extra), table.size());
    });
    return problem;
  }

  Problem check_allocation(const Event& event) {
    const std::uint32_t id = event.allocation.value;
    if (id > trace_.allocation_count)
      return TraceProblem{{}, fmt::format("names allocation {}, the trace has {}", id, trace_.allocation_count)};
    if (makes_allocation(event.kind)) {
      if (id == 0) return TraceProblem{{}, "makes an allocation without an id"};
      if (made_[id]) return TraceProblem{{}, fmt::format("makes allocation {} a second time", id)};
      made_[id] = true;
    } else if (ends_allocation(event.kind) && id != 0 && !made_[id]) {
      return TraceProblem{{}, fmt::format("frees allocation {} before it is made", id)};
    }
    return std::nullopt;
  }

  const Trace& trace_;
  std::vector<bool> made_;
  std::unique_ptr<std::bitset<65536>> devices_ = std::make_unique<std::bitset<65536>>();
};

}  // namespace

std::vector<HeapId> heaps_in_circles(const std::vector<Heap>& heaps) {
  enum class Mark : std::uint8_t { kUnseen, kOnPath, kGrounded, kCircling };
  std::vector<Mark> marks(heaps.size(), Mark::kUnseen);
  std::vector<HeapId> circling;
  std::vector<std::size_t> path;
  for (std::size_t start = 0; start < heaps.size(); ++start) {
    path.clear();
    std::size_t at = start;
    while (marks[at] == Mark::kUnseen) {
      marks[at] = Mark::kOnPath;
      path.push_back(at);
      if (heaps[at].below.index() == at) {
        marks[at] = Mark::kGrounded;
        break;
      }
      at = heaps[at].below.index();
    }
    const Mark end = marks[at] == Mark::kGrounded ? Mark::kGrounded : Mark::kCircling;
    for (const std::size_t heap : path) {
      marks[heap] = end;
      if (end == Mark::kCircling) circling.emplace_back(static_cast<std::uint16_t>(heap));
    }
  }
  return circling;
}

std::optional<TraceProblem> find_problem(const Trace& trace) {
  if (auto problem = find_table_problem(trace)) return problem;
  if (auto problem = find_place_problem(trace)) return problem;
  if (auto problem = find_final_problem(trace)) return problem;
  return EventCheck(trace).find();
}

Status check_trace(const Trace& trace) {
  const auto problem = find_problem(trace);
  if (!problem) return Ok{};
  if (!problem->event) return Error{problem->what, {}, {}};
  const EventKind kind = trace.events[*problem->event].kind;
  const std::string_view name = static_cast<int>(kind) < kEventKindCount ? name_of(kind) : "?";
  return Error{fmt::format("event {} ({}) {}", *problem->event, name, problem->what), {}, {}};
}

}  // namespace faultline
