#include "base/result.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "base/check.h"

namespace faultline {
namespace {

Status refuse() { return Error{"it is broken", 7, "Mend it."}; }

TEST(Error, IsOneSentenceWithSubjectPlaceAndAdvice) {
  EXPECT_EQ((Error{"it is broken", {}, {}}.message()), "it is broken");
  EXPECT_EQ((Error{"it is broken", 7, {}}.message()), "it is broken at byte 7");
  EXPECT_EQ((Error{"it is broken", 7, "Mend it."}.message("file.pickle")),
            "file.pickle: it is broken at byte 7. Mend it.");
  EXPECT_EQ((Error{"it is broken", 0, {}}.message()), "it is broken at byte 0");
}

TEST(Result, HoldsAValueOrAnError) {
  Result<std::string> good(std::string("text"));
  ASSERT_TRUE(good.ok());
  EXPECT_EQ(*good, "text");
  EXPECT_EQ(good->size(), 4u);
  const Result<std::string> bad(Error{"none", 3, {}});
  ASSERT_FALSE(bad);
  EXPECT_EQ(bad.error().what, "none");
  EXPECT_EQ(bad.error().offset, 3u);
}

TEST(Result, CarriesValuesThatCanOnlyBeMoved) {
  Result<std::unique_ptr<int>> made(std::make_unique<int>(5));
  const std::unique_ptr<int> taken = std::move(made).value();
  EXPECT_EQ(*taken, 5);
}

TEST(Status, KeepsItsErrorThroughCopiesAndMoves) {
  const Status first = refuse();
  const Status copy = first;
  Status moved = refuse();
  moved = Ok{};
  EXPECT_TRUE(moved.ok());
  moved = refuse();
  for (const Status* status : {&first, &copy, static_cast<const Status*>(&moved)}) {
    ASSERT_FALSE(status->ok());
    EXPECT_EQ(status->error().message("x"), "x: it is broken at byte 7. Mend it.");
  }
}

TEST(Check, StopsWithStatusThreeAndNamesThePlace) {
  EXPECT_EXIT(FAULTLINE_CHECK(1 + 1 == 3), testing::ExitedWithCode(3),
              "faultline: internal error: 1 \\+ 1 == 3 does not hold \\(.*result_test\\.cpp:");
}

TEST(Check, DoesWhatItWasToldInPlaceOfStopping) {
  set_check_handler([](const char* condition, const char*, int) { throw std::string(condition); });
  EXPECT_THROW(FAULTLINE_CHECK(1 + 1 == 3), std::string);
  set_check_handler(nullptr);
}

}  // namespace
}  // namespace faultline
