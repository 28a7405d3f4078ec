// The trace file while it is written: by several threads, by a process that is killed, onto a disk that is full, read as it grows.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <random>
#include <thread>

#include "trace/file_format.h"
#include "trace/file_reader.h"
#include "trace/file_test_support.h"
#include "trace/file_writer.h"
#include "trace/validate.h"

static bool fallocate_is_unknown = false;
// In place of the C library's: as a file system answers that does not know it.
extern "C" int fallocate(int file, int mode, off_t offset, off_t bytes) {
  if (!fallocate_is_unknown) return static_cast<int>(::syscall(SYS_fallocate, file, mode, offset, bytes));
  errno = EOPNOTSUPP;
  return -1;
}

namespace faultline {
namespace {

constexpr int kThreads = 3;
constexpr std::uint32_t kEventsPerName = 50;

std::string name_for(std::uint32_t thread, std::uint32_t number) {
  return "op " + std::to_string(thread) + "." + std::to_string(number / kEventsPerName);
}

// Writes events 1, 2, 3, … of one thread, operations and launches by turns, each under a name that is defined before its first use; says after
// each that it is done.
class NumberedEvents {
 public:
  NumberedEvents(TraceFile& file, std::uint32_t thread, std::atomic<std::uint32_t>& next_name)
      : writer_(file), thread_(thread), next_name_(next_name) {}

  bool write(std::uint32_t number) {
    if (name_.value == 0 || number % kEventsPerName == 0) {
      name_ = StringId(next_name_.fetch_add(1) + 1);
      if (!writer_.define_string(name_, name_for(thread_, number))) return false;
      Launch launch;
      launch.kernel = name_;
      if (!writer_.define_call(LaunchId(name_.value), launch)) return false;
    }
    Event event;
    event.kind = number % 2 == 0 ? EventKind::kOpBegin : EventKind::kLaunch;
    event.time_ns = number;
    event.thread = ThreadId(static_cast<std::uint16_t>(thread_));
    event.extra = name_.value;
    return writer_.append(event).ok();
  }
  TraceFileWriter& writer() { return writer_; }

 private:
  TraceFileWriter writer_;
  std::uint32_t thread_;
  std::atomic<std::uint32_t>& next_name_;
  StringId name_;
};

// Each thread's events are there from 1 on without a hole, at least as many as it had finished; names are right.
void expect_all_there(const Trace& trace, const std::array<std::uint32_t, kThreads>& at_least) {
  ASSERT_TRUE(check_trace(trace).ok()) << check_trace(trace).error().message();
  std::array<std::uint32_t, kThreads> seen{};
  for (const Event& event : trace.events) {
    const std::uint32_t thread = event.thread.value;
    ASSERT_LT(thread, kThreads);
    ASSERT_EQ(event.time_ns, ++seen[thread]) << "thread " << thread;
    const StringId name =
        event.kind == EventKind::kLaunch ? trace.launches.at(LaunchId(event.extra)).kernel : StringId(event.extra);
    ASSERT_EQ(trace.strings.at(name), name_for(thread, seen[thread]));
  }
  for (std::uint32_t thread = 0; thread < kThreads; ++thread)
    ASSERT_GE(seen[thread], at_least[thread]) << "thread " << thread;
  ASSERT_EQ(lost(trace, kLostUnknownReferences), 0u);
  ASSERT_EQ(lost(trace, kLostUnusableEvents), 0u);
  ASSERT_EQ(lost(trace, kLostDamagedChunks), 0u);
  ASSERT_EQ(lost(trace, kLostBadDefinitions), 0u);
}

using Progress = std::array<std::atomic<std::uint32_t>, kThreads>;

std::array<std::uint32_t, kThreads> now(const Progress& progress) {
  std::array<std::uint32_t, kThreads> values{};
  for (std::size_t i = 0; i < kThreads; ++i) values[i] = progress[i].load();
  return values;
}

TEST(LiveTraceFile, KilledWriterLosesNoFinishedRecord) {
  const TemporaryFolder folder;
  const std::string path = folder / "trace";
  void* const shared = ::mmap(nullptr, sizeof(Progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(shared, MAP_FAILED);
  std::mt19937 random(11);
  std::uint64_t written = 0;
  for (int round = 0; round < 60; ++round) {
    auto& progress = *new (shared) Progress{};
    std::filesystem::remove(path);
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      auto file = TraceFile::create(path);
      if (!file) ::_exit(1);
      std::atomic<std::uint32_t> next_name{0};
      std::vector<std::thread> threads;
      for (std::uint32_t thread = 0; thread < kThreads; ++thread) {
        threads.emplace_back([&, thread] {
          NumberedEvents events(**file, thread, next_name);
          for (std::uint32_t i = 1; events.write(i); ++i) progress[thread].store(i);
        });
      }
      for (std::thread& thread : threads) thread.join();
      ::_exit(1);
    }
    // events, not time: a busy machine may let the writers begin late
    const auto enough = static_cast<std::uint32_t>(1 + random() % 10'000);
    while (progress[0].load() < enough && ::waitpid(child, nullptr, WNOHANG) == 0) std::this_thread::yield();
    ASSERT_EQ(::kill(child, SIGKILL), 0);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status));
    const Result<Trace> read = read_trace_file(path);
    ASSERT_TRUE(read.ok()) << read.error().message();
    expect_all_there(*read, now(progress));
    if (HasFatalFailure()) FAIL() << "round " << round;
    EXPECT_GT(lost(*read, kLostUnfinishedWriters), 0u);
    written += read->events.size();
  }
  EXPECT_GT(written, 100'000u);
  ::munmap(shared, sizeof(Progress));
}

TEST(LiveTraceFile, CanBeReadWhileItGrows) {
  const TemporaryFolder folder;
  const std::string path = folder / "trace";
  auto file = TraceFile::create(path);
  ASSERT_TRUE(file.ok());
  Progress progress{};
  std::atomic<std::uint32_t> allowed{0};  // the writers run while the reader reads, but not away from it
  std::atomic<std::uint32_t> next_name{0};
  constexpr std::uint32_t kRounds = 40;
  constexpr std::uint32_t kEventsPerRound = 10'000;
  std::vector<std::thread> threads;
  for (std::uint32_t thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      NumberedEvents events(**file, thread, next_name);
      for (std::uint32_t i = 1; i <= kRounds * kEventsPerRound; ++i) {
        while (allowed.load() < i) std::this_thread::yield();
        if (!events.write(i)) return;
        progress[thread].store(i);
      }
    });
  }
  for (std::uint32_t round = 0; round < kRounds; ++round) {
    allowed.fetch_add(kEventsPerRound);
    const auto at_least = now(progress);
    const Result<Trace> read = read_trace_file(path);
    EXPECT_TRUE(read.ok());
    if (read.ok()) expect_all_there(*read, at_least);
    if (HasFatalFailure()) allowed.store(kRounds * kEventsPerRound);
  }
  for (std::thread& thread : threads) thread.join();
  ASSERT_TRUE((*file)->close().ok());
  const Result<Trace> read = read_trace_file(path);
  ASSERT_TRUE(read.ok());
  expect_all_there(*read, now(progress));
  EXPECT_TRUE(read->lost.empty()) << read->lost.begin()->first;
}

TEST(LiveTraceFile, FreesFollowTheAllocsOfOtherThreads) {
  const TemporaryFolder folder;
  const std::string path = folder / "trace";
  auto file = TraceFile::create(path);
  ASSERT_TRUE(file.ok());
  constexpr std::uint32_t kRounds = 25;
  constexpr std::uint32_t kPerRound = 2'000;
  constexpr std::uint32_t kAllocations = kRounds * kPerRound;
  std::atomic<std::uint32_t> allowed{0};
  std::atomic<std::uint32_t> made{0};
  {
    TraceFileWriter setup(**file);
    ASSERT_TRUE(setup.define_heap(HeapId(0), {HeapKind::kDriver, 0, HeapId(0), 0, 0, "driver"}).ok());
  }
  std::thread allocating([&] {
    TraceFileWriter writer(**file);
    for (std::uint32_t id = 1; id <= kAllocations; ++id) {
      while (allowed.load() < id) std::this_thread::yield();
      Event event;
      event.allocation = AllocationId(id);
      if (!writer.append(event)) return;
      made.store(id, std::memory_order_release);
    }
  });
  std::thread freeing([&] {
    TraceFileWriter writer(**file);
    for (std::uint32_t id = 1; id <= kAllocations; ++id) {
      while (made.load(std::memory_order_acquire) < id) std::this_thread::yield();
      Event event;
      event.kind = EventKind::kFree;
      event.allocation = AllocationId(id);
      if (!writer.append(event)) return;
    }
  });
  for (std::uint32_t round = 0; round < kRounds; ++round) {
    allowed.fetch_add(kPerRound);
    const Result<Trace> read = read_trace_file(path);
    EXPECT_TRUE(read.ok());
    if (!read) continue;
    EXPECT_TRUE(check_trace(*read).ok()) << check_trace(*read).error().message();
    EXPECT_EQ(lost(*read, kLostUnknownReferences), 0u);
    EXPECT_EQ(lost(*read, kLostUnusableEvents), 0u);
  }
  allocating.join();
  freeing.join();
  ASSERT_TRUE((*file)->close().ok());
  const Result<Trace> read = read_trace_file(path);
  ASSERT_TRUE(read.ok());
  ASSERT_TRUE(check_trace(*read).ok()) << check_trace(*read).error().message();
  EXPECT_EQ(read->events.size(), 2 * kAllocations);
  EXPECT_EQ(read->allocation_count, kAllocations);
  EXPECT_TRUE(read->lost.empty()) << read->lost.begin()->first;
}

void fill_and_read_back_some(const std::string& path) {
  auto file = TraceFile::create(path);
  ASSERT_TRUE(file.ok()) << file.error().message();
  std::atomic<std::uint32_t> next_name{0};
  constexpr std::uint32_t kEvents = 100'000;
  {
    NumberedEvents events(**file, 0, next_name);
    for (std::uint32_t number = 1; number <= kEvents; ++number) ASSERT_TRUE(events.write(number));
  }
  EXPECT_TRUE((*file)->close().ok());
  const Result<Trace> read = read_trace_file(path);
  ASSERT_TRUE(read.ok());
  expect_all_there(*read, {kEvents, 0, 0});
  EXPECT_TRUE(read->lost.empty());
}

// Writes until there is no room; everything said to be written must be there, and the loss must be counted.
void fill_and_read_back(const std::string& path) {
  auto file = TraceFile::create(path);
  ASSERT_TRUE(file.ok()) << file.error().message();
  std::atomic<std::uint32_t> next_name{0};
  std::uint32_t written = 0;
  {
    NumberedEvents events(**file, 0, next_name);
    while (written < 10'000'000 && events.write(written + 1)) ++written;
    EXPECT_LT(written, 10'000'000u);
    for (int i = 0; i < 10; ++i) EXPECT_FALSE(events.write(written + 1));
    EXPECT_EQ(events.writer().dropped(), 11u);
    EXPECT_FALSE(events.writer().finish().ok());
  }
  EXPECT_TRUE((*file)->close().ok());
  const Result<Trace> read = read_trace_file(path);
  ASSERT_TRUE(read.ok()) << read.error().message();
  EXPECT_EQ(read->events.size(), written);
  expect_all_there(*read, {written, 0, 0});
  EXPECT_EQ(lost(*read, kLostWriterStopped), 1u);
  EXPECT_EQ(lost(*read, kLostDroppedRecords), 11u);
  EXPECT_EQ(lost(*read, kLostUnfinishedWriters), 0u);
}

TEST(LiveTraceFile, FullDiskKeepsWhatWasWritten) {
  const TemporaryFolder folder;
  const std::string disk = folder / "disk";
  ASSERT_EQ(::mkdir(disk.c_str(), 0755), 0);
  if (::mount("none", disk.c_str(), "tmpfs", 0, "size=3100k") != 0)
    GTEST_SKIP() << "a small disk cannot be mounted here";
  fill_and_read_back(disk + "/trace");
  EXPECT_EQ(::umount2(disk.c_str(), MNT_DETACH), 0);
}

TEST(LiveTraceFile, FileSizeLimitKeepsWhatWasWrittenAndSendsNoSignal) {
  const TemporaryFolder folder;
  const std::string path = folder / "trace";
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  rlimit small = before;
  small.rlim_cur = 1'500'000;
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  fill_and_read_back(path);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
}

TEST(LiveTraceFile, KeepsNoDescriptorAndWritesToNoOtherFile) {
  const TemporaryFolder folder;
  const auto descriptors = [] {
    return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), std::filesystem::directory_iterator());
  };
  const auto before = descriptors();
  auto file = TraceFile::create(folder / "trace");
  ASSERT_TRUE(file.ok());
  std::atomic<std::uint32_t> next_name{0};
  NumberedEvents events(**file, 0, next_name);
  std::uint32_t number = 0;
  for (; number < 50'000; ++number) ASSERT_TRUE(events.write(number + 1));
  EXPECT_EQ(descriptors(), before);
  // Another file comes in its place: it is not touched.
  write_bytes(folder / "other", {1, 2, 3});
  std::filesystem::rename(folder / "trace", folder / "moved");
  std::filesystem::rename(folder / "other", folder / "trace");
  while (number < 1'000'000 && events.write(number + 1)) ++number;
  EXPECT_LT(number, 1'000'000u);
  (void)events.writer().finish();
  EXPECT_FALSE((*file)->close().ok());
  EXPECT_EQ(read_bytes(folder / "trace"), (std::vector<std::uint8_t>{1, 2, 3}));
  const Result<Trace> read = read_trace_file(folder / "moved");
  ASSERT_TRUE(read.ok());
  expect_all_there(*read, {number, 0, 0});
}

TEST(LiveTraceFile, FileSystemThatCannotReserveIsGivenZeros) {
  const TemporaryFolder folder;
  fallocate_is_unknown = true;
  fill_and_read_back_some(folder / "trace");
  fallocate_is_unknown = false;
}

TEST(LiveTraceFile, IsNotCreatedWhereItCannotBe) {
  const TemporaryFolder folder;
  EXPECT_FALSE(TraceFile::create(folder / "missing/trace").ok());
  write_bytes(folder / "there", {1, 2, 3});
  EXPECT_FALSE(TraceFile::create(folder / "there").ok());
  EXPECT_EQ(read_bytes(folder / "there").size(), 3u);
  EXPECT_FALSE(write_trace_file(Trace{}, folder / "missing/trace").ok());
}

// A recording that breaks off keeps its beginning; a copy that does is not there at all, and says so.
TEST(LiveTraceFile, ACopyThatFindsNoRoomSaysThatNothingWasWritten) {
  const TemporaryFolder folder;
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  rlimit small = before;
  small.rlim_cur = 1024;
  auto recorded = TraceFile::create(folder / "recorded");
  ASSERT_TRUE(recorded.ok());
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const Status copied = write_trace_file(Trace{}, folder / "copy");
  const auto chunk = (*recorded)->take_chunk(std::size_t{1} << 20);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  ASSERT_FALSE(copied.ok());
  EXPECT_EQ(copied.error().next, "Nothing was written.");
  EXPECT_FALSE(std::filesystem::exists(folder / "copy"));
  ASSERT_FALSE(chunk.ok());
  EXPECT_NE(chunk.error().next.find("is kept and can be read"), std::string::npos);
}

TEST(LiveTraceFile, ThreadThatFindsNoRoomFromTheStartIsToldSo) {
  const TemporaryFolder folder;
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  auto file = TraceFile::create(folder / "trace");
  ASSERT_TRUE(file.ok());
  rlimit small = before;
  small.rlim_cur = 0;
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  {
    std::vector<std::unique_ptr<TraceFileWriter>> writers;
    bool found_none = false;
    while (!found_none && writers.size() < 1000) {
      writers.push_back(std::make_unique<TraceFileWriter>(**file));
      found_none = !writers.back()->append(Event{}).ok();
    }
    EXPECT_TRUE(found_none);
    EXPECT_EQ(writers.back()->dropped(), 1u);
  }
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  EXPECT_TRUE((*file)->close().ok());
}

}  // namespace
}  // namespace faultline
