// The models against real recordings: every file of the fixtures, found, not listed.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "models/replay.h"
#include "sources/source.h"

namespace faultline {
namespace {

std::vector<std::filesystem::path> recordings() {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(std::filesystem::path(FAULTLINE_FIXTURES) / "torch")) {
    if (entry.path().string().ends_with(".pickle.xz")) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

Trace loaded(const std::filesystem::path& path) {
  auto trace = load(path.string());
  EXPECT_TRUE(trace.ok()) << trace.error().message(path.string());
  return trace.ok() ? std::move(*trace) : Trace{};
}

Trace recording(const std::string& name) {
  return loaded(std::filesystem::path(FAULTLINE_FIXTURES) / "torch" / (name + ".pickle.xz"));
}

ReplayResult proved(const Trace& trace, std::uint16_t device = 0) {
  ReplayOptions options;
  options.proof = true;
  options.device = device;
  auto result = replay(trace, options);
  EXPECT_TRUE(result.ok()) << result.error().what;
  return result.ok() ? std::move(*result) : ReplayResult{};
}

TEST(Proof, EveryRecordedPlacementAndDriverCallIsPredicted) {
  const auto files = recordings();
  ASSERT_FALSE(files.empty());
  std::uint64_t placements = 0;
  for (const auto& file : files) {
    SCOPED_TRACE(file.filename().string());
    const Trace trace = loaded(file);
    for (const Device& device : trace.devices) {
      const ReplayResult result = proved(trace, device.index);
      EXPECT_EQ(result.exact, result.placements) << (result.mismatches.empty() ? "" : result.mismatches[0].what);
      EXPECT_EQ(result.segment_events_exact, result.segment_events)
          << (result.mismatches.empty() ? "" : result.mismatches[0].what);
      EXPECT_EQ(result.end_blocks_exact, result.end_blocks);
      placements += result.placements;
    }
  }
  EXPECT_GT(placements, 10'000u);
}

TEST(Proof, WrongSettingsAreFoundOut) {
  Trace trace = recording("churn_max_split_64");
  trace.properties["torch.max_split_size"] = "-1";
  const ReplayResult result = proved(trace);
  EXPECT_LT(result.exact, result.placements);
  EXPECT_FALSE(result.mismatches.empty());
}

TEST(Proof, OneWrongAddressIsOneMismatch) {
  Trace trace = recording("gpt");
  const auto is_small_alloc = [&](const Event& event) {
    return event.kind == EventKind::kAlloc && trace.heaps[event.heap.index()].kind == HeapKind::kTorchCaching;
  };
  auto at = std::find_if(trace.events.begin() + 3000, trace.events.end(), is_small_alloc);
  ASSERT_NE(at, trace.events.end());
  at->address += 1ull << 40;
  const ReplayResult result = proved(trace);
  EXPECT_LT(result.exact, result.placements);
  EXPECT_GT(result.exact, result.placements * 9 / 10);
}

// The same program was recorded under each setting: replaying one recording under another's setting must foretell what the other measured.
TEST(WhatIf, PredictsWhatTheOtherRecordingMeasured) {
  struct Twin {
    std::string from, to;
    SettingChanges changes;
  };
  const std::vector<Twin> twins = {
      {"churn_default", "churn_expandable", {{"expandable_segments", "True"}}},
      {"churn_default", "churn_max_split_64", {{"max_split_size_mb", "64"}}},
      {"churn_default",
       "churn_max_split_21_rounding",
       {{"max_split_size_mb", "21"}, {"max_non_split_rounding_mb", "64"}}},
      {"churn_default", "churn_roundup_4", {{"roundup_power2_divisions", "4"}}},
      {"churn_default", "churn_roundup_1", {{"roundup_power2_divisions", "1"}}},
      {"churn_default", "churn_large_segment_40", {{"large_segment_size_mb", "40"}}},
      {"churn_default",
       "churn_expandable_large_segment",
       {{"large_segment_size_mb", "64"}, {"expandable_segments", "True"}}},
      {"churn_default", "churn_expandable_max_split", {{"expandable_segments", "True"}, {"max_split_size_mb", "64"}}},
      {"churn_default",
       "churn_expandable_roundup",
       {{"expandable_segments", "True"}, {"roundup_power2_divisions", "8"}}},
      {"churn_expandable", "churn_default", {{"expandable_segments", "False"}}},
      {"streams_many", "streams_many_expandable", {{"expandable_segments", "True"}}},
      {"graphs", "graphs_expandable", {{"expandable_segments", "True"}}}};
  for (const Twin& twin : twins) {
    SCOPED_TRACE(twin.from + " as " + twin.to);
    const ReplayResult measured = proved(recording(twin.to));
    ReplayOptions options;
    options.changes = twin.changes;
    const auto predicted = replay(recording(twin.from), options);
    ASSERT_TRUE(predicted.ok()) << predicted.error().what;
    EXPECT_EQ(predicted->peak_reserved_bytes, measured.peak_reserved_bytes);
  }
}

TEST(WhatIf, WithoutAChangeTheRecordingHappensAgain) {
  std::size_t whole = 0;
  for (const auto& file : recordings()) {
    SCOPED_TRACE(file.filename().string());
    const Trace trace = loaded(file);
    if (trace.preexisting_count != 0) continue;  // parts of their past are unknown
    const ReplayResult recorded = proved(trace);
    const auto again = replay(trace, {});
    ASSERT_TRUE(again.ok());
    EXPECT_EQ(again->placements, recorded.placements);
    EXPECT_EQ(again->recorded_failures_served, 0u);
    EXPECT_EQ(again->failure_count, again->recorded_failures);
    ++whole;
  }
  EXPECT_GT(whole, 60u);
}

}  // namespace
}  // namespace faultline
