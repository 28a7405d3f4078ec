#include "report/assemble.h"

#include "base/units.h"
#include "facts/facts_test_support.h"

namespace faultline {
namespace {

Account account_of(std::string_view lines) {
  const Trace trace = traced(lines);
  const Judgement judgement = judge(trace);
  return make_report(trace, judgement).devices.at(0).account;
}

std::uint64_t sum_of(const Account& account) {
  std::uint64_t sum = account.cached + account.outside_framework + account.free + account.unknown;
  for (const auto& [name, bytes] : account.live) sum += bytes;
  return sum;
}

using Parts = std::vector<std::pair<std::string, std::uint64_t>>;

TEST(Assemble, WhatLibrariesTookIsNamedAndAddsUp) {
  const Account account = account_of(R"(
device 0 capacity=16GiB
heap driver
heap torch below=driver
heap outside kind=driver below=driver
alloc #s 8GiB driver @0x100000000
alloc #x 7GiB torch @0x100000000 at run.py:3 main
alloc #n 256MiB outside @0x700000000 at run.py:5 main > /x/libnccl.so.2:0 +0x10 > /x/libcudart.so.13:0 +0x20
alloc #c 32MiB outside @0x800000000 at run.py:6 main > /x/libcublas.so.13:0 +0x10
alloc-failed 9GiB torch device-free=7GiB at run.py:7 main
)");
  EXPECT_EQ(sum_of(account), 16 * kGiB);
  EXPECT_EQ(account.free, 7 * kGiB);
  EXPECT_EQ(account.outside, (Parts{{"NCCL", 256 * kMiB}, {"cuBLAS", 32 * kMiB}, {"CUDA context and driver", 1 * kGiB - 288 * kMiB}}));
  EXPECT_EQ(account.unknown, 0u);
}

TEST(Assemble, WithoutAFrameworkWhatTheDriverGaveIsInUse) {
  const Account account = account_of(R"(
device 0 capacity=16GiB
property driver.free_at_start.0 = 16642998272
heap driver
alloc #x 2GiB driver @0x100000000 at main.cu:3 main
map 1GiB driver @0x900000000 at main.cu:4 main
)");
  EXPECT_EQ(sum_of(account), 16 * kGiB);
  EXPECT_FALSE(account.has_framework);
  EXPECT_EQ(account.live.back().second, 3 * kGiB);
  EXPECT_EQ(account.cached, 0u);
  EXPECT_EQ(account.outside, (Parts{{"CUDA context and driver", 512 * kMiB}}));
  EXPECT_EQ(account.free, 16 * kGiB - 3 * kGiB - 512 * kMiB);
}

TEST(Assemble, WithoutAMeasureOfFreeMemoryTheRestIsUnknown) {
  const Account account = account_of("device 0 capacity=16GiB\nheap driver\nalloc #x 2GiB driver @0x100000000 at main.cu:3 main\n");
  EXPECT_EQ(account.unknown, 14 * kGiB);
  EXPECT_TRUE(account.outside.empty());
}

}  // namespace
}  // namespace faultline
