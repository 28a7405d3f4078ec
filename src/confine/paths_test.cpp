#include "confine/paths.h"

#include <gtest/gtest.h>

namespace faultline::confine {
namespace {

TEST(Paths, AFolderHoldsItselfAndWhatIsBelowIt) {
  EXPECT_TRUE(lies_in("/a/b", "/a/b"));
  EXPECT_TRUE(lies_in("/a/b/c", "/a/b"));
  EXPECT_FALSE(lies_in("/a/bc", "/a/b"));
  EXPECT_FALSE(lies_in("/a", "/a/b"));
}

TEST(Paths, ThePartsOfAPath) {
  EXPECT_EQ(joined("/", "a"), "/a");
  EXPECT_EQ(joined("/a", "b"), "/a/b");
  EXPECT_EQ(parent_of("/a/b"), "/a");
  EXPECT_EQ(parent_of("/a"), "/");
  EXPECT_EQ(parent_of("/"), "/");
  EXPECT_EQ(name_in("/a/b"), "b");
  std::deque<std::string> parts = {"z"};
  split_before(parts, "//a/../b/");
  EXPECT_EQ(parts, (std::deque<std::string>{"a", "..", "b", "z"}));
}

}  // namespace
}  // namespace faultline::confine
