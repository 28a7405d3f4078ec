#include "view/what_if.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "facts/facts_test_support.h"
#include "models/gpus.h"
#include "models/replay.h"
#include "view/columns.h"
#include "view/replay_pictures.h"
#include "view/source_links.h"
#include "view/thin.h"

namespace faultline::view {
namespace {

std::uint64_t most_of(const std::vector<std::uint64_t>& values) {
  return values.empty() ? 0 : *std::max_element(values.begin(), values.end());
}

const WhatIf* find(const Scene& scene, std::string_view name) {
  for (const WhatIf& one : scene.what_ifs) {
    if (one.name == name) return &one;
  }
  return nullptr;
}

class Recorded : public testing::TestWithParam<const char*> {};

TEST_P(Recorded, EachReplayIsWhatReplayTellsAndItsCurveHasItsPeak) {
  const Trace trace = recording(GetParam());
  const Judgement judgement = judge(trace);
  Scene scene = make_scene("", judgement, 0);
  ASSERT_FALSE(scene.what_ifs.empty());
  EXPECT_LE(scene.what_ifs.size(), kMostWhatIfs);
  for (const WhatIf& one : scene.what_ifs) {
    SCOPED_TRACE(one.name);
    EXPECT_EQ(one.reserved.size(), scene.columns.count());
    EXPECT_EQ(most_of(one.reserved), one.peak_reserved_bytes);
    EXPECT_EQ(one.fits, one.failure == kNever);
    EXPECT_FALSE(one.told.empty());
    if (one.name.find(':') == std::string::npos) continue;
    ReplayOptions options;
    options.changes = *parse_setting_changes(one.name);
    const Result<ReplayResult> alone = replay(trace, options);
    ASSERT_TRUE(alone.ok());
    EXPECT_EQ(one.peak_reserved_bytes, alone->peak_reserved_bytes);
    EXPECT_EQ(one.fits, alone->failure_count == 0);
  }
  // half the columns, the same peak
  const std::size_t before = scene.columns.count();
  thin(scene);
  for (const WhatIf& one : scene.what_ifs) {
    EXPECT_EQ(one.reserved.size(), scene.columns.count());
    EXPECT_EQ(most_of(one.reserved), one.peak_reserved_bytes);
  }
  EXPECT_LE(scene.columns.count(), before);
}

INSTANTIATE_TEST_SUITE_P(WhatIfs, Recorded,
                         testing::Values("gpt_oom", "gpt", "gpt_expandable", "oom_fragmented", "ring_train"));

TEST(WhatIfs, WhereMemoryWasRefusedThereIsOneWithRoomAndTheSmallestGpuThatHasIt) {
  const Trace trace = recording("gpt_oom");
  const Scene scene = make_scene("", judge(trace), 0);
  const WhatIf* room = find(scene, "With room for all of it");
  ASSERT_NE(room, nullptr);
  EXPECT_TRUE(room->fits);
  EXPECT_EQ(room->told, "fits as far as it was recorded");
  EXPECT_GT(room->peak_reserved_bytes, most_of(scene.columns.reserved));
  const Gpu t4 = *find_gpu("T4");
  const auto on_t4 = std::find_if(scene.what_ifs.begin(), scene.what_ifs.end(),
                                  [](const WhatIf& one) { return one.name.starts_with("On Tesla T4"); });
  ASSERT_NE(on_t4, scene.what_ifs.end());
  EXPECT_TRUE(on_t4->fits);
  EXPECT_LE(on_t4->room_bytes, t4.capacity_bytes - t4.context_bytes);
  const WhatIf* expandable = find(scene, "expandable_segments:True");
  ASSERT_NE(expandable, nullptr);
  EXPECT_FALSE(expandable->fits);
  EXPECT_EQ(expandable->told, "out of memory at snap.py:22");
}

TEST(WhatIfs, WhatWouldTakeTooLongIsNotReplayedAndCounted) {
  const Trace trace = recording("gpt_oom");
  const Judgement judgement = judge(trace);
  for (const std::uint64_t replays : {0, 1, 3}) {
    Scene scene;
    scene.columns = measure_columns(*judgement.facts, 0, kMostColumns);
    add_what_ifs(judgement, 0, replays * trace.events.size(), scene);
    EXPECT_EQ(scene.what_ifs.size(), replays);
    const std::string told = fmt::format("{}", fmt::join(scene.what_ifs_told, " "));
    EXPECT_NE(told.find("more were not replayed"), std::string::npos) << told;
    EXPECT_NE(told.find("settings are not replayed here"), std::string::npos) << told;
  }
}

// Five replays are shown before any is searched among the twelve that nobody proposes.
TEST(WhatIfs, SettingsAreSaidToBeReplayedWhereTheyAre) {
  const Trace trace = recording("gpt_oom");
  const Judgement judgement = judge(trace);
  for (const std::uint64_t replays : {5, 6, 16, 17, 40}) {
    Scene scene;
    scene.columns = measure_columns(*judgement.facts, 0, kMostColumns);
    add_what_ifs(judgement, 0, replays * trace.events.size(), scene);
    const std::string told = fmt::format("{}", fmt::join(scene.what_ifs_told, " "));
    EXPECT_EQ(told.find("12 more settings were replayed") != std::string::npos, replays >= 17) << replays << told;
    EXPECT_EQ(told.find("12 more settings are not replayed here") != std::string::npos, replays < 17)
        << replays << told;
  }
}

TEST(WhatIfs, ACurveOfNothingIsAPath) {
  Viewed viewed;
  Scene& scene = viewed.scenes.emplace_back();
  scene.what_ifs.emplace_back().name = "x:y";
  const std::string page = replay_section(viewed);
  std::size_t paths = 0;
  for (std::size_t at = page.find(" d=\""); at != std::string::npos; at = page.find(" d=\"", at + 1), ++paths)
    EXPECT_EQ(page.substr(at + 4, 2), "M0") << page.substr(at, 40);
  EXPECT_EQ(paths, 3u);
}

TEST(WhatIfs, WhatNoModelRepeatsIsNotReplayed) {
  const Trace trace =
      traced("can addresses events\ndevice 0\nheap driver\nalloc #a 16MiB driver @0x10000000\nfree #a\n");
  const Scene scene = make_scene("", judge(trace), 0);
  EXPECT_TRUE(scene.what_ifs.empty() && scene.recorded_told.empty() && scene.what_ifs_told.empty());
}

// A link is of that scheme, and names a file by its whole path: nothing else in it is read as anything else.
TEST(SourceLinks, AreOfOneSchemeWhateverTheFileIsCalled) {
  const struct {
    std::string file;
    std::uint32_t line;
    std::string address;
  } cases[] = {
      {"/home/me/train.py", 12, "vscode://file/home/me/train.py:12"},
      {"/home/me/my model.py", 1, "vscode://file/home/me/my%20model.py:1"},
      {"/a/\"><img src=x onerror=hostile()>.py", 2,
       "vscode://file/a/%22%3E%3Cimg%20src%3Dx%20onerror%3Dhostile%28%29%3E.py:2"},
      {"/a?b#c:9%41", 3, "vscode://file/a%3Fb%23c%3A9%2541:3"},
      {"/ü.py", 4, "vscode://file/%C3%BC.py:4"},
      {"train.py", 12, ""},
      {"javascript:hostile()", 1, ""},
      {"//evil.example/x.py", 1, ""},
      {"/home/me/train.py", 0, ""},
      {"", 1, ""},
      {"/", 1, ""},
      {"/" + std::string(5000, 'a'), 1, ""},
  };
  for (const auto& one : cases) {
    EXPECT_EQ(editor_address(one.file, one.line), one.address) << one.file;
    const std::string links = source_links(one.file, one.line);
    EXPECT_EQ(links.find("<img"), std::string::npos);
    EXPECT_EQ(links.find("href") != std::string::npos, !one.address.empty());
  }
}

}  // namespace
}  // namespace faultline::view
