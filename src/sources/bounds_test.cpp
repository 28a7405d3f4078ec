#include "sources/bounds.h"

#include <gtest/gtest.h>

#include "trace/text.h"
#include "trace/validate.h"

namespace faultline {
namespace {

Trace trace_of(const std::string& lines) {
  Result<Trace> trace = parse_trace_text("faultline-trace-text 1\n" + lines);
  EXPECT_TRUE(trace.ok()) << trace.error().what;
  return std::move(*trace);
}

TEST(Bounds, OfTooManyDevicesTheBusiestAreKeptAndTheTraceHolds) {
  std::string lines;
  for (int i = 0; i < 200; ++i)
    lines += "device " + std::to_string(i) + "\nheap d" + std::to_string(i) +
             " kind=driver device=" + std::to_string(i) + "\n";
  for (int i = 0; i < 200; ++i) {
    const std::string n = std::to_string(i);
    lines += "alloc #a" + n + " 1MiB d" + n + " at train.py:" + n + " f\n";
    if (i >= 150) lines += "free #a" + n + "\n";
  }
  Trace trace = trace_of(lines);
  keep_in_bounds(trace);
  EXPECT_TRUE(check_trace(trace).ok()) << check_trace(trace).error().what;
  ASSERT_EQ(trace.devices.size(), kMostDevices);
  EXPECT_EQ(trace.devices.front().index, 0);
  EXPECT_EQ(trace.devices.back().index, 199);
  EXPECT_EQ(trace.allocation_count, kMostDevices);
  EXPECT_EQ(trace.lost.at("devices beyond the 64 with the most events, which are not looked at"), 136u);
  EXPECT_EQ(trace.lost.at("events of devices that are not looked at"), 136u);
}

TEST(Bounds, WhatIsWithinThemIsLeftAlone) {
  Trace trace = trace_of("alloc #a 1MiB\nfree #a\n");
  keep_in_bounds(trace);
  EXPECT_EQ(trace.events.size(), 2u);
  EXPECT_TRUE(trace.lost.empty());
}

TEST(Bounds, MemoryThatNoDeviceHasIsRefusedFromAnySource) {
  for (const char* lines :
       {"alloc #a 17TiB\n", "heap d kind=driver device=0\nalloc #a 1000TiB d\n", "map 400TiB @0x7f0000000000\n",
        "device 0 capacity=20TiB\nalloc #a 1MiB\n", "host-pin #p 17TiB\n"}) {
    const Result<Trace> parsed = parse_trace_text(std::string("faultline-trace-text 1\n") + lines);
    ASSERT_TRUE(parsed.ok()) << lines << parsed.error().what;
    const Status sound = check_sizes(*parsed);
    ASSERT_FALSE(sound.ok()) << lines;
    EXPECT_NE(sound.error().what.find("no device has more than 16.00 TiB"), std::string::npos) << sound.error().what;
  }
  for (const char* lines : {"alloc #a 2TiB\n", "alloc-failed 17TiB\n", "source dry-run\nalloc #a 17TiB\n"})
    EXPECT_TRUE(check_sizes(trace_of(lines)).ok()) << lines;
}

TEST(Bounds, LongTextsAreCutAndCounted) {
  Trace trace = trace_of("alloc 1MiB at " + std::string(1 << 20, 'x') + ".py:3 f\n");
  keep_in_bounds(trace);
  EXPECT_EQ(trace.lost.at("texts cut at 64 KiB"), 1u);
  const std::size_t kept = trace.strings.at(trace.stacks.frame(trace.events[0].stack).file).size();
  EXPECT_LE(kept, std::size_t{64} << 10);
  EXPECT_GT(kept, std::size_t{60} << 10);
}

TEST(Bounds, CountersBeyondReadingAreOne) {
  std::string lines;
  for (int i = 0; i < 1000; ++i) lines += "lost c" + std::to_string(i) + " 1\n";
  Trace trace = trace_of(lines);
  keep_in_bounds(trace);
  EXPECT_EQ(trace.lost.size(), kMostCounters);
  EXPECT_EQ(trace.lost.at("other counters"), 1000 - kMostCounters + 1);
}

}  // namespace
}  // namespace faultline
