#include "models/torch/settings.h"

#include <gtest/gtest.h>

namespace faultline {
namespace {

TorchSettings parsed(std::string_view text, TorchVersion version = kNewestTorch) {
  auto settings = parse_torch_settings(text, TorchTraits::of(version));
  EXPECT_TRUE(settings.ok()) << settings.error().what;
  return settings.ok() ? *settings : TorchSettings{};
}

TEST(TorchSettings, EmptyTextIsTheDefault) {
  EXPECT_EQ(parsed(""), TorchSettings{});
  EXPECT_EQ(parsed("").text(), "default");
}

TEST(TorchSettings, EverySettingIsReadAndWrittenBack) {
  const std::string text =
      "expandable_segments:True,garbage_collection_threshold:0.6,large_segment_size_mb:40,max_non_split_rounding_mb:64,"
      "max_split_size_mb:128,"
      "per_process_memory_fraction:0.5,roundup_power2_divisions:4";
  const TorchSettings settings = parsed(text);
  EXPECT_TRUE(settings.expandable);
  EXPECT_EQ(settings.gc_threshold, 0.6);
  EXPECT_EQ(settings.large_segment_bytes, 40 * kMiB);
  EXPECT_EQ(settings.max_non_split_rounding_bytes, 64 * kMiB);
  EXPECT_EQ(settings.max_split_bytes, 128 * kMiB);
  EXPECT_EQ(settings.memory_fraction, 0.5);
  EXPECT_EQ(settings.roundup_divisions[7], 4u);
  EXPECT_EQ(settings.text(), text);
}

TEST(TorchSettings, SpacesAndUnknownNamesDoNotDisturb) {
  std::vector<std::string> ignored;
  auto settings =
      parse_torch_settings(" max_split_size_mb : 64 , pinned_use_background_threads:True", TorchTraits{}, &ignored);
  ASSERT_TRUE(settings.ok());
  EXPECT_EQ(settings->max_split_bytes, 64 * kMiB);
  EXPECT_EQ(ignored, std::vector<std::string>{"pinned_use_background_threads"});
}

TEST(TorchSettings, ListOfDivisionsFillsBelowTheFirstAndAboveTheLast) {
  const TorchSettings settings = parsed("roundup_power2_divisions:[256:1,512:2,>:4]");
  EXPECT_EQ(settings.roundup_divisions[0], 1u);
  EXPECT_EQ(settings.roundup_divisions[8], 1u);
  EXPECT_EQ(settings.roundup_divisions[9], 2u);
  EXPECT_EQ(settings.roundup_divisions[10], 4u);
  EXPECT_EQ(settings.roundup_divisions[15], 4u);
}

TEST(TorchSettings, UpTo29TheRestOverwritesTheLastInterval) {
  EXPECT_EQ(parsed("roundup_power2_divisions:[256:1,512:2,>:4]", {2, 9}).roundup_divisions[9], 4u);
}

TEST(TorchSettings, LimitsArePyTorchs) {
  EXPECT_FALSE(parse_torch_settings("max_split_size_mb:19", TorchTraits{}).ok());
  EXPECT_TRUE(parse_torch_settings("max_split_size_mb:20", TorchTraits{}).ok());
  EXPECT_FALSE(parse_torch_settings("max_split_size_mb:20", TorchTraits::of({2, 9})).ok());
  EXPECT_FALSE(parse_torch_settings("large_segment_size_mb:10", TorchTraits{}).ok());
  EXPECT_FALSE(parse_torch_settings("garbage_collection_threshold:1", TorchTraits{}).ok());
  EXPECT_FALSE(parse_torch_settings("expandable_segments:true", TorchTraits{}).ok());
  EXPECT_FALSE(parse_torch_settings("roundup_power2_divisions:3", TorchTraits{}).ok());
  EXPECT_FALSE(parse_torch_settings("roundup_power2_divisions:[256:1", TorchTraits{}).ok());
  EXPECT_FALSE(parse_torch_settings("max_split_size_mb", TorchTraits{}).ok());
}

TEST(TorchSettings, SegmentSizeIsReadBeforeWhatItLimits) {
  EXPECT_FALSE(parse_torch_settings("max_split_size_mb:30,large_segment_size_mb:40", TorchTraits{}).ok());
  EXPECT_EQ(parsed("large_segment_size_mb:40").max_non_split_rounding_bytes, 40 * kMiB);
}

TEST(TorchSettings, ValuesOfASnapshotWinOverItsText) {
  const auto recorded = recorded_torch_settings({{"torch.alloc_conf", "max_split_size_mb:64"},
                                                 {"torch.max_split_size", "-1"},
                                                 {"torch.garbage_collection_threshold", "0.8"},
                                                 {"torch.expandable_segments", "True"},
                                                 {"torch.roundup_power2_divisions", "1:2,2:0,32768:8"},
                                                 {"torch.min_version", "2.10"}});
  ASSERT_TRUE(recorded.ok());
  EXPECT_EQ(recorded->settings.max_split_bytes, kUnlimitedBytes);
  EXPECT_EQ(recorded->settings.gc_threshold, 0.8);
  EXPECT_TRUE(recorded->settings.expandable);
  EXPECT_EQ(recorded->settings.roundup_divisions[0], 2u);
  EXPECT_EQ(recorded->settings.roundup_divisions[15], 8u);
  EXPECT_EQ(recorded->oldest, (TorchVersion{2, 10}));
}

TEST(TorchSettings, TheNewestPossibleReleaseIsAssumed) {
  const auto recorded = recorded_torch_settings({{"torch.min_version", "2.1"}, {"torch.max_version", "2.3"}});
  ASSERT_TRUE(recorded.ok());
  EXPECT_EQ(recorded->version, (TorchVersion{2, 3}));
  EXPECT_TRUE(recorded->traits.one_division_keeps_size);
  EXPECT_FALSE(recorded->traits.expandable_private_pools);
}

TEST(TorchSettings, ChangesNameWhatIsWrong) {
  TorchSettings settings;
  EXPECT_TRUE(apply_changes(settings, {}, {{"max_split_size_mb", "64"}, {"expandable_segments", "True"}}).ok());
  EXPECT_EQ(settings.max_split_bytes, 64 * kMiB);
  EXPECT_TRUE(apply_changes(settings, {}, {{"max_split_size_mb", "unlimited"}}).ok());
  EXPECT_EQ(settings.max_split_bytes, kUnlimitedBytes);
  const Status unknown = apply_changes(settings, {}, {{"max_split", "64"}});
  ASSERT_FALSE(unknown.ok());
  EXPECT_NE(unknown.error().next.find("max_split_size_mb"), std::string::npos);
  for (const char* name : {"pinned_num_register_threads", "throw_on_cudamalloc_oom", "pinned_free_catch_all",
                           "pinned_max_cached_size_mb"}) {
    const Status elsewhere = apply_changes(settings, {}, {{name, "8"}});
    ASSERT_FALSE(elsewhere.ok());
    EXPECT_EQ(elsewhere.error().what.find(std::string(name) + " does not change where"), 0u);
  }
  EXPECT_FALSE(apply_changes(settings, TorchTraits::of({2, 9}), {{"large_segment_size_mb", "40"}}).ok());
}

TEST(TorchSettings, ChangesAreParsedFromOneLine) {
  const auto changes = parse_setting_changes("expandable_segments=True, roundup_power2_divisions:[256:1,>:4]");
  ASSERT_TRUE(changes.ok());
  ASSERT_EQ(changes->size(), 2u);
  EXPECT_EQ((*changes)[1].second, "[256:1,>:4]");
  EXPECT_FALSE(parse_setting_changes("expandable_segments").ok());
  const auto unknown = parse_setting_changes("nonsense=1");
  ASSERT_FALSE(unknown.ok());
  EXPECT_NE(unknown.error().next.find("expandable_segments"), std::string::npos);
}

}  // namespace
}  // namespace faultline
