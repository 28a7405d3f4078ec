#include "sources/run_folder/join.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "sources/run_folder/join_test_support.h"
#include "sources/run_folder/parsed_test_support.h"
#include "sources/source.h"
#include "trace/validate.h"

namespace faultline {
namespace {

Trace recording(const std::string& name) {
  Result<Trace> trace = load(FAULTLINE_FIXTURES "/torch/" + name + ".pickle.xz");
  EXPECT_TRUE(trace.ok()) << trace.error().message(name);
  return trace.ok() ? std::move(*trace) : Trace{};
}

std::vector<Event> of_heap(const Trace& trace, bool outside) {
  std::vector<Event> events;
  for (const Event& event : trace.events) {
    const bool in_heap = event.kind <= EventKind::kUnmap;
    if (in_heap && (trace.heaps[event.heap.index()].name == "driver, outside PyTorch") == outside)
      events.push_back(event);
  }
  return events;
}

class JoinOf : public testing::TestWithParam<const char*> {};

TEST_P(JoinOf, KeepsPyTorchsEventsAndWhatIsNotItsOwn) {
  const Trace torch = recording(GetParam());
  const Trace capture = CaptureOf(torch).take();
  const std::size_t segments =
      static_cast<std::size_t>(std::count_if(torch.events.begin(), torch.events.end(), [&](const Event& event) {
        return event.kind <= EventKind::kUnmap && torch.heaps[event.heap.index()].kind == HeapKind::kDriver;
      }));
  const auto others = static_cast<std::size_t>(std::count_if(
      capture.events.begin(), capture.events.end(), [](const Event& event) { return event.address < 0x100000000; }));
  const Trace joint = join_traces(recording(GetParam()), capture);
  ASSERT_TRUE(check_trace(joint).ok()) << check_trace(joint).error().message();
  EXPECT_NE(segments, 0u);
  EXPECT_EQ(of_heap(joint, true).size(), others);
  const std::vector<Event> kept = of_heap(joint, false);
  std::vector<Event> before;
  for (const Event& event : torch.events) {
    if (event.kind <= EventKind::kUnmap) before.push_back(event);
  }
  ASSERT_EQ(kept.size(), before.size());
  for (std::size_t at = 0; at < kept.size(); ++at) {
    ASSERT_EQ(kept[at].kind, before[at].kind) << at;
    ASSERT_EQ(kept[at].address, before[at].address) << at;
    ASSERT_EQ(kept[at].allocation, before[at].allocation) << at;
  }
  EXPECT_EQ(joint.devices.at(0).name, "NVIDIA H200");
}
INSTANTIATE_TEST_SUITE_P(Fixtures, JoinOf,
                         testing::Values("gpt_oom", "ring_default", "ring_expandable", "compile_reduce_overhead"));

TEST(Join, TheClocksDifferenceIsFound) {
  const Trace torch = recording("gpt_oom");
  const Trace joint = join_traces(recording("gpt_oom"), CaptureOf(torch, -7'123'000).take());
  EXPECT_EQ(joint.properties.at("run.clock_difference_ns"), "7123000");
}

TEST(Join, ARefusalThatPyTorchMetIsToldOnce) {
  const Trace torch = recording("gpt_oom");
  Trace capture = CaptureOf(torch).take();
  std::int64_t failed_ns = 0;
  for (const Event& event : torch.events) {
    if (event.kind == EventKind::kAllocFailed) failed_ns = event.time_ns;
  }
  ASSERT_NE(failed_ns, 0);
  const auto refuse = [&](const char* module) {
    Event event;
    event.kind = EventKind::kAllocFailed;
    event.size_bytes = std::uint64_t{1} << 40;
    event.time_ns = failed_ns - 10'000;
    const Frame frame{capture.strings.intern("+0x30"), capture.strings.intern(module), 0};
    event.stack = capture.stacks.push({}, capture.stacks.intern_frame(frame));
    const auto later = std::upper_bound(capture.events.begin(), capture.events.end(), event.time_ns,
                                        [](std::int64_t time, const Event& at) { return time < at.time_ns; });
    capture.events.insert(later, event);
  };
  const auto failures = [&](const Trace& trace) {
    return std::count_if(trace.events.begin(), trace.events.end(),
                         [](const Event& event) { return event.kind == EventKind::kAllocFailed; });
  };
  refuse("/x/libc10_cuda.so");
  EXPECT_EQ(failures(join_traces(recording("gpt_oom"), capture)), failures(torch));
  refuse("/x/libnccl.so.2");
  EXPECT_EQ(failures(join_traces(recording("gpt_oom"), capture)), failures(torch) + 1);
}

TEST(Join, AnotherLibrarysMemoryHasItsStack) {
  const Trace torch = recording("gpt_oom");
  const Trace joint = join_traces(recording("gpt_oom"), CaptureOf(torch).take());
  const std::vector<Event> outside = of_heap(joint, true);
  ASSERT_FALSE(outside.empty());
  EXPECT_EQ(joint.strings.at(joint.stacks.frame(outside.front().stack).file), "/x/libcublas.so.13");
  EXPECT_EQ(outside.front().size_bytes, std::uint64_t{8} << 20);
}

// PyTorch's history begins late and ends early; the capture saw the whole process.
TEST(Join, AHistoryWithoutBeginningAndEndIsFilledInByNobody) {
  Trace torch = parsed(R"(can addresses stacks streams events times
alloc #s 2MiB driver @0x200000 preexisting t=500000
alloc #x 4096 @0x200000 preexisting t=500000
alloc #t 2MiB driver @0x600000 t=500000
alloc #y 4096 @0x600000 t=500100
)");
  const Trace capture = parsed(R"(can addresses stacks streams complete-from-start events times
heap driver
call go = launch k grid=1 block=1
alloc #s 2MiB driver @0x200000 t=100
alloc #gone 2MiB driver @0x400000 t=200
free #gone t=300
alloc #t 2MiB driver @0x600000 t=499000
launch call=go t=499050
free #s t=900000
free #t t=900100
)");
  const Trace joint = join_traces(std::move(torch), capture);
  ASSERT_TRUE(check_trace(joint).ok()) << check_trace(joint).error().message();
  EXPECT_EQ(joint.preexisting_count, 2u);
  EXPECT_FALSE(joint.can(kCompleteFromStart));
  const std::vector<Event> outside = of_heap(joint, true);
  ASSERT_EQ(outside.size(), 2u) << "the segment that came and went before the history";
  EXPECT_EQ(outside[0].address, 0x400000u);
  EXPECT_EQ(of_heap(joint, false).size(), 4u);
  // The launch stands between the segment and the block that was made in it.
  ASSERT_EQ(joint.events.size(), 7u);
  EXPECT_EQ(joint.events[4].address, 0x600000u);
  EXPECT_EQ(joint.events[5].kind, EventKind::kLaunch);
  EXPECT_EQ(joint.events[6].address, 0x600000u);
}

}  // namespace
}  // namespace faultline
