#include "facts/lifetimes.h"

#include <vector>

#include "facts/facts_test_support.h"

namespace faultline {
namespace {

TEST(Lifetimes, AFreeInOnePieceLetsGoAndReturns) {
  const Trace trace = traced("alloc #a 512\nalloc #b 512\nfree #a\n");
  const Lifetimes lifetimes(trace, {});
  EXPECT_EQ(lifetimes.of(AllocationId(1)).born, 0u);
  EXPECT_EQ(lifetimes.of(AllocationId(1)).released, 2u);
  EXPECT_EQ(lifetimes.of(AllocationId(1)).returned, 2u);
  EXPECT_EQ(lifetimes.of(AllocationId(2)).released, kNever);
}

TEST(Lifetimes, AFreeThatWaitsForAStreamReturnsLater) {
  const Trace trace = traced("alloc #a 512\nfree #a requested\nalloc #b 512\nfree #a completed\n");
  const Lifetime life = Lifetimes(trace, {}).of(AllocationId(1));
  EXPECT_EQ(life.released, 1u);
  EXPECT_EQ(life.returned, 3u);
  EXPECT_TRUE(life.alive_at(0));
  EXPECT_FALSE(life.alive_at(1));
}

TEST(Lifetimes, ACompletedFreeAloneAlsoLetsGo) {
  const Trace trace = traced("alloc #a 512\nfree #a completed\n");
  EXPECT_EQ(Lifetimes(trace, {}).of(AllocationId(1)).released, 1u);
}

TEST(Lifetimes, HeldBytesAreTheModelsElseTheRequestRoundedUp) {
  const Trace trace = traced("alloc #a 1000\nalloc #b 4000000\nalloc #segment 2MiB driver\n");
  const std::vector<std::uint64_t> known = {0, 0, 4194304, 0};
  const Lifetimes lifetimes(trace, known);
  EXPECT_EQ(lifetimes.held_bytes(AllocationId(1)), 1024u);
  EXPECT_EQ(lifetimes.held_bytes(AllocationId(2)), 4194304u);
  EXPECT_EQ(lifetimes.held_bytes(AllocationId(3)), 2u << 20);
  EXPECT_EQ(Lifetimes(trace, {}).held_bytes(AllocationId(2)), 4000256u);
}

TEST(Lifetimes, EveryAllocationOfARecordingIsBornOnceAndReturnedAfterItsRelease) {
  const Trace trace = recording("streams_many");
  const Lifetimes lifetimes(trace, {});
  for (std::uint32_t number = 1; number <= trace.allocation_count; ++number) {
    const Lifetime& life = lifetimes.of(AllocationId(number));
    ASSERT_NE(life.born, kNever);
    EXPECT_LT(life.born, life.released);
    EXPECT_LE(life.released, life.returned);
  }
}

}  // namespace
}  // namespace faultline
