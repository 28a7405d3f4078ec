#include "plan/filling.h"

#include <gtest/gtest.h>

#include "plan/plan_test_support.h"

namespace faultline {
namespace {

// A program that takes a fixed part, and a share of what it is told is free.
Plan planned(MadeUpProgram& program, double share, const std::string& asked_at) {
  const auto takes = [share](const Attempt& attempt) {
    const auto less = attempt.changes.find("less_free");
    const std::uint64_t told = 8 * kGiB - (less == attempt.changes.end() ? 0 : std::stoull(less->second));
    return static_cast<std::uint64_t>(share * static_cast<double>(told)) + (7 * kGiB + 256 * kMiB) -
           static_cast<std::uint64_t>(share * 8 * static_cast<double>(kGiB));
  };
  program.takes = [takes](const Attempt& attempt, std::uint64_t) { return takes(attempt); };
  DryRunResult first = program.first();
  first.processes.front().asked_free_line = asked_at;
  first.processes.front().peak_reserved = takes({});
  Reruns reruns = program.reruns();
  reruns.run = [run = reruns.run, takes](const std::vector<Attempt>& attempts) {
    std::vector<DryRunResult> results = run(attempts);
    for (std::size_t at = 0; at < results.size(); ++at)
      results[at].processes.front().peak_reserved = takes(attempts[at]);
    return results;
  };
  auto plan = make_plan(program.question(), first, reruns);
  EXPECT_TRUE(plan.ok());
  return (*plan)->plan;
}

TEST(Filling, AProgramThatTakesOfWhatIsFreeFitsAndIsNotTight) {
  MadeUpProgram program;
  const Plan plan = planned(program, 0.9, "server.py:3");
  EXPECT_EQ(plan.verdict, Verdict::kFits);
  ASSERT_TRUE(plan.need.filling.has_value());
  EXPECT_EQ(plan.need.filling->line, "server.py:3");
  EXPECT_EQ(plan.need.filling->told_less_bytes, kGiB);
  EXPECT_NEAR(static_cast<double>(plan.need.filling->took_less_bytes), 0.9 * static_cast<double>(kGiB), 2.0);
  ASSERT_EQ(program.attempts.size(), 1u);
}

TEST(Filling, AProgramThatAsksAndTakesWhatItWantsAllTheSameIsTight) {
  MadeUpProgram program;
  const Plan plan = planned(program, 0, "train.py:3");
  EXPECT_EQ(plan.verdict, Verdict::kTight);
  EXPECT_FALSE(plan.need.filling.has_value());
  EXPECT_EQ(program.attempts.size(), 1u);
}

TEST(Filling, AProgramThatDoesNotAskIsNotRunAgain) {
  MadeUpProgram program;
  EXPECT_EQ(planned(program, 0.9, "").verdict, Verdict::kTight);
  EXPECT_TRUE(program.attempts.empty());
}

TEST(Filling, WhatTheVerdictIsNotSaidWithoutIsSaidOnce) {
  Plan plan;
  plan.notes = {{NoteKind::kInstead, "a", "", 1, "run eagerly instead of compiled"},
                {NoteKind::kMode, "b", "", 1, ""},
                {NoteKind::kInstead, "c", "", 1, "with a stand-in for apex"},
                {NoteKind::kInstead, "d", "", 1, "run eagerly instead of compiled"}};
  EXPECT_EQ(beside_verdict(plan), ", run eagerly instead of compiled, with a stand-in for apex");
  plan.notes.clear();
  EXPECT_EQ(beside_verdict(plan), "");
}

}  // namespace
}  // namespace faultline
