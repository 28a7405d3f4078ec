#include "facts/facts_test_support.h"
#include "rules/judge.h"

namespace faultline {
namespace {

std::vector<Finding> mismatches_of(const std::string& lines) {
  const Trace trace = traced(lines);
  std::vector<Finding> found;
  for (Finding& finding : judge(trace).findings) {
    if (finding.rule.ends_with("-mismatch")) found.push_back(std::move(finding));
  }
  return found;
}

std::string failure(const std::string& op, const std::vector<std::string>& operands, const std::string& words,
                    const std::string& at = "run.py:9 main") {
  std::string lines = "op-begin " + op + " at " + at + "\n";
  for (const std::string& operand : operands) lines += "tensor-note tensor=" + operand + "\n";
  return lines + "op-end \"" + words + "\" failed\n";
}

std::vector<std::string> tries_of(const std::string& op, const std::vector<std::string>& operands,
                                  const std::string& words, const std::string& at = "run.py:9 main") {
  const std::vector<Finding> found = mismatches_of(failure(op, operands, words, at));
  EXPECT_EQ(found.size(), 1u);
  std::vector<std::string> tries;
  for (const Finding& finding : found) {
    for (const Try& attempt : finding.tries) tries.push_back(attempt.what);
  }
  return tries;
}

const std::string kMm = failure("aten::mm", {"float32[10,20]", "float32[15,20]"},
                                "mat1 and mat2 shapes cannot be multiplied (10x20 and 15x20)");
const std::string kLater = "alloc 512 at run.py:10 main\n";

TEST(ShapeMismatchRule, WhatTheProgramDiedOfIsAnError) {
  ASSERT_EQ(mismatches_of(kMm).size(), 1u);
  EXPECT_EQ(mismatches_of(kMm)[0].severity, Severity::kError);
  // let go while it unwinds
  EXPECT_EQ(mismatches_of("alloc #x 512 at run.py:3 main\n" + kMm + "free #x\n")[0].severity, Severity::kError);
}

TEST(ShapeMismatchRule, WhatWasCaughtIsAWarningAndALibrarysOwnAttemptANote) {
  EXPECT_EQ(mismatches_of(kMm + kLater)[0].severity, Severity::kWarning);
  const std::string in_library = failure("aten::mm", {"float32[10,20]", "float32[15,20]"}, "",
                                         "/usr/lib/python3/dist-packages/lib/probe.py:4 probe");
  EXPECT_EQ(mismatches_of(in_library + kLater)[0].severity, Severity::kNote);
}

TEST(ShapeMismatchRule, EqualFailuresOfALineAreOneFinding) {
  const std::vector<Finding> found = mismatches_of(kMm + kMm + kMm + kLater);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].count, 3u);
}

TEST(ShapeMismatchRule, AnErrorThatPassesThroughAnOuterOperationIsToldOnce) {
  const std::string words = "mat1 and mat2 shapes cannot be multiplied (10x20 and 15x20)";
  const std::vector<Finding> found = mismatches_of("op-begin torch.nn.functional.linear at run.py:9 main\n" + kMm +
                                                   "op-end \"" + words + "\" failed\n");
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].location.op, "aten::mm");
}

TEST(ShapeMismatchRule, NotesOfAnotherThreadAreNotOperands) {
  const std::vector<Finding> found = mismatches_of(
      "op-begin aten::mm at run.py:9 main\ntensor-note tensor=float32[2,3]\ntensor-note thread=7 tensor=int8[1]\n"
      "tensor-note tensor=float32[2,3]\nop-end \"\" failed\n");
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].message.find("int8"), std::string::npos);
}

TEST(ShapeMismatchRule, WordsItDoesNotKnowCountWhereTheAlgebraRefusesTheShapes) {
  EXPECT_EQ(mismatches_of(failure("aten::mm", {"float32[2,3]", "float32[2,3]"}, "words of another version")).size(),
            1u);
  EXPECT_TRUE(mismatches_of(failure("aten::mm", {"float32[2,3]", "float32[3,2]"}, "words of another version")).empty());
  EXPECT_TRUE(mismatches_of(failure("aten::nonsense", {"float32[2,3]"}, "words of another version")).empty());
  EXPECT_TRUE(mismatches_of(failure("aten::mm", {"float32[2,3]", "float32[2,3]"}, "CUDA out of memory.")).empty());
}

TEST(ShapeMismatchRule, NothingIsProposedWithoutAProof) {
  EXPECT_TRUE(tries_of("aten::mm", {"float32[10,20]", "float32[7,15]"}, "shapes cannot be multiplied").empty());
  EXPECT_TRUE(tries_of("aten::add", {"float32[3,5]", "float32[4,7]"}, "must match the size of tensor b").empty());
  EXPECT_TRUE(
      tries_of("aten::cat", {"float32[2,3]", "float32[4,5]"}, "Sizes of tensors must match except in dimension 1.")
          .empty());
  EXPECT_TRUE(tries_of("aten::addmm", {"float32[9]", "float32[10,20]", "float32[15,20]"}, "shapes cannot be multiplied")
                  .empty());  // the bias fits neither
  EXPECT_TRUE(tries_of("aten::view", {"float32[7]"}, "shape '[2, 3, -1]' is invalid for input of size 7").empty());
  EXPECT_TRUE(
      tries_of("aten::scaled_dot_product_attention", {"float32[2,3]", "float32[4,5]"}, "shape mismatch").empty());
  EXPECT_TRUE(tries_of("aten::bmm", {"float32[2,3,4]", "float32[5,4,6]"},
                       "Expected size for first two dimensions of batch2 tensor to be: [2, 4] but got: [5, 4].")
                  .empty());
}

TEST(ShapeMismatchRule, AnAmbiguousArrangementIsNotProposed) {
  // [4] may stand for either 4 of [4,4,3]; [4,4,3] has two permutations that give [3,4,4].
  EXPECT_TRUE(tries_of("aten::mul", {"float32[4,4,3]", "float32[4]"}, "must match the size of tensor b").empty());
  EXPECT_TRUE(tries_of("aten::mul", {"float32[4,4,3]", "float32[3,4,4]"}, "must match the size of tensor b").empty());
}

TEST(ShapeMismatchRule, ALayersWeightIsNeverTransposed) {
  const std::string in_linear = "run.py:9 main > /usr/lib/python3/dist-packages/torch/nn/modules/linear.py:134 forward";
  const auto tries =
      tries_of("aten::mm", {"float32[10,20]", "float32[15,20]"}, "shapes cannot be multiplied", in_linear);
  ASSERT_EQ(tries.size(), 1u);
  EXPECT_NE(tries[0].find("nn.Linear(20, 20)"), std::string::npos);
}

TEST(ShapeMismatchRule, AProductOfWrongRanksIsMatmuls) {
  const auto tries = tries_of("aten::mm", {"float32[8,10,20]", "float32[20,5]"}, "self must be a matrix");
  ASSERT_EQ(tries.size(), 1u);
  EXPECT_NE(tries[0].find("torch.matmul"), std::string::npos);
  EXPECT_NE(tries[0].find("[8,10,5]"), std::string::npos);
}

TEST(ShapeMismatchRule, AViewIsGivenTheExtentThatFits) {
  const auto tries = tries_of("aten::view", {"float32[6,5]"}, "shape '[10, 5]' is invalid for input of size 30");
  ASSERT_EQ(tries.size(), 2u);
  EXPECT_NE(tries[0].find("Write 6 in place of 10"), std::string::npos);
  EXPECT_NE(tries[1].find("Write 3 in place of 5"), std::string::npos);
}

TEST(ShapeMismatchRule, AGroupedConvolutionCountsItsGroups) {
  const std::string words =
      "Given groups=4, weight of size [64, 3, 3, 3], expected input[8, 32, 32, 12] to have 12 channels, but got 32 "
      "channels instead";
  const auto tries = tries_of("aten::convolution", {"float32[8,32,32,12]", "float32[64,3,3,3]"}, words);
  ASSERT_EQ(tries.size(), 1u);
  EXPECT_NE(tries[0].find("permute(0, 3, 1, 2)"), std::string::npos);
}

TEST(ShapeMismatchRule, ALossOfColumnAndRowIsSqueezed) {
  const auto tries = tries_of("torch.nn.functional.binary_cross_entropy_with_logits", {"float32[8,1]", "float32[8]"},
                              "Target size (torch.Size([8])) must be the same as input size (torch.Size([8, 1]))");
  ASSERT_EQ(tries.size(), 2u);
  EXPECT_NE(tries[0].find("squeeze(-1)"), std::string::npos);
}

TEST(ShapeMismatchRule, ClassNumbersOfAFloatingTypeAreCast) {
  const auto tries = tries_of("aten::nll_loss_forward", {"float32[8,10]", "float32[8]"},
                              "'nll_loss_forward_reduce_cuda_kernel_2d_index' not implemented for 'Float'");
  ASSERT_EQ(tries.size(), 1u);
  EXPECT_NE(tries[0].find(".long()"), std::string::npos);
}

TEST(ShapeMismatchRule, TypesThatNothingDecidesAreLeftToTheUser) {
  const auto tries = tries_of("aten::mm", {"float32[2,3]", "float16[3,4]"},
                              "expected mat1 and mat2 to have the same dtype, but got: float != c10::Half");
  ASSERT_EQ(tries.size(), 1u);
  EXPECT_NE(tries[0].find("float32 or float16"), std::string::npos);
  EXPECT_TRUE(tries_of("aten::mm", {"float32[2,3]", "float16[5,4]"}, "expected mat1 and mat2 to have the same dtype")
                  .empty());  // the shapes would not fit either
}

// It casts float32, float16 and bfloat16 to one type, and leaves float64 as it is.
TEST(ShapeMismatchRule, AutocastIsProposedOnlyWhereItCastsBoth) {
  struct Row {
    const char* input;
    const char* weight;
    bool proposed;
  };
  for (const Row& row :
       {Row{"float32", "float16", true}, Row{"float32", "bfloat16", true}, Row{"float16", "float32", true},
        Row{"bfloat16", "float16", true}, Row{"float32", "float64", false}, Row{"float64", "float32", false},
        Row{"float16", "float64", false}, Row{"bfloat16", "float64", false}, Row{"float64", "float16", false}}) {
    const std::string input = row.input, weight = row.weight;
    for (const bool is_layer : {true, false}) {
      const std::string words = is_layer ? " op=parameter name=net.fc.weight operands=mat2" : "";
      const std::vector<Finding> found =
          mismatches_of("tensor w = " + weight + "[16,8]" + words +
                        "\nop-begin aten::mm at run.py:9 main > "
                        "/usr/lib/python3/dist-packages/torch/nn/modules/linear.py:134 forward\ntensor-note tensor=" +
                        input + "[4,16] at run.py:3 main\ntensor-note tensor=w at run.py:4 main\n" +
                        "op-end \"mat1 and mat2 must have the same dtype\" failed\n");
      ASSERT_EQ(found.size(), 1u) << input << weight;
      ASSERT_FALSE(found[0].tries.empty()) << input << weight;
      bool proposed = false;
      for (const Try& one : found[0].tries)
        proposed |=
            one.what.find("under `torch.autocast") != std::string::npos && one.what.find("cast") != std::string::npos;
      EXPECT_EQ(proposed, row.proposed && is_layer) << input << weight << is_layer;
      if (is_layer && weight == "float64") {
        EXPECT_TRUE(found[0].tries[0].what.starts_with("Make the layer `net.fc` " + input)) << found[0].tries[0].what;
      }
    }
  }
}

TEST(ShapeMismatchRule, TheOperandOnTheHostIsTheOneToMove) {
  const std::vector<Finding> found = mismatches_of(
      "alloc #x 24 tensor=float32[2,3] at run.py:3 main\nop-begin aten::mm at run.py:9 main\ntensor-note #x "
      "tensor=float32[2,3]\ntensor-note tensor=float32[3,4] at run.py:4 main\n"
      "op-end \"Expected all tensors to be on the same device, but found at least two devices\" failed\n");
  ASSERT_EQ(found.size(), 1u);
  ASSERT_EQ(found[0].tries.size(), 1u);
  EXPECT_NE(found[0].tries[0].what.find("operand 2 (float32[3,4])"), std::string::npos);
}

TEST(ShapeMismatchRule, EndsWithoutABeginAreNoFailures) {
  EXPECT_TRUE(mismatches_of("tensor-note tensor=float32[2]\nop-end \"size mismatch\" failed\n").empty());
}

TEST(MismatchRules, EachTroubleHasItsNameAndItsOperandsHaveTheirs) {
  struct Row {
    const char* op;
    const char* words;
    const char* rule;
  };
  for (const Row& row :
       {Row{"aten::addmm", "mat1 and mat2 shapes cannot be multiplied (4x16 and 8x8)", "tensor/shape-mismatch"},
        Row{"aten::addmm", "mat1 and mat2 must have the same dtype, but got Double and Half", "tensor/dtype-mismatch"},
        Row{"aten::embedding", "Expected tensor for argument #1 'indices' to have one of the following scalar types",
            "tensor/dtype-mismatch"},
        Row{"aten::add",
            "Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu!",
            "tensor/device-mismatch"},
        Row{"aten::index", "indices should be either on cpu or on the same device as the indexed tensor (cpu)",
            "tensor/device-mismatch"},
        Row{"aten::convolution",
            "Input type (torch.cuda.FloatTensor) and weight type (torch.FloatTensor) should be the same",
            "tensor/device-mismatch"},
        Row{"aten::convolution",
            "Input type (torch.cuda.HalfTensor) and bias type (torch.cuda.FloatTensor) should be the same",
            "tensor/dtype-mismatch"}}) {
    const std::vector<Finding> found = mismatches_of(
        "tensor w = float16[16,8] op=parameter name=net.fc.weight operands=mat2\nop-begin " + std::string(row.op) +
        " at run.py:9 main\ntensor-note tensor=float32[4,16] at run.py:3 main\ntensor-note tensor=w at run.py:4 "
        "main\n" +
        "op-end \"" + row.words + "\" failed\n");
    ASSERT_EQ(found.size(), 1u) << row.words;
    EXPECT_EQ(found[0].rule, row.rule) << row.words;
    const bool of_layer = found[0].rule == "tensor/dtype-mismatch" && std::string_view(row.op) != "aten::embedding";
    for (const std::string_view said :
         of_layer ? std::vector<std::string_view>{"The layer `net.fc` is float16", "its input is float32[4,16]"}
                  : std::vector<std::string_view>{"mat2 float16[16,8]", "(`net.fc.weight`)"})
      EXPECT_NE(found[0].message.find(said), std::string::npos) << found[0].message;
    ASSERT_EQ(found[0].related.size(), 2u);
    EXPECT_EQ(found[0].related[0].location.line, 3u);
    EXPECT_TRUE(found[0].related[0].what.starts_with("operand 1: float32[4,16]")) << found[0].related[0].what;
    EXPECT_EQ(found[0].related[1].location.line, 4u);
    EXPECT_TRUE(found[0].related[1].what.starts_with("mat2: float16[16,8], parameter `net.fc.weight`"))
        << found[0].related[1].what;
  }
}

}  // namespace
}  // namespace faultline
