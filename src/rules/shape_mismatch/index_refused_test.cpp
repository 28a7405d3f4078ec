#include <gtest/gtest.h>

#include "facts/facts_test_support.h"
#include "rules/judge.h"

namespace faultline {
namespace {

std::vector<Finding> refused(const std::string& words, const std::string& after = "") {
  const Trace trace = traced("op-begin StridedSlice at run.py:5 main\ntensor-note tensor=float32[10,20]\nop-end \"" +
                             words + "\" failed\n" + after);
  std::vector<Finding> found;
  for (Finding& finding : judge(trace).findings) {
    if (finding.rule == "tensor/index-out-of-range") found.push_back(std::move(finding));
  }
  return found;
}

TEST(IndexRefused, HasTheIndexTheDimensionAndItsSize) {
  const std::vector<Finding> found = refused(
      "{{function_node __wrapped__StridedSlice}} slice index 25 of dimension 1 out of bounds. [Op:StridedSlice]");
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].number("index"), 25);
  EXPECT_EQ(found[0].number("size"), 20);
  EXPECT_EQ(found[0].severity, Severity::kError);
  EXPECT_EQ(found[0].confidence, Confidence::kProved);
  EXPECT_EQ(found[0].location.line, 5u);
}

TEST(IndexRefused, WhatWasCaughtIsAWarning) {
  const std::string words = "indices[2] = -1 is not in [0, 10)";
  EXPECT_EQ(refused(words, "alloc 512 at run.py:10 main\n").at(0).severity, Severity::kWarning);
  EXPECT_EQ(refused(words).at(0).number("size"), 10);
  EXPECT_EQ(refused(words).at(0).number("index"), -1);
}

TEST(IndexRefused, SaysOfWhatTheSizeIs) {
  const auto said = [](const std::string& words) { return refused(words).at(0).message; };
  EXPECT_NE(said("indices[2] = 1005 is not in [0, 1000)").find("1005 was requested in a dimension of 1000 entries"),
            std::string::npos);
  EXPECT_NE(said("slice index 25 of dimension 1 out of bounds.").find("25 was requested of dimension 1, which has 20"),
            std::string::npos);
}

TEST(IndexRefused, KnowsAnIndexThatStandsAlone) {
  const std::vector<Finding> found = refused(
      "Error in user-defined function passed to MapDataset:1 transformation with iterator: "
      "Iterator::Root::ParallelMapV2: indices = 2 is not in [0, 2) [[{{node GatherV2}}]] [Op:IteratorGetNext]");
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].number("index"), 2);
  EXPECT_EQ(found[0].number("size"), 2);
}

TEST(IndexRefused, KnowsALabelThatIsNoClass) {
  const std::vector<Finding> found =
      refused("Received a label value of 10 which is outside the valid range of [0, 10).  Label values: 1 2 3 10");
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].number("index"), 10);
  EXPECT_EQ(found[0].number("size"), 10);
  EXPECT_NE(found[0].message.find("a loss of 10 classes (0 to 9)"), std::string::npos) << found[0].message;
}

TEST(IndexRefused, OtherWordsAreNone) {
  for (const char* words :
       {"slice index", "slice index ten of dimension 0 out of bounds", "slice index 3 of dimension 0",
        "Matrix size-incompatible: In[0]: [10,20], In[1]: [5,15]", "indices[0] = 3", "indices = 2",
        "indices are = 2 is not in [0, 2)", "Received a label value of 3", ""}) {
    EXPECT_TRUE(refused(words).empty()) << words;
  }
}

}  // namespace
}  // namespace faultline
