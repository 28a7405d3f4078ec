#include "base/proto_writer.h"

#include <gtest/gtest.h>

#include "base/protobuf.h"

namespace faultline {
namespace {

Bytes bytes_of(std::string_view text) { return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()}; }

TEST(ProtoWriter, WhatIsWrittenIsRead) {
  ProtoWriter inside;
  inside.number(1, 0);
  inside.text(536870911, std::string(300, 'x'));
  ProtoWriter writer;
  for (const std::uint64_t value : {std::uint64_t{0}, std::uint64_t{127}, std::uint64_t{128}, UINT64_MAX})
    writer.number(16, value);
  writer.message(2, inside);
  writer.text(3, "");
  const std::string wire = writer.take();
  EXPECT_EQ(writer.size(), 0u);

  ProtoReader reader(bytes_of(wire));
  ProtoField field;
  for (const std::uint64_t value : {std::uint64_t{0}, std::uint64_t{127}, std::uint64_t{128}, UINT64_MAX}) {
    ASSERT_TRUE(reader.next(field));
    EXPECT_EQ(field.number, 16u);
    EXPECT_EQ(field.value, value);
  }
  ASSERT_TRUE(reader.next(field));
  ProtoReader within(field.bytes);
  ProtoField text;
  ASSERT_TRUE(within.next(text) && within.next(text));
  EXPECT_EQ(text.number, 536870911u);
  EXPECT_EQ(text.text(), std::string(300, 'x'));
  EXPECT_FALSE(within.next(text));
  ASSERT_TRUE(reader.next(field));
  EXPECT_TRUE(field.is_bytes && field.text().empty());
  EXPECT_FALSE(reader.next(field));
  EXPECT_TRUE(reader.ok());
}

}  // namespace
}  // namespace faultline
