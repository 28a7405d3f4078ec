#include "plan/changes.h"

#include <gtest/gtest.h>

#include "facts/facts_test_support.h"
#include "plan/plan_test_support.h"

namespace faultline {
namespace {

Plan too_large() {
  Plan plan;
  plan.verdict = Verdict::kDoesNotFit;
  plan.command = {"python", "train.py"};
  plan.gpu = plan_gpu(gpu_of_8_gib());
  plan.need.bytes = 12 * kGiB;
  plan.run.steps = 3;
  return plan;
}

TEST(Changes, NoBatchIsSmallEnoughWhereWhatLastsDoesNotFit) {
  for (const auto& [parameters, optimizer, activations, none] :
       {std::tuple(9.0, 0.0, 0.0, true), std::tuple(3.0, 6.0, 1.0, true), std::tuple(2.0, 4.0, 30.0, false),
        std::tuple(1.0, 0.0, 20.0, false), std::tuple(7.9, 0.0, 20.0, true)}) {
    Plan plan = too_large();
    plan.context_bytes = kContextBytes;
    const auto bytes = [](double gib) { return static_cast<std::uint64_t>(gib * static_cast<double>(kGiB)); };
    plan.peak.live = {
        {"parameters", bytes(parameters)}, {"optimizer", bytes(optimizer)}, {"activations", bytes(activations)}};
    EXPECT_EQ(!why_no_batch_is_enough(plan).empty(), none) << parameters << " " << optimizer;
  }
}

// Every second block of pairs that share a segment is freed: with other settings they share none, and all of a segment can be given back.
TEST(Changes, ASettingThatSavesIsFoundByReplay) {
  std::string lines =
      "source dry-run\nproperty torch.version = 2.11.0\ndevice 0 capacity=8GiB\nalloc #s 600MiB driver\n";
  for (int block = 0; block < 40; ++block) lines += "alloc #a" + std::to_string(block) + " 9MiB at train.py:1 main\n";
  for (int block = 0; block < 40; block += 2) lines += "free #a" + std::to_string(block) + "\n";
  for (int block = 0; block < 10; ++block) lines += "alloc #b" + std::to_string(block) + " 18MiB at train.py:2 main\n";
  const Trace trace = traced(lines);
  const Needs needs = needs_of(trace, true);
  Plan plan = too_large();
  plan.need.bytes = needs.needed_bytes();
  EXPECT_EQ(plan.need.bytes, 580 * kMiB);
  add_settings(trace, needs, plan);
  ASSERT_EQ(plan.tried.changes.size(), 1u);
  EXPECT_EQ(plan.tried.changes.front().kind, ChangeKind::kSetting);
  EXPECT_TRUE(plan.tried.changes.front().what.starts_with("Set PYTORCH_CUDA_ALLOC_CONF="))
      << plan.tried.changes.front().what;
  EXPECT_LE(plan.tried.changes.front().needed_bytes, 400 * kMiB);
  EXPECT_TRUE(plan.tried.changes.front().fits);
}

// JAX refuses both names at once.
TEST(Changes, TheShareOfJaxsPoolIsAdvisedByTheNameThatIsSet) {
  for (const auto& [set, advised] : {std::pair("", "XLA_CLIENT_MEM_FRACTION="),
                                     std::pair("property dry-run.share_setting = XLA_PYTHON_CLIENT_MEM_FRACTION\n",
                                               "XLA_PYTHON_CLIENT_MEM_FRACTION=")}) {
    const Trace trace =
        traced(std::string("source dry-run\nproperty bfc.framework = jax\nproperty bfc.GPU_0_bfc.limit = 4294967296\n"
                           "property bfc.GPU_0_bfc.growth = false\nproperty dry-run.pool_share = 0.5\n") +
               set +
               "device 0 capacity=8GiB\nheap driver kind=driver\nheap GPU_0_bfc kind=bfc below=driver\n"
               "alloc #r 4GiB driver\nalloc #a 3GiB GPU_0_bfc at train.py:1 main\n");
    const Needs needs = needs_of(trace, true);
    Plan plan = too_large();
    plan.need.bytes = needs.needed_bytes();
    add_settings(trace, needs, plan);
    ASSERT_EQ(plan.tried.changes.size(), 1u);
    EXPECT_NE(plan.tried.changes.front().what.find(std::string("Set ") + advised), std::string::npos)
        << plan.tried.changes.front().what;
  }
}

}  // namespace
}  // namespace faultline
