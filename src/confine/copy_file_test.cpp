#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>

#include <cerrno>
#include <cstring>

#include "confine/confine_test_support.h"
#include "confine/file_layer.h"

namespace faultline::confine {
namespace {

TEST(CopyFile, ContentModeAndTimesAreTheSame) {
  const TestFolder folder;
  const std::string from = folder.write("from", "some words"), to = folder / "to";
  ASSERT_EQ(::chmod(from.c_str(), 0751), 0);
  const timespec times[2] = {{100, 1}, {200, 2}};
  ASSERT_EQ(::utimensat(AT_FDCWD, from.c_str(), times, 0), 0);
  ASSERT_EQ(copy_plain_file(from, to, true), 0);
  struct stat status {};
  ASSERT_EQ(::stat(to.c_str(), &status), 0);
  EXPECT_EQ(content_of(to), "some words");
  EXPECT_EQ(status.st_mode & 07777, 0751u);
  EXPECT_EQ(status.st_mtim.tv_sec, 200);
  EXPECT_EQ(copy_plain_file(from, to, true), EEXIST);
  EXPECT_EQ(copy_plain_file(folder / "nothing", folder / "other", true), ENOENT);
}

TEST(CopyFile, HolesStayHoles) {
  const TestFolder folder;
  const std::string from = folder.write("from", "begin"), to = folder / "to";
  ASSERT_EQ(::truncate(from.c_str(), 64 << 20), 0);
  ASSERT_EQ(copy_plain_file(from, to, true), 0);
  struct stat status {};
  ASSERT_EQ(::stat(to.c_str(), &status), 0);
  EXPECT_EQ(status.st_size, 64 << 20);
  EXPECT_LT(status.st_blocks * 512, 1 << 20);
}

TEST(CopyFile, AnOwnerThatTheNamespaceDoesNotKnowIsLeftOut) {
  if (::geteuid() != 0) GTEST_SKIP() << "a file of somebody else's is needed";
  const TestFolder folder;
  const std::string from = folder.write("from", "words"), to = folder / "to";
  ASSERT_EQ(::chown(from.c_str(), 4321, 4321), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    if (::unshare(CLONE_NEWUSER) != 0) ::_exit(77);
    const auto set = [](const char* file, const char* text) {
      const int opened = ::open(file, O_WRONLY | O_CLOEXEC);
      return opened >= 0 && ::write(opened, text, std::strlen(text)) > 0;
    };
    if (!set("/proc/self/setgroups", "deny") || !set("/proc/self/uid_map", "0 0 1") ||
        !set("/proc/self/gid_map", "0 0 1"))
      ::_exit(77);
    ::_exit(copy_plain_file(from, to, true));
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  if (WEXITSTATUS(status) == 77) GTEST_SKIP() << "no user namespace can be had here";
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_EQ(content_of(to), "words");
}

}  // namespace
}  // namespace faultline::confine
