#include "models/free_index.h"

#include <gtest/gtest.h>

#include <random>
#include <set>
#include <utility>

namespace faultline {
namespace {

TEST(FreeIndex, TheSmallestThatFitsAndOfThoseTheLowestAddress) {
  FreeIndex index;
  index.insert({2048, 9000, 1});
  index.insert({1024, 8000, 2});
  index.insert({1024, 4000, 3});
  EXPECT_EQ(index.first_at_least(600).at->block, 3u);
  EXPECT_EQ(index.first_at_least(1025).at->block, 1u);
  EXPECT_EQ(index.first_at_least(2049).at, nullptr);
  EXPECT_TRUE(index.erase(1024, 4000));
  EXPECT_FALSE(index.erase(1024, 4000));
  EXPECT_EQ(index.first_at_least(600).at->block, 2u);
}

TEST(FreeIndex, BehavesLikeAnOrderedSet) {
  for (const unsigned sizes : {1u, 7u, 100'000u}) {
    FreeIndex index;
    std::set<std::pair<std::uint64_t, std::uint64_t>> expected;
    std::mt19937_64 random(sizes);
    for (int step = 0; step < 20'000; ++step) {
      const std::uint64_t size = 512 * (1 + random() % sizes) + (random() % 4 == 0 ? random() % 512 : 0);
      const std::uint64_t address = random() % 5000 * 512;
      if (random() % 3 != 0) {
        if (expected.insert({size, address}).second) index.insert({size, address, 1});
      } else {
        const auto victim = expected.lower_bound({size, address});
        if (victim == expected.end()) continue;
        if (random() % 2 == 0) {
          ASSERT_TRUE(index.erase(victim->first, victim->second));
        } else {
          FreeIndex::Cursor at = index.first_at_least(victim->first);
          while (at.at->address != victim->second) at = index.next(at);
          index.erase(at);
        }
        expected.erase(victim);
      }
      const auto fit = expected.lower_bound({size, 0});
      const FreeEntry* found = index.first_at_least(size).at;
      ASSERT_EQ(found == nullptr, fit == expected.end());
      if (found != nullptr) {
        ASSERT_EQ((std::pair{found->size_bytes, found->address}), *fit);
      }
    }
    auto at = index.first();
    for (const auto& key : expected) {
      ASSERT_NE(at.at, nullptr);
      ASSERT_EQ((std::pair{at.at->size_bytes, at.at->address}), key);
      at = index.next(at);
    }
    EXPECT_EQ(at.at, nullptr);
    at = index.last();
    for (auto key = expected.rbegin(); key != expected.rend(); ++key) {
      ASSERT_NE(at.at, nullptr);
      ASSERT_EQ((std::pair{at.at->size_bytes, at.at->address}), *key);
      at = index.previous(at);
    }
    EXPECT_EQ(at.at, nullptr);
  }
}

}  // namespace
}  // namespace faultline
