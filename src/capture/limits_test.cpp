// What the recorder keeps of a program has a limit each.
#include <gtest/gtest.h>

#include "capture/known_memory.h"
#include "capture/names.h"
#include "capture/new_ids.h"

namespace faultline::capture {
namespace {

TEST(CaptureLimits, IdsEndBeforeTheyBeginAgain) {
  NewIds ids(NewIds::kEnd - 3);
  EXPECT_EQ(ids.next(), NewIds::kEnd - 2);
  EXPECT_EQ(ids.next(), NewIds::kEnd - 1);
  EXPECT_THROW(ids.next(), EndOfRecording);
  EXPECT_THROW(ids.next(), EndOfRecording);
}

TEST(CaptureLimits, NamesBeyondTheLimitAreUnknownAndTheOthersStay) {
  Names names;
  std::uint32_t kept = 0;
  while (names.add("name " + std::to_string(kept))) ++kept;
  EXPECT_EQ(kept, 1u << 18);
  EXPECT_EQ(names.find("name 7"), StringId(8));
  EXPECT_EQ(names.find(""), StringId(0));
  EXPECT_FALSE(names.find("name " + std::to_string(kept)));
  Names long_ones;
  for (kept = 0; long_ones.add(std::to_string(kept) + std::string(30'000, 'x')); ++kept) {
  }
  EXPECT_LE(kept * 30'000, 32u * 1024 * 1024);
  EXPECT_GT(kept, 1000u);
}

TEST(CaptureLimits, AllocationsBeyondTheLimitAreLeftOutUntilOthersAreFreed) {
  static auto* const live = new LiveAllocations;  // as in the recorder, nothing takes its leaves apart
  const auto any = [](HeapKind) { return true; };
  const auto address = [](std::size_t number) { return 0x7f0000000000 + number * 512; };
  for (std::size_t number = 0; number < LiveAllocations::kMost; ++number)
    ASSERT_TRUE(live->add(address(number), {AllocationId(1), 512, HeapId(0), HeapKind::kDriver, 0}));
  EXPECT_FALSE(live->has_left_out());
  EXPECT_FALSE(live->add(address(LiveAllocations::kMost), {AllocationId(2), 512, HeapId(0), HeapKind::kDriver, 0}));
  EXPECT_TRUE(live->has_left_out());
  EXPECT_FALSE(live->take(address(LiveAllocations::kMost), any));
  EXPECT_TRUE(live->take(address(5), any));
  EXPECT_TRUE(live->add(address(LiveAllocations::kMost), {AllocationId(2), 512, HeapId(0), HeapKind::kDriver, 0}));
  EXPECT_EQ(live->device_bytes(0), LiveAllocations::kMost * 512);
}

TEST(CaptureLimits, AddressesAllOverTheSpaceTakeBoundedMemory) {
  static auto* const live = new LiveAllocations;  // as in the recorder, nothing takes its leaves apart
  std::size_t known = 0;
  for (std::uint64_t part = 1; part < 4000; ++part) {
    const std::uint64_t address = part << 36;
    live->add_mapping(address, 4096, 0);
    known += live->pages().contains(address) ? 1 : 0;
    live->remove_mapping(address, 4096, 0);
  }
  EXPECT_EQ(known, 1024u);
}

}  // namespace
}  // namespace faultline::capture
