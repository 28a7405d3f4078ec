#include "base/units.h"
#include "facts/facts_test_support.h"
#include "rules/judge.h"

namespace faultline {
namespace {

std::vector<Finding> blowups_of(const std::string& lines) {
  const Trace trace = traced(lines);
  std::vector<Finding> found;
  for (Finding& finding : judge(trace).findings) {
    if (finding.rule == "tensor/broadcast-blowup") found.push_back(std::move(finding));
  }
  return found;
}

const std::string kColumn = "tensor c = float32[4096,1] op=aten::mm\nalloc #c 16KiB tensor=c at run.py:3 main\n";
const std::string kRow = "tensor r = float32[4096] op=aten::_to_copy\nalloc #r 16KiB tensor=r at run.py:4 main\n";
const std::string kSquare =
    "tensor d = float32[4096,4096] op=aten::sub operands=\"float32[4096,1] float32[4096]\"\nalloc #d 64MiB tensor=d at "
    "run.py:9 main\n";

TEST(BroadcastBlowupRule, AColumnAgainstARowIsFound) {
  const std::vector<Finding> found = blowups_of(kColumn + kRow + kSquare);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].location.line, 9u);
  EXPECT_EQ(found[0].bytes, 64 * kMiB);
  EXPECT_EQ(found[0].tries[0].saves_bytes, 64 * kMiB - 16 * kKiB);
}

TEST(BroadcastBlowupRule, AColumnThatNothingWasMadeAsIsAViewAndMeant) {
  EXPECT_TRUE(blowups_of(kRow + kSquare).empty());
  EXPECT_TRUE(blowups_of(kColumn + kSquare).empty());
  EXPECT_TRUE(blowups_of(kColumn + kRow + "free #c\n" + kSquare).empty());  // the column there was is gone
}

TEST(BroadcastBlowupRule, ALineIsToldOnceWithItsWorst) {
  const std::string again = "alloc #d2 64MiB tensor=d at run.py:9 main\n";
  const std::vector<Finding> found = blowups_of(kColumn + kRow + kSquare + again);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].count, 2u);
}

TEST(BroadcastBlowupRule, EqualExtentsByChanceInOtherDimensionsAreSilent) {
  // (B, N, 1) with (N,): frequencies by position, as likely as not.
  EXPECT_TRUE(blowups_of("tensor c = float32[8,2048,1] op=aten::mm\nalloc #c 64KiB tensor=c at run.py:3 main\ntensor r "
                         "= float32[2048] op=aten::exp\nalloc #r 8KiB tensor=r at run.py:4 main\n"
                         "tensor d = float32[8,2048,2048] op=aten::mul operands=\"float32[8,2048,1] "
                         "float32[2048]\"\nalloc #d 128MiB tensor=d at run.py:9 main\n")
                  .empty());
}

TEST(BroadcastBlowupRule, ASquareBatchIsFoundInItsLastDimension) {
  const std::vector<Finding> found = blowups_of(
      "tensor c = float32[256,256,1] op=aten::mm\nalloc #c 256KiB tensor=c at run.py:3 main\ntensor r = "
      "float32[256,256] op=aten::exp\nalloc #r 256KiB tensor=r at run.py:4 main\n"
      "tensor d = float32[256,256,256] op=aten::mul operands=\"float32[256,256,1] float32[256,256]\"\nalloc #d 64MiB "
      "tensor=d at run.py:9 main\n");
  ASSERT_EQ(found.size(), 1u);
}

std::string loss(const std::string& operands) {
  return "tensor l = float32[] op=aten::mse_loss operands=\"" + operands +
         "\"\nalloc #l 512 tensor=l at run.py:9 main\n";
}

TEST(BroadcastBlowupRule, ALossIsWrongFromTwoElementsOn) {
  EXPECT_EQ(blowups_of(loss("float32[2,1] float32[2]")).size(), 1u);
  EXPECT_TRUE(blowups_of(loss("float32[1,1] float32[1]")).empty());
  // one number for each row: no larger than what it was given
  EXPECT_TRUE(blowups_of(loss("float32[8,10] float32[8,1]")).empty());
  EXPECT_TRUE(blowups_of(loss("float32[64,64] float32[64,64]")).empty());  // nothing says that these were anything else
}

TEST(BroadcastBlowupRule, AnOperationOnTheHostIsNotJudged) {
  EXPECT_TRUE(blowups_of(loss("float32[64,1] float32[64]@cpu")).empty());
}

TEST(BroadcastBlowupRule, OperandsThatAreNotUnderstoodAreNotJudged) {
  EXPECT_TRUE(blowups_of(loss("float32[64,1] float32[64] …3")).empty());
}

}  // namespace
}  // namespace faultline
