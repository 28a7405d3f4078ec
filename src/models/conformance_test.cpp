// What every model must hold, whatever it models.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "models/model.h"
#include "models/request_trace.h"

namespace faultline {
namespace {

// What a model is tried with: the heap that it knows, and a setting of its own.
struct Kind {
  std::string_view model;
  HeapKind heap;
  const char* setting;
  std::array<const char*, 2> values;
};
constexpr std::array<Kind, 2> kKinds = {
    {{"torch-native", HeapKind::kTorchCaching, "expandable_segments", {"True", "False"}},
     {"bfc", HeapKind::kBfc, "TF_ENABLE_GPU_GARBAGE_COLLECTION", {"true", "false"}}}};

const Kind& kind_of(const Model& model) {
  const auto kind = std::find_if(kKinds.begin(), kKinds.end(), [&](const Kind& k) { return k.model == model.name; });
  FAULTLINE_CHECK(kind != kKinds.end());  // a new model needs its line above
  return *kind;
}

Trace sample(std::uint64_t seed, HeapKind heap) {
  RequestTrace requests(heap);
  std::mt19937_64 random(seed);
  const std::vector<StreamId> streams = {StreamId(0), requests.stream(0x70), requests.stream(0x30)};
  const std::vector<HeapId> heaps = {HeapId(1), HeapId(1), HeapId(1), requests.private_pool()};
  std::vector<AllocationId> live;
  std::vector<AllocationId> pending;
  for (int step = 0; step < 3000; ++step) {
    const auto choice = random() % 10;
    if (choice < 5) {
      const std::uint64_t size = random() % 3 == 0 ? 1 + random() % (40 * kMiB) : 1 + random() % 100'000;
      live.push_back(requests.alloc(size, streams[random() % streams.size()], heaps[random() % heaps.size()]));
    } else if (choice < 9 && !live.empty()) {
      std::swap(live[random() % live.size()], live.back());
      if (random() % 4 == 0) {
        requests.request_free(live.back());
        pending.push_back(live.back());
      } else {
        requests.free(live.back());
      }
      live.pop_back();
    } else if (!pending.empty()) {
      requests.complete_free(pending.front());
      pending.erase(pending.begin());
    }
  }
  for (const AllocationId id : pending) requests.complete_free(id);
  for (const AllocationId id : live) requests.free(id);
  return std::move(requests.trace());
}

class EveryModel : public testing::TestWithParam<const Model*> {
 protected:
  Result<ReplayResult> run(const Trace& trace, const ReplayOptions& options = {}) {
    return GetParam()->replay(trace, options);
  }
  HeapKind heap() const { return kind_of(*GetParam()).heap; }
  Trace sample(std::uint64_t seed) const { return faultline::sample(seed, heap()); }
  ReplayOptions tracing() {
    ReplayOptions options;
    options.want_trace = true;
    return options;
  }
};

// Addresses that are in use, by start.
class Occupied {
 public:
  void put(std::uint64_t begin, std::uint64_t size) {
    const auto above = ranges_.lower_bound(begin);
    ASSERT_TRUE(above == ranges_.end() || above->first >= begin + size) << "overlaps the one above";
    ASSERT_TRUE(above == ranges_.begin() || std::prev(above)->second <= begin) << "overlaps the one below";
    ranges_[begin] = begin + size;
  }
  void take(std::uint64_t begin) { ASSERT_EQ(ranges_.erase(begin), 1u); }
  void cut(std::uint64_t begin, std::uint64_t end) {
    auto at = std::prev(ranges_.upper_bound(begin));
    const auto [from, to] = *at;
    ASSERT_TRUE(from <= begin && end <= to);
    ranges_.erase(at);
    if (from < begin) ranges_[from] = begin;
    if (end < to) ranges_[end] = to;
  }
  // Mapped ranges may lie side by side, and a block may reach over the seam.
  bool covers(std::uint64_t begin, std::uint64_t end) const {
    while (begin < end) {
      auto at = ranges_.upper_bound(begin);
      if (at == ranges_.begin() || (--at)->second <= begin) return false;
      begin = at->second;
    }
    return true;
  }
  bool empty() const { return ranges_.empty(); }

 private:
  std::map<std::uint64_t, std::uint64_t> ranges_;
};

TEST_P(EveryModel, LiveBlocksLieInSegmentsAndNeverOverlap) {
  for (const bool tight : {false, true}) {
    ReplayOptions options = tracing();
    if (tight) options.segment_budget_bytes = 700 * kMiB;
    const auto result = run(sample(1), options);
    ASSERT_TRUE(result.ok());
    Occupied segments;
    Occupied blocks;
    for (const Event& event : result->trace->events) {
      const bool driver = result->trace->heaps[event.heap.index()].kind == HeapKind::kDriver;
      if (event.kind == EventKind::kMap || (event.kind == EventKind::kAlloc && driver))
        segments.put(event.address, event.size_bytes);
      if (event.kind == EventKind::kUnmap || (event.returns_to_heap() && driver))
        segments.cut(event.address, event.address + event.size_bytes);
      if (driver) continue;
      if (event.kind == EventKind::kAlloc) {
        blocks.put(event.address, event.size_bytes);
        ASSERT_TRUE(segments.covers(event.address, event.address + event.size_bytes));
      }
      if (event.returns_to_heap()) blocks.take(event.address);
      if (testing::Test::HasFatalFailure()) return;
    }
    EXPECT_TRUE(blocks.empty());
    EXPECT_EQ(result->end_allocated_bytes, 0u);
  }
}

TEST_P(EveryModel, SameInputSameResult) {
  const Trace trace = sample(2);
  const auto first = run(trace, tracing());
  const auto second = run(trace, tracing());
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ(first->trace->events, second->trace->events);
  EXPECT_EQ(first->peak_reserved_bytes, second->peak_reserved_bytes);
}

TEST_P(EveryModel, ItsOwnReplayIsProvedExactly) {
  for (std::uint64_t seed = 3; seed < 8; ++seed) {
    ReplayOptions options = tracing();
    if (seed % 2 == 0) options.segment_budget_bytes = 700 * kMiB;
    const auto placed = run(sample(seed), options);
    ASSERT_TRUE(placed.ok());
    ReplayOptions proof;
    proof.proof = true;
    const auto proved = run(*placed->trace, proof);
    ASSERT_TRUE(proved.ok());
    EXPECT_GT(proved->placements, 0u);
    EXPECT_EQ(proved->exact, proved->placements) << (proved->mismatches.empty() ? "" : proved->mismatches[0].what);
    EXPECT_EQ(proved->segment_events_exact, proved->segment_events);
    EXPECT_EQ(proved->end_blocks_exact, proved->end_blocks);
  }
}

TEST_P(EveryModel, ABudgetIsNeverExceeded) {
  const Trace trace = sample(4);
  const auto free = run(trace);
  ASSERT_TRUE(free.ok());
  EXPECT_EQ(free->failure_count, 0u);
  ReplayOptions options;
  options.segment_budget_bytes = free->peak_reserved_bytes / 2;
  const auto tight = run(trace, options);
  ASSERT_TRUE(tight.ok());
  EXPECT_LE(tight->peak_reserved_bytes, free->peak_reserved_bytes / 2);
  EXPECT_GT(tight->failure_count, 0u);
  EXPECT_EQ(tight->placements + tight->failure_count, free->placements);
  EXPECT_EQ(tight->end_allocated_bytes, 0u);
}

TEST_P(EveryModel, OtherDevicesAreLeftAlone) {
  Trace trace = sample(5);
  const auto alone = run(trace);
  trace.heaps.push_back({heap(), 1, HeapId(0), 0, 0, "torch"});
  const std::size_t count = trace.events.size();
  for (std::size_t at = 0; at < count; ++at) {
    Event event = trace.events[at];
    if (event.kind != EventKind::kAlloc) continue;
    event.device = 1;
    event.heap = HeapId(static_cast<std::uint16_t>(trace.heaps.size() - 1));
    event.allocation = AllocationId(++trace.allocation_count);
    trace.events.push_back(event);
  }
  const auto both = run(trace);
  ASSERT_TRUE(alone.ok() && both.ok());
  EXPECT_EQ(alone->placements, both->placements);
  EXPECT_EQ(alone->peak_reserved_bytes, both->peak_reserved_bytes);
  ReplayOptions other;
  other.device = 1;
  EXPECT_GT(run(trace, other)->placements, 0u);
  other.device = 7;
  EXPECT_FALSE(run(trace, other).ok());
}

TEST_P(EveryModel, UnknownSettingsAreRefusedWithTheKnownOnes) {
  ReplayOptions options;
  options.changes = {{"no_such_setting", "1"}};
  const auto result = run(sample(6), options);
  ASSERT_FALSE(result.ok());
  for (const std::string_view name : GetParam()->setting_names())
    EXPECT_NE(result.error().next.find(name), std::string::npos);
}

TEST_P(EveryModel, AnEmptyTraceIsReplayed) {
  const RequestTrace empty(heap());
  const auto result = run(empty.trace(), tracing());
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result->placements, 0u);
}

// Events that contradict each other, themselves and the tables: counted, never followed into the ground.
TEST_P(EveryModel, HostileTracesEnd) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    std::mt19937_64 random(seed);
    RequestTrace requests(heap());
    requests.stream(0x10);
    requests.private_pool();
    Trace& trace = requests.trace();
    trace.capabilities = kAddresses;
    trace.allocation_count = 400;
    const std::vector<std::uint64_t> addresses = {
        0, 512, kMiB, 0x7f0000000000, 0x7f0000200000, 0x7f0001400000, ~0ull, ~0ull - kMiB};
    const std::vector<std::uint64_t> sizes = {0, 1, 512, kMiB, 2 * kMiB, 20 * kMiB, 1ull << 46, 1ull << 47, ~0ull};
    for (int step = 0; step < 1500; ++step) {
      Event event;
      event.kind = static_cast<EventKind>(random() % (random() % 4 == 0 ? kEventKindCount : 5));
      event.heap = HeapId(static_cast<std::uint16_t>(random() % 8 == 0 ? random() : random() % 3));
      event.allocation = AllocationId(static_cast<std::uint32_t>(random() % 16 == 0 ? random() : random() % 450));
      event.address = addresses[random() % addresses.size()] + (random() % 2 == 0 ? random() % 64 * 512 : 0);
      event.size_bytes = sizes[random() % sizes.size()];
      event.stream = StreamId(static_cast<std::uint32_t>(random() % 10 == 0 ? random() : random() % 2));
      event.bits = static_cast<std::uint8_t>(random());
      trace.events.push_back(event);
    }
    trace.preexisting_count = static_cast<std::uint32_t>(random() % 3 == 0 ? random() % 2000 : 0);
    trace.final_segments = {{0x7f0000000000, 20 * kMiB, 0, HeapId(1), StreamId(0), {}, false, false, 0, 5},
                            {512, ~0ull, 0, HeapId(99), StreamId(9), {}, true, true, 7, 9}};
    trace.final_blocks = {{0x7f0000000000, 512, 1, {}, FinalBlock::State::kActive},
                          {kMiB, ~0ull, ~0ull, {}, FinalBlock::State::kPendingFree}};
    if (random() % 2 == 0) trace.properties["torch.alloc_conf"] = "expandable_segments:True,max_split_size_mb:32";
    if (random() % 2 == 0) trace.properties["torch.garbage_collection_threshold"] = "0.5";
    if (random() % 2 == 0) trace.properties["bfc.GPU_0_bfc.limit"] = random() % 2 == 0 ? "104857600" : "1..99999999999";
    if (random() % 2 == 0) trace.properties["bfc.GPU_0_bfc.growth"] = "false";
    if (random() % 2 == 0) trace.properties["bfc.GPU_0_bfc.next_region"] = "1";
    ReplayOptions proof;
    proof.proof = true;
    const auto proved = run(trace, proof);
    ASSERT_TRUE(proved.ok());
    EXPECT_LE(proved->exact, proved->placements);
    EXPECT_LE(proved->segment_events_exact, proved->segment_events);
    EXPECT_LE(proved->mismatches.size(), 16u);
    for (const char* value : kind_of(*GetParam()).values) {
      ReplayOptions options = tracing();
      options.changes = {{kind_of(*GetParam()).setting, value}};
      if (seed % 2 == 0) options.segment_budget_bytes = 100 * kMiB;
      const auto result = run(trace, options);
      ASSERT_TRUE(result.ok());
      EXPECT_LE(result->failures.size(), 16u);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Models, EveryModel, testing::ValuesIn(all_models().begin(), all_models().end()),
                         [](const auto& tested) {
                           std::string name(tested.param->name);
                           std::erase(name, '-');
                           return name;
                         });

}  // namespace
}  // namespace faultline
