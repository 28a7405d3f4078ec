#include "facts/growth.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <map>

#include "base/hash.h"
#include "facts/growth_alike.h"
#include "facts/growth_in_place.h"
#include "facts/growth_lines.h"
#include "facts/heap_uses.h"

namespace faultline {
namespace {

constexpr std::size_t kMostGrowths = 256;  // of the largest each is gone through the recording for
// the steps, or without marks the time from a line's first allocation to its last, in so many parts
constexpr std::size_t kMostStretches = 10;
constexpr std::uint64_t kManyRounds = 64;  // of one line alone: a pass through layers makes its memory at several
constexpr std::uint64_t kUnseen = ~std::uint64_t{0};
constexpr std::uint64_t kLeastSteps = 5;   // after the warm-up
constexpr std::uint64_t kLeastRounds = 8;  // without step marks
constexpr std::uint16_t kRolesThatStay = kMovesModule | kConstructs | kLoadsState | kInOptimizer | kCapturesGraph;

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

class Finder {
 public:
  // With marks, the lines that keep memory from mark to mark; without, those whose first allocation comes at `from` or later.
  Finder(const Trace& trace, const Lifetimes& lifetimes, const StackFacts& stacks, const Categories& categories,
         std::uint16_t device, std::uint32_t end, std::uint32_t from, std::vector<std::uint32_t> marks, RoundsBy by,
         std::string how)
      : trace_(trace),
        uses_(trace),
        lifetimes_(lifetimes),
        stacks_(stacks),
        device_(device),
        end_(end),
        from_(from),
        marks_(std::move(marks)),
        by_steps_(!marks_.empty()),
        by_(by),
        how_(std::move(how)) {
    find_workspaces(categories.workspaces());
  }

  std::vector<Growth> find(std::uint64_t peak_bytes);

 private:
  template <class Visit>
  void for_each_allocation(Visit&& visit) const {
    lifetimes_.for_each([&](AllocationId id, const Lifetime& life, const Event& birth) {
      if (life.born > end_ || birth.has(kPreexisting)) return;  // made before anything could be counted
      if (std::binary_search(workspaces_.begin(), workspaces_.end(), id)) return;
      if (birth.device == device_ && uses_.is_program(birth.heap) && !trace_.heaps[birth.heap.index()].is_private())
        visit(id, life, birth);
    });
  }
  void find_workspaces(const std::vector<AllocationId>& candidates);
  void tally();
  void count_rounds();
  std::uint64_t rounds_of(StackId stack) const;
  bool is_candidate(StackId stack, const Tally& tally) const;
  std::size_t stretches_of(const Tally& line) const;
  std::size_t stretch_of(std::uint32_t event, const Tally& line, std::size_t count) const;
  std::vector<Stretches> stretches(const std::vector<StackId>& candidates) const;
  std::uint64_t rise_since(std::uint32_t first) const;
  void measure_rounds(Growth& growth) const;
  bool are_gradients_of_models(const Growth& growth) const;
  bool is_over(const Growth& growth) const;
  bool is_from_host(const Growth& growth) const;
  std::uint64_t activation_of(StackId stack) const;
  RoundsBy evidence_for(const Growth& growth, std::uint64_t peak_bytes) const;
  bool is_hooked(StackId stack) const;
  bool is_as_deep_as_the_weights(const Growth& growth) const;

  const Trace& trace_;
  HeapUses uses_;
  const Lifetimes& lifetimes_;
  const StackFacts& stacks_;
  std::vector<AllocationId> workspaces_;
  std::uint16_t device_;
  std::uint32_t end_;
  std::uint32_t from_;
  std::vector<std::uint32_t> marks_;
  bool by_steps_;
  RoundsBy by_;
  std::string how_;
  std::vector<Tally> tallies_;  // by stack
  struct Loop {
    std::uint64_t entries = 0;             // times the program came to this line from another
    std::uint64_t least_outside = kNever;  // fewest allocations of any one stack at this line outside modules
    std::uint64_t least_inside = kNever;
    std::uint64_t most_inside = 0;
  };
  HashMap<std::uint32_t, Loop> loops_;  // by program frame
  struct Activation {                   // one function of the program as called from one place, whatever its line
    std::uint64_t model_calls = 0;
    bool nested = false;    // the model has modules inside
    bool unhooked = false;  // not all of them have hooks
    std::uint32_t first_call = kNever;
    // most tensors that one line of it made outside modules, from before the first call on: what comes in, not what follows from a result
    std::uint64_t fresh = 0;
    std::uint64_t made_bytes = 0;
  };
  HashMap<std::uint64_t, Activation> activations_;
};

// A library makes its workspaces when a line first calls it; what comes later has their size by chance.
void Finder::find_workspaces(const std::vector<AllocationId>& candidates) {
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

void Finder::tally() {
  tallies_.resize(trace_.stacks.size());
  for_each_allocation([&](AllocationId id, const Lifetime& life, const Event& birth) {
    Tally& line = tallies_[birth.stack.index()];
    ++line.made;
    line.made_bytes += lifetimes_.held_bytes(id);
    line.first = std::min(line.first, life.born);
    line.last_made = std::max(line.last_made, life.born);
    if (life.released <= end_) return;
    ++line.kept;
    line.kept_bytes += lifetimes_.held_bytes(id);
    line.last_kept = std::max(line.last_kept, life.born);
    if (line.oldest.value == 0) line.oldest = id;
    line.let_go_later += life.released != kNever;
    const auto round =
        by_steps_ ? static_cast<std::size_t>(std::lower_bound(marks_.begin(), marks_.end(), life.born) - marks_.begin())
                  : line.kept;
    line.rounds_kept += round != line.last_round;
    line.last_round = round;
  });
}

std::uint64_t Finder::activation_of(StackId stack) const {
  if (stack.value == 0) return 0;  // the whole program, whatever the thread
  const Frame& frame = trace_.stacks.frame(stack);
  return ((std::uint64_t{stacks_.program(trace_.stacks.parent(stack)).value} * 0x9e3779b97f4a7c15 + frame.file.value) *
          0x9e3779b97f4a7c15) +
         frame.function.value;
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
  for (std::size_t index = 1; index < tallies_.size(); ++index) {
    const StackId stack(static_cast<std::uint32_t>(index));
    const StackId program = stacks_.program(stack);
    if (tallies_[index].made == 0 || program.value == 0) continue;
    std::size_t calls = 0;
    const auto is_program = [&](StackId at) {
      return stacks_.program(at) == program && trace_.stacks.frame_id(at) == trace_.stacks.frame_id(program);
    };
    for (StackId at = stack; !is_program(at); at = trace_.stacks.parent(at))
      calls += trace_.strings.at(trace_.stacks.frame(at).function) == "_call_impl";
    const bool unhooked = calls != 0 && !is_hooked(stack);
    for (StackId at = program;; at = stacks_.program(trace_.stacks.parent(at))) {
      Activation& activation = activations_[activation_of(at)];
      activation.made_bytes += tallies_[index].made_bytes;
      if (calls != 0) activation.model_calls = std::max(activation.model_calls, rounds_of(stack));
      activation.nested |= calls >= 2;
      activation.unhooked |= unhooked;
      if (calls != 0) activation.first_call = std::min(activation.first_call, tallies_[index].first);
      if (at.value == 0) break;
    }
  }
  // A recording that begins within a round shows what follows from a result before the next call: nothing tells it from what comes in.
  bool begins_within = false;
  lifetimes_.for_each([&](AllocationId, const Lifetime& life, const Event& birth) {
    begins_within |=
        birth.has(kPreexisting) && birth.device == device_ && uses_.is_program(birth.heap) && life.released <= end_;
  });
  if (begins_within) return;
  for (std::size_t index = 1; index < tallies_.size(); ++index) {
    const StackId stack(static_cast<std::uint32_t>(index));
    if (tallies_[index].made == 0 || (stacks_.roles(stack) & (kRolesThatStay | kInModuleCall))) continue;
    for (StackId at = stacks_.program(stack);; at = stacks_.program(trace_.stacks.parent(at))) {
      Activation& activation = activations_[activation_of(at)];
      if (tallies_[index].first < activation.first_call && tallies_[index].last_made > activation.first_call)
        activation.fresh = std::max(activation.fresh, tallies_[index].made);
      if (at.value == 0) break;
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
  if (line.kept < least || line.first < from_ || (stacks_.roles(stack) & kRolesThatStay)) return false;
  if (stack.value == 0 && !by_steps_) return false;  // no line, no marks: nothing to count rounds by
  if (rounds_of(stack) < least) return false;
  return line.last_kept >= line.first + (end_ - line.first) / 4 * 3;  // still growing when the recording ends
}

std::size_t Finder::stretches_of(const Tally& line) const {
  const std::size_t most = by_steps_ ? std::min(kMostStretches, marks_.size() - kWarmUpSteps) : kMostStretches;
  return std::clamp<std::size_t>(line.rounds_kept / 2, 4, most);
}

std::size_t Finder::stretch_of(std::uint32_t event, const Tally& line, std::size_t count) const {
  if (!by_steps_)
    return static_cast<std::size_t>((std::uint64_t{event} - line.first) * count /
                                    (std::uint64_t{end_} - line.first + 1));
  const auto steps = marks_.begin() + kWarmUpSteps;
  if (event <= marks_[kWarmUpSteps - 1]) return count;
  return static_cast<std::size_t>(std::lower_bound(steps, marks_.end(), event) - steps) * count /
         (marks_.size() - kWarmUpSteps);
}

std::vector<Stretches> Finder::stretches(const std::vector<StackId>& candidates) const {
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

// One pass through R layers needs R layers: what was there before comes, for the most part, in R equal pieces or a multiple of that.
bool Finder::is_as_deep_as_the_weights(const Growth& growth) const {
  HashMap<std::uint64_t, std::uint64_t> by_size;
  std::uint64_t total = 0, layered = 0;
  lifetimes_.for_each([&](AllocationId, const Lifetime& life, const Event& birth) {
    if (birth.device != device_ || life.born >= growth.first_event || life.released <= end_ ||
        !uses_.is_program(birth.heap))
      return;
    ++by_size[birth.size_bytes];
    total += birth.size_bytes;
  });
  for (const auto& [size, count] : by_size) {
    const bool fits = count % growth.rounds == 0 || count % growth.stacks.front().kept_count == 0;
    if (count >= kLeastRounds && fits) layered += size * count;
  }
  return layered * 2 >= total && layered != 0;
}

// A recording of operations says so of each tensor.
bool Finder::is_from_host(const Growth& growth) const {
  bool all = true;
  for_each_allocation([&](AllocationId, const Lifetime& life, const Event& birth) {
    if (!all || birth.stack != growth.stacks.front().stack || life.released <= end_) return;
    const Tensor& tensor = trace_.tensors.at(TensorId(birth.extra));
    all = trace_.strings.at(tensor.op) == "aten::_to_copy" && trace_.strings.at(tensor.operands).ends_with("@cpu");
  });
  return all;
}

// PyTorch calls a module that has hooks through a function of its own.
bool Finder::is_hooked(StackId stack) const {
  for (StackId at = stack; at.value != 0; at = trace_.stacks.parent(at)) {
    const Frame& frame = trace_.stacks.frame(at);
    if (trace_.strings.at(frame.function) == "inner" &&
        trace_.strings.at(frame.file).ends_with("torch/nn/modules/module.py"))
      return true;
  }
  return false;
}

RoundsBy Finder::evidence_for(const Growth& growth, std::uint64_t peak_bytes) const {
  if (is_as_deep_as_the_weights(growth)) return RoundsBy::kUnknown;
  bool outermost = growth.program.value == 0;
  for (StackId at = growth.program; !outermost; at = stacks_.program(trace_.stacks.parent(at))) {
    outermost = at.value == 0;
    const auto found = activations_.find(activation_of(at));
    if (found == activations_.end() || found->second.model_calls * 2 < growth.rounds) continue;
    const Activation& loop = found->second;
    // one pass that records a graph keeps most of what it makes
    const bool lets_go = growth.kept_bytes * 2 <= loop.made_bytes;
    const bool fresh = loop.fresh * 10 >= growth.rounds * 9;  // something that no module made comes into each round
    if (loop.nested ? fresh || (lets_go && loop.unhooked && is_hooked(growth.stacks.front().stack)) : lets_go && fresh)
      return RoundsBy::kModelCalls;
  }
  if (growth.stacks.size() != 1) return RoundsBy::kUnknown;
  const Tally& line = tallies_[growth.stacks.front().stack.index()];
  const auto lets_go = [&](const Event& event) {
    return event.device == device_ && event.kind == EventKind::kFree && uses_.is_program(event.heap);
  };
  const bool nothing_else =
      std::none_of(trace_.events.begin() + line.first, trace_.events.begin() + line.last_kept, lets_go);
  if (line.kept < kManyRounds || line.made != line.kept || growth.from_host) return RoundsBy::kUnknown;
  if (nothing_else) return RoundsBy::kMany;
  const bool is_large = growth.kept_bytes * 10 >= peak_bytes;
  return is_large && rounds_are_alike(trace_, uses_, lifetimes_, device_, growth.stacks.front().stack, line.first,
                                      line.last_kept, end_)
             ? RoundsBy::kAlike
             : RoundsBy::kUnknown;
}

// Weights and their gradients stay together: as many as there are tensors of that size in models.
bool Finder::are_gradients_of_models(const Growth& growth) const {
  HashMap<std::uint64_t, std::int64_t> room;  // a tensor here and there may be something else
  for (const GrowingStack& one : growth.stacks) {
    if (one.stack.value != 0 && !stacks_.has(one.stack, kInBackward)) return false;
  }
  for_each_allocation([&](AllocationId, const Lifetime& life, const Event& birth) {
    if (life.released <= end_) return;
    if (stacks_.roles(birth.stack) & (kMovesModule | kConstructs | kLoadsState)) ++room[birth.size_bytes];
    const auto is_ours = [&](const GrowingStack& one) { return one.stack == birth.stack; };
    if (std::any_of(growth.stacks.begin(), growth.stacks.end(), is_ours)) --room[birth.size_bytes];
  });
  std::int64_t others = 0;
  for (const auto& [size, left] : room) others += std::max<std::int64_t>(0, -left);
  return others < static_cast<std::int64_t>(kLeastSteps);
}

// Whether the program came to a line it had not come to before, after the last that was kept.
bool Finder::is_over(const Growth& growth) const {
  std::uint32_t last = 0;
  for (const GrowingStack& one : growth.stacks) last = std::max(last, tallies_[one.stack.index()].last_kept);
  HashMap<std::uint32_t, std::uint32_t> first;  // by the program's line
  for (std::size_t index = 1; index < tallies_.size(); ++index) {
    const StackId program = stacks_.program(StackId(static_cast<std::uint32_t>(index)));
    if (tallies_[index].made == 0 || program.value == 0) continue;
    std::uint32_t& earliest = first.try_emplace(program.value, kNever).first->second;
    earliest = std::min(earliest, tallies_[index].first);
  }
  return std::any_of(first.begin(), first.end(), [&](const auto& one) { return one.second > last; });
}

// What is kept of each round between two marks, and what the device's use rose by in them.
void Finder::measure_rounds(Growth& growth) const {
  const std::uint32_t from = marks_[kWarmUpSteps - 1], to = marks_.back();
  std::vector<std::uint64_t> kept(marks_.size() - kWarmUpSteps);
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
         kWarmUpSteps] += bytes;
  });
  growth.full_rounds = kept.size();
  growth.least_bytes = *std::min_element(kept.begin(), kept.end());
  growth.rise_bytes = after > before ? after - before : 0;
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
  const std::vector<Stretches> lines = stretches(candidates);
  std::map<std::uint32_t, Growth> by_program;
  for (std::size_t slot = 0; slot < candidates.size(); ++slot) {
    if (!lines[slot].grow()) continue;
    const StackId stack = candidates[slot];
    const Tally& line = tallies_[stack.index()];
    const StackId program = stacks_.program(stack);
    Growth& growth = by_program.try_emplace(program.value).first->second;
    growth.program = program;
    growth.rounds = std::max(growth.rounds, rounds_of(stack));
    growth.rounds_by = by_;
    if (!by_steps_ && lines[slot].vary()) growth.rounds_by = RoundsBy::kSizes;
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
    if (by_steps_) {
      if (are_gradients_of_models(growth)) continue;
      measure_rounds(growth);
    } else {
      growth.is_over = is_over(growth);
      growth.from_host = is_from_host(growth);
      if (growth.is_over)
        growth.rounds_by = RoundsBy::kUnknown;
      else if (growth.rounds_by == RoundsBy::kUnknown)
        growth.rounds_by = evidence_for(growth, peak_bytes);
    }
    result.push_back(std::move(growth));
  }
  std::sort(result.begin(), result.end(), [](const auto& a, const auto& b) { return a.kept_bytes > b.kept_bytes; });
  return result;
}

}  // namespace

std::vector<Growth> find_growth(const Trace& trace, const Lifetimes& lifetimes, const StackFacts& stacks,
                                const Steps& steps, const Categories& categories, std::uint16_t device,
                                std::uint32_t end, std::uint64_t peak_bytes) {
  std::vector<std::uint32_t> marks = steps.ends;
  RoundsBy by = RoundsBy::kSteps;
  std::string how = steps.how;
  const auto within = [&] {
    std::erase_if(marks, [&](std::uint32_t mark) { return mark > end; });
    return marks.size() >= kWarmUpSteps + kLeastSteps;
  };
  if (!within()) {
    marks = backward_passes(trace, HeapUses(trace), stacks, device);
    by = RoundsBy::kBackward;
    how = "backward passes";
  }
  if (!within())
    return Finder(trace, lifetimes, stacks, categories, device, end, 0, {}, RoundsBy::kUnknown, "rounds")
        .find(peak_bytes);
  // What the last mark still saw may be gone at the end: a function returned and dropped its list. And a recording that goes on after the training,
  // with an evaluation say, has a second part without marks.
  const std::uint32_t last = marks.back();
  std::vector<Growth> in_place = find_growth_in_place(trace, lifetimes, stacks, device, marks, peak_bytes);
  for (Growth& growth : in_place) {
    growth.rounds_by = by;
    growth.round_kind = how;
  }
  std::vector<Growth> found =
      Finder(trace, lifetimes, stacks, categories, device, end, 0, marks, by, how).find(peak_bytes);
  std::vector<Growth> before =
      Finder(trace, lifetimes, stacks, categories, device, last, 0, std::move(marks), by, how).find(peak_bytes);
  std::erase_if(before, [&](const Growth& one) {
    return std::any_of(found.begin(), found.end(), [&](const Growth& other) { return other.program == one.program; });
  });
  found.insert(found.end(), std::make_move_iterator(before.begin()), std::make_move_iterator(before.end()));
  std::vector<Growth> later =
      Finder(trace, lifetimes, stacks, categories, device, end, last, {}, RoundsBy::kUnknown, "rounds")
          .find(peak_bytes);
  found.insert(found.end(), std::make_move_iterator(later.begin()), std::make_move_iterator(later.end()));
  found.insert(found.end(), std::make_move_iterator(in_place.begin()), std::make_move_iterator(in_place.end()));
  return found;
}

}  // namespace faultline
