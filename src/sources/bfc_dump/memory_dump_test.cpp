#include "sources/bfc_dump/memory_dump.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "sources/statements.h"
#include "trace/validate.h"

namespace faultline {
namespace {

std::string sample() {
  std::ifstream in(FAULTLINE_FIXTURES "/samples/bfc-memory-dump.1794822347641811", std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

Result<Trace> read(const std::string& bytes) {
  ByteStream stream = ByteStream::from_memory({reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()});
  return read_memory_dump(stream, "");
}

// TensorFlow 2.21 wrote it while its log showed the same pool: 7 regions, 21 chunks in use of 90 MiB, 254 MiB taken.
TEST(MemoryDump, HasTheChunksThatTheLogShows) {
  const Result<Trace> trace = read(sample());
  ASSERT_TRUE(trace.ok());
  EXPECT_TRUE(check_trace(*trace).ok());
  std::uint64_t taken = 0, in_use = 0, asked_for = 0, regions = 0, chunks = 0;
  for (const Event& event : trace->events) {
    if (event.kind != EventKind::kAlloc) continue;
    const bool is_region = trace->heaps[event.heap.index()].kind == HeapKind::kDriver;
    (is_region ? regions : chunks) += 1;
    (is_region ? taken : asked_for) += event.size_bytes;
  }
  for (const FinalBlock& block : trace->final_blocks) {
    if (block.state == FinalBlock::State::kActive) in_use += block.size_bytes;
  }
  EXPECT_EQ(regions, 7u);
  EXPECT_EQ(chunks, 21u);
  EXPECT_EQ(taken, 254ull << 20);
  EXPECT_EQ(in_use, 94371840u);
  EXPECT_EQ(asked_for, 80740364u);
  EXPECT_TRUE(read_statements(*trace).pools.at(0).knows_requests);
  EXPECT_EQ(trace->devices.at(0).name, "host memory (bfc_cpu_allocator_for_gpu)");
  EXPECT_EQ(trace->events.back().kind, EventKind::kAllocFailed);
}

TEST(MemoryDump, WhatIsLeftOfOneIsReadAndTheRestCounted) {
  const std::string whole = sample();
  const Result<Trace> cut = read(whole.substr(0, whole.size() / 2));
  ASSERT_TRUE(cut.ok());
  EXPECT_TRUE(check_trace(*cut).ok());
  EXPECT_NE(cut->lost.count("bytes of the file that could not be read"), 0u);
  EXPECT_FALSE(read(whole.substr(0, 40)).ok());
}

TEST(MemoryDump, TextIsNone) {
  for (const std::string& text :
       {std::string("\n\tHello, a log that begins with an empty line\n"), std::string("GPU_0_bfc"),
        std::string("\n\x05"
                    "abcde\x12 and text behind it")}) {
    const bool is_one = looks_like_memory_dump({reinterpret_cast<const std::uint8_t*>(text.data()), text.size()});
    EXPECT_FALSE(is_one && text.find('\x12') == std::string::npos) << text;
  }
}

}  // namespace
}  // namespace faultline
