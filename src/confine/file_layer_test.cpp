#include "confine/file_layer.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>

#include <algorithm>
#include <cerrno>

#include "confine/confine_test_support.h"

namespace faultline::confine {
namespace {

class Layer : public testing::Test {
 protected:
  Layer() {
    std::filesystem::create_directory(folder_ / "aside");
    a_ = folder_.write("home/a", "of the user's");
  }
  Place find(const std::string& name) { return layer_.find(folder_ / "home", name, true, {}); }
  void write(const std::string& name, const std::string& text) {
    Place place = find(name);
    ASSERT_EQ(place.exists() ? layer_.make_own(place, false) : layer_.make_room(place), 0);
    std::ofstream(place.real) << text;
  }
  std::string seen(const std::string& name) {
    const Place place = find(name);
    return place.exists() ? content_of(place.real) : "nothing";
  }

  const TestFolder folder_;
  FileLayer layer_{folder_ / "aside", {}};
  std::string a_;
};

TEST_F(Layer, WhatIsWrittenIsSeenAndTheUsersFileIsAsBefore) {
  write("a", "changed");
  EXPECT_EQ(seen("a"), "changed");
  EXPECT_EQ(content_of(a_), "of the user's");
  const std::vector<Change> changes = layer_.changes();
  ASSERT_EQ(changes.size(), 1u);
  EXPECT_EQ(changes[0].kind, Change::Kind::kChanged);
  EXPECT_EQ(changes[0].path, a_);
}

TEST_F(Layer, WhatIsRemovedIsGoneForTheProgramAlone) {
  ASSERT_EQ(layer_.remove_file(find("a")), 0);
  EXPECT_FALSE(find("a").exists());
  EXPECT_EQ(find("a").error, ENOENT);
  EXPECT_EQ(content_of(a_), "of the user's");
}

TEST_F(Layer, ALinkIsFollowedAndDotsLeadBack) {
  std::filesystem::create_symlink("a", folder_ / "home/link");
  EXPECT_EQ(find("link").path, a_);
  EXPECT_EQ(find("../home/./a").path, a_);
  EXPECT_EQ(find("a/").error, ENOTDIR);
  std::filesystem::create_symlink("round", folder_ / "home/round");
  EXPECT_EQ(find("round").error, ELOOP);
}

TEST_F(Layer, ARenameMovesWhatIsAsideAndWhatIsNot) {
  write("b", "new");
  ASSERT_EQ(layer_.rename(find("b"), find("a"), true), 0);
  EXPECT_EQ(seen("a"), "new");
  EXPECT_EQ(seen("b"), "nothing");
  folder_.write("home/c", "c");
  ASSERT_EQ(layer_.rename(find("c"), find("a"), true), 0);
  EXPECT_EQ(seen("a"), "c");
  EXPECT_EQ(seen("c"), "nothing");
  EXPECT_EQ(layer_.rename(find("a"), find("a"), false), EEXIST);
  EXPECT_EQ(content_of(a_), "of the user's");
}

TEST_F(Layer, AnEmptyFolderIsReplacedWhetherItIsAsideOrNot) {
  for (const char* name : {"home/one", "home/two", "home/three"}) std::filesystem::create_directory(folder_ / name);
  ASSERT_EQ(layer_.rename(find("one"), find("two"), true), 0);
  write("three/x", "x");
  ASSERT_EQ(layer_.rename(find("two"), find("three"), true), ENOTEMPTY);
  ASSERT_EQ(layer_.rename(find("three"), find("two"), true), 0);
  EXPECT_EQ(seen("two/x"), "x");
  EXPECT_FALSE(find("one").exists());
  EXPECT_FALSE(find("three").exists());
}

TEST_F(Layer, ARenameThatFailsLeavesWhatWasSeen) {
  write("b", "new");
  write("d", "d");
  const Place from = find("b");
  std::filesystem::remove(from.real);  // behind the layer's back: the kernel will refuse
  EXPECT_EQ(layer_.rename(from, find("a"), true), ENOENT);
  EXPECT_EQ(seen("a"), "of the user's");
  EXPECT_EQ(layer_.rename(from, find("d"), true), ENOENT);
  EXPECT_EQ(seen("d"), "d");
}

TEST_F(Layer, AFileThatCannotBeCopiedStaysInItsFoldersList) {
  Place home = layer_.find("/", folder_ / "home", true, {});
  write("b", "new");
  ASSERT_EQ(layer_.make_listable(home), 0);
  const auto before = ::signal(SIGXFSZ, SIG_IGN);
  rlimit limit{};
  ::getrlimit(RLIMIT_FSIZE, &limit);
  const rlimit small{1, limit.rlim_max};
  ::setrlimit(RLIMIT_FSIZE, &small);
  Place place = find("a");
  EXPECT_EQ(layer_.make_own(place, true), EFBIG);
  ::setrlimit(RLIMIT_FSIZE, &limit);
  ::signal(SIGXFSZ, before);
  EXPECT_EQ(seen("a"), "of the user's");
  EXPECT_TRUE(std::filesystem::exists(home.real + "/a"));
}

}  // namespace
}  // namespace faultline::confine
