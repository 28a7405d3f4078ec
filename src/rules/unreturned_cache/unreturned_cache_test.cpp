#include "base/units.h"
#include "facts/facts_test_support.h"
#include "rules/judge.h"

namespace faultline {
namespace {

std::vector<Finding> notes_of(const std::string& lines) {
  const Trace trace = traced(lines);
  std::vector<Finding> notes;
  for (Finding& finding : judge(trace).findings) {
    if (finding.rule == "memory/unreturned-cache") notes.push_back(std::move(finding));
  }
  return notes;
}

// `rounds` small allocations in a segment of their own.
std::string small_rounds(int rounds) {
  std::string lines = "alloc #small 2MiB driver @0x10000000 at run.py:8 main\n";
  for (int i = 0; i < rounds; ++i)
    lines +=
        "alloc #r" + std::to_string(i) + " 512KiB @0x10000000 at run.py:8 main\nfree #r" + std::to_string(i) + "\n";
  return lines;
}

const std::string kBig =
    "alloc #big 1GiB driver @0x100000000 at run.py:3 main\nalloc #x 1GiB @0x100000000 at run.py:3 main\n";

TEST(UnreturnedCacheRule, ASegmentThatNobodyUsesAnyMoreIsNoted) {
  const std::vector<Finding> notes = notes_of(kBig + "free #x\n" + small_rounds(250));
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_EQ(notes[0].severity, Severity::kNote);
  EXPECT_EQ(notes[0].location.line, 3u);
  EXPECT_EQ(notes[0].bytes, 1 * kGiB);
}

TEST(UnreturnedCacheRule, ALiveSegmentIsInUse) { EXPECT_TRUE(notes_of(kBig + small_rounds(250)).empty()); }

TEST(UnreturnedCacheRule, ASegmentUsedLateIsInUse) {
  EXPECT_TRUE(
      notes_of(kBig + "free #x\n" + small_rounds(250) + "alloc #y 1GiB @0x100000000 at run.py:9 main\nfree #y\n")
          .empty());
}

TEST(UnreturnedCacheRule, AReturnedSegmentIsGone) {
  EXPECT_TRUE(notes_of(kBig + "free #x\nfree #big\n" + small_rounds(250)).empty());
}

TEST(UnreturnedCacheRule, AFewLaterAllocationsSayNothing) {
  EXPECT_TRUE(notes_of(kBig + "free #x\n" + small_rounds(150)).empty());
}

TEST(UnreturnedCacheRule, WhatWasThereBeforeTakesNoPartOfTheTime) {
  std::string before = "alloc #big 1GiB driver @0x100000000 preexisting\n";
  for (int i = 0; i < 900; ++i) before += "alloc 512 @" + std::to_string(0x20000000 + i * 512) + " preexisting\n";
  // Used by the first of the recorded allocations: in the earlier half, but in the later half of all events.
  const std::string use = "alloc #x 1GiB @0x100000000 at run.py:3 main\nfree #x\n";
  const std::vector<Finding> notes = notes_of(before + use + small_rounds(250));
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_EQ(notes[0].location.line, 3u);
}

TEST(UnreturnedCacheRule, AUseBeforeTheRecordingHasNoLineAndSaysSo) {
  const std::vector<Finding> notes = notes_of("alloc #big 1GiB driver @0x100000000 preexisting\n" + small_rounds(250));
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_FALSE(notes[0].location.known());
  EXPECT_NE(notes[0].memory.find("does not reach back"), std::string::npos);
}

}  // namespace
}  // namespace faultline
