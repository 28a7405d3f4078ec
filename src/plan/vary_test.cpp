#include "plan/vary.h"

#include <gtest/gtest.h>

#include "plan/plan_test_support.h"

namespace faultline {
namespace {

// 8 GiB - 500 MiB - 1 GiB, in parts of 512 MiB: 13 fit, 14 do not.
constexpr std::uint64_t kLargest = 13;

std::uint64_t in_source(const Attempt& attempt) { return attempt.vary ? attempt.vary->second : 16; }
std::uint64_t in_command(const Attempt& attempt) { return attempt.command.empty() ? 16 : std::stoull(attempt.command.back()); }

Plan plan_for(const MadeUpProgram& program, Verdict verdict) {
  Plan plan;
  plan.verdict = verdict;
  plan.command = program.question().command;
  plan.gpu = plan_gpu(gpu_of_8_gib());
  plan.needed_bytes = kContextBytes + program.takes({}, program.batch({}));
  return plan;
}

TEST(Vary, TheLargestBatchIsFoundInTheSourceFromBelow) {
  MadeUpProgram program;
  program.batch = in_source;
  Plan plan = plan_for(program, Verdict::kDoesNotFit);
  add_search(program.reruns(), "", plan);
  ASSERT_TRUE(plan.vary.has_value());
  EXPECT_EQ(plan.vary->name, "batch_size");
  EXPECT_EQ(plan.vary->where, "train.py:3");
  EXPECT_EQ(plan.vary->current, 16u);
  EXPECT_EQ(plan.vary->largest_fitting, kLargest);
  EXPECT_EQ(plan.vary->smallest_failing, kLargest + 1);
  EXPECT_EQ(plan.vary->runs, program.attempts.size());
  EXPECT_EQ(program.attempts.front().folder, "tries/batch_size=1");
}

TEST(Vary, WhatFitsIsDoubledUntilItDoesNot) {
  MadeUpProgram program;
  program.batch = [](const Attempt& attempt) { return attempt.vary ? attempt.vary->second : 2; };
  Plan plan = plan_for(program, Verdict::kFits);
  add_search(program.reruns(), "batch_size", plan);
  EXPECT_EQ(plan.vary->largest_fitting, kLargest);
  EXPECT_EQ(plan.vary->smallest_failing, kLargest + 1);
}

TEST(Vary, ANumberInTheCommandIsChangedThere) {
  for (const std::vector<std::string>& words : {std::vector<std::string>{"--batch-size", "16"}, {"--per_device_train_batch_size", "16"}, {"-b", "16"}}) {
    MadeUpProgram program;
    program.batch = in_command;
    Plan plan = plan_for(program, Verdict::kDoesNotFit);
    plan.command.insert(plan.command.end(), words.begin(), words.end());
    add_search(program.reruns(), "", plan);
    ASSERT_TRUE(plan.vary.has_value()) << words.front();
    EXPECT_EQ(plan.vary->name, words.front());
    EXPECT_EQ(plan.vary->where, "in the command");
    EXPECT_EQ(plan.vary->largest_fitting, kLargest);
    EXPECT_EQ(program.attempts.front().folder, "tries/argument=1");
    EXPECT_FALSE(program.attempts.front().vary.has_value());
  }
}

TEST(Vary, ANameIsFoundInSettingsOfAnyForm) {
  for (const char* word : {"--sequence-length=16", "sequence_length=16", "model.sequence_length=16"}) {
    MadeUpProgram program;
    program.batch = [](const Attempt& attempt) { return std::stoull(attempt.command.back().substr(attempt.command.back().find('=') + 1)); };
    Plan plan;
    plan.verdict = Verdict::kDoesNotFit;
    plan.gpu = plan_gpu(gpu_of_8_gib());
    plan.needed_bytes = 20 * kGiB;
    plan.command = {"python", "train.py", word};
    add_search(program.reruns(), "sequence_length", plan);
    EXPECT_EQ(plan.vary->largest_fitting, kLargest) << word;
  }
}

TEST(Vary, ANameThatIsNowhereIsSaidOnlyWhereItWasAskedFor) {
  MadeUpProgram program;
  Plan plan = plan_for(program, Verdict::kDoesNotFit);
  Reruns reruns = program.reruns();
  reruns.run = [](const std::vector<Attempt>& attempts) { return std::vector<DryRunResult>(attempts.size()); };
  add_search(reruns, "", plan);
  EXPECT_FALSE(plan.vary.has_value());
  add_search(reruns, "width", plan);
  EXPECT_NE(plan.vary->why_not.find("no number of this name"), std::string::npos);
}

TEST(Vary, ANumberThatChangesNothingIsNoBatch) {
  MadeUpProgram program;
  program.batch = in_source;
  program.takes = [](const Attempt&, std::uint64_t) { return 9 * kGiB; };
  Plan plan = plan_for(program, Verdict::kDoesNotFit);
  add_search(program.reruns(), "", plan);
  EXPECT_EQ(plan.vary->why_not, "with 1 in place of 16 the program needs just as much");
}

TEST(Vary, WhereEvenOneDoesNotFitThatIsSaid) {
  MadeUpProgram program;
  program.batch = in_source;
  program.takes = [](const Attempt&, std::uint64_t batch) { return 9 * kGiB + batch * kMiB * 64; };
  Plan plan = plan_for(program, Verdict::kDoesNotFit);
  add_search(program.reruns(), "", plan);
  EXPECT_EQ(plan.vary->largest_fitting, 0u);
  EXPECT_EQ(plan.vary->smallest_failing, 1u);
  EXPECT_TRUE(plan.vary->why_not.empty());
}

}  // namespace
}  // namespace faultline
