// Texts as people paste them, each class with the twin that must be told otherwise.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "rules/told_texts.h"

namespace faultline {
namespace {

std::string everything_said(const Finding& finding) {
  std::string words = finding.message;
  for (const Evidence& evidence : finding.evidence) {
    if (const auto* word = std::get_if<std::string>(&evidence.value); word != nullptr && evidence.name == "inequality")
      words += "\n" + *word;
  }
  for (const Try& attempt : finding.tries) words += "\n" + attempt.what;
  return words;
}

struct Expected {
  std::string text;
  std::vector<std::string> has, lacks;
};

void expect_all(const std::vector<Expected>& rows) {
  for (const Expected& row : rows) {
    const std::string words = everything_said(told_of(row.text));
    for (const std::string& part : row.has) EXPECT_NE(words.find(part), std::string::npos) << part << "\nin " << words;
    for (const std::string& part : row.lacks)
      EXPECT_EQ(words.find(part), std::string::npos) << part << "\nin " << words;
  }
}

std::string torch_2(const std::string& asked, const std::string& all, const std::string& free,
                    const std::string& processes, const std::string& live, const std::string& idle) {
  return "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate " + asked + ". GPU 0 has a total capacity of " +
         all + " of which " + free + " is free. " + processes + " Of the allocated memory " + live +
         " is allocated by PyTorch, and " + idle + " is reserved by PyTorch but unallocated.\n";
}
std::string torch_1(const std::string& asked, const std::string& all, const std::string& live, const std::string& free,
                    const std::string& reserved) {
  return "RuntimeError: CUDA out of memory. Tried to allocate " + asked + " (GPU 0; " + all + " total capacity; " +
         live + " already allocated; " + free + " free; " + reserved + " reserved in total by PyTorch)\n";
}

TEST(MessageTexts, WhatOthersFillIsNoMatterOfTheBatch) {
  struct Row {
    std::string text, cause;
  };
  const std::string own = "Including non-PyTorch memory, this process has ";
  for (const Row& row : {
           Row{torch_2("2.00 MiB", "23.69 GiB", "4.56 MiB",
                       "Process 3333 has 23.10 GiB memory in use. Process 4444 has 592.00 MiB memory in use.",
                       "0 bytes", "0 bytes"),
               "other-process"},
           Row{torch_2("2.00 MiB", "23.69 GiB", "1.56 MiB",
                       "Process 3333 has 23.10 GiB memory in use. Process 4444 has 592.00 MiB memory in use.",
                       "0 bytes", "0 bytes"),
               "other-process"},
           Row{torch_2("20.00 MiB", "15.90 GiB", "25.75 MiB",
                       "Process 100 has 14.00 GiB memory in use. Process 200 has 1.87 GiB memory in use.", "1.20 GiB",
                       "60.50 MiB"),
               "other-process"},
           Row{torch_2("200.00 MiB", "23.69 GiB", "280.56 MiB",
                       "Process 3333 has 21.10 GiB memory in use. " + own + "2.31 GiB memory in use.", "1.60 GiB",
                       "10.00 MiB"),
               "other-process"},
           Row{torch_2("2.00 MiB", "79.15 GiB", "7.00 MiB",
                       "Process 7 has 40.00 GiB memory in use. Process 8 has 36.00 GiB memory in use. " + own +
                           "3.10 GiB memory in use.",
                       "2.40 GiB", "10.00 MiB"),
               "other-process"},
           Row{torch_1("2.00 MiB", "10.76 GiB", "512.00 KiB", "5.44 MiB", "2.00 MiB"), "outside-framework"},
           Row{torch_1("20.00 MiB", "15.90 GiB", "0 bytes", "25.75 MiB", "0 bytes"), "outside-framework"},
           Row{torch_1("64.00 MiB", "11.17 GiB", "1.90 GiB", "66.00 MiB", "2.00 GiB"), "outside-framework"},
       }) {
    const Finding finding = told_of(row.text);
    EXPECT_EQ(finding.cause, row.cause) << row.text << finding.message;
    const std::string words = everything_said(finding);
    EXPECT_EQ(words.find("smaller batch"), std::string::npos) << words;
    EXPECT_NE(words.find("nvidia-smi"), std::string::npos) << words;
    EXPECT_NE(words.find(" ≥ "), std::string::npos) << words;
  }
  // What this program itself fills is its own matter, and a device with room was not full.
  for (const std::string& text :
       {torch_2("2.00 MiB", "23.69 GiB", "4.56 MiB",
                "Process 3333 has 592.00 MiB memory in use. " + own + "23.10 GiB memory in use.", "22.40 GiB",
                "100.00 MiB"),
        torch_2("200.00 MiB", "23.69 GiB", "280.56 MiB", own + "23.41 GiB memory in use.", "22.60 GiB", "10.00 MiB"),
        torch_1("20.00 MiB", "15.90 GiB", "14.80 GiB", "25.75 MiB", "14.90 GiB"),
        torch_1("20.00 MiB", "15.90 GiB", "14.80 GiB", "15.75 MiB", "14.90 GiB"),
        torch_2("200.00 MiB", "23.69 GiB", "2.56 GiB",
                "Process 3333 has 18.70 GiB memory in use. " + own + "2.41 GiB memory in use.", "1.60 GiB",
                "10.00 MiB")}) {
    const Finding finding = told_of(text);
    EXPECT_NE(finding.cause, "other-process") << finding.message;
    EXPECT_NE(finding.cause, "outside-framework") << finding.message;
  }
}

TEST(MessageTexts, RanksOfOneJobAreNotTakenForStrangersNorGivenOneDevice) {
  const std::string oom =
      "[rank3]:   File \"/w/train.py\", line 211, in <module>\n[rank3]:     loss.backward()\n[rank3]: " +
      torch_2("1.16 GiB", "79.15 GiB", "512.00 MiB",
              "Process 88 has 61.20 GiB memory in use. Process 91 has 17.40 GiB memory in use.", "58.10 GiB",
              "1.90 GiB");
  const std::string head = "[rank3]: Traceback (most recent call last):\n",
                    launcher =
                        "E1112 03:14:26 1 torch/distributed/elastic/multiprocessing/api.py:869] failed "
                        "(exitcode: 1) local_rank: 3 (pid: ",
                    end = ") of binary: /usr/bin/python\n";
  const Finding own = told_of(head + oom + launcher + "91" + end), other = told_of(head + oom + launcher + "92" + end);
  EXPECT_EQ(own.confidence, Confidence::kLikely);
  EXPECT_NE(own.message.find("local rank 3 of this very job"), std::string::npos) << own.message;
  EXPECT_EQ(other.confidence, Confidence::kProved);
  EXPECT_EQ(other.message.find("very job"), std::string::npos) << other.message;
  EXPECT_NE(
      told_of(head + oom + "[0]:\n  host      : node\n  rank      : 3 (local_rank: 3)\n  exitcode  : 1 (pid: 91)\n")
          .message.find("local rank 3 of this very job"),
      std::string::npos);
  for (const Finding& finding : {own, other})
    EXPECT_EQ(everything_said(finding).find("CUDA_VISIBLE_DEVICES"), std::string::npos) << everything_said(finding);
  const std::string fill = torch_2("1.16 GiB", "79.15 GiB", "512.00 MiB",
                                   "Process 88 has 61.20 GiB memory in use. Including non-PyTorch memory, this process "
                                   "has 17.40 GiB memory in use.",
                                   "16.10 GiB", "0.20 GiB");
  for (const char* command : {"torchrun --nproc_per_node 4 a.py", "accelerate launch a.py", "deepspeed a.py",
                              "python -m torch.distributed.launch a.py"})
    expect_all({{"$ " + std::string(command) + "\n" + fill, {"LOCAL_RANK"}, {"CUDA_VISIBLE_DEVICES"}}});
  expect_all({{"$ python a.py\n" + fill, {"CUDA_VISIBLE_DEVICES=1 python a.py"}, {"LOCAL_RANK"}}});
}

TEST(MessageTexts, WhatIsInEffectFullAddsUp) {
  const std::string text = torch_2("20.00 MiB", "14.75 GiB", "13.06 MiB", "Process 26427 has 14.73 GiB memory in use.",
                                   "13.57 GiB", "53.24 MiB");
  expect_all({{text,
               {"66.30 MiB", "left 46.30 MiB", "13.06 MiB free + 53.24 MiB idle ≥ 20.00 MiB requested",
                "1.11 GiB of this process lay outside"},
               {"at most"}}});
  const Finding finding = told_of(text);
  ASSERT_GE(finding.tries.size(), 2u);
  EXPECT_TRUE(finding.tries.front().what.starts_with("Hold less")) << finding.tries.front().what;
}

TEST(MessageTexts, HostMemoryIsToldInItsFrameworksWords) {
  const std::vector<std::string> torch = {"torch", "DataLoader"};
  const std::string cpu = " on /job:localhost/replica:0/task:0/device:CPU:0 by allocator ";
  expect_all({
      {"ResourceExhaustedError: OOM when allocating tensor with shape[100000,100000] and type double" + cpu + "cpu",
       {"74.51 GiB was requested", "tf.data"},
       torch},
      {"ResourceExhaustedError: OOM when allocating tensor with shape[200000,200000] and type float" + cpu + "mklcpu",
       {"149.01 GiB was requested", "tf.data"},
       torch},
      {"jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory allocating 640000000000 bytes.",
       {"596.05 GiB was requested", "jax.devices()"},
       torch},
      {"RuntimeError: [enforce fail at alloc_cpu.cpp:117] err == 0. DefaultCPUAllocator: can't allocate memory: you "
       "tried to allocate 640000000000 bytes. Error code 12 (Cannot allocate memory)\n",
       {"596.05 GiB was requested", "torch.load", "torch.cuda.empty_cache()"},
       {"tf.data", "jax.devices"}},
  });
}

TEST(MessageTexts, ALineThatSaysWhatBecameOfItIsSurvived) {
  for (const char* line :
       {"CUDA error: out of memory (ignored: falling back to CPU offload)",
        "CUDA error: out of memory, skipping this tile", "CUDA error: out of memory (retrying on the CPU)"})
    EXPECT_EQ(told_of(std::string(line) + "\ngenerated 512 tokens in 30 s\nDone.\n").severity, Severity::kWarning)
        << line;
  for (const std::string text : {"CUDA error: out of memory (ignored: falling back to CPU offload)\n",
                                 "CUDA error: out of memory\ngenerated 512 tokens in 30 s\n",
                                 "RuntimeError: CUDA error: out of memory (not ignored)\nbye\n"})
    EXPECT_EQ(told_of(text).severity, Severity::kError) << text;
}

TEST(MessageTexts, ALibraryThatCouldNotStartBehindARefusalHadNoMemory) {
  const std::string refusal =
      "2023-01-01 00:00:00.1: E external/org_tensorflow/tensorflow/compiler/xla/stream_executor/cuda/"
      "cuda_driver.cc:627] failed to allocate 17.73G (19035040768 bytes) from device: CUDA_ERROR_OUT_OF_MEMORY: out of "
      "memory\n";
  for (const char* status : {"CUDNN_STATUS_INTERNAL_ERROR", "CUDNN_STATUS_NOT_INITIALIZED"}) {
    const std::string start =
        "2023-01-01 00:00:00.2: E "
        "external/org_tensorflow/tensorflow/compiler/xla/stream_executor/cuda/cuda_dnn.cc:389] "
        "Could not create cudnn handle: " +
        std::string(status) + "\n";
    expect_all({{refusal + start, {"17.73 GiB (line 1)", "XLA_CLIENT_MEM_FRACTION"}, {"batch of 1", "earlier error"}},
                {start, {"batch of 1", "earlier error"}, {"17.73 GiB"}}});
    EXPECT_EQ(told_of(refusal + start).rule, "memory/out-of-memory");
    EXPECT_NE(told_of(start).rule, "memory/out-of-memory");
  }
}

TEST(MessageTexts, ATensorAndItsOperationAreTold) {
  const auto text = [](const std::string& shape) {
    return "2023-04-01 12:00:11.123: W tensorflow/core/common_runtime/bfc_allocator.cc:479] Allocator (GPU_0_bfc) ran "
           "out of memory trying to allocate 1.53GiB (rounded to 1644167168)requested by op model/conv2d_12/Conv2D\n"
           "ResourceExhaustedError: Graph execution error:\nOOM when allocating tensor with shape" +
           shape +
           " and type float on /job:localhost/replica:0/task:0/device:GPU:0 by allocator GPU_0_bfc\n"
           "\t [[{{node model/conv2d_12/Conv2D}}]]\n";
  };
  const Finding finding = told_of(text("[128,256,112,112]"));
  EXPECT_EQ(finding.location.op, "model/conv2d_12/Conv2D");
  EXPECT_EQ(finding.memory, "tensor of shape [128,256,112,112], type float");
  expect_all({{text("[128,256,112,112]"), {"The first dimension, 128, is likely the batch"}, {}},
              {text("[411041792]"), {"[411041792]"}, {"is likely the batch"}},
              {text("[3,3,6759,6757]"), {}, {"is likely the batch"}},
              {text("[7,7]"), {"model/conv2d_12/Conv2D"}, {"[7,7]"}}});  // another request's
}

TEST(MessageTexts, TemporariesOfACompiledProgramAreTold) {
  const auto text = [](const std::string& temporaries) {
    return "jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate "
           "17179869184 "
           "bytes.\nBufferAssignment OOM Debugging.\nBufferAssignment stats:\n   parameter allocation:    1.42GiB\n"
           "   preallocated temp allocation:   " +
           temporaries + "\n   total allocation:   20.12GiB\n";
  };
  expect_all({{text("18.70GiB"), {"18.70 GiB of it for temporaries", "jax.checkpoint"}, {}},
              {text("1.20GiB"), {"1.20 GiB of it for temporaries"}, {"jax.checkpoint"}}});
}

TEST(MessageTexts, VllmsNumbersAreUsed) {
  const auto start = [](const std::string& free, const std::string& all) {
    return "ValueError: Free memory on device (" + free + "/" + all +
           " GiB) on startup is less than desired GPU memory utilization (0.9, 21.28 GiB). Decrease GPU memory "
           "utilization or reduce GPU memory used by other processes.\n";
  };
  expect_all({
      {start("13.21", "23.65"), {"--gpu-memory-utilization 0.55 or lower", "13.21 GiB free < 21.28 GiB requested"}, {}},
      {start("2.10", "79.15"), {"--gpu-memory-utilization 0.02 or lower"}, {}},
      {"ValueError: To serve at least one request with the models's max seq len (131072), (16.00 GiB KV cache is "
       "needed, which is larger than the available KV cache memory (5.23 GiB). Based on the available memory, the "
       "estimated maximum model length is 42832.\n",
       {"needs 16.00 GiB", "room for 5.23 GiB", "--max-model-len 42832"},
       {}},
  });
}

TEST(MessageTexts, AdviceNamesTheProgramOfTheTextAndSaysThingsOnce) {
  const std::string end =
                        "RuntimeError: CUDA error: CUBLAS_STATUS_NOT_INITIALIZED when calling `cublasCreate(handle)`\n",
                    frame = "    h = self.norm(self.wte(ids))\n", head = "Traceback (most recent call last):\n";
  expect_all(
      {{head + "  File \"finetune.py\", line 88, in forward\n" + frame + end, {"python finetune.py"}, {"train.py"}},
       {head + "  File \"run.py\", line 8, in go\n    go()\n  File \"net.py\", line 88, in forward\n" + frame + end,
        {},
        {"python net.py", "python run.py"}}});
  const std::string image = "RuntimeError: CUDA error: no kernel image is available for execution on the device\n";
  EXPECT_EQ(told_of(image + "NVIDIA GeForce RTX 5090 with CUDA capability sm_120 is not compatible with the current "
                            "PyTorch installation.\nThe current PyTorch install supports CUDA capabilities sm_50 "
                            "sm_90.\n")
                .tries.size(),
            1u);
  EXPECT_EQ(told_of(image).tries.size(), 1u);
}

TEST(MessageTexts, LibrariesOfOtherVersionsAndLayersThatRefuseAreRecognised) {
  struct Row {
    const char *text, *rule, *says;
  };
  for (const Row& row :
       {Row{"Loaded runtime CuDNN library: 8.2.1 but source was compiled with: 8.6.0.  CuDNN library needs to have "
            "matching major version.\nUNIMPLEMENTED: DNN library is not found.\n",
            "config/device-not-usable", "8.2.1 but source was compiled with: 8.6.0"},
        Row{"tensorflow.python.framework.errors_impl.UnimplementedError: Graph execution error:\nDNN library is not "
            "found.\n",
            "config/device-not-usable", "cuDNN was not found or could not be started"},
        Row{"Input 0 of layer \"dense\" is incompatible with the layer: expected axis -1 of input shape to have value "
            "512, but received input with shape (None, 256)\n",
            "tensor/shape-mismatch", "512 entries in the last dimension and got an input of shape (None, 256)"},
        Row{"ValueError: Input 0 of layer dense_4 is incompatible with the layer: expected axis -1 of input shape to "
            "have value 784 but received input with shape [None, 28, 28]\n",
            "tensor/shape-mismatch", "dense_4 was built for 784"},
        Row{"ValueError: Input 0 of layer \"conv2d\" is incompatible with the layer: expected min_ndim=4, found "
            "ndim=3. "
            "Full shape received: (None, 28, 28)\n",
            "tensor/shape-mismatch", "at least 4 dimensions and got one of 3, (None, 28, 28)"},
        Row{"ValueError: Input 0 of layer \"model\" is incompatible with the layer: expected shape=(None, 784), found "
            "shape=(None, 28, 28)\n",
            "tensor/shape-mismatch", "it wants the shape (None, 784) and got an input of shape (None, 28, 28)"}}) {
    const Finding finding = told_of(row.text);
    EXPECT_EQ(finding.rule, row.rule) << row.text;
    EXPECT_NE(finding.message.find(row.says), std::string::npos) << finding.message;
  }
  const std::string keras =
      "Traceback (most recent call last):\n  File \"/w/m.py\", line 9, in <module>\n    model.fit(x, y)\n"
      "ValueError: Exception encountered when calling Sequential.call().\n\n\x1b[1mInput 0 of layer \"dense_1\" is "
      "incompatible with the layer: expected axis -1 of input shape to have value 128, but received input with shape "
      "(32, 64)\x1b[0m\n\nArguments received by Sequential.call():\n";
  EXPECT_EQ(told_of(keras).location.line, 9u);
  for (const char* text : {"This checkpoint is incompatible with the layer: rename it.\n",
                           "The plugin was loaded, but source was compiled with another compiler.\n"})
    EXPECT_FALSE(read_error_text(text, "log.txt").ok()) << text;
}

}  // namespace
}  // namespace faultline
