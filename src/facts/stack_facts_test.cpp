#include "facts/stack_facts.h"

#include "facts/facts_test_support.h"

namespace faultline {
namespace {

struct Seen {
  Trace trace;
  StackId stack;
};

Seen seen(const std::string& frames) {
  Seen result{traced("alloc 512 at " + frames), {}};
  result.stack = result.trace.events.at(0).stack;
  return result;
}

std::string user_line(const std::string& frames) {
  const Seen at = seen(frames);
  return place(at.trace, StackFacts(at.trace).user(at.stack));
}

std::string program_line(const std::string& frames) {
  const Seen at = seen(frames);
  return place(at.trace, StackFacts(at.trace).program(at.stack));
}

std::uint16_t roles(const std::string& frames) {
  const Seen at = seen(frames);
  return StackFacts(at.trace).roles(at.stack);
}

const std::string kTorch = "/usr/lib/python3/dist-packages/torch/";

TEST(StackFacts, InstalledPackagesAreLibraries) {
  for (const char* path : {"/usr/lib/python3/dist-packages/torch/nn/functional.py",
                           "/home/ada/.venv/lib/python3.12/site-packages/transformers/trainer.py",
                           "/usr/lib/python3.12/threading.py", "C:\\Python\\Lib\\site-packages\\torch\\_ops.py",
                           "<frozen runpy>", "/tmp/torchinductor_ada/7m/c7mla6e.py", "<eval_with_key>.3",
                           "<generated> /tmp/torch_geometric.nn.conv.gcn_conv.py", "<attrs generated init run.Net>"}) {
    EXPECT_TRUE(is_library_file(path)) << path;
    EXPECT_FALSE(is_native_file(path)) << path;
  }
}

TEST(StackFacts, ProgramsNotebooksAndPromptsAreTheUsers) {
  for (const char* path : {"/home/ada/train.py", "train.py", "/tmp/ipykernel_1/2.py", "<ipython-input-3-0a1b>",
                           "<stdin>", "<string>", "/home/ada/torch/train.py", "/home/ada/lib/python3_course/train.py",
                           "/home/ada/faultline/train.py", "/home/ada/libfaultline/python/faultline/train.py"}) {
    EXPECT_FALSE(is_library_file(path)) << path;
    EXPECT_FALSE(is_native_file(path)) << path;
  }
}

TEST(StackFacts, CompiledCodeIsNative) {
  for (const char* path : {"", "??", "/build/aten/src/ATen/native/Copy.cpp", "csrc/flash.cu", "libtorch_cuda.so",
                           "/lib/x86_64-linux-gnu/libc.so.6"}) {
    EXPECT_TRUE(is_native_file(path)) << path;
    EXPECT_TRUE(is_library_file(path)) << path;
  }
}

TEST(StackFacts, UserIsTheInnermostLineOfTheProgram) {
  EXPECT_EQ(
      user_line("run.py:9 main > model.py:4 block > " + kTorch + "functional.py:12 linear > Linear.cpp:5 at::linear"),
      "model.py:4 block");
  EXPECT_EQ(user_line("/tmp/ipykernel_1/2.py:3 <module> > " + kTorch + "functional.py:12 linear"),
            "/tmp/ipykernel_1/2.py:3 <module>");
  EXPECT_EQ(user_line(kTorch + "optim/adam.py:1 step"), "");
}

TEST(StackFacts, CompiledCodeOfTheUserIsTheUsers) {
  EXPECT_EQ(
      user_line(
          "/home/ada/main.cpp:9 main > /home/ada/scale.cu:4 launch > /usr/local/cuda/lib64/libcudart.so.13:0 +0x1a2b"),
      "/home/ada/scale.cu:4 launch");
  EXPECT_EQ(user_line("run.py:9 main > /home/ada/ops/scale.cu:4 launch > /pytorch/c10/cuda/Stream.cpp:7 c10"),
            "/home/ada/ops/scale.cu:4 launch");
  EXPECT_EQ(user_line("/home/ada/a.out:0 +0x1a2b > /opt/lib/libfoo.so.2:0 +0x77"), "");
}

TEST(StackFacts, GeneratedCodeIsNotTheUsers) {
  const Trace trace = recording("compile_reduce_overhead");
  const StackFacts facts(trace);
  std::size_t generated = 0;
  for (const Event& event : trace.events) {
    EXPECT_EQ(place(trace, facts.user(event.stack)).find("torchinductor"), std::string::npos);
    for (StackId at = event.stack; at != StackId(); at = trace.stacks.parent(at))
      generated += place(trace, at).find("torchinductor") != std::string::npos;
  }
  EXPECT_GT(generated, 0u);
}

TEST(StackFacts, ProgramIsTheLineThatCallsTheOuterModule) {
  const std::string call = kTorch + "nn/modules/module.py:1775 _call_impl";
  const std::string in_model = "run.py:9 main > " + call + " > model.py:4 forward > " + call + " > block.py:7 forward";
  EXPECT_EQ(user_line(in_model), "block.py:7 forward");
  EXPECT_EQ(program_line(in_model), "run.py:9 main");
  EXPECT_EQ(program_line("run.py:9 main > step.py:2 train"), "step.py:2 train");
}

TEST(StackFacts, AForwardWithoutModulesIsOnePassToo) {
  EXPECT_EQ(program_line("run.py:9 main > net.py:14 forward"), "run.py:9 main");
}

TEST(StackFacts, InnermostPythonSkipsCompiledFrames) {
  const Seen at = seen("run.py:9 main > " + kTorch + "functional.py:12 linear > Linear.cpp:5 at::linear");
  EXPECT_EQ(place(at.trace, StackFacts(at.trace).innermost_python(at.stack)), kTorch + "functional.py:12 linear");
}

TEST(StackFacts, RolesComeFromTheFramesOnTheWay) {
  EXPECT_EQ(roles("run.py:1 main"), 0);
  EXPECT_EQ(roles("run.py:1 main > " + kTorch + "nn/modules/module.py:942 _apply"), kMovesModule);
  EXPECT_EQ(roles("run.py:1 main > " + kTorch + "optim/adam.py:180 _init_group"), kInOptimizer | kInitsOptimizer);
  EXPECT_EQ(roles("run.py:1 main > " + kTorch + "optim/optimizer.py:1048 zero_grad"), kInZeroGrad);
  EXPECT_EQ(roles("run.py:1 main > " + kTorch + "_tensor.py:630 backward"), kInBackward);
  EXPECT_EQ(roles("run.py:1 main > " + kTorch + "cuda/graphs.py:230 __exit__"), kCapturesGraph);
  EXPECT_EQ(roles("run.py:1 main > " + kTorch + "serialization.py:2010 load_tensor"), kLoadsState);
  EXPECT_EQ(roles("engine.cpp:9 torch::autograd::Engine::thread_main"), kInBackward);
}

TEST(StackFacts, AFunctionThatSaysItSetsUpAModelIsBelieved) {
  for (const char* name :
       {"load_weights", "create_layers", "init_params", "build_model", "restore_checkpoint", "__init__"}) {
    EXPECT_TRUE(roles(std::string("run.py:1 main > net.py:2 ") + name) & kConstructs) << name;
  }
  for (const char* name : {"load_batch", "make_input", "weights", "model", "step"}) {
    EXPECT_EQ(roles(std::string("run.py:1 main > net.py:2 ") + name), 0) << name;
  }
}

TEST(StackFacts, TheEmptyStackSaysNothing) {
  const Trace trace = traced("alloc 512");
  const StackFacts facts(trace);
  EXPECT_EQ(facts.roles(StackId()), 0);
  EXPECT_EQ(facts.user(StackId()), StackId());
}

}  // namespace
}  // namespace faultline
