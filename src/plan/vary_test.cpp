#include "plan/vary.h"

#include <gtest/gtest.h>

#include "fmt/format.h"
#include "plan/offers_in_command.h"
#include "plan/plan_test_support.h"

namespace faultline {
namespace {

// 8 GiB - 500 MiB - 1 GiB, in parts of 512 MiB: 13 fit, 14 do not.
constexpr std::uint64_t kLargest = 13;

std::uint64_t in_source(const Attempt& attempt) { return attempt.vary ? attempt.vary->second : 16; }
std::uint64_t in_command(const Attempt& attempt) {
  return attempt.command.empty() ? 16 : std::stoull(attempt.command.back());
}

Plan plan_for(const MadeUpProgram& program, Verdict verdict) {
  Plan plan;
  plan.verdict = verdict;
  plan.command = program.question().command;
  plan.gpu = plan_gpu(gpu_of_8_gib());
  plan.need.bytes = kContextBytes + program.takes({}, program.batch({}));
  return plan;
}

TEST(Vary, TheLargestBatchIsFoundInTheSourceFromBelow) {
  MadeUpProgram program;
  program.batch = in_source;
  Plan plan = plan_for(program, Verdict::kDoesNotFit);
  add_search(program.reruns(), "", {}, plan);
  ASSERT_TRUE(plan.tried.vary.has_value());
  EXPECT_EQ(plan.tried.vary->name, "batch_size");
  EXPECT_EQ(plan.tried.vary->where, "train.py:3");
  EXPECT_EQ(plan.tried.vary->current, 16u);
  EXPECT_EQ(plan.tried.vary->largest_fitting, kLargest);
  EXPECT_EQ(plan.tried.vary->smallest_failing, kLargest + 1);
  EXPECT_EQ(plan.tried.vary->runs, program.attempts.size());
  EXPECT_EQ(program.attempts.front().folder, "tries/batch_size=1");
}

// What is lost in gaps is not the same for each: 13 may not fit where 14 does.
TEST(Vary, AValueThatFitsAboveOneThatDoesNotIsNoBorder) {
  MadeUpProgram program;
  program.batch = in_source;
  program.takes = [](const Attempt&, std::uint64_t of) {
    return kGiB + (of == 13 ? 14 : of == 14 ? 12 : of) * 512 * kMiB;
  };
  Plan plan = plan_for(program, Verdict::kDoesNotFit);
  add_search(program.reruns(), "", {}, plan);
  EXPECT_EQ(plan.tried.vary->largest_fitting, 12u);
  EXPECT_EQ(plan.tried.vary->smallest_failing, 13u);
}

// An evaluation has a batch of its own; where the training's has no part in what is needed, it is the other's turn.
TEST(Vary, WhereTheEvaluationFailsItsOwnBatchIsSearchedFor) {
  for (const char* phase : {"evaluation", "training"}) {
    for (const bool named_first : {true, false}) {
      MadeUpProgram program;
      const std::string other = named_first ? "eval_batch" : "train_batch_size";
      program.batch = [&](const Attempt& attempt) {
        return attempt.vary && attempt.vary->first == other ? attempt.vary->second : 16;
      };
      Plan plan = plan_for(program, Verdict::kDoesNotFit);
      plan.failure.happened = true;
      plan.failure.phase = phase;
      plan.run.steps = 4;
      ProcessSummary as_run;
      as_run.ended_in_order = true;
      as_run.uses = {"backward"};
      as_run.number_offers = number_offers();
      as_run.numbers = {{"batch_size", 16, {}}, {other, 16, {}}};
      Reruns reruns = program.reruns();
      reruns.run = [run = reruns.run](const std::vector<Attempt>& asked) {
        std::vector<DryRunResult> results = run(asked);
        for (DryRunResult& result : results) result.processes.front().vary_value = 16;
        return results;
      };
      add_search(reruns, "", as_run, plan);
      const bool is_found = !named_first || std::string_view(phase) == "evaluation";
      EXPECT_EQ(plan.tried.vary->largest_fitting, is_found ? kLargest : 0) << phase << " " << other;
      EXPECT_EQ(plan.tried.vary->name, is_found ? other : "batch_size");
      EXPECT_EQ(plan.tried.vary->accumulated, is_found && !named_first) << other;
      EXPECT_EQ(plan.tried.vary->why_not.empty(), is_found) << plan.tried.vary->why_not;
    }
  }
}

TEST(Vary, TheServedBatchInTheCommandIsTakenWhereTheEvaluationFails) {
  for (const bool evaluates : {true, false}) {
    MadeUpProgram program;
    program.batch = in_command;
    Plan plan = plan_for(program, Verdict::kDoesNotFit);
    plan.command = {"python", "train.py", "--batch-size", "4", "--test-batch-size", "16"};
    plan.failure.happened = true;
    plan.failure.phase = evaluates ? "evaluation" : "training";
    add_search(program.reruns(), "", {}, plan);
    EXPECT_EQ(plan.tried.vary->name, evaluates ? "--test-batch-size" : "--batch-size");
  }
}

TEST(Vary, TheChangeIsShownAsAUserMakesIt) {
  ProcessSummary trains;
  trains.uses = {"backward"};
  trains.numbers = {{"batch_size", 16, {{"train.py", 3, {"batch_size = 16"}, {"batch_size = @VALUE@"}}}},
                    {"seq_len", 64, {{"train.py", 4, {"seq_len = 64"}, {"seq_len = @VALUE@"}}}}};
  trains.number_offers = number_offers();
  trains.accumulation = {{"train.py", 9, {"loss.backward()"}, {"(loss / @MANY@).backward()"}}};
  for (const bool in_the_command : {false, true}) {
    MadeUpProgram program;
    program.batch = in_the_command ? in_command : in_source;
    Plan plan = plan_for(program, Verdict::kDoesNotFit);
    plan.run.steps = 4;
    if (in_the_command) plan.command = {"python", "train.py", "--batch-size", "16"};
    Reruns reruns = program.reruns();
    add_search(reruns, "", trains, plan);
    ASSERT_EQ(plan.tried.vary->largest_fitting, kLargest);
    EXPECT_EQ(plan.tried.vary->batch, 8u);  // 13 do not divide 16
    EXPECT_EQ(plan.tried.vary->batches, 2u);
    EXPECT_EQ(plan.tried.vary->runs, program.attempts.size());
    EXPECT_EQ(plan.tried.vary->diff.find("batch_size = 8") == std::string::npos, in_the_command);
    EXPECT_EQ(plan.tried.vary->diff.find("seq_len"), std::string::npos);
    EXPECT_NE(plan.tried.vary->diff.find("+(loss / 2).backward()"), std::string::npos) << plan.tried.vary->diff;
    EXPECT_EQ(plan.tried.vary->command, in_the_command
                                            ? std::vector<std::string>({"python", "train.py", "--batch-size", "8"})
                                            : std::vector<std::string>());
  }
}

// The loader of the tests has the same name and a larger number: it stays, unless the evaluation needs a smaller one, too.
TEST(Vary, ALargerNumberOfTheNameStaysWhereTheTrainingsAloneIsEnough) {
  for (const bool evaluation_fits : {true, false}) {
    ProcessSummary as_run;
    as_run.training_batch = 16;
    as_run.numbers = {{"batch_size", 16, {{"train.py", 9, {"train(batch_size=16)"}, {"train(batch_size=@VALUE@)"}}}},
                      {"batch_size", 64, {{"train.py", 8, {"test(batch_size=64)"}, {"test(batch_size=@VALUE@)"}}}}};
    as_run.number_offers = number_offers();
    MadeUpProgram program;
    program.batch = [](const Attempt& attempt) { return attempt.vary ? attempt.vary->second : 64; };
    program.takes = [&](const Attempt& attempt, std::uint64_t of) {
      const auto edits = attempt.edits.find(std::string(kVary));
      const bool both = edits != attempt.edits.end() && edits->second.size() == 2;
      const std::uint64_t evaluation = both ? of : 64;
      return kGiB + std::max(std::min<std::uint64_t>(of, 16) * 512, evaluation * (evaluation_fits ? 64 : 256)) * kMiB;
    };
    Plan plan = plan_for(program, Verdict::kDoesNotFit);
    plan.failure.happened = true;
    plan.failure.phase = "training";
    add_search(program.reruns(), "", as_run, plan);
    const PlanVary& vary = *plan.tried.vary;
    EXPECT_LE(vary.largest_fitting, kLargest);
    EXPECT_GE(vary.largest_fitting, evaluation_fits ? kLargest : 8);
    EXPECT_EQ(vary.current, 16u);
    const std::string line = fmt::format("+train(batch_size={})", vary.largest_fitting);
    EXPECT_NE(vary.diff.find(line), std::string::npos) << vary.diff;
    EXPECT_EQ(vary.diff.find("test(batch_size") == std::string::npos, evaluation_fits) << vary.diff;
    EXPECT_EQ(vary.where, evaluation_fits ? "train.py:9" : "train.py:3");
  }
}

// What is needed does not grow evenly: the way down from a batch of thousands is not made in single steps.
TEST(Vary, ABorderFarBelowTheLineIsFoundAllTheSame) {
  MadeUpProgram program;
  program.batch = [](const Attempt& attempt) { return attempt.vary ? attempt.vary->second : 8192; };
  program.takes = [](const Attempt&, std::uint64_t of) { return (of >= 700 ? 8 : 7) * kGiB + of * kMiB / 64; };
  Plan plan = plan_for(program, Verdict::kDoesNotFit);
  add_search(program.reruns(), "", {}, plan);
  EXPECT_GE(plan.tried.vary->largest_fitting, 128u);
  EXPECT_LT(plan.tried.vary->largest_fitting, 700u);
  EXPECT_LE(program.attempts.size(), 8u);
}

// The loader of the tests has the same name and a smaller number.
TEST(Vary, ASmallerNumberOfTheNameIsNotMadeLarger) {
  for (const std::uint64_t tests : {4, 15}) {
    ProcessSummary as_run;
    const std::string line = "tests = DataLoader(b, batch_size=";
    as_run.numbers = {
        {"batch_size", tests, {{"train.py", 8, {line + std::to_string(tests) + ")"}, {line + "@VALUE@)"}}}},
        {"batch_size",
         16,
         {{"train.py", 9, {"train = DataLoader(a, batch_size=16)"}, {"train = DataLoader(a, batch_size=@VALUE@)"}}}}};
    as_run.number_offers = number_offers();
    MadeUpProgram program;
    program.batch = in_source;
    Plan plan = plan_for(program, Verdict::kDoesNotFit);
    add_search(program.reruns(), "", as_run, plan);
    ASSERT_EQ(plan.tried.vary->largest_fitting, kLargest);
    EXPECT_NE(plan.tried.vary->diff.find("+train = DataLoader(a, batch_size=13)"), std::string::npos)
        << plan.tried.vary->diff;
    EXPECT_EQ(plan.tried.vary->diff.find("+tests = DataLoader(b, batch_size=13)") != std::string::npos, tests == 15);
  }
}

// What is accumulated was run itself, and makes the program's batch, or as near as can be where nothing large divides it.
TEST(Vary, BatchesThatAreAccumulatedMakeTheBatchOfTheProgram) {
  struct Expected {
    std::uint64_t now, batch, batches;
  };
  for (const Expected& one : {Expected{16, 8, 2}, {24, 12, 2}, {26, 13, 2}, {17, 9, 2}, {256, 8, 32}, {97, 13, 8}}) {
    MadeUpProgram program;
    program.batch = [&](const Attempt& attempt) { return attempt.vary ? attempt.vary->second : one.now; };
    Plan plan = plan_for(program, Verdict::kDoesNotFit);
    plan.run.steps = 4;
    ProcessSummary trains;
    trains.uses = {"backward"};
    trains.number_offers = number_offers();
    add_search(program.reruns(), "batch_size", trains, plan);
    EXPECT_EQ(plan.tried.vary->batch, one.batch) << one.now;
    EXPECT_EQ(plan.tried.vary->batches, one.batches) << one.now;
    const auto is_it = [&](const Attempt& attempt) { return attempt.vary && attempt.vary->second == one.batch; };
    EXPECT_TRUE(std::any_of(program.attempts.begin(), program.attempts.end(), is_it)) << one.now;
    // without a loop that can be written the largest that fits is shown alone
    EXPECT_EQ(plan.tried.vary->diff.find("backward"), std::string::npos);
  }
  ProcessSummary trains;
  trains.uses = {"backward"};
  trains.number_offers = number_offers();
  const std::vector<Offer> offers = batches_in_command({"python", "train.py", "--batch-size", "12"}, trains);
  EXPECT_EQ(offers.size(), 3u);
  for (const Offer& offer : offers) EXPECT_EQ(12, std::stoull(offer.value) * offer.many);
}

TEST(Vary, WhatFitsIsDoubledUntilItDoesNot) {
  MadeUpProgram program;
  program.batch = [](const Attempt& attempt) { return attempt.vary ? attempt.vary->second : 2; };
  Plan plan = plan_for(program, Verdict::kFits);
  add_search(program.reruns(), "batch_size", {}, plan);
  EXPECT_EQ(plan.tried.vary->largest_fitting, kLargest);
  EXPECT_EQ(plan.tried.vary->smallest_failing, kLargest + 1);
}

// 14 ends the program with an error of its own: what was found before stays.
TEST(Vary, AValueThatFitsIsKeptWhenTheNextBreaksTheProgram) {
  MadeUpProgram program;
  program.batch = [](const Attempt& attempt) { return attempt.vary ? attempt.vary->second : 2; };
  Reruns reruns = program.reruns();
  const auto run = reruns.run;
  std::uint64_t measured = 0;
  reruns.run = [&](const std::vector<Attempt>& asked) {
    std::vector<DryRunResult> results = run(asked);
    for (std::size_t at = 0; at < asked.size(); ++at) {
      const bool breaks = asked[at].vary->second == kLargest + 1;
      if (breaks) results[at].processes.front().exception = PlanException{"ValueError", "odd", {}};
      measured += breaks ? 0 : 1;
    }
    return results;
  };
  Plan plan = plan_for(program, Verdict::kFits);
  add_search(reruns, "batch_size", {}, plan);
  EXPECT_EQ(plan.tried.vary->largest_fitting, kLargest);
  EXPECT_EQ(plan.tried.vary->smallest_failing, 16u);
  EXPECT_NE(plan.tried.vary->stopped.find("ValueError"), std::string::npos);
  EXPECT_EQ(plan.tried.vary->runs, measured);
  EXPECT_EQ(plan.tried.vary->tight, is_tight(*plan.gpu, kContextBytes + program.takes({}, kLargest)));
}

// A program that takes only multiples of four, from below and from above: the largest of them that fits is found.
TEST(Vary, AProgramThatWantsMultiplesGetsThem) {
  for (const bool fits : {false, true}) {
    for (const std::uint64_t unit : {2u, 4u}) {
      MadeUpProgram program;
      const std::uint64_t now = fits ? 8 : 16;
      program.batch = [&](const Attempt& attempt) { return attempt.vary ? attempt.vary->second : now; };
      Reruns reruns = program.reruns();
      reruns.run = [&, run = reruns.run](const std::vector<Attempt>& asked) {
        std::vector<DryRunResult> results = run(asked);
        for (std::size_t at = 0; at < asked.size(); ++at) {
          if (asked[at].vary->second % unit != 0)
            results[at].processes.front().exception = PlanException{"ValueError", "not a multiple", {}};
        }
        return results;
      };
      Plan plan = plan_for(program, fits ? Verdict::kFits : Verdict::kDoesNotFit);
      add_search(reruns, "batch_size", {}, plan);
      EXPECT_EQ(plan.tried.vary->largest_fitting, 12u)
          << unit << " " << plan.tried.vary->why_not << plan.tried.vary->stopped;
    }
  }
}

TEST(Vary, ANumberInTheCommandIsChangedThere) {
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"--batch-size", "16"}, {"--per_device_train_batch_size", "16"}, {"-b", "16"}}) {
    MadeUpProgram program;
    program.batch = in_command;
    Plan plan = plan_for(program, Verdict::kDoesNotFit);
    plan.command.insert(plan.command.end(), words.begin(), words.end());
    add_search(program.reruns(), "", {}, plan);
    ASSERT_TRUE(plan.tried.vary.has_value()) << words.front();
    EXPECT_EQ(plan.tried.vary->name, words.front());
    EXPECT_EQ(plan.tried.vary->where, "in the command");
    EXPECT_EQ(plan.tried.vary->largest_fitting, kLargest);
    EXPECT_EQ(program.attempts.front().folder, "tries/argument=1");
    EXPECT_FALSE(program.attempts.front().vary.has_value());
  }
}

TEST(Vary, ANameIsFoundInSettingsOfAnyForm) {
  for (const char* word : {"--sequence-length=16", "sequence_length=16", "model.sequence_length=16"}) {
    MadeUpProgram program;
    program.batch = [](const Attempt& attempt) {
      return std::stoull(attempt.command.back().substr(attempt.command.back().find('=') + 1));
    };
    Plan plan;
    plan.verdict = Verdict::kDoesNotFit;
    plan.gpu = plan_gpu(gpu_of_8_gib());
    plan.need.bytes = 20 * kGiB;
    plan.command = {"python", "train.py", word};
    add_search(program.reruns(), "sequence_length", {}, plan);
    EXPECT_EQ(plan.tried.vary->largest_fitting, kLargest) << word;
  }
}

TEST(Vary, ANameThatIsNowhereIsSaid) {
  MadeUpProgram program;
  Plan plan = plan_for(program, Verdict::kDoesNotFit);
  Reruns reruns = program.reruns();
  reruns.run = [](const std::vector<Attempt>& attempts) { return std::vector<DryRunResult>(attempts.size()); };
  add_search(reruns, "", {}, plan);
  ASSERT_TRUE(plan.tried.vary.has_value());
  EXPECT_NE(plan.tried.vary->why_not.find("no number called batch_size,"), std::string::npos);
  EXPECT_NE(plan.tried.vary->why_not.find("--vary NAME"), std::string::npos);
  add_search(reruns, "width", {}, plan);
  EXPECT_NE(plan.tried.vary->why_not.find("no number of this name"), std::string::npos);
}

TEST(Vary, ANumberThatChangesNothingIsNoBatch) {
  MadeUpProgram program;
  program.batch = in_source;
  program.takes = [](const Attempt&, std::uint64_t) { return 9 * kGiB; };
  Plan plan = plan_for(program, Verdict::kDoesNotFit);
  add_search(program.reruns(), "", {}, plan);
  EXPECT_EQ(plan.tried.vary->why_not, "with 1 in place of 16 the program needs just as much");
}

TEST(Vary, WhereEvenOneDoesNotFitThatIsSaid) {
  MadeUpProgram program;
  program.batch = in_source;
  program.takes = [](const Attempt&, std::uint64_t batch) { return 9 * kGiB + batch * kMiB * 64; };
  Plan plan = plan_for(program, Verdict::kDoesNotFit);
  add_search(program.reruns(), "", {}, plan);
  EXPECT_EQ(plan.tried.vary->largest_fitting, 0u);
  EXPECT_EQ(plan.tried.vary->smallest_failing, 1u);
  EXPECT_TRUE(plan.tried.vary->why_not.empty());
}

TEST(Vary, AValueThatBreaksTheProgramEndsTheSearchAndIsSaid) {
  MadeUpProgram program;
  program.batch = [](const Attempt& attempt) { return attempt.vary ? attempt.vary->second : 2; };
  Plan plan = plan_for(program, Verdict::kFits);
  plan.need.bytes = 2 * kGiB + kContextBytes;
  const Reruns works = program.reruns();
  Reruns breaks = works;
  breaks.run = [&](const std::vector<Attempt>& attempts) {
    std::vector<DryRunResult> results = works.run(attempts);
    for (std::size_t at = 0; at < attempts.size(); ++at) {
      if (attempts[at].vary->second >= 8)
        results[at].processes.front().exception = PlanException{"ValueError", "not enough data", {}};
    }
    return results;
  };
  add_search(breaks, "batch_size", {}, plan);
  EXPECT_EQ(plan.tried.vary->largest_fitting, 4u);
  EXPECT_EQ(plan.tried.vary->smallest_failing, 0u);
  EXPECT_EQ(plan.tried.vary->stopped, "with 8, the program then fails with ValueError: not enough data");
}

TEST(Vary, WhereNothingLargerFailsTheSearchEndsByItself) {
  MadeUpProgram program;
  program.batch = [](const Attempt& attempt) { return attempt.vary ? attempt.vary->second : 2; };
  program.takes = [](const Attempt&, std::uint64_t batch) { return kGiB + batch * 2 * kMiB; };
  Plan plan = plan_for(program, Verdict::kFits);
  plan.need.bytes = kGiB + 4 * kMiB + kContextBytes;
  add_search(program.reruns(), "batch_size", {}, plan);
  EXPECT_GE(plan.tried.vary->largest_fitting, 32u);
  EXPECT_EQ(plan.tried.vary->smallest_failing, 0u);
  EXPECT_LE(plan.tried.vary->runs, 8u);
  EXPECT_FALSE(plan.tried.vary->tight);
}

TEST(Vary, TheMarkOfTheLargestIsTightWhereItLeavesLittle) {
  for (const auto& [each, largest, tight] :
       {std::tuple(512 * kMiB, std::uint64_t{13}, true), std::tuple(2 * kGiB, std::uint64_t{3}, false)}) {
    MadeUpProgram program;
    program.batch = in_source;
    program.takes = [each = each](const Attempt&, std::uint64_t batch) { return kGiB + batch * each; };
    Plan plan = plan_for(program, Verdict::kDoesNotFit);
    plan.need.bytes = kGiB + 16 * each + kContextBytes;
    add_search(program.reruns(), "batch_size", {}, plan);
    EXPECT_EQ(plan.tried.vary->largest_fitting, largest);
    EXPECT_EQ(plan.tried.vary->tight, tight) << largest;
  }
}

// A run that is stopped earlier than the program as it is confirms nothing.
TEST(Vary, RunsGoAsFarAsTheProgramAsItIs) {
  for (const auto& [stopped, alike_from, grows, steps] :
       {std::tuple("", 0u, false, 21u), std::tuple("after 20 optimizer steps", 0u, false, 20u),
        std::tuple("after 20 optimizer steps", 3u, false, 4u),  // those that are alike need not all be seen
        std::tuple("after 20 optimizer steps", 3u, true, 20u), std::tuple("", 3u, false, 21u),
        std::tuple("after 20 optimizer steps", 20u, false, 20u)}) {
    MadeUpProgram program;
    program.batch = in_source;
    Plan plan = plan_for(program, Verdict::kDoesNotFit);
    plan.run.steps = 20;
    plan.run.stopped = stopped;
    plan.run.alike_from = alike_from;
    plan.growth.is_there = grows;
    add_search(program.reruns(), "batch_size", {}, plan);
    ASSERT_FALSE(program.attempts.empty());
    for (const Attempt& attempt : program.attempts) EXPECT_EQ(attempt.steps, steps);
  }
}

TEST(Vary, ALengthInTheCommandIsOfferedShorterWhereTokensAreSoLong) {
  struct Row {
    std::vector<std::string> command;
    std::vector<std::uint64_t> token_lengths;
    std::vector<std::string> values;
  };
  for (const Row& row :
       {Row{{"python", "t.py", "--seq-len", "1024"}, {1024}, {"512", "256", "128"}},
        Row{{"python", "t.py", "--block_size=256"}, {255}, {"128", "64", "32"}},  // one less: the targets are shifted
        Row{{"python", "t.py", "model.max_length=64"}, {64, 8}, {"32", "16", "8"}},
        Row{{"python", "t.py", "--max-length", "2048"}, {512}, {}},  // a limit that no batch reaches
        Row{{"python", "t.py", "--seq-len", "1024"}, {}, {}},        // no tokens
        Row{{"python", "t.py", "--seq-len", "16"}, {16}, {}},
        Row{{"python", "t.py", "--batch-size", "1024"}, {1024}, {}}}) {
    std::vector<std::string> values;
    ProcessSummary as_run;
    as_run.token_lengths = row.token_lengths;
    as_run.number_offers = number_offers();
    for (const Offer& offer : lengths_in_command(row.command, as_run)) {
      values.push_back(offer.value);
      EXPECT_EQ(offer.name, "sequence");
      EXPECT_TRUE(offer.command.back().ends_with(offer.value)) << offer.command.back();
    }
    EXPECT_EQ(values, row.values);
  }
}

TEST(Vary, FewerTokensAreOfferedWhereNothingTrains) {
  const std::vector<std::string> command = {"python", "t.py", "--max-new-tokens", "200", "--seq-len", "64"};
  ProcessSummary as_run;
  as_run.token_lengths = {64};
  as_run.number_offers = number_offers();
  const std::vector<Offer> infers = lengths_in_command(command, as_run);
  ASSERT_EQ(infers.size(), 3u);
  EXPECT_EQ(infers.back().value, "25");
  EXPECT_EQ(infers.front().what, "Use --max-new-tokens 100 (now 200): fewer tokens");
  EXPECT_EQ(infers.front().command[3], "100");
  as_run.steps = 2;
  const std::vector<Offer> trains = lengths_in_command(command, as_run);
  ASSERT_FALSE(trains.empty());
  EXPECT_EQ(trains.front().what, "Use --seq-len 32 (now 64): shorter sequences");
}

}  // namespace
}  // namespace faultline
