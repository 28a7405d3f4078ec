#include "facts/usage.h"

#include "base/units.h"
#include "facts/facts_test_support.h"

namespace faultline {
namespace {

std::vector<DeviceUsage> measured(const Trace& trace) {
  return measure_usage(trace, Lifetimes(trace, {}), HeapUses(trace));
}

TEST(Usage, PeaksAreHeldBytesAndSegments) {
  const Trace trace = traced(R"(
alloc #s 20MiB driver @0x10000000
alloc #a 4MiB @0x10000000
alloc #b 6MiB @0x10400000
free #a
alloc #c 1MiB @0x10000000
free #b
free #c
free #s
)");
  const DeviceUsage usage = measured(trace).at(0);
  EXPECT_EQ(usage.peak_allocated.allocated, 10 * kMiB);
  EXPECT_EQ(usage.peak_allocated.event, 2u);
  EXPECT_EQ(usage.peak_reserved.reserved, 20 * kMiB);
  EXPECT_EQ(usage.peak_reserved.event, 0u);
  EXPECT_EQ(usage.end.allocated, 0u);
  EXPECT_EQ(usage.end.reserved, 0u);
}

TEST(Usage, MemoryThatWaitsForAStreamIsPendingNotAllocated) {
  const Trace trace = traced("alloc #a 4MiB\nfree #a requested\nalloc #b 1MiB\nfree #a completed\n");
  const std::vector<DeviceUsage> all = measured(trace);
  EXPECT_EQ(all[0].peak_allocated.event, 0u);
  EXPECT_EQ(all[0].curve.at(1).pending, 4 * kMiB);
  EXPECT_EQ(all[0].end.pending, 0u);
  EXPECT_EQ(all[0].end.allocated, 1 * kMiB);
}

TEST(Usage, MappedMemoryIsReserved) {
  const Trace trace =
      traced("map driver 20MiB @0x10000000\nmap driver 20MiB @0x11400000\nunmap driver 20MiB @0x10000000\n");
  const DeviceUsage usage = measured(trace).at(0);
  EXPECT_EQ(usage.peak_reserved.reserved, 40 * kMiB);
  EXPECT_EQ(usage.end.reserved, 20 * kMiB);
}

TEST(Usage, DevicesAreCountedApart) {
  const Trace trace = traced(R"(
device 0
device 1
heap driver
heap torch
heap driver1 kind=driver device=1
heap torch1 kind=torch device=1 below=driver1
alloc #a torch 4MiB
alloc #b torch1 6MiB device=1
free #a
)");
  const std::vector<DeviceUsage> all = measured(trace);
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].peak_allocated.allocated, 4 * kMiB);
  EXPECT_EQ(all[0].end.allocated, 0u);
  EXPECT_EQ(all[1].end.allocated, 6 * kMiB);
}

TEST(Usage, TheLastFailureIsKeptHoweverManyThereAre) {
  std::string lines = "alloc #a 1MiB\n";
  for (int i = 0; i < 100; ++i) lines += "alloc-failed 1GiB\n";
  lines += "alloc-failed 2GiB\n";
  const Trace trace = traced(lines);
  const DeviceUsage usage = measured(trace).at(0);
  EXPECT_EQ(usage.failure_count, 101u);
  EXPECT_EQ(usage.failures.size(), DeviceUsage::kMaxFailures);
  EXPECT_EQ(trace.events[usage.failures.back().event].size_bytes, 2 * kGiB);
}

TEST(Usage, TheCurveIsShortAndHasThePeak) {
  const Trace trace = recording("gpt");
  const DeviceUsage usage = measured(trace).at(0);
  EXPECT_LE(usage.curve.size(), DeviceUsage::kCurvePoints + 1);
  std::uint64_t highest = 0;
  for (const UsageMoment& moment : usage.curve) highest = std::max(highest, moment.allocated);
  EXPECT_EQ(highest, usage.peak_allocated.allocated);
}

}  // namespace
}  // namespace faultline
