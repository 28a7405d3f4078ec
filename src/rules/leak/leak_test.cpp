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

}  // namespace
}  // namespace faultline
