#include "models/replay_curve.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "models/replay.h"
#include "sources/source.h"

namespace faultline {
namespace {

using Values = std::vector<std::uint64_t>;

TEST(ReplayCurve, AStretchHasTheMostThatWasReservedInIt) {
  struct {
    const char* what;
    std::uint64_t first, stretch;
    std::size_t count;
    std::vector<std::pair<std::uint64_t, std::uint64_t>> notes;
    Values curve;
  } cases[] = {
      {"nothing happens", 0, 1, 3, {}, {0, 0, 0}},
      {"every event", 0, 1, 3, {{0, 5}, {1, 2}, {2, 9}}, {5, 2, 9}},
      {"what is not told of stays", 0, 1, 5, {{1, 4}, {3, 1}}, {0, 4, 4, 1, 1}},
      {"the most of a stretch", 0, 2, 2, {{0, 3}, {1, 7}, {2, 2}, {3, 1}}, {7, 2}},
      {"what was there when a stretch began, while it was", 0, 2, 3, {{1, 8}, {3, 1}}, {8, 8, 1}},
      {"what was there before the first", 4, 2, 2, {{1, 6}, {3, 9}, {6, 2}}, {9, 2}},
      {"the last stretch is not full", 0, 4, 2, {{5, 3}}, {0, 3}},
      {"an event behind the end", 0, 1, 2, {{0, 1}, {7, 5}}, {1, 1}},
  };
  for (const auto& one : cases) {
    ReplayCurve curve(one.first, one.stretch, one.count);
    for (const auto& [event, bytes] : one.notes) curve.note(event, bytes);
    EXPECT_EQ(curve.take(), one.curve) << one.what;
  }
}

// The recorded driver calls are a second way to the same curve.
Values recorded_curve(const Trace& trace) {
  Values curve;
  std::uint64_t now = 0;
  for (const Event& event : trace.events) {
    const bool is_driver = event.kind <= EventKind::kUnmap && trace.heaps[event.heap.index()].below == event.heap;
    if (is_driver && !event.has(kFailed)) {
      if (event.kind == EventKind::kAlloc || event.kind == EventKind::kMap) now += event.size_bytes;
      if ((event.kind == EventKind::kFree && event.returns_to_heap()) || event.kind == EventKind::kUnmap)
        now -= event.size_bytes;
    }
    curve.push_back(now);
  }
  return curve;
}

TEST(ReplayCurve, OfEveryRecordingItHasThePeakAndTheEndOfItsReplay) {
  int replays = 0;
  for (const auto& entry : std::filesystem::directory_iterator(std::filesystem::path(FAULTLINE_FIXTURES) / "torch")) {
    if (!entry.path().string().ends_with(".pickle.xz")) continue;
    SCOPED_TRACE(entry.path().filename().string());
    const Result<Trace> trace = load(entry.path().string());
    ASSERT_TRUE(trace.ok());
    if (trace->events.empty()) continue;
    for (const SettingChanges& changes : {SettingChanges{}, SettingChanges{{"expandable_segments", "True"}}}) {
      ReplayCurve curve(0, 1, trace->events.size());
      ReplayOptions options;
      options.changes = changes;
      options.curve = &curve;
      const Result<ReplayResult> result = replay(*trace, options);
      if (!result) continue;
      const Values values = curve.take();
      EXPECT_EQ(*std::max_element(values.begin(), values.end()), result->peak_reserved_bytes);
      EXPECT_EQ(values.back(), result->end_reserved_bytes);
      ++replays;
    }
  }
  EXPECT_GT(replays, 100);
}

TEST(ReplayCurve, UnderTheRecordedSettingsItIsTheRecordedOne) {
  const Result<Trace> trace = load((std::filesystem::path(FAULTLINE_FIXTURES) / "torch" / "gpt.pickle.xz").string());
  ASSERT_TRUE(trace.ok());
  ReplayCurve curve(0, 64, trace->events.size() / 64 + 1);
  ReplayOptions options;
  options.curve = &curve;
  ASSERT_TRUE(replay(*trace, options).ok());
  const Values replayed = curve.take(), recorded = recorded_curve(*trace);
  std::size_t differing = 0;
  for (std::size_t at = 0; at < replayed.size(); ++at) {
    const auto begin = recorded.begin() + static_cast<std::ptrdiff_t>(std::min(at * 64, recorded.size()));
    const auto end = recorded.begin() + static_cast<std::ptrdiff_t>(std::min((at + 1) * 64, recorded.size()));
    // a driver call stands one event before the request it is for
    differing += begin != end && *std::max_element(begin, end) != replayed[at];
  }
  EXPECT_LE(differing, replayed.size() / 50);
}

}  // namespace
}  // namespace faultline
