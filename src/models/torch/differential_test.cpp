// The model against the reference: random programs under every kind of setting must lead to the same addresses and the same driver calls.
#include <gtest/gtest.h>

#include <array>
#include <random>
#include <string>
#include <vector>

#include "models/torch/allocator.h"
#include "models/torch/reference_allocator.h"

namespace faultline {
namespace {

using reference::Call;

class NotingDriver : public BudgetDriver {
 public:
  using BudgetDriver::BudgetDriver;
  std::vector<Call> calls;
  std::optional<ByteRange> take(std::uint64_t size_bytes, const SegmentOwner& owner) override {
    const auto range = BudgetDriver::take(size_bytes, owner);
    if (range) calls.push_back({'A', range->begin, range->size()});
    return range;
  }
  void give_back(ByteRange segment, const SegmentOwner& owner) override {
    BudgetDriver::give_back(segment, owner);
    calls.push_back({'F', segment.begin, segment.size()});
  }
  bool map(ByteRange range, const SegmentOwner& owner) override {
    if (!BudgetDriver::map(range, owner)) return false;
    calls.push_back({'M', range.begin, range.size()});
    return true;
  }
  void unmap(ByteRange range, const SegmentOwner& owner) override {
    BudgetDriver::unmap(range, owner);
    calls.push_back({'U', range.begin, range.size()});
  }
};

constexpr std::uint64_t kRoom = 600 * kMiB;

struct Case {
  std::string name;
  reference::Settings settings;
};

std::vector<Case> cases() {
  std::vector<Case> list;
  const auto add = [&](std::string name, auto change) {
    Case one{std::move(name), {}};
    change(one.settings);
    list.push_back(one);
  };
  add("default", [](auto&) {});
  add("tight", [](auto& s) { s.budget = kRoom; });
  add("limit", [](auto& s) { s.limit = kRoom; });
  add("expandable", [](auto& s) { s.expandable = true; });
  add("expandable tight", [](auto& s) { s.expandable = true, s.budget = kRoom; });
  add("expandable, little address space",
      [](auto& s) { s.expandable = true, s.budget = kRoom, s.reservation = 200 * kMiB; });
  add("expandable with max_split", [](auto& s) { s.expandable = true, s.max_split = 30 * kMiB, s.budget = kRoom; });
  add("max_split", [](auto& s) { s.max_split = 24 * kMiB, s.rounding = 32 * kMiB; });
  add("max_split tight", [](auto& s) { s.max_split = 24 * kMiB, s.budget = kRoom; });
  add("gc", [](auto& s) { s.gc = 0.5, s.limit = kRoom; });
  add("gc with max_split", [](auto& s) { s.gc = 0.7, s.limit = kRoom, s.max_split = 24 * kMiB; });
  add("divisions", [](auto& s) { s.divisions = 8; });
  add("divisions, expandable", [](auto& s) { s.divisions = 4, s.expandable = true, s.budget = kRoom; });
  add("large segments", [](auto& s) { s.large_segment = 48 * kMiB, s.rounding = 48 * kMiB, s.budget = kRoom; });
  return list;
}

std::uint64_t random_size(std::mt19937_64& random) {
  switch (random() % 6) {
    case 0: return 1 + random() % 2000;
    case 1: return 1 + random() % kMiB;
    case 2: return 512 * (1 + random() % 64);
    case 3: return kMiB + random() % (9 * kMiB);
    case 4: return 20 * kMiB + random() % (60 * kMiB);
    default: return std::uint64_t{1} << (9 + random() % 17);
  }
}

void compare(const Case& one, std::uint64_t seed) {
  SCOPED_TRACE(one.name + ", seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  // the second and third are not in the order of their numbers
  const std::vector<std::uint64_t> handles = {0, 0x9000, 0x500};
  constexpr int kArenas = 3;
  reference::Allocator expected(one.settings, handles, kArenas);

  TorchSettings settings;
  settings.max_split_bytes = one.settings.max_split;
  settings.max_non_split_rounding_bytes = one.settings.rounding;
  settings.large_segment_bytes = one.settings.large_segment;
  settings.gc_threshold = one.settings.gc;
  settings.expandable = one.settings.expandable;
  settings.roundup_divisions.fill(static_cast<std::uint32_t>(one.settings.divisions));
  std::vector<Stream> streams;
  for (const std::uint64_t handle : handles) streams.push_back({0, handle});
  TorchAllocator model(settings, {}, streams);
  for (int arena = 1; arena < kArenas; ++arena) model.add_arena(true);
  model.set_limit(one.settings.limit);
  model.count_ages(one.settings.limit.has_value());
  NotingDriver driver(one.settings.budget, 0x7f0000000000, one.settings.reservation);

  struct Pair {
    BlockIndex model;
    reference::Allocator::Block* expected;
    AllocationId id;
  };
  std::vector<Pair> live;
  std::vector<Pair> pending;
  std::uint32_t next_id = 0;
  for (int step = 0; step < 4000; ++step) {
    const auto choice = random() % 100;
    // Programs grow and shrink in waves, so that the cache fills, splits and empties.
    const bool growing = step / 200 % 2 == 0;
    if (choice < (growing ? 60u : 40u)) {
      const std::uint64_t size = random_size(random);
      const std::size_t stream = random() % 10 < 7 ? 0 : random() % handles.size();
      const int arena = random() % 10 < 8 ? 0 : static_cast<int>(random() % kArenas);
      const AllocationId id(++next_id);
      const std::uint64_t rounded = model.round(size);
      ASSERT_EQ(rounded, expected.round(size));
      const ListIndex list = model.list_for(static_cast<std::uint32_t>(arena), rounded <= kTorchSmallRequest,
                                            StreamId(static_cast<std::uint32_t>(stream)));
      const BlockIndex block = model.allocate(list, rounded, id, {}, driver);
      reference::Allocator::Block* wanted = expected.malloc(size, stream, arena);
      ASSERT_EQ(block == kNoIndex, wanted == nullptr) << "request of " << size;
      std::erase_if(pending, [&](const Pair& pair) { return !expected.is_pending(pair.expected); });
      if (wanted != nullptr) {
        ASSERT_EQ(model.block(block).address, wanted->at) << "request of " << size;
        ASSERT_EQ(model.block(block).size_bytes, wanted->size);
        live.push_back({block, wanted, id});
      }
    } else if (choice < 92 && !live.empty()) {
      std::swap(live[random() % live.size()], live.back());
      const Pair pair = live.back();
      live.pop_back();
      if (random() % 5 == 0) {
        model.request_free(pair.model);
        expected.request_free(pair.expected);
        pending.push_back(pair);
      } else {
        model.free_now(pair.model);
        expected.request_free(pair.expected);
        expected.complete_free(pair.expected);
      }
    } else if (choice < 98 && !pending.empty()) {
      std::swap(pending[random() % pending.size()], pending.back());
      ASSERT_EQ(model.block(pending.back().model).allocation, pending.back().id);
      model.complete_free(pending.back().model);
      expected.complete_free(pending.back().expected);
      pending.pop_back();
    } else if (choice == 99 && step % 3 == 0) {
      model.empty_cache({}, driver);
      expected.empty_cache();
      pending.clear();
    }
    ASSERT_EQ(driver.calls, expected.calls);
    ASSERT_EQ(model.reserved_bytes(), expected.reserved);
    driver.calls.clear();
    expected.calls.clear();
  }
}

TEST(TorchAllocatorAgainstReference, EveryAddressAndDriverCallIsTheSame) {
  for (const Case& one : cases()) {
    for (std::uint64_t seed = 1; seed <= 6; ++seed) {
      compare(one, seed);
      if (testing::Test::HasFatalFailure()) return;
    }
  }
}

}  // namespace
}  // namespace faultline
