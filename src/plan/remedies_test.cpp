#include "plan/remedies.h"

#include <gtest/gtest.h>

#include "plan/needs.h"
#include "plan/plan_test_support.h"
#include "plan/where.h"

namespace faultline {
namespace {

constexpr double kParametersGib = 2;

Offer offer(std::string name, std::string value, std::uint64_t cost, double running, double dose = 1) {
  Offer one;
  one.name = std::move(name);
  one.value = std::move(value);
  one.label = one.name + " " + one.value;
  one.what = "Do " + one.label;
  one.cost = cost;
  one.keeps = {{"running", running}};
  one.dose = dose;
  return one;
}

// 12 GiB on a GPU of 8: 2 of parameters, 2 of gradients, 4 of optimizer state, the context, and the rest.
Plan too_large() {
  Plan plan;
  plan.verdict = Verdict::kDoesNotFit;
  plan.command = {"python", "train.py"};
  plan.gpu = plan_gpu(gpu_of_8_gib());
  plan.context_bytes = kContextBytes;
  plan.need.bytes = 12 * kGiB;
  plan.run.steps = 3;
  return plan;
}

ProcessSummary offering(std::vector<Offer> offers, std::uint64_t lasting_bytes = 0) {
  ProcessSummary as_run;
  as_run.ended_in_order = true;
  as_run.offers = std::move(offers);
  as_run.number_offers = number_offers();
  as_run.lasting = {
      {"parameters", lasting_bytes / 4}, {"gradients", lasting_bytes / 4}, {"optimizer", lasting_bytes / 2}};
  return as_run;
}

// Each takes so many GiB off.
auto saving(std::map<std::string, double> gib) {
  return [gib](const Attempt& attempt, std::uint64_t) {
    double needed = 12 * static_cast<double>(kGiB) - static_cast<double>(kContextBytes);
    for (const auto& [name, value] : attempt.changes) needed -= gib.at(name) * static_cast<double>(kGiB);
    return static_cast<std::uint64_t>(needed);
  };
}

std::vector<std::string> folders(const MadeUpProgram& program) {
  std::vector<std::string> names;
  for (const Attempt& attempt : program.attempts) names.push_back(attempt.folder.substr(6));
  return names;
}

const PlanChange* fitting(const Plan& plan) {
  for (const PlanChange& change : plan.tried.changes) {
    if (change.fits) return &change;
  }
  return nullptr;
}

TEST(Remedies, WhereNothingAloneIsEnoughTheyAreCombinedTheLeastIntrusiveFirst) {
  MadeUpProgram program;
  program.takes = saving({{"autocast", 3}, {"checkpoint", 2}, {"lora", 3.5}});
  Plan plan = too_large();
  add_remedies(program.reruns(),
               offering({offer("autocast", "bfloat16", 40, 0.7), offer("checkpoint", "1/1", 52, 0.7),
                         offer("lora", "16", 140, 0.7)}),
               plan, {});
  const PlanChange* first = fitting(plan);
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(first->remedies, (std::vector<std::string>{"autocast", "checkpoint"}));
  EXPECT_EQ(first->what, "Combine autocast bfloat16 and checkpoint 1/1");
  EXPECT_EQ(first->needed_bytes, 7 * kGiB);
  EXPECT_EQ(plan.saved_bytes(*first), 5 * kGiB);
  // Nothing that has both in it is tried any more, and each that fits is told.
  for (const PlanChange& change : plan.tried.changes) EXPECT_LE(change.remedies.size(), 2u) << change.what;
  const std::vector<Try> tries = tries_of(plan);
  EXPECT_TRUE(std::any_of(tries.begin(), tries.end(), [](const Try& one) { return one.confirmed == true; }));
  for (const PlanChange& change : plan.tried.changes)
    EXPECT_EQ(change.fits, change.tried && change.needed_bytes <= 8 * kGiB);
}

TEST(Remedies, WhereOneIsEnoughNothingIsCombined) {
  MadeUpProgram program;
  program.takes = saving({{"autocast", 5}, {"checkpoint", 2}});
  Plan plan = too_large();
  add_remedies(program.reruns(),
               offering({offer("autocast", "bfloat16", 40, 0.6), offer("checkpoint", "1/1", 52, 0.6)}), plan, {});
  EXPECT_EQ(folders(program), (std::vector<std::string>{"autocast-bfloat16", "checkpoint-1-1"}));
  EXPECT_EQ(fitting(plan)->remedies, (std::vector<std::string>{"autocast"}));
}

TEST(Remedies, AShorterSequenceIsAnotherProgramAndComesAfterCombinations) {
  for (const double by_two : {3.0, 1.0}) {
    MadeUpProgram program;
    program.takes = saving({{"autocast", 2}, {"checkpoint", by_two}, {"sequence", 6}});
    Plan plan = too_large();
    Offer sequence = offer("sequence", "seq_len=512", 110, 0.0, 0.5);
    sequence.excludes = {"autocast", "checkpoint"};
    sequence.computes_another = true;
    add_remedies(program.reruns(),
                 offering({offer("autocast", "bfloat16", 40, 0.7), offer("checkpoint", "1/1", 52, 0.7), sequence}),
                 plan, {});
    ASSERT_NE(fitting(plan), nullptr);
    const bool is_combined = by_two > 2;
    EXPECT_EQ(fitting(plan)->remedies, is_combined ? (std::vector<std::string>{"autocast", "checkpoint"})
                                                   : (std::vector<std::string>{"sequence"}));
  }
}

TEST(Remedies, ARunWithAChangeGoesPastTheFirstSteps) {
  MadeUpProgram program;
  program.takes = saving({{"autocast", 5}});
  Plan plan = too_large();
  plan.run.steps = 1;
  plan.run.stopped = "after 1 optimizer steps";
  add_remedies(program.reruns(), offering({offer("autocast", "bfloat16", 40, 0.6)}), plan, {});
  EXPECT_EQ(program.attempts.front().steps, 3u);
  plan.run.steps = 0;  // a program without steps
  EXPECT_EQ(steps_of_trial(plan), 0u);
  plan.run.steps = 8;
  EXPECT_EQ(steps_of_trial(plan), 8u);
}

// Over eight GPUs or two: with what breaks the program it is not combined again with another number.
TEST(Remedies, WhatBreaksTheProgramIsInNoCombination) {
  for (const bool breaks : {true, false}) {
    MadeUpProgram program;
    program.takes = saving({{"autocast", 3}, {"fsdp", 3}});
    Reruns reruns = program.reruns();
    reruns.run = [&, run = reruns.run](const std::vector<Attempt>& asked) {
      std::vector<DryRunResult> results = run(asked);
      for (std::size_t at = 0; at < asked.size(); ++at) {
        if (breaks && asked[at].changes.contains("fsdp"))
          results[at].processes.front().exception = PlanException{"ValueError", "no forward", {}};
      }
      return results;
    };
    Plan plan = too_large();
    add_remedies(reruns,
                 offering({offer("autocast", "bfloat16", 40, 0.7), offer("fsdp", "2", 160, 0.6, 0.5),
                           offer("fsdp", "8", 180, 0.5)}),
                 plan, {});
    const auto combined = std::count_if(plan.tried.changes.begin(), plan.tried.changes.end(),
                                        [](const PlanChange& change) { return change.remedies.size() > 1; });
    EXPECT_EQ(combined == 0, breaks);
    EXPECT_EQ(fitting(plan) == nullptr, breaks);
  }
}

TEST(Remedies, WhatLastsAndDoesNotFitIsNotRun) {
  MadeUpProgram program;
  program.takes = saving({{"autocast", 1}, {"half", 5}});
  Plan plan = too_large();
  Offer half = offer("half", "bfloat16", 80, 0.5);
  half.keeps = {{"parameters", 0.5}, {"gradients", 0.5}, {"optimizer", 0.5}, {"running", 0.5}};
  add_remedies(program.reruns(), offering({offer("autocast", "bfloat16", 40, 0.6), half}, 9 * kGiB), plan, {});
  EXPECT_EQ(folders(program), (std::vector<std::string>{"half-bfloat16"}));
  ASSERT_EQ(plan.tried.changes.size(), 2u);
  EXPECT_TRUE(plan.tried.changes[0].fits);
  EXPECT_FALSE(plan.tried.changes[1].tried);
  EXPECT_NE(plan.tried.changes[1].why_not.find("cannot be enough alone"), std::string::npos)
      << plan.tried.changes[1].why_not;
}

TEST(Remedies, OfOneRemedyTheLeastThatFitsIsFound) {
  MadeUpProgram program;
  program.takes = [](const Attempt& attempt, std::uint64_t) {
    const std::string& part = attempt.changes.at("checkpoint");
    return 12 * kGiB - kContextBytes - 10 * kGiB / (part == "1/1" ? 1 : part == "1/2" ? 2 : 4);
  };
  Plan plan = too_large();
  add_remedies(program.reruns(),
               offering({offer("checkpoint", "1/4", 50, 0.6, 0.25), offer("checkpoint", "1/2", 51, 0.6, 0.5),
                         offer("checkpoint", "1/1", 52, 0.6)}),
               plan, {});
  ASSERT_NE(fitting(plan), nullptr);
  EXPECT_EQ(fitting(plan)->label, "checkpoint 1/2");
  EXPECT_EQ(program.attempts.size(), 2u);  // all of them, then what that makes likely
}

TEST(Remedies, WhatDoesNotGoTogetherIsNotCombinedAndWhatWantsAnotherIsNotAlone) {
  MadeUpProgram program;
  program.takes = saving({{"autocast", 3}, {"half", 3}, {"lora", 2}});
  Plan plan = too_large();
  Offer half = offer("half", "float16", 80, 0.7);
  half.excludes = {"autocast"};
  half.wants = "lora";
  add_remedies(program.reruns(), offering({offer("autocast", "float16", 40, 0.7), half, offer("lora", "16", 140, 0.8)}),
               plan, {});
  for (const Attempt& attempt : program.attempts) {
    EXPECT_FALSE(attempt.changes.contains("half") && attempt.changes.contains("autocast")) << attempt.folder;
    EXPECT_TRUE(!attempt.changes.contains("half") || attempt.changes.contains("lora")) << attempt.folder;
  }
  EXPECT_NE(fitting(plan), nullptr);
}

TEST(Remedies, ARunThatBreaksOrHadNothingToChangeConfirmsNothing) {
  MadeUpProgram program;
  program.takes = saving({{"autocast", 6}, {"checkpoint", 6}});
  const Reruns works = program.reruns();
  Reruns breaks = works;
  breaks.run = [&](const std::vector<Attempt>& attempts) {
    std::vector<DryRunResult> results = works.run(attempts);
    results[0].processes.front().exception = PlanException{"RuntimeError", "no", {}};
    results[1].processes.front().changes.clear();
    return results;
  };
  Plan plan = too_large();
  add_remedies(breaks, offering({offer("autocast", "bfloat16", 40, 0.5), offer("checkpoint", "1/1", 52, 0.5)}), plan,
               {});
  ASSERT_EQ(plan.tried.changes.size(), 2u);
  EXPECT_EQ(plan.tried.changes[0].why_not, "the program then fails with RuntimeError: no");
  EXPECT_EQ(plan.tried.changes[1].why_not, "there was nothing to change");
  EXPECT_FALSE(plan.tried.changes[0].tried || plan.tried.changes[1].tried);
  EXPECT_TRUE(tries_of(plan).empty());
}

TEST(Remedies, WhatTimeDidNotAllowIsSaid) {
  MadeUpProgram program;
  program.takes = saving({{"a", 1}, {"b", 1}, {"c", 5}});
  Reruns reruns = program.reruns();
  reruns.seconds_left = [&] { return program.attempts.empty() ? 1.0 : -1.0; };
  Plan plan = too_large();
  add_remedies(reruns, offering({offer("a", "1", 10, 0.5), offer("b", "1", 20, 0.5), offer("c", "1", 30, 0.5)}), plan,
               {});
  EXPECT_EQ(program.attempts.size(), 2u);
  EXPECT_NE(plan.tried.skipped.find("--try"), std::string::npos);
  EXPECT_NE(plan.tried.changes.back().why_not.find("time"), std::string::npos);
}

TEST(Remedies, ABatchInTheCommandIsCombinedThere) {
  MadeUpProgram program;
  program.takes = [](const Attempt& attempt, std::uint64_t) {
    const std::uint64_t batch = std::stoull(attempt.command.back());
    return (attempt.changes.contains("autocast") ? 6 : 8) * kGiB + batch * 256 * kMiB;
  };
  Plan plan = too_large();
  plan.command = {"python", "train.py", "--batch-size", "14"};
  plan.need.bytes = 8 * kGiB + 14 * 256 * kMiB + kContextBytes;
  add_remedies(program.reruns(), offering({offer("autocast", "bfloat16", 40, 0.8)}), plan, {});
  const PlanChange* first = fitting(plan);
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(first->remedies, (std::vector<std::string>{"autocast", "batch"}));
  EXPECT_NE(first->label.find("--batch-size"), std::string::npos);
}

Edit edit(std::uint64_t line, std::string old_line, std::string new_line) {
  return {"/a/train.py", line, {std::move(old_line)}, {std::move(new_line)}};
}

// The run is asked for the edits, and what it was run with is what is shown; of a combination all, or none.
TEST(Remedies, TheDiffIsWhatWasRun) {
  for (const bool both : {true, false}) {
    MadeUpProgram program;
    program.takes = saving({{"autocast", 3}, {"checkpoint", 2}});
    Plan plan = too_large();
    Offer autocast = offer("autocast", "bfloat16", 40, 0.7), checkpoint = offer("checkpoint", "1/1", 52, 0.7);
    autocast.edits = {edit(9, "y = f(x)", "y = g(x)")};
    if (both) checkpoint.edits = {edit(3, "a", "b")};
    add_remedies(program.reruns(), offering({autocast, checkpoint}), plan, {});
    const PlanChange* combined = fitting(plan);
    ASSERT_NE(combined, nullptr);
    EXPECT_EQ(program.attempts.back().edits.size(), both ? 2u : 1u);
    EXPECT_EQ(combined->diff.empty(), !both);
    EXPECT_EQ(combined->without_edit, both ? std::vector<std::string>() : std::vector<std::string>{"checkpoint 1/1"});
    if (both) {
      EXPECT_EQ(combined->diff,
                "--- a/train.py\n+++ b/train.py\n@@ -3,1 +3,1 @@\n-a\n+b\n@@ -9,1 +9,1 @@\n-y = f(x)\n+y = g(x)\n");
    }
  }
}

TEST(Remedies, WhatNeverRanFromTheEditedSourceIsTriedWithoutIt) {
  MadeUpProgram program;
  program.takes = saving({{"autocast", 5}});
  Plan plan = too_large();
  Offer autocast = offer("autocast", "bfloat16", 40, 0.7);
  autocast.edits = {edit(9, "y = f(x)", "y = g(x)")};
  Reruns reruns = program.reruns();
  const auto run = reruns.run;
  reruns.run = [&](const std::vector<Attempt>& asked) {
    std::vector<DryRunResult> results = run(asked);
    for (DryRunResult& result : results) {
      result.processes.front().edited_remedies.clear();
      result.processes.front().edited.clear();
    }
    return results;
  };
  add_remedies(reruns, offering({autocast}), plan, {});
  ASSERT_EQ(program.attempts.size(), 2u);
  EXPECT_TRUE(program.attempts.back().edits.empty());
  ASSERT_NE(fitting(plan), nullptr);
  EXPECT_TRUE(fitting(plan)->diff.empty());
  EXPECT_EQ(fitting(plan)->without_edit, std::vector<std::string>{"autocast bfloat16"});
}

TEST(Remedies, ManyBatchesOfAStepAreTriedWithAFew) {
  MadeUpProgram program;
  program.takes = saving({{"autocast", 3}, {"batch", 3}});
  Plan plan = too_large();
  plan.run.steps = 6;
  Offer batch = offer("batch", "batch_size=2", 33, 0.5);
  batch.number = OfferedNumber::kBatch;
  batch.is_searched = true;
  batch.many = 64;
  batch.edits = {edit(5, "step()", "if i % @MANY@ == 0: step()")};
  Offer autocast = offer("autocast", "bfloat16", 40, 0.7);
  autocast.edits = {edit(9, "y = f(x)", "y = g(x)")};
  add_remedies(program.reruns(), offering({autocast, batch}), plan, {});
  const PlanChange* combined = fitting(plan);
  ASSERT_NE(combined, nullptr);
  EXPECT_EQ(program.attempts.back().many, kMostBatchesTried);
  EXPECT_EQ(program.attempts.back().steps, 2u);
  EXPECT_NE(combined->diff.find("i % 64 == 0"), std::string::npos) << combined->diff;
  EXPECT_NE(combined->detail.find("8 batches"), std::string::npos);
}

TEST(Remedies, TheSmallestGpusAreNamed) {
  Plan plan = too_large();
  plan.need.bytes = 30 * kGiB;
  PlanChange small{ChangeKind::kProgram, "Do it", {}, true, false, 12 * kGiB, {}, {"half"}, 80, "half"};
  small.compute = 8;
  PlanChange sharded = small;
  sharded.wants_more_gpus = true;
  sharded.needed_bytes = kGiB;
  sharded.cost = 1;
  plan.tried.changes = {small, sharded};
  add_where(plan);
  std::size_t as_is = 0;
  for (const PlanWhere& where : plan.tried.where) {
    as_is += where.with.empty() ? 1 : 0;
    EXPECT_TRUE(where.with.empty() || where.with == "half");
    EXPECT_EQ(where.with.empty(), where.gpu.capacity_bytes > 30 * kGiB) << where.gpu.name;
  }
  EXPECT_EQ(as_is, 3u);
  EXPECT_GT(plan.tried.where.size(), as_is);
}

// Each step keeps 8 MiB for good; 20 were run, in a loop of so many.
TEST(Remedies, WhatStillGrowsFitsOnlyWhereTheLoopEndsBefore) {
  struct Expected {
    std::uint64_t loop_steps;
    const char* stopped;
    bool fits;
  };
  const char* const kStopped = "after 20 optimizer steps";
  for (const Expected& one :
       {Expected{1000, kStopped, false}, {0, kStopped, false}, {100, kStopped, true}, {20, "", true}}) {
    MadeUpProgram program;
    Reruns reruns = program.reruns();
    reruns.run = [&](const std::vector<Attempt>& asked) {
      std::vector<DryRunResult> results;
      for (const Attempt& attempt : asked) {
        DryRunResult result = MadeUpProgram::left(kGiB, false);
        ProcessSummary& main = result.processes.front();
        std::ofstream file(main.trace);
        file << "faultline-trace-text 1\nsource dry-run\nproperty dry-run.context_bytes = " << kContextBytes
             << "\ndevice 0 capacity=" << 8 * kGiB << "\nalloc #w 20MiB driver\n";
        for (int step = 1; step <= 20; ++step)
          file << "alloc #s" << step << " 20MiB driver\nalloc #a" << step << " 8MiB at serve.py:7 handle\nstep " << step
               << " Optimizer.step#SGD.step\n";
        main.stopped = one.stopped;
        main.steps = 20;
        main.loop.steps = one.loop_steps;
        for (const auto& [name, value] : attempt.changes) main.changes[name] = "done";
        results.push_back(std::move(result));
      }
      return results;
    };
    Plan plan = too_large();
    plan.growth.is_there = true;
    plan.run.stopped = kStopped;
    add_remedies(reruns, offering({offer("autocast", "bfloat16", 40, 0.6)}), plan, {});
    ASSERT_EQ(plan.tried.changes.size(), 1u);
    const PlanChange& change = plan.tried.changes.front();
    EXPECT_TRUE(change.tried) << change.why_not;
    EXPECT_EQ(change.fits, one.fits) << one.loop_steps << " " << change.detail;
    EXPECT_EQ(change.until == 0, one.fits);
    if (one.fits) continue;
    EXPECT_TRUE(change.until > 800 && change.until < 1000) << change.until;
  }
}

TEST(Remedies, AGpuOnWhichMemoryGrowsIsOneForAWhile) {
  for (const std::uint64_t loop_steps : {0u, 2'000u, 1'000'000'000u}) {
    Plan plan = too_large();
    plan.growth.bytes_a_round = kGiB / 100;
    plan.growth.rounds = plan.run.steps = 100;
    plan.growth.loop.steps = loop_steps;
    plan.tried.changes = {{ChangeKind::kSetting, "Set X", "", true, true, 7 * kGiB, ""}};
    limit_settings_by_growth(plan);
    EXPECT_FALSE(plan.tried.changes[0].fits);
    EXPECT_EQ(plan.tried.changes[0].until, 200u);
    add_where(plan);
    EXPECT_EQ(plan.tried.where.empty(), loop_steps == 1'000'000'000u);
    for (const PlanWhere& where : plan.tried.where) {
      EXPECT_TRUE(where.with.empty());
      EXPECT_EQ(where.until != 0, loop_steps == 0) << where.gpu.name;
      EXPECT_GE(where.gpu.capacity_bytes, (loop_steps == 0 ? 12 : 30) * kGiB);
    }
  }
}

TEST(Offer, EditsOfOneFileAreOneDiff) {
  const std::string diff = diff_of({{"/a/train.py", 9, {"x = f(y)"}, {"with g():", "    x = f(y)"}},
                                    {"/a/train.py", 3, {}, {"import g"}},
                                    {"/a/train.py", 9, {}, {"y = 1"}},
                                    {"/a/model.py", 1, {"a"}, {"b"}}});
  EXPECT_EQ(diff,
            "--- a/model.py\n+++ b/model.py\n@@ -1,1 +1,1 @@\n-a\n+b\n--- a/train.py\n+++ b/train.py\n@@ -2,0 +3,1 "
            "@@\n+import g\n"
            "@@ -8,0 +10,1 @@\n+y = 1\n@@ -9,1 +11,2 @@\n-x = f(y)\n+with g():\n+    x = f(y)\n");
}

TEST(Remedies, OneThatWasBegunAndNotFinishedHasARow) {
  MadeUpProgram program;
  Reruns reruns = program.reruns();
  const auto run = reruns.run;
  reruns.run = [&](const std::vector<Attempt>& asked) {
    std::vector<DryRunResult> results = run(asked);
    for (DryRunResult& result : results) result.out_of_time = true;
    return results;
  };
  ProcessSummary summary;
  Offer offer;
  offer.name = offer.label = "autocast";
  offer.what = "Use autocast";
  offer.keeps = {{"running", 0.5}};
  summary.offers = {offer};
  Plan plan;
  plan.verdict = Verdict::kDoesNotFit;
  plan.command = {"python", "train.py"};
  plan.gpu = plan_gpu(gpu_of_8_gib());
  plan.context_bytes = kContextBytes;
  plan.need.bytes = 9 * kGiB;
  add_remedies(reruns, summary, plan, {});
  ASSERT_EQ(plan.tried.changes.size(), 1u);
  EXPECT_TRUE(plan.tried.changes[0].begun);
  EXPECT_FALSE(plan.tried.changes[0].tried);
  EXPECT_EQ(plan.tried.changes[0].why_not, "it was not finished in the time that a run has");
}

}  // namespace
}  // namespace faultline
