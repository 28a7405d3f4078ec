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
const std::string kFull =
    "alloc #s 4GiB driver @0x100000000 at run.py:1 main\nalloc #x 4GiB @0x100000000 at run.py:1 main\n";

TEST(OutOfMemoryRule, AFullDeviceIsExhausted) {
  const Finding finding =
      failure_of("device 0 capacity=5GiB\n" + kFull + "alloc-failed 1GiB device-free=400MiB at run.py:2 main\n");
  EXPECT_EQ(finding.cause, "exhausted");
  EXPECT_EQ(finding.confidence, Confidence::kProved);
  EXPECT_EQ(finding.location.line, 2u);
}

TEST(OutOfMemoryRule, WhatOthersHoldIsOutside) {
  const Finding finding =
      failure_of("device 0 capacity=24GiB\n" + kFull + "alloc-failed 8GiB device-free=4GiB at run.py:2 main\n");
  EXPECT_EQ(finding.cause, "outside-framework");
  EXPECT_NE(finding.message.find("16.00 GiB of the device was held outside"), std::string::npos) << finding.message;
}

TEST(OutOfMemoryRule, ADeviceWithRoomMeansALimit) {
  const Finding finding = failure_of(kFull + "alloc-failed 1GiB device-free=60GiB at run.py:2 main\n");
  EXPECT_EQ(finding.cause, "own-limit");
  EXPECT_NE(finding.message.find("between 4.00 GiB and 5.00 GiB"), std::string::npos) << finding.message;
}

TEST(OutOfMemoryRule, ALimitWasAtLeastWhatWasHeldBefore) {
  const Finding finding = failure_of(
      "alloc #t 512MiB driver @0x300000000\nfree #t\n" + kFull +
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
  const Finding finding =
      failure_of("device 0 capacity=6GiB\n" + kFull +
                 "alloc #t 1GiB driver @0x300000000\nalloc-failed 1GiB device-free=100MiB at run.py:2 main\n");
  EXPECT_EQ(finding.cause, "idle-cache");
}

TEST(OutOfMemoryRule, WithoutTheDevicesFreeBytesNoCauseIsClaimed) {
  const Finding finding = failure_of(kFull + "alloc-failed 1GiB at run.py:2 main\n");
  EXPECT_EQ(finding.cause, "");
  EXPECT_EQ(finding.confidence, Confidence::kHint);
}

TEST(OutOfMemoryRule, MemoryThatWaitsForAStreamIsInUse) {
  const Finding finding = failure_of("device 0 capacity=5GiB\n" + kFull +
                                     "free #x requested\nalloc-failed 1GiB device-free=400MiB at run.py:2 main\n");
  EXPECT_EQ(finding.cause, "exhausted");
}

TEST(OutOfMemoryRule, MoreThanTheDeviceHasCannotBeHelped) {
  const Finding finding =
      failure_of("device 0 capacity=16GiB\n" + kFull + "alloc-failed 17GiB device-free=12GiB at run.py:2 main\n");
  EXPECT_EQ(finding.cause, "exhausted");
  EXPECT_NE(finding.message.find("no setting can help"), std::string::npos);
}

std::string advice_of(const Finding& finding) {
  std::string all;
  for (const Try& attempt : finding.tries) all += attempt.what + "\n";
  return all;
}

// One allocation of each kind; what is largest tells what would help, with numbers of the recording.
TEST(OutOfMemoryRule, AdviceFollowsFromWhatIsHeld) {
  const std::string to =
      " > /usr/lib/python3/dist-packages/torch/nn/modules/module.py:1355 to > "
      "/usr/lib/python3/dist-packages/torch/nn/modules/module.py:942 _apply";
  const std::string adam =
      " > /usr/lib/python3/dist-packages/torch/optim/adamw.py:100 step > "
      "/usr/lib/python3/dist-packages/torch/optim/adam.py:150 _init_group";
  struct Row {
    const char* what;
    std::uint64_t parameters_gib, optimizer_gib;
    const char* says;
    const char* says_not;
  };
  for (const Row& row :
       {Row{"weights in float32", 4, 0,
            "4.00 GiB are parameters in float32, which a 16-bit type would make 2.00 GiB smaller", "a smaller batch"},
        Row{"larger weights", 6, 0,
            "6.00 GiB are parameters in float32, which a 16-bit type would make 3.00 GiB smaller",
            "torch.utils.checkpoint"},
        Row{"the optimizer's state", 2, 4,
            "6.00 GiB of what is in use are parameters, gradients and the optimizer's state", "a smaller batch"}}) {
    const std::string p = std::to_string(row.parameters_gib) + "GiB", o = std::to_string(row.optimizer_gib) + "GiB";
    std::string lines = "device 0 capacity=8GiB\ntensor w = float32[16,16] op=aten::_to_copy\nalloc #s " + p +
                        " driver @0x100000000 at run.py:1 main\nalloc #w " + p +
                        " @0x100000000 tensor=w at run.py:1 main" + to + "\n";
    if (row.optimizer_gib != 0)
      lines += "alloc #t " + o + " driver @0x900000000 at run.py:2 main\nalloc #o " + o +
               " @0x900000000 at run.py:2 main" + adam + "\n";
    const Finding finding = failure_of(lines + "alloc-failed 3GiB device-free=1GiB at run.py:3 main\n");
    EXPECT_EQ(finding.cause, "exhausted") << row.what;
    EXPECT_NE(advice_of(finding).find(row.says), std::string::npos) << row.what << ": " << advice_of(finding);
    EXPECT_EQ(advice_of(finding).find(row.says_not), std::string::npos) << row.what << ": " << advice_of(finding);
  }
}

// A dry run goes on past the failure on a GPU that grows: who holds and what is advised are of one moment. Its twin ends with the failure.
TEST(OutOfMemoryRule, ADryRunIsToldAtItsFullestMoment) {
  const std::string until =
      "device 0 capacity=4GiB\nalloc #s 3GiB driver @0x100000000 at run.py:1 main\nalloc #w 3GiB @0x100000000 at "
      "run.py:1 main\nalloc-failed 2GiB device-free=1GiB at run.py:2 main\n";
  const std::string after =
      "alloc #t 2GiB driver @0x900000000 at run.py:2 main\nalloc #x 2GiB @0x900000000 at run.py:2 main\nalloc #u 6GiB "
      "driver @0xa00000000 at run.py:3 main\nalloc #y 6GiB @0xa00000000 at run.py:3 main\n";
  const Finding whole = failure_of("source dry-run\n" + until + after), cut = failure_of("source dry-run\n" + until);
  ASSERT_EQ(whole.holders.size(), 3u);
  EXPECT_EQ(whole.holders.front().bytes, 6 * kGiB);
  EXPECT_EQ(whole.held_when, "the fullest moment, when 11.00 GiB is in use");
  ASSERT_EQ(cut.holders.size(), 1u);
  EXPECT_EQ(cut.holders.front().bytes, 3 * kGiB);
  EXPECT_EQ(cut.held_when, "");
}

TEST(OutOfMemoryRule, FailuresOfOneLineAreOneFinding) {
  const Trace trace = traced(
      "device 0 capacity=5GiB\n" + kFull +
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
