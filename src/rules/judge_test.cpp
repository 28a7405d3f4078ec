#include "rules/judge.h"

#include <algorithm>

#include "facts/facts_test_support.h"
#include "rules/rule.h"

namespace faultline {
namespace {

bool not_judged(const Judgement& judgement, const std::string& rule) {
  return std::any_of(judgement.not_judged.begin(), judgement.not_judged.end(), [&](const NotJudged& entry) { return entry.rule == rule && !entry.why.empty(); });
}

TEST(Judge, WhatARuleNeedsAndTheInputLacksIsSaid) {
  const Trace trace = traced("alloc 512\n");  // no stacks, no addresses, no settings
  const Judgement judgement = judge(trace);
  EXPECT_TRUE(not_judged(judgement, "memory/leak"));
  EXPECT_TRUE(not_judged(judgement, "memory/fragmentation"));
  EXPECT_TRUE(not_judged(judgement, "memory/unreturned-cache"));
  EXPECT_TRUE(not_judged(judgement, "config/no-effect"));
  EXPECT_FALSE(not_judged(judgement, "memory/out-of-memory"));
}

TEST(Judge, EveryRuleHasItsOwnName) {
  std::vector<std::string_view> names;
  for (const Rule& rule : all_rules()) names.push_back(rule.name);
  std::sort(names.begin(), names.end());
  EXPECT_EQ(std::adjacent_find(names.begin(), names.end()), names.end());
}

TEST(Judge, ErrorsComeFirstAndTheFailureBeforeItsExplanation) {
  const Trace trace = recording("oom_fragmented");
  const Judgement judgement = judge(trace);
  ASSERT_EQ(judgement.findings.size(), 3u);
  EXPECT_EQ(judgement.findings[0].rule, "memory/out-of-memory");
  EXPECT_EQ(judgement.findings[2].rule, "memory/fragmentation");
}

TEST(Judge, HeldBytesAreWhatTheModelSetAside) {
  const Trace trace = recording("leak_list");  // 4,000,000 bytes asked for, blocks of 4 MiB
  const Judgement judgement = judge(trace);
  EXPECT_EQ(judgement.facts->usage[0].peak_allocated.allocated, 1258291200u);
  ASSERT_EQ(judgement.proofs.size(), 1u);
  EXPECT_EQ(judgement.proofs[0]->exact, 300u);
}

TEST(Judge, AnUntrustedModelConfirmsNothing) {
  Trace trace = recording("churn_tight");
  for (Event& event : trace.events) {
    if (event.kind == EventKind::kAlloc && event.size_bytes > (1 << 20) && trace.heaps[event.heap.index()].kind == HeapKind::kTorchCaching) event.address += 512;
  }
  for (const Finding& finding : judge(trace).findings) {
    for (const Try& change : finding.tries) EXPECT_NE(change.confirmed, std::optional<bool>(true)) << change.what;
  }
}

}  // namespace
}  // namespace faultline
