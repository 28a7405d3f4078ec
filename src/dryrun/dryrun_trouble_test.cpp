#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

#include "dryrun/dryrun_test_support.h"

namespace faultline {
namespace {

std::string refusal(const std::string& path, const char* alloc_conf, const char* torch_version = "",
                    std::uint64_t context_bytes = 0) {
  std::array<char, 512> error{};
  faultline_dryrun* handle = faultline_open(path.c_str(), "a device", kGiB, context_bytes, alloc_conf, torch_version,
                                            error.data(), error.size());
  EXPECT_EQ(handle, nullptr);
  return error.data();
}

TEST(DryRunOpen, RefusesSettingsThatPyTorchWouldRefuse) {
  const TemporaryFolder folder;
  EXPECT_NE(refusal(folder / "a", "max_split_size_mb:1").find("max_split_size_mb"), std::string::npos);
  EXPECT_NE(refusal(folder / "a", "expandable_segments").find("no value"), std::string::npos);
  EXPECT_NE(refusal(folder / "a", "large_segment_size_mb:40", "2.6.0").find("large_segment_size_mb"),
            std::string::npos);
  EXPECT_NE(refusal(folder / "a", "backend:cudaMallocAsync").find("cudaMallocAsync"), std::string::npos);
  EXPECT_NE(refusal(folder / "a", "", "new").find("version"), std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(folder / "a")) << "a file is only made for a device that can be";
}

TEST(DryRunOpen, RefusesAContextThatLeavesNothing) {
  const TemporaryFolder folder;
  EXPECT_NE(refusal(folder / "a", "", "", kGiB).find("1.00 GiB"), std::string::npos);
}

TEST(DryRunOpen, RefusesAFileThatCannotBeMadeAndNamesIt) {
  const TemporaryFolder folder;
  const std::string nowhere = folder / "missing/trace";
  EXPECT_NE(refusal(nowhere, "").find(nowhere), std::string::npos);
  std::array<char, 200> why{};
  EXPECT_NE(faultline_no_trace(why.data(), why.size()), 0u);
  EXPECT_EQ(std::string(why.data()), "the trace file cannot be created: No such file or directory");
  write_bytes(folder / "there", {1, 2, 3});
  EXPECT_NE(refusal(folder / "there", "").find("there"), std::string::npos);
  EXPECT_EQ(read_bytes(folder / "there"), (std::vector<std::uint8_t>{1, 2, 3}));
}

TEST(DryRunOpen, CutsAnErrorToTheRoomThereIs) {
  const TemporaryFolder folder;
  std::array<char, 8> error{};
  EXPECT_EQ(faultline_open((folder / "missing/trace").c_str(), "", 0, 0, nullptr, nullptr, error.data(), error.size()),
            nullptr);
  EXPECT_EQ(error[7], '\0');
  EXPECT_NE(error[6], '\0');
}

TEST(DryRunTrouble, NoHandleAnswersServed) {
  std::uint32_t allocation = 7;
  std::uint64_t address = 7;
  EXPECT_EQ(faultline_alloc(nullptr, 0, 4096, 0, FAULTLINE_HEAP_TORCH, 0, 0, &allocation, &address), FAULTLINE_SERVED);
  EXPECT_EQ(allocation, 0u);
  EXPECT_EQ(address, 0u);
  EXPECT_EQ(faultline_string(nullptr, "a", 1), 0u);
  faultline_close(nullptr);
}

TEST(DryRunTrouble, ProcessThatEndsWithoutCloseLeavesWhatItRecorded) {
  const TemporaryFolder folder;
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    faultline_dryrun* handle = faultline_open((folder / "trace").c_str(), "", kGiB, 0, "", "", nullptr, 0);
    for (int at = 0; at < 100; ++at) faultline_alloc(handle, 0, 4096, 0, FAULTLINE_HEAP_TORCH, 0, 0, nullptr, nullptr);
    ::kill(::getpid(), SIGKILL);
  }
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  const Result<Trace> trace = read_trace_file(folder / "trace");
  ASSERT_TRUE(trace.ok()) << trace.error().message();
  EXPECT_TRUE(check_trace(*trace).ok());
  EXPECT_EQ(trace->allocation_count, 101u);
  expect_proved(*trace);
}

TEST(DryRunTrouble, ChildOfAForkNeverWritesIntoTheParentsFile) {
  DryRun device(kGiB);
  const Given before = device.alloc(4096);
  const std::vector<std::uint8_t> bytes = read_bytes(device.path());
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    bool as_told = true;
    for (int at = 0; at < 1000; ++at) {
      const Given given = device.alloc(kMiB);
      as_told = as_told && given.served() && given.allocation == 0 && given.address == 0;
    }
    device.free(before.allocation);
    faultline_property(device.handle(), "from", "the child");
    faultline_after_fork_child(device.handle());
    faultline_close(device.handle());
    ::_exit(as_told ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(read_bytes(device.path()), bytes);
  EXPECT_TRUE(device.alloc(4096).served());
  const Trace trace = device.finish();
  EXPECT_EQ(trace.properties.count("from"), 0u);
  EXPECT_EQ(trace.allocation_count, 3u) << "a segment and two blocks";
}

TEST(DryRunTrouble, ChildMayOpenADeviceOfItsOwn) {
  DryRun device(kGiB);
  const TemporaryFolder folder;
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    faultline_dryrun* own = faultline_open((folder / "own").c_str(), "", kGiB, 0, "", "", nullptr, 0);
    std::uint32_t allocation = 0;
    faultline_alloc(own, 0, 4096, 0, FAULTLINE_HEAP_TORCH, 0, 0, &allocation, nullptr);
    faultline_close(own);
    ::_exit(allocation != 0 ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  const Result<Trace> trace = read_trace_file(folder / "own");
  ASSERT_TRUE(trace.ok());
  EXPECT_EQ(trace->allocation_count, 2u);
}

TEST(DryRunTrouble, ThreadsShareOneDevice) {
  DryRun device(0);
  std::vector<std::thread> threads;
  for (int number = 0; number < 4; ++number) {
    threads.emplace_back([&device, number] {
      std::vector<std::uint32_t> mine;
      for (std::uint64_t at = 0; at < 3000; ++at) {
        const std::uint32_t stack = device.line(static_cast<std::uint32_t>(at % 100));
        const Given given = device.alloc(1000 + at * 700 % (3 * kMiB), 0, FAULTLINE_HEAP_TORCH, stack);
        ASSERT_TRUE(given.served());
        mine.push_back(given.allocation);
        if (at % 3 == static_cast<std::uint64_t>(number) % 3) {
          device.free(mine.front());
          mine.erase(mine.begin());
        }
        if (at % 500 == 0) device.stats();
      }
      for (const std::uint32_t allocation : mine) device.free(allocation);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(device.stats().allocated_bytes, 0u);
  const Trace trace = device.finish();
  EXPECT_EQ(expect_proved(trace).placements, 12000u);
  std::vector<bool> seen(8);
  for (const Event& event : trace.events) {
    if (event.thread.index() < seen.size()) seen[event.thread.index()] = true;
  }
  EXPECT_GE(std::count(seen.begin(), seen.end(), true), 4);
}

// In a process of its own: the limit holds for all of it.
TEST(DryRunTrouble, FullDiskStopsTheRecordingAndNotTheProgram) {
  const TemporaryFolder folder;
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const rlimit limit{3 << 20, 3 << 20};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    faultline_dryrun* handle = faultline_open((folder / "trace").c_str(), "", 100 * kMiB, 0, "", "", nullptr, 0);
    if (handle == nullptr) ::_exit(2);
    std::uint64_t served = 0;
    for (int at = 0; at < 300'000; ++at) {
      std::uint32_t allocation = 0;
      if (faultline_alloc(handle, 0, 4096, 0, FAULTLINE_HEAP_TORCH, 0, 0, &allocation, nullptr) == FAULTLINE_SERVED &&
          allocation != 0)
        ++served;
      faultline_free(handle, allocation, 0);
    }
    // The model still knows how large the device is.
    const bool refused = faultline_alloc(handle, 0, 200 * kMiB, 0, FAULTLINE_HEAP_TORCH, 0, 0, nullptr, nullptr) ==
                         FAULTLINE_OUT_OF_MEMORY;
    std::array<char, 256> error{};
    const bool told = faultline_error(handle, error.data(), error.size()) != 0 &&
                      std::string(error.data()).find("no room") != std::string::npos;
    faultline_close(handle);
    ::_exit(served == 300'000 && refused && told ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  const Result<Trace> trace = read_trace_file(folder / "trace");
  ASSERT_TRUE(trace.ok()) << trace.error().message();
  EXPECT_TRUE(check_trace(*trace).ok());
  EXPECT_GT(trace->events.size(), 1000u);
  EXPECT_EQ(trace->lost.at("trace_file.writers_out_of_space"), 1u);
  EXPECT_GT(trace->lost.at("trace_file.dropped_records"), 0u);
}

}  // namespace
}  // namespace faultline
