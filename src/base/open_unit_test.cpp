#include "base/open_unit.h"

#include <gtest/gtest.h>

namespace faultline {
namespace {

TEST(OpenUnit, SaysWhatTheTextSaid) {
  EXPECT_EQ(open_unit_words(3000000000, 3221225472), "3 GB");
  EXPECT_EQ(open_unit_words(1024000, 1048576), "1024 kB");
  EXPECT_EQ(open_unit_words(1024000000, 1073741824), "1024 MB");
  EXPECT_EQ(open_unit_words(112495000, 117970042), "112.50 MB");  // 112.495 to 112.505
  EXPECT_EQ(open_unit_words(1150390500, 1235223467), "1.150391 GB");
}

TEST(OpenUnit, NothingOfOtherBounds) {
  EXPECT_FALSE(open_unit_words(0, 0));
  EXPECT_FALSE(open_unit_words(5, 5));
  EXPECT_FALSE(open_unit_words(5578088776, 5588826193));  // 5.20 GiB, rounded
  EXPECT_FALSE(open_unit_words(1, 18446744073709551615u));
  EXPECT_FALSE(open_unit_words(3000000000, 3221225473));
}

}  // namespace
}  // namespace faultline
