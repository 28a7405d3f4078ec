#include "plan/ranks.h"

#include "plan/plan_test_support.h"
#include "sources/input.h"

namespace faultline {
namespace {

// A program whose ranks share `shared` bytes among them, beside a GiB that each has.
struct Sharded : MadeUpProgram {
  std::uint64_t shared, ranks;
  bool shares = true;
  std::uint64_t stays = 0;  // the number of ranks that it has whatever it is asked for

  Sharded(std::uint64_t all, std::uint64_t number) : shared(all), ranks(number) {
    takes = [this](const Attempt& attempt, std::uint64_t) {
      return kGiB + shared / (attempt.ranks != 0 ? attempt.ranks : ranks);
    };
  }

  DryRunResult of(DryRunResult run, std::uint64_t number) const {
    run.processes.front().ranks = stays != 0 ? stays : number;
    if (shares) run.processes.front().uses.emplace_back("sharding");
    return run;
  }

  Plan planned() {
    const Reruns made_up = reruns();
    const Reruns counted{[&](const std::vector<Attempt>& asked) {
                           std::vector<DryRunResult> results = made_up.run(asked);
                           for (std::size_t at = 0; at < asked.size(); ++at)
                             results[at] = of(results[at], asked[at].ranks != 0 ? asked[at].ranks : ranks);
                           return results;
                         },
                         made_up.tell, made_up.interrupted};
    Result<std::unique_ptr<PlannedRun>> made = make_plan(question(), of(first(), ranks), counted);
    EXPECT_TRUE(made.ok());
    return made ? std::move((*made)->plan) : Plan{};
  }
};

std::vector<std::string> about_ranks(const Plan& plan) {
  std::vector<std::string> texts;
  for (const PlanChange& change : plan.tried.changes) {
    if (change.what.starts_with("Run it on"))
      texts.push_back(change.what + (change.fits ? ": fits" : change.tried ? ": not enough" : ": " + change.why_not));
  }
  for (const PlanNote& note : plan.notes) {
    if (note.text.starts_with("it fits on")) texts.push_back(note.text);
  }
  return texts;
}

TEST(Ranks, WhereItDoesNotFitMoreAreTriedUntilItDoes) {
  EXPECT_EQ(
      about_ranks(Sharded(48 * kGiB, 2).planned()),
      (std::vector<std::string>{"Run it on 4 GPUs instead of 2: not enough", "Run it on 8 GPUs instead of 2: fits"}));
}

TEST(Ranks, WhereItFitsTheFewestAreSaid) {
  EXPECT_EQ(about_ranks(Sharded(20 * kGiB, 8).planned()),
            (std::vector<std::string>{
                "it fits on 4 GPUs, where each needs 6.49 GiB, and not on 2, where each needs 11.49 GiB"}));
  EXPECT_EQ(about_ranks(Sharded(kGiB, 4).planned()),
            (std::vector<std::string>{"it fits on 1 GPU, where each needs 2.49 GiB"}));
  EXPECT_EQ(about_ranks(Sharded(kGiB, 64).planned()),
            (std::vector<std::string>{"it fits on 8 GPUs, where each needs 1.61 GiB, the fewest that were tried"}));
}

TEST(Ranks, AProgramThatSharesNothingOrHasOneRankIsNotTried) {
  Sharded alike(48 * kGiB, 2);
  alike.shares = false;
  EXPECT_EQ(about_ranks(alike.planned()), std::vector<std::string>{});
  EXPECT_EQ(about_ranks(Sharded(kGiB, 1).planned()), std::vector<std::string>{});
}

TEST(Ranks, ANumberThatTheProgramSetsItselfIsSaid) {
  Sharded fixed(48 * kGiB, 2);
  fixed.stays = 2;
  EXPECT_EQ(about_ranks(fixed.planned()).front(),
            "Run it on 4 GPUs instead of 2: the program has 2 ranks whatever it is started with");
}

TEST(Ranks, WhatALibraryTakesIsInTheNeeds) {
  Sharded program(0, 1);
  Result<Trace> trace = load(MadeUpProgram::trace(kGiB, false));
  ASSERT_TRUE(trace.ok());
  const std::uint64_t without = needs_of(*trace, true).needed_bytes();
  trace->properties["dry-run.outside_bytes"] = std::to_string(558 * kMiB);
  EXPECT_EQ(needs_of(*trace, true).needed_bytes(), without + 558 * kMiB);
}

}  // namespace
}  // namespace faultline
