#include "rules/out_of_memory/out_of_memory.h"

#include "base/units.h"
#include "facts/facts_test_support.h"
#include "rules/judge.h"

namespace faultline {
namespace {

Finding failure_of(std::string_view lines) {
  const Trace trace = traced(lines);
  for (const Finding& finding : judge(trace).findings) {
    if (finding.rule == "memory/out-of-memory") return finding;
  }
  ADD_FAILURE() << "no failure was found";
  return {};
}

// One live block of 4 GiB in a segment of its own.
const std::string kFull = "alloc #s 4GiB driver @0x100000000 at run.py:1 main\nalloc #x 4GiB @0x100000000 at run.py:1 main\n";

TEST(OutOfMemoryRule, AFullDeviceIsExhausted) {
  const Finding finding = failure_of("device 0 capacity=5GiB\n" + kFull + "alloc-failed 1GiB device-free=400MiB at run.py:2 main\n");
  EXPECT_EQ(finding.cause, "exhausted");
  EXPECT_EQ(finding.confidence, Confidence::kProved);
  EXPECT_EQ(finding.location.line, 2u);
}

TEST(OutOfMemoryRule, WhatOthersHoldIsOutside) {
  const Finding finding = failure_of("device 0 capacity=24GiB\n" + kFull + "alloc-failed 8GiB device-free=4GiB at run.py:2 main\n");
  EXPECT_EQ(finding.cause, "outside-framework");
  EXPECT_NE(finding.message.find("16.00 GiB of the device were held outside"), std::string::npos) << finding.message;
}

TEST(OutOfMemoryRule, ADeviceWithRoomMeansALimit) {
  const Finding finding = failure_of(kFull + "alloc-failed 1GiB device-free=60GiB at run.py:2 main\n");
  EXPECT_EQ(finding.cause, "own-limit");
  EXPECT_NE(finding.message.find("between 4.00 GiB and 5.00 GiB"), std::string::npos) << finding.message;
}

TEST(OutOfMemoryRule, ALimitWasAtLeastWhatWasHeldBefore) {
  const Finding finding = failure_of("alloc #t 512MiB driver @0x300000000\nfree #t\n" + kFull +
                                     "alloc #u 896MiB driver @0x400000000\nfree #u\nalloc-failed 1GiB device-free=60GiB at run.py:2 main\n");
  EXPECT_EQ(finding.cause, "own-limit");
  EXPECT_NE(finding.message.find("between 4.88 GiB and 5.00 GiB"), std::string::npos) << finding.message;
}

TEST(OutOfMemoryRule, FreePiecesThatWouldMakeItFitTheLimitAreTheCause) {
  const Finding finding = failure_of(R"(
alloc #s 200MiB driver @0x10000000 at run.py:1 main
alloc #a 100MiB @0x10000000 at run.py:1 main
alloc #b 100MiB @0x16400000 at run.py:1 main
alloc #t 120MiB driver @0x20000000 at run.py:1 main
free #t
free #a
alloc-failed 150MiB device-free=60GiB at run.py:2 main
)");
  EXPECT_EQ(finding.cause, "fragmented");
  EXPECT_NE(finding.message.find("at least 320.00 MiB"), std::string::npos) << finding.message;
}

TEST(OutOfMemoryRule, WholeFreeSegmentsAreIdleCache) {
  const Finding finding = failure_of("device 0 capacity=6GiB\n" + kFull + "alloc #t 1GiB driver @0x300000000\nalloc-failed 1GiB device-free=100MiB at run.py:2 main\n");
  EXPECT_EQ(finding.cause, "idle-cache");
}

TEST(OutOfMemoryRule, WithoutTheDevicesFreeBytesNoCauseIsClaimed) {
  const Finding finding = failure_of(kFull + "alloc-failed 1GiB at run.py:2 main\n");
  EXPECT_EQ(finding.cause, "");
  EXPECT_EQ(finding.confidence, Confidence::kHint);
}

TEST(OutOfMemoryRule, MemoryThatWaitsForAStreamIsInUse) {
  const Finding finding = failure_of("device 0 capacity=5GiB\n" + kFull + "free #x requested\nalloc-failed 1GiB device-free=400MiB at run.py:2 main\n");
  EXPECT_EQ(finding.cause, "exhausted");
}

TEST(OutOfMemoryRule, MoreThanTheDeviceHasCannotBeHelped) {
  const Finding finding = failure_of("device 0 capacity=16GiB\n" + kFull + "alloc-failed 17GiB device-free=12GiB at run.py:2 main\n");
  EXPECT_EQ(finding.cause, "exhausted");
  EXPECT_NE(finding.message.find("no setting can help"), std::string::npos);
}

TEST(OutOfMemoryRule, FailuresOfOneLineAreOneFinding) {
  const Trace trace = traced("device 0 capacity=5GiB\n" + kFull +
                             "alloc-failed 2GiB device-free=400MiB at run.py:2 main\nalloc-failed 1GiB device-free=400MiB at run.py:2 main\n"
                             "alloc-failed 3GiB device-free=400MiB at run.py:5 main\n");
  const std::vector<Finding> findings = judge(trace).findings;
  ASSERT_EQ(findings.size(), 2u);
  EXPECT_EQ(findings[0].location.line, 5u);  // the last of all comes first
  EXPECT_EQ(findings[1].count, 2u);
  EXPECT_EQ(findings[1].bytes, 1 * kGiB);
}

}  // namespace
}  // namespace faultline
