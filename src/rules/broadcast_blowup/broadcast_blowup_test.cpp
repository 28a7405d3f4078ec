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

// --- results that could not be made

std::string refused(const std::string& op, const std::string& operands, const std::string& result,
                    const std::string& bytes) {
  return "device 0 capacity=16GiB\ntensor t = " + result + " op=" + op + " operands=\"" + operands +
         "\"\nalloc-failed " + bytes + " device-free=15GiB at run.py:9 main\nalloc #t " + bytes +
         " tensor=t at run.py:9 main\n";
}

TEST(LargeResults, AResultManyTimesLargerThanItsOperandsIsTold) {
  struct Row {
    const char *op, *operands, *result, *bytes, *advice;
  };
  for (const Row& row : {
           Row{"aten::sub", "float32[50000,1,128] float32[1,20000,128]", "float32[50000,20000,128]", "512000000000",
               "torch.cdist(a, b) makes only float32[50000,20000], 3.73 GiB"},
           Row{"aten::mul", "float32[50000,1,128] float32[1,20000,128]", "float32[50000,20000,128]", "512000000000",
               "a @ b.transpose(-1, -2) makes only"},
           Row{"aten::eq", "int64[200000,1] int64[1,200000]", "bool[200000,200000]", "40000000000", "in pieces of"},
           Row{"aten::mm", "float32[100000,64] float32[64,100000]", "float32[100000,100000]", "40000000000",
               "in pieces of 32,768 of the 100,000 in dimension 0"},
           Row{"aten::bmm", "float16[64,32768,64] float16[64,64,32768]", "float16[64,32768,32768]", "137438953472",
               "F.scaled_dot_product_attention"},
           Row{"aten::one_hot", "int64[1000000]", "int64[1000000,50000]", "400000000000", "F.cross_entropy"},
           Row{"aten::clone", "float32[4096,1,4096]", "float32[4096,1024,4096]", "68719476736", "Leave it expanded"},
           Row{"aten::repeat", "float32[4096,4096]", "float32[4194304,4096]", "68719476736", "Leave it expanded"},
       }) {
    const std::vector<Finding> found = blowups_of(refused(row.op, row.operands, row.result, row.bytes));
    ASSERT_EQ(found.size(), 1u) << row.op;
    EXPECT_NE(found[0].message.find(std::string("gives ") + row.result), std::string::npos) << found[0].message;
    bool advised = false;
    for (const Try& one : found[0].tries) advised = advised || one.what.find(row.advice) != std::string::npos;
    EXPECT_TRUE(advised) << row.op << ": " << found[0].tries.front().what;
    EXPECT_EQ(found[0].location.line, 9u);
  }
}

TEST(LargeResults, ThePieceThatIsNamedHasRoom) {
  const Finding found = blowups_of(refused("aten::sub", "float32[50000,1,128] float32[1,20000,128]",
                                           "float32[50000,20000,128]", "512000000000"))
                            .front();
  const std::int64_t rows = *found.number("piece_rows");
  EXPECT_LE(rows * 20000 * 128 * 4 * *found.number("at_once"), *found.number("room_bytes"));
  EXPECT_GT(2 * rows * 20000 * 128 * 4 * *found.number("at_once"), *found.number("room_bytes"));
}

TEST(LargeResults, WhatIsAsLargeAsItsOperandsIsSilent) {
  for (const auto& [op, operands, result, bytes] :
       {std::tuple("aten::add", "float32[50000,20000] float32[50000,20000]", "float32[50000,20000]", "4000000000"),
        std::tuple("aten::relu", "float32[50000,20000]", "float32[50000,20000]", "4000000000"),
        std::tuple("aten::mm", "float32[8192,8192] float32[8192,8192]", "float32[8192,8192]", "268435456"),
        std::tuple("aten::sub", "float32[1000,1,128] float32[1,1000,128]", "float32[1000,1000,128]", "512000000"),
        std::tuple("aten::convolution", "float32[512,3,224,224] float32[64,3,7,7]", "float32[512,64,224,224]",
                   "6576668672")})
    EXPECT_TRUE(blowups_of(refused(op, operands, result, bytes)).empty()) << op << operands;
}

TEST(LargeResults, WhatIsThereWhenItsSquareIsRefusedIsTold) {
  const std::vector<Finding> found = blowups_of(
      "device 0 capacity=16GiB\ntensor t = float32[16384,1024,128] op=aten::sub operands=\"float32[16384,1,128] "
      "float32[1,1024,128]\"\nalloc #t 8GiB tensor=t at run.py:9 main\n"
      "tensor p = float32[16384,1024,128] op=aten::pow operands=\"float32[16384,1024,128]\"\n"
      "alloc-failed 8GiB device-free=7GiB at run.py:10 main\nalloc #p 8GiB tensor=p at run.py:10 main\n");
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].location.line, 9u);
}

}  // namespace
}  // namespace faultline
