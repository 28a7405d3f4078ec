#include <random>

#include "dryrun/dryrun_test_support.h"

namespace faultline {
namespace {

constexpr std::uint64_t kT4 = 15828320256;

class Pool {
 public:
  explicit Pool(const char* framework, const char* settings = "", std::uint64_t capacity_bytes = kT4) {
    std::array<char, 512> error{};
    handle_ = faultline_open_pool(path().c_str(), "Tesla T4", capacity_bytes, 200 * kMiB, framework, 7, settings,
                                  error.data(), error.size());
    error_ = error.data();
  }
  ~Pool() { close(); }
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  std::string path() const { return folder_ / "trace"; }
  faultline_dryrun* handle() const { return handle_; }
  const std::string& error() const { return error_; }
  std::uint32_t take(std::uint64_t size_bytes, std::uint32_t heap = FAULTLINE_HEAP_TORCH) {
    std::uint32_t allocation = 0;
    faultline_alloc(handle_, 0, size_bytes, 0, heap, 0, 0, &allocation, nullptr);
    return allocation;
  }
  std::uint32_t take_beside(std::uint64_t size_bytes) { return take(size_bytes, FAULTLINE_HEAP_DRIVER); }
  faultline_stats stats() const {
    faultline_stats stats;
    faultline_get_stats(handle_, 0, &stats);
    return stats;
  }
  Trace left() {
    close();
    Result<Trace> trace = read_trace_file(path());
    EXPECT_TRUE(trace.ok()) << trace.error().message();
    EXPECT_TRUE(check_trace(*trace).ok());
    return std::move(*trace);
  }

 private:
  void close() {
    faultline_close(handle_);
    handle_ = nullptr;
  }

  TemporaryFolder folder_;
  faultline_dryrun* handle_ = nullptr;
  std::string error_;
};

TEST(DryRunPool, IsAsLargeAsTheFrameworkMakesIt) {
  EXPECT_EQ(Pool("jax").stats().limit_bytes, (kT4 * 3 / 4 + 2 * kMiB - 1) / (2 * kMiB) * (2 * kMiB));
  EXPECT_EQ(Pool("jax", "XLA_CLIENT_MEM_FRACTION=0.5").stats().limit_bytes % (2 * kMiB), 0u);
  EXPECT_NEAR(static_cast<double>(Pool("jax", "XLA_CLIENT_MEM_FRACTION=0.5").stats().limit_bytes), kT4 * 0.5, 2 * kMiB);
  EXPECT_EQ(Pool("tensorflow", "", 14913 * kMiB).stats().limit_bytes, 13757 * kMiB);
  EXPECT_EQ(Pool("tensorflow", "memory_limit=2048").stats().limit_bytes, 2048 * kMiB);
}

TEST(DryRunPool, SaysWhatItCannotBeMadeOf) {
  EXPECT_NE(Pool("caffe").error().find("no framework"), std::string::npos);
  EXPECT_NE(Pool("jax", "XLA_CLIENT_MEM_FRACTION=much").error().find("a share"), std::string::npos);
  EXPECT_EQ(Pool("jax", "nonsense=1").handle(), nullptr);
}

TEST(DryRunPool, TakesAllAtOnceOrGrows) {
  Pool whole("jax"), growing("jax", "XLA_PYTHON_CLIENT_PREALLOCATE=false");
  for (Pool* pool : {&whole, &growing}) EXPECT_NE(pool->take(kMiB), 0u);
  EXPECT_EQ(whole.stats().reserved_bytes, whole.stats().limit_bytes);
  EXPECT_EQ(growing.stats().reserved_bytes, 2 * kMiB);
}

TEST(DryRunPool, RefusesBeyondItsLimitAndServesWhatIsFreedAgain) {
  Pool pool("jax");
  const std::uint32_t first = pool.take(8 * kGiB);
  EXPECT_NE(first, 0u);
  EXPECT_EQ(pool.take(8 * kGiB), 0u);
  EXPECT_EQ(pool.stats().out_of_memories, 1u);
  faultline_free(pool.handle(), first, 0);
  EXPECT_NE(pool.take(8 * kGiB), 0u);
  EXPECT_EQ(pool.stats().peak_allocated_bytes, 8 * kGiB);
}

TEST(DryRunPool, WithOvercommitTellsTheFirstFailureAndGoesOn) {
  Pool pool("jax");
  faultline_set_overcommit(pool.handle(), 1);
  for (int at = 0; at < 4; ++at) EXPECT_NE(pool.take(8 * kGiB), 0u);
  EXPECT_EQ(pool.stats().allocated_bytes, 32 * kGiB);
  EXPECT_EQ(pool.stats().out_of_memories, 1u);
  EXPECT_EQ(pool.left().properties.at("dry-run.overcommitted_requests"), "3");
}

TEST(DryRunPool, WhatOnlyPyTorchHasIsPassedOver) {
  Pool pool("tensorflow");
  EXPECT_EQ(faultline_add_device(pool.handle(), "another", kT4, 0), 0u);
  EXPECT_EQ(faultline_pin(pool.handle(), kMiB, 0, 0), 0u);
  faultline_empty_cache(pool.handle(), 0, 0);
  EXPECT_NE(pool.take(kMiB), 0u);
}

// A T4 of 14.74 GiB: JAX takes three quarters at once, the context 200 MiB, and 3.49 GiB are left.
TEST(DryRunPool, BesideItIsWhatItLeavesOfTheDevice) {
  Pool whole("jax");
  const std::uint32_t first = whole.take_beside(3 * kGiB);
  EXPECT_NE(first, 0u);
  EXPECT_EQ(whole.stats().reserved_bytes, whole.stats().limit_bytes);
  EXPECT_EQ(whole.take_beside(kGiB), 0u);
  EXPECT_EQ(whole.stats().out_of_memories, 1u);
  faultline_free(whole.handle(), first, 0);
  EXPECT_NE(whole.take_beside(kGiB), 0u);
  EXPECT_EQ(whole.stats().allocated_bytes, 0u);
  Pool growing("jax", "XLA_PYTHON_CLIENT_PREALLOCATE=false");
  EXPECT_NE(growing.take_beside(10 * kGiB), 0u);
  EXPECT_EQ(growing.take(8 * kGiB), 0u);
  EXPECT_NE(growing.take(2 * kGiB), 0u);
}

TEST(DryRunPool, BesideItTheDeviceGrowsWithOvercommit) {
  Pool pool("jax");
  faultline_set_overcommit(pool.handle(), 1);
  EXPECT_NE(pool.take(kGiB), 0u);
  for (int at = 0; at < 3; ++at) EXPECT_NE(pool.take_beside(8 * kGiB), 0u);
  EXPECT_EQ(pool.stats().out_of_memories, 1u);
}

TEST(DryRunPool, LeavesATraceThatItsModelProves) {
  for (const char* settings : {"", "XLA_PYTHON_CLIENT_PREALLOCATE=false"}) {
    Pool pool("jax", settings);
    std::mt19937_64 random(7);
    std::vector<std::uint32_t> live;
    for (int at = 0; at < 2000; ++at) {
      if (random() % 5 < 3)
        live.push_back(pool.take(1 + random() % (random() % 3 == 0 ? 20 * kMiB : kMiB)));
      else if (!live.empty()) {
        std::swap(live[random() % live.size()], live.back());
        faultline_free(pool.handle(), live.back(), 0);
        live.pop_back();
      }
    }
    const Trace trace = pool.left();
    ReplayOptions options;
    options.proof = true;
    const Result<ReplayResult> proof = replay(trace, options);
    ASSERT_TRUE(proof.ok()) << proof.error().message();
    EXPECT_GT(proof->placements, 1000u);
    EXPECT_EQ(proof->exact, proof->placements) << settings;
  }
}

}  // namespace
}  // namespace faultline
