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

// One segment of a graph's pool, and one of the default pool beside it; a state, with a history or without.
Trace with_pools(std::uint64_t pool_bytes, std::uint64_t pool_used, std::uint64_t other_bytes, bool is_private) {
  Trace trace =
      traced("device 0 capacity=16GiB\nheap driver\nheap torch below=driver\nheap graph kind=torch below=driver" +
             std::string(is_private ? " pool=0.1" : "") + "\n");
  trace.capabilities = kAddresses;
  const auto add = [&](std::uint64_t address, std::uint64_t size, std::uint64_t used, std::uint16_t heap) {
    FinalSegment segment;
    segment.address = address;
    segment.size_bytes = size;
    segment.heap = HeapId(heap);
    segment.first_block = static_cast<std::uint32_t>(trace.final_blocks.size());
    segment.block_count = 2;
    trace.final_segments.push_back(segment);
    trace.final_blocks.push_back({address, used, used, StackId(), FinalBlock::State::kActive});
    trace.final_blocks.push_back({address + used, size - used, 0, StackId(), FinalBlock::State::kFree});
  };
  add(0x100000000, pool_bytes, pool_used, 2);
  add(0x900000000, other_bytes, other_bytes / 2, 1);
  return trace;
}

TEST(UnreturnedCacheRule, WhatLiesFreeInPrivatePoolsIsNotedByItself) {
  struct Row {
    std::uint64_t pool, used, other;
    bool is_private, noted;
  };
  for (const Row& row :
       {Row{1 * kGiB, 256 * kMiB, 1 * kGiB, true, true}, Row{1 * kGiB, 256 * kMiB, 1 * kGiB, false, false},
        Row{1 * kGiB, 1 * kGiB - 32 * kMiB, 1 * kGiB, true, false},
        Row{1 * kGiB, 1 * kGiB - 100 * kMiB, 8 * kGiB, true, false},
        Row{200 * kMiB, 20 * kMiB, 2 * kGiB, true, true}}) {
    std::vector<Finding> notes;
    for (Finding& finding : judge(with_pools(row.pool, row.used, row.other, row.is_private)).findings) {
      if (finding.rule == "memory/unreturned-cache") notes.push_back(std::move(finding));
    }
    ASSERT_EQ(notes.size(), row.noted ? 1u : 0u) << row.pool << " " << row.used;
    if (!row.noted) continue;
    EXPECT_EQ(notes[0].bytes, row.pool - row.used);
    EXPECT_EQ(notes[0].severity, Severity::kNote);
    EXPECT_NE(notes[0].message.find("empty_cache() cannot return it"), std::string::npos);
  }
}

}  // namespace
}  // namespace faultline
