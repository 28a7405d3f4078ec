#include "vgpu/range_allocator.h"

#include <gtest/gtest.h>

namespace faultline::vgpu {
namespace {

TEST(RangeAllocator, GoesRoundBeforeItUsesAPlaceAgain) {
  RangeAllocator ranges({1000, 1400});
  const ByteRange first = *ranges.take(100, 1);
  ranges.give_back(first);
  EXPECT_EQ(ranges.take(100, 1)->begin, 1100u);
  EXPECT_EQ(ranges.take(200, 1)->begin, 1200u);
  EXPECT_EQ(ranges.take(100, 1)->begin, 1000u);
  EXPECT_FALSE(ranges.take(1, 1).has_value());
}

TEST(RangeAllocator, JoinsWhatIsGivenBack) {
  RangeAllocator ranges({0, 300});
  const ByteRange first = *ranges.take(100, 1), second = *ranges.take(100, 1), third = *ranges.take(100, 1);
  EXPECT_FALSE(ranges.all_free());
  ranges.give_back(first);
  ranges.give_back(third);
  ranges.give_back(second);
  EXPECT_TRUE(ranges.all_free());
  EXPECT_EQ(ranges.take(300, 1)->begin, 0u);
}

TEST(RangeAllocator, AlignsAndKeepsTheGap) {
  RangeAllocator ranges({10, 200});
  EXPECT_EQ(ranges.take(50, 64)->begin, 64u);
  EXPECT_TRUE(ranges.take_exactly({10, 64}));
  EXPECT_FALSE(ranges.take_exactly({100, 150}));
  EXPECT_TRUE(ranges.take_exactly({114, 200}));
  EXPECT_FALSE(ranges.take(1, 1).has_value());
}

}  // namespace
}  // namespace faultline::vgpu
