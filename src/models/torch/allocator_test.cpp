// The rules of the allocator, one by one. What they must lead to is said in numbers, so that each test can fail on its own.
#include "models/torch/allocator.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "models/replay.h"
#include "models/request_trace.h"

namespace faultline {
namespace {

constexpr std::uint64_t kBase = 0x7f0000000000;

class Rules : public testing::Test {
 protected:
  void use(std::string_view text, TorchVersion version = kNewestTorch, std::uint64_t budget = 1ull << 50) {
    const TorchTraits traits = TorchTraits::of(version);
    auto settings = parse_torch_settings(text, traits);
    ASSERT_TRUE(settings.ok()) << settings.error().what;
    const std::vector<Stream> streams = {{0, 0}, {0, 0x900}, {0, 0x100}};
    model.emplace(*settings, traits, streams);
    driver.emplace(budget, kBase, 1ull << 40);
  }
  BlockIndex alloc(std::uint64_t size_bytes, std::uint32_t stream = 0, std::uint32_t arena = 0) {
    const std::uint64_t rounded = model->round(size_bytes);
    const ListIndex list = model->list_for(arena, rounded <= kTorchSmallRequest, StreamId(stream));
    return model->allocate(list, rounded, AllocationId(++ids), {}, *driver);
  }
  std::uint64_t at(BlockIndex block) const { return model->block(block).address - kBase; }
  std::uint64_t size(BlockIndex block) const { return model->block(block).size_bytes; }

  std::optional<TorchAllocator> model;
  std::optional<BudgetDriver> driver;
  std::uint32_t ids = 0;
};

TEST_F(Rules, SizesRoundUpTo512) {
  use("");
  EXPECT_EQ(model->round(0), 512u);
  EXPECT_EQ(model->round(1), 512u);
  EXPECT_EQ(model->round(512), 512u);
  EXPECT_EQ(model->round(513), 1024u);
}

TEST_F(Rules, DivisionsRoundToSlicesOfThePowerOfTwo) {
  use("roundup_power2_divisions:4");
  EXPECT_EQ(model->round(1200), 1536u);  // not above 512 * 4: the plain rule
  EXPECT_EQ(model->round(5 * kMiB + 1), 6 * kMiB);
  EXPECT_EQ(model->round(4 * kMiB), 4 * kMiB);
  EXPECT_EQ(model->round(7 * kMiB + 1), 8 * kMiB);
}

TEST_F(Rules, DivisionsOfTheListApplyByInterval) {
  use("roundup_power2_divisions:[1:8,64:2,>:1]");
  EXPECT_EQ(model->round(kMiB + 1), kMiB + kMiB / 8);
  EXPECT_EQ(model->round(2 * kMiB + 1), 2 * kMiB + 512);  // between the intervals named: off
  EXPECT_EQ(model->round(65 * kMiB), 96 * kMiB);
  EXPECT_EQ(model->round(129 * kMiB + 1), 129 * kMiB + 512);  // one division is the plain rule
}

TEST_F(Rules, UpTo23OneDivisionLeavesSizesAsTheyAre) {
  use("roundup_power2_divisions:1", {2, 3});
  EXPECT_EQ(model->round(1001), 1001u);
  EXPECT_EQ(model->round(100), 512u);
  use("roundup_power2_divisions:1", {2, 4});
  EXPECT_EQ(model->round(1001), 1024u);
}

TEST_F(Rules, SegmentsComeInThreeKinds) {
  use("");
  EXPECT_EQ(model->segment_bytes(kMiB), 2 * kMiB);
  EXPECT_EQ(model->segment_bytes(kMiB + 512), 20 * kMiB);
  EXPECT_EQ(model->segment_bytes(10 * kMiB), 10 * kMiB);
  EXPECT_EQ(model->segment_bytes(10 * kMiB + 512), 12 * kMiB);
  use("large_segment_size_mb:64");
  EXPECT_EQ(model->segment_bytes(kMiB + 512), 64 * kMiB);
}

TEST_F(Rules, SmallBlocksSplitFromHalfAKibibyteOn) {
  use("");
  const BlockIndex first = alloc(1);
  EXPECT_EQ(at(alloc(1)), at(first) + 512);
  EXPECT_EQ(model->reserved_bytes(), 2 * kMiB);
}

TEST_F(Rules, LargeBlocksSplitOnlyWhenMoreThanAMebibyteRemains) {
  use("");
  const BlockIndex whole = alloc(11 * kMiB);
  EXPECT_EQ(size(whole), 12 * kMiB);  // the remaining 1 MiB stays with the block
  const BlockIndex split = alloc(8 * kMiB);
  EXPECT_EQ(size(split), 8 * kMiB);
  EXPECT_EQ(at(alloc(9 * kMiB)), at(split) + 8 * kMiB);
}

TEST_F(Rules, BestFitTakesTheSmallestAndOfEqualsTheLowest) {
  use("");
  const BlockIndex a = alloc(30 * kMiB);
  const BlockIndex b = alloc(20 * kMiB);
  const BlockIndex c = alloc(20 * kMiB);
  const std::uint64_t lower = std::min(at(b), at(c));
  model->free_now(c);
  model->free_now(a);
  model->free_now(b);
  EXPECT_EQ(at(alloc(19 * kMiB + 512)), lower);
}

TEST_F(Rules, NeighboursMergeWhenFreed) {
  use("");
  const BlockIndex a = alloc(4 * kMiB);
  const BlockIndex b = alloc(4 * kMiB);
  const BlockIndex c = alloc(4 * kMiB);
  const std::uint64_t a_at = at(a);
  model->free_now(a);
  model->free_now(c);
  model->free_now(b);
  EXPECT_EQ(at(alloc(19 * kMiB)), a_at);
}

TEST_F(Rules, StreamsDoNotShareBlocks) {
  use("");
  const BlockIndex a = alloc(20 * kMiB, 0);
  model->free_now(a);
  alloc(20 * kMiB, 1);
  EXPECT_EQ(model->reserved_bytes(), 40 * kMiB);
}

TEST_F(Rules, PendingBlocksAreNeitherReusedNorMerged) {
  use("");
  const BlockIndex a = alloc(8 * kMiB);
  const std::uint64_t a_at = at(a);
  alloc(8 * kMiB);
  model->request_free(a);
  EXPECT_EQ(model->allocated_bytes(), 8 * kMiB);
  EXPECT_NE(at(alloc(8 * kMiB)), a_at);
  model->complete_free(a);
  EXPECT_EQ(at(alloc(8 * kMiB)), a_at);
}

TEST_F(Rules, BlocksAtTheSplitLimitAreKeptForRequestsOfTheirSize) {
  use("max_split_size_mb:64");
  const BlockIndex big = alloc(100 * kMiB);
  const std::uint64_t big_at = at(big);
  model->free_now(big);
  EXPECT_NE(at(alloc(40 * kMiB)), big_at);  // would split it
  EXPECT_EQ(at(alloc(90 * kMiB)), big_at);  // within 20 MiB: taken whole
  EXPECT_EQ(size(model->segment(model->segment_at(kBase + big_at)).first), 100 * kMiB);
}

TEST_F(Rules, OversizeBlocksServeOnlyRequestsWithinTheRounding) {
  use("max_split_size_mb:64");
  model->free_now(alloc(100 * kMiB));
  alloc(80 * kMiB);  // 100 >= 80 + 20
  EXPECT_EQ(model->reserved_bytes(), 180 * kMiB);
  use("max_split_size_mb:64,max_non_split_rounding_mb:40");
  model->free_now(alloc(100 * kMiB));
  alloc(80 * kMiB);
  EXPECT_EQ(model->reserved_bytes(), 100 * kMiB);
}

TEST_F(Rules, ExpandableSegmentsGrowInHandles) {
  use("expandable_segments:True");
  const BlockIndex a = alloc(15 * kMiB);
  EXPECT_EQ(model->reserved_bytes(), 20 * kMiB);
  EXPECT_EQ(size(a), 15 * kMiB);
  const BlockIndex b = alloc(30 * kMiB);  // 5 MiB are there, 25 more need two handles
  EXPECT_EQ(at(b), 15 * kMiB);
  EXPECT_EQ(model->reserved_bytes(), 60 * kMiB);
  EXPECT_EQ(model->segment_count(), 1u);
}

TEST_F(Rules, ABlockThatCannotGrowIsPreferredToTheGrowingEnd) {
  use("expandable_segments:True");
  const BlockIndex a = alloc(12 * kMiB);
  alloc(kMiB + 512);
  alloc(16 * kMiB);
  model->free_now(a);
  // Free: 12 MiB at the front, about 11 MiB at the end that could grow. The end fits better by size, the front by what it can become.
  EXPECT_EQ(at(alloc(10 * kMiB)), 0u);
}

TEST_F(Rules, EmptyingTheCacheUnmapsWholeHandlesOnly) {
  use("expandable_segments:True");
  const BlockIndex a = alloc(30 * kMiB);
  const BlockIndex b = alloc(50 * kMiB);
  model->free_now(b);
  model->empty_cache({}, *driver);
  EXPECT_EQ(model->reserved_bytes(), 40 * kMiB);
  EXPECT_EQ(at(alloc(10 * kMiB)), 30 * kMiB);
  model->free_now(a);
  model->empty_cache({}, *driver);
  EXPECT_EQ(model->reserved_bytes(), 20 * kMiB);  // the first handle went, the second holds the tail
  EXPECT_EQ(at(alloc(30 * kMiB)), 0u);            // filled in again from the lowest address
}

TEST_F(Rules, EmptyingTheCacheGivesBackWholeSegmentsOnly) {
  use("");
  const BlockIndex a = alloc(30 * kMiB);
  alloc(8 * kMiB);
  const BlockIndex c = alloc(8 * kMiB);
  model->free_now(a);
  model->free_now(c);
  model->empty_cache({}, *driver);
  EXPECT_EQ(model->reserved_bytes(), 20 * kMiB);
}

TEST_F(Rules, SegmentsGoBackLargePoolFirstByStreamHandleSizeAndAddress) {
  use("");
  std::vector<BlockIndex> blocks = {alloc(512, 0),       alloc(40 * kMiB, 1), alloc(30 * kMiB, 2),
                                    alloc(50 * kMiB, 0), alloc(30 * kMiB, 0), alloc(30 * kMiB, 0)};
  std::vector<std::uint64_t> expected;
  ASSERT_LT(at(blocks[5]), at(blocks[4]));
  // handles: stream 0 < 2 < 1
  for (const std::size_t number : {5u, 4u, 3u, 2u, 1u, 0u}) expected.push_back(at(blocks[number]));
  for (const BlockIndex block : blocks) model->free_now(block);
  std::vector<std::uint64_t> actual;
  for (const TorchRelease& step : model->plan_cached(0)) actual.push_back(step.range.begin - kBase);
  EXPECT_EQ(actual, expected);
}

TEST_F(Rules, CollectionGivesBackTheOldAndKeepsTheYoung) {
  use("garbage_collection_threshold:0.6");
  model->set_limit(220 * kMiB);
  model->count_ages(true);
  const BlockIndex old = alloc(40 * kMiB);
  const BlockIndex young = alloc(60 * kMiB);
  model->free_now(old);
  for (int search = 0; search < 10; ++search) model->free_now(alloc(70 * kMiB));
  model->free_now(young);
  // 170 MiB reserved, 132 allowed before collection: the next segment collects first, and the 40 MiB have waited longest and are enough.
  alloc(80 * kMiB);
  std::vector<std::uint64_t> kept;
  for (const TorchRelease& step : model->plan_cached(0)) kept.push_back(step.range.size());
  EXPECT_EQ(kept, (std::vector<std::uint64_t>{60 * kMiB, 70 * kMiB}));
  EXPECT_EQ(model->cache_flushes(), 0u);
}

TEST_F(Rules, WithoutALimitNothingIsCollected) {
  use("garbage_collection_threshold:0.1");
  model->free_now(alloc(40 * kMiB));
  alloc(60 * kMiB);
  EXPECT_EQ(model->reserved_bytes(), 100 * kMiB);
}

TEST_F(Rules, AtExhaustionAnOversizeBlockIsEnoughBeforeEverythingGoes) {
  use("max_split_size_mb:64", kNewestTorch, 300 * kMiB);
  const BlockIndex a = alloc(100 * kMiB);
  const BlockIndex b = alloc(130 * kMiB);
  const BlockIndex c = alloc(40 * kMiB);
  for (const BlockIndex block : {a, b, c}) model->free_now(block);
  ASSERT_NE(alloc(160 * kMiB), kNoIndex);
  EXPECT_EQ(model->cache_flushes(), 0u);
  EXPECT_EQ(model->reserved_bytes(), 200 * kMiB);  // the two large ones went, the 40 MiB stayed
}

TEST_F(Rules, AtExhaustionPendingFreesAreWaitedForAndTheCacheIsEmptied) {
  use("", kNewestTorch, 100 * kMiB);
  const BlockIndex a = alloc(60 * kMiB);
  alloc(30 * kMiB);
  model->request_free(a);
  ASSERT_NE(alloc(70 * kMiB), kNoIndex);
  EXPECT_EQ(model->cache_flushes(), 1u);
  EXPECT_EQ(model->reserved_bytes(), 100 * kMiB);
}

TEST_F(Rules, ALimitRefusesWhatTheDriverWouldGive) {
  use("");
  model->set_limit(50 * kMiB);
  EXPECT_NE(alloc(40 * kMiB), kNoIndex);
  EXPECT_EQ(alloc(12 * kMiB), kNoIndex);
  EXPECT_NE(alloc(10 * kMiB), kNoIndex);
}

TEST_F(Rules, PrivatePoolsKeepTheirMemoryToThemselves) {
  use("", kNewestTorch, 100 * kMiB);
  const std::uint32_t pool = model->add_arena(true);
  model->free_now(alloc(60 * kMiB, 0, pool));
  alloc(40 * kMiB);
  EXPECT_EQ(model->reserved_bytes(), 100 * kMiB);
  EXPECT_EQ(alloc(40 * kMiB), kNoIndex);  // emptying the cache does not touch it
  const std::vector<std::uint32_t> freeable = {pool};
  model->empty_cache(freeable, *driver);
  EXPECT_NE(alloc(40 * kMiB), kNoIndex);
}

TEST_F(Rules, APrivatePoolDoesNotEmptyTheCache) {
  use("", kNewestTorch, 100 * kMiB);
  const std::uint32_t pool = model->add_arena(true);
  model->free_now(alloc(60 * kMiB));
  EXPECT_EQ(alloc(60 * kMiB, 0, pool), kNoIndex);
  EXPECT_EQ(model->reserved_bytes(), 60 * kMiB);
}

TEST_F(Rules, UpTo24PrivatePoolsStayPlainButSplitFinely) {
  use("expandable_segments:True", {2, 4});
  const std::uint32_t pool = model->add_arena(true);
  const BlockIndex block = alloc(11 * kMiB, 0, pool);
  EXPECT_EQ(size(block), 11 * kMiB);
  EXPECT_FALSE(model->segment(model->segment_at(kBase + at(block))).expandable());
  use("expandable_segments:True", {2, 5});
  alloc(11 * kMiB, 0, model->add_arena(true));
  EXPECT_TRUE(model->segment(model->segment_at(kBase)).expandable());
}

TEST_F(Rules, From210APoolWithItsOwnAllocatorStaysPlainAndSplitsCoarsely) {
  use("expandable_segments:True", {2, 10});
  const std::uint32_t pool = model->add_arena(true);
  model->set_own_allocator(pool);
  EXPECT_EQ(size(alloc(11 * kMiB, 0, pool)), 12 * kMiB);
}

TEST(TorchReplay, FailuresAreCountedAndTheReplayGoesOn) {
  RequestTrace requests;
  const AllocationId a = requests.alloc(60 * kMiB);
  const AllocationId b = requests.alloc(60 * kMiB);
  requests.free(b);
  requests.free(a);
  requests.alloc(90 * kMiB);
  ReplayOptions options;
  options.segment_budget_bytes = 100 * kMiB;
  const auto result = replay(requests.trace(), options);
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result->failure_count, 1u);
  ASSERT_EQ(result->failures.size(), 1u);
  EXPECT_EQ(result->failures[0].event, 1u);
  EXPECT_EQ(result->failures[0].segment_bytes, 60 * kMiB);
  EXPECT_EQ(result->failures[0].reserved_bytes, 60 * kMiB);
  EXPECT_EQ(result->placements, 2u);
  EXPECT_EQ(result->end_reserved_bytes, 90 * kMiB);
}

TEST(TorchReplay, ARecordedFailureIsServedWhereThereIsRoom) {
  RequestTrace requests;
  requests.alloc(60 * kMiB);
  requests.failed(60 * kMiB, 10 * kMiB);
  const auto roomy = [&](std::uint64_t budget) {
    ReplayOptions options;
    options.segment_budget_bytes = budget;
    return replay(requests.trace(), options);
  };
  EXPECT_EQ(roomy(200 * kMiB)->recorded_failures_served, 1u);
  EXPECT_EQ(roomy(200 * kMiB)->end_allocated_bytes, 60 * kMiB);
  EXPECT_EQ(roomy(100 * kMiB)->recorded_failures_served, 0u);
  EXPECT_EQ(roomy(100 * kMiB)->failure_count, 1u);
}

TEST(TorchReplay, ASegmentGivenBackBeforeItsUseIsAMismatchAndNoMore) {
  RequestTrace requests;
  Trace& trace = requests.trace();
  trace.capabilities = kAddresses;
  for (int round = 0; round < 100; ++round) {
    Event call;
    call.heap = HeapId(0);
    call.address = kBase;
    call.size_bytes = 20 * kMiB;
    call.allocation = AllocationId(++trace.allocation_count);
    trace.events.push_back(call);
    call.kind = EventKind::kFree;
    trace.events.push_back(call);
    requests.alloc(2 * kMiB);
    trace.events.back().address = kBase;
  }
  ReplayOptions options;
  options.proof = true;
  const auto result = replay(trace, options);
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result->placements, 100u);
  EXPECT_EQ(result->exact, 0u);
  EXPECT_EQ(result->segment_events, 200u);
}

TEST(TorchReplay, ExpandableSegmentsServeWhatFragmentsCannot) {
  RequestTrace requests;
  std::vector<AllocationId> blocks;
  for (int block = 0; block < 8; ++block) blocks.push_back(requests.alloc(20 * kMiB));
  for (std::size_t block = 0; block < 8; block += 2) requests.free(blocks[block]);
  for (std::size_t block = 1; block < 8; block += 4) requests.free(blocks[block]);
  requests.alloc(50 * kMiB);
  ReplayOptions options;
  options.segment_budget_bytes = 160 * kMiB;
  EXPECT_EQ(replay(requests.trace(), options)->cache_flushes, 1u);
  options.changes = {{"expandable_segments", "True"}};
  const auto result = replay(requests.trace(), options);
  EXPECT_EQ(result->cache_flushes, 0u);
  EXPECT_EQ(result->peak_reserved_bytes, 160 * kMiB);
}

}  // namespace
}  // namespace faultline
