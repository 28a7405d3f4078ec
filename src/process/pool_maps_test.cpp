#include "process/pool_maps.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <stdexcept>

#include "process/quiet_thread.h"

namespace faultline::process {
namespace {

namespace fs = std::filesystem;

class PoolMaps : public ::testing::Test {
 protected:
  PoolMaps() : folder_(fs::path(::testing::TempDir()) / "pool_maps") {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  ~PoolMaps() override { fs::remove_all(folder_); }
  void write(const std::string& name, std::size_t bytes = 10) {
    std::ofstream(folder_ / name) << std::string(bytes, 'x');
  }
  std::set<std::string> left() const {
    std::set<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder_)) names.insert(entry.path().filename().string());
    return names;
  }
  fs::path folder_;
};

TEST_F(PoolMaps, TheFirstAndTheLastStay) {
  for (int at = 10; at < 40; ++at) write("pool-7_GPU_0_bfc." + std::to_string(at));
  write("pool-8_GPU_0_bfc.10");
  write("process-7.json");
  EXPECT_EQ(thin_out_pool_maps(folder_.string(), {.most_files = 3}), 27U);
  EXPECT_EQ(left(), (std::set<std::string>{"pool-7_GPU_0_bfc.10", "pool-7_GPU_0_bfc.38", "pool-7_GPU_0_bfc.39",
                                           "pool-8_GPU_0_bfc.10", "process-7.json"}));
  EXPECT_EQ(thin_out_pool_maps(folder_.string(), {.most_files = 3}), 0U);
}

TEST_F(PoolMaps, TheyAreNotTooLarge) {
  for (int at = 10; at < 14; ++at) write("pool-7_GPU_0_bfc." + std::to_string(at), 100);
  thin_out_pool_maps(folder_.string(), {.most_files = 8, .most_bytes = 250});
  EXPECT_EQ(left(), (std::set<std::string>{"pool-7_GPU_0_bfc.12", "pool-7_GPU_0_bfc.13"}));
}

TEST_F(PoolMaps, TheLastStaysHoweverLarge) {
  write("pool-7_GPU_0_bfc.10", 100);
  thin_out_pool_maps(folder_.string(), {.most_files = 8, .most_bytes = 50});
  EXPECT_EQ(left().size(), 1U);
  write("pool-8_GPU_0_bfc.9", 100);
  EXPECT_EQ(thin_out_pool_maps(folder_.string(), {.most_files = 8, .most_bytes = 50}), 1U);
  EXPECT_EQ(left(), std::set<std::string>{"pool-7_GPU_0_bfc.10"});
}

// The bound is one for all pools, and the last of each comes before an earlier one of another.
TEST_F(PoolMaps, ManyPoolsShareTheBound) {
  for (int pool = 0; pool < 40; ++pool) {
    for (const char* at : {"10", "11", "12"}) write("pool-" + std::to_string(100 + pool) + "_GPU_0_bfc." + at, 100);
  }
  EXPECT_EQ(thin_out_pool_maps(folder_.string(), {.most_files = 8, .most_bytes = 5000}), 70U);
  std::size_t last = 0;
  for (const std::string& name : left()) last += name.ends_with(".12");
  EXPECT_EQ(left().size(), 50U);
  EXPECT_EQ(last, 40U);
}

TEST_F(PoolMaps, TheyAreFewWhenTheProgramHasEnded) {
  PoolMapsBound bound(folder_.string());
  for (int at = 10; at < 40; ++at) write("pool-7_GPU_0_bfc." + std::to_string(at));
  bound.finish();
  EXPECT_EQ(left().size(), 8U);
}

TEST(QuietThread, WhatItThrowsEndsItAlone) {
  std::thread thread = thread_without_signals([] { throw std::runtime_error("the folder is gone"); });
  ASSERT_TRUE(thread.joinable());
  thread.join();
}

TEST_F(PoolMaps, NoFolderIsFine) {
  EXPECT_EQ(thin_out_pool_maps((folder_ / "none").string()), 0U);
  PoolMapsBound(std::string()).finish();
}

}  // namespace
}  // namespace faultline::process
