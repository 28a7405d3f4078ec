// Sizes and places in MiB below the first address, the way recordings of a real driver were read.
#include "models/torch/segment_addresses.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

#include "base/units.h"

namespace faultline {
namespace {

constexpr std::uint64_t kTop = 0x7f0000000000;

class Places : public testing::Test {
 protected:
  std::int64_t take(std::uint64_t mib) {
    return (static_cast<std::int64_t>(addresses.take(mib * kMiB).value()) - static_cast<std::int64_t>(kTop)) /
           static_cast<std::int64_t>(kMiB);
  }
  void give_back(std::int64_t at, std::uint64_t mib) {
    addresses.give_back(ByteRange::of(kTop + static_cast<std::uint64_t>(at) * kMiB, mib * kMiB));
  }

  SegmentAddresses addresses{{0, kTop}};
};

TEST_F(Places, RegionsOf32MiBGoDownwards) {
  EXPECT_EQ(take(20), -32);
  EXPECT_EQ(take(32), -64);
  EXPECT_EQ(take(40), -128);
  EXPECT_EQ(take(282), -416);
}

TEST_F(Places, ARestServesBeforeANewRegionIsMade) {
  take(282);  // 6 MiB left
  EXPECT_EQ(take(2), -6);
  EXPECT_EQ(take(2), -4);
  EXPECT_EQ(take(20), -320);  // too large for the last 2 MiB
  EXPECT_EQ(take(40), -384);
  EXPECT_EQ(take(22), -344);  // large ones go into a rest as well
}

TEST_F(Places, TheNewestRegionWithRoomServesFirstEvenIfAnOlderFitsBetter) {
  EXPECT_EQ(take(44), -64);   // leaves 20
  EXPECT_EQ(take(36), -128);  // leaves 28
  EXPECT_EQ(take(30), -160);  // leaves 2
  EXPECT_EQ(take(18), -92);   // the 28, not the 20
  EXPECT_EQ(take(20), -20);
}

TEST_F(Places, NewestIsByAgeAndNotByAddress) {
  take(160);  // -160
  take(36);   // -224, leaves 28 at -188
  give_back(-160, 160);
  EXPECT_EQ(take(126), -128);  // in the hole, leaves 2 at -2
  EXPECT_EQ(take(2), -2);
}

TEST_F(Places, InsideARegionTheSmallestRestThatFitsServes) {
  EXPECT_EQ(take(282), -288);
  EXPECT_EQ(take(2), -6);
  EXPECT_EQ(take(2), -4);
  give_back(-288, 282);
  EXPECT_EQ(take(2), -2);  // not the start of the 282
  EXPECT_EQ(take(264), -288);
}

TEST_F(Places, ARegionGoesBackWhenItsLastSegmentDoes) {
  take(288);  // -288
  EXPECT_EQ(take(20), -320);
  EXPECT_EQ(take(12), -300);
  take(32);  // -352
  give_back(-320, 20);
  EXPECT_EQ(take(22), -384);   // 20 are free there, the region stays
  give_back(-300, 12);         // now it goes
  give_back(-288, 288);        // and joins its neighbour: 320 from -320 on
  EXPECT_EQ(take(256), -256);  // the upper end of the hole
}

TEST_F(Places, AHoleOfExactlyTheSizeDoesNotDo) {
  take(64);  // -64
  take(32);  // -96
  give_back(-64, 64);
  EXPECT_EQ(take(44), -160);
  EXPECT_EQ(take(32), -32);
}

TEST_F(Places, TheHighestHoleServesFirst) {
  take(96);  // -96
  take(32);  // -128
  take(64);  // -192
  take(32);  // -224
  give_back(-192, 64);
  give_back(-96, 96);
  EXPECT_EQ(take(32), -32);
}

TEST_F(Places, BelowTheLowestRegionThereIsAlwaysRoomForTheSameAgain) {
  take(20);
  EXPECT_EQ(take(3816), -3872);
  give_back(-3872, 3816);
  EXPECT_EQ(take(3816), -3872);
}

// frag.pickle.xz, one of the recordings, from its fourth segment on: 18 MiB at -64 there.
TEST_F(Places, ARecordingsFirstSegmentsLieWhereTheDriverPutThem) {
  const std::vector<std::pair<std::uint64_t, std::int64_t>> recorded = {
      {18, -64},   {34, -128},  {34, -192},  {28, -158},  {22, -94},  {32, -224},  {24, -256}, {40, -320},
      {34, -384},  {10, -350},  {20, -340},  {10, -280},  {20, -416}, {18, -448},  {36, -512}, {40, -576},
      {22, -536},  {20, -476},  {24, -608},  {32, -640},  {38, -704}, {20, -666},  {24, -736}, {30, -768},
      {22, -800},  {16, -832},  {38, -896},  {32, -928},  {30, -960}, {36, -1024}, {18, -988}, {38, -1088},
      {28, -1120}, {34, -1184}, {24, -1150}, {18, -1050}, {22, -858}};
  for (const auto& [mib, at] : recorded) EXPECT_EQ(take(mib), at + 32);
}

TEST_F(Places, SegmentsNeverOverlapAndAllOfThemGoBack) {
  std::mt19937_64 random(7);
  std::map<std::uint64_t, std::uint64_t> live;
  for (int step = 0; step < 20000; ++step) {
    if (random() % 100 < (step / 500 % 2 == 0 ? 70u : 30u)) {
      const std::uint64_t size_bytes = random() % 3 == 0 ? 1 + random() % (300 * kMiB) : 2 * kMiB * (1 + random() % 20);
      const std::uint64_t address = addresses.take(size_bytes).value();
      ASSERT_EQ(address % (2 * kMiB), 0u);
      const auto above = live.lower_bound(address);
      ASSERT_TRUE(above == live.end() || address + size_bytes <= above->first);
      ASSERT_TRUE(above == live.begin() || std::prev(above)->first + std::prev(above)->second <= address);
      live.emplace(address, size_bytes);
    } else if (!live.empty()) {
      auto one = live.lower_bound(kTop - random() % (kTop - live.begin()->first + 1));
      if (one == live.end()) one = live.begin();
      addresses.give_back(ByteRange::of(one->first, one->second));
      live.erase(one);
    }
  }
  for (const auto& [address, size_bytes] : live) addresses.give_back(ByteRange::of(address, size_bytes));
  EXPECT_EQ(take(20), -32);
}

TEST(SegmentAddresses, RefuseWhatDoesNotFitIntoTheirRoom) {
  SegmentAddresses addresses({64 * kMiB, 128 * kMiB});
  EXPECT_FALSE(addresses.take(65 * kMiB));
  EXPECT_FALSE(addresses.take(~0ull));
  EXPECT_EQ(addresses.take(40 * kMiB), 64 * kMiB);
  EXPECT_EQ(addresses.take(20 * kMiB), 104 * kMiB);  // no room for a region, but for a rest
  EXPECT_FALSE(addresses.take(20 * kMiB));
}

TEST(SegmentAddresses, LeaveASegmentAloneThatIsNotTheirs) {
  SegmentAddresses addresses({0, kTop});
  const std::uint64_t own = addresses.take(20 * kMiB).value();
  addresses.give_back(ByteRange::of(kTop, 20 * kMiB));
  addresses.give_back(ByteRange::of(own - kGiB, 20 * kMiB));
  EXPECT_EQ(addresses.take(20 * kMiB), own - 32 * kMiB);
}

}  // namespace
}  // namespace faultline
