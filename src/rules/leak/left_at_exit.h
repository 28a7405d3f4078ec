// Memory that a program without a framework keeps: which of its lines keep it, and what it still holds when it ends in an orderly way.
//
// The driver takes everything back when a process ends, so one buffer that lives as long as its program is good to know at most. A line that takes more
// round after round, with other work between, and gives nothing back is a leak that has not yet hurt. Pools of libraries are never counted.
#pragma once

#include <map>
#include <set>
#include <string_view>
#include <vector>

#include "facts/facts.h"
#include "rules/finding.h"
#include "sources/statements.h"

namespace faultline {

// A library that keeps memory to hand it out again: what it holds is its cache.
bool keeps_for_itself(std::string_view library);

// What each stack of a program without a framework took from the driver, and what of it stayed.
class KeptMemory {
 public:
  explicit KeptMemory(const Facts& facts);

  struct Stack {
    std::uint16_t device = 0;
    std::uint64_t made = 0;
    std::uint64_t kept = 0;
    std::uint64_t kept_bytes = 0;
    std::uint64_t with_context = 0;  // of those kept: their context ended before the program did
    // returns with kernels, results or frees between: a loop that works, not one that sets up
    std::uint64_t rounds = 0;
    std::uint32_t first = 0;  // event
    std::uint32_t last_kept = 0;
  };
  const std::map<StackId, Stack>& stacks() const { return stacks_; }
  // Memory was kept in round after round until the program ended.
  bool grows(const Stack& stack) const;
  bool grows(StackId stack) const;

  // The line that is to blame: the innermost of the user's whose allocations nearly all stay. A function that only allocates for others has some that go.
  StackId line_of(StackId stack) const;

 private:
  struct Share {
    std::uint64_t made = 0, kept = 0;
  };
  const Facts& facts_;
  std::map<StackId, Stack> stacks_;
  std::map<FrameId, Share> lines_;
};

// told: lines that have been reported already.
void judge_left_at_exit(const Facts& facts, const Ending& ending, const KeptMemory& kept, const std::set<FrameId>& told,
                        std::vector<Finding>& findings);

}  // namespace faultline
