#include "view/scene.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "facts/facts_test_support.h"
#include "view/columns.h"
#include "view/groupings.h"
#include "view/held_stacks.h"
#include "view/kept.h"
#include "view/thin.h"

namespace faultline::view {
namespace {

// What the program held right after an event, counted from lifetimes alone.
std::uint64_t held_at(const Facts& facts, std::uint16_t device, std::uint32_t event) {
  std::uint64_t bytes = 0;
  facts.lifetimes.for_each([&](AllocationId id, const Lifetime& life, const Event& birth) {
    if (birth.kind == EventKind::kAlloc && birth.device == device && facts.uses.is_program(birth.heap) &&
        life.alive_at(event))
      bytes += facts.lifetimes.held_bytes(id);
  });
  return bytes;
}

std::uint64_t row_sum(const std::vector<std::uint64_t>& bytes, std::size_t column, std::size_t groups) {
  const auto row = bytes.begin() + static_cast<std::ptrdiff_t>(column * groups);
  return std::accumulate(row, row + static_cast<std::ptrdiff_t>(groups), std::uint64_t{0});
}

class Recordings : public testing::TestWithParam<const char*> {};

TEST_P(Recordings, EveryGroupingOfEveryColumnAddsUpToTheByte) {
  const Trace trace = recording(GetParam());
  const Judgement judgement = judge(trace);
  const Facts& facts = *judgement.facts;
  for (std::size_t slot = 0; slot < trace.devices.size(); ++slot) {
    const DeviceUsage& usage = facts.usage[slot];
    for (const std::size_t most : {std::size_t{7}, std::size_t{100}, kMostColumns}) {
      const Columns columns = measure_columns(facts, usage.device, most);
      ASSERT_LE(columns.count(), most);
      std::uint64_t peak = 0, reserved = 0;
      for (const Grouping& grouping : make_groupings(facts, slot)) {
        SCOPED_TRACE(grouping.by);
        ASSERT_LE(grouping.groups.size(), kMostGroups);
        const std::vector<std::uint64_t> bytes = measure_groups(facts, usage.device, columns, grouping);
        ASSERT_EQ(bytes.size(), columns.count() * grouping.groups.size());
        for (std::size_t at = 0; at < columns.count(); ++at) {
          const std::uint64_t sum = row_sum(bytes, at, grouping.groups.size());
          ASSERT_GE(columns.peak[at], columns.first + at * columns.stretch);
          ASSERT_LT(columns.peak[at], columns.first + (at + 1) * columns.stretch);
          ASSERT_LE(columns.low[at], sum);
          peak = std::max(peak, sum);
          reserved = std::max(reserved, columns.reserved[at]);
          if (at % (columns.count() / 20 + 1) == 0) {
            ASSERT_EQ(sum, held_at(facts, usage.device, columns.peak[at])) << "column " << at;
          }
        }
      }
      EXPECT_EQ(peak, usage.peak_allocated.allocated);
      EXPECT_EQ(reserved, usage.peak_reserved.reserved);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(View, Recordings,
                         testing::Values("gpt", "gpt_oom", "gpt_expandable", "frag", "streams", "threads", "ring_train",
                                         "mem_pool", "state_only", "no_context", "oom_fragmented_expandable"),
                         [](const auto& test) { return std::string(test.param); });

TEST(Scene, AColumnThatHoldsAShortPeakShowsIt) {
  const Trace trace = traced(
      "device 0\nheap driver\nheap torch below=driver\n"
      "alloc #a 1MiB torch @0x1000000 at a.py:1 f\nalloc #b 64MiB torch @0x2000000 at a.py:2 f\nfree #b\n"
      "alloc #c 2MiB torch @0x8000000 at a.py:3 f\nfree #a\nfree #c\n");
  const Judgement judgement = judge(trace);
  const Columns columns = measure_columns(*judgement.facts, 0, 1);
  ASSERT_EQ(columns.count(), 1u);
  EXPECT_EQ(trace.events[columns.peak[0]].size_bytes, 64u << 20);
  const std::vector<Grouping> groupings = make_groupings(*judgement.facts, 0);
  const auto line =
      std::find_if(groupings.begin(), groupings.end(), [](const Grouping& one) { return one.by == "line"; });
  ASSERT_NE(line, groupings.end());
  const std::vector<std::uint64_t> bytes = measure_groups(*judgement.facts, 0, columns, *line);
  EXPECT_EQ(line->groups.front(), "a.py:2");
  EXPECT_EQ(bytes.front(), 64u << 20);
  EXPECT_EQ(std::accumulate(bytes.begin(), bytes.end(), std::uint64_t{0}), 65u << 20);
}

TEST(Scene, WhereNoLineIsKnownTheOperationStandsForIt) {
  const Trace trace = traced(
      "device 0\nheap driver\nheap torch below=driver\nstack mm = MatMul\n"
      "alloc 1MiB torch @0x1000000 stack=mm\nalloc 2MiB torch @0x2000000 at a.py:2 f\nalloc 4MiB torch @0x4000000\n");
  const Judgement judgement = judge(trace);
  const std::vector<Grouping> groupings = make_groupings(*judgement.facts, 0);
  ASSERT_EQ(groupings.size(), 2u);
  EXPECT_EQ(groupings[1].groups.size(), 3u);
  EXPECT_EQ(groupings[1].groups[0], "a.py:2");
  EXPECT_EQ(groupings[1].groups[2], "what has no line");
  EXPECT_EQ(groupings[1].of[3], 2);
}

// What is not kept one by one is told by stack: with what is kept, it is the category's bytes at those columns, to the byte.
TEST(Scene, KeptAllocationsAndTheRestByStackAreAllThereIs) {
  const Trace trace = recording("gpt");
  const Judgement judgement = judge(trace);
  const Facts& facts = *judgement.facts;
  const std::size_t groups = kCategoryCount;
  for (const auto& [most_allocations, most_moments] : {std::pair(600u, 2000u), std::pair(520u, 50u)}) {
    Scene scene;
    scene.columns = measure_columns(facts, 0, 700);
    scene.groupings = make_groupings(facts, 0);
    scene.columns.by_group.push_back(measure_groups(facts, 0, scene.columns, scene.groupings.front()));
    SceneTables tables(facts, scene);
    add_allocations(facts, 0, most_allocations, tables, scene);
    ASSERT_LT(scene.allocations.size(), scene.allocation_count);
    add_rest_of_stacks(facts, 0, most_moments, tables, scene);
    const RestOfStacks& rest = scene.rest;
    ASSERT_FALSE(rest.stacks.empty());
    ASSERT_LE(rest.columns.size(), most_moments);
    ASSERT_EQ(rest.bytes.size(), rest.columns.size() * rest.stacks.size());
    std::uint64_t in_all = 0;
    for (std::size_t at = 0; at < rest.columns.size(); ++at) {
      const std::uint32_t column = rest.columns[at], moment = scene.columns.peak[column];
      std::vector<std::uint64_t> held(groups);
      for (const KeptAllocation& kept : scene.allocations) {
        if (kept.born <= moment && moment < kept.released)
          held[scene.groupings.front().of[kept.id.index()]] += kept.bytes;
      }
      for (std::size_t stack = 0; stack < rest.stacks.size(); ++stack) {
        held[rest.stacks[stack].category] += rest.bytes[at * rest.stacks.size() + stack];
        in_all += rest.bytes[at * rest.stacks.size() + stack];
      }
      for (std::size_t group = 0; group < groups; ++group)
        ASSERT_EQ(held[group], scene.columns.by_group.front()[column * groups + group]) << column << " " << group;
    }
    EXPECT_NE(in_all, 0u);
    EXPECT_TRUE(std::any_of(rest.stacks.begin(), rest.stacks.end(),
                            [](const RestOfStacks::Stack& stack) { return stack.node != 0; }));
  }
}

TEST(Scene, TheLargestStacksOfThePeakAreToldInWords) {
  const Trace trace = traced(
      "device 0\nheap driver\nheap torch below=driver\n"
      "stack a = train.py:3 <module> > /usr/lib/python3/dist-packages/torch/nn/modules/module.py:1 _call_impl > "
      "model.py:7 forward > /usr/lib/python3/dist-packages/torch/nn/functional.py:9 linear > ??:0 at::empty\n"
      "stack b = train.py:3 <module> > /usr/lib/python3/dist-packages/torch/nn/modules/module.py:2 _call_impl > "
      "model.py:7 forward > /usr/lib/python3/dist-packages/torch/nn/functional.py:9 linear\n"
      "alloc 8MiB torch @0x1000000 stack=a\nalloc 4MiB torch @0x2000000 stack=b\n"
      "alloc 2MiB torch @0x4000000 at a.py:1 f\n"
      "alloc 1MiB torch @0x8000000\n");
  const Judgement judgement = judge(trace);
  const Scene scene = make_scene("", judgement, 0);
  ASSERT_EQ(scene.largest.size(), 3u);
  EXPECT_EQ(scene.largest[0].path, "train.py:3 <module> › model.py:7 forward › functional.py:9 linear");
  EXPECT_EQ(scene.largest[0].bytes, 12u << 20);
  EXPECT_EQ(scene.largest[0].count, 2u);
  EXPECT_EQ(scene.largest[1].path, "a.py:1 f");
  EXPECT_EQ(scene.largest[2].path, "no call stack");
  std::uint64_t all = 0;
  for (const HeldStack& stack : scene.largest) all += stack.bytes;
  EXPECT_EQ(all, scene.peak_bytes);
}

TEST(Scene, OfManyAllocationsTheLargestOfEveryStretchAreKept) {
  const Trace trace = recording("gpt");
  const Judgement judgement = judge(trace);
  const Facts& facts = *judgement.facts;
  std::uint64_t all = 0;
  const std::vector<AllocationId> every = choose_allocations(facts, 0, 1u << 20, all);
  EXPECT_EQ(every.size(), all);
  std::uint64_t still_all = 0;
  const std::vector<AllocationId> some = choose_allocations(facts, 0, 1200, still_all);
  EXPECT_EQ(still_all, all);
  EXPECT_LE(some.size(), 1200u);
  EXPECT_GT(some.size(), 600u);
  EXPECT_EQ(std::set<AllocationId>(some.begin(), some.end()).size(), some.size());
  // Each is no smaller than any that is left out and was there at least as long.
  const auto held = [&](AllocationId id) {
    const Lifetime& life = facts.lifetimes.of(id);
    return static_cast<double>(facts.lifetimes.held_bytes(id)) *
           static_cast<double>(std::min<std::size_t>(life.released, trace.events.size()) - life.born);
  };
  const auto most_held =
      *std::max_element(every.begin(), every.end(), [&](auto a, auto b) { return held(a) < held(b); });
  EXPECT_NE(std::find(some.begin(), some.end(), most_held), some.end());
  EXPECT_TRUE(std::is_sorted(some.begin(), some.end(),
                             [&](auto a, auto b) { return facts.lifetimes.of(a).born < facts.lifetimes.of(b).born; }));
}

TEST(Scene, AThinnedSceneStillAddsUp) {
  const Trace trace = recording("gpt");
  const Judgement judgement = judge(trace);
  Scene scene = make_scene("", judgement, 0);
  const Scene whole = scene;
  thin(scene);
  ASSERT_EQ(scene.columns.count(), (whole.columns.count() + 1) / 2);
  EXPECT_EQ(scene.allocations.size(), whole.allocations.size() / 2);
  for (std::size_t at = 0; at < scene.columns.count(); ++at) {
    const std::size_t groups = scene.groupings.front().groups.size();
    const std::uint64_t sum = row_sum(scene.columns.by_group.front(), at, groups);
    ASSERT_EQ(sum, std::max(row_sum(whole.columns.by_group.front(), 2 * at, groups),
                            row_sum(whole.columns.by_group.front(), std::min(2 * at + 1, whole.columns.count() - 1),
                                    groups)));
  }
}

TEST(Scene, SegmentsThatAreMappedPieceByPieceAreThereAsLongAsTheirMemory) {
  const Trace trace = recording("expandable_grow_shrink");
  const Judgement judgement = judge(trace);
  Scene scene;
  add_segments(*judgement.facts, 0, kMostSegments, scene);
  for (std::uint32_t event = 0; event < trace.events.size(); event += 37) {
    const FreeSpace picture = picture_free_space(trace, judgement.facts->lifetimes, 0, event, {2u << 20, 20u << 20});
    std::uint64_t bytes = 0;
    for (const KeptSegment& segment : scene.segments) {
      if (segment.born <= event && event < segment.gone) bytes += segment.bytes;
    }
    ASSERT_EQ(bytes, picture.reserved_bytes) << "event " << event;
  }
}

TEST(Scene, AFindingLeadsToTheMomentItSpeaksOf) {
  const Trace trace = recording("gpt_oom");
  const Judgement judgement = judge(trace);
  const Scene scene = make_scene("", judgement, 0);
  ASSERT_EQ(scene.moments.size(), judgement.findings.size());
  ASSERT_FALSE(scene.moments.empty());
  EXPECT_EQ(trace.events[scene.moments.front()].kind, EventKind::kAllocFailed);
  EXPECT_TRUE(
      std::any_of(scene.marks.begin(), scene.marks.end(), [](const Mark& mark) { return mark.kind == "failure"; }));
}

TEST(Scene, CallsOfStreamsAreCountedWhollyWhereOnlySomeAreKept) {
  std::string text =
      "device 0\nheap driver\nstream 1 handle=0x10\nalloc #a 1MiB driver @0x1000000\n"
      "call c = copy from=0x2000000 host-to-device\ncall k = launch kernel grid=4 block=32\n";
  for (int at = 0; at < 3000; ++at)
    text += at % 3 == 0 ? "copy #a 4096 @0x1000000 call=c stream=1\n" : "launch call=k\n";
  const Trace trace = traced(text);
  const Judgement judgement = judge(trace);
  const Scene scene = make_scene("", judgement, 0, 100);
  EXPECT_EQ(scene.call_count, 3000u);
  EXPECT_LE(scene.calls.size(), kMostCalls / 100);
  ASSERT_EQ(scene.lanes.size(), 2u);
  std::uint64_t counted = 0;
  for (const Lane& lane : scene.lanes)
    counted += std::accumulate(lane.counts.begin(), lane.counts.end(), std::uint64_t{0});
  EXPECT_EQ(counted, 3000u);
}

TEST(Scene, APhaseGoesOnUntilTheNextAndOtherMarksAreNoSpans) {
  const Trace trace = traced(
      "device 0\nheap torch\nop-begin \"phase building\"\nop-end \"\"\nalloc #a 1MiB\n"
      "op-begin \"phase training\"\nop-end \"\"\nop-begin mm\nalloc #b 1MiB\nop-end mm\n"
      "op-begin \"turn of optimizer 0\"\nop-end \"\"\nalloc #c 1MiB\n");
  const Judgement judgement = judge(trace);
  const Scene scene = make_scene("", judgement, 0);
  ASSERT_EQ(scene.spans.size(), 3u);
  EXPECT_EQ(scene.spans[0].begin, 0u);
  EXPECT_EQ(scene.spans[0].end, 3u);
  EXPECT_EQ(scene.spans[1].begin, 3u);
  EXPECT_EQ(scene.spans[1].end, trace.events.size());
  EXPECT_EQ(scene.spans[2].begin, 5u);
  EXPECT_EQ(scene.spans[2].depth, 1u);
}

}  // namespace
}  // namespace faultline::view
