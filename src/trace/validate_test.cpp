#include "trace/validate.h"

#include <gtest/gtest.h>

#include <functional>

#include "trace/sample_traces.h"
#include "trace/text.h"

namespace faultline {
namespace {

constexpr std::string_view kSmall = R"(faultline-trace-text 1
stack s = train.py:1 main
tensor x = float32[3]
alloc #1 100 @0x1000 stack=s tensor=x preexisting
alloc #2 200 @0x2000
op-begin aten::mm
free #1
free #2 requested
free #2 completed
call add = launch _Z3add
call up = copy from=0x10
call bad = fault "Warp Illegal Address"
launch call=add
copy call=up
fault call=bad
segment 0x1000 4096 torch
block 0x1000 512 active
block 0x1200 3584 free
)";

Trace small() {
  Result<Trace> trace = parse_trace_text(kSmall);
  EXPECT_TRUE(trace.ok()) << trace.error().message();
  return std::move(*trace);
}

TEST(CheckTrace, HoldsForAGoodTrace) {
  EXPECT_TRUE(check_trace(small()).ok());
  EXPECT_TRUE(check_trace(Trace{}).ok());
  for (std::uint64_t seed = 0; seed < 50; ++seed) EXPECT_TRUE(check_trace(RandomTrace(seed).make(100)).ok()) << seed;
}

struct Breakage {
  const char* name;
  std::function<void(Trace&)> apply;
  const char* says;
};

TEST(CheckTrace, NamesWhatIsBroken) {
  const std::vector<Breakage> breakages = {
      {"unknown kind", [](Trace& t) { t.events[3].kind = static_cast<EventKind>(kEventKindCount); }, "event 3"},
      {"unknown phase", [](Trace& t) { t.events[3].bits |= 3; }, "event 3 (Free) is in no known phase"},
      {"stack", [](Trace& t) { t.events[4].stack = StackId(2); }, "event 4 (Free) names stack 2, the trace has 2"},
      {"stream", [](Trace& t) { t.events[4].stream = StreamId(1); }, "names stream 1"},
      {"heap", [](Trace& t) { t.events[1].heap = HeapId(2); }, "event 1 (Alloc) names heap 2"},
      {"device", [](Trace& t) { t.events[1].device = 7; }, "names device 7"},
      {"tensor", [](Trace& t) { t.events[0].extra = 2; }, "names tensor 2"},
      {"name", [](Trace& t) { t.events[2].extra = 99; }, "event 2 (OpBegin) names string 99"},
      {"launch", [](Trace& t) { t.events[6].extra = 2; }, "event 6 (Launch) names launch 2, the trace has 2"},
      {"copy", [](Trace& t) { t.events[7].extra = 2; }, "event 7 (Copy) names copy 2"},
      {"fault", [](Trace& t) { t.events[8].extra = 2; }, "event 8 (Fault) names fault 2"},
      {"kernel",
       [](Trace& t) {
         t.launches.intern({StringId(99), {}, {}, 0, 0, {}});
       },
       "launch 2 names string 99"},
      {"instruction",
       [](Trace& t) {
         Fault fault;
         fault.instruction = StringId(99);
         t.faults.intern(fault);
       },
       "fault 2 names string 99"},
      {"side",
       [](Trace& t) {
         Copy copy;
         copy.destination_side = static_cast<MemorySide>(4);
         t.copies.intern(copy);
       },
       "copy 2 has no known side"},
      {"no id", [](Trace& t) { t.events[1].allocation = {}; }, "without an id"},
      {"twice", [](Trace& t) { t.events[1].allocation = AllocationId(1); }, "makes allocation 1 a second time"},
      {"beyond", [](Trace& t) { t.events[5].allocation = AllocationId(3); }, "names allocation 3, the trace has 2"},
      {"early free",
       [](Trace& t) {
         std::swap(t.events[1], t.events[3]);
         t.events[1].allocation = AllocationId(2);
       },
       "frees allocation 2 before it is made"},
      {"too few made", [](Trace& t) { t.allocation_count = 3; }, "3 allocations, but 2"},
      {"more made than events", [](Trace& t) { t.allocation_count = 4'000'000'000; }, "only 9 events"},
      {"late preexisting", [](Trace& t) { t.events[4].set(kPreexisting); },
       "event 4 (Free) is marked as before the recording"},
      {"unmarked preexisting", [](Trace& t) { t.preexisting_count = 2; }, "event 1 (Alloc) is not marked"},
      {"below", [](Trace& t) { t.heaps[1].below = HeapId(2); }, "heap 1 names heap 2"},
      {"heaps in a circle", [](Trace& t) { t.heaps[0].below = HeapId(1); }, "heap 0 has no lowest heap"},
      {"heap kind", [](Trace& t) { t.heaps[0].kind = static_cast<HeapKind>(kHeapKindCount); },
       "heap 0 is of no known kind"},
      {"device twice", [](Trace& t) { t.devices.push_back(t.devices[0]); }, "device 0 is listed twice"},
      {"blocks", [](Trace& t) { t.final_segments[0].block_count = 3; },
       "final segment 0 names blocks 0 to 3, the trace has 2"},
      {"segment heap", [](Trace& t) { t.final_segments[0].heap = HeapId(9); }, "final segment 0 names heap 9"},
      {"block stack", [](Trace& t) { t.final_blocks[1].stack = StackId(5); }, "final block 1 names stack 5"},
      {"block state", [](Trace& t) { t.final_blocks[1].state = static_cast<FinalBlock::State>(3); },
       "final block 1 is in no known state"},
      {"frame",
       [](Trace& t) {
         t.stacks.intern_frame({StringId(99), StringId(0), 0});
       },
       "frame 2 names string 99"},
      {"tensor dtype",
       [](Trace& t) {
         t.tensors.intern({{}, StringId(99), {}, {}, {}});
       },
       "tensor 2 names string 99"},
  };
  for (const Breakage& breakage : breakages) {
    Trace trace = small();
    breakage.apply(trace);
    const Status status = check_trace(trace);
    ASSERT_FALSE(status.ok()) << breakage.name;
    EXPECT_NE(status.error().what.find(breakage.says), std::string::npos)
        << breakage.name << ": " << status.error().what;
  }
}

TEST(CheckTrace, FindsHeapsWithoutALowest) {
  std::vector<Heap> heaps(6);
  const std::vector<std::uint16_t> below = {0, 0, 3, 4, 3, 2};  // 3 and 4 stand on each other, 2 and 5 above them
  for (std::size_t i = 0; i < heaps.size(); ++i) heaps[i].below = HeapId(below[i]);
  std::vector<HeapId> circling = heaps_in_circles(heaps);
  std::sort(circling.begin(), circling.end());
  EXPECT_EQ(circling, (std::vector<HeapId>{HeapId(2), HeapId(3), HeapId(4), HeapId(5)}));
}

}  // namespace
}  // namespace faultline
