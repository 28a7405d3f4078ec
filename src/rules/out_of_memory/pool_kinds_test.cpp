// Whose memory a pool of TensorFlow's or JAX's is, which failure its map is of, and what follows for the advice. Each class with the twin that must be told otherwise.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "rules/told_texts.h"

namespace faultline {
namespace {

bool holds(const std::string& words, const std::string& part) { return words.find(part) != std::string::npos; }

std::vector<Finding> findings_of(const std::string& text) {
  const Result<Trace> trace = read_error_text(text, "log.txt");
  EXPECT_TRUE(trace) << text;
  return trace ? judge(*trace).findings : std::vector<Finding>();
}

std::vector<Finding> out_of_memory_of(const std::string& text) {
  std::vector<Finding> found = findings_of(text);
  std::erase_if(found, [](const Finding& finding) { return finding.rule != "memory/out-of-memory"; });
  return found;
}

constexpr const char* kPrefix = "2024-05-01 12:34:56.1: I tensorflow/core/common_runtime/bfc_allocator.cc:1105] ";

enum class Form { k2018, k2019, k2021 };

// 1 GiB taken, 424 MiB of it in use, the rest in three pieces of 200 MiB; 400 MiB are asked for.
std::string map_of(const std::string& pool, Form form = Form::k2021, const std::string& when = "12:34:56.1") {
  std::string text = "Allocator (" + pool + ") ran out of memory trying to allocate 400.00MiB";
  if (form != Form::k2018) text += " (rounded to 419430400)";
  text += form == Form::k2021 ? "requested by op Mul\n" : ".  Current allocation summary follows.\n";
  text += "BFCAllocator dump for " + pool + "\nNext region of size 1073741824\n";
  std::uint64_t address = 0x7f0000000000;
  for (const std::uint64_t size : {314572800U, 209715200U, 104857600U, 209715200U, 25165824U, 209715200U}) {
    char line[120];
    std::snprintf(line, sizeof line, "%s at %llx of size %llu next 2\n", size == 209715200U ? "Free " : "InUse",
                  static_cast<unsigned long long>(address), static_cast<unsigned long long>(size));
    text += line;
    address += size;
  }
  text +=
      "total_region_allocated_bytes_: 1073741824 memory_limit_: 1073741824 available bytes: 0 "
      "curr_region_allocation_bytes_: 1073741824\n";
  std::string prefix = kPrefix, whole;
  prefix.replace(prefix.find("12:34:56.1"), 10, when);
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = text.find('\n', begin);
    whole += prefix + text.substr(begin, end + 1 - begin);
    begin = end + 1;
  }
  return whole;
}

std::string raised(const std::string& shape, const std::string& device, const std::string& pool) {
  return "Traceback (most recent call last):\n  File \"/w/fit.py\", line 22, in <module>\n    model.fit(x)\n"
         "tensorflow.python.framework.errors_impl.ResourceExhaustedError: OOM when allocating tensor with shape[" +
         shape + "] and type float on /job:localhost/replica:0/task:0/device:" + device + " by allocator " + pool +
         "\n";
}

TEST(PoolKinds, TheSettingIsThatOfThePool) {
  struct Row {
    const char *pool, *device;
    std::vector<const char*> has;
  };
  const std::vector<const char*> settings = {"TF_CPU_BFC_MEM_LIMIT_IN_MB=",
                                             "TF_MKL_ALLOC_MAX_BYTES=",
                                             "TF_GPU_HOST_MEM_LIMIT_IN_MB=",
                                             "TF_CUDA_HOST_MEM_LIMIT_IN_MB=",
                                             "XLA_PJRT_GPU_HOST_MEMORY_LIMIT_GB=",
                                             "per_process_gpu_memory_fraction",
                                             "XLA_CLIENT_MEM_FRACTION",
                                             "cuda_malloc_async",
                                             "host memory (RAM), not GPU memory",
                                             "not known by its name",
                                             "plugin"};
  for (const Row& row :
       {Row{"GPU_0_bfc", "GPU:0", {"per_process_gpu_memory_fraction", "cuda_malloc_async"}},
        Row{"mklcpu", "CPU:0", {"TF_MKL_ALLOC_MAX_BYTES=", "host memory (RAM), not GPU memory"}},
        Row{"cpu", "CPU:0", {"TF_CPU_BFC_MEM_LIMIT_IN_MB=", "host memory (RAM), not GPU memory"}},
        Row{"bfc_cpu_allocator_for_gpu", "CPU:0", {"TF_CPU_BFC_MEM_LIMIT_IN_MB=", "host memory (RAM), not GPU memory"}},
        Row{"gpu_host_bfc", "GPU:0", {"TF_GPU_HOST_MEM_LIMIT_IN_MB=", "host memory (RAM), not GPU memory"}},
        Row{"cuda_host_bfc", "GPU:0", {"TF_CUDA_HOST_MEM_LIMIT_IN_MB=", "host memory (RAM), not GPU memory"}},
        Row{"xla_gpu_host_bfc", "GPU:0", {"XLA_PJRT_GPU_HOST_MEMORY_LIMIT_GB=2", "host memory (RAM), not GPU memory"}},
        Row{"some_host_bfc", "GPU:0", {"host memory (RAM), not GPU memory"}},
        Row{"PluggableDevice_0_bfc", "XPU:0", {"plugin", "the device XPU:0"}},
        Row{"mlu_3_bfc", "MLU:3", {"not known by its name", "the device MLU:3"}},
        Row{"gpu_bfc", "GPU:0", {"not known by its name", "the device GPU:0"}}}) {
    for (const bool has_exception : {true, false}) {
      const Finding finding =
          told_of(map_of(row.pool) + (has_exception ? raised("104857600", row.device, row.pool) : ""));
      EXPECT_EQ(finding.cause, "fragmented") << row.pool << finding.message;
      const std::string words = words_of(finding);
      for (const char* setting : settings) {
        const bool wanted = std::any_of(row.has.begin(), row.has.end(),
                                        [&](const char* part) { return std::string(part).starts_with(setting); });
        EXPECT_EQ(holds(words, setting), wanted) << row.pool << ": " << setting << "\nin " << words;
      }
      for (const char* part : row.has) {
        if (has_exception || !std::string(part).starts_with("the device")) {
          EXPECT_TRUE(holds(words, part)) << part << words;
        }
      }
    }
  }
  // in bytes, and what is asked for besides
  EXPECT_TRUE(holds(words_of(told_of(map_of("mklcpu"))), "TF_MKL_ALLOC_MAX_BYTES=1493172224"));
}

TEST(PoolKinds, AMapIsJoinedToTheFailureOfItsPoolAndSize) {
  struct Row {
    std::string map, exception;
    bool joined;
  };
  for (const Row& row : {Row{map_of("GPU_0_bfc"), raised("104857600", "GPU:0", "GPU_0_bfc"), true},
                         Row{map_of("GPU_0_bfc", Form::k2018), raised("104857600", "GPU:0", "GPU_0_bfc"), true},
                         // what is rounded up to 256 bytes, and what is printed in two digits
                         Row{map_of("GPU_0_bfc"), raised("104857570", "GPU:0", "GPU_0_bfc"), true},
                         Row{map_of("GPU_0_bfc", Form::k2018), raised("104857000", "GPU:0", "GPU_0_bfc"), true},
                         Row{map_of("GPU_0_bfc"), raised("104857000", "GPU:0", "GPU_0_bfc"), false},
                         Row{map_of("GPU_0_bfc"), raised("1024", "GPU:0", "GPU_0_bfc"), false},
                         Row{map_of("GPU_0_bfc", Form::k2018), raised("1024", "GPU:0", "GPU_0_bfc"), false},
                         Row{map_of("GPU_1_bfc"), raised("104857600", "GPU:0", "GPU_0_bfc"), false},
                         Row{map_of("gpu_host_bfc"), raised("104857600", "GPU:0", "GPU_0_bfc"), false}}) {
    const std::vector<Finding> found = out_of_memory_of(row.map + row.exception);
    ASSERT_EQ(found.size(), row.joined ? 1U : 2U) << row.exception;
    EXPECT_EQ(found[0].cause, row.joined ? "fragmented" : "") << row.exception << found[0].message;
    EXPECT_EQ(found[0].confidence, row.joined ? Confidence::kProved : Confidence::kLikely) << row.exception;
    EXPECT_EQ(found[0].location.line, 22U);
    EXPECT_EQ(found[0].device, 0U) << found[0].message;
    EXPECT_EQ(holds(found[0].message, "map in this text is of another failure"), !row.joined) << found[0].message;
    if (!row.joined) {
      EXPECT_EQ(found[1].cause, "fragmented");
      EXPECT_FALSE(found[1].location.known());
    }
  }
}

// Pools of two GPUs may lie at equal addresses.
TEST(PoolKinds, EqualAddressesOfTwoPoolsAreNotMixed) {
  std::string other = map_of("GPU_1_bfc");
  // all but one piece in use
  for (std::size_t at = other.find("Free "), left = 2; left != 0; at = other.find("Free ", at), --left)
    other.replace(at, 5, "InUse");
  for (const bool first : {true, false}) {
    const std::string zero = map_of("GPU_0_bfc"), end = raised("104857600", "GPU:0", "GPU_0_bfc");
    const std::vector<Finding> found = out_of_memory_of((first ? other + zero : zero + other) + end);
    ASSERT_EQ(found.size(), 2U);
    EXPECT_EQ(found[0].cause, "fragmented") << found[0].message;
    EXPECT_TRUE(holds(found[0].message, "424.00 MiB is in use")) << found[0].message;
    EXPECT_EQ(found[1].cause, "exhausted") << found[1].message;
    EXPECT_TRUE(holds(found[1].message, "824.00 MiB is in use")) << found[1].message;
  }
}

TEST(PoolKinds, ARefusalOfAnotherMomentIsNotThisRequests) {
  struct Row {
    const char *refused, *map;
    bool near;
  };
  for (const Row& row :
       {Row{"2024-05-01 12:34:56.0", "12:34:56.1", true}, Row{"2024-05-01 12:34:46.2", "12:34:56.1", true},
        Row{"2024-05-01 11:00:00.0", "12:34:56.1", false}, Row{"2024-04-30 12:34:56.0", "12:34:56.1", false},
        Row{"2024-04-30 23:59:59.0", "00:00:02.1", true}}) {
    std::string map = map_of("GPU_0_bfc", Form::k2021, row.map);
    for (const char* what : {"memory_limit_: 1073741824", "available bytes: 0 "}) {
      const std::string grown = what[0] == 'm' ? "memory_limit_: 8589934592" : "available bytes: 7516192768 ";
      map.replace(map.find(what), std::string(what).size(), grown);
    }
    const Finding finding = told_of(std::string(row.refused) +
                                    ": I tensorflow/stream_executor/cuda/cuda_driver.cc:924] failed to allocate 7.00G "
                                    "(7516192768 bytes) from device: CUDA_ERROR_OUT_OF_MEMORY: out of memory\n" +
                                    map);
    EXPECT_EQ(finding.cause, "outside-framework") << finding.message;
    EXPECT_EQ(finding.confidence, row.near ? Confidence::kProved : Confidence::kLikely) << row.refused;
    EXPECT_EQ(holds(finding.message, "were refused"), row.near) << finding.message;
  }
}

// What the wording shows to be older than a setting gets no advice to use it.
TEST(PoolKinds, AdviceIsNoYoungerThanTheText) {
  struct Row {
    Form form;
    bool has_async, has_modules;
  };
  for (const Row& row : {Row{Form::k2018, false, false}, Row{Form::k2019, false, true}, Row{Form::k2021, true, true}}) {
    const std::string words = words_of(told_of(map_of("GPU_0_bfc", row.form)));
    EXPECT_EQ(holds(words, "cuda_malloc_async"), row.has_async) << words;
    EXPECT_EQ(holds(words, "TF_DEVICE_MIN_SYS_MEMORY_IN_MB"), row.has_async) << words;
    EXPECT_EQ(holds(words, "TF_CPP_VMODULE"), row.has_modules) << words;
    EXPECT_TRUE(holds(words, "per_process_gpu_memory_fraction")) << words;
  }
}

TEST(PoolKinds, AGraphsOperationIsNamedWithTheLineThatMadeIt) {
  const std::string exception = raised("64,2016,9,9", "GPU:0", "GPU_0_bfc");
  const std::string node =
      "\t [[Node: net/pool_1 = AvgPool[T=DT_FLOAT, data_format=\"NCHW\"](net/x)]]\nHint: add it.\n";
  const std::string made =
      "\nCaused by op 'net/pool_1', defined at:\n  File \"fit.py\", line 60, in <module>\n    build()\n"
      "  File \"/w/net.py\", line 312, in cell\n    x = pool(x)\n"
      "  File \"/usr/lib/python3/site-packages/tensorflow/python/ops.py\", line 9, in f\n    g()\n";
  const std::string installed =
      "Traceback (most recent call last):\n  File \"/usr/lib/site-packages/tensorflow/python/client/session.py\", line "
      "1361, in _do_call\n    return fn(*args)\n";
  const std::string sentence = exception.substr(exception.find("tensorflow.python"));
  const Finding told = told_of(exception + node + made);
  EXPECT_EQ(told.location.file, "/w/net.py");
  EXPECT_EQ(told.location.line, 312U);
  EXPECT_TRUE(holds(told.message, "net/pool_1 (AvgPool)")) << told.message;
  // without it the program's own line, and without that the operation, but no line of TensorFlow's
  EXPECT_EQ(told_of(exception + node).location.file, "/w/fit.py");
  const Finding bare = told_of(installed + sentence + node);
  EXPECT_TRUE(bare.location.file.empty()) << bare.location.file;
  EXPECT_EQ(bare.location.op, "net/pool_1");
}

TEST(PoolKinds, LinesOfAPackageComeBeforeThatOfItsStarter) {
  const auto trace = [](const std::string& starter, const std::string& package) {
    return "Traceback (most recent call last):\n  File \"" + starter +
           "\", line 8, in <module>\n    sys.exit(main())\n  File \"" + package +
           "\", line 114, in run\n    f()\n  File \"/h/lib/site-packages/jax/_src/api.py\", line 3, in g\n    h()\n"
           "jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Failed to allocate request for 2.99GiB "
           "(3206250496B) on device ordinal 0\n";
  };
  const std::string package = "/h/lib/site-packages/models/model.py";
  EXPECT_EQ(told_of(trace("/h/.local/bin/ai-models", package)).location.line, 114U);
  EXPECT_EQ(told_of(trace("C:\\p\\Scripts\\ai-models.exe\\__main__.py", package)).location.line, 114U);
  // the program's own, wherever it lies
  EXPECT_EQ(told_of(trace("/h/bin/train.py", package)).location.line, 8U);
  EXPECT_EQ(told_of(trace("/h/bin/train", "/h/src/model.py")).location.line, 114U);
}

TEST(PoolKinds, ABufferOfTheProgramsIsItsPlaceAndASmallRequestIsNotTheMatter) {
  const auto text = [](std::uint64_t bytes, const char* total) {
    return "  File \"/h/lib/python3.9/site-packages/jax/_src/dispatch.py\", line 895, in _execute_compiled\n    x()\n"
           "jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate " +
           std::to_string(bytes) + " bytes.\nBufferAssignment stats:\n                 total allocation:   " + total +
           "\nPeak buffers:\n        Buffer 1:\n                Size: 6.00MiB\n                Operator: "
           "op_name=\"jit(f)/"
           "concatenate\" source_file=\"/w/internal/models.py\" source_line=689\n                Shape: "
           "f32[4096,128,3]\n";
  };
  const Finding small = told_of(text(6291456, "12.00MiB"));
  EXPECT_EQ(small.location.file, "/w/internal/models.py");
  EXPECT_EQ(small.location.line, 689U);
  EXPECT_TRUE(holds(words_of(small), "save_device_memory_profile")) << words_of(small);
  EXPECT_FALSE(holds(words_of(small), "Make the largest of these buffers smaller"));
  const Finding large = told_of(text(std::uint64_t{6} << 30, "15.00GiB"));
  EXPECT_TRUE(holds(words_of(large), "Make the largest of these buffers smaller")) << words_of(large);
  EXPECT_TRUE(holds(large.message, "a GPU of less than 20.00 GiB")) << large.message;
}

TEST(PoolKinds, WhatTheRuntimeSawAsItBeganIsUsed) {
  const std::string copy =
      "tensorflow.python.framework.errors_impl.InternalError: Failed copying input tensor from "
      "/job:localhost/replica:0/"
      "task:0/device:CPU:0 to /job:localhost/replica:0/task:0/device:GPU:0 in order to run _EagerConst: Dst tensor is "
      "not initialized.\n";
  const auto start = [](const char* free) {
    return std::string(
               "I tensorflow/core/common_runtime/gpu/gpu_device.cc:885] Found device 0 with properties: \nname: "
               "TITAN X (Pascal)\npciBusID 0000:04:00.0\nTotal memory: 11.90GiB\nFree memory: ") +
           free + "\n";
  };
  const auto made = [](const char* memory, int gpu) {
    return "2024-03-01 10:00:00.0: I tensorflow/core/common_runtime/gpu/gpu_device.cc:1929] Created device "
           "/job:localhost/replica:0/task:0/device:GPU:" +
           std::to_string(gpu) + " with " + memory + " MB memory:  -> device: 0, name: Tesla T4\n";
  };
  const Finding held = told_of(start("381.44MiB") + copy);
  EXPECT_EQ(held.cause, "other-process") << held.message;
  EXPECT_TRUE(holds(held.message, "381.44 MiB of its 11.90 GiB was free"));
  EXPECT_EQ(told_of(start("381.44MiB") + raised("1048576,1024", "GPU:0", "GPU_0_bfc")).confidence, Confidence::kProved);
  EXPECT_EQ(told_of(start("11.53GiB") + copy).cause, "");
  EXPECT_TRUE(holds(told_of(made("381", 0) + copy).message, "The pool was made with 381"));
  EXPECT_FALSE(holds(told_of(made("13000", 0) + copy).message, "The pool was made with"));
  EXPECT_FALSE(holds(told_of(made("13000", 0) + made("381", 1) + raised("1048576,1024", "GPU:0", "GPU_0_bfc")).message,
                     "The pool was made with"));
  EXPECT_TRUE(holds(words_of(told_of(copy)), "TF_FORCE_GPU_ALLOW_GROWTH=true"));
}

// A map whose totals cannot be true proves nothing.
TEST(PoolKinds, OfTotalsThatContradictEachOtherNothingIsProved) {
  for (const char* limit : {"memory_limit_: 1024 ", "memory_limit_: 1073741824 "}) {
    std::string map = map_of("GPU_0_bfc");
    const std::string stated = "memory_limit_: 1073741824 ";
    map.replace(map.find(stated), stated.size(), limit);
    const bool contradicts = stated != limit;
    for (const Finding& finding : findings_of(map + raised("104857600", "GPU:0", "GPU_0_bfc")))
      EXPECT_EQ(finding.confidence, contradicts ? Confidence::kHint : Confidence::kProved) << finding.message;
  }
}

// What the program got over is a warning, in every rule that tells of it; what ended it is an error.
TEST(PoolKinds, PiecesThatWereSurvivedAreNoError) {
  const std::string other =
      "retry with a smaller batch\nstep 100 loss 0.1\nstep 200 loss 0.1\nTraceback (most recent call last):\n  File "
      "\"/w/eval.py\", line 9, in <module>\n    open('x')\nFileNotFoundError: [Errno 2] No such file or directory: "
      "'x'\n";
  for (const bool survived : {true, false}) {
    const std::vector<Finding> found =
        findings_of(map_of("GPU_0_bfc") + (survived ? other : raised("104857600", "GPU:0", "GPU_0_bfc")));
    std::size_t told = 0;
    for (const Finding& finding : found) {
      if (!finding.rule.starts_with("memory/")) continue;
      ++told;
      EXPECT_EQ(finding.severity, survived ? Severity::kWarning : Severity::kError) << finding.rule << finding.message;
    }
    EXPECT_EQ(told, 2U);
  }
}

}  // namespace
}  // namespace faultline
