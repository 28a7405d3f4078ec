// Lines of programs that nobody here knows: those that report a failure are guessed at, those that only have its words are not.
#include "sources/error_text/guess.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "sources/error_text/error_text.h"

namespace faultline {
namespace {

TEST(Guess, LinesThatReportAFailure) {
  for (const std::string line : {
           "[engine] fatal: cudaMalloc returned error 2 while reserving 4 GiB for the scratch heap",
           "ERROR renderer: could not create texture, out of video memory",
           "panic: gpu: allocation of 8589934592 bytes failed: device out of memory",
           "Error: GPU memory allocation failed for 12 depth maps",
           "20260812 11:25:13 ERROR: Can't start miner, CUDA error 2: out of memory",
           "[11:25:13] [fatal] cuMemAlloc failed with code 2",
           "solver failed: not enough GPU memory",
           "MyEngineException: insufficient VRAM (needed 9.5 GB, have 8 GB)",
           "Fatal error: failed to allocate 512 MB of device memory on GPU 1",
           "CRITICAL tile worker: hipMalloc failed: out of memory",
           "E0812 11:25:13.496112 1 pool.cc:233] GPU pool: unable to allocate 1073741824 bytes of memory",
           "vulkan: error: out of device memory",
           "[GPU0] kernel launch failed: out of memory",
           "torch_npu: NPU error, out of memory",
           "Cuda failure: status=2 in CreateTextureObj at line 2513",
           "[2021-08-02 17:03:49.331]  nvidia   thread #0 failed with error <rx_hash>:115 \"out of memory\"",
           "[solver.cu:311] cudaMalloc(&d_flux, n * sizeof(double)) -> out of memory",
           "error: Device #0 (NVIDIA GeForce RTX 3070) : Out of memory (error code 2): failed to allocate 1024.0 MiB",
           "Physics: internal CUDA error. It can not continue! Error code 2!",
           "[Error] [gym.plugin] Gym cuda error: out of memory: ../../gym/impl/GymPhysX.cpp: 1721",
           "GPU 0: error allocating 3 GB of memory for the tables, disabling the card",
           "CUDA error at /src/mvs/solve_step_cuda.cu:1352 - out of memory",
           "out of memory in step.cu at line 33",
           "ERROR: CUDA OOM on device 3 (rank 3): requested 3.2GB, free 1.1GB",
       }) {
    const auto guess = guess_of("loading\n" + line + "\n");
    ASSERT_TRUE(guess.has_value()) << line;
    EXPECT_TRUE(guess->message.weak) << line;
    EXPECT_TRUE(guess->message.guessed) << line;
    EXPECT_EQ(guess->begin, 8u) << line;
  }
}

TEST(Guess, WordsWithoutAFailure) {
  for (const std::string line : {
           "GPU memory: no allocation failed, peak 22.1 GiB",
           "cudaMalloc: 0 errors, 1204 calls",
           "INFO gpu allocator: reserved 20.0 GiB of VRAM, 0 failed allocations, 0 errors",
           "[metrics] cuda_oom_errors=0 cuda_alloc_retries=0 gpu_memory_failures=0",
           "ninja: error: gpu_alloc.cu.o: nvcc returned exit code 2",
           "make: *** [Makefile:12: cuda_memory] Error 2",
           "- Fix CUDA out of memory error when loading large models (#1234)",
           "If GPU allocation failed with an out of memory error, lower the batch size.",
           "# error: GPU out of memory",
           "    throw Error(\"GPU out of memory\");",
           "  log.error(\"failed to allocate GPU memory\")",
           "tests/test_gpu.py::test_out_of_memory_error FAILED",
           "error: the ship ran out of memory lane",
           "CUDA version 12.4, error reporting on, memory 24 GB",
           "retry policy: on GPU out of memory errors halve the batch",
           "You should see an error when the GPU is out of memory",
           "| error: GPU out of memory | reduce the batch |",
           "PASSED: error path when the GPU is out of memory",
           "we looked again and the error of the very first job, number 17 - out of memory on the GPU - is gone",
           "out of memory in step.cu at line 33 is what it says",
           "a CUDA OOM on device 3 would have been an error, said he",
           "fix: cudaMalloc failed: out of memory on several GPUs",
           "case kOutOfMemory: return \"error: GPU out of memory\"",
           "CUDA error 28 is not about memory",
           "GPU 0: error 2.5 % above the mean, cuda timer",
           "  --max-gpu-memory GB   fail with an out of memory error above this limit",
           "  -m GB                 fail with an out of memory error above this GPU limit",
           "handler: CUDA error: out of memory is retried",
           "cuda: launch of kernel 700 took 2 ms, errors: 0",
           "CUDA driver 719.44, error reporting on",
           "The GPU log says \"illegal address\" and \"error 700\" are the same",
           "docs: describe CUDA error 700 (illegal address)",
       })
    EXPECT_FALSE(guess_of("loading\n" + line + "\n").has_value()) << line;
}

// The same of a kernel that failed: by its code, or in words.
TEST(Guess, LinesThatReportAFault) {
  struct Row {
    std::string line, kind;
  };
  for (const Row& row : {
           Row{"[omni.physx.plugin] PhysX error: Cuda error 700, FILE PxgBroadPhase.cpp, LINE 1302", "illegal-address"},
           Row{"[Error] [gym.plugin] Gym cuda error: an illegal memory access was encountered: ../GymPhysX.cu: 991",
               "illegal-address"},
           Row{"1824MB ERROR   | [gpu] render failed: function \"launch2D\" returned (700): CUDA Illegal address",
               "illegal-address"},
           Row{"an illegal memory access was encountered in step.cu at line 33", "illegal-address"},
           Row{"FATAL: sim step failed, cuda status=716", "misaligned-address"},
           Row{"ERROR gpu worker: cuStreamSynchronize failed with code 719", "launch-failure"},
       }) {
    const auto guess = guess_of("loading\n" + row.line + "\n");
    ASSERT_TRUE(guess.has_value()) << row.line;
    EXPECT_EQ(name_of(guess->message.kind), row.kind) << row.line;
    EXPECT_TRUE(guess->message.guessed) << row.line;
    EXPECT_FALSE(guess->message.requested) << row.line;
  }
}

// This project's own pages and sources are full of these words.
TEST(Guess, NothingInDocumentationAndSources) {
  const std::filesystem::path root = std::filesystem::path(FAULTLINE_FIXTURES) / "../..";
  std::size_t read = 0;
  for (const char* folder : {"docs", "src", "python", "README.md", "CHANGELOG.md"}) {
    std::vector<std::filesystem::path> files;
    if (std::filesystem::is_regular_file(root / folder)) files.push_back(root / folder);
    if (std::filesystem::is_directory(root / folder)) {
      for (const auto& entry : std::filesystem::recursive_directory_iterator(root / folder)) {
        const std::string kind = entry.path().extension().string();
        if (entry.is_regular_file() && (kind == ".md" || kind == ".cpp" || kind == ".h" || kind == ".py"))
          files.push_back(entry.path());
      }
    }
    for (const std::filesystem::path& path : files) {
      std::ifstream file(path, std::ios::binary);
      std::ostringstream text;
      text << file.rdbuf();
      const auto guess = guess_of(text.str());
      EXPECT_FALSE(guess.has_value()) << path << ": " << guess->message.text;
      ++read;
    }
  }
  EXPECT_GT(read, 300u);
}

// A known message, and any other error of the text, come before a guess.
TEST(Guess, IsOnlyMadeWhereNothingIsKnown) {
  const std::string guessed = "ERROR renderer: could not create texture, out of video memory\n";
  const auto alone = read_error_text(guessed, "log");
  ASSERT_TRUE(alone.ok());
  EXPECT_EQ(alone->properties.at("error.guessed"), "yes");
  const auto both = read_error_text(guessed + "RuntimeError: CUDA error: out of memory\n", "log");
  ASSERT_TRUE(both.ok());
  EXPECT_EQ(both->properties.count("error.guessed"), 0u);
}

}  // namespace
}  // namespace faultline
