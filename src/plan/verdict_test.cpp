#include "plan/verdict.h"

#include <gtest/gtest.h>

#include <limits>

#include "plan/plan_test_support.h"
#include "trace/file_format.h"

namespace faultline {
namespace {

Plan planned(const DryRunResult& first) {
  MadeUpProgram program;
  PlanQuestion question = program.question();
  question.no_try = true;
  Result<std::unique_ptr<PlannedRun>> made = make_plan(question, first, program.reruns());
  EXPECT_TRUE(made.ok()) << made.error().message();
  return made ? std::move((*made)->plan) : Plan{};
}

// Each step keeps so much; the first also makes 200 MiB that stay.
DryRunResult growing(std::uint64_t steps, std::uint64_t kept_mib, const std::string& stopped,
                     const std::string& held = "") {
  DryRunResult run = MadeUpProgram::left(kGiB, false);
  std::ofstream file(run.processes.front().trace);
  file << "faultline-trace-text 1\nsource dry-run\nproperty dry-run.context_bytes = " << kContextBytes << held
       << "\ndevice 0 capacity=" << 8 * kGiB << "\n";
  file << "alloc #o 200MiB driver\nalloc #w 200MiB at train.py:7 main\n";
  for (std::uint64_t step = 1; step <= steps; ++step) {
    if (kept_mib != 0)
      file << "alloc #s" << step << " " << kept_mib << "MiB driver\nalloc #a" << step << " " << kept_mib
           << "MiB at train.py:7 main\n";
    file << "step " << step << " Optimizer.step#SGD.step\n";
  }
  run.processes.front().steps = steps;
  run.processes.front().stopped = stopped;
  return run;
}

// A run of two optimizers, the turns of which are told in their order (a, b), F being the failure.
Plan of_two_optimizers(const std::string& order) {
  DryRunResult run = MadeUpProgram::left(9 * kGiB, false);
  ProcessSummary& main = run.processes.front();
  std::ofstream file(main.trace);
  file << "faultline-trace-text 1\nsource dry-run\nproperty dry-run.context_bytes = " << kContextBytes
       << "\ndevice 0 capacity=" << 8 * kGiB << "\nop-begin \"phase training\"\nop-end \"\"\n";
  std::uint64_t turns[2] = {0, 0};
  for (const char what : order) {
    if (what == 'F') {
      file << "alloc-failed " << 9 * kGiB << " at train.py:7 main\nalloc #s 9GiB driver\nalloc #a 9GiB at train.py:7 "
           << "main\n";
      continue;
    }
    file << "op-begin \"turn of optimizer " << what << "\"\nop-end \"\"\n";
    ++turns[what - 'a'];
    if (what == 'a') file << "step " << turns[0] << " Optimizer.step#Adam.step\n";  // the first to step marks
  }
  file.close();
  main.steps = turns[0];
  main.optimizers = 2;
  main.most_turns = std::max(turns[0], turns[1]);
  main.least_turns = std::min(turns[0], turns[1]);
  PlanQuestion question = MadeUpProgram().question();
  question.may_run_again = false;
  MadeUpProgram program;
  Result<std::unique_ptr<PlannedRun>> made = make_plan(question, run, program.reruns());
  EXPECT_TRUE(made.ok());
  return made ? std::move((*made)->plan) : Plan{};
}

TEST(Verdict, OfTwoOptimizersTheFailingRoundIsTheOneThatNotAllHaveEnded) {
  EXPECT_EQ(of_two_optimizers("Fababab").failure.in_step, 1u);
  EXPECT_EQ(of_two_optimizers("aFbabab").failure.in_step, 1u);
  EXPECT_EQ(of_two_optimizers("abFabab").failure.in_step, 2u);
  EXPECT_EQ(of_two_optimizers("abaFbab").failure.in_step, 2u);
  EXPECT_EQ(of_two_optimizers("abababF").failure.in_step, 0u);  // after the last
  // one steps twice as often: there is no round of both
  const Plan unequal = of_two_optimizers("aabaaFbaabaab");
  EXPECT_EQ(unequal.failure.in_step, 0u);
  EXPECT_EQ(unequal.failure.steps_before, 1u);
  EXPECT_TRUE(unequal.has_unequal_optimizers());
  Plan one_after_the_other;
  one_after_the_other.run.optimizers = 2;
  one_after_the_other.run.steps = 7;
  one_after_the_other.run.most_turns = one_after_the_other.run.least_turns = 4;
  EXPECT_TRUE(one_after_the_other.has_unequal_optimizers());
  EXPECT_FALSE(of_two_optimizers("ababaF").has_unequal_optimizers());  // within a round
}

TEST(Verdict, WhatGrowsFitsUntilTheStepThatItsOwnNumbersGive) {
  for (const std::uint64_t each : {32, 64, 128}) {
    const Plan plan = planned(growing(12, each, "after 12 optimizer steps"));
    ASSERT_EQ(plan.verdict, Verdict::kFitsUntil) << each;
    EXPECT_EQ(plan.growth.unit, "step");
    EXPECT_EQ(plan.need.bytes, kContextBytes + (200 + 12 * each) * kMiB);
    // the 200 MiB of the first step are no growth
    EXPECT_EQ(plan.growth.until, 12 + plan.spare_bytes() / (each * kMiB)) << each;
  }
}

// A loop over data that was ended after 12 rounds: each keeps so much, in a segment of the same size.
DryRunResult cut_loop(std::uint64_t kept_mib, std::uint64_t rounds) {
  DryRunResult run = growing(3, 0, "in its loop over a DataLoader after 3 optimizer steps, and went on");
  std::ofstream file(run.processes.front().trace, std::ios::app);
  for (std::uint64_t round = 1; round <= 13; ++round) {
    file << "op-begin \"round of loop 1\"\nop-end \"\"\n";
    if (kept_mib != 0 && round != 13)
      file << "alloc #t" << round << " " << kept_mib << "MiB driver\nalloc #k" << round << " " << kept_mib
           << "MiB at train.py:20 main\n";
  }
  run.processes.front().rising = {{"train.py:19", 1, 12, rounds}};
  return run;
}

// The GPU has room for 117 rounds of 64 MiB beside the 200 MiB of the training.
TEST(Verdict, ALoopThatWasCutShortWhileMemoryRoseIsTakenToItsEnd) {
  struct Row {
    std::uint64_t rounds;  // of the loop; 0: not known
    Verdict verdict;
  };
  for (const Row& row : {Row{0, Verdict::kFitsUntil}, Row{20, Verdict::kFits}, Row{60, Verdict::kFits},
                         Row{115, Verdict::kTight}, Row{200, Verdict::kFitsUntil}}) {
    const Plan plan = planned(cut_loop(64, row.rounds));
    EXPECT_EQ(plan.verdict, row.verdict) << row.rounds;
    EXPECT_EQ(plan.growth.unit, "round");
    EXPECT_EQ(plan.growth.until, (8 * kGiB - kContextBytes - 200 * kMiB) / (64 * kMiB));
    EXPECT_EQ(plan.growth.needed_at_end_bytes, row.rounds == 0 ? 0 : kContextBytes + (200 + row.rounds * 64) * kMiB);
    EXPECT_EQ(plan.growth.loop.where, "train.py:19");
  }
}

TEST(Verdict, ALoopThatWasCutShortAndKeepsNothingFits) {
  const Plan plan = planned(cut_loop(0, 200));
  EXPECT_EQ(plan.verdict, Verdict::kFits);
  EXPECT_EQ(plan.growth.until, 0u);
}

TEST(Verdict, WhereALoopThatWasCutShortFillsTheGpuTheGraphIsTriedBeforeTheBatch) {
  MadeUpProgram program;
  const bool helps[] = {true, false};
  for (const bool it_helps : helps) {
    program.attempts.clear();
    DryRunResult run = cut_loop(64, 200);
    Offer graph;
    graph.name = "no_grad";
    graph.answers = true;
    graph.value = "true";
    graph.label = graph.what = "torch.no_grad()";
    graph.keeps = {{"running", 0.1}};
    run.processes.front().offers = {graph};
    run.processes.front().numbers = {{"batch_size", 16, {}}};
    Reruns reruns = program.reruns();
    reruns.seconds_left = [] { return 50.0; };
    const auto run_made_up = reruns.run;
    reruns.run = [&](const std::vector<Attempt>& asked) {
      std::vector<DryRunResult> results = run_made_up(asked);
      for (std::size_t at = 0; at < asked.size(); ++at) {
        const bool ends = it_helps && asked[at].changes.contains("no_grad");
        DryRunResult left = cut_loop(ends ? 0 : 64, 200);
        left.processes.front().changes = results[at].processes.front().changes;
        left.processes.front().vary_value = results[at].processes.front().vary_value;
        results[at] = std::move(left);
      }
      return results;
    };
    const Result<std::unique_ptr<PlannedRun>> made = make_plan(program.question(), run, reruns);
    ASSERT_TRUE(made.ok());
    const Plan& plan = (*made)->plan;
    ASSERT_FALSE(program.attempts.empty());
    EXPECT_TRUE(program.attempts.front().changes.contains("no_grad"));
    EXPECT_EQ(program.attempts.size() > 1, !it_helps);
    ASSERT_FALSE(plan.tried.changes.empty());
    EXPECT_EQ(plan.tried.changes.front().fits, it_helps);
    if (!it_helps) {
      EXPECT_EQ(plan.tried.changes.front().until, plan.growth.until);
      // no batch is confirmed while memory grows with each round
      EXPECT_TRUE(plan.tried.vary && plan.tried.vary->largest_fitting == 0);
    }
  }
}

// The GPU has room for about 117 steps of 64 MiB.
TEST(Verdict, WhatGrowsFitsWhereTheLoopEndsBeforeTheGpuIsFull) {
  struct Row {
    std::uint64_t steps;  // of the loop; 0: not known
    Verdict verdict;
  };
  for (const Row& row : {Row{0, Verdict::kFitsUntil}, Row{20, Verdict::kFits}, Row{60, Verdict::kFits},
                         Row{115, Verdict::kTight}, Row{1000, Verdict::kFitsUntil}}) {
    DryRunResult run = growing(12, 64, "after 12 optimizer steps");
    run.processes.front().loop = {"train.py:5", row.steps, row.steps};
    MadeUpProgram program;
    PlanQuestion question = program.question();
    question.no_try = true;
    const Result<std::unique_ptr<PlannedRun>> made = make_plan(question, run, program.reruns());
    ASSERT_TRUE(made.ok());
    const Plan& plan = (*made)->plan;
    EXPECT_EQ(plan.verdict, row.verdict) << row.steps;
    if (row.verdict != Verdict::kFitsUntil) {
      EXPECT_EQ(plan.growth.needed_at_end_bytes, kContextBytes + (200 + row.steps * 64) * kMiB);
    }
    for (const Finding& finding : (*made)->judgement.findings) {
      EXPECT_EQ(finding.severity == Severity::kNote, row.verdict == Verdict::kFits) << finding.message;
      EXPECT_EQ(finding.number("steps_until_full"), std::optional<std::int64_t>(plan.growth.until - 12));
    }
    EXPECT_EQ((*made)->judgement.findings.size(), 1u);
  }
}

// Two optimizers take turns, and more is alive after one than after the other.
TEST(Verdict, StepsThatTakeTurnsGrowAsOneOfThemDoes) {
  for (const std::uint64_t steps : {24, 41, 60, 183}) {
    DryRunResult run = MadeUpProgram::left(kGiB, false);
    std::ofstream file(run.processes.front().trace);
    file << "faultline-trace-text 1\nsource dry-run\nproperty dry-run.context_bytes = " << kContextBytes
         << "\ndevice 0 capacity=" << 8 * kGiB << "\n";
    file << "alloc #s 1GiB driver\n";
    for (std::uint64_t step = 1; step <= steps; ++step) {
      if (step % 2 == 1)
        file << "alloc #k" << step << " 4MiB at train.py:7 main\nalloc #t" << step << " 100MiB at train.py:8 main\n";
      else
        file << "free #t" << step - 1 << "\n";
      file << "step " << step << " Optimizer.step#SGD.step\n";
    }
    file.close();
    run.processes.front().steps = steps;
    run.processes.front().stopped = "after some optimizer steps";
    const Plan plan = planned(run);
    ASSERT_EQ(plan.verdict, Verdict::kFitsUntil) << steps;
    EXPECT_EQ(plan.growth.until, steps + plan.spare_bytes() / (2 * kMiB)) << steps;
    EXPECT_EQ(plan.growth.until_latest, 0u) << steps;
  }
}

TEST(Verdict, WhatHasALimitFitsWhereThereIsRoomForAllOfIt) {
  const auto held = [](const std::string& limit) {
    return R"(
property dry-run.held.00 = "{\"lines\": [\"train.py:7\"], \"count\": 12, \"bytes\": 805306368, \"holder\": \"buf\", \"length\": 12, \"limit\": )" +
           limit + "}\"";
  };
  const Plan with_room = planned(growing(12, 64, "after 12 optimizer steps", held("24")));
  EXPECT_EQ(with_room.verdict, Verdict::kFits);
  ASSERT_EQ(with_room.notes.size(), 1u);
  EXPECT_NE(with_room.notes[0].text.find("full it takes about"), std::string::npos) << with_room.notes[0].text;
  EXPECT_EQ(planned(growing(12, 64, "after 12 optimizer steps", held("1000"))).verdict, Verdict::kFitsUntil);
  EXPECT_EQ(planned(growing(12, 64, "after 12 optimizer steps", held("0"))).verdict, Verdict::kFitsUntil);
}

TEST(Verdict, WhatDoesNotGrowOrCameToItsEndFits) {
  EXPECT_EQ(planned(growing(12, 0, "after 12 optimizer steps")).verdict, Verdict::kFits);
  EXPECT_EQ(planned(growing(12, 64, "")).verdict, Verdict::kFits);
}

TEST(Verdict, ATraceThatIsNotWholeGivesNone) {
  EXPECT_EQ(planned(MadeUpProgram::left(kGiB, false)).verdict, Verdict::kFits);
  for (const char* lost : {kLostWriterStopped, kLostDroppedRecords, kLostCutChunks}) {
    const DryRunResult run = MadeUpProgram::left(kGiB, false);
    std::ofstream(run.processes.front().trace, std::ios::app) << "lost " << lost << " 3\n";
    const Plan plan = planned(run);
    EXPECT_EQ(plan.verdict, Verdict::kUnplanned) << lost;
    EXPECT_NE(plan.trouble.unplanned.find("not whole"), std::string::npos) << plan.trouble.unplanned;
  }
}

TEST(Verdict, AnOutOfMemoryThatIsCaughtBeforeAFailingEndIsWantOfMemory) {
  struct Row {
    int status;
    bool last;  // nothing was served after it
    const char* stopped;
    Verdict verdict;
  };
  for (const Row& row : {Row{1, true, "", Verdict::kDoesNotFit}, Row{3, true, "", Verdict::kDoesNotFit},
                         Row{0, true, "", Verdict::kFits}, Row{1, false, "", Verdict::kProgramError},
                         Row{1, true, "after 8 optimizer steps", Verdict::kFits}}) {
    DryRunResult run = MadeUpProgram::left(kGiB, false);
    run.status = row.status;
    run.processes.front().failures = 1;
    run.processes.front().last_was_out_of_memory = row.last;
    run.processes.front().stopped = row.stopped;
    settle_ends(run);
    EXPECT_EQ(planned(run).verdict, row.verdict) << row.status << row.last << row.stopped;
  }
}

TEST(Verdict, WhatEndsAfterTheDryRunsOwnStopIsNoFailureOfTheProgram) {
  DryRunResult run = MadeUpProgram::left(kGiB, false);
  run.status = 1;
  run.processes.front().exception = PlanException{"RuntimeError", "training was interrupted", {}};
  EXPECT_EQ(planned(run).verdict, Verdict::kProgramError);
  run.processes.front().stopped = "after 8 optimizer steps";
  const Plan plan = planned(run);
  EXPECT_EQ(plan.verdict, Verdict::kFits);
  EXPECT_FALSE(plan.trouble.exception.has_value());
}

// What it was stopped by decides, whatever a framework calls its steps.
TEST(Verdict, APartIsWhatWasAskedForWhereTheLimitThatStoppedItWas) {
  struct Row {
    StoppedBy by;
    const char* stopped;
    bool steps_asked, seconds_asked, asked;
  };
  for (const Row& row : {Row{StoppedBy::kSteps, "after 4 calls of train_step", true, false, true},
                         Row{StoppedBy::kSteps, "after 8 optimizer steps", true, false, true},
                         Row{StoppedBy::kSteps, "after 8 optimizer steps", false, true, false},
                         Row{StoppedBy::kSteps, "after 8 calls of after 120 seconds", false, true, false},
                         Row{StoppedBy::kSeconds, "after 120 seconds", false, true, true},
                         Row{StoppedBy::kSeconds, "after 120 seconds", true, false, false},
                         Row{StoppedBy::kAlike, "after 3 optimizer steps: all are alike", false, true, false},
                         Row{StoppedBy::kLoop, "in its loop after 8 optimizer steps", false, true, false},
                         Row{StoppedBy::kItself, "", true, true, false}}) {
    MadeUpProgram program;
    PlanQuestion question = program.question();
    question.no_try = true;
    question.steps_asked = row.steps_asked;
    question.seconds_asked = row.seconds_asked;
    DryRunResult run = MadeUpProgram::left(kGiB, false);
    run.processes.front().stopped = row.stopped;
    run.processes.front().stopped_by = row.by;
    Result<std::unique_ptr<PlannedRun>> made = make_plan(question, run, program.reruns());
    ASSERT_TRUE(made.ok());
    EXPECT_EQ((*made)->plan.run.stop_asked, row.asked) << row.stopped;
    EXPECT_EQ((*made)->plan.ends_early(), row.by != StoppedBy::kItself && !row.asked) << row.stopped;
  }
}

TEST(Verdict, AProgramThatNeverUsedTheGpuDoesNotFitIt) {
  DryRunResult run = MadeUpProgram::left(0, false);
  run.processes.front().allocations = 0;
  const Plan plan = planned(run);
  EXPECT_EQ(plan.verdict, Verdict::kUnplanned);
  EXPECT_NE(plan.trouble.unplanned.find("ran to its end without using it"), std::string::npos)
      << plan.trouble.unplanned;
  run.status = 2;  // it ended by itself
  EXPECT_EQ(planned(run).verdict, Verdict::kProgramError);
}

TEST(Verdict, ProcessesThatRunAtOneTimeShareTheGpu) {
  struct Row {
    std::uint64_t other_gib;
    double began, ended;  // of the other; the first, of 2 GiB, runs from 10 to 20
    bool share;
    Verdict verdict;
  };
  for (const Row& row : {Row{2, 12, 18, true, Verdict::kFits}, Row{6, 12, 18, true, Verdict::kUnplanned},
                         Row{6, 20.5, 30, false, Verdict::kFits}, Row{6, 1, 9, false, Verdict::kFits},
                         Row{6, 5, 11, true, Verdict::kUnplanned}, Row{5, 5, 11, true, Verdict::kTight}}) {
    DryRunResult run = MadeUpProgram::left(2 * kGiB, false);
    ProcessSummary& first = run.processes.front();
    first.peak_reserved = 2 * kGiB;
    first.began_s = 10;
    first.ended_s = 20;
    ProcessSummary other = first;
    other.peak_reserved = row.other_gib * kGiB;
    other.began_s = row.began;
    other.ended_s = row.ended;
    run.processes.push_back(other);
    const Plan plan = planned(run);
    EXPECT_EQ(plan.need.together_bytes, row.share ? (2 + row.other_gib) * kGiB + 2 * kContextBytes : 0)
        << row.other_gib << " " << row.began;
    EXPECT_EQ(plan.verdict, row.verdict) << row.other_gib << " " << row.began;
  }
}

// What another process ended left no summary; what it took counts from its beginning on.
TEST(Verdict, AProcessThatWasKilledSharesTheGpuToo) {
  struct Row {
    std::uint64_t gib, failures;
    Verdict verdict;
  };
  for (const Row& row : {Row{2, 0, Verdict::kFits}, Row{6, 0, Verdict::kUnplanned}, Row{1, 1, Verdict::kUnplanned}}) {
    DryRunResult run = MadeUpProgram::left(2 * kGiB, false);
    run.processes.front().peak_reserved = 2 * kGiB;
    ProcessSummary killed;
    killed.peak_reserved = row.gib * kGiB;
    killed.allocations = 1;
    killed.failures = row.failures;
    killed.began_s = run.processes.front().began_s + 1;
    killed.ended_s = std::numeric_limits<double>::infinity();
    run.processes.front().ended_s = killed.began_s + 1;
    run.processes.push_back(killed);
    EXPECT_EQ(planned(run).verdict, row.verdict) << row.gib << " " << row.failures;
  }
}

}  // namespace
}  // namespace faultline
