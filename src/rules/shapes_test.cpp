#include "rules/shapes.h"

#include <gtest/gtest.h>

namespace faultline {
namespace {

TEST(Shapes, OperandsAreReadWithTypeShapeAndPlace) {
  const auto operands = parse_operands("float16[8,1024,768] float64[100]@cpu bool[]");
  ASSERT_TRUE(operands);
  ASSERT_EQ(operands->size(), 3u);
  EXPECT_EQ((*operands)[0].dtype, "float16");
  EXPECT_EQ((*operands)[0].shape, (Shape{8, 1024, 768}));
  EXPECT_FALSE((*operands)[0].on_host);
  EXPECT_TRUE((*operands)[1].on_host);
  EXPECT_EQ((*operands)[2].shape, Shape{});
}

TEST(Shapes, AnOperandThatIsNotUnderstoodSpoilsAll) {
  for (const char* text : {"float32[8", "float32[8,]", "float32[8,x]", "[8]", "float32[-1]", "float32[8]@cuda:1",
                           "float32[8] …", "float32]8[", "float32[99999999999999999999]"}) {
    EXPECT_FALSE(parse_operands(text)) << text;
  }
  EXPECT_TRUE(parse_operands("")->empty());
}

TEST(Shapes, CountsThatNoMemoryHoldsAreNone) {
  EXPECT_EQ(element_count({3, 4, 0}), 0u);
  EXPECT_EQ(element_count({}), 1u);
  EXPECT_FALSE(element_count({std::int64_t{1} << 40, std::int64_t{1} << 40}));
  EXPECT_EQ(size_of("bfloat16", {3, 5}), 30u);
  EXPECT_FALSE(size_of("quint4x2", {3, 5}));
}

TEST(Shapes, BroadcastComparesFromTheLastExtent) {
  EXPECT_EQ(broadcast({64, 1}, {64}), (Shape{64, 64}));
  EXPECT_EQ(broadcast({8, 1, 5}, {7, 1}), (Shape{8, 7, 5}));
  EXPECT_EQ(broadcast({3}, {}), (Shape{3}));
  EXPECT_EQ(broadcast({0}, {1}), (Shape{0}));
  EXPECT_FALSE(broadcast({3, 4}, {3}));
}

TEST(Shapes, AnOperationsNameHasNoNamespaceAndNoOverload) {
  EXPECT_EQ(bare_op("aten::add_.Tensor"), "add_");
  EXPECT_EQ(bare_op("torch.nn.functional.linear"), "linear");
  EXPECT_EQ(bare_op("mm"), "mm");
}

}  // namespace
}  // namespace faultline
