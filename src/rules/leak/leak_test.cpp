#include <gtest/gtest.h>

#include "facts/facts_test_support.h"
#include "rules/judge.h"

namespace faultline {
namespace {

// Each round keeps two results of the model's forward, as a kept loss does with its graph.
std::string advice_in_training() {
  const std::string forward =
      " at train.py:9 main > /usr/lib/python3/dist-packages/torch/nn/modules/module.py:1750 _call_impl > "
      "/usr/lib/python3/dist-packages/torch/nn/modules/";
  std::string lines = "device 0 capacity=80GiB\n";
  for (int round = 1; round <= 12; ++round) {
    const std::string n = std::to_string(round);
    lines += "alloc #s" + n + " 32MiB driver\nalloc #a" + n + " 16MiB" + forward + "linear.py:125 forward\nalloc #b" +
             n + " 16MiB" + forward + "activation.py:133 forward\n";
    lines += "alloc #t" + n + " 4MiB at train.py:8 main\nfree #t" + n + "\n";
    lines += "step " + n + " Optimizer.step#SGD.step\n";
  }
  const Trace trace = traced(lines);
  for (const Finding& finding : judge(trace).findings) {
    if (finding.rule == "memory/leak" && !finding.tries.empty()) return finding.tries.front().what;
  }
  return "no leak was found";
}

TEST(LeakRule, ALoopThatTrainsIsNotToldToDoWithoutGradients) {
  // its twin without training is the golden case memory-leak/eval-keeps-graph
  const std::string advice = advice_in_training();
  EXPECT_NE(advice.find("detach()"), std::string::npos) << advice;
  EXPECT_EQ(advice.find("no_grad"), std::string::npos) << advice;
}

// A dry run whose GPU is full in its fourth step, and which goes on, on a larger one, to the twentieth. `keeps`: each step keeps its 4 GiB.
std::vector<Finding> leaks_of_dry_run(bool keeps, bool goes_on) {
  std::string lines = "source dry-run\ndevice 0 capacity=14GiB\n";
  for (int step = 1; step <= (goes_on ? 20 : 4); ++step) {
    const std::string n = std::to_string(step);
    if (step == 4) lines += "alloc-failed 4GiB at serve.py:9 handle\n";
    if (step == 4 && !goes_on) break;
    lines += "alloc #s" + n + " 4GiB driver\nalloc #a" + n + " 4GiB at serve.py:9 handle\n";
    if (!keeps) lines += "free #a" + n + "\nfree #s" + n + "\n";
    lines += "step " + n + " Optimizer.step#SGD.step\n";
  }
  std::vector<Finding> leaks;
  for (Finding& finding : judge(traced(lines)).findings) {
    if (finding.rule == "memory/leak") leaks.push_back(std::move(finding));
  }
  return leaks;
}

TEST(LeakRule, ADryRunThatGoesOnPastItsFailureIsJudgedByAllItsRounds) {
  const std::vector<Finding> leaks = leaks_of_dry_run(true, true);
  ASSERT_EQ(leaks.size(), 1u);
  EXPECT_EQ(leaks[0].number("steps"), 20);
  EXPECT_EQ(leaks[0].number("full_at_step"), 4);
  EXPECT_EQ(leaks[0].number("kept_when_full_bytes"), 12ll << 30);
  EXPECT_NE(
      leaks[0].message.find("runs out in step 4, when 12.00 GiB of it are held; the rounds after that were run on "
                            "a larger GPU"),
      std::string::npos)
      << leaks[0].message;
  EXPECT_TRUE(leaks_of_dry_run(true, false).empty()) << "three steps prove nothing";
  EXPECT_TRUE(leaks_of_dry_run(false, true).empty()) << "nothing is kept";
}

}  // namespace
}  // namespace faultline
