#include "sources/run_folder/framework_files.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "sources/run_folder/run_folder.h"

namespace faultline {
namespace {

namespace fs = std::filesystem;

constexpr const char* kTensorLines = R"trace(faultline-trace-text 1
source tensors
property bfc.framework = tensorflow
device 0 name="host memory (mklcpu)"
heap driver0 kind=driver device=0 name=driver
heap mklcpu kind=bfc device=0 below=driver0
stack s1 = "train.py":4 "<module>"
alloc #1 4000000 mklcpu stack=s1 tensor=float32[1000,1000] t=1
)trace";
constexpr const char* kRefusedTraceback = R"trace(Traceback (most recent call last):
  File "/home/user/train.py", line 9, in <module>
    x = tf.ones([1 << 20, 1 << 20])
tensorflow.python.framework.errors_impl.ResourceExhaustedError: {{function_node __wrapped__Fill_device_/job:localhost/replica:0/task:0/device:GPU:0}} OOM when allocating tensor with shape[1048576,1048576] and type float on /job:localhost/replica:0/task:0/device:GPU:0 by allocator GPU_0_bfc [Op:Fill]
)trace";
// MemoryDump: the pool's name, a chunk in use of 1 MiB at 0x10000, a free one of 1 MiB behind it
std::string map_of(const std::string& pool) {
  const auto chunk = [](std::uint64_t address, bool in_use) {
    std::string bytes;
    const auto number = [&](int field, std::uint64_t value) {
      bytes += static_cast<char>(field << 3);
      for (; value > 127; value >>= 7) bytes += static_cast<char>(0x80 | (value & 127));
      bytes += static_cast<char>(value);
    };
    number(1, address);
    number(2, 1 << 20);
    number(3, in_use ? 1 << 20 : 0);
    number(8, in_use ? 1 : 0);
    return "\x1a" + std::string(1, static_cast<char>(bytes.size())) + bytes;
  };
  return "\x0a" + std::string(1, static_cast<char>(pool.size())) + pool + chunk(0x10000, true) + chunk(0x110000, false);
}

class FrameworkParts : public ::testing::Test {
 protected:
  FrameworkParts() : folder_(fs::path(::testing::TempDir()) / "framework_parts") {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    write("command.json", R"({"command": ["python", "train.py"], "exit_status": 1})");
  }
  ~FrameworkParts() override { fs::remove_all(folder_); }
  void write(const std::string& name, const std::string& text) { std::ofstream(folder_ / name) << text; }
  std::vector<InputPart> parts() {
    Result<Input> input = read_run(folder_.string());
    lost_ = input ? input->lost : std::map<std::string, std::uint64_t>{};
    return input ? std::move(input->parts) : std::vector<InputPart>{};
  }
  fs::path folder_;
  std::map<std::string, std::uint64_t> lost_;
};

TEST_F(FrameworkParts, TensorsAreAProcess) {
  write("tensors-7.txt", kTensorLines);
  write("process-7.json", R"({"exception": {"type": "ValueError", "message": "no"}, "came_to_exit": true})");
  EXPECT_TRUE(holds_processes(folder_.string()));
  const std::vector<InputPart> found = parts();
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].name, "process 7");
  EXPECT_EQ(found[0].trace.properties.at("process.exception.type"), "ValueError");
  EXPECT_EQ(found[0].trace.properties.at("run.exit_status"), "1");
  EXPECT_EQ(found[0].trace.source_kind, "tensors");
  EXPECT_EQ(found[0].trace.properties.at("process.ended"), "exit");
}

TEST_F(FrameworkParts, FailureIsToldOnce) {
  write("tensors-7.txt", std::string(kTensorLines) + "alloc-failed 4000000000 mklcpu stack=s1 t=2\n");
  write("failure-7.txt", kRefusedTraceback);
  write("pool-7_mklcpu.1794832646072369", map_of("mklcpu"));
  const std::vector<InputPart> found = parts();
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].trace.properties.at("bfc.mklcpu.taken"), std::to_string(2 << 20));
  EXPECT_EQ(found[0].trace.properties.at("bfc.mklcpu.in_use"), std::to_string(1 << 20));
  EXPECT_EQ(found[0].trace.properties.at("bfc.mklcpu.largest_free"), std::to_string(1 << 20));
}

TEST_F(FrameworkParts, MapHasWhatTheMessageAskedForAndTheLimit) {
  write("failure-7.txt", kRefusedTraceback);
  write("pool-7_gpu_host_bfc.1794832646079999", map_of("gpu_host_bfc"));
  write("pool-7_GPU_0_bfc.1794832646072369", map_of("GPU_0_bfc"));
  write("process-7.json", R"({"pools": {"GPU_0_bfc": {"limit": 12345678}}})");
  const std::vector<InputPart> found = parts();
  ASSERT_EQ(found.size(), 1U);
  const Trace& trace = found[0].trace;
  EXPECT_EQ(trace.properties.at("bfc.GPU_0_bfc.limit"), "12345678");
  const auto refused = std::find_if(trace.events.begin(), trace.events.end(),
                                    [](const Event& event) { return event.kind == EventKind::kAllocFailed; });
  ASSERT_NE(refused, trace.events.end());
  EXPECT_EQ(refused->size_bytes, std::uint64_t{4} << 40);
  EXPECT_EQ(trace.stacks.frame(refused->stack).line, 9U);
}

TEST_F(FrameworkParts, MapAloneIsAFailureThatNobodyHeardOf) {
  write("pool-7_GPU_0_bfc.1794832646072369", map_of("GPU_0_bfc"));
  EXPECT_EQ(parts().size(), 1U);
}

TEST_F(FrameworkParts, WhatTheDriverRefusedIsNotToldAgain) {
  write("failure-7.txt", kRefusedTraceback);
  FrameworkFiles files;
  files.failure = (folder_ / "failure-7.txt").string();
  Trace driver;
  Event refused;
  refused.kind = EventKind::kAllocFailed;
  refused.size_bytes = std::uint64_t{4} << 40;
  driver.events.push_back(refused);
  EXPECT_TRUE(framework_parts(files, "process 7", &driver, lost_).empty());
  driver.events.front().size_bytes = std::uint64_t{100} << 30;  // a pool that asked for more, and then for less
  EXPECT_EQ(framework_parts(files, "process 7", &driver, lost_).size(), 1U);
  driver.events.front().kind = EventKind::kFault;
  EXPECT_TRUE(framework_parts(files, "process 7", &driver, lost_).empty());
}

TEST_F(FrameworkParts, OtherTracebacksAreNoLoss) {
  write("tensors-7.txt", kTensorLines);
  write("failure-7.txt", "Traceback (most recent call last):\n  File \"a.py\", line 1, in <module>\nValueError: no\n");
  EXPECT_EQ(parts().size(), 1U);
  EXPECT_TRUE(lost_.empty());
}

TEST_F(FrameworkParts, WhatCannotBeReadIsCounted) {
  write("tensors-7.txt", "faultline-trace-text 1\nalloc of nothing\n");
  write("jax-7-oom.prof", "no profile");
  write("failure-7.txt", kRefusedTraceback);
  EXPECT_EQ(parts().size(), 1U);
  EXPECT_EQ(lost_.size(), 2U);
}

TEST_F(FrameworkParts, NamesOfOtherKindsAreNotTaken) {
  std::map<std::string, FrameworkFiles> files;
  for (const char* name : {"tensors-.txt", "tensors-7.bin", "pool-7", "pool-x_GPU.1", "jax-7.prof", "failure-7.json"})
    EXPECT_EQ(take_framework_file(name, files), "") << name;
  EXPECT_TRUE(files.empty());
}

}  // namespace
}  // namespace faultline
