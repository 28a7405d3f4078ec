// What PyTorch's history alone proves must hold of the trace that it is joined into.
#include <gtest/gtest.h>

#include "facts/facts_test_support.h"
#include "models/replay.h"
#include "rules/judge.h"
#include "sources/run_folder/join.h"
#include "sources/run_folder/join_test_support.h"

namespace faultline {
namespace {

ReplayResult proof_of(const Trace& trace) {
  ReplayOptions options;
  options.proof = true;
  Result<ReplayResult> proof = replay(trace, options);
  EXPECT_TRUE(proof.ok()) << proof.error().message();
  return proof.ok() ? std::move(*proof) : ReplayResult{};
}

class JointTrace : public testing::TestWithParam<const char*> {};

TEST_P(JointTrace, TheProofIsAsGoodAsOnTheHistoryAlone) {
  const Trace alone = recording(GetParam());
  const Trace joint = join_traces(recording(GetParam()), CaptureOf(alone).take());
  const ReplayResult before = proof_of(alone), after = proof_of(joint);
  EXPECT_NE(before.placements, 0u);
  EXPECT_EQ(after.placements, before.placements);
  EXPECT_EQ(after.exact, before.exact);
  EXPECT_EQ(after.segment_events, before.segment_events);
  EXPECT_EQ(after.segment_events_exact, before.segment_events_exact);
  EXPECT_EQ(after.end_blocks_exact, before.end_blocks_exact);
}

TEST_P(JointTrace, PeaksAndFindingsAreThoseOfTheHistory) {
  const Trace alone = recording(GetParam());
  const Trace joint = join_traces(recording(GetParam()), CaptureOf(alone).take());
  const Judgement before = judge(alone), after = judge(joint);
  EXPECT_EQ(after.facts->usage[0].peak_allocated.allocated, before.facts->usage[0].peak_allocated.allocated);
  EXPECT_EQ(after.facts->usage[0].peak_reserved.reserved, before.facts->usage[0].peak_reserved.reserved);
  std::vector<std::string> rules_before, rules_after;
  for (const Finding& finding : before.findings) rules_before.push_back(finding.rule + finding.fingerprint);
  for (const Finding& finding : after.findings) rules_after.push_back(finding.rule + finding.fingerprint);
  EXPECT_EQ(rules_after, rules_before);
}

INSTANTIATE_TEST_SUITE_P(Fixtures, JointTrace,
                         testing::Values("gpt_oom", "ring_default", "ring_expandable", "leak_list",
                                         "oom_fragmented_expandable"));

}  // namespace
}  // namespace faultline
