#include "base/units.h"
#include "facts/facts_test_support.h"
#include "rules/judge.h"

namespace faultline {
namespace {

std::vector<Finding> upcasts_of(const std::string& lines) {
  const Trace trace = traced(lines);
  std::vector<Finding> found;
  for (Finding& finding : judge(trace).findings) {
    if (finding.rule == "tensor/silent-upcast") found.push_back(std::move(finding));
  }
  return found;
}

const std::string kTensors64 =
    "tensor x = float64[4194304] op=aten::_to_copy operands=\"float64[4194304]@cpu\"\n"
    "tensor y = float64[4194304] op=aten::mul operands=\"float64[4194304]\"\n";

TEST(SilentUpcastRule, OnlyWhatIsAliveAtThePeakCounts) {
  const std::vector<Finding> found = upcasts_of(kTensors64 +
                                                "alloc #x 32MiB tensor=x at run.py:3 main\nalloc #y 32MiB tensor=y at "
                                                "run.py:4 main\nfree #x\nalloc #z 64MiB at run.py:5 main\n");
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].severity, Severity::kWarning);
  EXPECT_EQ(found[0].bytes, 16 * kMiB);  // half of y
  EXPECT_EQ(found[0].location.line, 3u);
}

TEST(SilentUpcastRule, WhatIsSavedIsThePeakThatRemains) {
  // Narrow, the peak is 32 MiB of x and y; the other moment, without them, has 40 MiB.
  const std::vector<Finding> found = upcasts_of(kTensors64 +
                                                "alloc #x 32MiB tensor=x at run.py:3 main\nalloc #y 32MiB tensor=y at "
                                                "run.py:4 main\nfree #x\nfree #y\nalloc #z 40MiB at run.py:5 main\n");
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].bytes, 32 * kMiB);
  ASSERT_EQ(found[0].tries.size(), 1u);
  EXPECT_EQ(found[0].tries[0].saves_bytes, 24 * kMiB);
  EXPECT_FALSE(found[0].tries[0].confirmed.has_value());
}

// The most that was in use does not fall by all of it where another moment then is the peak, also where a request failed.
TEST(SilentUpcastRule, WhatIsSavedIsThePeakThatRemainsWhereMemoryRanOut) {
  for (const std::uint64_t other : {10, 40, 50, 60}) {
    const std::vector<Finding> found = upcasts_of(kTensors64 + "alloc #z " + std::to_string(other) +
                                                  "MiB at run.py:2 main\nfree #z\nalloc #x 32MiB tensor=x at run.py:3 "
                                                  "main\nalloc #y 32MiB tensor=y at run.py:4 main\n" +
                                                  "alloc-failed 90MiB device-free=10MiB at run.py:5 main\n");
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(found[0].bytes, 32 * kMiB);
    EXPECT_EQ(found[0].tries[0].saves_bytes, (64 - std::max<std::uint64_t>(32, other)) * kMiB) << other;
  }
}

TEST(SilentUpcastRule, ANumberInFloat64IsNoWishForFloat64) {
  const std::string sum =
      "tensor s = float64[] op=aten::_to_copy operands=\"float32[]\"\nalloc #s 512 tensor=s at run.py:2 main\n";
  EXPECT_EQ(upcasts_of(kTensors64 + sum + "alloc #x 32MiB tensor=x at run.py:3 main\n").size(), 1u);
}

TEST(SilentUpcastRule, ALoneFloat64BufferAmongFloat32ParametersIsNoFloat64Model) {
  const std::string move = " at run.py:2 main > /usr/lib/python3/dist-packages/torch/nn/modules/module.py:942 _apply\n";
  const std::string moved =
      "tensor w = float32[16777216] op=aten::_to_copy operands=\"float32[16777216]@cpu\"\ntensor b = float64[1024] "
      "op=aten::_to_copy operands=\"float64[1024]@cpu\"\n"
      "alloc #w 64MiB tensor=w" +
      move + "alloc #b 8KiB tensor=b" + move;
  const std::vector<Finding> found = upcasts_of(moved + kTensors64 + "alloc #y 32MiB tensor=y at run.py:4 main\n");
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].location.line, 2u);  // where it came in
}

TEST(SilentUpcastRule, Float64FromNowhereIsNotTraced) {
  // The recording began later: nothing says that it came from the host.
  EXPECT_TRUE(upcasts_of(kTensors64 + "alloc #y 32MiB tensor=y at run.py:4 main\n").empty());
}

TEST(SilentUpcastRule, AtAFailureTheFailureIsLookedAt) {
  const std::vector<Finding> found =
      upcasts_of(kTensors64 + "alloc #x 32MiB tensor=x at run.py:3 main\nalloc-failed 1GiB at run.py:9 main\n");
  ASSERT_EQ(found.size(), 1u);
  EXPECT_NE(found[0].message.find("when memory ran out"), std::string::npos);
  EXPECT_EQ(found[0].tries[0].saves_bytes, 16 * kMiB);
}

std::string copy_at(const std::string& place) {
  return "tensor c = float32[8388608] op=aten::_to_copy operands=\"float16[8388608]\"\nalloc #c 32MiB tensor=c at " +
         place + "\n";
}

TEST(SilentUpcastRule, ACopyIsTheLibrarysOnlyWhereTheLibraryMadeIt) {
  EXPECT_EQ(upcasts_of(copy_at("run.py:3 main > /usr/lib/python3/dist-packages/lib/model.py:9 forward")).size(), 1u);
  EXPECT_TRUE(upcasts_of(copy_at("run.py:3 main")).empty());
  // no line of the user's to show
  EXPECT_TRUE(upcasts_of(copy_at("/usr/lib/python3/dist-packages/lib/model.py:9 forward")).empty());
}

// A larger copy of the same line, made in another function and later, is not what was there when memory ran out.
TEST(SilentUpcastRule, WhatIsToldOfIsWhatIsCounted) {
  const std::string library = "run.py:3 main > /usr/lib/python3/dist-packages/lib/";
  const std::string failed = "alloc-failed 1GiB at run.py:9 main\n";
  const std::string later =
      "tensor d = float32[16777216] op=aten::_to_copy operands=\"bfloat16[16777216]\"\nalloc #d 64MiB tensor=d at " +
      library + "loss.py:7 loss\n";
  for (const bool before : {false, true}) {
    const std::vector<Finding> found =
        upcasts_of(copy_at(library + "model.py:9 forward") + (before ? later + failed : failed + later));
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(found[0].bytes, (before ? 96 : 32) * kMiB);
    EXPECT_EQ(found[0].count, before ? 2u : 1u);
    EXPECT_NE(found[0].message.find(before ? "loss.py:7" : "model.py:9"), std::string::npos) << found[0].message;
    EXPECT_TRUE(found[0].memory.starts_with(before ? "float32[16777216]" : "float32[8388608]")) << found[0].memory;
  }
}

TEST(SilentUpcastRule, OptimizersBackwardAndMasterWeightsAreIntended) {
  for (const char* inside :
       {"torch/optim/adamw.py:120 _init_group", "torch/autograd/__init__.py:340 backward",
        "torch/amp/grad_scaler.py:300 unscale_", "apex/optimizers/fused_adam.py:80 __init__",
        "torch/nn/modules/module.py:942 _apply", "deepspeed/runtime/fp16/fused_optimizer.py:90 build"}) {
    EXPECT_TRUE(upcasts_of(copy_at("run.py:3 main > /usr/lib/python3/dist-packages/" + std::string(inside))).empty())
        << inside;
  }
}

TEST(SilentUpcastRule, SmallShareOfALargePeakIsSilent) {
  EXPECT_TRUE(upcasts_of("alloc #big 4GiB at run.py:1 main\n" +
                         copy_at("run.py:3 main > /usr/lib/python3/dist-packages/lib/model.py:9 forward"))
                  .empty());
}

TEST(SilentUpcastRule, WithoutTensorsItIsNotJudged) {
  const Trace trace = traced("alloc 512 at run.py:3 main\n");
  const Judgement judgement = judge(trace);
  EXPECT_TRUE(std::any_of(judgement.not_judged.begin(), judgement.not_judged.end(),
                          [](const NotJudged& entry) { return entry.rule == "tensor/silent-upcast"; }));
}

}  // namespace
}  // namespace faultline
