#include "base/units.h"

#include <gtest/gtest.h>

#include <limits>

#include "base/given_size.h"
#include "base/nearest_word.h"

namespace faultline {
namespace {

TEST(FormatBytes, UsesTheLargestUnitThatKeepsTheNumberAboveOne) {
  EXPECT_EQ(format_bytes(0), "0 B");
  EXPECT_EQ(format_bytes(1023), "1023 B");
  EXPECT_EQ(format_bytes(1024), "1.00 KiB");
  EXPECT_EQ(format_bytes(1536), "1.50 KiB");
  EXPECT_EQ(format_bytes(786 * kMiB), "786.00 MiB");
  EXPECT_EQ(format_bytes(kGiB), "1.00 GiB");
  EXPECT_EQ(format_bytes(400'000'000'000), "372.53 GiB");
  EXPECT_EQ(format_bytes(4'000'000'000'000), "3.64 TiB");
  EXPECT_EQ(format_bytes(std::numeric_limits<std::uint64_t>::max()), "16777216.00 TiB");
}

TEST(FormatCount, SetsACommaEveryThreeDigits) {
  EXPECT_EQ(format_count(0), "0");
  EXPECT_EQ(format_count(999), "999");
  EXPECT_EQ(format_count(1000), "1,000");
  EXPECT_EQ(format_count(1234567), "1,234,567");
  EXPECT_EQ(format_count(std::numeric_limits<std::uint64_t>::max()), "18,446,744,073,709,551,615");
}

TEST(ParseBytes, ReadsEveryUnitInAnyCase) {
  const struct {
    const char* text;
    std::uint64_t bytes;
  } cases[] = {{"0", 0},
               {"4096", 4096},
               {"4096B", 4096},
               {"512b", 512},
               {"1k", 1024},
               {"1KiB", 1024},
               {"1kB", 1000},
               {"512MiB", 512 * kMiB},
               {"512m", 512 * kMiB},
               {"512MB", 512'000'000},
               {"16GiB", 16 * kGiB},
               {"16gib", 16 * kGiB},
               {"16G", 16 * kGiB},
               {"16 GB", 16'000'000'000},
               {"1.5GiB", kGiB + kGiB / 2},
               {"2T", 2 * kTiB},
               {"2TiB", 2 * kTiB},
               {"2tb", 2'000'000'000'000},
               {"0.5KiB", 512}};
  for (const auto& [text, bytes] : cases) {
    const Result<std::uint64_t> parsed = parse_bytes(text);
    ASSERT_TRUE(parsed.ok()) << text;
    EXPECT_EQ(*parsed, bytes) << text;
  }
}

TEST(ParseBytes, RefusesWhatIsNoSizeAndSaysHowOneIsWritten) {
  for (const char* text : {"", " ", "GiB", "16XB", "16GiBs", "-1", "-1GiB", "nan", "inf", "1e30", "99999999999TiB",
                           "sixteen", "16,000", "0x10", "T4"}) {
    const Result<std::uint64_t> parsed = parse_bytes(text);
    ASSERT_FALSE(parsed.ok()) << text;
    EXPECT_EQ(parsed.error().what, "'" + std::string(text) + "' is not a size");
    EXPECT_NE(parsed.error().next.find("16GiB"), std::string::npos);
  }
}

TEST(ParseSize, RefusesANumberThatCanOnlyHaveLostItsUnit) {
  for (const char* text : {"600", "80", "1", "999999"}) {
    const Result<std::uint64_t> parsed = parse_size(text);
    ASSERT_FALSE(parsed.ok()) << text;
    EXPECT_EQ(parsed.error().what, "'" + std::string(text) + "' has no unit");
    EXPECT_NE(parsed.error().next.find(text + std::string("GiB")), std::string::npos);
  }
  EXPECT_EQ(*parse_size("0"), 0u);
  EXPECT_EQ(*parse_size("600MiB"), 600 * kMiB);
  EXPECT_EQ(*parse_size("8589934592"), 8 * kGiB);
  EXPECT_EQ(parse_size("x").error().what, "'x' is not a size");
}

TEST(NearestWord, NeighboursThatWereSwappedAreOneMistake) {
  EXPECT_EQ(edit_distance("4900", "4090"), 1u);
  EXPECT_EQ(edit_distance("ab", "ba"), 1u);
  EXPECT_EQ(edit_distance("abc", "cba"), 2u);
  EXPECT_EQ(edit_distance("", "abc"), 3u);
  EXPECT_EQ(edit_distance("explain", "exlpain"), 1u);
}

TEST(ParseBytes, ReadsBackWhatFormatBytesWrote) {
  for (const std::uint64_t size :
       {std::uint64_t{0}, std::uint64_t{512}, 3 * kKiB / 2, 786 * kMiB, 80 * kGiB, 3 * kTiB}) {
    const Result<std::uint64_t> parsed = parse_bytes(format_bytes(size));
    ASSERT_TRUE(parsed.ok()) << size;
    EXPECT_EQ(*parsed, size);
  }
}

}  // namespace
}  // namespace faultline
