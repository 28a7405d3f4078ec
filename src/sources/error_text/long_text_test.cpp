#include "sources/error_text/long_text.h"

#include <gtest/gtest.h>

#include <span>
#include <string>

#include "sources/error_text/error_text.h"
#include "sources/error_text/other_failures.h"

namespace faultline {
namespace {

constexpr TextLimits kSmall{1 << 20, 4000, 1000, 2000};

Result<LongText> read_ends(const std::string& text, const TextLimits& limits = kSmall) {
  ByteStream stream = ByteStream::from_memory({reinterpret_cast<const std::uint8_t*>(text.data()), text.size()});
  return read_long_text(stream, limits);
}
std::string many_lines(int count) {
  std::string text;
  for (int i = 1; i <= count; ++i) text += "line " + std::to_string(i) + "\n";
  return text;
}

TEST(LongText, WhatFitsIsReadWhole) {
  const std::string text = many_lines(400);
  ASSERT_LT(text.size(), kSmall.whole);
  const LongText read_text = *read_ends(text);
  EXPECT_EQ(read_text.text, text);
  EXPECT_EQ(read_text.left_out, 0u);
}

TEST(LongText, OfALongerOneTheEndsAreKeptInWholeLinesAndTheRestIsCounted) {
  for (const int count : {470, 1000, 5000, 90000}) {
    const std::string text = many_lines(count);
    const LongText read_text = *read_ends(text, {std::uint64_t{1} << 30, 4000, 1000, 2000});
    const std::size_t mark = read_text.text.find('\x1e'), behind = read_text.text.find('\n', mark) + 1;
    ASSERT_NE(mark, std::string::npos) << count;
    EXPECT_TRUE(text.starts_with(read_text.text.substr(0, mark)));
    EXPECT_TRUE(text.ends_with("\n" + read_text.text.substr(behind)));
    EXPECT_EQ(read_text.left_out, text.size() - mark - (read_text.text.size() - behind));
    // the lines keep their numbers
    EXPECT_EQ(line_number(read_text.text, read_text.text.rfind("line ")), static_cast<std::uint64_t>(count));
    EXPECT_EQ(line_number(read_text.text, read_text.text.find("line 7\n")), 7u);
  }
}

TEST(LongText, WithoutLinesTheEndsAreKeptToo) {
  const LongText read_text = *read_ends(std::string(10000, 'a') + "the end");
  EXPECT_TRUE(read_text.text.ends_with("the end"));
  EXPECT_LT(read_text.text.size(), 3100u);
}

TEST(LongText, TooMuchAndTwoBytesALetterAreRefused) {
  EXPECT_EQ(read_ends(std::string((1 << 20) + 1, 'a')).error().what, "holds more than 1 MiB");
  std::string wide = "\xFF\xFE";
  for (int i = 0; i < 4000; ++i) wide += std::string("a\0", 2);
  EXPECT_FALSE(read_ends(wide).ok());
}

TEST(LongText, AReportSaysThatTheMiddleWasNotRead) {
  const std::string error =
      "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 23.64 GiB "
      "of which 1.12 GiB is free.\n";
  const std::string text = many_lines(3000) + error;
  LongText parts = *read_ends(text);
  const std::uint64_t left_out = parts.left_out;
  EXPECT_GT(left_out, 0u);
  const auto trace = read_error_text(std::move(parts), "train.log");
  ASSERT_TRUE(trace.ok());
  EXPECT_EQ(trace->properties.at("error.line"), "3001");
  EXPECT_EQ(trace->lost.at("bytes in the middle of the text that were not read"), left_out);
}

}  // namespace
}  // namespace faultline
