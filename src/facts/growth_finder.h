// For facts/growth.cpp and facts/growth_rounds.cpp alone: the search for lines that keep memory. Whether a line grows is in the first, whether what it is
// reached by are rounds of a loop in the second.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "facts/growth.h"
#include "facts/growth_lines.h"
#include "facts/heap_uses.h"

namespace faultline {

inline constexpr std::uint64_t kLeastSteps = 5;   // after the warm-up
inline constexpr std::uint64_t kLeastRounds = 8;  // without step marks
inline constexpr std::uint64_t kManyRounds =
    64;  // of one line alone: a pass through layers makes its memory at several
inline constexpr std::uint16_t kRolesThatStay =
    kMovesModule | kConstructs | kLoadsState | kInOptimizer | kCapturesGraph;

class GrowthFinder {
 public:
  // With marks, the lines that keep memory from mark to mark; without, those whose first allocation comes at `from` or later.
  GrowthFinder(const Trace& trace, const Lifetimes& lifetimes, const StackFacts& stacks, const Categories& categories,
               std::uint16_t device, std::uint32_t end, std::uint32_t stop, std::uint32_t from,
               std::vector<std::uint32_t> marks, RoundsBy by, std::string how)
      : trace_(trace),
        uses_(trace),
        lifetimes_(lifetimes),
        stacks_(stacks),
        device_(device),
        end_(end),
        stop_(stop),
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
  std::vector<std::size_t> calls() const;
  void tally();
  void count_rounds();
  std::uint64_t rounds_of(StackId stack) const;
  bool is_candidate(StackId stack, const Tally& tally) const;
  std::size_t warm_up_of(std::uint32_t first_event) const;
  std::size_t stretches_of(const Tally& line) const;
  std::size_t stretch_of(std::uint32_t event, const Tally& line, std::size_t count) const;
  std::vector<Stretches> stretches(const std::vector<StackId>& candidates) const;
  std::uint64_t rise_since(std::uint32_t first) const;
  void measure_rounds(Growth& growth) const;
  bool are_gradients_of_models(const Growth& growth) const;
  bool is_over(const Growth& growth) const;
  bool is_from_host(const Growth& growth) const;
  std::uint64_t activation_of(StackId stack) const;
  RoundsBy evidence_for(Growth& growth, std::uint64_t peak_bytes) const;
  bool is_hooked(StackId stack) const;
  bool is_as_deep_as_the_weights(const Growth& growth) const;

  const Trace& trace_;
  HeapUses uses_;
  const Lifetimes& lifetimes_;
  const StackFacts& stacks_;
  std::vector<AllocationId> workspaces_;
  std::uint16_t device_;
  std::uint32_t end_;
  std::uint32_t stop_;
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

}  // namespace faultline
