#include "sources/jax_profile/jax_profile.h"

#include <gtest/gtest.h>

#include "trace/validate.h"

namespace faultline {
namespace {

// jax 0.10 on the CPU: six arrays of 4 MiB made in make_weights, one of 16 MiB in make_cache, and compiled programs that take nothing.
TEST(JaxProfile, TellsWhoHoldsWhat) {
  Result<ByteStream> stream = ByteStream::open(FAULTLINE_FIXTURES "/samples/jax-profile.prof");
  ASSERT_TRUE(stream.ok());
  const Result<Trace> trace = read_jax_profile(*stream, "");
  ASSERT_TRUE(trace.ok()) << trace.error().what;
  EXPECT_TRUE(check_trace(*trace).ok());
  EXPECT_TRUE(trace->lost.empty());
  EXPECT_EQ(trace->devices.at(0).name, "host memory (cpu:0)");
  std::map<std::string, std::pair<std::uint64_t, std::uint64_t>> by_function;  // bytes, arrays
  for (const Event& event : trace->events) {
    for (StackId at = event.stack; at.value != 0; at = trace->stacks.parent(at)) {
      const Frame& frame = trace->stacks.frame(at);
      if (!trace->strings.at(frame.file).ends_with("/jaxprog.py")) continue;
      auto& sum = by_function[std::string(trace->strings.at(frame.function))];
      sum.first += event.size_bytes;
      ++sum.second;
      EXPECT_NE(frame.line, 0u);
    }
  }
  EXPECT_EQ(by_function["make_weights"], (std::pair<std::uint64_t, std::uint64_t>(24u << 20, 6)));
  EXPECT_EQ(by_function["make_cache"], (std::pair<std::uint64_t, std::uint64_t>(16u << 20, 1)));
}

Result<Trace> read(const std::string& bytes) {
  ByteStream stream = ByteStream::from_memory({reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()});
  return read_jax_profile(stream, "");
}

TEST(JaxProfile, AProfileOfSomethingElseIsRefusedByItsNumbers) {
  // sample types cpu/nanoseconds; strings "", "cpu", "nanoseconds", "x", "y"
  const std::string wire = std::string(
      "\x0a\x04\x08\x01\x10\x02\x12\x03\x12\x01\x05\x32\x00\x32\x03"
      "cpu\x32\x0b"
      "nanoseconds\x32\x01"
      "x\x32\x01"
      "y",
      38);
  EXPECT_TRUE(looks_like_jax_profile({reinterpret_cast<const std::uint8_t*>(wire.data()), wire.size()}));
  const Result<Trace> trace = read(wire);
  ASSERT_FALSE(trace.ok());
  EXPECT_NE(trace.error().what.find("its numbers are cpu"), std::string::npos) << trace.error().what;
}

}  // namespace
}  // namespace faultline
