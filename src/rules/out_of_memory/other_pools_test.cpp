// Texts of TensorFlow and JAX about memory that is not in a pool with a map: CUDA's own pool, the host's, the driver's, and commands that are told for them.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "rules/told_texts.h"

namespace faultline {
namespace {

struct AsyncText {
  std::uint64_t asked = 1 << 30, free = 0, all = 0, in_use = 0, reserved = 0;
  std::string raised;
};
std::string text_of(const AsyncText& told) {
  const std::string prefix =
      "2023-01-01 00:00:00.1: E tensorflow/core/common_runtime/gpu/gpu_cudamallocasync_allocator.cc:2";
  std::string text =
      prefix + "88] gpu_async_0 cuMemAllocAsync failed to allocate " + std::to_string(told.asked) +
      " bytes: CUDA error: out of memory (CUDA_ERROR_OUT_OF_MEMORY)\n Reported by CUDA: Free memory/Total "
      "memory: " +
      std::to_string(told.free) + "/" + std::to_string(told.all) + "\n";
  if (told.in_use != 0)
    text += prefix + "93] Stats: Limit:                     14465892352\nInUse:                     " +
            std::to_string(told.in_use) + "\nMaxInUse:                  " + std::to_string(told.in_use) + "\n";
  if (told.reserved != 0)
    text += prefix + "90] CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT: " + std::to_string(told.reserved) + "\n" + prefix +
            "92] CU_MEMPOOL_ATTR_USED_MEM_CURRENT: " + std::to_string(told.in_use) + "\n";
  return text + told.raised;
}

TEST(OtherPools, CudasOwnPoolIsToldByItsOwnNumbers) {
  constexpr std::uint64_t gib = std::uint64_t{1} << 30;
  const std::string raised =
      "Traceback (most recent call last):\n  File \"/w/fit.py\", line 12, in <module>\n    model.fit(x)\n"
      "tensorflow.python.framework.errors_impl.ResourceExhaustedError: OOM when allocating tensor with "
      "shape[268435456] "
      "and type float on /job:localhost/replica:0/task:0/device:GPU:0 by allocator gpu_async_0\n";
  struct Row {
    AsyncText told;
    const char *cause, *has;
  };
  for (const Row& row :
       {Row{{gib, gib / 2, 16 * gib, 0, 0, ""}, "", "16.00 GiB it reports 512.00 MiB free"},
        Row{{gib, gib / 2, 16 * gib, 13 * gib, 0, ""}, "", "the other 2.50 GiB are what the pool keeps"},
        Row{{gib, gib / 2, 16 * gib, 13 * gib, 0, raised}, "", "TensorFlow has 13.00 GiB in use"},
        Row{{gib, gib / 2, 14 * gib, 27 * gib / 2, 0, raised}, "exhausted", "more than the device has"},
        Row{{32 * gib, gib / 2, 16 * gib, 0, 0, ""}, "exhausted", "it is more than the device has"},
        Row{{gib, 2 * gib, 16 * gib, 0, 0, ""}, "", "that is more than was requested"},
        Row{{gib, gib / 4, 16 * gib, 15 * gib, 15 * gib + gib / 4, raised}, "exhausted", "15.00 GiB"}}) {
    const Finding finding = told_of(text_of(row.told));
    const std::string words = words_of(finding);
    EXPECT_EQ(finding.cause, row.cause) << words;
    EXPECT_NE(words.find(row.has), std::string::npos) << row.has << "\nin " << words;
    EXPECT_EQ(words.find("map"), std::string::npos) << words;
    EXPECT_EQ(finding.location.line, row.told.raised.empty() ? 0U : 12U);
  }
  const std::string alone = words_of(told_of(raised));
  EXPECT_EQ(alone.find("TF_CPP_MIN_LOG_LEVEL"), std::string::npos) << alone;
  // the numbers of another request
  AsyncText other;
  other.asked = 4096;
  other.free = gib / 2;
  other.all = 16 * gib;
  other.raised = "Epoch 2/9\n" + raised;
  EXPECT_EQ(told_of(text_of(other)).message.find("512.00 MiB"), std::string::npos) << told_of(text_of(other)).message;
}

TEST(OtherPools, EachMessageIsOfItsMemory) {
  struct Row {
    std::string text;
    const char *rule, *has;
    Confidence confidence;
  };
  const std::string internal = "tensorflow.python.framework.errors_impl.InternalError: ";
  const auto key = [](const char* to) {
    return std::string(
               "ResourceExhaustedError: SameWorkerRecvDone unable to allocate output tensor. Key: "
               "/job:localhost/replica:0/task:0/device:CPU:0;abc;/job:localhost/replica:0/task:0/device:") +
           to + ";edge_1;0:0\n";
  };
  for (const Row& row :
       {Row{"2021-10-15 15:02:44.5: W tensorflow/core/common_runtime/bfc_allocator.cc:457] Allocator (gpu_host_bfc) "
            "ran out "
            "of memory trying to allocate 12.00MiB (rounded to 12582912)requested by op \n",
            "memory/host-memory", "TF_GPU_HOST_MEM_LIMIT_IN_MB", Confidence::kProved},
        Row{"2021-10-15 15:02:44.5: W tensorflow/core/common_runtime/bfc_allocator.cc:457] Allocator (GPU_0_bfc) ran "
            "out "
            "of memory trying to allocate 12.00MiB (rounded to 12582912)requested by op \n",
            "memory/out-of-memory", "in its memory pool", Confidence::kLikely},
        Row{internal + "CUDA runtime implicit initialization on GPU:0 failed. Status: out of memory\n",
            "memory/out-of-memory", "CUDA context on GPU 0", Confidence::kLikely},
        Row{key("GPU:0"), "memory/out-of-memory", "A copy to the GPU", Confidence::kLikely},
        Row{key("CPU:0"), "memory/host-memory", "RAM", Confidence::kProved},
        Row{"jaxlib.xla_extension.XlaRuntimeError: INTERNAL: Failed to allocate 104857600 bytes for new constant\n",
            "memory/out-of-memory", "100.00 MiB", Confidence::kLikely},
        Row{"** (RuntimeError) Out of memory while trying to allocate 117964800 bytes.\n", "memory/out-of-memory",
            "112.50 MiB", Confidence::kLikely},
        Row{"jax.errors.JaxRuntimeError: RESOURCE_EXHAUSTED: Out of memory allocating 8589934592 bytes.\n",
            "memory/host-memory", "likely and not proved", Confidence::kLikely},
        Row{"E external/xla/xla/stream_executor/cuda/cuda_dnn.cc:439] Could not create cudnn handle: "
            "CUDNN_STATUS_INTERNAL_ERROR\nE external/xla/xla/stream_executor/cuda/cuda_dnn.cc:443] Memory usage: 49152 "
            "bytes free, 25438126080 bytes total.\n",
            "memory/out-of-memory", "48.00 KiB of the device's 23.69 GiB was free", Confidence::kLikely},
        Row{"E external/xla/xla/stream_executor/cuda/cuda_dnn.cc:439] Could not create cudnn handle: "
            "CUDNN_STATUS_INTERNAL_ERROR\nE external/xla/xla/stream_executor/cuda/cuda_dnn.cc:443] Memory usage: "
            "20438126080 bytes free, 25438126080 bytes total.\n",
            "api/launch-error", "could not start", Confidence::kLikely}}) {
    const Finding finding = told_of(row.text);
    EXPECT_EQ(finding.rule, row.rule) << row.text << finding.message;
    EXPECT_EQ(finding.confidence, row.confidence) << row.text;
    EXPECT_NE(words_of(finding).find(row.has), std::string::npos) << row.has << "\nin " << words_of(finding);
  }
  // talk about it
  for (const char* text :
       {"Status: out of memory is what people see.\n", "We print Out of memory while trying to allocate.\n",
        "INFO CUDA runtime implicit initialization on GPU:0 done\n"})
    EXPECT_FALSE(read_error_text(text, "log.txt")) << text;
}

TEST(OtherPools, WordsOfALogDoNotRunInAShell) {
  const auto text = [](const std::string& file) {
    return "Traceback (most recent call last):\n  File \"" + file +
           "\", line 3, in <module>\n    f()\ntensorflow.python.framework.errors_impl.ResourceExhaustedError: OOM when "
           "allocating tensor with shape[10,1024] and type float on /job:localhost/replica:0/task:0/device:GPU:0 by "
           "allocator GPU_0_bfc\n";
  };
  for (const std::string name : {"a; rm -rf $HOME #.py", "a b.py", "$(id).py", "`id`.py", "a'b.py", "a\"b.py", "a&b.py",
                                 "-c.py", "a|b.py", "a>b.py", "a*b.py"}) {
    const std::string words = words_of(told_of(text("/w/" + name)));
    EXPECT_EQ(words.find(name), std::string::npos) << words;
    EXPECT_NE(words.find("python PROGRAM.py"), std::string::npos) << words;
  }
  for (const char* name : {"train.py", "fit-2_b.py", "größe.py"})
    EXPECT_NE(words_of(told_of(text("/w/" + std::string(name)))).find("python " + std::string(name)), std::string::npos)
        << name;
  EXPECT_EQ(words_of(told_of("$ python fit.py --name \"$(id)\"\n" + text("/w/fit.py"))).find("$(id)"),
            std::string::npos);
  EXPECT_NE(words_of(told_of("$ python fit.py --lr 3\n" + text("/w/fit.py"))).find("python fit.py --lr 3"),
            std::string::npos);
}

TEST(OtherPools, UnifiedMemoryThatWasRefusedBeforeIsTold) {
  const std::string raised =
      "RuntimeError: Resource exhausted: Out of memory while trying to allocate 12582912 bytes.\n";
  const auto refused = [](const char* kind) {
    return std::string(
               "2021-10-15 15:01:46.0: E external/org_tensorflow/tensorflow/stream_executor/cuda/"
               "cuda_driver.cc:764] failed to alloc 2466545664 bytes") +
           kind + "; result: CUDA_ERROR_OUT_OF_MEMORY: out of memory\n";
  };
  const std::string words = words_of(told_of(refused(" unified memory") + raised));
  EXPECT_NE(words.find("refused 2.30 GiB of it before"), std::string::npos) << words;
  EXPECT_EQ(words.find("So small a request"), std::string::npos) << words;
  EXPECT_EQ(words_of(told_of(refused(" on host") + raised)).find("The pool takes unified memory"), std::string::npos);
  EXPECT_EQ(words_of(told_of(raised)).find("unified memory"), std::string::npos);
}

TEST(OtherPools, ATpusLargestAllocationGivesTheLine) {
  const Finding finding = told_of(
      "jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Ran out of memory in memory space hbm. Used 17.36G of "
      "15.48G hbm. Exceeded hbm capacity by 1.88G.\n\n  Largest program allocations in hbm:\n\n  1. Size: 8.00G\n     "
      "Operator: op_name=\"jit(f)/dot_general\" source_file=\"/home/u/train.py\" source_line=44\n     Shape: "
      "f32[32768,65536]{1,0:T(8,128)}\n     Unpadded size: 8.00G\n     XLA label: fusion.1 = fusion(...)\n     "
      "Allocation "
      "type: HLO temp\n     ==========================\n\n  2. Size: 1.00G\n     Shape: f32[1]{0}\n");
  EXPECT_EQ(finding.location.file, "/home/u/train.py");
  EXPECT_EQ(finding.location.line, 44U);
  EXPECT_NE(finding.message.find("8.00 GiB f32[32768,65536]"), std::string::npos) << finding.message;
}

}  // namespace
}  // namespace faultline
