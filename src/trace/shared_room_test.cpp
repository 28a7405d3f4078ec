// The shared room and its keeper: processes that are killed, files that are cut short or gone, limits that are met.
#include "trace/shared_room.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <random>
#include <thread>

#include "trace/file_reader.h"
#include "trace/file_test_support.h"
#include "trace/file_writer.h"
#include "trace/keeper.h"
#include "trace/recorded_part.h"
#include "trace/validate.h"

namespace faultline {
namespace {

constexpr std::uint64_t kPlenty = std::uint64_t{1} << 40;

std::unique_ptr<RoomSpace> join(const TraceKeeper& keeper) {
  const char* why = nullptr;
  SharedRoom* const room = RoomSpace::attach(std::stoi(keeper.room_number()), why);
  return room == nullptr ? nullptr : RoomSpace::begin(*room, 1);
}

Event numbered(std::uint32_t number) {
  Event event;
  event.kind = EventKind::kSync;
  event.time_ns = number;
  event.address = number * 0x12345678ull;
  return event;
}

std::filesystem::path only_trace(const TemporaryFolder& folder) {
  std::filesystem::path found;
  for (const auto& entry : std::filesystem::directory_iterator(folder / "")) {
    if (entry.path().extension() == ".faultline") found = entry.path();
  }
  return found;
}

std::size_t descriptors() {
  return static_cast<std::size_t>(
      std::distance(std::filesystem::directory_iterator("/proc/self/fd"), std::filesystem::directory_iterator()));
}

TEST(SharedRoom, KilledProcessLosesNoFinishedRecord) {
  void* const shared = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(shared, MAP_FAILED);
  std::mt19937 random(5);
  for (int round = 0; round < 10; ++round) {
    const TemporaryFolder folder;
    auto& progress = *new (shared) std::atomic<std::uint32_t>{0};
    auto keeper = TraceKeeper::create(folder / "", kPlenty);
    ASSERT_TRUE(keeper.ok()) << keeper.error().message();
    const pid_t child = ::fork();
    if (child == 0) {
      const std::unique_ptr<RoomSpace> space = join(**keeper);
      if (space == nullptr) ::_exit(1);
      TraceFileWriter writer(*space);
      for (std::uint32_t number = 1; writer.append(numbered(number)).ok(); ++number) progress.store(number);
      ::_exit(2);
    }
    while (progress.load() == 0 && ::waitpid(child, nullptr, WNOHANG) == 0) std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 30'000));
    ASSERT_EQ(::kill(child, SIGKILL), 0);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status));
    (*keeper)->finish();
    const Result<Trace> read = read_trace_file(only_trace(folder));
    ASSERT_TRUE(read.ok()) << read.error().message();
    ASSERT_GE(read->events.size(), progress.load());
    for (std::uint32_t at = 0; at < read->events.size(); ++at) ASSERT_EQ(read->events[at].time_ns, at + 1);
    EXPECT_EQ(read->lost.size(), 1u) << "an unfinished writer and nothing else";
  }
  ::munmap(shared, 4096);
}

TEST(SharedRoom, WritersHoldNoDescriptor) {
  const TemporaryFolder folder;
  auto keeper = TraceKeeper::create(folder / "", kPlenty);
  ASSERT_TRUE(keeper.ok());
  const std::size_t before = descriptors();
  const std::unique_ptr<RoomSpace> space = join(**keeper);
  ASSERT_NE(space, nullptr);
  TraceFileWriter writer(*space);
  for (std::uint32_t number = 1; number < 100'000; ++number) {
    ASSERT_TRUE(writer.append(numbered(number)).ok());
    if (number % 20'000 != 0) continue;
    EXPECT_LE(descriptors(), before + 1);  // the keeper, in this process too, may be at a file
  }
}

TEST(SharedRoom, FileThatIsCutShortOrGoneHarmsNobody) {
  const TemporaryFolder folder;
  auto keeper = TraceKeeper::create(folder / "", kPlenty);
  ASSERT_TRUE(keeper.ok());
  const std::unique_ptr<RoomSpace> space = join(**keeper);
  TraceFileWriter writer(*space);
  std::uint32_t number = 1;
  for (; number < 50'000; ++number) ASSERT_TRUE(writer.append(numbered(number)).ok());
  while (only_trace(folder).empty()) std::this_thread::yield();
  ASSERT_EQ(::truncate(only_trace(folder).c_str(), 0), 0);
  for (; number < 100'000; ++number) ASSERT_TRUE(writer.append(numbered(number)).ok());
  std::filesystem::remove(only_trace(folder));
  while (writer.append(numbered(++number)).ok()) {  // until the keeper has noticed
  }
  (void)writer.finish();
  (*keeper)->finish();
  ASSERT_EQ((*keeper)->notes().size(), 1u);
  EXPECT_NE((*keeper)->notes()[0].find("not all of process"), std::string::npos);
}

TEST(SharedRoom, CallsEndAtHalfOfWhatIsKeptAndAllAtItsEnd) {
  const TemporaryFolder folder;
  constexpr std::uint64_t kMost = 1 << 20;
  auto keeper = TraceKeeper::create(folder / "", kMost);
  ASSERT_TRUE(keeper.ok());
  std::uint32_t calls = 0, events = 0;
  {
    const std::unique_ptr<RoomSpace> space = join(**keeper);
    {
      TraceFileWriter writer(*space);
      for (; space->wanted() == Wanted::kAll; ++events) ASSERT_TRUE(writer.append(numbered(events + 1)).ok());
      calls = events;
      space->calls_end(7'000'000'001);
      while (writer.append(numbered(events + 1)).ok()) ++events;
      space->recording_ends(9'000'000'001, "");
      space->closes();
    }
    TraceFileWriter last(*space);
    EXPECT_TRUE(last.define_property("last", "word").ok());
    EXPECT_TRUE(last.finish().ok());
  }
  (*keeper)->finish();
  const std::filesystem::path path = only_trace(folder);
  EXPECT_LE(std::filesystem::file_size(path), kMost + 3 * kTraceUnitBytes);
  const Result<Trace> read = read_trace_file(path);
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->events.size(), events);
  EXPECT_GT(calls, events / 3);
  EXPECT_LT(calls, events * 2 / 3);
  EXPECT_EQ(read->properties.at("last"), "word");
  EXPECT_EQ(read->properties.at(kCallsUntil), "7000000001");
  const RecordedPart part = recorded_part(*read);
  EXPECT_FALSE(part.all);
  EXPECT_FALSE(part.all_calls);
  EXPECT_EQ(part.because, "7.0 s after it began: the traces of a run may take 1.00 MiB (--keep)");
}

TEST(SharedRoom, PartOfTheDiskIsLeftToTheProgram) {
  const TemporaryFolder folder;
  const std::string disk = folder / "disk";
  ASSERT_EQ(::mkdir(disk.c_str(), 0755), 0);
  if (::mount("none", disk.c_str(), "tmpfs", 0, "size=40m") != 0) GTEST_SKIP() << "a small disk cannot be mounted here";
  auto keeper = TraceKeeper::create(disk, kPlenty);
  ASSERT_TRUE(keeper.ok());
  {
    const std::unique_ptr<RoomSpace> space = join(**keeper);
    TraceFileWriter writer(*space);
    std::uint32_t number = 0;
    while (number < 50'000'000 && writer.append(numbered(number + 1)).ok()) ++number;
    EXPECT_LT(number, 50'000'000u);
    space->recording_ends(2, "");
  }
  (*keeper)->finish();
  struct statvfs about {};
  ASSERT_EQ(::statvfs(disk.c_str(), &about), 0);
  // What was on its way when the limit was met may take a little of it.
  EXPECT_EQ(disk_reserve(disk), std::uint64_t{2} << 20);
  EXPECT_GT(about.f_bavail * about.f_frsize, disk_reserve(disk) / 3);
  EXPECT_EQ(::umount2(disk.c_str(), MNT_DETACH), 0);
}

TEST(SharedRoom, ProcessThatEndsWhileAThreadIsInsideTheDriverHasFinishedWriters) {
  const TemporaryFolder folder;
  auto keeper = TraceKeeper::create(folder / "", kPlenty);
  ASSERT_TRUE(keeper.ok());
  const std::unique_ptr<RoomSpace> space = join(**keeper);
  auto* const never_closed = new TraceFileWriter(*space);
  ASSERT_TRUE(never_closed->append(numbered(1)).ok());
  space->has_ended();
  (*keeper)->finish();
  const Result<Trace> read = read_trace_file(only_trace(folder));
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->events.size(), 1u);
  EXPECT_TRUE(read->lost.empty()) << read->lost.begin()->first;
  delete never_closed;
}

TEST(SharedRoom, SlotsOfAKilledProcessAreFreed) {
  const TemporaryFolder folder;
  auto keeper = TraceKeeper::create(folder / "", kPlenty);
  ASSERT_TRUE(keeper.ok());
  const pid_t child = ::fork();
  if (child == 0) {
    const std::unique_ptr<RoomSpace> space = join(**keeper);
    for (std::uint32_t taken = 0; space != nullptr && taken < SharedRoom::kSlots; ++taken) {
      if (!space->take_chunk(1).ok()) ::_exit(1);
    }
    ::kill(::getpid(), SIGKILL);
  }
  siginfo_t end{};
  // nobody asks for its status: it stays a number
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(child), &end, WEXITED | WNOWAIT), 0);
  ASSERT_EQ(end.si_status, SIGKILL);
  const std::unique_ptr<RoomSpace> space = join(**keeper);
  bool has_room = false;
  // each waits a second
  for (int attempt = 0; attempt < 10 && !has_room; ++attempt) has_room = space->take_chunk(1).ok();
  EXPECT_TRUE(has_room);
  ::waitpid(child, nullptr, 0);
}

TEST(SharedRoom, OnlyProcessesThatWereTurnedAwayAreTold) {
  for (const bool one_more : {false, true}) {
    const TemporaryFolder folder;
    auto keeper = TraceKeeper::create(folder / "", kPlenty);
    ASSERT_TRUE(keeper.ok());
    const char* why = nullptr;
    SharedRoom* const room = RoomSpace::attach(std::stoi((*keeper)->room_number()), why);
    ASSERT_NE(room, nullptr);
    room->processes_begun.store(SharedRoom::kProcesses - 1);
    EXPECT_NE(RoomSpace::begin(*room, 1), nullptr);
    if (one_more) {
      EXPECT_EQ(RoomSpace::begin(*room, 1), nullptr);
    }
    (*keeper)->finish();
    EXPECT_EQ((*keeper)->notes().size(), one_more ? 1u : 0u);
  }
}

// The largest file that this process may write, for as long as it lives: writes beyond fail.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) : handler_(::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{bytes, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    ::signal(SIGXFSZ, handler_);
  }

 private:
  rlimit before_{};
  sighandler_t handler_;
};

TEST(SharedRoom, WhatIsBroughtToDiskLaterIsNotLost) {
  const TemporaryFolder folder;
  auto keeper = TraceKeeper::create(folder / "", kPlenty);
  ASSERT_TRUE(keeper.ok());
  const std::unique_ptr<RoomSpace> space = join(**keeper);
  TraceFileWriter writer(*space);
  while (only_trace(folder).empty()) std::this_thread::yield();
  {
    const FileSizeLimit limit(sizeof(TraceFileHeader));
    ASSERT_TRUE(writer.append(numbered(1)).ok());
    // the keeper has tried
    while (space->wanted() != Wanted::kNothing) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  ASSERT_TRUE(writer.finish().ok());
  (*keeper)->finish();
  const Result<Trace> read = read_trace_file(only_trace(folder));
  ASSERT_TRUE(read.ok()) << read.error().message();
  EXPECT_EQ(read->events.size(), 1u);
  EXPECT_FALSE(read->lost.contains(kLostUnkept));
}

TEST(SharedRoom, EachByteIsLostOnce) {
  const TemporaryFolder folder;
  auto keeper = TraceKeeper::create(folder / "", kPlenty);
  ASSERT_TRUE(keeper.ok());
  const std::unique_ptr<RoomSpace> space = join(**keeper);
  const Result<MappedChunk> kept = space->take_chunk(1), lost = space->take_chunk(1);
  ASSERT_TRUE(kept.ok() && lost.ok());
  std::memcpy(lost->begin, &kChunkMagic, sizeof kChunkMagic);
  while (only_trace(folder).empty()) std::this_thread::yield();
  {
    const FileSizeLimit limit(sizeof(TraceFileHeader));
    while (space->wanted() != Wanted::kNothing) std::this_thread::sleep_for(std::chrono::milliseconds(10));
    std::this_thread::sleep_for(std::chrono::milliseconds(700));  // and again
    space->release(*lost, lost->begin + 100);
    std::this_thread::sleep_for(std::chrono::milliseconds(300));  // for the last time
  }
  (*keeper)->finish();
  const Result<Trace> read = read_trace_file(only_trace(folder));
  ASSERT_TRUE(read.ok()) << read.error().message();
  EXPECT_EQ(read->lost.at(kLostUnkept), 100u);
}

TEST(SharedRoom, TracesAreTheirOwnersAlone) {
  const TemporaryFolder folder;
  auto keeper = TraceKeeper::create(folder / "", kPlenty);
  ASSERT_TRUE(keeper.ok());
  const mode_t before = ::umask(0);
  const std::unique_ptr<RoomSpace> space = join(**keeper);
  (*keeper)->finish();
  ASSERT_TRUE(TraceFile::create(folder / "trace").ok());
  ::umask(before);
  for (const std::string& path : {only_trace(folder).string(), std::string(folder / "trace")}) {
    struct stat status {};
    ASSERT_EQ(::stat(path.c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 07777, 0600u) << path;
  }
}

TEST(SharedRoom, WithoutAKeeperWritersEnd) {
  const TemporaryFolder folder;
  std::unique_ptr<RoomSpace> space;
  {
    auto keeper = TraceKeeper::create(folder / "", kPlenty);
    ASSERT_TRUE(keeper.ok());
    space = join(**keeper);
    (*keeper)->finish();
  }
  TraceFileWriter writer(*space);
  EXPECT_FALSE(writer.append(numbered(1)).ok());
  const char* why = nullptr;
  EXPECT_EQ(RoomSpace::attach(-1, why), nullptr);
  EXPECT_NE(why, nullptr);
}

}  // namespace
}  // namespace faultline
