// What is said of texts that TensorFlow and JAX leave behind: the cause where the text holds it, its own framework's advice, and nothing that is not so.
#include <gtest/gtest.h>

#include <cstdio>
#include <string>
#include <vector>

#include "rules/told_texts.h"

namespace faultline {
namespace {

std::string header(const std::string& size, const std::string& prefix = "W1116 09:55:17.469842    8765 ") {
  return prefix + "bfc_allocator.cc:598] Allocator (GPU_0_bfc) ran out of memory trying to allocate " + size +
         " from the lower end requested by op \nIf this is caused by memory fragmentation, the environment variable "
         "'TF_GPU_ALLOCATOR=cuda_malloc_async' may improve the situation.\nCurrent allocation summary follows.\n";
}
std::string bar(const std::string& drawn, const std::string& prefix = "W1116 09:55:17.469930    8765 ") {
  return prefix + "bfc_allocator.cc:609] " + drawn + std::string(100 - drawn.size(), '*') + "\n";
}
std::string refused(std::uint64_t bytes) {
  return "E1116 09:55:17.469788    8765 cuda_executor.cc:1365] [0] Failed to allocate device memory of 1.08GiB (" +
         std::to_string(bytes) +
         " bytes): RESOURCE_EXHAUSTED: : CUDA_ERROR_OUT_OF_MEMORY: out of memory\n=== Source Location Trace: === \n"
         "external/xla+/xla/stream_executor/cuda/cuda_status.cc:45\n\n";
}
std::string base_limit(std::uint64_t bytes) {
  return "E1116 09:55:02.212542    8765 gpu_hlo_schedule.cc:1068] The byte size of input/output arguments (99) exceeds "
         "the base limit (" +
         std::to_string(bytes) + "). This indicates an error in the calculation!\n";
}
const std::string kGib = "1.00GiB (rounded to 1073741824)";
const std::string kJaxTrace =
    "Traceback (most recent call last):\n  File \"/w/train.py\", line 31, in <module>\n    step()\n"
    "jax.errors.JaxRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 1.00GiB.\n";

// Without its map a pool's cause is told by what the driver refused and by what XLA plans with, and by nothing else.
TEST(PoolTexts, TheCauseIsToldWhereTheTextHoldsIt) {
  struct Row {
    std::string text;
    const char* cause;
    Confidence confidence;
  };
  const std::uint64_t gib = std::uint64_t{1} << 30;
  for (const Row& row :
       {// the series of regions ends at the request
        Row{refused(1289302784) + refused(1160372480) + header(kGib) + bar("**__"), "outside-framework",
            Confidence::kProved},
        Row{refused(gib) + header(kGib) + bar("**__") + kJaxTrace, "outside-framework", Confidence::kProved},
        Row{refused(gib) + header(kGib) +
                "W1116 09:55:17.47 8765 bfc_allocator.cc:609] <allocator contains no memory>\n",
            "outside-framework", Confidence::kProved},
        // a region of another moment, larger by far or smaller than the request
        Row{refused(4 * gib) + header(kGib) + bar("**__"), "", Confidence::kLikely},
        Row{refused(gib / 2) + header(kGib) + bar("**__"), "", Confidence::kLikely},
        Row{base_limit(gib / 2) + header(kGib) + bar("*___"), "exhausted", Confidence::kProved},
        Row{base_limit(gib / 10 * 9) + header(kGib) + bar("*___"), "exhausted", Confidence::kLikely},
        Row{base_limit(2 * gib) + header(kGib) + bar("*___"), "", Confidence::kLikely},
        Row{header(kGib) + bar("*___"), "", Confidence::kLikely},
        Row{header(kGib) + bar(""), "", Confidence::kLikely}}) {
    const Finding finding = told_of(row.text);
    EXPECT_EQ(finding.cause, row.cause) << row.text << finding.message;
    EXPECT_EQ(finding.confidence, row.confidence) << row.text;
    EXPECT_EQ(finding.severity, Severity::kError) << row.text;
    EXPECT_EQ(words_of(finding).find("TF_CPP_MIN_LOG_LEVEL=0 python") != std::string::npos, finding.cause.empty())
        << words_of(finding);
  }
}

// A hundredth that is drawn as used may be almost free, and a free piece may reach into its neighbours.
TEST(PoolTexts, TheBarTellsBoundsAndNoMore) {
  const std::string pieces = told_of(header(kGib) + bar("***" + std::string(27, '_') + "xx" + "____")).message;
  EXPECT_NE(pieces.find("at least 31 %"), std::string::npos) << pieces;
  EXPECT_NE(pieces.find("as large as 29 %"), std::string::npos) << pieces;
  EXPECT_NE(pieces.find("less than 3.70 GiB"), std::string::npos) << pieces;  // 100/27 GiB
  const std::string full = told_of(header(kGib) + bar("")).message;
  EXPECT_NE(full.find("no free piece is as large as 2 %"), std::string::npos) << full;
  // nearly a bar
  for (const std::string& line : {std::string(99, '*'), std::string(100, '-'), std::string(101, '*')})
    EXPECT_EQ(told_of(header(kGib) + line + "\n").message.find("bar"), std::string::npos) << line;
}

struct Said {
  std::string text;
  std::vector<const char*> has, lacks;
};

void expect_said(const std::vector<Said>& rows) {
  for (const Said& row : rows) {
    const std::string words = words_of(told_of(row.text));
    for (const char* part : row.has) EXPECT_NE(words.find(part), std::string::npos) << part << "\nin " << words;
    for (const char* part : row.lacks) EXPECT_EQ(words.find(part), std::string::npos) << part << "\nin " << words;
  }
}

const std::string kTensorflow = "2019-12-02 14:03:11.518232: W tensorflow/core/common_runtime/";
const std::string kTensorflowTrace =
    "Traceback (most recent call last):\n  File \"fit.py\", line 22, in <module>\n    model.fit(x)\n"
    "tensorflow.python.framework.errors_impl.";

TEST(PoolTexts, EachFrameworkGetsItsOwnAdvice) {
  const std::vector<const char*> not_of_torch = {"PyTorch", "torch.", "PYTORCH"};
  const auto lacks = [&](std::vector<const char*> more) {
    more.insert(more.end(), not_of_torch.begin(), not_of_torch.end());
    return more;
  };
  expect_said({
      {header(kGib) + bar("") + kJaxTrace, {"JAX prints it only with TF_CPP_MIN_LOG_LEVEL=0"}, lacks({"TensorFlow"})},
      {header(kGib, kTensorflow) + bar("", kTensorflow),
       {"TensorFlow prints it to the standard error, unless"},
       lacks({"JAX", "XLA_"})},
      {header(kGib) + bar(""), {"TensorFlow prints it", "JAX only with"}, lacks({})},
      {header(kGib, "2024-03-11 10:22:41.8: W external/tsl/tsl/framework/") + kJaxTrace, {"JAX prints"}, lacks({})},
      {header(kGib, "2022-04-05 09:11:12.1: W external/org_tensorflow/tensorflow/core/common_runtime/") +
           "RuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 1073741824 bytes.\n",
       {"JAX prints"},
       lacks({"TensorFlow prints"})},
      // the driver's refusals alone: the same size again and again is what the program itself asks for
      {refused(1 << 30) + refused(1 << 30) + refused(1 << 30),
       {"asked the driver for 1.00 GiB"},
       lacks({"no numbers"})},
      {refused(1289302784) + refused(1160372480), {"it then tries with less"}, lacks({"TF_FORCE"})},
      {"2022-04-05 09:11:12.1: E external/org_tensorflow/tensorflow/stream_executor/cuda/cuda_driver.cc:794] failed to "
       "alloc 8589934592 bytes unified memory; result: CUDA_ERROR_OUT_OF_MEMORY: out of memory\n",
       {"8.00 GiB of unified memory"},
       lacks({"no numbers"})},
      {"2021-06-01 09:00:00.0: E tensorflow/stream_executor/cuda/cuda_driver.cc:1018] failed to alloc 17179869184 "
       "bytes "
       "on host: CUDA_ERROR_OUT_OF_MEMORY: out of memory\n",
       {"16.00 GiB", "page-locked"},
       lacks({"pin_memory=False"})},
      {"2020-05-05 12:00:00.0: E tensorflow/stream_executor/cuda/cuda_dnn.cc:329] Could not create cudnn handle: "
       "CUDNN_STATUS_ALLOC_FAILED\n" +
           kTensorflowTrace + "UnknownError: Failed to get convolution algorithm.\n",
       {"TF_FORCE_GPU_ALLOW_GROWTH=true"},
       lacks({})},
      {"jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Attempting to allocate 32.00G. That was not "
       "possible. "
       "There are 14.48G free.; (0x0x0_HBM0)\n",
       {"14.48 GiB was free"},
       lacks({"MEM_FRACTION", "MIN_LOG_LEVEL"})},
      // PyTorch's own text keeps PyTorch's advice
      {"RuntimeError: cuDNN error: CUDNN_STATUS_ALLOC_FAILED\n  File \"/x/torch/nn/conv.py\", line 3\n",
       {"torch.cuda.empty_cache()"},
       {"TF_FORCE"}},
  });
}

// JAX starts computations without waiting: that its log goes on, or ends, says nothing of what failed.
TEST(PoolTexts, NoExceptionIsNotSurvived) {
  const char* const unread = "missing silently";
  const std::string async =
      "E1116 09:54:05.2    8595 gpu_cudamallocasync_allocator.cc:366] gpu_async_0 cuMemAllocAsync failed to allocate "
      "1073741824 bytes: RESOURCE_EXHAUSTED: : CUDA_ERROR_OUT_OF_MEMORY: out of memory\n=== Source Location Trace: === "
      "\n"
      "external/xla+/xla/stream_executor/cuda/cuda_status.cc:45\n\n Reported by CUDA: Free memory/Total memory: "
      "240254976/150109880320\nE1116 09:54:05.2    8595 gpu_cudamallocasync_allocator.cc:371] Stats: Limit: 104.85GiB\n"
      "InUse:     139.00GiB\nNumAllocs:     419\n";
  std::string again = async;
  again.replace(again.find("     419"), 8, "     421");
  expect_said({
      {async + again, {unread}, {"survived"}},
      {header(kGib) + bar(""), {unread}, {"survived"}},
      {"step 1 loss 2.3\n" + header(kGib) + bar("") + "step 2 loss 2.1\nstep 3 loss 2.0\n",
       {unread, "The program went on"},
       {"survived"}},
      {header(kGib) + bar("") + kJaxTrace, {}, {unread}},
      {"step 1 loss 2.3\n" + header(kGib, kTensorflow) + "step 2 loss 2.1\nstep 3 loss 2.0\n", {"survived"}, {unread}},
      {"Epoch 1/9\n" + kTensorflow +
           "bfc_allocator.cc:271] Allocator (GPU_0_bfc) ran out of memory trying to allocate 2.14GiB with "
           "freed_by_count=0. The caller indicates that this is not a failure, but may mean that there could be "
           "performance gains if more memory were available.\nEpoch 2/9\n",
       {"not a failure"},
       {"survived", unread}},
  });
}

// The exception in which the program ended is the failure that the allocator told of first.
TEST(PoolTexts, OneFailureToldTwiceIsOne) {
  const std::string buffers = "BufferAssignment stats:\n   parameter allocation:    1.17GiB\n";
  for (const std::string& text :
       {header(kGib) + bar("") + buffers + kJaxTrace,
        header(kGib, kTensorflow) + kTensorflowTrace +
            "ResourceExhaustedError: OOM when allocating tensor with "
            "shape[1024,262144] and type float on /job:localhost/replica:0/task:0/device:GPU:0 by allocator "
            "GPU_0_bfc\n\n"
            "During handling of the above exception, another exception occurred:\n\n" +
            kTensorflowTrace +
            "ResourceExhaustedError: OOM when allocating tensor with shape[1024,262144] and type float\n",
        "2020-05-05 12:00:00.0: E tensorflow/stream_executor/cuda/cuda_blas.cc:226] failed to create cublas handle: "
        "CUBLAS_STATUS_NOT_INITIALIZED\n" +
            kTensorflowTrace + "InternalError:  Blas GEMM launch failed : m=32\n"}) {
    const Finding finding = told_of(text);
    EXPECT_EQ(finding.severity, Severity::kError) << text << finding.message;
    EXPECT_NE(finding.rule, "program/other-error") << text;
    EXPECT_TRUE(finding.location.known()) << text;
  }
  // another exception stays another
  const Finding other = told_of(header(kGib, kTensorflow) +
                                "Epoch 1/2\nEpoch 2/2\nTraceback (most recent call last):\n"
                                "  File \"fit.py\", line 9, in <module>\n    d['x']\nKeyError: 'x'\n");
  EXPECT_EQ(other.rule, "program/other-error");
}

// Two pools in one text, line by line and without a thread in front: what can be read is told, and no cause.
TEST(PoolTexts, OfMixedMapsNoCauseIsTold) {
  const auto lines_of = [](const std::string& name, std::uint64_t base) {
    std::vector<std::string> lines = {
        "Allocator (" + name +
            ") ran out of memory trying to allocate 16.00MiB (rounded to 16777216)requested by op Mul",
        "BFCAllocator dump for " + name, "Next region of size 67108864"};
    for (std::uint64_t at = 0; at < 8; ++at) {
      char line[100];
      std::snprintf(line, sizeof line, "%s at %llx of size 8388608 next %u", at % 2 == 0 ? "InUse" : "Free ",
                    static_cast<unsigned long long>(base + at * 8388608), static_cast<unsigned>(at + 1));
      lines.emplace_back(line);
    }
    return lines;
  };
  const std::vector<std::string> one = lines_of("GPU_0_bfc", 0x7f0000000000),
                                 two = lines_of("GPU_1_bfc", 0x7e0000000000);
  const std::string prefix = "2024-05-01 12:34:56.1: I tensorflow/core/common_runtime/bfc_allocator.cc:1105] ";
  for (const std::size_t lost : {std::size_t{0}, std::size_t{4}, std::size_t{9}}) {
    std::string mixed, apart;
    for (std::size_t at = 0; at < one.size(); ++at) {
      if (lost == 0 || at != lost) mixed += prefix + one[at] + "\n";
      mixed += prefix + two[at] + "\n";
      apart += prefix + two[at] + "\n";
    }
    const Result<Trace> trace = read_error_text(mixed, "log.txt");
    ASSERT_TRUE(trace);
    for (const Finding& finding : judge(*trace).findings) {
      EXPECT_EQ(finding.rule, "memory/out-of-memory") << finding.message;
      EXPECT_EQ(finding.cause, "") << finding.message;
      EXPECT_NE(finding.message.find("mixed"), std::string::npos) << finding.message;
    }
    EXPECT_EQ(!trace->lost.empty(), lost != 0);
    EXPECT_EQ(told_of(apart).message.find("mixed"), std::string::npos);
  }
}

TEST(PoolTexts, LinesThatAreNoErrorsAreNotes) {
  for (
      const char* line :
      {"2021-06-01 09:00:00.0: W tensorflow/core/framework/cpu_allocator_impl.cc:80] Allocation of 4294967296 exceeds "
       "10% of free system memory.\n",
       "2024-05-01 10:00:00.0: W external/xla/xla/service/hlo_rematerialization.cc:3005] Can't reduce memory use below "
       "11.39GiB (12230000000 bytes) by rematerialization; only reduced to 17.12GiB (18382000000 bytes)\n",
       "2024-08-01 09:00:00.0: E external/local_xla/xla/stream_executor/cuda/cuda_fft.cc:485] Unable to register cuFFT "
       "factory: Attempting to register factory for plugin cuFFT when one has already been registered\n"})
    EXPECT_EQ(told_of(line).severity, Severity::kNote) << line;
  const Finding fails = told_of(std::string("W x.cc:1] Allocation of 4294967296 exceeds 10% of free system memory.\n") +
                                header(kGib, kTensorflow) + kTensorflowTrace +
                                "ResourceExhaustedError: OOM when allocating tensor with shape[1024,262144]\n");
  EXPECT_EQ(fails.rule, "memory/out-of-memory");
  EXPECT_EQ(fails.severity, Severity::kError);
}

// XLA tries the ways to compute a product, each fails for memory, and one exception tells of all of them.
TEST(PoolTexts, TheLineOfAnExceptionOfSeveralLines) {
  const std::string attempt =
      "EXECUTION FAILED: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 37.27GiB with allocator GPU_0_bfc "
      "on device 0. [tf-allocator-allocation-error='']\n";
  for (const char* name : {"jax.errors.JaxRuntimeError", "jaxlib.xla_extension.XlaRuntimeError"}) {
    const std::string head =
        "Traceback (most recent call last):\n  File \"/w/train.py\", line 5, in <module>\n    print(f(x))\n          "
        "^^^^\n" +
        std::string(name) + ": NOT_FOUND: All configs failed during profiling or were excluded from selection.\n";
    const Finding finding = told_of(head + "Failures (2):\n" + attempt + attempt);
    EXPECT_EQ(finding.location.line, 5u) << name;
    EXPECT_EQ(finding.location.file, "/w/train.py") << name;
  }
  // another exception, of which the lines below are no part
  const Finding other = told_of(
      "Traceback (most recent call last):\n  File \"/w/data.py\", line 5, in <module>\n    load()\nValueError: no such "
      "column\nFailures (1):\n" +
      attempt);
  EXPECT_NE(other.location.file, "/w/data.py");
}

}  // namespace
}  // namespace faultline
