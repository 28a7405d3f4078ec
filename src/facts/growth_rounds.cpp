// Rounds of a loop, or layers of one pass, weights and their gradients, something that was filled once?
#include <algorithm>

#include "facts/from_host.h"
#include "facts/growth_alike.h"
#include "facts/growth_finder.h"

namespace faultline {

std::uint64_t GrowthFinder::activation_of(StackId stack) const {
  if (stack.value == 0) return 0;  // the whole program, whatever the thread
  const Frame& frame = trace_.stacks.frame(stack);
  return ((std::uint64_t{stacks_.program(trace_.stacks.parent(stack)).value} * 0x9e3779b97f4a7c15 + frame.file.value) *
          0x9e3779b97f4a7c15) +
         frame.function.value;
}

void GrowthFinder::count_rounds() {
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
      loop.least_outside = std::min(loop.least_outside, tallies_[index].visits());
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

std::uint64_t GrowthFinder::rounds_of(StackId stack) const {
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

// One pass through R layers needs R layers: what was there before comes, for the most part, in R equal pieces or a multiple of that, or is one tensor with R rows: weights that are
// stacked, or data of which each row is done once. Of a recording that began in the middle a pass may have been under way: then R is only the rest of it, and more pieces speak of layers, too.
bool GrowthFinder::is_as_deep_as_the_weights(const Growth& growth) const {
  HashMap<std::uint64_t, std::uint64_t> by_size;
  constexpr std::uint64_t kStrays = 2;  // an input may have a weight's size
  std::uint64_t total = 0, layered = 0;
  const std::uint64_t kept_count = growth.stacks.front().kept_count;
  const bool began_late = (trace_.capabilities & kCompleteFromStart) == 0;
  lifetimes_.for_each([&](AllocationId, const Lifetime& life, const Event& birth) {
    if (birth.device != device_ || life.born >= growth.first_event || life.released <= end_ ||
        !uses_.is_program(birth.heap))
      return;
    ++by_size[birth.size_bytes];
    total += birth.size_bytes;
    const std::vector<std::int64_t>& shape = trace_.tensors.at(TensorId(birth.extra)).shape;
    if (shape.size() >= 2 && static_cast<std::uint64_t>(shape[0]) == kept_count) layered += birth.size_bytes;
  });
  for (const auto& [size, count] : by_size) {
    const bool fits = began_late || count % growth.rounds <= kStrays || count % kept_count <= kStrays;
    if (count >= std::max(kLeastRounds, std::min(growth.rounds, kept_count)) && fits) layered += size * count;
  }
  return layered * 2 >= total && layered != 0;
}

// A recording of operations says so of each tensor; of JAX's arrays the stack does (device_put, jnp.asarray).
bool GrowthFinder::is_from_host(const Growth& growth) const {
  if (by_ == RoundsBy::kLooks) {
    for (StackId at = growth.stacks.front().stack; at.value != 0; at = trace_.stacks.parent(at)) {
      const Frame& frame = trace_.stacks.frame(at);
      if (trace_.strings.at(frame.function).ends_with("device_put") ||
          trace_.strings.at(frame.file).ends_with("jax/_src/numpy/array_constructors.py"))
        return true;
    }
    return false;
  }
  bool all = true;
  for_each_allocation([&](AllocationId, const Lifetime& life, const Event& birth) {
    if (!all || birth.stack != growth.stacks.front().stack || life.released <= end_) return;
    all = faultline::is_from_host(trace_, birth);
  });
  return all;
}

// PyTorch calls a module that has hooks through a function of its own.
bool GrowthFinder::is_hooked(StackId stack) const {
  for (StackId at = stack; at.value != 0; at = trace_.stacks.parent(at)) {
    const Frame& frame = trace_.stacks.frame(at);
    if (trace_.strings.at(frame.function) == "inner" &&
        trace_.strings.at(frame.file).ends_with("torch/nn/modules/module.py"))
      return true;
  }
  return false;
}

RoundsBy GrowthFinder::evidence_for(Growth& growth, std::uint64_t peak_bytes) const {
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
  if (growth.from_host) return RoundsBy::kUnknown;
  if (nothing_else)
    return line.calls_kept >= kManyRounds && line.made == line.kept ? RoundsBy::kMany : RoundsBy::kUnknown;
  // what so few modules hand on may be layers that were put together by hand
  const bool of_modules = line.kept < kManyRounds && stacks_.has(growth.stacks.front().stack, kInModuleCall);
  if (growth.kept_bytes * 10 < peak_bytes || of_modules) return RoundsBy::kUnknown;
  const AlikeRounds found =
      alike_rounds(trace_, uses_, lifetimes_, device_, growth.stacks.front().stack, line.first, line.last_kept, end_);
  if (!found.alike) return RoundsBy::kUnknown;
  growth.rounds = std::min(found.rounds, line.calls_kept);  // a library's workspace may have come at the same line
  growth.loads = found.load;
  growth.keeps_others = found.keep_others;
  growth.alike = true;
  return found.load || found.keep_others ? RoundsBy::kUnknown : RoundsBy::kAlike;
}

// Weights and their gradients stay together: as many as there are tensors of that size in models.
bool GrowthFinder::are_gradients_of_models(const Growth& growth) const {
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
bool GrowthFinder::is_over(const Growth& growth) const {
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

}  // namespace faultline
