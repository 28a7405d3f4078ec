#include "sources/bfc_log/bfc_log.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "sources/bfc_log/log_line.h"
#include "sources/bfc_log/stack_text.h"
#include "sources/statements.h"
#include "trace/validate.h"

namespace faultline {
namespace {

Result<Trace> read_log(const std::string& text) {
  const std::span bytes(reinterpret_cast<const std::uint8_t*>(text.data()), text.size());
  ByteStream stream = ByteStream::from_memory(bytes);
  Result<Trace> trace = read_bfc_log(stream, "log");
  if (trace) {
    EXPECT_TRUE(check_trace(*trace).ok());
  }
  return trace;
}

// "T12 Returning: 0x100" is a line of thread 12.
Result<Trace> read_lines(const std::vector<std::string>& lines) {
  std::string text;
  int at = 0;
  for (const std::string& line : lines) {
    const std::size_t space = line.find(' ');
    text += line[0] != 'T' ? line + "\n"
                           : "I0000 00:00:1794821189." + std::to_string(100000 + ++at) + "   " +
                                 line.substr(1, space - 1) + " bfc_allocator.cc:642] " + line.substr(space + 1) + "\n";
  }
  return read_log(text);
}

// "A GPU_0_bfc 700 @0x100", "F 1", "X 700": what happened in pools; "R 0x100+512" a region.
std::string happened(const Trace& trace) {
  std::ostringstream out;
  for (const Event& event : trace.events) {
    const Heap& heap = trace.heaps[event.heap.index()];
    if (event.kind == EventKind::kAlloc && heap.kind == HeapKind::kDriver)
      out << "R" << std::hex << event.address << std::dec << "+" << event.size_bytes << " ";
    else if (event.kind == EventKind::kFree && heap.kind == HeapKind::kDriver)
      out << "G" << std::hex << event.address << std::dec << " ";
    else if (event.kind == EventKind::kAlloc)
      out << "A" << event.size_bytes << "@" << std::hex << event.address << std::dec << " ";
    else if (event.kind == EventKind::kFree)
      out << "F" << std::hex << event.address << std::dec << (event.allocation.value == 0 ? "? " : " ");
    else if (event.kind == EventKind::kAllocFailed)
      out << "X" << event.size_bytes << " ";
  }
  return out.str();
}

TEST(BfcLog, LinesOfEveryAgeAreKnown) {
  struct Case {
    const char* line;
    std::uint64_t thread;
    const char* message;
  };
  for (const Case& one : std::vector<Case>{
           {"I0000 00:00:1794821189.411602   26412 bfc_allocator.cc:176] F: __", 26412, "F: __"},
           {"I1116 09:26:29.411602   77 bfc_allocator.cc:176] F: __", 77, "F: __"},
           {"2024-09-01 10:00:00.123456: I tensorflow/core/common_runtime/bfc_allocator.cc:1046] F: __", 0, "F: __"},
           {"2024-09-01 10:00:00.123456: I external/local_tsl/tsl/framework/bfc_allocator.cc:1046] F: __", 0, "F: __"},
           {"2024-09-01 10:00:00.123456: I 815 external/local_tsl/tsl/framework/bfc_allocator.cc:1046] F: __", 815,
            "F: __"},
           {"(worker pid=5) I0000 00:00:1794821189.4   26412 bfc_allocator.cc:176] Returning: 0x1", 26412,
            "Returning: 0x1"},
           {"bfc_allocator.cc:176] F: __", 0, "F: __"},
           {"bfc_allocator.cc:176]", 0, ""}}) {
    const auto parsed = allocator_line(one.line);
    ASSERT_TRUE(parsed) << one.line;
    EXPECT_EQ(parsed->thread, one.thread) << one.line;
    EXPECT_EQ(parsed->message, one.message) << one.line;
  }
  EXPECT_EQ(allocator_line("I0000 00:00:1794821189.411602   26412 bfc_allocator.cc:176] F")->time_ns,
            1794821189411602000);
  EXPECT_EQ(allocator_line("2024-09-01 10:00:00.5: I a/bfc_allocator.cc:1] F")->time_ns, 36000500000000);
  for (const char* line : {"", "loss 0.5", "I0000 00:00:1.1 5 op_kernel.cc:1858] OP_REQUIRES failed",
                           "bfc_allocator.cc", "\tbfc_allocator.cc:and so on without an end"})
    EXPECT_FALSE(allocator_line(line)) << line;
}

TEST(BfcLog, TheOrderIsThatOfTheLinesUnderTheLock) {
  const auto trace =
      read_lines({"T1 AllocateRaw P  700", "T2 AllocateRaw P  300", "T2 Extending allocation by 2.00MiB bytes for P.",
                  "T2 Allocated memory at 0x1000 to 0x201000", "T2 Returning: 0x1000", "T1 Returning: 0x1200",
                  "T1 AllocateRaw P  700 0x1200", "T2 AllocateRaw P  300 0x1000",
                  // both are about to free; the second gets the lock first
                  "T1 DeallocateRaw P 700", "T1 [mem-debug] DeallocateRaw,P,700,0x1200,*** Begin stack trace ***",
                  "*** End stack trace ***", "T2 DeallocateRaw P 300",
                  "T2 [mem-debug] DeallocateRaw,P,300,0x1000,*** Begin stack trace ***", "*** End stack trace ***",
                  "T2 F: __", "T1 F: __"});
  ASSERT_TRUE(trace.ok());
  EXPECT_EQ(happened(*trace), "R1000+2097152 A300@1000 A700@1200 F1000 F1200 ");
  EXPECT_TRUE(trace->lost.empty());
}

// Before 2025 lines had no thread, unless TF_CPP_LOG_THREAD_ID was set: who asks and who is answered is told by the pointers.
TEST(BfcLog, WithoutThreadsTheAnswersTellWhatWasAskedFor) {
  std::string text;
  for (const char* line : {"AllocateRaw P  700", "AllocateRaw P  300", "Returning: 0x1000", "Returning: 0x1200",
                           "AllocateRaw P  300 0x1000", "AllocateRaw P  700 0x1200",
                           "[mem-debug] DeallocateRaw,P,700,0x1200,*** Begin stack trace ***",
                           "[mem-debug] DeallocateRaw,P,300,0x1000,*** Begin stack trace ***", "F: __", "F: __",
                           "AllocateRaw P  500", "Returning: 0x1000"})
    text += std::string("2024-09-01 10:00:00.123456: I external/local_tsl/tsl/framework/bfc_allocator.cc:9] ") + line +
            "\n";
  const auto trace = read_log(text);
  ASSERT_TRUE(trace.ok());
  EXPECT_EQ(happened(*trace), "A300@1000 A700@1200 F1200 F1000 A500@1000 ");
  EXPECT_TRUE(trace->lost.empty());
}

TEST(BfcLog, PoolsAreToldApartAndHostPoolsHaveADeviceOfTheirOwn) {
  std::ifstream file(std::string(FAULTLINE_FIXTURES) + "/samples/bfc-log.log");
  std::stringstream text;
  text << file.rdbuf();
  const auto trace = read_log(text.str());
  ASSERT_TRUE(trace.ok());
  EXPECT_EQ(happened(*trace),
            "R7f0a00000000+2097152 A1048576@7f0a00000000 R7f0b00000040+2097152 A700@7f0a00100000 A300@7f0b00000040 "
            "F7f0a00000000 X20000000000 ");
  ASSERT_EQ(trace->devices.size(), 2u);
  EXPECT_EQ(trace->devices[0].name, "Tesla T4");
  EXPECT_EQ(trace->devices[1].name, "host memory (gpu_host_bfc)");
  EXPECT_EQ(trace->heaps[1].name, "GPU_0_bfc");
  EXPECT_EQ(trace->heaps[3].device, 1);
  EXPECT_TRUE(trace->can(kAddresses | kStacks | kTimes | kCompleteFromStart));
  // as printed when the device was made, and again when memory ran out
  EXPECT_EQ(trace->properties.at("bfc.GPU_0_bfc.limit"), "14425260032..14426308607");
  // the kernel, and the Python line of what failed
  const auto function = [&](const Event& event) {
    return std::string(trace->strings.at(trace->stacks.frame(event.stack).function));
  };
  EXPECT_EQ(function(trace->events[1]), "tensorflow::FillOp::Compute");
  EXPECT_EQ(function(trace->events[3]), "tensorflow::ReluOp::Compute") << "cut, without an end";
  EXPECT_EQ(trace->strings.at(trace->tensors.at(TensorId(trace->events[1].extra)).op), "FillOp");
  const Event& failed = trace->events[6];
  EXPECT_EQ(trace->stacks.frame(failed.stack).line, 17u);
  ASSERT_EQ(trace->events[7].kind, EventKind::kTensorNote);
  const Tensor& tensor = trace->tensors.at(TensorId(trace->events[7].extra));
  EXPECT_EQ(trace->strings.at(tensor.op), "Fill");
  EXPECT_EQ(tensor.shape, std::vector<std::int64_t>{5000000000});
}

TEST(BfcLog, WhatFailsWithoutHarmIsNoFailure) {
  const auto trace = read_lines(
      {"T1 AllocateRaw P  700",
       "T1 Allocator (P) ran out of memory trying to allocate 700B with freed_by_count=0. The caller indicates that "
       "this is not a failure, but this may mean that there could be performance gains if more memory were available.",
       "T1 AllocateRaw P  700 0", "T1 AllocateRaw P  0", "T1 AllocateRaw P  0 0", "T1 AllocateRaw P  900",
       "T1 AllocateRaw P  900 (nil)"});
  ASSERT_TRUE(trace.ok());
  EXPECT_EQ(happened(*trace), "X900 ");
}

TEST(BfcLog, RegionsThatAreCollectedGoBack) {
  const auto trace = read_lines({"T1 AllocateRaw P  2000000", "T1 Allocated memory at 0x1000 to 0x201000",
                                 "T1 Returning: 0x1000", "T1 AllocateRaw P  2000000 0x1000",
                                 "T1 [mem-debug] DeallocateRaw,P,2000000,0x1000,*** Begin stack trace ***", "T1 F: __",
                                 "T1 AllocateRaw P  3000000", "T1 Found free region with ptr = 0x1000",
                                 "T1 Deallocate region with ptr = 0x1000", "T1 Deallocate region with ptr = 0x99",
                                 "T1 Allocated memory at 0x1000 to 0x401000", "T1 Returning: 0x1000"});
  ASSERT_TRUE(trace.ok());
  EXPECT_EQ(happened(*trace), "R1000+2097152 A2000000@1000 F1000 G1000 R1000+4194304 A3000000@1000 ");
  EXPECT_EQ(trace->lost.size(), 1u) << "a region that was never seen";
}

TEST(BfcLog, FreesOfLevelThreeGoToTheChunkThatIsNeededNext) {
  const auto trace = read_lines(
      {"T1 AllocateRaw P  500", "T1 AllocateRaw P  500 0x1000", "T1 AllocateRaw P  500", "T1 AllocateRaw P  500 0x2000",
       "T1 AllocateRaw P  700", "T1 AllocateRaw P  700 0x3000", "T1 DeallocateRaw P 500", "T1 AllocateRaw P  300",
       "T1 AllocateRaw P  300 0x2000", "T1 DeallocateRaw P 700", "T1 DeallocateRaw P 500", "T1 DeallocateRaw P 12345"});
  ASSERT_TRUE(trace.ok());
  EXPECT_EQ(happened(*trace), "A500@1000 A500@2000 A700@3000 F2000 A300@2000 F3000 F1000 F0? ");
  EXPECT_FALSE(trace->can(kStacks));
}

TEST(BfcLog, JaxSaysHowLargeItsPoolIs) {
  const auto trace =
      read_lines({"I0000 00:00:1.1 5 se_gpu_pjrt_client.cc:129] XLA backend allocating 12884901888 bytes on device 0 "
                  "for BFCAllocator.",
                  "T1 AllocateRaw GPU_0_bfc 256 alignment=256", "T1 Returning: 0x1000"});
  ASSERT_TRUE(trace.ok());
  EXPECT_EQ(trace->properties.at("bfc.framework"), "jax");
  EXPECT_EQ(trace->properties.at("bfc.GPU_0_bfc.limit"), "12884901888");
  EXPECT_EQ(trace->properties.at("bfc.GPU_0_bfc.growth"), "false");
  EXPECT_EQ(trace->devices[0].allowed_bytes, 12884901888u);
}

TEST(BfcLog, WhatGoesWhenTheInterpreterEndsWasHeldToTheEnd) {
  std::vector<std::string> lines = {"T1 AllocateRaw P  500", "T1 Returning: 0x1000", "T1 AllocateRaw P  500 0x1000",
                                    "T1 AllocateRaw P  600", "T1 Returning: 0x2000", "T1 AllocateRaw P  600 0x2000"};
  for (const char* end : {"\tPy_FinalizeEx", "\tmain"}) {
    for (const char* pointer : {"0x1000", "0x2000"}) {
      lines.push_back(std::string("T1 [mem-debug] DeallocateRaw,P,500,") + pointer + ",*** Begin stack trace ***");
      lines.push_back(pointer == std::string("0x1000") ? end : "\tPy_FinalizeEx");
      lines.push_back("T1 F: __");
    }
    const auto trace = read_lines(lines);
    ASSERT_TRUE(trace.ok());
    EXPECT_EQ(happened(*trace), end == std::string("\tmain") ? "A500@1000 A600@2000 F1000 " : "A500@1000 A600@2000 ");
    lines.resize(6);
  }
}

TEST(BfcLog, LinesThatSayNothingAreCounted) {
  const auto trace =
      read_lines({"T1 AllocateRaw P  500", "T1 Returning: 0x1000", "T1 Returning: 0x2000", "T1 F: __",
                  "T2 Returning: 7", "T1 AllocateRaw P", "T1 AllocateRaw P  x", "T1 DeallocateRaw P",
                  "T1 Allocated memory at 0x5 to 0x4", "T1 [mem-debug] DeallocateRaw,*** Begin stack trace ***",
                  "T1 [mem-debug] DeallocateRaw,P", "T1 AllocateRaw P  500", "T1 Returning: 0x1000"});
  ASSERT_TRUE(trace.ok());
  EXPECT_EQ(happened(*trace), "A500@1000 F1000 A500@1000 ");
  EXPECT_EQ(trace->lost.at("lines of the allocator that were not understood"), 7u);
  EXPECT_EQ(trace->lost.at("answers of the allocator without their request"), 1u);
  EXPECT_EQ(trace->lost.at("frees without their chunk"), 1u);
  EXPECT_EQ(trace->lost.at("frees that are missing: their address was handed out again"), 1u);
  EXPECT_FALSE(read_log("nothing of it").ok());
}

TEST(BfcLog, LongLinesAreCutAndTheNextIsRead) {
  const auto trace =
      read_log("I0000 00:00:1.1 5 bfc_allocator.cc:1] AllocateRaw P  500\n" + std::string(3'000'000, 'x') +
               "\nI0000 00:00:1.1 5 bfc_allocator.cc:1] Returning: 0x1000");
  ASSERT_TRUE(trace.ok());
  EXPECT_EQ(happened(*trace), "A500@1000 ");
  EXPECT_EQ(trace->lost.at("lines of more than 64 KiB, cut"), 1u);
}

TEST(BfcLog, KernelsAreNamedAsAPersonWould) {
  const auto named = [](std::string_view frame) {
    const std::string name = short_name(frame);
    return name + " | " + std::string(kernel_of_frame(frame, name));
  };
  EXPECT_EQ(named("tensorflow::FillOp<Eigen::ThreadPoolDevice, float, int>::Compute(tensorflow::OpKernelContext*)"),
            "tensorflow::FillOp::Compute | FillOp");
  EXPECT_EQ(named("tensorflow::ConstantOp::ConstantOp(tensorflow::OpKernelConstruction*)"),
            "tensorflow::ConstantOp::ConstantOp | ConstantOp");
  EXPECT_EQ(named("tensorflow::ThreadPoolDevice::Compute(tensorflow::OpKernel*, tensorflow::OpKernelContext*)"),
            "tensorflow::ThreadPoolDevice::Compute | ");
  EXPECT_EQ(named("tensorflow::UnaryOp<a<b>, c>::Compute(x"), "tensorflow::UnaryOp::Compute | UnaryOp");
  EXPECT_EQ(named("void tensorflow::f<int>(std::vector<int> const&)"), "tensorflow::f | ");
  EXPECT_EQ(named("a::operator<(b)"), "a::operator<(b) | ");
  EXPECT_EQ(named(">>::Compute("), ">>::Compute | >>");
}

TEST(BfcLog, OnlyALogIsALog) {
  const auto is_log = [](std::string_view text) {
    return looks_like_bfc_log({reinterpret_cast<const std::uint8_t*>(text.data()), text.size()});
  };
  EXPECT_TRUE(is_log("x\nI0000 00:00:1.1 5 bfc_allocator.cc:281] AllocateRaw GPU_0_bfc  4\n"));
  EXPECT_TRUE(is_log("I0000 00:00:1.1 5 bfc_allocator.cc:89] Creating new BFCAllocator named: GPU_0_bfc\n"));
  EXPECT_FALSE(is_log("I0000 00:00:1.1 5 bfc_allocator.cc:1049] BFCAllocator dump for GPU_0_bfc\n")) << "a dump alone";
  EXPECT_FALSE(is_log("AllocateRaw"));
}

}  // namespace
}  // namespace faultline
