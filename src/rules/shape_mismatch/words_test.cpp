#include "rules/shape_mismatch/words.h"

#include <gtest/gtest.h>

namespace faultline {
namespace {

TEST(Words, KnowsTensorFlows) {
  for (const char* shape :
       {"Matrix size-incompatible: In[0]: [2,3], In[1]: [2,3] [Op:MatMul]", "Incompatible shapes: [2,3] vs. [4,5]",
        "required broadcastable shapes [Op:AddV2] name: ",
        "ConcatOp : Dimension 1 in both shapes must be equal: shape[0] = [2,3] vs. shape[1] = [4,5] [Op:ConcatV2]",
        "Input to reshape is a tensor with 6 values, but the requested shape has 4 [Op:Reshape]",
        "Dimensions must be equal, but are 4 and 5 for MatMul with input shapes: [3,4], [5,6]",
        "Shape must be rank 2 but is rank 3 for MatMul with input shapes: [1,3,4], [4,6]",
        "Cannot reshape a tensor with 6 elements to shape [4] (4 elements) for Reshape with input shapes: [6], [1]",
        "input depth must be evenly divisible by filter depth: 3 vs 4"})
    EXPECT_EQ(trouble_of(shape), Trouble::kShape) << shape;
  EXPECT_EQ(trouble_of("cannot compute AddV2 as input #1(zero-based) was expected to be a int32 tensor but is a float "
                       "tensor [Op:AddV2]"),
            Trouble::kDtype);
  for (const char* other : {"Cannot parse tensor from proto", "Key: labels. Data types don't agree with the file's"})
    EXPECT_NE(trouble_of(other), Trouble::kShape) << other;
}

TEST(Words, SayWhetherItIsShapesTypesDevicesOrSomethingElse) {
  EXPECT_EQ(trouble_of("mat1 and mat2 shapes cannot be multiplied (10x20 and 5x15)"), Trouble::kShape);
  EXPECT_EQ(trouble_of("a and b must have same reduction dim, but got [10, 20] X [5, 15]."), Trouble::kShape);
  EXPECT_EQ(trouble_of("Number of dimensions of tensors must match.  Expected 2-D tensors, but got 3-D for tensor "
                       "number 1 in the list"),
            Trouble::kShape);
  EXPECT_EQ(trouble_of("Target size (torch.Size([8])) must be the same as input size (torch.Size([8, 1]))"),
            Trouble::kShape);
  EXPECT_EQ(trouble_of("expected mat1 and mat2 to have the same dtype, but got: float != c10::Half"), Trouble::kDtype);
  EXPECT_EQ(trouble_of("gather(): Expected dtype int32/int64 for index, but got torch.float32"), Trouble::kDtype);
  EXPECT_EQ(
      trouble_of("Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu!"),
      Trouble::kDevice);
  EXPECT_EQ(trouble_of("CUDA out of memory. Tried to allocate 2.00 GiB."), Trouble::kUnrelated);
  EXPECT_EQ(trouble_of("index out of range in self"), Trouble::kUnrelated);
  EXPECT_EQ(trouble_of("index 7 is out of bounds for dimension 0 with size 5"), Trouble::kUnrelated);
  EXPECT_EQ(trouble_of("\"linalg_eigh_cuda\" not implemented for 'Half'"), Trouble::kUnrelated);
  EXPECT_EQ(trouble_of(""), Trouble::kUnknown);
}

TEST(Words, InputAndWeightTypesDifferInTypeOrInDevice) {
  EXPECT_EQ(
      trouble_of("Input type (torch.cuda.HalfTensor) and weight type (torch.cuda.FloatTensor) should be the same"),
      Trouble::kDtype);
  EXPECT_EQ(trouble_of("Input type (torch.FloatTensor) and weight type (torch.cuda.FloatTensor) should be the same"),
            Trouble::kDevice);
  EXPECT_EQ(trouble_of("Input type (float) and bias type (c10::Half) should be the same"), Trouble::kDtype);
}

TEST(Words, ListsAndNumbersAreReadAsFarAsTheyAreWhole) {
  EXPECT_EQ(list_after("shape '[-1, 400]' is invalid", "shape '"), (Shape{-1, 400}));
  EXPECT_EQ(list_after("normalized_shape=[]", "normalized_shape="), Shape{});
  EXPECT_FALSE(list_after("shape '[4, 7", "shape '"));
  EXPECT_FALSE(list_after("shape '[4, x]", "shape '"));
  EXPECT_FALSE(list_after("shape '[99999999999999999999]", "shape '"));
  EXPECT_FALSE(list_after("nothing", "shape '"));
  EXPECT_EQ(number_after("Given groups=4, weight", "groups="), 4);
  EXPECT_FALSE(number_after("groups=", "groups="));
}

TEST(Words, LongWordsAreCutBetweenCharacters) {
  EXPECT_EQ(first_words("one\ntwo"), "one");
  const std::string cut = first_words(std::string(239, 'a') + "éé" + std::string(100, 'b'));
  EXPECT_EQ(cut, std::string(239, 'a') + " …");
}

}  // namespace
}  // namespace faultline
