#include "base/units.h"
#include "facts/facts_test_support.h"
#include "rules/judge.h"

namespace faultline {
namespace {

const std::string kEmptyCache = " > /usr/lib/python3/dist-packages/torch/cuda/memory.py:224 empty_cache";
const std::string kCall = "run.py:9 main" + kEmptyCache;

std::vector<Finding> notes_of(const std::string& lines) {
  const Trace trace = traced(lines);
  std::vector<Finding> notes;
  for (Finding& finding : judge(trace).findings) {
    if (finding.rule == "memory/cache-churn") notes.push_back(std::move(finding));
  }
  return notes;
}

// One round: a segment is taken, a tensor lives and dies in it, and `place` gives the segment back.
std::string round(int number, const std::string& size, const std::string& place) {
  const std::string n = std::to_string(number);
  return "alloc #s" + n + " " + size + " driver @0x100000000 at run.py:7 main\nalloc #x" + n + " " + size +
         " @0x100000000 at run.py:7 main\nfree #x" + n + " at run.py:8 main\nfree #s" + n + " driver at " + place +
         "\n";
}

std::string rounds(int count, const std::string& size, const std::string& place) {
  std::string lines;
  for (int i = 0; i < count; ++i) lines += round(i, size, place);
  return lines;
}

TEST(CacheChurnRule, MemoryReturnedAndTakenAgainInEachRoundIsNoted) {
  const std::vector<Finding> notes = notes_of(rounds(5, "1GiB", kCall));
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_EQ(notes[0].severity, Severity::kNote);
  EXPECT_EQ(notes[0].confidence, Confidence::kProved);
  EXPECT_EQ(notes[0].location.line, 9u);
  EXPECT_EQ(notes[0].count, 5u);
  EXPECT_EQ(notes[0].bytes, 1 * kGiB);
  EXPECT_EQ(notes[0].memory.find("other sizes"), std::string::npos);
  ASSERT_EQ(notes[0].evidence.size(), 3u);
  EXPECT_EQ(std::get<std::int64_t>(notes[0].evidence[1].value), static_cast<std::int64_t>(4 * kGiB));
  EXPECT_EQ(std::get<std::int64_t>(notes[0].evidence[2].value), static_cast<std::int64_t>(4 * kGiB));
}

TEST(CacheChurnRule, TwoCallsMayBeTwoPhases) {
  EXPECT_TRUE(notes_of(rounds(2, "1GiB", kCall)).empty());
  EXPECT_EQ(notes_of(rounds(3, "1GiB", kCall)).size(), 1u);
}

TEST(CacheChurnRule, SmallAmountsAreSilent) {
  EXPECT_TRUE(notes_of(rounds(50, "63MiB", kCall)).empty());
  EXPECT_EQ(notes_of(rounds(50, "64MiB", kCall)).size(), 1u);
}

TEST(CacheChurnRule, WhatPyTorchReturnsByItselfIsSilent) {
  EXPECT_TRUE(notes_of(rounds(5, "1GiB", "run.py:7 main")).empty());
}

TEST(CacheChurnRule, AFunctionOfTheUsersWithThatNameIsNotPyTorchs) {
  EXPECT_TRUE(notes_of(rounds(5, "1GiB", "run.py:9 main > cache.py:3 empty_cache")).empty());
}

TEST(CacheChurnRule, SegmentsOfOneCallAreOneCall) {
  std::string lines;
  for (int i = 0; i < 6; ++i) lines += "alloc #s" + std::to_string(i) + " 1GiB driver at run.py:7 main\n";
  for (int i = 0; i < 6; ++i) lines += "free #s" + std::to_string(i) + " driver at " + kCall + "\n";
  EXPECT_TRUE(notes_of(lines + "alloc #more 6GiB driver at run.py:12 main\n").empty());
}

TEST(CacheChurnRule, CallsAtDifferentLinesAreCountedApart) {
  std::string lines;
  for (int i = 0; i < 4; ++i) lines += round(i, "1GiB", "run.py:" + std::to_string(20 + i % 2) + " main" + kEmptyCache);
  EXPECT_TRUE(notes_of(lines).empty());
}

TEST(CacheChurnRule, MoreTakenThanReturnedDoesNotMakeUpForRoundsWithoutAny) {
  std::string lines = round(0, "1GiB", kCall) + "alloc #big 40GiB driver at run.py:12 main\n";
  for (int i = 1; i < 5; ++i) lines += "alloc #k" + std::to_string(i) + " 1GiB driver at run.py:3 main\n";
  for (int i = 1; i < 5; ++i)
    lines += "alloc #y" + std::to_string(i) + " 1MiB at run.py:4 main\nfree #k" + std::to_string(i) + " driver at " +
             kCall + "\n";
  EXPECT_TRUE(notes_of(lines).empty());  // five calls, of which the first alone was followed by new segments
}

TEST(CacheChurnRule, ExpandableMemoryIsMappedAndUnmapped) {
  std::string lines;
  for (int i = 0; i < 4; ++i)
    lines +=
        "alloc #t" + std::to_string(i) +
        " 1MiB at run.py:2 main\nmap driver 1GiB @0x100000000 at run.py:7 main\nunmap driver 1GiB @0x100000000 at " +
        kCall + "\n";
  const std::vector<Finding> notes = notes_of(lines);
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_EQ(notes[0].count, 4u);
  EXPECT_EQ(notes[0].memory.find("other sizes"), std::string::npos);
}

TEST(CacheChurnRule, ChangingSizesMayBeACallAgainstFragmentation) {
  std::string lines;
  for (int i = 0; i < 5; ++i) lines += round(i, std::to_string(900 + 20 * i) + "MiB", kCall);
  const std::vector<Finding> notes = notes_of(lines);
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_EQ(notes[0].confidence, Confidence::kLikely);
  EXPECT_NE(notes[0].memory.find("other sizes"), std::string::npos);
}

TEST(CacheChurnRule, ACallInsideALibraryNamesItsPlace) {
  const std::vector<Finding> notes = notes_of(rounds(
      4, "1GiB", "run.py:9 main > /usr/lib/python3/dist-packages/lib/trainer.py:40 training_step" + kEmptyCache));
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_EQ(notes[0].location.line, 9u);
  EXPECT_NE(notes[0].memory.find("in training_step, trainer.py:40"), std::string::npos);
}

TEST(CacheChurnRule, WithoutStacksItIsNotJudged) {
  const Trace trace = traced("alloc #a 1GiB driver\nfree #a driver\n");
  const Judgement judgement = judge(trace);
  EXPECT_TRUE(std::any_of(judgement.not_judged.begin(), judgement.not_judged.end(),
                          [](const NotJudged& entry) { return entry.rule == "memory/cache-churn"; }));
}

}  // namespace
}  // namespace faultline
