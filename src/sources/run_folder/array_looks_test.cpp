#include "sources/run_folder/array_looks.h"

#include <gtest/gtest.h>

#include "trace/text.h"
#include "trace/validate.h"

namespace faultline {
namespace {

// A look as a profile gives it: so many arrays of so many bytes at each line.
ArrayLook look(std::int64_t time_ns, const std::vector<std::tuple<int, int, std::uint64_t>>& lines) {
  std::string text = "faultline-trace-text 1\ndevice 0 name=cuda:0\nheap jax kind=other device=0\n";
  int number = 0;
  for (const auto& [line, count, bytes] : lines) {
    for (int at = 0; at < count; ++at)
      text += "alloc #" + std::to_string(++number) + " " + std::to_string(bytes) +
              " jax at train.py:" + std::to_string(line) + " main\n";
  }
  Result<Trace> trace = parse_trace_text(text);
  EXPECT_TRUE(trace.ok()) << (trace.ok() ? "" : trace.error().message());
  return {time_ns, trace.ok() ? std::move(*trace) : Trace{}};
}

struct AtTheEnd {
  std::uint64_t made = 0, gone = 0, bytes = 0;
};
AtTheEnd of_line(const Trace& trace, std::uint32_t line) {
  AtTheEnd end;
  for (const Event& event : trace.events) {
    if (event.stack.value == 0 || trace.stacks.frame(event.stack).line != line) continue;
    end.made += event.kind == EventKind::kAlloc;
    end.gone += event.kind == EventKind::kFree;
    end.bytes += event.kind == EventKind::kAlloc ? event.size_bytes : 0 - event.size_bytes;
  }
  return end;
}

TEST(ArrayLooks, WhatIsMoreWasMadeInBetweenAndTheYoungestGo) {
  std::vector<ArrayLook> looks;
  looks.push_back(look(10, {{3, 1, 4096}}));
  looks.push_back(look(20, {{3, 1, 4096}, {5, 4, 100}}));
  looks.push_back(look(30, {{5, 3, 100}, {3, 1, 4096}}));
  looks.push_back(look(40, {{3, 1, 4096}, {5, 6, 100}}));
  const Trace trace = join_looks(std::move(looks));
  EXPECT_TRUE(check_trace(trace).ok());
  const AtTheEnd kept = of_line(trace, 5), weights = of_line(trace, 3);
  EXPECT_EQ(kept.made - kept.gone, 6u);
  EXPECT_EQ(kept.made, 7u);
  EXPECT_EQ(kept.bytes, 600u);
  EXPECT_EQ(weights.made, 1u);
  EXPECT_EQ(trace.preexisting_count, 1u);
  ASSERT_EQ(trace.heaps.size(), 1u);
  ASSERT_EQ(trace.devices.size(), 1u);
  EXPECT_EQ(trace.devices[0].name, "cuda:0");
  // the one that went is the last of the four
  const auto freed = std::find_if(trace.events.begin(), trace.events.end(),
                                  [](const Event& event) { return event.kind == EventKind::kFree; });
  ASSERT_NE(freed, trace.events.end());
  EXPECT_EQ(freed->time_ns, 30);
  EXPECT_EQ(freed->allocation.value, 5u);
}

TEST(ArrayLooks, ALineThatIsGoneIsLetGo) {
  std::vector<ArrayLook> looks;
  looks.push_back(look(10, {{3, 2, 4096}, {7, 1, 8}}));
  looks.push_back(look(20, {{7, 1, 8}}));
  const Trace trace = join_looks(std::move(looks));
  EXPECT_TRUE(check_trace(trace).ok());
  EXPECT_EQ(of_line(trace, 3).gone, 2u);
  EXPECT_EQ(of_line(trace, 7).gone, 0u);
}

TEST(ArrayLooks, AnArrayThatIsLargerWasMadeAnew) {
  std::vector<ArrayLook> looks;
  for (std::uint64_t at = 1; at <= 4; ++at) looks.push_back(look(static_cast<std::int64_t>(at), {{3, 1, at * 1000}}));
  const Trace trace = join_looks(std::move(looks));
  EXPECT_TRUE(check_trace(trace).ok());
  const AtTheEnd line = of_line(trace, 3);
  EXPECT_EQ(line.made, 4u);
  EXPECT_EQ(line.gone, 3u);
  EXPECT_EQ(line.bytes, 4000u);
}

TEST(ArrayLooks, NothingIsATraceToo) {
  EXPECT_TRUE(check_trace(join_looks({})).ok());
  std::vector<ArrayLook> empty(3);
  EXPECT_TRUE(check_trace(join_looks(std::move(empty))).ok());
}

}  // namespace
}  // namespace faultline
