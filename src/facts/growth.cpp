#include "facts/growth.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <utility>

#include "facts/cut_loops.h"
#include "facts/growth_finder.h"
#include "facts/growth_in_place.h"
#include "trace/marks.h"

namespace faultline {
namespace {

constexpr std::size_t kMostGrowths = 256;  // of the largest each is gone through the recording for
// the steps, or without marks the time from a line's first allocation to its last, in so many parts
constexpr std::size_t kMostStretches = 10;
constexpr std::size_t kLeastStretches = 4;  // each of so few has survivors, or the line does not grow
constexpr std::uint64_t kUnseen = ~std::uint64_t{0};

bool is_memory(const Event& event) {
  return (event.kind == EventKind::kAlloc || event.kind == EventKind::kFree) && !event.has(kFailed);
}

// Backward passes end where the program allocates elsewhere again. The engine's own threads have no frames and say nothing.
std::vector<std::uint32_t> backward_passes(const Trace& trace, const HeapUses& uses, const StackFacts& stacks,
                                           std::uint16_t device) {
  std::vector<std::uint32_t> ends;
  bool inside = false;
  for (std::uint32_t index = 0; index < trace.events.size(); ++index) {
    const Event& event = trace.events[index];
    if (event.kind != EventKind::kAlloc || event.device != device || event.stack.value == 0 ||
        event.has(kPreexisting) || !uses.is_program(event.heap))
      continue;
    const bool now = stacks.roles(event.stack) & (kInBackward | kRecomputes);
    if (inside && !now) ends.push_back(index - 1);
    inside = now;
  }
  return ends;
}

// Of a recording that was put together from looks at what is alive: where each of them ends.
std::vector<std::uint32_t> looks_of(const Trace& trace) {
  std::vector<std::uint32_t> ends;
  for (std::uint32_t index = 0; index < trace.events.size(); ++index) {
    const Event& event = trace.events[index];
    if (event.kind == EventKind::kOpBegin && trace.strings.at(StringId(event.extra)) == kLookMark)
      ends.push_back(index);
  }
  return ends;
}

}  // namespace

std::uint32_t stop_of(const Trace& trace) {
  for (auto at = static_cast<std::uint32_t>(trace.events.size()); at-- > 0;) {
    const Event& event = trace.events[at];
    if (event.kind == EventKind::kOpBegin && trace.strings.at(StringId(event.extra)) == kStopMark) return at;
  }
  return kNever;
}

// A library makes its workspaces when a line first calls it; what comes later has their size by chance.
void GrowthFinder::find_workspaces(const std::vector<AllocationId>& candidates) {
  constexpr std::uint8_t kFirst = 3;
  if (candidates.empty()) return;
  std::vector<std::uint8_t> made(trace_.stacks.size());
  lifetimes_.for_each([&](AllocationId id, const Lifetime&, const Event& birth) {
    std::uint8_t& before = made[birth.stack.index()];
    if (before == kFirst || !uses_.is_program(birth.heap)) return;
    ++before;
    if (std::binary_search(candidates.begin(), candidates.end(), id)) workspaces_.push_back(id);
  });
}

// Of each event the call whose results are made there; without one it is a call of its own. Empty: nothing marks calls.
std::vector<std::size_t> GrowthFinder::calls() const {
  std::uint32_t mark = 0;
  while (mark < trace_.strings.size() && trace_.strings.at(StringId(mark)) != kCallMark) ++mark;
  if (mark == trace_.strings.size()) return {};
  std::vector<std::size_t> calls(trace_.events.size());
  std::size_t now = 0;
  bool inside = false;
  for (std::size_t index = 0; index < calls.size(); ++index) {
    const Event& event = trace_.events[index];
    if (event.kind == EventKind::kOpBegin && event.extra == mark) inside = true, ++now;
    if (event.kind == EventKind::kOpEnd) inside = false;
    calls[index] = inside ? now : ++now;
  }
  return calls;
}

void GrowthFinder::tally() {
  tallies_.resize(trace_.stacks.size());
  const std::vector<std::size_t> calls = this->calls();
  for_each_allocation([&](AllocationId id, const Lifetime& life, const Event& birth) {
    Tally& line = tallies_[birth.stack.index()];
    const std::size_t call = calls.empty() ? std::size_t{life.born} + 1 : calls[life.born];
    line.calls += call != std::exchange(line.last_call, call);
    ++line.made;
    line.made_bytes += lifetimes_.held_bytes(id);
    line.count_size(birth.size_bytes);
    line.first = std::min(line.first, life.born);
    line.last_made = std::max(line.last_made, life.born);
    if (life.released <= end_) return;
    ++line.kept;
    line.kept_bytes += lifetimes_.held_bytes(id);
    line.last_kept = std::max(line.last_kept, life.born);
    if (line.oldest.value == 0) line.oldest = id;
    line.calls_kept += call != std::exchange(line.last_call_kept, call);
    line.let_go_later += life.released < stop_;
    const auto round =
        by_steps_ ? static_cast<std::size_t>(std::lower_bound(marks_.begin(), marks_.end(), life.born) - marks_.begin())
                  : line.kept;
    line.rounds_kept += round != line.last_round;
    line.last_round = round;
  });
}

bool GrowthFinder::is_candidate(StackId stack, const Tally& line) const {
  const std::uint64_t least = by_steps_ ? kLeastSteps : kLeastRounds;
  if ((by_steps_ ? line.kept : line.calls_kept) < least || line.rounds_kept < kLeastStretches || line.first < from_ ||
      (stacks_.roles(stack) & kRolesThatStay))
    return false;
  if (stack.value == 0 && !by_steps_) return false;  // no line, no marks: nothing to count rounds by
  if (rounds_of(stack) < least) return false;
  if (by_ == RoundsBy::kLooks && marks_.size() < warm_up_of(line.first) + least) return false;
  return line.last_kept >= line.first + (end_ - line.first) / 4 * 3;  // still growing when the recording ends
}

// How many marks are not counted, the lazy state of the first steps. Looks go on while programs are compiled and data is loaded: a line's own begin with it.
std::size_t GrowthFinder::warm_up_of(std::uint32_t first_event) const {
  if (by_ != RoundsBy::kLooks) return kWarmUpSteps;
  const auto first = std::lower_bound(marks_.begin(), marks_.end(), first_event) - marks_.begin();
  return std::max<std::size_t>(kWarmUpSteps, static_cast<std::size_t>(first) + 1);
}

std::size_t GrowthFinder::stretches_of(const Tally& line) const {
  const std::size_t most =
      by_steps_ ? std::min(kMostStretches, marks_.size() - warm_up_of(line.first)) : kMostStretches;
  return std::clamp<std::size_t>(line.rounds_kept / 2, kLeastStretches, most);
}

std::size_t GrowthFinder::stretch_of(std::uint32_t event, const Tally& line, std::size_t count) const {
  if (!by_steps_)
    return static_cast<std::size_t>((std::uint64_t{event} - line.first) * count /
                                    (std::uint64_t{end_} - line.first + 1));
  const std::size_t warm_up = warm_up_of(line.first);
  const auto steps = marks_.begin() + static_cast<std::ptrdiff_t>(warm_up);
  if (event <= marks_[warm_up - 1]) return count;
  return static_cast<std::size_t>(std::lower_bound(steps, marks_.end(), event) - steps) * count /
         (marks_.size() - warm_up);
}

std::vector<Stretches> GrowthFinder::stretches(const std::vector<StackId>& candidates) const {
  std::vector<std::int32_t> slot_of(trace_.stacks.size(), -1);
  std::vector<Stretches> all(candidates.size());
  for (std::size_t slot = 0; slot < candidates.size(); ++slot) {
    const std::size_t count = stretches_of(tallies_[candidates[slot].index()]);
    all[slot].survivors.resize(count);
    all[slot].gained.resize(count);
    slot_of[candidates[slot].index()] = static_cast<std::int32_t>(slot);
  }
  for_each_allocation([&](AllocationId, const Lifetime& life, const Event& birth) {
    const std::int32_t slot = slot_of[birth.stack.index()];
    if (slot < 0) return;
    Stretches& line = all[static_cast<std::size_t>(slot)];
    const std::size_t count = line.survivors.size();
    const Tally& tally = tallies_[birth.stack.index()];
    const std::size_t born = stretch_of(life.born, tally, count);
    if (born < count) ++line.gained[born];
    if (life.released <= end_) {
      const std::size_t gone = stretch_of(life.released, tally, count);
      if (gone < count) --line.gained[gone];
      return;
    }
    line.sizes.push_back(birth.size_bytes);
    if (born < count) ++line.survivors[born];
  });
  return all;
}

// What is kept of each round between two marks, and what the device's use rose by in them.
void GrowthFinder::measure_rounds(Growth& growth) const {
  const std::size_t warm_up = warm_up_of(growth.first_event);
  const std::uint32_t from = marks_[warm_up - 1], to = marks_.back();
  std::vector<std::uint64_t> kept(marks_.size() - warm_up);
  std::uint64_t before = 0, after = 0;
  lifetimes_.for_each([&](AllocationId id, const Lifetime& life, const Event& birth) {
    if (birth.device != device_ || life.born > to || !uses_.is_program(birth.heap)) return;
    const std::uint64_t bytes = lifetimes_.held_bytes(id);
    if (life.born <= from && life.released > from) before += bytes;
    if (life.released > to) after += bytes;
    const auto is_ours = [&](const GrowingStack& one) { return one.stack == birth.stack; };
    if (life.born <= from || life.released <= end_ || birth.has(kPreexisting) ||
        std::binary_search(workspaces_.begin(), workspaces_.end(), id) ||
        std::none_of(growth.stacks.begin(), growth.stacks.end(), is_ours))
      return;
    kept[static_cast<std::size_t>(std::lower_bound(marks_.begin(), marks_.end(), life.born) - marks_.begin()) -
         warm_up] += bytes;
  });
  growth.full_rounds = kept.size();
  growth.least_bytes = *std::min_element(kept.begin(), kept.end());
  growth.rise_bytes = after > before ? after - before : 0;
}

// How much the device's low-water mark rose since `first`: what a program keeps shows there, what it turns over does not. Of the later
// half the highest low counts, so that a program that cleans up as it ends is still seen to have grown.
std::uint64_t GrowthFinder::rise_since(std::uint32_t first) const {
  constexpr std::size_t kWindows = 16;
  std::array<std::uint64_t, kWindows> low;
  low.fill(kUnseen);
  std::uint64_t allocated = 0;
  for (std::uint32_t index = 0; index <= end_ && index < trace_.events.size(); ++index) {
    const Event& event = trace_.events[index];
    if (event.device == device_ && event.allocation.value != 0 && is_memory(event) && uses_.is_program(event.heap)) {
      if (event.kind == EventKind::kAlloc) allocated += lifetimes_.held_bytes(event.allocation);
      if (event.ends_use()) allocated -= std::min(allocated, lifetimes_.held_bytes(event.allocation));
    }
    if (index < first) continue;
    std::uint64_t& mark = low[std::uint64_t{index - first} * kWindows / (std::uint64_t{end_} - first + 1)];
    mark = std::min(mark, allocated);
  }
  std::uint64_t highest_late = 0;
  for (std::size_t window = kWindows / 2; window < kWindows; ++window) {
    if (low[window] != kUnseen) highest_late = std::max(highest_late, low[window]);
  }
  return highest_late > low[0] ? highest_late - low[0] : 0;
}

std::vector<Growth> GrowthFinder::find(std::uint64_t peak_bytes) {
  tally();
  const auto may_grow = [&](const Tally& line) {
    return line.kept >= kLeastStretches && line.rounds_kept >= kLeastStretches && line.first >= from_;
  };
  if (std::none_of(tallies_.begin(), tallies_.end(), may_grow)) return {};
  if (!by_steps_) count_rounds();
  std::vector<StackId> candidates;
  for (std::size_t index = 0; index < tallies_.size(); ++index) {
    const StackId stack(static_cast<std::uint32_t>(index));
    if (tallies_[index].made != 0 && is_candidate(stack, tallies_[index])) candidates.push_back(stack);
  }
  if (candidates.empty()) return {};
  const std::vector<Stretches> lines = stretches(candidates);
  std::map<std::uint32_t, Growth> by_program;
  for (std::size_t slot = 0; slot < candidates.size(); ++slot) {
    if (!lines[slot].grow()) continue;
    const StackId stack = candidates[slot];
    const Tally& line = tallies_[stack.index()];
    const StackId program = stacks_.program(stack);
    Growth& growth = by_program.try_emplace(program.value).first->second;
    growth.program = program;
    growth.rounds = std::max<std::uint64_t>(
        growth.rounds, by_ == RoundsBy::kLooks ? marks_.size() - warm_up_of(line.first) : rounds_of(stack));
    growth.rounds_by = by_;
    if (!by_steps_ && line.calls_kept * 2 > line.kept && lines[slot].vary()) growth.rounds_by = RoundsBy::kSizes;
    growth.round_kind = how_;
    growth.stacks.push_back({stack, line.oldest, line.kept, line.kept_bytes});
    growth.kept_bytes += line.kept_bytes;
    growth.kept_count += line.kept;
    growth.in_every_stretch = growth.in_every_stretch && lines[slot].everywhere();
    growth.let_go_later = growth.let_go_later || line.let_go_later * 2 > line.kept;
    growth.first_event = growth.first_event == 0 ? line.first : std::min(growth.first_event, line.first);
  }
  std::vector<Growth> all;
  for (auto& [program, growth] : by_program) all.push_back(std::move(growth));
  if (all.size() > kMostGrowths) {
    const auto by_bytes = [](const Growth& a, const Growth& b) { return a.kept_bytes > b.kept_bytes; };
    std::stable_sort(all.begin(), all.end(), by_bytes);
    all.resize(kMostGrowths);
  }
  std::vector<Growth> result;
  for (Growth& growth : all) {
    const std::uint64_t least_bytes = least_growth(peak_bytes);
    growth.rise_bytes = rise_since(growth.first_event);
    if (growth.kept_bytes < least_bytes || growth.rise_bytes < growth.kept_bytes / 2) continue;
    growth.bytes_per_round = growth.kept_bytes / std::max<std::uint64_t>(1, growth.rounds);
    std::sort(growth.stacks.begin(), growth.stacks.end(),
              [](const auto& a, const auto& b) { return a.kept_bytes > b.kept_bytes; });
    if (by_ == RoundsBy::kLooks) {
      measure_rounds(growth);
      growth.is_over = is_over(growth);
      growth.from_host = is_from_host(growth);
      // what a loop makes comes again and again; a model that is built, or data, makes a few of each
      if (growth.is_over || growth.from_host || growth.kept_count < kManyRounds) growth.rounds_by = RoundsBy::kUnknown;
    } else if (by_steps_) {
      if (are_gradients_of_models(growth)) continue;
      measure_rounds(growth);
    } else {
      growth.is_over = is_over(growth);
      growth.from_host = is_from_host(growth);
      if (growth.is_over)
        growth.rounds_by = RoundsBy::kUnknown;
      else if (growth.rounds_by == RoundsBy::kUnknown)
        growth.rounds_by = evidence_for(growth, peak_bytes);
      growth.bytes_per_round = growth.kept_bytes / std::max<std::uint64_t>(1, growth.rounds);
    }
    result.push_back(std::move(growth));
  }
  std::sort(result.begin(), result.end(), [](const auto& a, const auto& b) { return a.kept_bytes > b.kept_bytes; });
  return result;
}

static std::vector<Growth> find_growth_of_program(const Trace& trace, const Lifetimes& lifetimes,
                                                  const StackFacts& stacks, const Steps& steps,
                                                  const Categories& categories, std::uint16_t device, std::uint32_t end,
                                                  std::uint32_t stop, std::uint64_t peak_bytes) {
  std::vector<std::uint32_t> marks = steps.ends;
  RoundsBy by = RoundsBy::kSteps;
  std::string how = steps.how;
  const auto within = [&] {
    std::erase_if(marks, [&](std::uint32_t mark) { return mark > end; });
    return marks.size() >= kWarmUpSteps + kLeastSteps;
  };
  if (std::vector<std::uint32_t> looks = looks_of(trace); !looks.empty()) {
    marks = std::move(looks);
    if (!within()) return {};
    return GrowthFinder(trace, lifetimes, stacks, categories, device, end, stop, 0, std::move(marks), RoundsBy::kLooks,
                        "looks")
        .find(peak_bytes);
  }
  if (!within()) {
    marks = backward_passes(trace, HeapUses(trace), stacks, device);
    by = RoundsBy::kBackward;
    how = "backward passes";
  }
  if (!within()) {
    std::vector<Growth> found =
        GrowthFinder(trace, lifetimes, stacks, categories, device, end, stop, 0, {}, RoundsBy::kUnknown, "rounds")
            .find(peak_bytes);
    if (stop == kNever) return found;  // it may have been joined once, to its end
    std::vector<Growth> joined = find_growth_by_joining(trace, lifetimes, stacks, device, end, peak_bytes);
    found.insert(found.end(), std::make_move_iterator(joined.begin()), std::make_move_iterator(joined.end()));
    return found;
  }
  // What the last mark still saw may be gone at the end: a function returned and dropped its list. And a recording that goes on after the training,
  // with an evaluation say, has a second part without marks.
  const std::uint32_t last = marks.back();
  std::vector<Growth> in_place = find_growth_in_place(trace, lifetimes, stacks, device, marks, peak_bytes);
  for (Growth& growth : in_place) {
    growth.rounds_by = by;
    growth.round_kind = how;
  }
  std::vector<Growth> found =
      GrowthFinder(trace, lifetimes, stacks, categories, device, end, stop, 0, marks, by, how).find(peak_bytes);
  std::vector<Growth> before =
      GrowthFinder(trace, lifetimes, stacks, categories, device, last, stop, 0, std::move(marks), by, how)
          .find(peak_bytes);
  std::erase_if(before, [&](const Growth& one) {
    return std::any_of(found.begin(), found.end(), [&](const Growth& other) { return other.program == one.program; });
  });
  found.insert(found.end(), std::make_move_iterator(before.begin()), std::make_move_iterator(before.end()));
  std::vector<Growth> later =
      GrowthFinder(trace, lifetimes, stacks, categories, device, end, stop, last, {}, RoundsBy::kUnknown, "rounds")
          .find(peak_bytes);
  found.insert(found.end(), std::make_move_iterator(later.begin()), std::make_move_iterator(later.end()));
  found.insert(found.end(), std::make_move_iterator(in_place.begin()), std::make_move_iterator(in_place.end()));
  return found;
}

std::vector<Growth> find_growth(const Trace& trace, const Lifetimes& lifetimes, const StackFacts& stacks,
                                const Steps& steps, const Categories& categories, std::uint16_t device,
                                std::uint32_t end, std::uint64_t peak_bytes) {
  const std::uint32_t stop = stop_of(trace);
  end = std::min(end, stop);
  std::vector<Growth> found;
  const auto add = [&](std::vector<Growth> more) {
    std::erase_if(more, [&](const Growth& one) {
      return std::any_of(found.begin(), found.end(), [&](const Growth& other) { return other.program == one.program; });
    });
    found.insert(found.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
  };
  // A loop that the dry run ended is no loop that is over: what it keeps is judged at the end of its last round.
  for (CutLoop& loop : cut_loops_of(trace, kWarmUpSteps + kLeastSteps)) {
    const std::uint32_t last = loop.marks.back();
    if (last <= end)
      add(GrowthFinder(trace, lifetimes, stacks, categories, device, last, stop, 0, std::move(loop.marks),
                       RoundsBy::kBackward, std::string(kRoundsOfCutLoop))
              .find(peak_bytes));
  }
  add(find_growth_of_program(trace, lifetimes, stacks, steps, categories, device, end, stop, peak_bytes));
  return found;
}

}  // namespace faultline
