#include "facts/growth.h"

#include <algorithm>
#include <array>
#include <map>

#include "base/hash.h"
#include "facts/heap_uses.h"

namespace faultline {
namespace {

constexpr std::size_t kMostGrowths = 256;   // of the largest each is gone through the recording for
constexpr std::size_t kMostStretches = 10;  // without marks, the time from a line's first allocation to its last in so many parts
constexpr std::uint64_t kUnseen = ~std::uint64_t{0};
constexpr std::uint64_t kWarmUpSteps = 2;   // lazy state is made in the first steps
constexpr std::uint64_t kLeastSteps = 5;    // after the warm-up
constexpr std::uint64_t kLeastRounds = 8;   // without step marks
constexpr std::uint64_t kLeastBytes = 1 << 20;
constexpr double kLeastShareOfPeak = 0.005;
constexpr std::uint16_t kRolesThatStay = kMovesModule | kConstructs | kLoadsState | kInOptimizer | kCapturesGraph;

bool is_memory(const Event& event) { return (event.kind == EventKind::kAlloc || event.kind == EventKind::kFree) && !event.has(kFailed); }

struct Tally {
  std::uint64_t made = 0;
  std::uint64_t kept = 0;
  std::uint64_t kept_bytes = 0;
  std::uint32_t first = kNever;
  std::uint32_t last_made = 0;
  std::uint32_t last_kept = 0;
};

// Survivors leave about the same number in every stretch, or nearly: the oldest stay as well as the youngest.
bool steady(std::vector<std::uint64_t> survivors) {
  std::vector<std::uint64_t> sorted = survivors;
  std::sort(sorted.begin(), sorted.end());
  const std::uint64_t usual = sorted[sorted.size() / 2];
  const auto poor = std::count_if(survivors.begin(), survivors.end(), [&](std::uint64_t count) { return count * 2 < usual; });
  return usual > 0 && poor * 5 <= std::ssize(survivors);
}

class Finder {
 public:
  Finder(const Trace& trace, const Lifetimes& lifetimes, const StackFacts& stacks, const Steps& steps, std::uint16_t device, std::uint32_t end)
      : trace_(trace), uses_(trace), lifetimes_(lifetimes), stacks_(stacks), device_(device), end_(end) {
    for (const std::uint32_t mark : steps.ends) {
      if (mark <= end) marks_.push_back(mark);
    }
    by_steps_ = marks_.size() >= kWarmUpSteps + kLeastSteps;
    how_ = by_steps_ ? steps.how : "rounds";
  }

  std::vector<Growth> find(std::uint64_t peak_bytes);

 private:
  template <class Visit>
  void for_each_allocation(Visit&& visit) const {
    lifetimes_.for_each([&](AllocationId id, const Lifetime& life, const Event& birth) {
      if (life.born > end_ || birth.has(kPreexisting)) return;  // made before anything could be counted
      if (birth.device == device_ && uses_.is_program(birth.heap) && !trace_.heaps[birth.heap.index()].is_private()) visit(id, life, birth);
    });
  }
  void tally();
  void count_rounds();
  std::uint64_t rounds_of(StackId stack) const;
  bool is_candidate(StackId stack, const Tally& tally) const;
  std::size_t stretches_of(const Tally& line) const;
  std::vector<bool> growing_stacks(const std::vector<StackId>& candidates) const;
  std::uint64_t rise_since(std::uint32_t first) const;

  const Trace& trace_;
  HeapUses uses_;
  const Lifetimes& lifetimes_;
  const StackFacts& stacks_;
  std::uint16_t device_;
  std::uint32_t end_;
  std::vector<std::uint32_t> marks_;
  bool by_steps_ = false;
  std::string how_;
  std::vector<Tally> tallies_;  // by stack
  struct Loop {
    std::uint64_t entries = 0;             // times the program came to this line from another
    std::uint64_t least_outside = kNever;  // fewest allocations of any one stack at this line outside modules
    std::uint64_t least_inside = kNever;
    std::uint64_t most_inside = 0;
  };
  HashMap<std::uint32_t, Loop> loops_;  // by program frame
};

void Finder::tally() {
  tallies_.resize(trace_.stacks.size());
  for_each_allocation([&](AllocationId id, const Lifetime& life, const Event& birth) {
    Tally& line = tallies_[birth.stack.index()];
    ++line.made;
    line.first = std::min(line.first, life.born);
    line.last_made = std::max(line.last_made, life.born);
    if (life.released <= end_) return;
    ++line.kept;
    line.kept_bytes += lifetimes_.held_bytes(id);
    line.last_kept = std::max(line.last_kept, life.born);
  });
}

void Finder::count_rounds() {
  StackId last_program;
  for (std::uint32_t index = 0; index <= end_ && index < trace_.events.size(); ++index) {
    const Event& event = trace_.events[index];
    if (event.kind != EventKind::kAlloc || event.device != device_ || event.stack.value == 0) continue;
    if (!uses_.is_program(event.heap)) continue;
    const StackId program = stacks_.program(event.stack);
    if (program.value == 0 || program == last_program) continue;
    ++loops_[program.value].entries;
    last_program = program;
  }
  for (std::size_t index = 1; index < tallies_.size(); ++index) {
    const StackId stack(static_cast<std::uint32_t>(index));
    const StackId program = stacks_.program(stack);
    if (tallies_[index].made == 0 || program.value == 0) continue;
    Loop& loop = loops_[program.value];
    if (stacks_.has(stack, kInModuleCall)) {
      loop.least_inside = std::min(loop.least_inside, tallies_[index].made);
      loop.most_inside = std::max(loop.most_inside, tallies_[index].made);
    } else {
      loop.least_outside = std::min(loop.least_outside, tallies_[index].made);
    }
  }
}

std::uint64_t Finder::rounds_of(StackId stack) const {
  if (by_steps_) return marks_.size();
  const StackId program = stacks_.program(stack);
  const auto found = loops_.find(program.value);
  if (program.value == 0 || found == loops_.end()) return 0;
  const Loop& loop = found->second;
  if (loop.entries > 1) return loop.entries;
  if (loop.least_outside != kNever) return loop.least_outside;
  // Only modules allocate at this line: calls of the outer module can be told from layers of one call only if the counts differ.
  return loop.least_inside != kNever && loop.least_inside < loop.most_inside ? loop.least_inside : 1;
}

bool Finder::is_candidate(StackId stack, const Tally& line) const {
  const std::uint64_t least = by_steps_ ? kLeastSteps : kLeastRounds;
  if (line.kept < least || (stacks_.roles(stack) & kRolesThatStay)) return false;
  if (stack.value == 0 && !by_steps_) return false;  // no line, no marks: nothing to count rounds by
  if (rounds_of(stack) < least) return false;
  return line.last_kept >= line.first + (end_ - line.first) / 4 * 3;  // still growing when the recording ends
}

std::size_t Finder::stretches_of(const Tally& line) const {
  if (by_steps_) return marks_.size() - kWarmUpSteps;
  return std::clamp<std::size_t>(line.kept / 2, 4, kMostStretches);
}

std::vector<bool> Finder::growing_stacks(const std::vector<StackId>& candidates) const {
  std::vector<std::int32_t> slot_of(trace_.stacks.size(), -1);
  std::vector<std::vector<std::uint64_t>> survivors;
  for (std::size_t slot = 0; slot < candidates.size(); ++slot) {
    const Tally& line = tallies_[candidates[slot].index()];
    const std::size_t stretches = stretches_of(line);
    // Fewer survivors than half the stretches leave most of them empty: such a line is not steady, whatever the rest shows, and needs no counting.
    const bool may_be_steady = line.kept >= stretches / 2;
    survivors.emplace_back(may_be_steady ? stretches : 1);
    if (may_be_steady) slot_of[candidates[slot].index()] = static_cast<std::int32_t>(slot);
  }
  for_each_allocation([&](AllocationId, const Lifetime& life, const Event& birth) {
    const std::int32_t slot = slot_of[birth.stack.index()];
    if (slot < 0 || life.released <= end_) return;
    std::vector<std::uint64_t>& counts = survivors[static_cast<std::size_t>(slot)];
    std::size_t stretch = 0;
    if (by_steps_) {
      if (life.born <= marks_[kWarmUpSteps - 1]) return;
      stretch = static_cast<std::size_t>(std::lower_bound(marks_.begin() + kWarmUpSteps, marks_.end(), life.born) - (marks_.begin() + kWarmUpSteps));
      if (stretch >= counts.size()) return;  // the step that was not finished
    } else {
      const Tally& line = tallies_[birth.stack.index()];
      stretch = static_cast<std::size_t>((std::uint64_t{life.born} - line.first) * counts.size() / (std::uint64_t{line.last_made} - line.first + 1));
    }
    ++counts[stretch];
  });
  std::vector<bool> growing;
  for (std::vector<std::uint64_t>& counts : survivors) growing.push_back(steady(std::move(counts)));
  return growing;
}

// How much the device's low-water mark rose since `first`: what a program keeps shows there, what it turns over does not. Of the later
// half the highest low counts, so that a program that cleans up as it ends is still seen to have grown.
std::uint64_t Finder::rise_since(std::uint32_t first) const {
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

std::vector<Growth> Finder::find(std::uint64_t peak_bytes) {
  tally();
  count_rounds();
  std::vector<StackId> candidates;
  for (std::size_t index = 0; index < tallies_.size(); ++index) {
    const StackId stack(static_cast<std::uint32_t>(index));
    if (tallies_[index].made != 0 && is_candidate(stack, tallies_[index])) candidates.push_back(stack);
  }
  if (candidates.empty()) return {};
  const std::vector<bool> growing = growing_stacks(candidates);
  std::map<std::uint32_t, Growth> by_program;
  for (std::size_t slot = 0; slot < candidates.size(); ++slot) {
    if (!growing[slot]) continue;
    const StackId stack = candidates[slot];
    const Tally& line = tallies_[stack.index()];
    const StackId program = stacks_.program(stack);
    Growth& growth = by_program.try_emplace(program.value).first->second;
    growth.program = program;
    growth.rounds = std::max(growth.rounds, rounds_of(stack));
    growth.round_kind = how_;
    growth.stacks.push_back({stack, line.kept, line.kept_bytes});
    growth.kept_bytes += line.kept_bytes;
    growth.kept_count += line.kept;
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
    const auto least_bytes = std::max(kLeastBytes, static_cast<std::uint64_t>(kLeastShareOfPeak * static_cast<double>(peak_bytes)));
    if (growth.kept_bytes < least_bytes || rise_since(growth.first_event) < growth.kept_bytes / 2) continue;
    growth.bytes_per_round = growth.kept_bytes / std::max<std::uint64_t>(1, growth.rounds);
    std::sort(growth.stacks.begin(), growth.stacks.end(), [](const auto& a, const auto& b) { return a.kept_bytes > b.kept_bytes; });
    result.push_back(std::move(growth));
  }
  std::sort(result.begin(), result.end(), [](const auto& a, const auto& b) { return a.kept_bytes > b.kept_bytes; });
  return result;
}

}  // namespace

std::vector<Growth> find_growth(const Trace& trace, const Lifetimes& lifetimes, const StackFacts& stacks, const Steps& steps,
                                std::uint16_t device, std::uint32_t end, std::uint64_t peak_bytes) {
  return Finder(trace, lifetimes, stacks, steps, device, end).find(peak_bytes);
}

}  // namespace faultline
