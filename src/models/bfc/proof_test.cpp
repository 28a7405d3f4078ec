// Replays of made-up programs under every kind of setting, proved without being told the settings.
#include "models/bfc/proof.h"

#include <gtest/gtest.h>

#include <random>

#include "base/units.h"
#include "models/replay.h"
#include "models/request_trace.h"

namespace faultline {
namespace {

Trace requests(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  RequestTrace trace(HeapKind::kBfc);
  std::vector<AllocationId> live;
  for (int step = 0; step < 2500; ++step) {
    const bool is_late = step % 600 > 480;  // then most of it goes, and regions become empty
    if (!live.empty() && random() % 100 < (is_late ? 85u : 44u)) {
      std::swap(live[random() % live.size()], live.back());
      trace.free(live.back());
      live.pop_back();
    } else {
      live.push_back(trace.alloc(1 + random() % (random() % 6 == 0 ? 60 * kMiB : 200'000)));
    }
  }
  return std::move(trace.trace());
}

struct Setting {
  SettingChanges changes;
  std::optional<std::uint64_t> room;
};

class BfcProofs : public testing::TestWithParam<Setting> {};

TEST_P(BfcProofs, NothingNeedsToBeStated) {
  std::uint64_t failures = 0;
  for (std::uint64_t seed = 0; seed < 6; ++seed) {
    SCOPED_TRACE(seed);
    ReplayOptions options;
    options.changes = GetParam().changes;
    options.segment_budget_bytes = GetParam().room;
    options.want_trace = true;
    auto placed = replay(requests(seed), options);
    ASSERT_TRUE(placed.ok());
    failures += placed->failure_count;
    for (const bool is_stated : {true, false}) {
      ReplayOptions proof;
      proof.proof = true;
      if (!is_stated)
        std::erase_if(placed->trace->properties, [](const auto& one) { return one.first.starts_with("bfc."); });
      const auto proved = replay(*placed->trace, proof);
      ASSERT_TRUE(proved.ok());
      EXPECT_GT(proved->placements, 1000u);
      EXPECT_EQ(proved->exact, proved->placements) << (proved->mismatches.empty() ? "" : proved->mismatches[0].what);
      // A region that both the limit and the driver made smaller has a size that nothing explains unless the limit is stated.
      const bool both = GetParam().room && !GetParam().changes.empty() && !is_stated;
      EXPECT_EQ(proved->end_blocks_exact, proved->end_blocks);
      if (both) continue;
      EXPECT_EQ(proved->segment_events_exact, proved->segment_events);
      EXPECT_TRUE(proved->mismatches.empty()) << proved->mismatches[0].what;
      for (const PoolLimit& limit : proved->pool_limits) {
        const std::uint64_t set = 400 * kMiB;
        if (GetParam().changes.empty() || GetParam().changes[0].first != "memory_limit" || GetParam().room) continue;
        EXPECT_LE(limit.bytes.min, set);
        EXPECT_GE(limit.bytes.max + kBfcUnit, set);
      }
    }
  }
  EXPECT_EQ(failures != 0, GetParam().room.has_value() || !GetParam().changes.empty());
}

INSTANTIATE_TEST_SUITE_P(
    Settings, BfcProofs,
    testing::Values(Setting{{}, {}},
                    Setting{{{"memory_limit", "400"}, {"TF_ENABLE_GPU_GARBAGE_COLLECTION", "false"}}, {}},
                    Setting{{{"memory_limit", "400"}, {"TF_ENABLE_GPU_GARBAGE_COLLECTION", "true"}}, {}},
                    Setting{{{"memory_limit", "400"}, {"TF_FORCE_GPU_ALLOW_GROWTH", "false"}}, {}},
                    Setting{{}, 350 * kMiB},
                    Setting{{{"memory_limit", "400"}, {"TF_ENABLE_GPU_GARBAGE_COLLECTION", "false"}}, 350 * kMiB}));

// A state without a history: chunks with their sizes, put in as a dump tells them, and the request that failed in it.
TEST(BfcProof, AStateIsTakenAsItIs) {
  RequestTrace made(HeapKind::kBfc);
  Trace& trace = made.trace();
  trace.capabilities = kAddresses;
  trace.properties["bfc.GPU_0_bfc.limit"] = std::to_string(8 * kMiB);
  const auto add = [&](HeapId heap, std::uint64_t address, std::uint64_t bytes) {
    Event event;
    event.heap = heap;
    event.address = address;
    event.size_bytes = bytes;
    event.allocation = AllocationId(++trace.allocation_count);
    event.set(kPreexisting);
    trace.events.push_back(event);
  };
  const std::uint64_t base = 0x7f0000000000;
  add(HeapId(0), base, 4 * kMiB);
  add(HeapId(1), base, 700);
  add(HeapId(1), base + 2 * kMiB, kMiB);
  trace.preexisting_count = 3;
  trace.final_segments = {{base, 4 * kMiB, 0, HeapId(1), {}, {}, false, false, 0, 4}};
  trace.final_blocks = {{base, 1024, 700, {}, FinalBlock::State::kActive},
                        {base + 1024, 2 * kMiB - 1024, 0, {}, FinalBlock::State::kFree},
                        {base + 2 * kMiB, kMiB + kMiB / 2, kMiB, {}, FinalBlock::State::kActive},
                        {base + 7 * kMiB / 2, kMiB / 2, 0, {}, FinalBlock::State::kFree}};
  made.failed(5 * kMiB, 0);
  std::vector<std::uint64_t> held(4);
  ReplayOptions proof;
  proof.proof = true;
  proof.held_bytes = &held;
  const auto proved = replay(trace, proof);
  ASSERT_TRUE(proved.ok());
  EXPECT_EQ(proved->end_blocks, 4u);
  EXPECT_EQ(proved->end_blocks_exact, 4u);
  EXPECT_EQ(held, (std::vector<std::uint64_t>{0, 0, 1024, kMiB + kMiB / 2}));
  EXPECT_EQ(replay(trace, {})->failure_count, 1u);
  ReplayOptions larger;
  larger.changes = {{"memory_limit", "9"}};
  EXPECT_EQ(replay(trace, larger)->failure_count, 0u) << "4 MiB are taken, and 5 may follow";
}

}  // namespace
}  // namespace faultline
