#include "plan/rounds.h"

#include <gtest/gtest.h>

#include "base/units.h"
#include "models/request_trace.h"

namespace faultline {
namespace {

// Rounds that each make so many tensors and keep them, and one that is let go in the next.
struct Loop {
  RequestTrace requests;
  std::vector<std::uint32_t> marks;
  AllocationId before;

  explicit Loop(std::uint64_t rounds, std::uint64_t kept_bytes, std::uint64_t tensors = 1) {
    for (std::uint64_t round = 0; round < rounds; ++round) {
      mark();
      const AllocationId input = requests.alloc(8 * kMiB);
      for (std::uint64_t at = 0; at < tensors; ++at) requests.alloc(kept_bytes);
      if (before.value != 0) requests.free(before);
      before = input;
    }
    mark();
  }

  void mark() {
    Trace& trace = requests.trace();
    marks.push_back(static_cast<std::uint32_t>(trace.events.size()));
    Event event;
    event.kind = EventKind::kOpBegin;
    event.extra = trace.strings.intern("round of loop 1").value;
    trace.events.push_back(event);
  }

  const Trace& trace() { return requests.trace(); }
  std::uint64_t needed() { return least_segment_bytes(trace(), 0, {}, 64 * kGiB).value_or(0); }
};

RisingLoop loop_of(std::uint64_t begun, std::uint64_t rounds) { return {"train.py:20", 1, begun, rounds}; }

TEST(RoundsToCome, NeedWhatTheWholeLoopNeeds) {
  for (const std::uint64_t kept : {3 * kMiB / 2, 7 * kMiB, 21 * kMiB}) {
    Loop cut(12, kept), whole(200, kept);
    const auto rest = RoundsToCome::of(cut.trace(), cut.marks, 0);
    ASSERT_TRUE(rest);
    EXPECT_EQ(rest->segment_bytes_after(188), whole.needed()) << kept;
    EXPECT_GE(rest->segment_bytes_after(188), 200 * kept);
  }
}

TEST(RoundsToCome, AreServedUntilTheDeviceIsFull) {
  Loop cut(12, 21 * kMiB);
  const auto rest = RoundsToCome::of(cut.trace(), cut.marks, 0);
  ASSERT_TRUE(rest);
  const std::uint64_t more = rest->served_with(2 * kGiB, 1000);
  Loop fits(12 + more, 21 * kMiB), full(13 + more, 21 * kMiB);
  EXPECT_TRUE(is_served(fits.trace(), 0, {}, 2 * kGiB, EstimateEnd::kLikely));
  EXPECT_FALSE(is_served(full.trace(), 0, {}, 2 * kGiB, EstimateEnd::kLikely));
  EXPECT_EQ(rest->served_with(2 * kGiB, 5), 5u);
}

TEST(RoundsToCome, BeyondThoseThatAreReplayedGoOnEvenly) {
  Loop cut(12, kMiB, 40);
  const auto rest = RoundsToCome::of(cut.trace(), cut.marks, 0);
  ASSERT_TRUE(rest);
  const double each = static_cast<double>(rest->segment_bytes_after(100'000)) / 100'000;
  EXPECT_NEAR(each, 40.0 * kMiB, 4.0 * kMiB);
}

TEST(RoundsToCome, AreNotKnownOfRoundsThatAreUnlike) {
  Loop uneven(12, 7 * kMiB);
  uneven.requests.alloc(5 * kMiB);
  uneven.mark();
  EXPECT_FALSE(RoundsToCome::of(uneven.trace(), uneven.marks, 0));
}

TEST(LoopGrowth, TellsWhenTheDeviceIsFull) {
  Loop cut(12, 21 * kMiB);
  Needs needs;
  needs.segment_bytes = cut.needed();
  const auto ends = growth_of_cut_loops(cut.trace(), {loop_of(12, 50)}, 0, 4 * kGiB);
  ASSERT_TRUE(ends);
  EXPECT_TRUE(ends->is_served() && ends->matters(needs));
  EXPECT_GT(ends->segment_bytes_at_end, 50 * 21 * kMiB);
  const auto fills = growth_of_cut_loops(cut.trace(), {loop_of(12, 500)}, 0, 4 * kGiB);
  ASSERT_TRUE(fills);
  EXPECT_FALSE(fills->is_served());
  EXPECT_NEAR(static_cast<double>(fills->last_served), 4096.0 / 22, 8);
  const auto unknown = growth_of_cut_loops(cut.trace(), {loop_of(12, 0)}, 0, 4 * kGiB);
  EXPECT_EQ(unknown->last_served, fills->last_served);
  EXPECT_EQ(unknown->segment_bytes_at_end, 0u);
  EXPECT_FALSE(unknown->is_served());
}

TEST(LoopGrowth, OfANumberThatIsKeptIsNoMatter) {
  Loop cut(12, 512);
  Needs needs;
  needs.segment_bytes = cut.needed();
  for (const std::uint64_t rounds : {std::uint64_t{0}, std::uint64_t{500}}) {
    const auto growth = growth_of_cut_loops(cut.trace(), {loop_of(12, rounds)}, 0, 4 * kGiB);
    ASSERT_TRUE(growth);
    EXPECT_FALSE(growth->matters(needs)) << rounds;
  }
}

TEST(LoopGrowth, OfRoundsThatAreUnlikeGoesByWhatIsReserved) {
  Loop cut(12, 21 * kMiB);
  Trace& trace = cut.requests.trace();
  for (int more = 1; more < 5; ++more) {
    for (int at = 0; at < more % 2 + 1; ++at) cut.requests.alloc(21 * kMiB);
    cut.mark();
  }
  ASSERT_FALSE(RoundsToCome::of(trace, cut.marks, 0));
  const auto growth = growth_of_cut_loops(trace, {loop_of(16, 0)}, 0, 4 * kGiB);
  ASSERT_TRUE(growth);
  EXPECT_GT(growth->last_served, 16u);
  EXPECT_LT(growth->last_served, 300u);
}

}  // namespace
}  // namespace faultline
