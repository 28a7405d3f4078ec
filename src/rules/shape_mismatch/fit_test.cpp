#include "rules/shape_mismatch/fit.h"

#include <gtest/gtest.h>

namespace faultline {
namespace {

TEST(Fit, MatmulTakesVectorsMatricesAndBatches) {
  EXPECT_EQ(matmul({3}, {3}), Shape{});
  EXPECT_EQ(matmul({2, 3}, {3}), Shape{2});
  EXPECT_EQ(matmul({3}, {3, 4}), Shape{4});
  EXPECT_EQ(matmul({8, 2, 3}, {3, 4}), (Shape{8, 2, 4}));
  EXPECT_EQ(matmul({8, 1, 2, 3}, {5, 3, 4}), (Shape{8, 5, 2, 4}));
  EXPECT_FALSE(matmul({2, 3}, {4, 3}));
  EXPECT_FALSE(matmul({8, 2, 3}, {7, 3, 4}));
  EXPECT_FALSE(matmul({}, {3}));
}

TEST(Fit, StrictProductsAskForTheirOwnRanks) {
  EXPECT_TRUE(product("mm", {2, 3}, {3, 4}));
  EXPECT_FALSE(product("mm", {1, 2, 3}, {3, 4}));
  EXPECT_FALSE(product("addmm", {1, 2, 3}, {3, 4}));
  EXPECT_TRUE(product("baddbmm", {5, 2, 3}, {5, 3, 4}));
  EXPECT_FALSE(product("bmm", {1, 2, 3}, {5, 3, 4}));  // matmul would broadcast the batch
  EXPECT_FALSE(product("mv", {2, 3}, {3, 1}));
  EXPECT_TRUE(product("matmul", {1, 2, 3}, {3, 4}));
}

TEST(Fit, CatAsksForEqualExtentsButOne) {
  EXPECT_EQ(cat({{8, 64}, {8, 32}}, 1), (Shape{8, 96}));
  EXPECT_FALSE(cat({{8, 64}, {8, 32}}, 0));
  EXPECT_FALSE(cat({{8, 64}, {8, 32, 1}}, 1));
  EXPECT_FALSE(cat({{8, 64}, {8, 64}}, 2));
  EXPECT_EQ(cat({{0}, {8, 64}}, 1), (Shape{8, 64}));
}

TEST(Fit, ClassLossesWantTheClassesSecond) {
  EXPECT_TRUE(class_loss_fits({8, 10}, {8}, false));
  EXPECT_TRUE(class_loss_fits({8, 50, 10}, {8, 10}, false));
  EXPECT_FALSE(class_loss_fits({8, 10, 50}, {8, 10}, false));
  EXPECT_FALSE(class_loss_fits({8, 10}, {8, 1}, false));
  EXPECT_TRUE(class_loss_fits({10}, {}, false));
  EXPECT_TRUE(class_loss_fits({8, 10}, {8, 10}, true));
  EXPECT_FALSE(class_loss_fits({8, 10}, {8}, true));
}

TEST(Fit, ChannelsOfAConvolutionCountItsGroups) {
  EXPECT_EQ(channels_wanted({64, 3, 7, 7}, 1, false), 3);
  EXPECT_EQ(channels_wanted({64, 3, 7, 7}, 4, false), 12);
  EXPECT_EQ(channels_wanted({64, 3, 7, 7}, 4, true), 64);
  EXPECT_EQ(channels_wanted({64, 3}, 1, false), -1);
}

FailedOp failed(std::string_view op, std::vector<Shape> shapes) {
  FailedOp result;
  result.op = op;
  for (Shape& shape : shapes) {
    Given given;
    given.shape = given.whole = std::move(shape);
    given.dtype = "float32";
    result.operands.push_back(std::move(given));
  }
  return result;
}

TEST(Fit, AnInPlaceOperationKeepsItsShape) {
  EXPECT_EQ(fit_of(failed("aten::add", {{3, 4}, {2, 3, 4}})), Fit::kYes);
  EXPECT_EQ(fit_of(failed("aten::add_", {{3, 4}, {2, 3, 4}})), Fit::kNo);
  EXPECT_EQ(fit_of(failed("aten::add_", {{2, 3, 4}, {3, 4}})), Fit::kYes);
}

TEST(Fit, TheAddedOperandHasToFitTheProduct) {
  EXPECT_EQ(fit_of(failed("aten::addmm", {{4}, {2, 3}, {3, 4}})), Fit::kYes);
  EXPECT_EQ(fit_of(failed("aten::addmm", {{5}, {2, 3}, {3, 4}})), Fit::kNo);
  EXPECT_EQ(fit_of(failed("aten::linear", {{2, 3}, {4, 3}})), Fit::kYes);
}

TEST(Fit, WhatItDoesNotKnowItDoesNotJudge) {
  EXPECT_EQ(fit_of(failed("aten::index_put_", {{3}, {4}})), Fit::kUnknown);
  EXPECT_EQ(fit_of(failed("aten::mm", {})), Fit::kUnknown);
  FailedOp cut = failed("aten::mm", {{2, 3}, {4, 5}});
  cut.has_all_operands = false;
  EXPECT_EQ(fit_of(cut), Fit::kUnknown);
}

}  // namespace
}  // namespace faultline
