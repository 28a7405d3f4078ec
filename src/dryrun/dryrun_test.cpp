#include <algorithm>
#include <map>
#include <random>

#include "dryrun/dryrun_test_support.h"

namespace faultline {
namespace {

// A program of its own: requests of all sizes on three streams and in private pools, frees, flushes.
struct Program {
  std::uint32_t seed = 1;
  int requests = 3000;
  bool pools = false;

  void run(DryRun& device) const {
    std::mt19937_64 random(seed);
    const auto below = [&](std::uint64_t limit) { return random() % limit; };
    const std::array<std::uint32_t, 3> streams = {0, faultline_stream(device.handle(), 0, 0x5000),
                                                  faultline_stream(device.handle(), 0, 0x3000)};
    std::vector<std::uint32_t> live;
    for (int at = 0; at < requests; ++at) {
      const std::uint32_t stack = device.line(static_cast<std::uint32_t>(at % 50 + 1));
      const std::uint64_t kind = below(100);
      if (kind < 55) {
        const std::uint64_t size = below(3) == 0   ? 1 + below(kMiB)
                                   : below(4) == 0 ? 1 + below(60 * kMiB)
                                                   : 1 + below(4 * kMiB);
        const std::uint32_t heap = pools && below(4) == 0 ? faultline_pool(device.handle(), 0, 0, 1 + below(2))
                                                          : std::uint32_t{FAULTLINE_HEAP_TORCH};
        const Given given = device.alloc(size, streams[below(10) < 7 ? 0 : 1 + below(2)], heap, stack);
        if (given.served())
          live.push_back(given.allocation);
        else if (!live.empty())
          take(live, below(live.size()), device, stack);
      } else if (kind < 94) {
        if (!live.empty()) take(live, below(live.size()), device, stack);
      } else if (kind == 97 && below(4) == 0) {
        faultline_empty_cache(device.handle(), 0, device.line(1000));
      }
    }
  }

 private:
  static void take(std::vector<std::uint32_t>& from, std::size_t which, DryRun& device, std::uint32_t stack) {
    device.free(from[which], stack);
    from[which] = from.back();
    from.pop_back();
  }
};

struct Setup {
  const char* name;
  const char* alloc_conf;
  const char* torch_version;
  bool pools;
  bool overcommit;
};

class DryRunModel : public testing::TestWithParam<Setup> {};

TEST_P(DryRunModel, EveryPlacementIsTheOneTheProofExpects) {
  for (std::uint32_t seed = 1; seed <= 5; ++seed) {
    DryRun device(600 * kMiB, 100 * kMiB, GetParam().alloc_conf, GetParam().torch_version);
    faultline_set_overcommit(device.handle(), GetParam().overcommit);
    Program{seed, 3000, GetParam().pools}.run(device);
    const faultline_stats stats = device.stats();
    const Trace trace = device.finish();
    const ReplayResult proof = expect_proved(trace);
    EXPECT_EQ(proof.peak_allocated_bytes, stats.peak_allocated_bytes);
    EXPECT_EQ(proof.peak_reserved_bytes, stats.peak_reserved_bytes);
    EXPECT_EQ(proof.end_allocated_bytes, stats.allocated_bytes);
    EXPECT_EQ(proof.end_reserved_bytes, stats.reserved_bytes);
    EXPECT_EQ(proof.inferred_private_segments, 0u);
    EXPECT_GT(proof.placements, 1000u);
    EXPECT_GT(stats.alloc_retries, 0u);
    const auto failures = events_of(trace, EventKind::kAllocFailed);
    EXPECT_EQ(failures.size(), stats.out_of_memories);
    if (GetParam().overcommit)
      EXPECT_EQ(failures.size(), 1u);
    else
      EXPECT_GT(failures.size(), 0u);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Settings, DryRunModel,
    testing::Values(Setup{"defaults", "", "2.11.0", false, false}, Setup{"older", "", "2.4.1", false, false},
                    Setup{"expandable", "expandable_segments:True", "2.11.0", false, false},
                    Setup{"split_limit", "max_split_size_mb:32", "2.11.0", false, false},
                    Setup{"rounding", "roundup_power2_divisions:4", "2.11.0", false, false},
                    Setup{"collecting", "garbage_collection_threshold:0.6,per_process_memory_fraction:0.75", "2.11.0",
                          false, false},
                    Setup{"pools", "", "2.13.0", true, false},
                    Setup{"older_pools", "expandable_segments:True", "2.9.0", true, false},
                    Setup{"everything", "expandable_segments:True,max_split_size_mb:40", "2.13.0", true, false},
                    Setup{"overcommit", "", "2.11.0", false, true},
                    Setup{"overcommit_expandable", "expandable_segments:True", "2.11.0", false, true},
                    Setup{"overcommit_pools", "expandable_segments:True", "2.13.0", true, true},
                    Setup{"overcommit_limit", "garbage_collection_threshold:0.6,per_process_memory_fraction:0.75",
                          "2.11.0", false, true}),
    [](const auto& setup) { return std::string(setup.param.name); });

TEST(DryRunDevice, ReplayOnTheSameDeviceGivesTheSameAddresses) {
  DryRun device(600 * kMiB, 100 * kMiB);
  Program{7, 2000}.run(device);
  const Trace trace = device.finish();
  ReplayOptions options;
  options.segment_budget_bytes = 500 * kMiB;
  options.want_trace = true;
  const Result<ReplayResult> again = replay(trace, options);
  ASSERT_TRUE(again.ok()) << again.error().message();
  const auto places = [](const Trace& from) {
    std::vector<std::pair<std::uint64_t, std::uint64_t>> found;
    for (const Event& event : events_of(from, EventKind::kAlloc)) found.emplace_back(event.address, event.size_bytes);
    return found;
  };
  EXPECT_EQ(places(*again->trace), places(trace));
}

TEST(DryRunDevice, TraceSaysWhatItIs) {
  DryRun device(kGiB, 100 * kMiB, "max_split_size_mb:64");
  faultline_property(device.handle(), "program", "train.py");
  const Trace trace = device.finish();
  EXPECT_EQ(trace.source_kind, "dry-run");
  EXPECT_EQ(trace.capabilities,
            std::uint32_t{kAddresses | kStacks | kStreams | kTensors | kCompleteFromStart | kEvents | kTimes | kSteps});
  ASSERT_EQ(trace.devices.size(), 1u);
  EXPECT_EQ(trace.devices[0], (Device{0, "a device", kGiB, 0}));
  EXPECT_EQ(trace.properties.at("torch.alloc_conf"), "max_split_size_mb:64");
  EXPECT_EQ(trace.properties.at("torch.max_version"), "2.11");
  EXPECT_EQ(trace.properties.at("program"), "train.py");
}

TEST(DryRunDevice, FailureTellsTheDevicesFreeBytesAndChangesNothingElse) {
  DryRun device(100 * kMiB, 30 * kMiB);
  const Given first = device.alloc(40 * kMiB);
  ASSERT_TRUE(first.served());
  const std::uint32_t stack = device.line(12);
  const Given second = device.alloc(40 * kMiB - 1, 0, FAULTLINE_HEAP_TORCH, stack);
  EXPECT_EQ(second.answer, FAULTLINE_OUT_OF_MEMORY);
  EXPECT_EQ(second.allocation, 0u);
  EXPECT_EQ(second.address, 0u);
  const faultline_stats stats = device.stats();
  EXPECT_EQ(stats.out_of_memories, 1u);
  EXPECT_EQ(stats.allocated_bytes, 40 * kMiB);
  EXPECT_EQ(stats.device_free_bytes, 30 * kMiB);
  device.free(first.allocation);
  EXPECT_TRUE(device.alloc(40 * kMiB - 1).served());
  const Trace trace = device.finish();
  const auto failures = events_of(trace, EventKind::kAllocFailed);
  ASSERT_EQ(failures.size(), 1u);
  EXPECT_TRUE(failures[0].has(kHasDeviceFree));
  EXPECT_EQ(failures[0].address, 30 * kMiB);
  EXPECT_EQ(failures[0].size_bytes, 40 * kMiB);
  EXPECT_EQ(trace.stacks.frame(failures[0].stack).line, 12u);
  expect_proved(trace);
}

TEST(DryRunDevice, RequestBeyondAnyDeviceIsRefusedEvenWithOvercommit) {
  DryRun device(kGiB);
  faultline_set_overcommit(device.handle(), 1);
  EXPECT_EQ(device.alloc(1ull << 50).answer, FAULTLINE_OUT_OF_MEMORY);
  EXPECT_EQ(events_of(device.finish(), EventKind::kAllocFailed).size(), 1u);
}

TEST(DryRunDevice, OvercommitShowsTheFirstFailureAndServesTheRest) {
  DryRun device(100 * kMiB, 20 * kMiB);
  faultline_set_overcommit(device.handle(), 1);
  for (int at = 0; at < 4; ++at) EXPECT_TRUE(device.alloc(30 * kMiB).served());
  EXPECT_EQ(device.stats().out_of_memories, 1u);
  EXPECT_EQ(device.stats().device_free_bytes, 0u);
  const Trace trace = device.finish();
  const auto failures = events_of(trace, EventKind::kAllocFailed);
  ASSERT_EQ(failures.size(), 1u);
  EXPECT_EQ(failures[0].address, 20 * kMiB);
  EXPECT_EQ(expect_proved(trace).peak_reserved_bytes, 120 * kMiB);
  ReplayOptions options;
  options.segment_budget_bytes = 120 * kMiB;
  EXPECT_EQ(replay(trace, options)->peak_reserved_bytes, 120 * kMiB);
}

TEST(DryRunDevice, WithoutOvercommitTheDeviceHasItsOwnSizeAgain) {
  DryRun device(100 * kMiB);
  faultline_set_overcommit(device.handle(), 1);
  const Given large = device.alloc(150 * kMiB);
  EXPECT_TRUE(large.served());
  device.free(large.allocation);
  faultline_set_overcommit(device.handle(), 0);
  EXPECT_TRUE(device.alloc(150 * kMiB).served()) << "it is still cached";
  EXPECT_FALSE(device.alloc(30 * kMiB).served());
}

TEST(DryRunDevice, OwnLimitRefusesWhileTheDeviceHasRoom) {
  DryRun device(kGiB);
  faultline_set_limit(device.handle(), 0, 100 * kMiB);
  EXPECT_TRUE(device.alloc(80 * kMiB).served());
  EXPECT_FALSE(device.alloc(30 * kMiB).served());
  faultline_set_overcommit(device.handle(), 1);
  EXPECT_TRUE(device.alloc(30 * kMiB).served());
  const Trace trace = device.finish();
  EXPECT_EQ(trace.devices[0].allowed_bytes, 100 * kMiB);
  EXPECT_EQ(expect_proved(trace).peak_reserved_bytes, 110 * kMiB);
  EXPECT_EQ(events_of(trace, EventKind::kAllocFailed)[0].address, kGiB - 80 * kMiB);
}

TEST(DryRunDevice, FractionInTheSettingsIsALimit) {
  DryRun device(kGiB, 0, "per_process_memory_fraction:0.5");
  EXPECT_FALSE(device.alloc(600 * kMiB).served());
  EXPECT_EQ(device.finish().devices[0].allowed_bytes, 512 * kMiB);
}

TEST(DryRunDevice, EndlessDeviceServesEverythingThatADeviceCouldHave) {
  DryRun device(0, 700 * kMiB);
  for (int at = 0; at < 10; ++at) EXPECT_TRUE(device.alloc(500 * kGiB).served());
  EXPECT_EQ(device.stats().device_free_bytes, ~0ull);
  expect_proved(device.finish());
}

TEST(DryRunDevice, PoolsDoNotShareBlocksAndKeepTheirs) {
  DryRun device(200 * kMiB, 0, "", "2.13.0");
  const std::uint32_t pool = faultline_pool(device.handle(), 0, 0, 5);
  EXPECT_EQ(faultline_pool(device.handle(), 0, 0, 5), pool);
  EXPECT_EQ(faultline_pool(device.handle(), 0, 0, 0), std::uint32_t{FAULTLINE_HEAP_TORCH});
  const Given in_pool = device.alloc(50 * kMiB, 0, pool);
  device.free(in_pool.allocation);
  const Given beside = device.alloc(50 * kMiB);
  EXPECT_NE(beside.address, in_pool.address);
  EXPECT_EQ(device.alloc(50 * kMiB, 0, pool).address, in_pool.address);
  const Given other = device.alloc(50 * kMiB, 0, faultline_pool(device.handle(), 0, 0, 6));
  device.free(other.allocation);
  faultline_empty_cache(device.handle(), 0, 0);
  EXPECT_EQ(device.stats().reserved_bytes, 150 * kMiB) << "the pool is in use";
  const Trace trace = device.finish();
  EXPECT_EQ(trace.heaps[pool].pool_minor, 5u);
  expect_proved(trace);
}

TEST(DryRunDevice, APoolThatNobodyHoldsGoesWithTheCacheOrAtOnce) {
  DryRun device(300 * kMiB, 0, "", "2.13.0");
  const std::uint32_t graph = faultline_pool(device.handle(), 0, 0, 5), pool = faultline_pool(device.handle(), 0, 0, 6);
  device.free(device.alloc(50 * kMiB, 0, graph).allocation);
  device.free(device.alloc(60 * kMiB, 0, pool).allocation);
  device.free(device.alloc(70 * kMiB).allocation);
  faultline_release_pool(device.handle(), 0, 0, 6, 0);
  EXPECT_EQ(device.stats().reserved_bytes, 120 * kMiB) << "a MemPool is emptied when it ends";
  faultline_release_pool(device.handle(), 0, 0, 5, -1);
  EXPECT_EQ(device.stats().reserved_bytes, 120 * kMiB);
  EXPECT_TRUE(device.alloc(250 * kMiB).served()) << "what nobody holds makes room";
  EXPECT_EQ(device.stats().reserved_bytes, 250 * kMiB);
  faultline_release_pool(device.handle(), 0, 0, 99, -1);
  expect_proved(device.finish());
}

TEST(DryRunDevice, AFreeOfWhatIsNotLiveIsPassedOver) {
  DryRun device(100 * kMiB);
  const Given first = device.alloc(60 * kMiB);
  device.free(first.allocation);
  device.free(first.allocation);
  device.free(12345);
  EXPECT_EQ(device.stats().current_allocations, 0u);
  const Trace trace = device.finish();
  EXPECT_EQ(events_of(trace, EventKind::kFree).size(), 1u);
  expect_proved(trace);
}

TEST(DryRunDevice, StatisticsCountAsPyTorchDoes) {
  DryRun device(kGiB);
  const Given small = device.alloc(1000);
  const Given large = device.alloc(3 * kMiB);
  faultline_stats stats = device.stats();
  EXPECT_EQ(stats.allocated_bytes, 1024 + 3 * kMiB);
  EXPECT_EQ(stats.requested_bytes, 1000 + 3 * kMiB);
  EXPECT_EQ(stats.reserved_bytes, 22 * kMiB);
  EXPECT_EQ(stats.inactive_split_bytes, 22 * kMiB - stats.allocated_bytes);
  EXPECT_EQ(stats.current_segments, 2u);
  EXPECT_EQ(stats.current_allocations, 2u);
  device.free(large.allocation);
  device.free(small.allocation);
  faultline_reset_peaks(device.handle(), 0);
  stats = device.stats();
  EXPECT_EQ(stats.peak_allocated_bytes, 0u);
  EXPECT_EQ(stats.peak_reserved_bytes, 22 * kMiB);
  EXPECT_EQ(stats.peak_requested_bytes, 0u);
  EXPECT_EQ(stats.inactive_split_bytes, 0u);
  EXPECT_EQ(stats.allocations, 2u);
  EXPECT_EQ(stats.segments_taken, 2u);
  faultline_empty_cache(device.handle(), 0, 0);
  EXPECT_EQ(device.stats().segments_returned, 2u);
}

TEST(DryRunDevice, SnapshotIsTheStateTheTraceEndsWith) {
  DryRun device(600 * kMiB, 100 * kMiB, "expandable_segments:True", "2.13.0");
  Program{3, 1500, true}.run(device);
  std::uint64_t segment_count = 0, block_count = 0;
  faultline_snapshot(device.handle(), &segment_count, &block_count);
  std::vector<faultline_segment> segments(segment_count);
  std::vector<faultline_block> blocks(block_count);
  EXPECT_EQ(faultline_snapshot_segments(device.handle(), segments.data(), segment_count), segment_count);
  EXPECT_EQ(faultline_snapshot_blocks(device.handle(), blocks.data(), block_count), block_count);
  EXPECT_EQ(faultline_snapshot_blocks(device.handle(), blocks.data(), 1), 1u);
  const faultline_stats stats = device.stats();
  std::uint64_t reserved = 0, allocated = 0;
  for (const faultline_segment& segment : segments)
    reserved += segment.size_bytes, allocated += segment.allocated_bytes;
  EXPECT_EQ(reserved, stats.reserved_bytes);
  EXPECT_EQ(allocated, stats.allocated_bytes);
  const Trace trace = device.finish();
  ASSERT_EQ(trace.final_segments.size(), segments.size());
  ASSERT_EQ(trace.final_blocks.size(), blocks.size());
  for (std::size_t at = 0; at < blocks.size(); ++at) {
    EXPECT_EQ(trace.final_blocks[at].address, blocks[at].address);
    EXPECT_EQ(trace.final_blocks[at].stack.value, blocks[at].stack);
    EXPECT_EQ(trace.final_blocks[at].requested_bytes, blocks[at].requested_bytes);
    EXPECT_EQ(trace.final_blocks[at].state == FinalBlock::State::kFree, blocks[at].allocation == 0);
  }
}

TEST(DryRunNames, AreWrittenOnceAndComeBack) {
  DryRun device(kGiB);
  EXPECT_EQ(device.text("float32"), device.text("float32"));
  EXPECT_EQ(device.line(7), device.line(7));
  const std::array<std::int64_t, 3> dims = {8, -1, 768};
  const auto tensor = [&] {
    return faultline_tensor(device.handle(), device.text("float32"), device.text("aten::mm"), device.text("encoder.0"),
                            device.text("float32[8,8]"), 3, dims.data());
  };
  EXPECT_EQ(tensor(), tensor());
  const Given given =
      device.alloc(4096, faultline_stream(device.handle(), 0, 0x77), FAULTLINE_HEAP_TORCH, device.line(7), tensor());
  const Trace trace = device.finish();
  const Event event = events_of(trace, EventKind::kAlloc).back();
  EXPECT_EQ(event.allocation.value, given.allocation);
  EXPECT_EQ(event.address, given.address);
  EXPECT_EQ(event.size_bytes, 4096u);
  EXPECT_EQ(trace.streams[event.stream.index()].handle, 0x77u);
  EXPECT_EQ(trace.strings.at(trace.stacks.frame(event.stack).file), "train.py");
  const Tensor& made = trace.tensors.at(TensorId(event.extra));
  EXPECT_EQ(made.shape, (std::vector<std::int64_t>{8, -1, 768}));
  EXPECT_EQ(trace.strings.at(made.op), "aten::mm");
  EXPECT_EQ(trace.strings.at(made.operands), "float32[8,8]");
}

TEST(DryRunNames, UnknownIdsCountAsNone) {
  DryRun device(kGiB);
  EXPECT_TRUE(device.alloc(4096, 99, 99, 99, 99).served());
  faultline_tensor_note(device.handle(), 99, 99, 99);
  faultline_op_begin(device.handle(), 99, 99);
  const Trace trace = device.finish();
  const Event event = events_of(trace, EventKind::kAlloc).back();
  EXPECT_EQ(event.stream.value, 0u);
  EXPECT_EQ(event.heap.value, FAULTLINE_HEAP_TORCH);
  EXPECT_EQ(event.stack.value, 0u);
  EXPECT_EQ(event.extra, 0u);
}

TEST(DryRunMarks, StandInTheirOrder) {
  DryRun device(kGiB);
  const std::uint32_t tensor =
      faultline_tensor(device.handle(), device.text("int64"), 0, device.text("labels"), 0, 0, nullptr);
  faultline_step_mark(device.handle(), 3, device.text("step"));
  faultline_op_begin(device.handle(), device.text("aten::mm"), device.line(4));
  faultline_tensor_note(device.handle(), 0, tensor, device.line(2));
  faultline_op_end(device.handle(), device.text("shapes cannot be multiplied"), 1, device.line(4));
  const std::uint32_t pinned = faultline_pin(device.handle(), 5000, device.line(9), tensor);
  faultline_unpin(device.handle(), pinned, 0);
  const Trace trace = device.finish();
  std::vector<EventKind> kinds;
  for (const Event& event : trace.events) kinds.push_back(event.kind);
  ASSERT_EQ(kinds, (std::vector{EventKind::kStepMark, EventKind::kOpBegin, EventKind::kTensorNote, EventKind::kOpEnd,
                                EventKind::kHostPin, EventKind::kTensorNote, EventKind::kHostUnpin}));
  EXPECT_EQ(trace.events[0].size_bytes, 3u);
  EXPECT_TRUE(trace.events[3].has(kFailed));
  EXPECT_EQ(trace.strings.at(StringId(trace.events[3].extra)), "shapes cannot be multiplied");
  EXPECT_EQ(trace.heaps[trace.events[4].heap.index()].kind, HeapKind::kTorchPinnedHost);
  EXPECT_EQ(trace.events[5].allocation, trace.events[4].allocation);
  EXPECT_TRUE(std::is_sorted(trace.events.begin(), trace.events.end(),
                             [](const Event& a, const Event& b) { return a.time_ns < b.time_ns; }));
}

}  // namespace
TEST(DryRunTest, EachDeviceHasAnAllocatorOfItsOwn) {
  DryRun dry(1 * kGiB);
  ASSERT_EQ(faultline_add_device(dry.handle(), "the other", 2 * kGiB, 256 * kMiB), 1u);
  const auto on = [&](std::uint32_t device, std::uint64_t size_bytes, std::uint32_t stream = 0) {
    Given given;
    given.answer = faultline_alloc(dry.handle(), device, size_bytes, stream, FAULTLINE_HEAP_TORCH, 0, 0,
                                   &given.allocation, &given.address);
    return given;
  };
  const Given first = on(0, 800 * kMiB), second = on(1, 1600 * kMiB);
  ASSERT_TRUE(first.served() && second.served());
  EXPECT_NE(first.address, second.address);
  EXPECT_EQ(on(0, 400 * kMiB).answer, FAULTLINE_OUT_OF_MEMORY);
  EXPECT_EQ(on(1, 400 * kMiB).answer, FAULTLINE_OUT_OF_MEMORY) << "the context takes 256 MiB";
  faultline_stats stats;
  faultline_get_stats(dry.handle(), 1, &stats);
  EXPECT_EQ(stats.allocated_bytes, 1600 * kMiB);
  EXPECT_EQ(stats.out_of_memories, 1u);
  dry.free(second.allocation);
  EXPECT_TRUE(on(1, 1600 * kMiB, faultline_stream(dry.handle(), 0, 7)).served())
      << "a stream of the other device counts as the default one";
  EXPECT_EQ(dry.stats().allocated_bytes, 800 * kMiB);
  const std::uint32_t pool = faultline_pool(dry.handle(), 1, 0, 9);
  EXPECT_EQ(faultline_pool(dry.handle(), 1, 0, 9), pool);
  EXPECT_NE(faultline_pool(dry.handle(), 0, 0, 9), pool);
  const Trace trace = dry.finish();
  ASSERT_EQ(trace.devices.size(), 2u);
  EXPECT_EQ(trace.devices[1].name, "the other");
  EXPECT_EQ(trace.properties.at("dry-run.context_bytes.1"), std::to_string(256 * kMiB));
  for (const std::uint16_t device : {std::uint16_t{0}, std::uint16_t{1}}) {
    ReplayOptions options;
    options.device = device;
    options.proof = true;
    const Result<ReplayResult> proof = replay(trace, options);
    ASSERT_TRUE(proof.ok()) << proof.error().message();
    EXPECT_EQ(proof->placements, device == 0 ? 1u : 2u);
    EXPECT_EQ(proof->exact, proof->placements);
    EXPECT_EQ(proof->end_blocks_exact, proof->end_blocks);
  }
  const std::vector<Event> failures = events_of(trace, EventKind::kAllocFailed);
  ASSERT_EQ(failures.size(), 2u);
  EXPECT_EQ(failures[0].device, 0u);
  EXPECT_EQ(failures[1].device, 1u);
}

}  // namespace faultline
