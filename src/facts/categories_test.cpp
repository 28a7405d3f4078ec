#include "facts/categories.h"

#include "base/units.h"
#include "facts/facts_test_support.h"

namespace faultline {
namespace {

std::uint64_t part(const CategoryBytes& bytes, Category category) { return bytes[static_cast<std::size_t>(category)]; }

CategoryBytes live_at_peak(const Facts& facts) {
  return facts.live_by_category(0, facts.usage[0].peak_allocated.event);
}

constexpr std::uint64_t kFloat = 4;
// Four times Linear(1024, 1024) with a bias.
constexpr std::uint64_t kMlpBytes = 4 * (1024 * 1024 + 1024) * kFloat;
// 50304 words in and out, 1024 positions, 6 blocks of 512 (12·512² weights and 13·512 biases and norms each), a last norm.
constexpr std::uint64_t kGptBytes = (2 * 50304 * 512 + 1024 * 512 + 6 * (12 * 512 * 512 + 13 * 512) + 2 * 512) * kFloat;

TEST(Categories, OfATrainedMlpAddUpToItsSizes) {
  const Trace trace = recording("train_clean");
  const Facts facts(trace, {});
  const CategoryBytes live = live_at_peak(facts);  // inside the optimizer's first step
  EXPECT_EQ(part(live, Category::kParameters), kMlpBytes);
  EXPECT_EQ(part(live, Category::kGradients), kMlpBytes);
  EXPECT_EQ(part(live, Category::kOptimizer), 2 * kMlpBytes);
  EXPECT_EQ(part(live, Category::kActivations), 0u);  // backward has freed them
  // One more copy inside AdamW, and the workspaces of cuBLAS: 32 MiB for the program's thread and the engine's, 1 MiB of cublasLt.
  EXPECT_EQ(part(live, Category::kTemporaries), kMlpBytes + 65 * kMiB);
}

TEST(Categories, OfATrainedGptAddUpToItsSizes) {
  const Trace trace = recording("gpt");
  const Facts facts(trace, {});
  const CategoryBytes live = live_at_peak(facts);  // at the head of a backward
  EXPECT_EQ(part(live, Category::kParameters), kGptBytes);
  EXPECT_EQ(part(live, Category::kOptimizer), 2 * kGptBytes);
  EXPECT_EQ(part(live, Category::kGradients), 0u);
  EXPECT_GT(part(live, Category::kActivations), kGiB);
}

// One of many tensors that a program keeps happens to have the size of a workspace of cuBLAS.
TEST(Categories, AResultOfTheSizeOfAWorkspaceIsWhatItsSiblingsAre) {
  std::string lines =
      "source dry-run\ndevice 0 capacity=16GiB\ntensor m = float32[128,65536] op=aten::zeros\n"
      "tensor n = float32[64,65536] op=aten::zeros\ntensor w = uint8[8519680] op=cublas\n"
      "alloc #n 16MiB tensor=n at run.py:6 mask\nalloc #m 32MiB tensor=m at run.py:6 mask\n"
      "alloc #w 8519680 tensor=w at run.py:9 main\nstep 0 step\nalloc #o 16MiB tensor=n at run.py:6 mask\nstep 1 "
      "step\n";
  const Trace trace = traced(lines);
  const Facts facts(trace, {});
  const CategoryBytes live = live_at_peak(facts);
  EXPECT_EQ(part(live, Category::kOther), 64 * kMiB);
  EXPECT_EQ(part(live, Category::kTemporaries), 8519680u);
}

TEST(Categories, AddUpToWhatIsAllocated) {
  for (const char* name : {"gpt", "gpt_oom", "train_clean", "graphs", "mem_pool", "hf_gpt2_train", "ring_train"}) {
    const Trace trace = recording(name);
    const Facts facts(trace, {});
    const UsageMoment& moment = facts.focus(0);
    std::uint64_t sum = 0;
    for (const std::uint64_t bytes : facts.live_by_category(0, moment.event)) sum += bytes;
    EXPECT_EQ(sum, moment.allocated) << name;
  }
}

TEST(Categories, AForwardsResultsAreActivationsUntilBackwardEndsThem) {
  const Trace trace = recording("deep_forward_only");
  const Facts facts(trace, {});
  const CategoryBytes live = live_at_peak(facts);
  EXPECT_EQ(part(live, Category::kParameters), 60ull * (512 * 512 + 512) * kFloat);
  // sixty ReLU results, and the Linear result of the last layer at the peak
  EXPECT_EQ(part(live, Category::kActivations), 61 * kMiB);
}

const std::string kTorch = "/usr/lib/python3/dist-packages/torch/";

TEST(Categories, AWorkspaceIsOneThatStaysAndComesOnce) {
  const std::string head = "stack call = run.py:3 main > " + kTorch + "nn/modules/module.py:1775 _call_impl\n";
  const auto of_first = [](const Trace& trace) {
    const Facts facts(trace, {});
    return facts.categories[0].of(AllocationId(1));
  };
  EXPECT_EQ(of_first(traced(head + "alloc 32MiB stack=call\nalloc 2MiB stack=call\n")), Category::kTemporaries);
  EXPECT_EQ(of_first(traced(head + "alloc 32MiB stack=call\nalloc 32MiB stack=call\nalloc 32MiB stack=call\n")),
            Category::kActivations);
  EXPECT_EQ(of_first(traced(head + "alloc 32MiB stack=call\nalloc #b 32MiB stack=call\nfree #b\n")),
            Category::kActivations);
}

TEST(Categories, WeightsThatALibraryPlacesAreParametersWhereverItsThreadsBegin) {
  const std::string packages = "/usr/lib/python3/dist-packages/",
                    pool =
                        "/usr/lib/python3.12/threading.py:1032 _bootstrap > "
                        "/usr/lib/python3.12/concurrent/futures/thread.py:59 run > ";
  for (const std::string& stack :
       {"run.py:3 main > " + packages + "transformers/modeling_utils.py:311 from_pretrained > " + packages +
            "accelerate/utils/modeling.py:300 set_module_tensor_to_device",
        pool + packages + "transformers/core_model_loading.py:1289 _materialize_copy",
        pool + packages + "transformers/core_model_loading.py:1310 _job",
        pool + packages + "transformers/modeling_utils.py:760 load_shard_file > " + packages +
            "transformers/modeling_utils.py:720 _load_state_dict_into_meta_model",
        "run.py:3 main > " + packages + "accelerate/big_modeling.py:640 load_checkpoint_and_dispatch > " + packages +
            "accelerate/utils/modeling.py:1800 load_checkpoint_in_model"}) {
    const Trace trace = traced("alloc 4MiB at " + stack + "\nalloc 3MiB at run.py:9 main\n");
    const Facts facts(trace, {});
    EXPECT_EQ(facts.categories[0].of(AllocationId(1)), Category::kParameters) << stack;
    EXPECT_EQ(facts.categories[0].of(AllocationId(2)), Category::kOther) << stack;
  }
}

// A generator's results outlive the step of the discriminator's optimizer. In the last round no backward has ended them yet.
TEST(Categories, WhatIsKeptOverAStepIsWhatItsSiblingsWereThatABackwardEnded) {
  const std::string head = "stack call = gan.py:20 main > " + kTorch + "nn/modules/module.py:1775 _call_impl\n" +
                           "stack back = gan.py:25 main > " + kTorch + "autograd/__init__.py:395 backward\n" +
                           "stack keep = gan.py:30 main > " + kTorch + "nn/modules/module.py:1775 _call_impl\n";
  const auto last_of = [&](const std::string& stack, const std::string& ends) {
    std::string lines = head;
    for (int round = 0; round < 3; ++round) {
      const std::string name = "#g" + std::to_string(round);
      lines += "alloc " + name + " 4MiB stack=" + stack + "\nstep " + std::to_string(round) + " step\n";
      if (round < 2 && !ends.empty()) lines += "free " + name + " " + ends + "\n";
    }
    lines += "alloc 1MiB at gan.py:40 main\n";
    const Trace trace = traced(lines);
    return Facts(trace, {}).categories[0].of(AllocationId(3));
  };
  EXPECT_EQ(last_of("call", "stack=back"), Category::kActivations);
  EXPECT_EQ(last_of("keep", "at gan.py:31 main"), Category::kOther);  // a cache that is let go by itself
  EXPECT_EQ(last_of("keep", ""), Category::kOther);                   // a list that grows
}

TEST(Categories, WhatZeroGradFreesWasAGradient) {
  const Trace trace = traced("alloc #g 4MiB at run.py:3 main\nfree #g at run.py:4 main > " + kTorch +
                             "optim/optimizer.py:1048 zero_grad\n");
  EXPECT_EQ(Facts(trace, {}).categories[0].of(AllocationId(1)), Category::kGradients);
}

// optimizer.step(closure), as L-BFGS needs it and Lightning and skorch do it always.
TEST(Categories, WhatAClosureMakesInsideOfAStepIsNotTheOptimizers) {
  const std::string step = "run.py:3 main > " + kTorch + "optim/adamw.py:220 step",
                    closure = step + " > run.py:9 loss_of > ", module = kTorch + "nn/modules/module.py:1775 _call_impl",
                    backward = kTorch + "_tensor.py:630 backward";
  const Trace trace = traced(
      "alloc #p 4MiB at run.py:2 main > " + kTorch + "nn/modules/module.py:900 _apply\nalloc #a 6MiB at " + closure +
      module + "\nalloc #g 4MiB at " + closure + backward + "\nfree #a at " + closure + backward +
      "\nalloc #s 4MiB at " + step + " > " + kTorch + "optim/adamw.py:180 _init_group\nalloc #b 5MiB at " + step +
      "\nfree #b at " + step + "\nstep 0 step\nalloc #l 7MiB at " + step + " > run.py:5 closure\nstep 1 step\n");
  const Facts facts(trace, {});
  const auto of = [&](std::uint32_t number) { return facts.categories[0].of(AllocationId(number)); };
  EXPECT_EQ(of(1), Category::kParameters);
  EXPECT_EQ(of(2), Category::kActivations);
  EXPECT_EQ(of(3), Category::kGradients);
  EXPECT_EQ(of(4), Category::kOptimizer);
  EXPECT_EQ(of(5), Category::kTemporaries);
  EXPECT_EQ(of(6), Category::kOther);
}

TEST(Categories, AWorkspaceThatADryRunNamesIsNeverStateOrGradient) {
  const std::string sgd = " at run.py:3 main > " + kTorch + "optim/sgd.py:120 step",
                    backward = " at run.py:4 main > " + kTorch + "_tensor.py:630 backward";
  const Trace trace = traced(
      "source dry-run\ndevice 0 capacity=16GiB\ntensor w = uint8[8519680] op=cublas\ntensor l = uint8[1048576] "
      "op=cublaslt\nalloc #p 8519680 at run.py:2 main > " +
      kTorch + "nn/modules/module.py:900 _apply\nalloc #w 8519680 tensor=w" + sgd + "\nalloc #v 8519680 tensor=w" +
      backward + "\nalloc #l 1MiB tensor=l" + sgd + "\nstep 0 step\nalloc #g 8519680" + backward + "\nstep 1 step\n");
  const Facts facts(trace, {});
  const CategoryBytes live = live_at_peak(facts);
  EXPECT_EQ(part(live, Category::kOptimizer), 0u);
  EXPECT_EQ(part(live, Category::kGradients), 8519680u);
  EXPECT_EQ(part(live, Category::kTemporaries), 2 * 8519680u + kMiB);
}

TEST(Categories, AnAllocationWithoutAStackIsBackwardsOnlyIfBackwardWasSeen) {
  const Trace never = traced("alloc 4MiB at run.py:3 main\nalloc 4MiB\n");
  EXPECT_FALSE(Facts(never, {}).categories[0].in_backward(never.events[1]));
  const Trace seen = traced("alloc 4 at run.py:3 main > " + kTorch + "_tensor.py:630 backward\nalloc 4MiB\n");
  EXPECT_TRUE(Facts(seen, {}).categories[0].in_backward(seen.events[1]));
}

TEST(Categories, WithoutStacksEverythingIsOther) {
  const Trace trace = recording("no_context");
  const Facts facts(trace, {});
  EXPECT_EQ(part(live_at_peak(facts), Category::kOther), facts.usage[0].peak_allocated.allocated);
}

}  // namespace
}  // namespace faultline
