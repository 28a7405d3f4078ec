#include "plan/jointly.h"

#include <gtest/gtest.h>

#include "plan/plan_test_support.h"

namespace faultline {
namespace {

std::uint64_t number_in(const Attempt& attempt, const std::string& change, std::size_t word, std::uint64_t otherwise) {
  if (const auto found = attempt.changes.find(change); found != attempt.changes.end())
    return std::stoull(found->second.substr(found->second.find('=') + 1));
  return word < attempt.command.size() ? std::stoull(attempt.command[word]) : otherwise;
}

// So many KiB for each token of each sequence, beside 1 GiB.
MadeUpProgram generation(std::uint64_t kib, std::size_t batch_word = 99, std::size_t length_word = 99) {
  MadeUpProgram program;
  program.takes = [=](const Attempt& attempt, std::uint64_t) {
    return kGiB +
           number_in(attempt, "batch", batch_word, 32) * number_in(attempt, "sequence", length_word, 4096) * kib * kKiB;
  };
  return program;
}

ProcessSummary inference() {
  ProcessSummary summary;
  summary.number_offers = number_offers();
  summary.numbers = {{"batch_size", 32, {}}, {"max_new_tokens", 4096, {}}};
  return summary;
}

Plan plan_of(const MadeUpProgram& program, std::vector<std::string> command = {"python", "serve.py"}) {
  Plan plan;
  plan.verdict = Verdict::kDoesNotFit;
  plan.command = std::move(command);
  plan.gpu = plan_gpu(gpu_of_8_gib());
  plan.need.bytes = kContextBytes + program.takes({}, 0);
  return plan;
}

TEST(Jointly, EachBatchHasTheLargestLengthThatWasSeenToFit) {
  MadeUpProgram program = generation(128);  // 6.51 GiB are for tokens: 53,330 of them
  Plan plan = plan_of(program);
  add_jointly(program.reruns(), inference(), plan);
  ASSERT_TRUE(plan.tried.jointly.has_value());
  EXPECT_EQ(plan.tried.jointly->batch_name, "batch_size");
  EXPECT_EQ(plan.tried.jointly->length_name, "max_new_tokens");
  ASSERT_EQ(plan.tried.jointly->fitting.size(), 4u);
  for (const PlanPair& pair : plan.tried.jointly->fitting) {
    EXPECT_LE(pair.batch * pair.length, 53'330u);
    EXPECT_GE(pair.batch * pair.length, 53'330u * 3 / 4) << pair.batch;  // and little more would
    EXPECT_LE(pair.needed_bytes, 8 * kGiB);
    EXPECT_NE(pair.needed_bytes, 0u);
  }
  EXPECT_EQ(plan.tried.jointly->fitting.front().batch, 32u);
  EXPECT_LE(program.attempts.size(), 12u);
}

TEST(Jointly, NumbersOfTheCommandAreChangedThere) {
  MadeUpProgram program = generation(128, 3, 5);
  Plan plan = plan_of(program, {"python", "serve.py", "--batch-size", "32", "--max-new-tokens", "4096"});
  add_jointly(program.reruns(), {}, plan);
  ASSERT_TRUE(plan.tried.jointly.has_value());
  EXPECT_EQ(plan.tried.jointly->length_name, "--max-new-tokens");
  for (const Attempt& attempt : program.attempts) EXPECT_TRUE(attempt.changes.empty());
}

TEST(Jointly, NothingIsSaidOfAProgramThatTrainsOrHasNotBoth) {
  MadeUpProgram program = generation(128);
  ProcessSummary trains = inference(), one = inference();
  trains.uses = {"backward"};
  one.numbers.pop_back();
  for (const ProcessSummary& summary : {trains, one}) {
    Plan plan = plan_of(program);
    add_jointly(program.reruns(), summary, plan);
    EXPECT_FALSE(plan.tried.jointly.has_value());
  }
  EXPECT_TRUE(program.attempts.empty());
}

TEST(Jointly, ALengthThatDecidesNothingIsLeftAfterOneRun) {
  MadeUpProgram program;
  program.takes = [](const Attempt&, std::uint64_t) { return 9 * kGiB; };
  Plan plan = plan_of(program);
  ProcessSummary summary = inference();
  Reruns reruns = program.reruns();
  add_jointly(reruns, summary, plan);
  EXPECT_FALSE(plan.tried.jointly.has_value());
  EXPECT_LE(program.attempts.size(), 6u);
}

}  // namespace
}  // namespace faultline
