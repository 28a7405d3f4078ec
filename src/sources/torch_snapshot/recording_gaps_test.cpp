// Recordings that lack something: their beginning, one half of every free, a single free.
#include "sources/torch_snapshot/snapshot_test_support.h"

namespace faultline::snapshot_test {
namespace {

std::vector<FreePhase> free_phases(const Trace& trace) {
  std::vector<FreePhase> phases;
  for (const Event& event : of_kind(trace, EventKind::kFree)) phases.push_back(event.phase());
  return phases;
}

TEST(RecordingWithoutItsBeginning, HasTheBlocksThatAreFreedLater) {
  const Trace trace = trace_of(snapshot({entry("free_requested", 0x1000, 512, 9),
                                         entry("free_completed", 0x1000, 512, 9), entry("alloc", 0x1000, 100, 10)}));
  ASSERT_EQ(trace.events.size(), 4u);
  EXPECT_EQ(trace.preexisting_count, 1u);
  EXPECT_TRUE(trace.events[0].has(kPreexisting));
  EXPECT_EQ(trace.events[0].size_bytes, 512u);
  EXPECT_EQ(trace.events[0].time_ns, 9'000);
  EXPECT_EQ(trace.events[1].allocation, trace.events[0].allocation);
  EXPECT_FALSE(trace.can(kCompleteFromStart));
  EXPECT_EQ(live_at_end(trace).size(), 1u);
}

TEST(RecordingWithoutItsBeginning, MayStartBetweenTheTwoHalvesOfAFree) {
  const Trace trace = trace_of(snapshot({entry("free_completed", 0x1000, 512), entry("alloc", 0x2000, 1),
                                         entry("free_requested", 0x2000, 1), entry("free_completed", 0x2000, 1)}));
  EXPECT_EQ(free_phases(trace), (std::vector<FreePhase>{FreePhase::kRequested, FreePhase::kCompleted,
                                                        FreePhase::kRequested, FreePhase::kCompleted}));
  EXPECT_EQ(trace.preexisting_count, 2u);
  EXPECT_TRUE(live_at_end(trace).empty());
}

TEST(RecordingWithoutItsBeginning, HasTheBlocksOfTheEndStateThatNoEntryNames) {
  const Trace trace = trace_of(snapshot({entry("alloc", 0x100400, 256)},
                                        {segment(0x100000, 4096,
                                                 {block(0x100000, 512), block(0x100200, 512, "active_pending_free"),
                                                  block(0x100400, 256), block(0x100500, 2816, "inactive")})}));
  EXPECT_EQ(trace.preexisting_count, 4u) << "the segment, two blocks, and the request to free one of them";
  EXPECT_EQ(live_at_end(trace), live_in_end_state(trace));
  EXPECT_TRUE(trace.lost.empty());
}

TEST(RecordingWithoutItsBeginning, HasTheSegmentsThatAreFreedLater) {
  const Trace trace = trace_of(snapshot({entry("segment_free", 0x100000, 4096), entry("segment_alloc", 0x100000, 8192)},
                                        {segment(0x100000, 8192, Object::array())}));
  ASSERT_EQ(trace.events.size(), 3u);
  EXPECT_TRUE(trace.events[0].has(kPreexisting));
  EXPECT_EQ(trace.events[0].size_bytes, 4096u);
  EXPECT_EQ(trace.events[1].allocation, trace.events[0].allocation);
}

TEST(RecordingWithoutItsBeginning, HasTheMappingsThatTheEndImplies) {
  Object expandable = segment(0x100000, 0x3000, Object::array());
  expandable["is_expandable"] = true;
  const Trace trace = trace_of(
      snapshot({entry("segment_unmap", 0x104000, 0x1000), entry("segment_map", 0x102000, 0x1000)}, {expandable}));
  const auto maps = of_kind(trace, EventKind::kMap);
  ASSERT_EQ(maps.size(), 3u);
  EXPECT_EQ(maps[0].address, 0x100000u);
  EXPECT_EQ(maps[0].size_bytes, 0x2000u);
  EXPECT_EQ(maps[1].address, 0x104000u);
  EXPECT_TRUE(maps[0].has(kPreexisting) && maps[1].has(kPreexisting) && !maps[2].has(kPreexisting));
}

TEST(RecordingWithoutCompletedFrees, TakesTheRequestForBothHalves) {
  const Trace trace = trace_of(
      snapshot({entry("alloc", 0x1000, 512), entry("free_requested", 0x1000, 512), entry("alloc", 0x1000, 256),
                entry("free_requested", 0x1000, 256), entry("free_requested", 0x9000, 64), entry("alloc", 0x1000, 128)},
               {segment(0x1000, 512, {block(0x1000, 128), block(0x1080, 384, "inactive")})}));
  EXPECT_EQ(free_phases(trace), std::vector<FreePhase>(3, FreePhase::kBoth));
  EXPECT_EQ(counter(trace, "recordings without completed frees"), 1u);
  EXPECT_EQ(trace.lost.size(), 1u) << "nothing else is odd about it";
  EXPECT_EQ(live_at_end(trace), live_in_end_state(trace));
}

TEST(RecordingWithoutRequestedFrees, TakesTheCompletionForBothHalves) {
  const Trace trace = trace_of(snapshot({entry("alloc", 0x1000, 512), entry("free_completed", 0x1000, 512),
                                         entry("alloc", 0x1000, 256), entry("free_completed", 0x9000, 64)},
                                        {segment(0x1000, 512, {block(0x1000, 256), block(0x1100, 256, "inactive")})}));
  EXPECT_EQ(free_phases(trace), std::vector<FreePhase>(2, FreePhase::kBoth));
  EXPECT_EQ(live_at_end(trace), live_in_end_state(trace));
  EXPECT_TRUE(trace.lost.empty());
}

TEST(RecordingWhoseOnlyFreeIsStillPending, KeepsItPending) {
  const Trace trace = trace_of(snapshot({entry("alloc", 0x1000, 512), entry("free_requested", 0x1000, 512)},
                                        {segment(0x1000, 512, {block(0x1000, 512, "active_pending_free")})}));
  EXPECT_EQ(free_phases(trace), std::vector<FreePhase>{FreePhase::kRequested});
  EXPECT_EQ(live_at_end(trace), live_in_end_state(trace));
  EXPECT_TRUE(trace.lost.empty());
}

TEST(RecordingWithAMissingFree, GetsItBeforeTheNextAllocationThere) {
  Object late = with(entry("alloc", 0x1000, 256, 7), "stream", 5);
  const Trace trace = trace_of(snapshot({entry("alloc", 0x1000, 512, 5), entry("alloc", 0x2000, 64, 6), late}));
  ASSERT_EQ(trace.events.size(), 4u);
  const Event& added = trace.events[2];
  EXPECT_EQ(added.kind, EventKind::kFree);
  EXPECT_EQ(added.phase(), FreePhase::kBoth);
  EXPECT_EQ(added.allocation, trace.events[0].allocation);
  EXPECT_EQ(added.size_bytes, 512u) << "the size of what is freed, not of what comes after";
  EXPECT_EQ(added.stream, trace.events[0].stream);
  EXPECT_EQ(counter(trace, "frees missing from the recording"), 1u);
  EXPECT_EQ(live_at_end(trace).size(), 2u);
}

TEST(RecordingWithAMissingFree, CompletesAPendingOne) {
  const Trace trace =
      trace_of(snapshot({entry("alloc", 0x1000, 512), entry("free_requested", 0x1000, 512), entry("alloc", 0x1000, 256),
                         entry("free_requested", 0x1000, 256), entry("free_completed", 0x1000, 256)}));
  EXPECT_EQ(free_phases(trace), (std::vector<FreePhase>{FreePhase::kRequested, FreePhase::kCompleted,
                                                        FreePhase::kRequested, FreePhase::kCompleted}));
  EXPECT_TRUE(live_at_end(trace).empty());
}

TEST(RecordingWithAMissingFree, FreesASegmentOfItsOwnSize) {
  const Trace trace =
      trace_of(snapshot({entry("segment_alloc", 0x100000, 4096), entry("segment_alloc", 0x100000, 8192)}));
  ASSERT_EQ(trace.events.size(), 3u);
  EXPECT_EQ(trace.events[1].kind, EventKind::kFree);
  EXPECT_EQ(trace.events[1].size_bytes, 4096u);
  EXPECT_EQ(counter(trace, "segments taken twice at one address"), 1u);
}

TEST(RecordingWithASecondFree, CountsItAndNamesNoAllocation) {
  const Trace trace = trace_of(
      snapshot({entry("alloc", 0x1000, 512), entry("free_requested", 0x1000, 512), entry("free_requested", 0x1000, 512),
                entry("free_completed", 0x1000, 512), entry("free_completed", 0x1000, 512)}));
  EXPECT_EQ(counter(trace, "frees of memory that was not allocated"), 2u);
  EXPECT_EQ(trace.events[2].allocation.value, 0u);
  EXPECT_EQ(trace.events[4].allocation.value, 0u);
}

TEST(RecordingThatContradictsItself, CountsBlocksPlacedOverOthers) {
  const auto over = [](Object entries) -> std::uint64_t {
    const Trace trace = trace_of(snapshot(std::move(entries)));
    const auto found = trace.lost.find("blocks placed over others in use");
    return found == trace.lost.end() ? 0 : found->second;
  };
  EXPECT_EQ(over({entry("alloc", 0x1000, 4096), entry("alloc", 0x1200, 512)}), 1u);   // inside
  EXPECT_EQ(over({entry("alloc", 0x1200, 512), entry("alloc", 0x1000, 4096)}), 1u);   // around
  EXPECT_EQ(over({entry("alloc", 0x1000, 4096), entry("alloc", 0x1e00, 4096)}), 1u);  // across its end
  EXPECT_EQ(over({entry("alloc", 0x1000, 4096), entry("alloc", 0x2000, 4096)}), 0u);  // behind
  EXPECT_EQ(over({entry("alloc", 0x1000, 4096), entry("free_requested", 0x1000, 4096),
                  entry("free_completed", 0x1000, 4096), entry("alloc", 0x1200, 512)}),
            0u);
  EXPECT_EQ(over({entry("alloc", 0x1000, 4096), entry("free_requested", 0x1000, 4096), entry("alloc", 0x1200, 512),
                  entry("free_completed", 0x1000, 4096)}),
            1u);  // a stream may still use it
}

TEST(RecordingThatDisagreesWithItsEndState, SaysOnHowManyBlocks) {
  const Trace trace = trace_of(snapshot({entry("alloc", 0x1000, 512), entry("alloc", 0x2000, 512),
                                         entry("free_requested", 0x2000, 512), entry("free_completed", 0x2000, 512)},
                                        {segment(0x1000, 8192, {block(0x2000, 512)})}));
  EXPECT_EQ(counter(trace, "blocks on which events and end state disagree"), 2u);
}

}  // namespace
}  // namespace faultline::snapshot_test
