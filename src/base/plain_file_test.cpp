#include "base/plain_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>

#include "base/byte_stream.h"

namespace faultline {
namespace {

std::string place(const std::string& name) {
  return testing::TempDir() + "/faultline-plain-" + std::to_string(::getpid()) + "-" + name;
}

TEST(PlainFile, APipeADeviceAndAFolderAreNotOpened) {
  const std::string pipe = place("pipe");
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  for (const std::string& path : {pipe, std::string("/dev/zero"), testing::TempDir()}) {
    const Result<int> opened = open_plain_file(path);
    ASSERT_FALSE(opened.ok()) << path;
    EXPECT_EQ(opened.error().what, "is not a plain file");
    EXPECT_FALSE(ByteStream::open(path, NamedBy::kInput).ok());
  }
  ::unlink(pipe.c_str());
}

TEST(PlainFile, ALinkIsFollowedUnlessItLeadsNowhere) {
  const std::string target = place("target"), link = place("link"), loop = place("loop");
  std::ofstream(target) << "content";
  std::filesystem::create_symlink(target, link);
  std::filesystem::create_symlink(loop, loop);
  const Result<std::string> content = read_plain_file(link, 100);
  ASSERT_TRUE(content.ok());
  EXPECT_EQ(*content, "content");
  EXPECT_FALSE(read_plain_file(link, 3).ok());
  EXPECT_EQ(read_plain_file(loop, 100).error().what, "is a link that leads back to itself");
  for (const std::string& path : {target, link, loop}) ::unlink(path.c_str());
}

TEST(PlainFile, AFileOfHolesIsRefusedWhoeverNamesIt) {
  const std::string path = place("hollow");
  std::ofstream(path) << "start";
  ASSERT_EQ(::truncate(path.c_str(), std::int64_t{200} << 30), 0);
  const Result<int> opened = open_plain_file(path);
  ASSERT_FALSE(opened.ok());
  EXPECT_NE(opened.error().what.find("is a file of holes: it claims 200.00 GiB"), std::string::npos)
      << opened.error().what;
  EXPECT_FALSE(ByteStream::open(path).ok());
  ASSERT_EQ(::truncate(path.c_str(), 1 << 20), 0);  // a small one is read as it is
  EXPECT_TRUE(ByteStream::open(path).ok());
  ::unlink(path.c_str());
}

}  // namespace
}  // namespace faultline
