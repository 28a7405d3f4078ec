#include "rules/describe.h"

#include "base/units.h"
#include "facts/facts_test_support.h"

namespace faultline {
namespace {

const std::string kTorch = "/usr/lib/python3/dist-packages/torch/";

TEST(Describe, TheUsersLineComesBeforeTheLibrarys) {
  const Trace trace = traced("alloc 512 at run.py:9 main > net.py:4 block > " + kTorch + "functional.py:12 linear\n");
  const Facts facts(trace, {});
  const StackId stack = trace.events[0].stack;
  EXPECT_EQ(short_place(location_of(facts, stack)), "net.py:4");
  const std::vector<Location> callers = callers_of(facts, stack);
  ASSERT_EQ(callers.size(), 1u);
  EXPECT_EQ(short_place(callers[0]), "run.py:9");
  EXPECT_EQ(library_detail(facts, stack), "in linear, functional.py:12");
}

TEST(Describe, ALibraryLineIsBetterThanNone) {
  const Trace trace = traced("alloc 512 at " + kTorch + "optim/adam.py:180 step > adam.cpp:1 x\n");
  EXPECT_EQ(short_place(location_of(Facts(trace, {}), trace.events[0].stack)), "adam.py:180");
  EXPECT_EQ(short_place({}), "an unknown line");
}

TEST(Describe, AResultOfBackwardIsPlacedWhereBackwardWasCalled) {
  const Trace trace =
      traced("alloc 4 at run.py:7 main > " + kTorch + "_tensor.py:630 backward\nalloc 4MiB\nalloc-failed 1GiB\n");
  const Whereabouts where = whereabouts(Facts(trace, {}), 0, 2);
  EXPECT_EQ(short_place(where.location), "run.py:7");
  EXPECT_TRUE(where.in_backward);
  EXPECT_FALSE(where.is_guess);
}

TEST(Describe, ARequestWithoutAStackIsPlacedAfterTheLastLineSeenAndSaysSo) {
  const Trace trace = traced("alloc 4MiB at run.py:7 main\nalloc-failed 1GiB\n");
  const Whereabouts where = whereabouts(Facts(trace, {}), 0, 1);
  EXPECT_EQ(short_place(where.location), "run.py:7");
  EXPECT_TRUE(where.is_guess);
}

TEST(Describe, HoldersAreLinesWithTheRestInOne) {
  std::string lines;
  for (int i = 1; i <= 12; ++i)
    lines += "alloc " + std::to_string(i) + "MiB at run.py:" + std::to_string(i) + " main\n";
  lines += "alloc 12MiB at other.py:1 main > run.py:12 main\n";
  const Trace trace = traced(lines);
  const std::vector<Holder> holders = holders_at(Facts(trace, {}), 0, 12, 4);
  ASSERT_EQ(holders.size(), 4u);
  EXPECT_EQ(short_place(holders[0].location), "run.py:12");  // one line, though reached by two paths
  EXPECT_EQ(holders[0].count, 2u);
  EXPECT_EQ(holders[0].bytes, 24 * kMiB);
  EXPECT_EQ(holders[3].detail, "9 other lines");
  std::uint64_t sum = 0;
  for (const Holder& holder : holders) sum += holder.bytes;
  EXPECT_EQ(sum, 90 * kMiB);
}

// The library's function under a line is said of all tensors of the line only where it is so.
TEST(Describe, AHolderTellsTheFunctionBelowItForAllOrWithACount) {
  const std::string call = " at run.py:3 main > " + kTorch + "nn/functional.py:";
  const auto detail = [&](const std::vector<std::string>& lines) {
    std::string text;
    for (const std::string& line : lines) text += "alloc " + line + "\n";
    const Trace trace = traced(text);
    return holders_at(Facts(trace, {}), 0, static_cast<std::uint32_t>(lines.size() - 1), 4).at(0).detail;
  };
  EXPECT_EQ(detail({"1MiB" + call + "10 relu", "2MiB" + call + "10 relu"}), "in relu, functional.py:10");
  EXPECT_EQ(detail({"9MiB" + call + "10 relu", "4MiB" + call + "20 gelu", "4MiB" + call + "20 gelu",
                    "4MiB" + call + "20 gelu"}),
            "most in gelu, functional.py:20 (3 of 4)");
  EXPECT_EQ(detail({"9MiB" + call + "10 relu", "2MiB" + call + "20 gelu", "2MiB" + call + "20 gelu"}),
            "9.00 MiB of it in relu, functional.py:10");
}

TEST(Describe, ACacheOfKeysIsCalledSo) {
  const Trace trace = traced(R"(tensor k = float32[4,4,512,64] op=aten::cat
tensor c = float32[4,4,512,64] op=cache
alloc #k 4MiB tensor=k at run.py:1 main
alloc #v 2MiB tensor=k at run.py:2 main
tensor-note #k tensor=c
)");
  const std::vector<Holder> holders = holders_at(Facts(trace, {}), 0, 1, 4);
  EXPECT_EQ(holders.at(0).category, "KV cache");
  EXPECT_NE(holders.at(1).category, "KV cache");
}

TEST(Describe, AFingerprintIsThePlaceAndNothingElse) {
  Location here;
  here.file = "run.py";
  here.line = 3;
  Location there = here;
  there.line = 4;
  EXPECT_EQ(fingerprint("memory/leak", here), fingerprint("memory/leak", here));
  EXPECT_NE(fingerprint("memory/leak", here), fingerprint("memory/leak", there));
  EXPECT_NE(fingerprint("memory/leak", here), fingerprint("memory/fragmentation", here));
  EXPECT_NE(fingerprint("memory/out-of-memory", here, "fragmented"),
            fingerprint("memory/out-of-memory", here, "exhausted"));
}

}  // namespace
}  // namespace faultline
