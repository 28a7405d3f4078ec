#include "facts/free_space.h"

#include "base/units.h"
#include "facts/facts_test_support.h"

namespace faultline {
namespace {

FreeSpace pictured(const Trace& trace) {
  return picture_free_space(trace, Lifetimes(trace, {}), 0, static_cast<std::uint32_t>(trace.events.size() - 1),
                            {2 * kMiB, 20 * kMiB});
}

TEST(FreeSpace, FreePiecesBesideALiveBlockArePinned) {
  const Trace trace = traced(R"(
alloc #s 20MiB driver @0x10000000
alloc #a 4MiB @0x10000000
alloc #b 2MiB @0x10400000
alloc #c 4MiB @0x10600000
free #a
free #c
)");
  const FreeSpace space = pictured(trace);
  ASSERT_EQ(space.segments.size(), 1u);
  EXPECT_EQ(space.live_bytes, 2 * kMiB);
  EXPECT_EQ(space.pinned_free_bytes, 18 * kMiB);
  EXPECT_EQ(space.returnable_bytes, 0u);
  EXPECT_EQ(space.largest_free_bytes, 14 * kMiB);
  EXPECT_EQ(space.segments[0].live_count, 1u);
}

TEST(FreeSpace, AnEmptySegmentCanGoBack) {
  const Trace trace = traced("alloc #s 20MiB driver @0x10000000\nalloc #a 4MiB @0x10000000\nfree #a\n");
  const FreeSpace space = pictured(trace);
  EXPECT_EQ(space.pinned_free_bytes, 0u);
  EXPECT_EQ(space.returnable_bytes, 20 * kMiB);
  EXPECT_EQ(space.reserved_bytes, 20 * kMiB);
}

TEST(FreeSpace, ABlockThatWaitsForAStreamStillPins) {
  const Trace trace = traced("alloc #s 20MiB driver @0x10000000\nalloc #a 4MiB @0x10000000\nfree #a requested\n");
  const FreeSpace space = pictured(trace);
  ASSERT_EQ(space.live.size(), 1u);
  EXPECT_TRUE(space.live[0].pending);
  EXPECT_EQ(space.pinned_free_bytes, 16 * kMiB);
}

TEST(FreeSpace, AReturnedSegmentIsNotInThePicture) {
  const Trace trace = traced("alloc #s 20MiB driver @0x10000000\nfree #s\nalloc #t 2MiB driver @0x20000000\n");
  EXPECT_EQ(pictured(trace).reserved_bytes, 2 * kMiB);
}

TEST(FreeSpace, NeighbouringMapsAreOneRun) {
  const Trace trace = traced("map driver 20MiB @0x10000000\nmap driver 20MiB @0x11400000\nalloc #a 4MiB @0x10000000\n");
  const FreeSpace space = pictured(trace);
  ASSERT_EQ(space.segments.size(), 1u);
  EXPECT_TRUE(space.segments[0].expandable);
  EXPECT_EQ(space.segments[0].size_bytes, 40 * kMiB);
}

TEST(FreeSpace, OfAnExpandableRunOnlyTheHandlesInUsePin) {
  const Trace trace = traced("map driver 60MiB @0x10000000\nalloc #a 4MiB @0x10000000\n");
  const FreeSpace space = pictured(trace);
  EXPECT_EQ(space.pinned_free_bytes, 16 * kMiB);  // the rest of the first handle of 20 MiB
  EXPECT_EQ(space.returnable_bytes, 40 * kMiB);
}

TEST(FreeSpace, AnUnmapInTheMiddleLeavesTwoRuns) {
  const Trace trace = traced("map driver 60MiB @0x10000000\nunmap driver 20MiB @0x11400000\n");
  const FreeSpace space = pictured(trace);
  ASSERT_EQ(space.segments.size(), 2u);
  EXPECT_EQ(space.segments[0].size_bytes, 20 * kMiB);
  EXPECT_EQ(space.segments[1].address, 0x12800000u);
}

TEST(FreeSpace, ThePictureIsOfItsMoment) {
  const Trace trace = traced("alloc #s 20MiB driver @0x10000000\nalloc #a 4MiB @0x10000000\nfree #a\n");
  EXPECT_EQ(picture_free_space(trace, Lifetimes(trace, {}), 0, 1, {2 * kMiB, 20 * kMiB}).live_bytes, 4 * kMiB);
}

TEST(FreeSpace, RecordedSegmentsAddUp) {
  for (const char* name : {"churn_default", "churn_expandable", "streams_many"}) {
    const Trace trace = recording(name);
    const FreeSpace space = pictured(trace);
    std::uint64_t reserved = 0;
    for (const FinalSegment& segment : trace.final_segments) reserved += segment.size_bytes;
    EXPECT_EQ(space.reserved_bytes, reserved) << name;
    EXPECT_EQ(space.live_bytes + space.pinned_free_bytes + space.returnable_bytes, space.reserved_bytes) << name;
  }
}

}  // namespace
}  // namespace faultline
