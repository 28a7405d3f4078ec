#include "base/hash.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <set>
#include <string>
#include <vector>

namespace faultline {
namespace {

TEST(Hash, EqualKeysHashEqualAndDifferentOnesDiffer) {
  EXPECT_EQ(SeededHash{}(std::string("name")), SeededHash{}(std::string_view("name")));
  std::set<std::uint64_t> hashes;
  for (std::uint64_t number = 0; number < 10'000; ++number) hashes.insert(hash_number(number << 32));
  for (std::size_t length = 0; length < 1'000; ++length)
    hashes.insert(hash_bytes(std::string(length, '\0').data(), length));
  EXPECT_EQ(hashes.size(), 11'000u);
}

TEST(Hash, EveryBitOfAKeyMovesTheLowBitsThatATableUses) {
  for (int bit = 0; bit < 64; ++bit) {
    int moved = 0;
    for (std::uint64_t number = 0; number < 64; ++number)
      moved += ((hash_number(number) ^ hash_number(number ^ std::uint64_t{1} << bit)) & 0xffff) != 0;
    EXPECT_GE(moved, 60) << bit;
  }
}

TEST(Hash, AnotherProcessHashesDifferently) {
  // Each process draws its own secret: what the writer of an input learns on one machine helps nowhere else.
  constexpr const char* kAsked = "FAULTLINE_TEST_HASH";
  if (const char* other = std::getenv(kAsked)) {
    EXPECT_NE(std::to_string(hash_number(7)), other);
    return;
  }
  ASSERT_EQ(::setenv(kAsked, std::to_string(hash_number(7)).c_str(), 1), 0);
  const int status = std::system("\"/proc/$PPID/exe\" --gtest_filter=Hash.AnotherProcessHashesDifferently > /dev/null");
  ::unsetenv(kAsked);
  EXPECT_EQ(status, 0);
}

// Keys that fall on one place of std::unordered_map<std::uint64_t, …>, whose hash is the number itself: multiples of its bucket count.
TEST(Hash, NumbersChosenForAnUnseededTableAreSpreadHere) {
  HashMap<std::uint64_t, int> map;
  map.reserve(10'000);
  const std::uint64_t buckets = map.bucket_count();
  for (std::uint64_t i = 0; i < 10'000; ++i) map[i * buckets] = 1;
  std::size_t longest = 0;
  for (std::size_t bucket = 0; bucket < map.bucket_count(); ++bucket)
    longest = std::max(longest, map.bucket_size(bucket));
  EXPECT_LT(longest, 64u);
}

// Pairs of words whose changes cancel in a hash of multiplications and rotations, whatever it starts from: the top bit of one word, and where the
// rotation takes it in the next.
TEST(Hash, ChangesThatCancelInAnUnkeyedMixDoNotCancelHere) {
  std::vector<std::uint64_t> words(64, 0x1234567890abcdefull);
  std::set<std::uint64_t> hashes;
  for (std::size_t at = 0; at + 2 < words.size(); ++at) {
    std::vector<std::uint64_t> changed = words;
    changed[at] ^= std::uint64_t{1} << 63;
    changed[at + 2] ^= std::rotl(std::uint64_t{1} << 63, 29);
    hashes.insert(hash_bytes(changed.data(), changed.size() * 8));
  }
  EXPECT_EQ(hashes.size(), words.size() - 2);
}

}  // namespace
}  // namespace faultline
