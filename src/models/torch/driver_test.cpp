#include "models/torch/driver.h"

#include <gtest/gtest.h>

#include "base/units.h"

namespace faultline {
namespace {

constexpr std::uint64_t kFirst = kFirstSegmentAddress;

TEST(BudgetDriver, GivesUntilTheBudgetIsSpentAndAgainWhenSomethingComesBack) {
  BudgetDriver driver(60 * kMiB, kFirst, kTiB);
  const auto first = driver.take(40 * kMiB, {});
  ASSERT_TRUE(first);
  EXPECT_FALSE(driver.take(22 * kMiB, {}));
  EXPECT_TRUE(driver.take(20 * kMiB, {}));
  EXPECT_EQ(driver.left_bytes(), 0u);
  driver.give_back(*first, {});
  EXPECT_EQ(driver.left_bytes(), 40 * kMiB);
  EXPECT_TRUE(driver.take(40 * kMiB, {}));
}

TEST(BudgetDriver, ARefusalLeavesNoTraceInTheAddresses) {
  BudgetDriver driver(60 * kMiB, kFirst, kTiB);
  EXPECT_FALSE(driver.take(100 * kMiB, {}));
  EXPECT_EQ(driver.take(20 * kMiB, {})->begin, kFirst - 32 * kMiB);
}

TEST(BudgetDriver, SegmentsGoDownwardsAndReservationsUpwards) {
  BudgetDriver driver(kNoBudget, kFirst, kTiB);
  EXPECT_EQ(driver.reserve(20 * kMiB, {})->begin, kFirst);
  EXPECT_EQ(driver.take(20 * kMiB, {})->begin, kFirst - 32 * kMiB);
  EXPECT_GE(driver.reserve(2 * kMiB, {})->begin, kFirst + kTiB);
  EXPECT_EQ(driver.take(20 * kMiB, {})->begin, kFirst - 64 * kMiB);
}

TEST(BudgetDriver, SegmentsGoBelowALayoutThatIsThere) {
  const ByteRange layout{kFirst - kTiB, kFirst + kTiB};
  BudgetDriver driver(kNoBudget, layout, kTiB);
  EXPECT_EQ(driver.take(32 * kMiB, {})->end, layout.begin);
  EXPECT_GE(driver.reserve(2 * kMiB, {})->begin, layout.end);
  driver.give_back(ByteRange::of(kFirst, 20 * kMiB), {});  // one of the layout's own: its addresses are not used again
  EXPECT_EQ(driver.take(32 * kMiB, {})->end, layout.begin - 32 * kMiB);
}

TEST(BudgetDriver, SegmentsGoAboveALayoutThatLeavesNoRoomBelow) {
  for (const ByteRange layout : {ByteRange{0x302000000, 0x302000000 + kTiB}, ByteRange{kMiB, 1ull << 60}}) {
    BudgetDriver driver(kNoBudget, layout, kTiB);
    const auto segment = driver.take(20 * kMiB, {});
    ASSERT_TRUE(segment);
    EXPECT_GE(segment->begin, layout.end);
    EXPECT_GE(driver.reserve(2 * kMiB, {})->begin, segment->end);
  }
}

}  // namespace
}  // namespace faultline
