#include "facts/heap_uses.h"

#include "base/units.h"
#include "facts/facts_test_support.h"

namespace faultline {
namespace {

TEST(HeapUses, WithAFrameworkTheDriversMemoryIsSegmentsOrOutside) {
  const Trace trace = traced(
      "heap driver\nheap torch below=driver\nheap outside kind=driver below=driver\nheap pool kind=stream-ordered-pool "
      "below=driver\nheap host kind=pinned-host\nalloc 1MiB torch\n");
  const HeapUses uses(trace);
  EXPECT_EQ(uses.of(HeapId(0)), HeapUse::kSegments);
  EXPECT_EQ(uses.of(HeapId(1)), HeapUse::kProgram);
  EXPECT_EQ(uses.of(HeapId(2)), HeapUse::kOutside);
  EXPECT_EQ(uses.of(HeapId(3)), HeapUse::kOutside);
  EXPECT_EQ(uses.of(HeapId(4)), HeapUse::kElsewhere);
}

TEST(HeapUses, WithoutOneItIsTheProgramsOwn) {
  const Trace trace = traced(
      "heap driver\nheap pool kind=stream-ordered-pool below=driver\nalloc #a 1MiB driver\nalloc #b 2MiB pool\nmap "
      "4MiB driver @0x1000000\nfree #a\n");
  const Facts facts(trace, {});
  EXPECT_FALSE(facts.uses.has_framework(0));
  EXPECT_EQ(facts.usage.at(0).peak_allocated.allocated, 7 * kMiB);
  EXPECT_EQ(facts.usage.at(0).end.allocated, 6 * kMiB);
  EXPECT_EQ(facts.usage.at(0).end.reserved, 6 * kMiB);
}

TEST(HandledFailures, WhoAsksForLessAndGetsItHasGotOverIt) {
  const std::string asks = "heap driver\nalloc-failed 8GiB driver at run.py:1 main > /x/libfoo.so:0 +0x1\n";
  EXPECT_TRUE(HandledFailures(traced(asks + "alloc 7GiB driver at run.py:1 main > /x/libfoo.so:0 +0x2\n")).contains(0));
  EXPECT_FALSE(HandledFailures(traced(asks + "alloc 1GiB driver at run.py:1 main > /x/libfoo.so:0 +0x2\n")).contains(0))
      << "too little to be the same";
  EXPECT_FALSE(HandledFailures(traced(asks + "alloc 7GiB driver at run.py:1 main > /x/libbar.so:0 +0x2\n")).contains(0))
      << "somebody else";
  EXPECT_FALSE(HandledFailures(traced(asks)).contains(0));
}

TEST(HandledFailures, WhatAFrameworkReportsFailedHasFailed) {
  EXPECT_FALSE(
      HandledFailures(traced("alloc-failed 8GiB at run.py:1 main\nalloc 8GiB at run.py:2 main\n")).contains(0));
}

}  // namespace
}  // namespace faultline
