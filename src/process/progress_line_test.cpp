#include "process/progress_line.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace faultline::process {
namespace {

TEST(ProgressLine, ALineFitsIntoItsTerminal) {
  EXPECT_EQ(fitted("reading x", 80, true), "reading x");
  EXPECT_EQ(fitted("reading a long name", 10, true), "reading …");
  EXPECT_EQ(fitted("reading a long name", 10, false), "readin...");
  EXPECT_EQ(fitted("a\x1b[31m\nb", 80, true).find('\x1b'), std::string::npos);
  EXPECT_EQ(fitted("a\nb", 80, true).find('\n'), std::string::npos);
  for (const int columns : {1, 2, 3, 5, 20})
    EXPECT_LE(fitted(std::string(100, 'x'), columns, false).size(), std::max(3, columns - 1));
  EXPECT_LE(fitted("漢字漢字漢字", 6, true).size(), 2 * 3 + 3);
}

TEST(ProgressLine, ReadingNamesTheInput) {
  EXPECT_EQ(reading("-"), "reading standard input");
  EXPECT_EQ(reading("/a/b/oom.pickle"), "reading oom.pickle");
}

TEST(ProgressLine, KnowsHowFarAFileIsRead) {
  const std::string path = (std::filesystem::path(::testing::TempDir()) / "progress_test").string();
  std::ofstream(path) << std::string(100'000, 'x');
  EXPECT_FALSE(position_in(path));  // nobody has opened it
  {
    std::FILE* file = std::fopen(path.c_str(), "rb");
    std::setvbuf(file, nullptr, _IONBF, 0);
    std::string taken(25'000, '\0');
    ASSERT_EQ(std::fread(taken.data(), 1, taken.size(), file), taken.size());
    const auto position = position_in(path);
    ASSERT_TRUE(position);
    EXPECT_EQ(position->first, 25'000U);
    EXPECT_EQ(position->second, 100'000U);
    std::fclose(file);
  }
  EXPECT_FALSE(position_in(path));
  std::filesystem::remove(path);
  EXPECT_FALSE(position_in(path));
}

}  // namespace
}  // namespace faultline::process
