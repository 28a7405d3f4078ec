#include "base/protobuf.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace faultline {
namespace {

Bytes bytes_of(const std::string& text) { return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()}; }

TEST(Protobuf, ReadsEveryKindOfField) {
  const std::string wire(
      "\x08\x96\x01\x12\x03"
      "abc\x19\x01\0\0\0\0\0\0\0\x25\x02\0\0\0",
      22);
  ProtoReader reader(bytes_of(wire));
  ProtoField field;
  ASSERT_TRUE(reader.next(field));
  EXPECT_EQ(field.number, 1u);
  EXPECT_EQ(field.value, 150u);
  ASSERT_TRUE(reader.next(field));
  EXPECT_EQ(field.text(), "abc");
  ASSERT_TRUE(reader.next(field));
  EXPECT_EQ(field.value, 1u);
  ASSERT_TRUE(reader.next(field));
  EXPECT_EQ(field.number, 4u);
  EXPECT_EQ(field.value, 2u);
  EXPECT_FALSE(reader.next(field));
  EXPECT_TRUE(reader.ok());
}

TEST(Protobuf, DamageEndsTheReadingWhereItStands) {
  for (const std::string& wire :
       {std::string("\x08\x01\x12\x7f"
                    "a"),
        std::string("\x08\x01\x0b"), std::string("\x08\x01\x08"), std::string("\x08\x01\x08") + std::string(11, '\xff'),
        std::string("\x08\x01\0\x01", 4)}) {
    ProtoReader reader(bytes_of(wire));
    ProtoField field;
    ASSERT_TRUE(reader.next(field));
    EXPECT_FALSE(reader.next(field));
    EXPECT_FALSE(reader.ok());
    EXPECT_EQ(reader.offset(), 2u);
    EXPECT_FALSE(reader.next(field));
  }
}

TEST(Protobuf, PackedNumbersAreReadOneByOne) {
  const std::string wire("\x0a\x04\x05\x80\x01\x07", 6);
  ProtoReader reader(bytes_of(wire));
  ProtoField field;
  ASSERT_TRUE(reader.next(field));
  std::vector<std::uint64_t> numbers;
  each_number(field, [&](std::uint64_t number) { numbers.push_back(number); });
  EXPECT_EQ(numbers, (std::vector<std::uint64_t>{5, 128, 7}));
}

}  // namespace
}  // namespace faultline
