#include "plan/changes.h"

#include <gtest/gtest.h>

#include "facts/facts_test_support.h"
#include "plan/plan_test_support.h"

namespace faultline {
namespace {

Plan too_large() {
  Plan plan;
  plan.verdict = Verdict::kDoesNotFit;
  plan.command = {"python", "train.py"};
  plan.gpu = plan_gpu(gpu_of_8_gib());
  plan.needed_bytes = 12 * kGiB;
  plan.steps = 3;
  return plan;
}

// Autocast takes 3 GiB off, checkpointing 2; nothing alone is enough.
std::uint64_t with_changes(const Attempt& attempt, std::uint64_t) {
  return 12 * kGiB - kContextBytes - (attempt.changes.contains("autocast") ? 3 * kGiB : 0) -
         (attempt.changes.contains("checkpoint") ? 2 * kGiB : 0);
}

TEST(Changes, WhereNothingAloneIsEnoughTheyAreTriedTogether) {
  MadeUpProgram program;
  program.takes = with_changes;
  Plan plan = too_large();
  add_changes(program.reruns(), {}, gpu_of_8_gib(), plan);
  ASSERT_EQ(plan.changes.size(), 3u);
  EXPECT_EQ(plan.changes[0].needed_bytes, 9 * kGiB);
  EXPECT_FALSE(plan.changes[0].fits);
  EXPECT_EQ(plan.changes[1].detail, "done");
  EXPECT_EQ(plan.changes[2].needed_bytes, 7 * kGiB);
  EXPECT_TRUE(plan.changes[2].fits);
  EXPECT_NE(plan.changes[2].what.find(", and wrap the repeated layers"), std::string::npos);
  EXPECT_EQ(program.attempts.back().folder, "tries/autocast+checkpoint");
  EXPECT_EQ(plan.saved_bytes(plan.changes[2]), 5 * kGiB);
  const std::vector<Try> tries = tries_of(plan);
  ASSERT_EQ(tries.size(), 3u);
  EXPECT_EQ(tries[2].saves_bytes, 5 * kGiB);
  EXPECT_EQ(tries[2].confirmed, true);
  EXPECT_EQ(tries[0].confirmed, std::nullopt);  // it helps, and does not make it fit
  EXPECT_EQ(tries[0].saves_bytes, 0u);
  EXPECT_NE(tries[0].what.find("by a dry run it saves 3.00 GiB, which is not enough alone"), std::string::npos);
}

// The changes of training are tried where something trains.
TEST(Changes, AProgramThatOnlyInfersIsNotToldToTrainOtherwise) {
  for (const auto& [category, bytes, trains] :
       {std::tuple("parameters", kGiB, false), std::tuple("temporaries", kGiB, false), std::tuple("other", kGiB, false),
        std::tuple("gradients", kGiB, true), std::tuple("optimizer", kGiB, true),
        std::tuple("activations", kGiB, false)}) {
    MadeUpProgram program;
    Plan plan = too_large();
    plan.steps = 0;
    plan.live_at_peak = {{category, bytes}};
    add_changes(program.reruns(), {}, gpu_of_8_gib(), plan);
    EXPECT_EQ(!plan.changes.empty(), trains) << category;
    EXPECT_EQ(!program.attempts.empty(), trains) << category;
  }
}

TEST(Changes, WhatNeverCallsBackwardIsTriedWithoutAGraphOnly) {
  struct Row {
    std::vector<std::string> uses;
    const char* stopped;
    std::string tried;  // the first
  };
  for (const Row& row : {Row{{"graph"}, "", "tries/no_grad"}, Row{{}, "", ""}, Row{{"graph"}, "after 120 seconds", ""},
                         Row{{"backward", "graph"}, "", "tries/autocast"}}) {
    MadeUpProgram program;
    program.takes = [](const Attempt& attempt, std::uint64_t) {
      return attempt.changes.contains("no_grad") ? 3 * kGiB : 12 * kGiB;
    };
    Plan plan = too_large();
    plan.steps = 0;
    plan.stopped = row.stopped;
    ProcessSummary as_run;
    as_run.uses = row.uses;
    add_changes(program.reruns(), as_run, gpu_of_8_gib(), plan);
    EXPECT_EQ(program.attempts.empty() ? "" : program.attempts.front().folder, row.tried);
    if (row.tried == "tries/no_grad") {
      EXPECT_TRUE(plan.changes.front().fits);
      EXPECT_EQ(plan.saved_bytes(plan.changes.front()), 9 * kGiB - kContextBytes);
    }
  }
}

TEST(Changes, NoBatchIsSmallEnoughWhereWhatLastsDoesNotFit) {
  for (const auto& [parameters, optimizer, activations, none] :
       {std::tuple(9.0, 0.0, 0.0, true), std::tuple(3.0, 6.0, 1.0, true), std::tuple(2.0, 4.0, 30.0, false),
        std::tuple(1.0, 0.0, 20.0, false), std::tuple(7.9, 0.0, 20.0, true)}) {
    Plan plan = too_large();
    plan.context_bytes = kContextBytes;
    const auto bytes = [](double gib) { return static_cast<std::uint64_t>(gib * static_cast<double>(kGiB)); };
    plan.live_at_peak = {
        {"parameters", bytes(parameters)}, {"optimizer", bytes(optimizer)}, {"activations", bytes(activations)}};
    EXPECT_EQ(!why_no_batch_is_enough(plan).empty(), none) << parameters << " " << optimizer;
  }
}

TEST(Changes, WhatTheProgramDoesAlreadyIsNotTried) {
  MadeUpProgram program;
  Plan plan = too_large();
  ProcessSummary as_run;
  as_run.uses = {"autocast", "checkpoint", "foreach", "set_to_none=False"};
  add_changes(program.reruns(), as_run, gpu_of_8_gib(), plan);
  for (const Attempt& attempt : program.attempts)
    EXPECT_FALSE(attempt.changes.contains("autocast") || attempt.changes.contains("checkpoint")) << attempt.folder;
  ASSERT_GE(program.attempts.size(), 2u);
  EXPECT_TRUE(program.attempts[0].changes.contains("foreach"));
  EXPECT_TRUE(program.attempts[1].changes.contains("set_to_none"));
}

TEST(Changes, TheTypeOfAutocastIsTheGpus) {
  for (const auto& [gpu, type] : {std::pair("T4", "float16"), std::pair("A100", "bfloat16")}) {
    MadeUpProgram program;
    Plan plan = too_large();
    add_changes(program.reruns(), {}, *find_gpu(gpu), plan);
    EXPECT_EQ(program.attempts.front().changes.at("autocast"), type);
  }
}

TEST(Changes, ARunThatBreaksOrHadNothingToChangeIsNotTried) {
  MadeUpProgram program;
  const Reruns works = program.reruns();
  Reruns breaks = works;
  breaks.run = [&](const std::vector<Attempt>& attempts) {
    std::vector<DryRunResult> results = works.run(attempts);
    results[0].processes.front().exception = PlanException{"RuntimeError", "no", {}};
    results[1].processes.front().changes.clear();
    return results;
  };
  Plan plan = too_large();
  add_changes(breaks, {}, gpu_of_8_gib(), plan);
  ASSERT_EQ(plan.changes.size(), 2u);
  EXPECT_FALSE(plan.changes[0].tried);
  EXPECT_EQ(plan.changes[0].why_not, "the program then fails with RuntimeError: no");
  EXPECT_EQ(plan.changes[1].why_not, "the model has no repeated layers that it was found in");
  EXPECT_TRUE(tries_of(plan).empty());
}

// Every second block of pairs that share a segment is freed: with other settings they share none, and all of a segment can be given back.
TEST(Changes, ASettingThatSavesIsFoundByReplay) {
  std::string lines =
      "source dry-run\nproperty torch.version = 2.11.0\ndevice 0 capacity=8GiB\nalloc #s 600MiB driver\n";
  for (int block = 0; block < 40; ++block) lines += "alloc #a" + std::to_string(block) + " 9MiB at train.py:1 main\n";
  for (int block = 0; block < 40; block += 2) lines += "free #a" + std::to_string(block) + "\n";
  for (int block = 0; block < 10; ++block) lines += "alloc #b" + std::to_string(block) + " 18MiB at train.py:2 main\n";
  const Trace trace = traced(lines);
  const Needs needs = needs_of(trace, true);
  Plan plan = too_large();
  plan.needed_bytes = needs.needed_bytes();
  EXPECT_EQ(plan.needed_bytes, 580 * kMiB);
  add_settings(trace, needs, plan);
  ASSERT_EQ(plan.changes.size(), 1u);
  EXPECT_EQ(plan.changes.front().kind, "setting");
  EXPECT_TRUE(plan.changes.front().what.starts_with("Set PYTORCH_CUDA_ALLOC_CONF=")) << plan.changes.front().what;
  EXPECT_LE(plan.changes.front().needed_bytes, 400 * kMiB);
  EXPECT_TRUE(plan.changes.front().fits);
}

}  // namespace
}  // namespace faultline
