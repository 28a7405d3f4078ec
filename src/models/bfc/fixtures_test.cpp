// The model of the BFC allocator against logs of real programs: every file of the fixtures, found, not listed.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "base/units.h"
#include "models/replay.h"
#include "models/search.h"
#include "sources/source.h"

namespace faultline {
namespace {

std::vector<std::filesystem::path> logs() {
  std::vector<std::filesystem::path> files;
  for (const auto& entry :
       std::filesystem::directory_iterator(std::filesystem::path(FAULTLINE_FIXTURES) / "tensorflow")) {
    if (entry.path().string().ends_with(".log.xz")) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

Trace loaded(const std::filesystem::path& path) {
  auto trace = load(path.string());
  EXPECT_TRUE(trace.ok()) << trace.error().message(path.string());
  return trace.ok() ? std::move(*trace) : Trace{};
}

Trace named(const char* name) {
  return loaded(std::filesystem::path(FAULTLINE_FIXTURES) / "tensorflow" / (std::string(name) + ".log.xz"));
}

Result<ReplayResult> replayed(const Trace& trace, SettingChanges changes = {}, bool proof = false) {
  ReplayOptions options;
  options.changes = std::move(changes);
  options.proof = proof;
  return replay(trace, options);
}

TEST(BfcFixtures, EveryPlacementAndRegionIsPredicted) {
  std::uint64_t placements = 0, files = 0;
  for (const auto& file : logs()) {
    SCOPED_TRACE(file.filename().string());
    const Trace trace = loaded(file);
    EXPECT_TRUE(trace.lost.empty());
    std::vector<std::uint64_t> held(trace.allocation_count + std::size_t{1});
    ReplayOptions options;
    options.proof = true;
    options.held_bytes = &held;
    const auto proof = replay(trace, options);
    ASSERT_TRUE(proof.ok());
    EXPECT_EQ(proof->exact, proof->placements) << (proof->mismatches.empty() ? "" : proof->mismatches[0].what);
    EXPECT_EQ(proof->segment_events_exact, proof->segment_events);
    for (const Event& event : trace.events) {
      if (event.kind == EventKind::kAlloc && trace.heaps[event.heap.index()].kind == HeapKind::kBfc) {
        EXPECT_GE(held[event.allocation.index()], event.size_bytes);
      }
    }
    placements += proof->placements;
    ++files;
  }
  EXPECT_GE(files, 8u);
  EXPECT_GT(placements, 10'000u);
}

// The same settings lead to the same addresses where the model places everything itself.
TEST(BfcFixtures, AReplayWithoutChangesIsTheRecording) {
  for (const auto& file : logs()) {
    SCOPED_TRACE(file.filename().string());
    const Trace trace = loaded(file);
    ReplayOptions options;
    options.want_trace = true;
    const auto again = replay(trace, options);
    ASSERT_TRUE(again.ok());
    std::vector<std::uint64_t> recorded, replayed;
    for (const Event& event : trace.events) {
      if (event.kind == EventKind::kAlloc) recorded.push_back(event.address);
    }
    for (const Event& event : again->trace->events) {
      if (event.kind == EventKind::kAlloc) replayed.push_back(event.address);
    }
    EXPECT_EQ(recorded, replayed);
    EXPECT_EQ(again->recorded_failures_served, 0u);
  }
}

TEST(BfcFixtures, OneRegionServesWhatManyCouldNot) {
  const Trace trace = named("out_of_memory");
  const auto proof = replayed(trace, {}, true);
  ASSERT_TRUE(proof.ok());
  ASSERT_EQ(proof->pool_limits.size(), 1u);
  EXPECT_LE(proof->pool_limits[0].bytes.min, 256 * kMiB);
  EXPECT_GE(proof->pool_limits[0].bytes.max, 256 * kMiB);
  EXPECT_EQ(replayed(trace)->failure_count, 1u);
  const auto whole = replayed(trace, {{"TF_FORCE_GPU_ALLOW_GROWTH", "false"}});
  ASSERT_TRUE(whole.ok());
  EXPECT_EQ(whole->failure_count, 0u);
  EXPECT_EQ(whole->segments_taken, 1u);
  EXPECT_EQ(replayed(trace, {{"memory_limit", "272"}})->failure_count, 1u);
  EXPECT_EQ(replayed(trace, {{"TF_CPU_BFC_MEM_LIMIT_IN_MB", "273"}})->failure_count, 0u);
}

TEST(BfcFixtures, AGpuGivesThePoolTheLimitThatTensorFlowWould) {
  const Trace trace = named("dense");
  ReplayOptions options;
  options.gpu = TargetGpu{14913 * kMiB, 7};
  options.segment_budget_bytes = 14000 * kMiB;
  const auto result = replay(trace, options);
  ASSERT_TRUE(result.ok());
  EXPECT_NE(result->settings.find("memory_limit=13757"), std::string::npos) << result->settings;
  EXPECT_TRUE(sensible_settings(trace).empty()) << "a pool of the host has none of a GPU's settings";
  EXPECT_FALSE(replayed(trace, {{"TF_FORCE_GPU_ALLOW_GROWTH", "false"}}).ok()) << "its limit is not known";
}

}  // namespace
}  // namespace faultline
