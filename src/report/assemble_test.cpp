#include "report/assemble.h"

#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/units.h"
#include "facts/facts_test_support.h"
#include "sources/error_text/error_text.h"

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
  EXPECT_EQ(account.outside,
            (Parts{{"NCCL", 256 * kMiB}, {"cuBLAS", 32 * kMiB}, {"CUDA context and driver", 1 * kGiB - 288 * kMiB}}));
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
  const Account account =
      account_of("device 0 capacity=16GiB\nheap driver\nalloc #x 2GiB driver @0x100000000 at main.cu:3 main\n");
  EXPECT_EQ(account.unknown, 14 * kGiB);
  EXPECT_TRUE(account.outside.empty());
}

TEST(Assemble, OfAMessageEveryByteIsNamedThatItNames) {
  const auto trace = read_error_text(
      "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 80.00 GiB "
      "of which 1.00 GiB is free. Process 7 has 9.00 GiB memory in use. Including "
      "non-PyTorch memory, this process has 69.00 GiB memory in use. Of the allocated memory 66.00 GiB is allocated by "
      "PyTorch, with 4.00 GiB allocated in private pools (e.g., CUDA Graphs), and "
      "1.50 GiB is reserved by PyTorch but unallocated.",
      "text");
  ASSERT_TRUE(trace.ok());
  const Account account = make_report(*trace, judge(*trace)).devices.at(0).account;
  const auto near = [](std::uint64_t a, std::uint64_t b) { return a > b ? a - b < 4 : b - a < 4; };
  // what is printed as allocated includes the pools' free blocks
  EXPECT_TRUE(near(account.live.back().second, 62 * kGiB)) << account.live.back().second;
  EXPECT_TRUE(near(account.cached, 5 * kGiB + kGiB / 2)) << account.cached;
  EXPECT_TRUE(near(account.outside_framework, 10 * kGiB + kGiB / 2)) << account.outside_framework;
  EXPECT_TRUE(near(account.free, kGiB));
  EXPECT_TRUE(near(account.unknown, kGiB));
}

TEST(Assemble, AccountsOfMessagesAddUp) {
  std::size_t accounts = 0;
  for (const auto& entry : std::filesystem::directory_iterator(std::filesystem::path(FAULTLINE_FIXTURES) / "errors")) {
    std::ostringstream text;
    text << std::ifstream(entry.path(), std::ios::binary).rdbuf();
    const auto trace =
        entry.path().extension() == ".txt" ? read_error_text(text.str(), "text") : Result<Trace>(Error{});
    if (!trace) continue;
    for (const DeviceReport& device : make_report(*trace, judge(*trace)).devices) {
      EXPECT_EQ(sum_of(device.account), device.account.capacity) << entry.path();
      ++accounts;
    }
  }
  EXPECT_GT(accounts, 40u);
}

// Of a map that lacks lines nobody knows what was in use: no peak is told beside what the finding says.
TEST(Assemble, AMapThatLacksLinesHasNoPeak) {
  const std::string head =
      "Allocator (GPU_0_bfc) ran out of memory trying to allocate 400.00MiB (rounded to 419430400)requested by op Mul\n"
      "BFCAllocator dump for GPU_0_bfc\nNext region of size 1073741824\nInUse at 7f0000000000 of size 629145600 next "
      "2\n";
  const std::string rest = "Free  at 7f0025800000 of size 444596224 next 18446744073709551615\n";
  const std::string totals = "total_region_allocated_bytes_: 1073741824 memory_limit_: 1073741824\n";
  for (const bool is_whole : {true, false}) {
    const auto trace = read_error_text(head + (is_whole ? rest : "") + totals, "log.txt");
    ASSERT_TRUE(trace);
    const DeviceReport device = make_report(*trace, judge(*trace)).devices.at(0);
    EXPECT_EQ(device.peak_allocated, is_whole ? 629145600U : 0U);
    EXPECT_EQ(device.peak_reserved, is_whole ? 1073741824U : 0U);
  }
}

}  // namespace
}  // namespace faultline
