#include "process/plain_path.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace faultline::process {
namespace {

namespace fs = std::filesystem;

// A folder for temporary files of its own, so that no link is left from another run.
class PlainPath : public testing::Test {
 protected:
  PlainPath() {
    std::string pattern = testing::TempDir() + "/faultline-path-XXXXXX";
    root_ = fs::canonical(::mkdtemp(pattern.data()));
    if (const char* before = std::getenv("TMPDIR")) before_ = before;
    fs::create_directories(root_ / "tmp");
    ::setenv("TMPDIR", (root_ / "tmp").c_str(), 1);
    fs::create_directories(root_ / "a b:c");
    file_ = root_ / "a b:c" / "lib.so";
    std::ofstream(file_) << "here";
  }
  ~PlainPath() override {
    before_.empty() ? ::unsetenv("TMPDIR") : ::setenv("TMPDIR", before_.c_str(), 1);
    fs::remove_all(root_);
  }

  static std::string read(const std::string& path) {
    std::string text;
    std::ifstream(path) >> text;
    return text;
  }

  fs::path root_;
  std::string before_;
  std::string file_;
};

TEST_F(PlainPath, WithoutASeparatorItIsThePathItself) {
  EXPECT_EQ(*plain_path("/usr/lib/x.so", kPreloadSeparators, root_), "/usr/lib/x.so");
  EXPECT_EQ(*plain_path("/a b/python", kSearchPathSeparators, root_), "/a b/python");
}

TEST_F(PlainPath, AnyOtherIsNamedByALinkInTheRunsFolder) {
  const Result<std::string> link = plain_path(file_, kPreloadSeparators, root_);
  ASSERT_TRUE(link.ok()) << link.error().message();
  EXPECT_TRUE(link->starts_with(root_.string() + "/links/")) << *link;
  EXPECT_EQ(link->find_first_of(kPreloadSeparators), std::string::npos) << *link;
  EXPECT_EQ(read(*link), "here");
  EXPECT_EQ(*plain_path(file_, kPreloadSeparators, root_), *link);
}

TEST_F(PlainPath, WhereTheRunsFolderHasASeparatorTooTheLinkIsTemporary) {
  const mode_t umask_before = ::umask(0077);
  const Result<std::string> link = plain_path(file_, kPreloadSeparators, root_ / "a b:c");
  ::umask(umask_before);
  ASSERT_TRUE(link.ok()) << link.error().message();
  EXPECT_TRUE(link->starts_with((root_ / "tmp").string())) << *link;
  EXPECT_EQ(read(*link), "here");
  struct stat folder {};
  ASSERT_EQ(::stat(fs::path(*link).parent_path().c_str(), &folder), 0);
  EXPECT_EQ(folder.st_mode & 0777, 0711u);  // nobody else writes; a program that gives up its rights passes through
}

TEST_F(PlainPath, AFolderThatOthersCanWriteIsNotUsed) {
  const fs::path own = root_ / "links";
  fs::create_directories(own);
  ::chmod(own.c_str(), 0777);
  const Result<std::string> link = plain_path(file_, kPreloadSeparators, root_);
  ASSERT_TRUE(link.ok()) << link.error().message();
  EXPECT_FALSE(link->starts_with(own.string())) << *link;
  fs::remove(own);
  fs::create_directory_symlink(root_, own);  // nor one that somebody else's link leads to
  EXPECT_FALSE(plain_path(file_, kPreloadSeparators, root_)->starts_with(own.string()));
}

TEST_F(PlainPath, ALinkThatLeadsElsewhereIsReplaced) {
  const std::string link = *plain_path(file_, kPreloadSeparators, root_);
  fs::remove(link);
  fs::create_symlink("/elsewhere", link);
  EXPECT_EQ(read(*plain_path(file_, kPreloadSeparators, root_)), "here");
}

}  // namespace
}  // namespace faultline::process
