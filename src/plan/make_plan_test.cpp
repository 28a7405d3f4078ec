#include "plan/make_plan.h"

#include <gtest/gtest.h>

#include "plan/plan_test_support.h"

namespace faultline {
namespace {

TEST(MakePlan, AProgramThatFitsIsNotRunAgain) {
  MadeUpProgram program;
  program.batch = [](const Attempt&) { return 2; };
  const Plan plan = program.plan(program.question());
  EXPECT_EQ(plan.verdict, Verdict::kFits);
  EXPECT_EQ(plan.need.bytes, 2 * kGiB + kContextBytes);
  EXPECT_EQ(plan.spare_bytes(), 8 * kGiB - plan.need.bytes);
  EXPECT_TRUE(program.attempts.empty());
}

TEST(MakePlan, LittleToSpareIsTight) {
  MadeUpProgram program;
  program.takes = [](const Attempt&, std::uint64_t) { return 8 * kGiB - kContextBytes - 20 * kMiB; };
  EXPECT_EQ(program.plan(program.question()).verdict, Verdict::kTight);
}

TEST(MakePlan, WhatDoesNotFitIsRunOnALargerGpuToLearnHowMuchItNeeds) {
  MadeUpProgram program;
  PlanQuestion question = program.question();
  question.no_try = true;
  const Plan plan = program.plan(question);
  EXPECT_EQ(plan.verdict, Verdict::kDoesNotFit);
  EXPECT_EQ(plan.need.bytes, 9 * kGiB + kContextBytes);
  EXPECT_EQ(plan.failure.at.line, 7u);
  EXPECT_EQ(plan.peak.allocated_bytes, 9 * kGiB);
  EXPECT_FALSE(plan.trouble.exception.has_value());
  ASSERT_EQ(program.attempts.size(), 1u);
  EXPECT_EQ(program.attempts.front().folder, "larger");
}

// Whoever waits for remedies knows the verdict meanwhile, and each that is found.
TEST(MakePlan, TheVerdictIsSaidBeforeChangesAreTried) {
  MadeUpProgram program;
  program.batch = [](const Attempt& attempt) { return attempt.vary ? attempt.vary->second : 16; };
  Reruns reruns = program.reruns();
  reruns.run = [run = reruns.run](const std::vector<Attempt>& asked) {
    std::vector<DryRunResult> results = run(asked);
    for (DryRunResult& result : results) result.processes.front().numbers = {{"batch_size", 16, {}}};
    return results;
  };
  std::size_t runs_before = 0, said = 0;
  reruns.say_verdict = [&](const Plan& plan) {
    ++said;
    runs_before = program.attempts.size();
    EXPECT_EQ(plan.verdict, Verdict::kDoesNotFit);
    EXPECT_EQ(plan.failure.at.line, 7u);
  };
  ASSERT_TRUE(make_plan(program.question(), program.first(), reruns).ok());
  EXPECT_EQ(said, 1u);
  EXPECT_EQ(runs_before, 1u);  // that on a larger GPU
  EXPECT_GT(program.attempts.size(), 1u);
  EXPECT_EQ(std::count_if(program.told.begin(), program.told.end(),
                          [](const std::string& sentence) { return sentence == "batch_size = 13 fits"; }),
            1);

  MadeUpProgram fitting;
  fitting.batch = [](const Attempt&) { return 2; };
  ASSERT_TRUE(make_plan(fitting.question(), fitting.first(), reruns).ok());
  EXPECT_EQ(said, 1u);  // the report says it at once
}

// A signal during the second run, before or after the request that had failed.
TEST(MakePlan, ASignalDuringTheSecondRunLeavesTheFirstRunsVerdict) {
  for (const bool comes_far : {false, true}) {
    MadeUpProgram program;
    bool interrupted = false;
    Reruns reruns = program.reruns();
    reruns.run = [&, run = reruns.run](const std::vector<Attempt>& asked) {
      std::vector<DryRunResult> results = run(asked);
      for (DryRunResult& result : results) {
        result.interrupted = interrupted = true;
        if (!comes_far) result.processes.clear();
      }
      return results;
    };
    reruns.interrupted = [&] { return interrupted; };
    const Result<std::unique_ptr<PlannedRun>> made = make_plan(program.question(), program.first(), reruns);
    ASSERT_TRUE(made.ok());
    const Plan& plan = (*made)->plan;
    EXPECT_EQ(plan.verdict, Verdict::kDoesNotFit);
    EXPECT_TRUE(plan.run.interrupted);
    EXPECT_TRUE(plan.need.is_least);
    EXPECT_FALSE(plan.is_known_in_all());
    EXPECT_EQ(program.attempts.size(), 1u);
    EXPECT_EQ(program.told.size(), comes_far ? 1u : 2u);
    if (!comes_far) {
      EXPECT_NE(program.told.back().find("stopped by a signal"), std::string::npos) << program.told.back();
    }
  }
}

// Nobody knows what would follow the failure: no GPU is named, and nothing is said to fit, by what was seen until there.
TEST(MakePlan, WhatIsKnownToTheFailureAloneFitsNowhere) {
  for (const bool comes_far : {false, true}) {
    for (const bool was_killed : {false, true}) {
      MadeUpProgram program;
      Reruns reruns = program.reruns();
      reruns.run = [&, run = reruns.run](const std::vector<Attempt>& asked) {
        std::vector<DryRunResult> results = run(asked);
        for (std::size_t at = 0; at < asked.size(); ++at) {
          ProcessSummary& process = results[at].processes.front();
          process.stopped = "after 120 seconds";
          process.stopped_by = StoppedBy::kSeconds;
          process.ended_in_order = !was_killed;
          process.operations = !was_killed && comes_far ? 2 : 0;
          process.allocations = comes_far ? 2 : 0;
        }
        return results;
      };
      DryRunResult first = program.first();
      first.processes.front().allocations = 1;
      const Result<std::unique_ptr<PlannedRun>> made = make_plan(program.question(), first, reruns);
      ASSERT_TRUE(made.ok());
      const Plan& plan = (*made)->plan;
      EXPECT_EQ(plan.verdict, Verdict::kDoesNotFit);
      EXPECT_EQ(plan.need.is_least, !comes_far);
      EXPECT_EQ(plan.tried.where.empty(), !comes_far);
      EXPECT_EQ(program.told[1].find("was stopped after 120 seconds, before") != std::string::npos, !comes_far)
          << program.told[1];
    }
  }
}

// The program was over: it is not the one that was stopped.
TEST(MakePlan, ASignalAfterTheFirstRunIsNotTheProgramsEnd) {
  MadeUpProgram program;
  program.batch = [](const Attempt&) { return 2; };
  Reruns reruns = program.reruns();
  reruns.interrupted = [] { return true; };
  for (const bool during : {false, true}) {
    DryRunResult first = program.first();
    first.interrupted = during;
    const Result<std::unique_ptr<PlannedRun>> made = make_plan(program.question(), first, reruns);
    ASSERT_TRUE(made.ok());
    EXPECT_EQ((*made)->plan.verdict, during ? Verdict::kInterrupted : Verdict::kFits);
  }
}

TEST(MakePlan, WhatIsLearnedToItsEndIsKnown) {
  MadeUpProgram program;
  PlanQuestion question = program.question();
  question.no_try = true;
  const Plan plan = program.plan(question);
  EXPECT_FALSE(plan.need.is_least);
  EXPECT_FALSE(plan.run.interrupted);
  EXPECT_TRUE(plan.is_known_in_all());
}

TEST(MakePlan, AProgramThatMayNotRunAgainIsToldAsFarAsItCame) {
  MadeUpProgram program;
  PlanQuestion question = program.question();
  question.may_run_again = false;
  const Plan plan = program.plan(question);
  EXPECT_EQ(plan.verdict, Verdict::kDoesNotFit);
  EXPECT_TRUE(program.attempts.empty());
  EXPECT_TRUE(plan.tried.changes.empty());
}

TEST(MakePlan, AProgramThatTakesLongIsNotRunAgainWithChangesUnasked) {
  MadeUpProgram program;
  DryRunResult first = program.first();
  first.seconds = 61;
  const auto planned = make_plan(program.question(), first, program.reruns());
  ASSERT_TRUE(planned.ok());
  EXPECT_NE((*planned)->plan.tried.skipped.find("61 s"), std::string::npos);
  EXPECT_EQ(program.attempts.size(), 1u);
}

TEST(MakePlan, ABusyMachineOffersAsMuchAsAnIdleOne) {
  for (const auto& [clock, cpu, runs_again] : {std::tuple(300.0, 20.0, true), std::tuple(300.0, 61.0, false),
                                               std::tuple(40.0, 150.0, true), std::tuple(300.0, 0.0, false)}) {
    MadeUpProgram program;
    DryRunResult first = program.first();
    first.seconds = clock;
    first.cpu_seconds = cpu;
    const auto planned = make_plan(program.question(), first, program.reruns());
    ASSERT_TRUE(planned.ok());
    EXPECT_EQ((*planned)->plan.tried.skipped.empty(), runs_again) << clock << " s, " << cpu << " s of the processors";
  }
}

TEST(MakePlan, WithoutAGpuTheCatalogueIsListedAndHasTheSameNumber) {
  MadeUpProgram program;
  PlanQuestion question = program.question();
  question.gpus.clear();
  DryRunResult first = MadeUpProgram::left(kGiB, true);
  const auto planned = make_plan(question, first, program.reruns());
  ASSERT_TRUE(planned.ok());
  const Plan& plan = (*planned)->plan;
  EXPECT_EQ(plan.verdict, Verdict::kMeasured);
  EXPECT_EQ(plan.fits.size(), gpu_catalogue().size());
  for (const PlanFit& fit : plan.fits)
    EXPECT_EQ(fit.fits, plan.need.bytes - plan.context_bytes + fit.gpu.context_bytes <= fit.gpu.capacity_bytes)
        << fit.gpu.name;
}

TEST(MakePlan, AnErrorOfTheProgramsOwnIsNoVerdictOnItsMemory) {
  MadeUpProgram program;
  DryRunResult first = MadeUpProgram::left(kGiB, false);
  first.status = 1;
  first.processes.front().exception = PlanException{"KeyError", "'x'", {}};
  const auto planned = make_plan(program.question(), first, program.reruns());
  ASSERT_TRUE(planned.ok());
  EXPECT_EQ((*planned)->plan.verdict, Verdict::kProgramError);
  EXPECT_EQ((*planned)->plan.trouble.exception->type, "KeyError");
}

TEST(MakePlan, WhatCouldNotBePlannedIsNoFitAlsoWhereTheProgramWentOn) {
  MadeUpProgram program;
  DryRunResult first = MadeUpProgram::left(kGiB, false);
  first.processes.front().unplanned = "sparse tensors";
  first.processes.front().unplanned_line = "train.py:3";
  auto planned = make_plan(program.question(), first, program.reruns());
  ASSERT_TRUE(planned.ok());
  EXPECT_EQ((*planned)->plan.verdict, Verdict::kUnplanned);
  EXPECT_EQ((*planned)->plan.trouble.unplanned_line, "train.py:3");
  first = MadeUpProgram::left(kGiB, false);
  first.processes.front().stopped = "after 120 seconds";
  planned = make_plan(program.question(), first, program.reruns());
  ASSERT_TRUE(planned.ok());
  EXPECT_EQ((*planned)->plan.verdict, Verdict::kFits);
  first.processes.front().allocations = 0;
  planned = make_plan(program.question(), first, program.reruns());
  ASSERT_TRUE(planned.ok());
  EXPECT_EQ((*planned)->plan.verdict, Verdict::kUnplanned);
}

TEST(MakePlan, ASignalAfterTheProgramsEndIsNotedAndOneBeforeItIsAnInterruption) {
  MadeUpProgram program;
  DryRunResult first = MadeUpProgram::left(kGiB, false);
  first.status = 128 + 11;
  auto planned = make_plan(program.question(), first, program.reruns());
  ASSERT_TRUE(planned.ok());
  EXPECT_EQ((*planned)->plan.verdict, Verdict::kFits);
  EXPECT_EQ((*planned)->plan.notes.size(), 1u);
  first.processes.front().ended_in_order = false;
  planned = make_plan(program.question(), first, program.reruns());
  ASSERT_TRUE(planned.ok());
  EXPECT_EQ((*planned)->plan.verdict, Verdict::kInterrupted);
}

TEST(MakePlan, NothingIsPlannedWithoutATraceOrWhereSomethingIsUnsupported) {
  const PlanQuestion question = MadeUpProgram().question();
  EXPECT_EQ(nothing_planned(question, {}),
            "nothing was planned: python did not import PyTorch, JAX or TensorFlow (or is no Python program)");
  DryRunResult run = MadeUpProgram::left(kGiB, false);
  EXPECT_EQ(nothing_planned(question, run), "");
  run.processes.front().unsupported = {"sparse tensors (train.py:3)"};
  EXPECT_EQ(nothing_planned(question, run),
            "this program cannot be dry-run: sparse tensors (train.py:3). --real runs it with real numbers instead, "
            "which is slower");
  run.processes.front().unsupported = {"PyTorch 1.13.1 is older than 2.1", Unsupported::kFramework};
  EXPECT_EQ(nothing_planned(question, run), "this program cannot be dry-run: PyTorch 1.13.1 is older than 2.1");
  DryRunResult broken;
  broken.import_trouble.why = "PyTorch could not be imported by python";
  EXPECT_EQ(nothing_planned(question, broken), "nothing was planned: PyTorch could not be imported by python");
  broken.status = 135;
  EXPECT_EQ(nothing_planned(question, broken),
            "nothing was planned: PyTorch could not be imported by python (signal 7)");
}

TEST(MakePlan, WhatEndedThePlanFromOutsideIsNotPutDownToTheProgramOrToPyTorch) {
  const PlanQuestion question = MadeUpProgram().question();
  for (const char* trouble : {"PyTorch's import was interrupted (KeyboardInterrupt)",
                              "PyTorch's import did not come to its end: the process ended in it"}) {
    DryRunResult run;
    run.import_trouble = {trouble, true};
    run.status = 130;
    EXPECT_EQ(nothing_planned(question, run), "nothing was planned: " + std::string(trouble) + " (signal 2)");
    for (bool DryRunResult::*const ended : {&DryRunResult::interrupted, &DryRunResult::out_of_time}) {
      DryRunResult stopped = run;
      stopped.*ended = true;
      EXPECT_EQ(nothing_planned(question, stopped), "nothing was planned: PyTorch was still being imported");
      stopped.import_trouble = {"PyTorch is not installed for python"};  // that was over by then
      EXPECT_NE(nothing_planned(question, stopped).find("not installed"), std::string::npos);
    }
  }
  DryRunResult full = MadeUpProgram::left(kGiB, false);
  full.processes.front().unsupported = {"the trace file cannot be created: Read-only file system",
                                        Unsupported::kFolder};
  EXPECT_EQ(
      nothing_planned(question, full),
      "nothing was planned: the trace file cannot be created: Read-only file system. Give another folder with -o, "
      "or make room there");
}

TEST(DryRun, ThePlanIsAboutTheProcessThatRanOutElseTheOneThatTookMost) {
  std::vector<ProcessSummary> processes(3);
  processes[1].peak_reserved = kGiB;
  processes[2].exception = PlanException{"OutOfMemoryError", "", {}};
  processes[2].trace = "2";
  most_needing_first(processes);
  EXPECT_EQ(processes[0].trace, "2");
  EXPECT_EQ(processes[1].peak_reserved, kGiB);
}

TEST(DryRun, WithoutAGpuInMindTheProgramSeesOneThatGrows) {
  ASSERT_EQ(shown_gpus({}).size(), 1u);
  EXPECT_EQ(shown_gpus({})[0].name, "GPU of any size");
  const std::vector<ShownGpu> two = shown_gpus({gpu_of_8_gib(), *find_gpu("T4")});
  ASSERT_EQ(two.size(), 2u);
  EXPECT_EQ(two[0].name, "GPU of 8.00 GiB");
  EXPECT_EQ(two[1].name, "Tesla T4");
}

}  // namespace
}  // namespace faultline
