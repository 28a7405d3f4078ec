#include "base/whole_file.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <filesystem>
#include <fstream>

#include "base/temporary_folder.h"

namespace faultline {
namespace {

void write(const std::string& path, const std::string& text) { std::ofstream(path) << text; }
std::string read(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(WholeFile, NothingIsReplacedWithoutLeave) {
  const Result<TemporaryFolder> made = TemporaryFolder::make();
  ASSERT_TRUE(made);
  const std::string folder = made->path();
  write(folder + "/mine", "precious");
  write(folder + "/new", "new");
  EXPECT_EQ(put_in_place(folder + "/new", folder + "/mine", false), EEXIST);
  EXPECT_EQ(read(folder + "/mine"), "precious");
  EXPECT_FALSE(is_there(folder + "/new"));
}

TEST(WholeFile, ALinkThatLeadsNowhereIsSomething) {
  const Result<TemporaryFolder> made = TemporaryFolder::make();
  ASSERT_TRUE(made);
  const std::string folder = made->path();
  std::filesystem::create_symlink("nowhere", folder + "/link");
  write(folder + "/new", "new");
  EXPECT_TRUE(is_there(folder + "/link"));
  EXPECT_EQ(put_in_place(folder + "/new", folder + "/link", false), EEXIST);
  EXPECT_TRUE(std::filesystem::is_symlink(folder + "/link"));
}

TEST(WholeFile, ANewNameAndOneThatMayBeReplacedGetTheContent) {
  const Result<TemporaryFolder> made = TemporaryFolder::make();
  ASSERT_TRUE(made);
  const std::string folder = made->path();
  for (const bool replaces : {false, true}) {
    write(folder + "/new", replaces ? "second" : "first");
    EXPECT_EQ(put_in_place(folder + "/new", folder + "/file", replaces), 0);
    EXPECT_EQ(read(folder + "/file"), replaces ? "second" : "first");
  }
}

TEST(WholeFile, TheNameBesideIsNobodys) {
  const Result<TemporaryFolder> made = TemporaryFolder::make();
  ASSERT_TRUE(made);
  const std::string folder = made->path();
  const std::string one = name_beside(folder + "/file");
  EXPECT_TRUE(one.starts_with(folder + "/file"));
  EXPECT_NE(one, name_beside(folder + "/file"));
}

}  // namespace
}  // namespace faultline
