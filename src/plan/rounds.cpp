#include "plan/rounds.h"

#include <algorithm>
#include <array>
#include <tuple>

#include "base/hash.h"
#include "facts/cut_loops.h"
#include "facts/heap_uses.h"
#include "models/torch/driver.h"

namespace faultline {
namespace {

constexpr std::uint64_t kMostEvents = 400'000;  // of all rounds that are replayed
constexpr std::uint64_t kEndless = 1'000'000;   // rounds

bool is_request(const HeapUses& uses, const Event& event) {
  if (event.kind == EventKind::kEstimate) return true;
  return (event.kind == EventKind::kAlloc || event.kind == EventKind::kFree) && !event.has(kFailed) &&
         uses.is_program(event.heap);
}

bool are_alike(const Event& a, const Event& b) {
  return a.kind == b.kind && a.size_bytes == b.size_bytes && a.stream == b.stream && a.heap == b.heap &&
         a.device == b.device && a.bits == b.bits && (a.kind != EventKind::kEstimate || a.address == b.address);
}

// What a replay asks of a trace, of its first events.
Trace asked_of(const Trace& from, std::uint32_t end) {
  Trace trace;
  trace.events.assign(from.events.begin(), from.events.begin() + end);
  trace.heaps = from.heaps;
  trace.streams = from.streams;
  trace.devices = from.devices;
  trace.allocation_count = from.allocation_count;
  trace.preexisting_count = from.preexisting_count;
  trace.capabilities = from.capabilities;
  trace.source_kind = from.source_kind;
  trace.properties = from.properties;
  return trace;
}

// With room for all: how much is reserved at the fullest.
std::uint64_t reserved_by(const Trace& trace, std::size_t slot) {
  ReplayOptions options;
  options.estimates = EstimateEnd::kMost;
  options.device = trace.devices[slot].index;
  options.segment_budget_bytes = kNoBudget;
  const Result<ReplayResult> result = replay(trace, options);
  return result ? result->peak_reserved_bytes : 0;
}

// At the marks of a loop: what is alive, and what is reserved for it.
struct Moment {
  double live = 0, reserved = 0;
};

std::vector<Moment> moments_at(const Trace& trace, const std::vector<std::uint32_t>& marks, std::uint16_t device) {
  const HeapUses uses(trace);
  std::vector<std::uint64_t> sizes(trace.allocation_count + std::size_t{1});
  std::vector<Moment> moments;
  Moment now;
  std::size_t next = 0;
  for (std::uint32_t at = 0; at < trace.events.size() && next < marks.size(); ++at) {
    if (at == marks[next]) moments.push_back(now), ++next;
    const Event& event = trace.events[at];
    if (event.device != device || event.allocation.index() >= sizes.size()) continue;
    const HeapUse use = uses.of(event.heap);
    if (use != HeapUse::kProgram && use != HeapUse::kSegments) continue;
    double& bytes = use == HeapUse::kProgram ? now.live : now.reserved;
    if (event.kind == EventKind::kAlloc) {
      sizes[event.allocation.index()] = event.size_bytes;
      bytes += static_cast<double>(event.size_bytes);
    } else if (event.ends_use()) {
      bytes -= static_cast<double>(sizes[event.allocation.index()]);
    }
  }
  return moments;
}

LoopGrowth growth_of(const Trace& trace, const CutLoop& cut, const RisingLoop& loop, std::size_t slot,
                     std::uint64_t room_bytes) {
  LoopGrowth growth{loop, 0, 0, 0};
  const std::vector<Moment> moments = moments_at(trace, cut.marks, trace.devices[slot].index);
  const Moment &middle = moments[moments.size() / 2], &last = moments.back();
  const auto rounds = static_cast<double>(moments.size() - 1 - moments.size() / 2);
  const double live_each = (last.live - middle.live) / rounds,
               reserved_each = (last.reserved - middle.reserved) / rounds;
  growth.bytes_each = static_cast<std::uint64_t>(std::max(0.0, live_each));
  const std::uint64_t to_come = loop.rounds - std::min(loop.rounds, loop.begun);
  if (const std::optional<RoundsToCome> rest = RoundsToCome::of(trace, cut.marks, slot)) {
    if (loop.rounds != 0) growth.segment_bytes_at_end = rest->segment_bytes_after(to_come);
    if (room_bytes != 0) growth.last_served = loop.begun + rest->served_with(room_bytes, kEndless);
  } else {
    const double each = std::max({live_each, reserved_each, 1.0});
    if (loop.rounds != 0)
      growth.segment_bytes_at_end = static_cast<std::uint64_t>(last.reserved + each * static_cast<double>(to_come));
    if (room_bytes != 0)
      growth.last_served = loop.begun + static_cast<std::uint64_t>(
                                            std::max(0.0, static_cast<double>(room_bytes) - last.reserved) / each);
  }
  return growth;
}

}  // namespace

std::optional<RoundsToCome> RoundsToCome::of(const Trace& trace, const std::vector<std::uint32_t>& marks,
                                             std::size_t slot) {
  if (marks.size() < 3) return std::nullopt;
  const HeapUses uses(trace);
  const std::uint32_t begin = marks[marks.size() - 3], middle = marks[marks.size() - 2], end = marks.back();
  struct Made {
    bool is_last = false;
    std::uint32_t at = 0;
  };
  HashMap<std::uint32_t, Made> made;  // by allocation
  std::array<std::uint32_t, 2> counts{};
  std::array<std::vector<Request>, 2> rounds;
  RoundsToCome rest;
  rest.slot_ = slot;
  for (std::uint32_t at = begin; at < end; ++at) {
    const Event& event = trace.events[at];
    if (!is_request(uses, event)) continue;
    const bool is_last = at >= middle;
    Request request{event, 0, false};
    if (event.kind == EventKind::kAlloc) {
      request.made = counts[is_last ? 1 : 0]++;
      made[event.allocation.value] = {is_last, request.made};
      if (is_last) rest.last_.push_back(event.allocation);
    } else if (event.allocation.value != 0) {
      const auto found = made.find(event.allocation.value);
      if (found == made.end()) {
        if (is_last) return std::nullopt;  // older than the round before
        request.of_round_before = true;
      } else {
        request.made = found->second.at;
        request.of_round_before = found->second.is_last != is_last;
      }
    }
    rounds[is_last ? 1 : 0].push_back(request);
  }
  const auto is_same = [](const Request& a, const Request& b) {
    return are_alike(a.event, b.event) && a.of_round_before == b.of_round_before &&
           (a.of_round_before || a.made == b.made);
  };
  if (rounds[1].empty() || !std::equal(rounds[0].begin(), rounds[0].end(), rounds[1].begin(), rounds[1].end(), is_same))
    return std::nullopt;
  rest.round_ = std::move(rounds[1]);
  rest.begun_ = asked_of(trace, end);
  return rest;
}

Trace RoundsToCome::with(std::uint64_t rounds) const {
  Trace trace = asked_of(begun_, static_cast<std::uint32_t>(begun_.events.size()));
  std::vector<AllocationId> before = last_, made(last_.size());
  for (std::uint64_t round = 0; round < rounds; ++round) {
    for (const Request& request : round_) {
      Event event = request.event;
      if (event.kind == EventKind::kAlloc)
        made[request.made] = event.allocation = AllocationId(++trace.allocation_count);
      else if (event.allocation.value != 0)
        event.allocation = (request.of_round_before ? before : made)[request.made];
      trace.events.push_back(event);
    }
    std::swap(before, made);
  }
  return trace;
}

std::uint64_t RoundsToCome::most_rounds() const { return std::max<std::uint64_t>(2, kMostEvents / round_.size()); }

std::uint64_t RoundsToCome::replayed_after(std::uint64_t rounds) const {
  const Trace trace = with(rounds);
  return least_segment_bytes(trace, slot_, {}, reserved_by(trace, slot_), EstimateEnd::kMost).value_or(0);
}

double RoundsToCome::bytes_each() const {
  const std::uint64_t most = most_rounds();
  return (static_cast<double>(replayed_after(most)) - static_cast<double>(replayed_after(most / 2))) /
         static_cast<double>(most - most / 2);
}

std::uint64_t RoundsToCome::segment_bytes_after(std::uint64_t rounds) const {
  const std::uint64_t most = most_rounds();
  if (rounds <= most) return replayed_after(rounds);
  return replayed_after(most) + static_cast<std::uint64_t>(bytes_each() * static_cast<double>(rounds - most));
}

std::uint64_t RoundsToCome::served_with(std::uint64_t segment_bytes, std::uint64_t most) const {
  const auto is_enough = [&](std::uint64_t rounds) {
    return is_served(with(rounds), slot_, {}, segment_bytes, EstimateEnd::kMost);
  };
  std::uint64_t enough = 0, too_many = std::min(most, most_rounds()) + 1;
  if (is_enough(too_many - 1)) {
    if (too_many - 1 == most) return most;
    const double each = std::max(1.0, bytes_each());
    const double room = static_cast<double>(segment_bytes) - static_cast<double>(replayed_after(too_many - 1));
    return std::min(most, too_many - 1 + static_cast<std::uint64_t>(std::max(0.0, room) / each));
  }
  while (too_many - enough > 1) {
    const std::uint64_t middle = enough + (too_many - enough) / 2;
    (is_enough(middle) ? enough : too_many) = middle;
  }
  return enough;
}

bool is_full_in_cut_loop(const Plan& plan) {
  return plan.verdict == Verdict::kFitsUntil && plan.growth.unit == "round" && plan.run.steps != 0 &&
         plan.growth.loop.begun != 0;
}

bool LoopGrowth::matters(const Needs& needs) const {
  constexpr std::uint64_t kSmall = 100;  // of what is needed, its parts
  if (!is_served()) return last_served < loop.begun + kEndless;
  return segment_bytes_at_end > needs.segment_bytes + needs.segment_bytes / kSmall;
}

std::optional<LoopGrowth> growth_of_cut_loops(const Trace& trace, const std::vector<RisingLoop>& loops,
                                              std::size_t slot, std::uint64_t room_bytes) {
  constexpr std::size_t kLeastMarks = 3;
  std::optional<LoopGrowth> most;
  if (loops.empty()) return most;
  const auto rank = [](const LoopGrowth& one) {
    return std::tuple(!one.is_served(), one.segment_bytes_at_end, one.bytes_each);
  };
  for (const CutLoop& cut : cut_loops_of(trace, kLeastMarks)) {
    const auto loop =
        std::find_if(loops.begin(), loops.end(), [&](const RisingLoop& one) { return one.number == cut.number; });
    if (loop == loops.end()) continue;
    LoopGrowth growth = growth_of(trace, cut, *loop, slot, room_bytes);
    if (!most || rank(*most) < rank(growth)) most = std::move(growth);
  }
  return most;
}

}  // namespace faultline
