#include "trace/text.h"

#include <gtest/gtest.h>

#include "base/safe_text.h"
#include "trace/sample_traces.h"

namespace faultline {
namespace {

Trace parsed(std::string_view text) {
  Result<Trace> trace = parse_trace_text(text);
  EXPECT_TRUE(trace.ok()) << trace.error().message();
  return trace.ok() ? std::move(*trace) : Trace{};
}

std::string refusal(std::string_view body) {
  const Result<Trace> trace = parse_trace_text("faultline-trace-text 1\n" + std::string(body));
  return trace.ok() ? "accepted" : trace.error().message();
}

std::string place(const Trace& trace, StackId stack) {
  const Frame& frame = trace.stacks.frame(stack);
  return std::string(trace.strings.at(frame.file)) + ":" + std::to_string(frame.line) + " " +
         std::string(trace.strings.at(frame.function));
}

TEST(TraceText, LeakIsADozenLines) {
  const Trace trace = parsed(R"(
# A loss that is kept for each step.
faultline-trace-text 1
alloc #weights 4MiB at train.py:3 build
step 1
alloc #loss1 1KiB at train.py:9 main > loss.py:2 forward
alloc #tmp 2MiB at train.py:10 main
free #tmp
step 2
alloc #loss2 1KiB at train.py:9 main > loss.py:2 forward
)");
  ASSERT_EQ(trace.events.size(), 7u);
  EXPECT_EQ(trace.allocation_count, 4u);
  EXPECT_EQ(trace.events[0].size_bytes, 4u << 20);
  EXPECT_EQ(trace.events[1].kind, EventKind::kStepMark);
  EXPECT_EQ(trace.events[1].size_bytes, 1u);
  EXPECT_EQ(place(trace, trace.events[2].stack), "loss.py:2 forward");
  EXPECT_EQ(place(trace, trace.stacks.parent(trace.events[2].stack)), "train.py:9 main");
  EXPECT_EQ(trace.events[2].stack, trace.events[6].stack);
  EXPECT_EQ(trace.events[4].allocation, trace.events[3].allocation);
  EXPECT_EQ(trace.events[4].size_bytes, 2u << 20);
  EXPECT_EQ(trace.events[4].phase(), FreePhase::kBoth);
  EXPECT_EQ(trace.events[6].time_ns - trace.events[5].time_ns, 1000);
  ASSERT_EQ(trace.heaps.size(), 2u);
  EXPECT_EQ(trace.heaps[1].name, "torch");
  EXPECT_EQ(trace.events[0].heap, HeapId(1));
  EXPECT_EQ(trace.heaps[1].below, HeapId(0));
  EXPECT_EQ(trace.devices.size(), 1u);
  EXPECT_EQ(trace.streams.size(), 1u);
  EXPECT_EQ(trace.source_kind, "text");
  EXPECT_EQ(trace.capabilities, std::uint32_t{kStacks | kStreams | kCompleteFromStart | kEvents | kSteps});
}

TEST(TraceText, SaysEverythingAnEventCanHold) {
  const Trace trace = parsed(R"trace(faultline-trace-text 1
source torch-snapshot path="/tmp/a b.pickle" events=12
can addresses stacks
device 0 name="NVIDIA H200" capacity=140GiB allowed=1000
device 1
heap driver
heap torch
heap driver1 kind=driver device=1
heap graph kind=torch device=1 pool=0.1 name="torch private pool (0, 1)"
stream 1 device=1 handle=0x55
property torch.alloc_conf = "expandable_segments:True"
lost "odd entries" 3
tensor x = float32[32,1024] op=aten::mm name=logits operands="float32[32,8] float32[8,1024]"
stack s1 = train.py:12 main > "model file.py":30 "forward pass"
stack s2 = s1 > "C:x.cpp":5 at::empty
alloc #1 graph 4000000 @0x7f0000000000 stream=1 stack=s2 tensor=x thread=3 t=-5
free #1 requested stream=0
free #1 completed t=+70
alloc-failed 1GiB device-free=12345
map driver 2MiB @0x10
host-pin #2 driver 64 @0x0
record event=9 stream=1
op-begin "aten::mm out"
op-end "at" failed
tensor-note #1 tensor=int8[]
call over = violation out-of-bounds write kernel=add file=add.cu line=7 grid=33 block=128 block-index=32,0,0 thread-index=1,0,0 pc=0x40
violation #1 @0x7f00000f0000 4 call=over
free driver 100 @0x77
)trace");
  EXPECT_EQ(trace.source_path, "/tmp/a b.pickle");
  EXPECT_EQ(trace.source_events, 12u);
  EXPECT_EQ(trace.capabilities, std::uint32_t{kAddresses | kStacks});
  EXPECT_TRUE(trace.devices[0] == (Device{0, "NVIDIA H200", 140ull << 30, 1000}));
  EXPECT_TRUE(trace.heaps[3] == (Heap{HeapKind::kTorchCaching, 1, HeapId(2), 0, 1, "torch private pool (0, 1)"}));
  EXPECT_TRUE(trace.streams[1] == (Stream{1, 0x55}));
  EXPECT_EQ(trace.properties.at("torch.alloc_conf"), "expandable_segments:True");
  EXPECT_EQ(trace.lost.at("odd entries"), 3u);
  const Event& alloc = trace.events[0];
  EXPECT_EQ(alloc.address, 0x7f0000000000u);
  EXPECT_TRUE(alloc.has(kAddressKnown));
  EXPECT_EQ(alloc.device, 1u);
  EXPECT_EQ(alloc.thread, ThreadId(3));
  EXPECT_EQ(alloc.time_ns, -5);
  EXPECT_EQ(place(trace, alloc.stack), "C:x.cpp:5 at::empty");
  EXPECT_EQ(place(trace, trace.stacks.parent(alloc.stack)), "model file.py:30 forward pass");
  const Tensor& tensor = trace.tensors.at(TensorId(alloc.extra));
  EXPECT_EQ(tensor.shape, (std::vector<std::int64_t>{32, 1024}));
  EXPECT_EQ(trace.strings.at(tensor.op), "aten::mm");
  EXPECT_EQ(trace.strings.at(tensor.operands), "float32[32,8] float32[8,1024]");
  EXPECT_EQ(trace.events[1].phase(), FreePhase::kRequested);
  EXPECT_EQ(trace.events[1].device, 1u);
  EXPECT_EQ(trace.events[1].address, alloc.address);
  EXPECT_EQ(trace.events[1].stream, StreamId(0));
  EXPECT_EQ(trace.events[2].time_ns, trace.events[1].time_ns + 70);
  EXPECT_EQ(trace.events[3].address, 12345u);
  EXPECT_TRUE(trace.events[3].has(kHasDeviceFree));
  EXPECT_TRUE(trace.events[5].has(kAddressKnown));
  EXPECT_EQ(trace.events[6].extra, 9u);
  EXPECT_EQ(trace.strings.at(StringId(trace.events[7].extra)), "aten::mm out");
  EXPECT_TRUE(trace.events[8].has(kFailed));
  EXPECT_TRUE(trace.tensors.at(TensorId(trace.events[9].extra)).shape.empty());
  const Violation& violation = trace.violations.at(ViolationId(trace.events[10].extra));
  EXPECT_EQ(violation.kind, ViolationKind::kOutOfBounds);
  EXPECT_EQ(violation.access, AccessKind::kWrite);
  EXPECT_EQ(trace.strings.at(violation.file), "add.cu");
  EXPECT_TRUE(violation.has_thread);
  EXPECT_EQ(violation.block_index, (Extent3{32, 0, 0}));
  EXPECT_EQ(trace.events[11].allocation, AllocationId(0));
}

TEST(TraceText, SaysWhatACallWasGiven) {
  const Trace trace = parsed(R"trace(faultline-trace-text 1
heap driver
heap host kind=registered-host below=host
stream 1 handle=0x55 non-blocking
call add = launch _Z3addPfS_ grid=4 block=16,16 shared=1024 arguments=0:0x7f00,8:0x7f80
call replay = launch graph=3
call up = copy from=0x10 host-to-device asynchronous source-device=1 width=1KiB height=5 source-pitch=2KiB
call seen = fault CUDA_ERROR_ILLEGAL_ADDRESS by=cuStreamSynchronize code=700
call bad = fault "Warp Illegal Address" kernel=_Z3addPfS_ file=add.cu line=7 instruction="LDG.E R0, [R22.64]" pc-offset=0x40 block-index=3,0,0 thread-index=32,0,0 lanes=32 store addresses=0x10,0x14 parameters=0:0x7f00
alloc #1 driver 512 @0x7f00
launch call=add stream=1
launch call=replay captured
copy #1 512 @0x7f00 call=up failed
sync for=device
sync for=event 9
free #1 failed
fault call=seen
fault @0x10 4 call=bad #1
)trace");
  EXPECT_EQ(trace.heaps[1].kind, HeapKind::kRegisteredHost);
  EXPECT_TRUE(trace.streams[0].waits_for_default);
  EXPECT_FALSE(trace.streams[1].waits_for_default);
  const Launch& add = trace.launches.at(LaunchId(trace.events[1].extra));
  EXPECT_EQ(trace.strings.at(add.kernel), "_Z3addPfS_");
  EXPECT_EQ(add.grid, (Extent3{4, 1, 1}));
  EXPECT_EQ(add.block, (Extent3{16, 16, 1}));
  EXPECT_EQ(add.shared_bytes, 1024u);
  EXPECT_EQ(add.arguments, (std::vector<LaunchArgument>{{0, 0x7f00}, {8, 0x7f80}}));
  EXPECT_EQ(trace.launches.at(LaunchId(trace.events[2].extra)).graph, 3u);
  EXPECT_TRUE(trace.events[2].has(kCaptured));
  const Copy& up = trace.copies.at(CopyId(trace.events[3].extra));
  EXPECT_TRUE(up == (Copy{0x10, MemorySide::kHost, MemorySide::kDevice, true, 1, 1024, 5, 1, 2048, 0}));
  EXPECT_TRUE(trace.events[3].has(kFailed));
  EXPECT_EQ(trace.events[4].extra, static_cast<std::uint32_t>(SyncTarget::kDevice));
  EXPECT_EQ(trace.events[5].extra, static_cast<std::uint32_t>(SyncTarget::kEvent));
  EXPECT_FALSE(trace.events[6].ends_use());
  EXPECT_FALSE(trace.events[6].returns_to_heap());
  EXPECT_EQ(trace.faults.at(FaultId(trace.events[7].extra)).code, 700u);
  const Fault& bad = trace.faults.at(FaultId(trace.events[8].extra));
  EXPECT_EQ(trace.strings.at(bad.instruction), "LDG.E R0, [R22.64]");
  EXPECT_EQ(bad.line, 7u);
  EXPECT_TRUE(bad.has_thread);
  EXPECT_TRUE(bad.is_store);
  EXPECT_EQ(bad.thread_index, (Extent3{32, 0, 0}));
  EXPECT_EQ(bad.addresses, (std::vector<std::uint64_t>{0x10, 0x14}));
  EXPECT_EQ(bad.parameters, (std::vector<LaunchArgument>{{0, 0x7f00}}));
}

TEST(TraceText, GivesBackWhatWasWritten) {
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    const Trace trace = RandomTrace(seed).make(seed % 40);
    const std::string text = trace_to_text(trace);
    const Result<Trace> read = parse_trace_text(text);
    ASSERT_TRUE(read.ok()) << "seed " << seed << ": " << read.error().message() << "\n" << text;
    expect_same_trace(trace, *read);
    if (HasFatalFailure()) FAIL() << "seed " << seed << "\n" << text;
    ASSERT_EQ(trace_to_text(*read), text);
  }
}

// Names are anybody's: what acts on a terminal, or is no text, is spelled out and comes back as the bytes that it was.
TEST(TraceText, HoldsNoControlCharactersAndIsUtf8) {
  for (const std::string name : {"\x1b[31m", "\xc2\x9b", "\xe2\x80\xae", "\xff\xfe", "a\xed\xa0\x80", "\xef\xbf\xbe",
                                 "größe 日本", "\xef\xbf\xbd", "\t\"\\"}) {
    Trace trace = parsed("faultline-trace-text 1\nalloc #a 1KiB\n");
    trace.devices.resize(1);
    trace.devices[0].name = trace.source_path = name;
    trace.properties[name] = name;
    const std::string text = trace_to_text(trace);
    for (std::string_view rest = text; !rest.empty();) {
      const auto [code, length] = decode_utf8(rest);
      EXPECT_TRUE(code == '\n' || !is_harmful(code)) << text;
      EXPECT_TRUE(code != kReplacementCharacter || length == 3) << text;
      rest.remove_prefix(length);
    }
    const Trace again = parsed(text);
    EXPECT_EQ(again.devices[0].name, name);
    EXPECT_EQ(again.properties.at(name), name);
    EXPECT_EQ(trace_to_text(again), text);
  }
}

TEST(TraceText, AStackHasAnEnd) {
  std::string text = "faultline-trace-text 1\nstack s0 = a.py:1 f\n";
  for (int at = 1; at < 3000; ++at)
    text +=
        "stack s" + std::to_string(at) + " = s" + std::to_string(at - 1) + " > a.py:" + std::to_string(at + 1) + " f\n";
  const Trace trace = parsed(text + "alloc #a 1KiB stack=s2999\n");
  const StackId deepest = trace.events.at(0).stack;
  EXPECT_EQ(trace.stacks.depth(deepest), 1024u);
  EXPECT_EQ(trace.stacks.frame(deepest).line, 3000u) << "the innermost frame is the true one";
  EXPECT_EQ(trace.stacks.frame(trace.stacks.parent(deepest)).line, 1023u);
  EXPECT_EQ(trace.lost.size(), 1u);
  EXPECT_EQ(trace.lost.begin()->second, 3000u - 1024u);
}

TEST(TraceText, ReadsWellForAnOrdinaryTrace) {
  const Trace trace = parsed(R"(faultline-trace-text 1
stack fwd = train.py:12 main > model.py:30 forward
alloc #1 4MiB @0x7f0000000000 stack=fwd
free #1
)");
  EXPECT_EQ(trace_to_text(trace), R"(faultline-trace-text 1 exact
source text path="" events=2
can addresses stacks streams complete-from-start events
device 0 name="" capacity=0 allowed=0
heap driver kind=driver device=0
heap torch kind=torch device=0
stream 0 device=0 handle=0x0
stack s2 = train.py:12 main > model.py:30 forward
alloc #1 torch 4194304 @0x7f0000000000 stack=s2 t=0
free #1 t=1000
)");
}

TEST(TraceText, RefusalsNameLineAndReason) {
  EXPECT_EQ(parse_trace_text("").error().message(), "line 1: a trace in text begins with 'faultline-trace-text 1'");
  EXPECT_EQ(parse_trace_text("\n# hello\nalloc 1\n").error().message(),
            "line 3: a trace in text begins with 'faultline-trace-text 1'");
  EXPECT_EQ(parse_trace_text("faultline-trace-text 2\n").error().message(),
            "line 1: this reader knows version 1 of the text form");
  EXPECT_EQ(refusal("alloc #1 5\nfree #2\n"), "line 3: #2 is made by no line above");
  EXPECT_EQ(refusal("alloc #1 5\nalloc #1 5\n"), "line 3: #1 is already made, on line 2");
  EXPECT_EQ(refusal("alloc #a 5\nalloc #a 5\n"), "line 3: #a is already made, on line 2");
  EXPECT_EQ(refusal("alloc #3 5\n"), "allocations are numbered from 1 without gaps; there are 1, and one is #3");
  EXPECT_EQ(refusal("alloc 5 stack=x\n"), "line 2: there is no stack 'x'");
  EXPECT_EQ(refusal("alloc 5 tensor=x\n"), "line 2: there is no tensor 'x'");
  EXPECT_EQ(refusal("alloc 5 stream=1\n"), "line 2: there is no stream 1");
  EXPECT_EQ(refusal("alloc 5 cupy\n"), "line 2: there is no heap 'cupy'");
  EXPECT_EQ(refusal("alloc 5 device=4\n"), "line 2: the event names device 4, which the trace does not list");
  EXPECT_EQ(refusal("alloc 5 colour=red\n"), "line 2: 'colour=red' means nothing here");
  EXPECT_EQ(refusal("alloc five=\"\n"), "line 2: a quoted text has no closing quote");
  EXPECT_EQ(refusal("alloc 5 at a.py:1 void f()\n"),
            "line 2: the line goes on where it should end; names with spaces need quotes");
  EXPECT_EQ(refusal("alloc 5 at a.py:1 f >\n"), "line 2: a frame is missing behind '>'");
  EXPECT_EQ(refusal("alloc 5 @0xzz\n"), "line 2: '0xzz' is not a number that fits here");
  EXPECT_EQ(refusal("allok 5\n"), "line 2: 'allok' is no kind of line");
  EXPECT_EQ(refusal("heap a below=b\n"), "there is no heap 'b'");
  EXPECT_EQ(refusal("heap 7\n"), "line 2: '7' cannot be a heap's label; give it another and write name=\"7\"");
  EXPECT_EQ(refusal("alloc 1\nalloc 2 preexisting\n"),
            "line 3: the event is marked as before the recording, but the first 0 events are");
  EXPECT_EQ(refusal("tensor x = float32[3,]\n"), "line 2: a tensor reads like float32[32,1024], without spaces");
  EXPECT_EQ(refusal("call a\n"), "line 2: a call line reads: call NAME = launch|copy|fault|violation …");
  EXPECT_EQ(refusal("call a = launch k grid=1,2,3,4\n"), "line 2: 'grid=1,2,3,4' has more than three extents");
  EXPECT_EQ(refusal("call a = launch k arguments=8\n"), "line 2: '8' is not OFFSET:ADDRESS");
  EXPECT_EQ(refusal("call a = copy sideways\n"), "line 2: 'sideways' means nothing here");
  EXPECT_EQ(refusal("call a = copy\ncall a = copy\n"), "line 3: the call 'a' is already there");
  EXPECT_EQ(refusal("call a = copy\nlaunch call=a\n"), "line 3: the call 'a' is a copy");
  EXPECT_EQ(refusal("launch call=a\n"), "line 2: there is no call 'a'");
  EXPECT_EQ(refusal("sync for=lunch\n"), "line 2: 'for=lunch': the host waits for a stream, an event or the device");
  EXPECT_EQ(refusal("property x\n"), "line 2: a property line reads: property NAME = VALUE");
  EXPECT_EQ(refusal("can fly\n"), "line 2: 'fly' is no capability");
  EXPECT_EQ(refusal("sync t=99999999999999999999\n"), "line 2: 't=99999999999999999999' is not a time in nanoseconds");
}

TEST(TraceText, IsRecognisedByItsFirstLine) {
  EXPECT_TRUE(looks_like_trace_text("faultline-trace-text 1\n"));
  EXPECT_TRUE(looks_like_trace_text("# about\n\nfaultline-trace-text 1 exact\n"));
  EXPECT_FALSE(looks_like_trace_text("# faultline-trace-text"));
  EXPECT_FALSE(looks_like_trace_text("Traceback (most recent call last):"));
}

}  // namespace
}  // namespace faultline
