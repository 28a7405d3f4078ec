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
    if (finding.rule == rule_name::kLeak && !finding.tries.empty()) return finding.tries.front().what;
  }
  return "no leak was found";
}

// Each of 40 rounds keeps so many results of line 10 and the batch of line `batch`, which the graph keeps with them.
std::string message_of_kept(int results, int batch) {
  std::string lines = "device 0 capacity=80GiB\n";
  for (int round = 1; round <= 40; ++round) {
    const std::string n = std::to_string(round);
    lines += "alloc #x" + n + " 32MiB at train.py:" + std::to_string(batch) + " main\n";
    for (int result = 0; result < results; ++result)
      lines += "alloc #r" + n + "_" + std::to_string(result) + " 33MiB at train.py:10 main\n";
    lines += "step " + n + " Optimizer.step#SGD.step\n";
  }
  const Trace trace = traced(lines);
  for (const Finding& finding : judge(trace).findings) {
    if (finding.rule == rule_name::kLeak) return finding.message;
  }
  return "no leak was found";
}

TEST(LeakRule, TheNumberOfALineIsThatOfTheLine) {
  struct Row {
    int results, batch;
    std::string expected;
  };
  for (const Row& row : {Row{3, 7, "160 tensors, 120 of them made at this line, in 40 step"},
                         Row{1, 8, "80 tensors, 40 of them made at this line, in 40 step"},
                         Row{3, 10, "160 tensors made at this line in 40 step"}}) {
    const std::string message = message_of_kept(row.results, row.batch);
    EXPECT_NE(message.find(row.expected), std::string::npos) << message;
  }
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
    if (finding.rule == rule_name::kLeak) leaks.push_back(std::move(finding));
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

std::string quoted(const std::string& text) {
  std::string all = "\"";
  for (const char c : text) all += c == '"' || c == '\\' ? std::string("\\") + c : std::string(1, c);
  return all + "\"";
}

// Two lines of one function that each keep 8 MiB of every step, and what a dry run saw of who holds what they make.
std::vector<Finding> leaks_held(const std::string& first, const std::string& second) {
  std::string lines = "source dry-run\n";
  if (!first.empty()) lines += "property dry-run.held.00 = " + quoted(first) + "\n";
  if (!second.empty()) lines += "property dry-run.held.01 = " + quoted(second) + "\n";
  lines += "device 0 capacity=14GiB\n";
  for (int step = 1; step <= 20; ++step) {
    const std::string n = std::to_string(step);
    lines += "alloc #s" + n + " 20MiB driver\nalloc #a" + n + " 8MiB at serve.py:7 handle\nalloc #b" + n +
             " 8MiB at serve.py:8 handle\nstep " + n + " Optimizer.step#SGD.step\n";
  }
  std::vector<Finding> leaks;
  for (Finding& finding : judge(traced(lines)).findings) {
    if (finding.rule == rule_name::kLeak) leaks.push_back(std::move(finding));
  }
  return leaks;
}

std::string held_at(int line, const std::string& rest) {
  return R"({"lines": ["serve.py:)" + std::to_string(line) + R"(", "serve.py:20"], "count": 20, "bytes": 167772160, )" +
         rest + "}";
}

// y is kept and its graph keeps x: without the graph y stays. Where backward() has freed the graph y is all there is.
TEST(LeakRule, DetachSavesWhatAGraphKeeps) {
  const std::string kept = R"("holder": "losses, a list", "length": 20, "graph": false, "has_graph": )";
  for (const bool freed : {false, true}) {
    const auto leaks = leaks_held(
        held_at(7, kept + (freed ? "false" : "true") + R"(, "graph_is_freed": true)"),
        freed ? held_at(8, R"("holder": "xs, a list", "length": 20)") : held_at(8, R"("holder": "", "graph": true)"));
    ASSERT_EQ(leaks.size(), freed ? 2u : 1u);
    for (const Finding& leak : leaks) {
      EXPECT_EQ(leak.tries.front().what.find("`.detach()`") != std::string::npos, !freed) << leak.tries.front().what;
      EXPECT_EQ(leak.memory.find("graph and its activations") != std::string::npos, !freed) << leak.memory;
      EXPECT_EQ(leak.memory.find("`.detach()` saves nothing") != std::string::npos, freed && leak.location.line == 7);
      EXPECT_EQ(leak.tries.front().saves_bytes, 160u << 20);  // of 320, where they are one
    }
  }
}

TEST(LeakRule, WhatHoldsItIsNamedAndEachLineCountsItsOwn) {
  const auto leaks = leaks_held(held_at(7, R"("holder": "feats, a list", "length": 20)"),
                                held_at(8, R"("holder": "logits, a list", "length": 20)"));
  ASSERT_EQ(leaks.size(), 2u);
  for (const Finding& leak : leaks) {
    EXPECT_EQ(leak.severity, Severity::kError);
    EXPECT_EQ(leak.number("kept_bytes"), 160ll << 20);
    EXPECT_NE(leak.memory.find(leak.location.line == 7 ? "feats, a list" : "logits, a list"), std::string::npos);
    EXPECT_EQ((leak.memory + leak.tries.front().what).find("autograd"), std::string::npos) << leak.memory;
    EXPECT_EQ(leak.tries.front().what.find("no_grad"), std::string::npos);
    EXPECT_EQ(leak.tries.front().saves_bytes, 160u << 20);
  }
}

TEST(LeakRule, LinesThatAGraphHoldsAreOneLeak) {
  const auto leaks =
      leaks_held(held_at(7, R"("graph": true, "holder": "losses, a list")"), held_at(8, R"("graph": true)"));
  ASSERT_EQ(leaks.size(), 1u);
  EXPECT_NE(
      leaks[0].memory.find(
          "autograd graph: no variable of the program was found to hold them. Kept with its graph: losses, a list"),
      std::string::npos)
      << leaks[0].memory;
  EXPECT_NE(leaks[0].tries.front().what.find("put `.detach()` of it into losses (or"), std::string::npos);
}

TEST(LeakRule, WhereNobodyLookedBothPossibilitiesAreNamed) {
  const auto leaks = leaks_held("", "");
  ASSERT_EQ(leaks.size(), 1u);
  EXPECT_NE(leaks[0].memory.find("to a list, a dict or an attribute"), std::string::npos) << leaks[0].memory;
  EXPECT_NE(leaks[0].memory.find("through its autograd graph"), std::string::npos) << leaks[0].memory;
}

TEST(LeakRule, WhatHasALimitAndRoomUpToItIsANote) {
  struct {
    std::string limit;
    Severity severity;
    std::int64_t limit_mib;
  } const cases[] = {{"100", Severity::kNote, 800},
                     {"1000", Severity::kNote, 8000},
                     {"10000", Severity::kError, 80000},  // more than the GPU has
                     {"0", Severity::kError, 0}};
  for (const auto& one : cases) {
    const auto leaks = leaks_held(held_at(7, R"("holder": "buf, a deque", "length": 20, "limit": )" + one.limit), "");
    ASSERT_EQ(leaks.size(), 2u) << one.limit;
    const Finding& leak = leaks[leaks[0].location.line == 7 ? 0 : 1];
    EXPECT_EQ(leak.severity, one.severity) << one.limit;
    EXPECT_EQ(leak.number("limit_bytes").value_or(0), one.limit_mib << 20) << one.limit;
    EXPECT_EQ(leak.tries.empty(), one.severity == Severity::kNote) << one.limit;
  }
}

TEST(LeakRule, AGraphIsLimitedByWhatItIsKeptWith) {
  struct {
    std::string limit;
    Severity severity;
    std::int64_t limit_mib;
  } const cases[] = {{"40", Severity::kNote, 640},
                     {"20", Severity::kError, 0},  // it is full, and they pile up all the same
                     {"0", Severity::kError, 0}};
  for (const auto& one : cases) {
    const std::string deque = R"("holder": "recent, a deque", "length": 20, "limit": )" + one.limit;
    const auto leaks =
        leaks_held(held_at(7, deque + R"(, "has_graph": true)"), held_at(8, deque + R"(, "graph": true)"));
    ASSERT_EQ(leaks.size(), 1u) << one.limit;
    EXPECT_EQ(leaks[0].severity, one.severity) << one.limit;
    EXPECT_EQ(leaks[0].confidence, one.limit_mib == 0 ? Confidence::kProved : Confidence::kLikely) << one.limit;
    EXPECT_EQ(leaks[0].number("limit_bytes").value_or(0), one.limit_mib << 20) << one.limit;
    ASSERT_FALSE(leaks[0].tries.empty());
    EXPECT_NE(leaks[0].tries.front().what.find("`.detach()`"), std::string::npos);
  }
}

// 12 rounds that keep something of two lines, and what a dry run saw of them.
std::vector<Finding> pairs_held(const std::string& rest) {
  std::string lines = "source dry-run\n";
  for (const int line : {7, 8}) {
    const std::string held =
        R"({"lines": ["serve.py:)" + std::to_string(line) + R"("], "count": 12, "bytes": 100663296, )" + rest + "}";
    lines += "property dry-run.held.0" + std::to_string(line) + " = " + quoted(held) + "\n";
  }
  lines += "device 0 capacity=14GiB\n";
  for (int round = 1; round <= 12; ++round) {
    const std::string n = std::to_string(round);
    lines += "alloc #t" + n + " 4MiB at serve.py:6 handle\nalloc #a" + n + " 8MiB at serve.py:7 handle\nalloc #b" + n +
             " 8MiB at serve.py:8 handle\nfree #t" + n + "\n";
  }
  std::vector<Finding> leaks;
  for (Finding& finding : judge(traced(lines)).findings) {
    if (finding.rule == rule_name::kLeak) leaks.push_back(std::move(finding));
  }
  return leaks;
}

TEST(LeakRule, RoundsThatKeepSeveralValuesAreRoundsWhereNoGraphHoldsThem) {
  for (const Finding& leak : pairs_held(R"("holder": "cache, a dict", "length": 12)")) {
    EXPECT_EQ(leak.severity, Severity::kWarning);
    EXPECT_NE(leak.message.find("12 tensors made at this line in 12 rounds"), std::string::npos) << leak.message;
  }
  const auto of_graph = pairs_held(R"("graph": true, "holder": "y, a tensor")");
  ASSERT_EQ(of_graph.size(), 1u);
  for (const Finding& leak : of_graph) {
    EXPECT_EQ(leak.severity, Severity::kNote);
    EXPECT_NE(leak.message.find("did the same 12 times"), std::string::npos) << leak.message;
    EXPECT_EQ(leak.message.find("Layers"), std::string::npos) << leak.message;
  }
}

TEST(LeakRule, WhatADryRunLeftIsReadWithinBounds) {
  for (const char* text :
       {"{}", "[]", "7", "{\"lines\": 3, \"count\": -1}", "{\"lines\": [\"serve.py:7\"], \"holder\": 4}",
        "{\"lines\": [[]], \"limit\": \"x\"}", "not json"})
    EXPECT_EQ(leaks_held(text, "").size(), 1u) << text;
}

}  // namespace
}  // namespace faultline
