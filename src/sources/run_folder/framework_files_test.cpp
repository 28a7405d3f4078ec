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
  // The refusal that is told of this pool; null: none.
  static const Event* refusal_of(const std::vector<InputPart>& parts, const std::string& pool) {
    for (const InputPart& part : parts) {
      for (const Event& event : part.trace.events) {
        if (event.kind == EventKind::kAllocFailed && event.heap.index() < part.trace.heaps.size() &&
            part.trace.heaps[event.heap.index()].name == pool)
          return &event;
      }
    }
    return nullptr;
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
  const std::vector<InputPart> found = parts();
  ASSERT_EQ(found.size(), 1U);
  const Event* const refused = refusal_of(found, "GPU_0_bfc");
  ASSERT_NE(refused, nullptr);
  EXPECT_EQ(refused->size_bytes, 0U);  // nobody says how much
  EXPECT_EQ(refused->device, 0U);
}

// Map and message are one failure only where they are of one pool.
TEST_F(FrameworkParts, AMessageIsJoinedToTheMapOfItsOwnPool) {
  struct Row {
    const char* what;
    const char* where;              // in the message
    std::vector<const char*> maps;  // of pools, the oldest first
    const char* joined;             // to this one; empty: to none
    std::size_t parts, lost;
  };
  const std::string zero = "GPU:0 by allocator GPU_0_bfc", one = "GPU:1 by allocator GPU_1_bfc";
  for (const Row& row :
       {Row{"its own", zero.c_str(), {"GPU_0_bfc"}, "GPU_0_bfc", 1, 0},
        Row{"another GPU's", zero.c_str(), {"GPU_1_bfc"}, "", 2, 0},
        Row{"another's is later", zero.c_str(), {"GPU_0_bfc", "GPU_1_bfc"}, "GPU_0_bfc", 2, 0},
        Row{"another's is earlier", one.c_str(), {"GPU_0_bfc", "GPU_1_bfc"}, "GPU_1_bfc", 2, 0},
        Row{"of the host", "GPU:0 by allocator gpu_host_bfc", {"GPU_0_bfc"}, "", 2, 0},
        Row{"of the host, with its map",
            "GPU:0 by allocator gpu_host_bfc",
            {"gpu_host_bfc", "GPU_0_bfc"},
            "gpu_host_bfc",
            2,
            0},
        Row{"the host's is not told", zero.c_str(), {"GPU_0_bfc", "gpu_host_bfc"}, "GPU_0_bfc", 1, 1},
        Row{"by the GPU alone", "GPU:1", {"GPU_1_bfc", "GPU_0_bfc"}, "GPU_1_bfc", 2, 0},
        Row{"by another GPU alone", "GPU:1", {"GPU_0_bfc"}, "", 2, 0},
        Row{"the last of its pool", zero.c_str(), {"GPU_0_bfc", "GPU_0_bfc", "GPU_0_bfc"}, "GPU_0_bfc", 1, 2}}) {
    SCOPED_TRACE(row.what);
    for (const fs::directory_entry& entry : fs::directory_iterator(folder_)) fs::remove(entry.path());
    std::string words = kRefusedTraceback;
    words.replace(words.find("GPU:0 by allocator GPU_0_bfc"), 28, row.where);
    write("failure-7.txt", words);
    int at = 10;
    for (const char* pool : row.maps)
      write("pool-7_" + std::string(pool) + ".17948326460723" + std::to_string(at++), map_of(pool));
    const std::vector<InputPart> found = parts();
    EXPECT_EQ(found.size(), row.parts);
    std::uint64_t lost = 0;
    for (const auto& [what, times] : lost_) lost += times;
    EXPECT_EQ(lost, row.lost);
    for (const char* pool : row.maps) {
      const Event* const refused = refusal_of(found, pool);
      if (refused == nullptr) continue;
      const bool is_joined = std::string(pool) == row.joined;
      EXPECT_EQ(refused->size_bytes, is_joined ? std::uint64_t{4} << 40 : 0U) << pool;
      EXPECT_EQ(refused->stack.value != 0, is_joined) << pool;
    }
    EXPECT_EQ(*row.joined == 0 || refusal_of(found, row.joined) != nullptr, true);
  }
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

TEST_F(FrameworkParts, ASizeThatIsPrintedWithTwoDigitsIsTheDriversToo) {
  write(
      "failure-7.txt",
      "Traceback (most recent call last):\n  File \"/home/user/train.py\", line 7, in <module>\n    "
      "y.block_until_ready()\n"
      "jax.errors.JaxRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 16.00GiB with allocator "
      "SE_0_space_0 on device 0.\n");
  FrameworkFiles files;
  files.failure = (folder_ / "failure-7.txt").string();
  Trace driver;
  Event refused;
  refused.kind = EventKind::kAllocFailed;
  driver.events.push_back(refused);
  for (const auto& [mib, is_same] : {std::pair(16384, true), std::pair(16380, true), std::pair(12288, false)}) {
    driver.events.front().size_bytes = static_cast<std::uint64_t>(mib) << 20;
    EXPECT_EQ(framework_parts(files, "process 7", &driver, lost_).empty(), is_same) << mib;
  }
}

TEST_F(FrameworkParts, OtherTracebacksAreNoLoss) {
  write("tensors-7.txt", kTensorLines);
  write("failure-7.txt", "Traceback (most recent call last):\n  File \"a.py\", line 1, in <module>\nValueError: no\n");
  EXPECT_EQ(parts().size(), 1U);
  EXPECT_TRUE(lost_.empty());
}

TEST_F(FrameworkParts, WhatCannotBeReadIsCounted) {
  write("tensors-7.txt", "faultline-trace-text 1\nalloc of nothing\n");
  write("jax-7-oom-17.prof", "no profile");
  write("failure-7.txt", kRefusedTraceback);
  EXPECT_EQ(parts().size(), 1U);
  EXPECT_EQ(lost_.size(), 2U);
  // and where the recorder was there too
  write("process-7.faultline", std::string("faultline-trace-text 1\ndevice 0\nheap driver0 kind=driver device=0 "
                                           "name=driver\nalloc #1 4000000 driver0 t=1\n"));
  EXPECT_EQ(parts().size(), 2U);
  EXPECT_EQ(lost_.size(), 2U);
}

// A process that replaced itself goes on under the same number, and what is written at the end is of the last one.
TEST_F(FrameworkParts, AProcessThatReplacedItselfHasTwoLogs) {
  write("tensors-7.txt", kTensorLines);
  write("tensors-7-2.txt", std::string(kTensorLines) + "alloc-failed 4000000000 mklcpu stack=s1 t=2\n");
  write("failure-7.txt", kRefusedTraceback);
  write("process-7.json", R"({"exception": {"type": "ResourceExhaustedError", "message": "no"}})");
  const std::vector<InputPart> found = parts();
  ASSERT_EQ(found.size(), 2U);  // the failure is in the log, and not told again
  for (const InputPart& part : found) {
    EXPECT_EQ(part.holds(EventKind::kAllocFailed), part.name == "process 7-2");
    EXPECT_EQ(part.trace.properties.contains("process.exception.type"), part.name == "process 7-2");
  }
}

TEST_F(FrameworkParts, NamesOfOtherKindsAreNotTaken) {
  std::map<std::string, FrameworkFiles> files;
  for (const char* name :
       {"tensors-.txt", "tensors-7.bin", "tensors-7-.txt", "tensors-7-x.txt", "pool-7", "pool-x_GPU.1", "jax-7.prof",
        "jax-7-oom.prof", "jax-7-now.prof", "jax-7-.prof", "failure-7.json"})
    EXPECT_EQ(take_framework_file(name, files), "") << name;
  EXPECT_TRUE(files.empty());
}

// pprof's Profile: so many arrays of 1000 bytes each, made at train.py:5.
std::string profile_of(int count) {
  const auto bytes = [](int field, const std::string& text) {
    return std::string{static_cast<char>(field << 3 | 2), static_cast<char>(text.size())} + text;
  };
  const auto number = [](int field, int value) {
    std::string text(1, static_cast<char>(field << 3));
    for (; value > 127; value >>= 7) text += static_cast<char>(0x80 | (value & 127));
    return text + static_cast<char>(value);
  };
  std::string profile;
  for (const int type : {1, 2}) profile += bytes(1, number(1, type) + number(2, 3));
  profile += bytes(2, number(1, 1) + number(2, count) + number(2, count * 1000));
  profile += bytes(4, number(1, 1) + bytes(4, number(1, 1) + number(2, 5)));
  profile += bytes(5, number(1, 1) + number(2, 4) + number(4, 5));
  for (const char* text : {"", "allocations", "space", "count", "main", "train.py"}) profile += bytes(6, text);
  return profile;
}

TEST_F(FrameworkParts, LooksAtArraysAreOneTraceOverTime) {
  for (int at = 1; at <= 9; ++at) write("jax-7-" + std::to_string(100 + at) + ".prof", profile_of(at));
  write("jax-7-oom-105.prof", profile_of(7));  // in the middle: the program got over it
  const std::vector<InputPart> parts = this->parts();
  ASSERT_EQ(parts.size(), 1u);
  const Trace& trace = parts[0].trace;
  EXPECT_EQ(trace.source_kind, "jax-profile");
  EXPECT_EQ(trace.events.front().time_ns, 101000);
  const auto count = [&](EventKind kind) {
    return std::count_if(trace.events.begin(), trace.events.end(),
                         [&](const Event& event) { return event.kind == kind; });
  };
  EXPECT_EQ(count(EventKind::kAlloc) - count(EventKind::kFree), 9);
  EXPECT_GT(count(EventKind::kFree), 0);
}

TEST_F(FrameworkParts, AFewLooksAreATraceAlsoWhereMemoryRanOut) {
  EXPECT_TRUE(parts().empty());
  write("jax-7-101.prof", profile_of(1));
  ASSERT_EQ(parts().size(), 1u);
  EXPECT_EQ(parts()[0].trace.events.size(), 1u);
  write("jax-7-102.prof", profile_of(2));
  EXPECT_EQ(parts()[0].trace.events.size(), 2u);
  fs::remove(folder_ / "jax-7-102.prof");
  write("jax-7-oom-103.prof", profile_of(3));
  const std::vector<InputPart> parts = this->parts();
  ASSERT_EQ(parts.size(), 1u);
  EXPECT_EQ(parts[0].trace.events.size(), 3u);
}

}  // namespace
}  // namespace faultline
