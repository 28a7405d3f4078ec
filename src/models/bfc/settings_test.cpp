#include "models/bfc/settings.h"

#include <gtest/gtest.h>

namespace faultline {
namespace {

// "Created device … with 13757 MB memory": a T4 whose driver leaves 14,913 MiB.
TEST(BfcSettings, TheLimitOfTensorFlowIsWhatItPrints) {
  BfcSettings settings;
  ASSERT_TRUE(apply_changes(settings, {Framework::kTensorFlow, TargetGpu{14913 * kMiB, 7}}, {}).ok());
  EXPECT_EQ(settings.limit_bytes / kMiB, 13757u);
}

TEST(BfcSettings, TheReserveFollowsTheGeneration) {
  EXPECT_EQ(tensorflow_reserve_bytes(kGiB, 9), 225 * kMiB);
  EXPECT_EQ(tensorflow_reserve_bytes(8 * kGiB, 6), 500 * kMiB);
  EXPECT_EQ(tensorflow_reserve_bytes(16 * kGiB, 7), 1050 * kMiB);
  EXPECT_EQ(tensorflow_reserve_bytes(80 * kGiB, 9), 1536 * kMiB);
}

TEST(BfcSettings, SharesAreOfTheWholeDevice) {
  BfcSettings settings;
  const BfcTarget jax{Framework::kJax, TargetGpu{16 * kGiB, 8}};
  ASSERT_TRUE(apply_changes(settings, jax, {}).ok());
  EXPECT_EQ(settings.limit_bytes, 12 * kGiB);
  ASSERT_TRUE(apply_changes(settings, jax, {{"XLA_CLIENT_MEM_FRACTION", "0.5"}}).ok());
  EXPECT_EQ(settings.limit_bytes, 8 * kGiB);
  ASSERT_TRUE(apply_changes(settings, {Framework::kTensorFlow, TargetGpu{16 * kGiB, 8}},
                            {{"per_process_gpu_memory_fraction", "0.25"}})
                  .ok());
  EXPECT_EQ(settings.limit_bytes, 4 * kGiB);
}

TEST(BfcSettings, EveryNameIsTakenAndWrittenBack) {
  for (const std::string_view name : bfc_setting_names()) {
    BfcSettings settings;
    settings.limit_bytes = 64 * kGiB;
    const bool is_switch = name.find("GROWTH") != name.npos || name.find("COLLECTION") != name.npos ||
                           name.find("PREALLOCATE") != name.npos;
    const BfcTarget target{Framework::kTensorFlow, TargetGpu{16 * kGiB, 8}};
    EXPECT_TRUE(apply_changes(settings, target, {{std::string(name), is_switch ? "false" : "0.5"}}).ok()) << name;
    const auto changes = parse_setting_changes(written(settings, Framework::kTensorFlow));
    ASSERT_TRUE(changes.ok());
    BfcSettings again;
    ASSERT_TRUE(apply_changes(again, {}, *changes).ok());
    EXPECT_EQ(again.growth, settings.growth);
    EXPECT_EQ(again.garbage_collection, settings.garbage_collection);
    EXPECT_NEAR(static_cast<double>(again.limit_bytes), static_cast<double>(settings.limit_bytes), 0.01 * kMiB);
  }
}

TEST(BfcSettings, ValuesThatMeanNothingAreRefused) {
  BfcSettings settings;
  for (const auto& [name, value] : SettingChanges{{"TF_FORCE_GPU_ALLOW_GROWTH", "maybe"},
                                                  {"memory_limit", "0"},
                                                  {"memory_limit", "-5"},
                                                  {"memory_limit", "lots"},
                                                  {"memory_limit", "nan"},
                                                  {"internal_fragmentation_fraction", "1"},
                                                  {"per_process_gpu_memory_fraction", "0.5"},  // of what?
                                                  {"TF_DEVICE_MIN_SYS_MEMORY_IN_MB", "100"},
                                                  {"expandable_segments", "True"}})
    EXPECT_FALSE(apply_changes(settings, {}, {{name, value}}).ok()) << name << "=" << value;
  EXPECT_EQ(settings, BfcSettings{});
}

TEST(BfcSettings, WhatTensorFlowLeavesBesideItsPool) {
  struct Row {
    const char* what;
    TargetGpu gpu;
    SettingChanges changes;
    std::uint64_t mib;
  };
  const SettingChanges none;
  for (const Row& row : {Row{"T4", {15 * kGiB, 7}, none, 106 + 1050}, Row{"H200", {140 * kGiB, 9}, none, 106 + 1536},
                         Row{"small", {kGiB, 9}, none, 106 + 225}, Row{"tiny", {200 * kMiB, 9}, none, 100},
                         Row{"limited", {15 * kGiB, 7}, {{"memory_limit", "1024"}}, 106},
                         Row{"a share", {15 * kGiB, 7}, {{"per_process_gpu_memory_fraction", "0.5"}}, 106},
                         Row{"told", {15 * kGiB, 7}, {{"TF_DEVICE_MIN_SYS_MEMORY_IN_MB", "300"}}, 406},
                         Row{"told and limited",
                             {15 * kGiB, 7},
                             {{"memory_limit", "1024"}, {"TF_DEVICE_MIN_SYS_MEMORY_IN_MB", "300"}},
                             406},
                         Row{"growth alone", {15 * kGiB, 7}, {{"TF_FORCE_GPU_ALLOW_GROWTH", "true"}}, 106 + 1050}})
    EXPECT_EQ(tensorflow_context_bytes(row.gpu, row.changes), row.mib * kMiB) << row.what;
}

}  // namespace
}  // namespace faultline
