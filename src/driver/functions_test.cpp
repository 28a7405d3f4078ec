#include "driver/functions.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace faultline::driver {
namespace {

std::string found(std::string_view base, int version, StreamKind stream) {
  const std::optional<std::size_t> at = find_variant(base, version, stream);
  if (!at) return "none";
  const Variant& variant = all_variants()[*at];
  return std::string(variant.base) + " " + std::to_string(variant.version) +
         (variant.stream == StreamKind::kPerThread ? " per thread" : "");
}

TEST(DriverFunctions, ListIsSortedAndHoldsEachVariantOnce) {
  const auto before = [](const Variant& a, const Variant& b) {
    return std::tuple(a.base, a.version, a.stream) < std::tuple(b.base, b.version, b.stream);
  };
  const auto all = all_variants();
  EXPECT_GT(all.size(), 600u);
  for (std::size_t at = 1; at < all.size(); ++at) EXPECT_TRUE(before(all[at - 1], all[at])) << all[at].base;
}

TEST(DriverFunctions, NewestVariantNotNewerThanAskedForIsFound) {
  EXPECT_EQ(found("cuMemAlloc", 13000, StreamKind::kLegacy), "cuMemAlloc 3020");
  EXPECT_EQ(found("cuMemAlloc", 3000, StreamKind::kLegacy), "cuMemAlloc 2000");
  EXPECT_EQ(found("cuCtxCreate", 11030, StreamKind::kLegacy), "cuCtxCreate 3020");
  EXPECT_EQ(found("cuCtxCreate", 12000, StreamKind::kLegacy), "cuCtxCreate 11040");
  EXPECT_EQ(found("cuCtxCreate", 12050, StreamKind::kLegacy), "cuCtxCreate 12050");
}

TEST(DriverFunctions, PerThreadFlagPicksTheTwinWhereThereIsOne) {
  EXPECT_EQ(found("cuLaunchKernel", 12000, StreamKind::kPerThread), "cuLaunchKernel 7000 per thread");
  EXPECT_EQ(found("cuLaunchKernel", 12000, StreamKind::kLegacy), "cuLaunchKernel 4000");
  EXPECT_EQ(found("cuMemAlloc", 12000, StreamKind::kPerThread), "cuMemAlloc 3020");
}

TEST(DriverFunctions, UnknownNamesAreNotFound) {
  EXPECT_EQ(found("cuNoSuchFunction", 13000, StreamKind::kLegacy), "none");
  EXPECT_EQ(found("cuMemAlloc_v2", 13000, StreamKind::kLegacy), "none");
  EXPECT_EQ(found("cuMemAllocAsync", 11000, StreamKind::kLegacy), "none");
}

}  // namespace
}  // namespace faultline::driver
