// The trace file, written and read back: whole, cut, damaged, from the future.
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <sstream>

#include "trace/file_chunks.h"
#include "trace/file_reader.h"
#include "trace/file_test_support.h"
#include "trace/file_writer.h"
#include "trace/sample_traces.h"

namespace faultline {
namespace {

std::vector<std::uint8_t> bytes_of(const Trace& trace, const TemporaryFolder& folder) {
  const std::string path = folder / "trace";
  const Status status = write_trace_file(trace, path);
  EXPECT_TRUE(status.ok()) << status.error().message();
  return read_bytes(path);
}

TEST(TraceFile, GivesBackWhatWasWritten) {
  const TemporaryFolder folder;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const Trace trace = RandomTrace(seed).make(seed % 60);
    ASSERT_TRUE(check_trace(trace).ok()) << seed << ": " << check_trace(trace).error().message();
    const std::string path = folder / "trace";
    ASSERT_TRUE(write_trace_file(trace, path).ok());
    const Result<Trace> from_path = read_trace_file(path);
    ASSERT_TRUE(from_path.ok()) << from_path.error().message();
    expect_same_trace(trace, *from_path);
    const Result<Trace> from_bytes = read_trace_bytes(read_bytes(path));
    ASSERT_TRUE(from_bytes.ok());
    expect_same_trace(trace, *from_bytes);
    if (HasFatalFailure()) FAIL() << "seed " << seed;
  }
}

TEST(TraceFile, GivesBackManyChunks) {
  const TemporaryFolder folder;
  for (const std::size_t events : {20'000, 100'000}) {
    const Trace trace = RandomTrace(events).make(events);
    const std::vector<std::uint8_t> bytes = bytes_of(trace, folder);
    ASSERT_GT(bytes.size(), 4 * kTraceUnitBytes);
    const Result<Trace> read = read_trace_bytes(bytes);
    ASSERT_TRUE(read.ok());
    expect_same_trace(trace, *read);
    EXPECT_LE(read->events.capacity(), trace.events.size() + 1);
  }
}

TEST(TraceFile, GivesBackAnEmptyTrace) {
  const TemporaryFolder folder;
  const Trace trace;
  const std::vector<std::uint8_t> bytes = bytes_of(trace, folder);
  EXPECT_LT(bytes.size(), 120u);
  const Result<Trace> read = read_trace_bytes(bytes);
  ASSERT_TRUE(read.ok());
  expect_same_trace(trace, *read);
}

TEST(TraceFile, GivesBackTextLargerThanAChunk) {
  const TemporaryFolder folder;
  Trace trace = RandomTrace(7).make(50);
  trace.strings.intern(std::string(20'000, 'a'));
  trace.strings.intern(std::string(300'000, 'b'));
  trace.properties["long"] = std::string(70'000, 'c');
  const Result<Trace> read = read_trace_bytes(bytes_of(trace, folder));
  ASSERT_TRUE(read.ok());
  expect_same_trace(trace, *read);
}

TEST(TraceFile, SpendsAtMost24BytesOnAnEventOfTraining) {
  const TemporaryFolder folder;
  const Trace trace = TrainingTrace().make(300'000);
  ASSERT_TRUE(check_trace(trace).ok()) << check_trace(trace).error().message();
  const std::vector<std::uint8_t> bytes = bytes_of(trace, folder);
  const double per_event = static_cast<double>(bytes.size()) / static_cast<double>(trace.events.size());
  RecordProperty("bytes_per_event", std::to_string(per_event));
  std::printf("%zu events, %zu bytes, %.2f bytes per event\n", trace.events.size(), bytes.size(), per_event);
  EXPECT_LE(per_event, 24.0);
  const Result<Trace> read = read_trace_bytes(bytes);
  ASSERT_TRUE(read.ok());
  expect_same_trace(trace, *read);
}

TEST(TraceFile, CutAnywhereGivesTheRecordsBeforeTheCut) {
  const TemporaryFolder folder;
  Trace trace = RandomTrace(3).make(40);
  trace.lost.clear();
  const std::vector<std::uint8_t> whole = bytes_of(trace, folder);
  std::size_t events_before = 0;
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const std::vector<std::uint8_t> cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
    const Result<Trace> read = read_trace_bytes(cut);
    if (size < sizeof(TraceFileHeader)) {
      ASSERT_FALSE(read.ok()) << size;
      ASSERT_TRUE(read.error().offset.has_value());
      continue;
    }
    ASSERT_TRUE(read.ok()) << size;
    ASSERT_TRUE(check_trace(*read).ok()) << size << ": " << check_trace(*read).error().message();
    ASSERT_GE(read->events.size(), events_before);
    events_before = read->events.size();
    for (std::size_t i = 0; i < read->events.size(); ++i) {
      // Where Allocs are cut off, ids close up.
      Event expected = trace.events[i];
      if (read->allocation_count < trace.allocation_count) expected.allocation = read->events[i].allocation;
      ASSERT_TRUE(read->events[i] == expected) << size << ": event " << i;
    }
    // Right behind the file's header nothing is cut: nothing was begun.
    ASSERT_EQ(lost(*read, kLostCutChunks), size > sizeof(TraceFileHeader) ? 1u : 0u) << size;
    ASSERT_EQ(lost(*read, kLostUnusableEvents) + lost(*read, kLostDamagedChunks) + lost(*read, kLostBadDefinitions), 0u)
        << size;
  }
  EXPECT_EQ(events_before, trace.events.size());
}

TEST(TraceFile, CutBetweenTwoChunksIsCounted) {
  const TemporaryFolder folder;
  std::vector<std::uint8_t> bytes = bytes_of(TrainingTrace().make(30'000), folder);
  ASSERT_GT(bytes.size(), 3 * kTraceUnitBytes);
  bytes.resize(2 * kTraceUnitBytes);
  const Result<Trace> read = read_trace_bytes(bytes);
  ASSERT_TRUE(read.ok());
  EXPECT_GT(read->events.size(), 1000u);
  EXPECT_EQ(lost(*read, kLostUnfinishedWriters), 1u);
}

TEST(TraceFile, DamageInOneChunkLeavesTheOthers) {
  const TemporaryFolder folder;
  const Trace trace = TrainingTrace().make(60'000);
  std::vector<std::uint8_t> bytes = bytes_of(trace, folder);
  ASSERT_GT(bytes.size(), 8 * kTraceUnitBytes);
  for (std::size_t i = 0; i < 200; ++i) bytes[5 * kTraceUnitBytes + 1000 + i] = 0xff;
  const Result<Trace> read = read_trace_bytes(bytes);
  ASSERT_TRUE(read.ok());
  ASSERT_TRUE(check_trace(*read).ok()) << check_trace(*read).error().message();
  EXPECT_GE(lost(*read, kLostDamagedChunks), 1u);
  EXPECT_GT(lost(*read, kLostMissingEvents), 0u);
  EXPECT_GT(read->events.size(), trace.events.size() / 2);
  EXPECT_EQ(read->events.back().time_ns, trace.events.back().time_ns);
}

TEST(TraceFile, RandomDamageNeverBreaksTheInvariants) {
  const TemporaryFolder folder;
  std::mt19937_64 random(5);
  std::vector<std::vector<std::uint8_t>> files;
  for (std::uint64_t seed = 0; seed < 20; ++seed) files.push_back(bytes_of(RandomTrace(seed).make(40), folder));
  for (std::size_t round = 0; round < 5000; ++round) {
    std::vector<std::uint8_t> bytes = files[round % files.size()];
    for (std::uint64_t i = 1 + random() % 5; i > 0; --i)
      bytes[64 + random() % (bytes.size() - 64)] = static_cast<std::uint8_t>(random());
    const Result<Trace> read = read_trace_bytes(bytes);
    ASSERT_TRUE(read.ok());
    ASSERT_TRUE(check_trace(*read).ok()) << check_trace(*read).error().message();
  }
}

Event sync_event(std::int64_t time_ns, std::uint32_t extra) {
  Event event;
  event.kind = EventKind::kSync;
  event.time_ns = time_ns;
  event.extra = extra;
  return event;
}

// A file of one chunk, made record by record.
class HandMadeFile {
 public:
  HandMadeFile() : bytes_(sizeof(TraceFileHeader) + sizeof(ChunkHeader)) {
    const TraceFileHeader header;
    ChunkHeader chunk;
    chunk.chunk_bytes = kTraceUnitBytes;
    std::memcpy(bytes_.data(), &header, sizeof header);
    std::memcpy(bytes_.data() + sizeof header, &chunk, sizeof chunk);
  }
  HandMadeFile& record(std::uint8_t tag, const std::vector<std::uint8_t>& payload) {
    bytes_.push_back(tag);
    bytes_.push_back(static_cast<std::uint8_t>(payload.size()));
    bytes_.insert(bytes_.end(), payload.begin(), payload.end());
    return *this;
  }
  const std::vector<std::uint8_t>& bytes() const { return bytes_; }

 private:
  std::vector<std::uint8_t> bytes_;
};

constexpr std::uint8_t kSyncTag = 0x40 + static_cast<std::uint8_t>(EventKind::kSync);

TEST(TraceFile, HasTheBytesThatTheFormatPageShows) {
  const TemporaryFolder folder;
  Trace trace;
  trace.heaps.emplace_back();
  Event event;
  event.allocation = AllocationId(1);
  trace.events.push_back(event);
  event.allocation = AllocationId(2);
  event.time_ns += 3000;
  event.address += 4096;
  event.size_bytes = 2 << 20;
  trace.events.push_back(event);
  trace.allocation_count = 2;
  const std::vector<std::uint8_t> bytes = bytes_of(trace, folder);
  std::ifstream page(FAULTLINE_FIXTURES "/../../docs/trace-format.md");
  std::string shown_line;
  while (std::getline(page, shown_line) && !shown_line.starts_with("40      06 ")) {
  }
  std::vector<std::uint8_t> end;
  std::istringstream shown_bytes(shown_line);
  for (unsigned byte = 0; shown_bytes >> std::hex >> byte;) end.push_back(static_cast<std::uint8_t>(byte));
  ASSERT_EQ(end.size(), 8u) << "the line of the page: " << shown_line;
  end.insert(end.end(), {0xff, 0x00});  // and the writer's end
  ASSERT_GT(bytes.size(), end.size());
  EXPECT_EQ(std::vector<std::uint8_t>(bytes.end() - static_cast<std::ptrdiff_t>(end.size()), bytes.end()), end);
}

TEST(TraceFile, UnknownRecordsArePassedOverAndCounted) {
  const std::vector<std::uint8_t> file =
      HandMadeFile()
          .record(0x3e, {1, 2, 3})
          .record(kSyncTag, {0x01, 20})  // time + 10
          .record(0x7f, {0x01, 200, 1})  // a kind of event not known yet: time + 100
          .record(0x99, {})
          .record(kSyncTag, {0x81, 0x81, 0x02, 20, 10, 9, 9})  // a field not known yet at the end
          .record(0xff, {})
          .bytes();
  const Result<Trace> read = read_trace_bytes(file);
  ASSERT_TRUE(read.ok());
  ASSERT_EQ(read->events.size(), 2u);
  EXPECT_TRUE(read->events[0] == sync_event(10, 0));
  EXPECT_TRUE(read->events[1] == sync_event(120, 5));
  EXPECT_EQ(lost(*read, kLostUnknownRecords), 3u);
  EXPECT_EQ(read->lost.size(), 1u);
}

TEST(TraceFile, EventWithFieldsBeyondItsLengthIsDamage) {
  const std::vector<std::uint8_t> file = HandMadeFile()
                                             .record(kSyncTag, {0x01, 20})
                                             .record(kSyncTag, {0x01})
                                             .record(kSyncTag, {0x01, 20})
                                             .record(0xff, {})
                                             .bytes();
  const Result<Trace> read = read_trace_bytes(file);
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->events.size(), 1u);
  EXPECT_EQ(lost(*read, kLostDamagedChunks), 1u);
}

TEST(TraceFile, EventsNamingWhatIsNotDefinedAreKeptWithoutItOrLeftOut) {
  const TemporaryFolder folder;
  const std::string path = folder / "trace";
  auto file = TraceFile::create(path);
  ASSERT_TRUE(file.ok());
  {
    TraceFileWriter writer(**file);
    ASSERT_TRUE(writer.define_heap(HeapId(0), {HeapKind::kDriver, 0, HeapId(0), 0, 0, "driver"}).ok());
    Event event;
    event.allocation = AllocationId(4);
    event.stack = StackId(9);
    ASSERT_TRUE(writer.append(event).ok());  // kept without its stack, and as allocation 1
    event.heap = HeapId(3);
    event.allocation = AllocationId(5);
    ASSERT_TRUE(writer.append(event).ok());  // left out
    event.kind = EventKind::kFree;
    event.heap = HeapId(0);
    event.stack = StackId(0);
    ASSERT_TRUE(writer.append(event).ok());  // kept, frees nobody knows what
    event.allocation = AllocationId(4);
    ASSERT_TRUE(writer.append(event).ok());
  }
  ASSERT_TRUE((*file)->close().ok());
  const Result<Trace> read = read_trace_file(path);
  ASSERT_TRUE(read.ok());
  ASSERT_TRUE(check_trace(*read).ok()) << check_trace(*read).error().message();
  ASSERT_EQ(read->events.size(), 3u);
  EXPECT_EQ(read->events[0].allocation, AllocationId(1));
  EXPECT_EQ(read->events[0].stack, StackId(0));
  EXPECT_EQ(read->events[1].allocation, AllocationId(0));
  EXPECT_EQ(read->events[2].allocation, AllocationId(1));
  EXPECT_EQ(lost(*read, kLostUnusableEvents), 1u);
  EXPECT_EQ(lost(*read, kLostUnknownReferences), 2u);
}

TEST(TraceFile, CallsNamingWhatIsNotDefinedAreKeptWithoutIt) {
  const TemporaryFolder folder;
  const std::string path = folder / "trace";
  auto file = TraceFile::create(path);
  ASSERT_TRUE(file.ok());
  {
    TraceFileWriter writer(**file);
    Launch launch;
    launch.kernel = StringId(5);
    ASSERT_TRUE(writer.define_call(LaunchId(3), launch).ok());  // its kernel has no name, so it is none
    Copy copy;
    copy.source = 0x1000;
    ASSERT_TRUE(writer.define_call(CopyId(7), copy).ok());
    Event event;
    event.kind = EventKind::kLaunch;
    event.extra = 3;
    ASSERT_TRUE(writer.append(event).ok());
    event.kind = EventKind::kFault;
    ASSERT_TRUE(writer.append(event).ok());
    event.kind = EventKind::kCopy;
    event.extra = 7;
    ASSERT_TRUE(writer.append(event).ok());
  }
  ASSERT_TRUE((*file)->close().ok());
  const Result<Trace> read = read_trace_file(path);
  ASSERT_TRUE(read.ok());
  ASSERT_TRUE(check_trace(*read).ok()) << check_trace(*read).error().message();
  ASSERT_EQ(read->events.size(), 3u);
  EXPECT_EQ(read->events[0].extra, 0u);
  EXPECT_EQ(read->events[1].extra, 0u);
  EXPECT_EQ(read->events[2].extra, 1u);
  EXPECT_EQ(read->copies.at(CopyId(1)).source, 0x1000u);
  EXPECT_EQ(lost(*read, kLostUnknownReferences), 2u);
}

TEST(TraceFile, ViolationOfAKindThatIsNotKnownYetIsStillOne) {
  std::vector<std::uint8_t> payload = {
      1, 0x05, 99, 0, 0, 0, 7, 0, 0};    // id, a thread and an atomic access, its kind, no names, line 7
  payload.insert(payload.end(), 12, 3);  // four extents
  const std::vector<std::uint8_t> file = HandMadeFile().record(0x11, payload).record(0xff, {}).bytes();
  const Result<Trace> read = read_trace_bytes(file);
  ASSERT_TRUE(read.ok());
  ASSERT_TRUE(check_trace(*read).ok());
  ASSERT_EQ(read->violations.size(), 2u);
  const Violation& violation = read->violations.at(ViolationId(1));
  EXPECT_EQ(violation.kind, ViolationKind::kOther);
  EXPECT_EQ(violation.access, AccessKind::kAtomic);
  EXPECT_EQ(violation.line, 7u);
}

TEST(TraceFile, StreamOfAnOlderFileWaitsForTheDefaultOne) {
  const std::vector<std::uint8_t> file =
      HandMadeFile().record(0x06, {0, 1, 9}).record(0x06, {1, 1, 9, 0}).record(0xff, {}).bytes();
  const Result<Trace> read = read_trace_bytes(file);
  ASSERT_TRUE(read.ok());
  ASSERT_EQ(read->streams.size(), 2u);
  EXPECT_TRUE(read->streams[0] == (Stream{1, 9, true}));
  EXPECT_TRUE(read->streams[1] == (Stream{1, 9, false}));
}

TEST(TraceFile, LaunchOfFourPointersTakesAboutThirtyBytes) {
  const auto bytes_with = [](std::uint32_t launches) {
    const TemporaryFolder folder;
    Trace trace;
    const StringId kernel = trace.strings.intern("_ZN2at6native29vectorized_elementwise_kernelILi4EEEv");
    std::mt19937_64 random(3);
    for (std::uint32_t i = 0; i < launches; ++i) {
      Launch launch{kernel, {static_cast<std::uint32_t>(1 + random() % 4096), 1, 1}, {128, 1, 1}, 0, 0, {}};
      for (std::uint32_t argument = 0; argument < 4; ++argument)
        launch.arguments.push_back({16 + 8 * argument, 0x7f3a40000000 + random() % (1u << 21) * 512});
      trace.launches.intern(launch);
    }
    return static_cast<double>(bytes_of(trace, folder).size());
  };
  const double per_launch = (bytes_with(3000) - bytes_with(1000)) / 2000;
  std::printf("%.1f bytes per launch\n", per_launch);
  EXPECT_LE(per_launch, 36);
}

TEST(TraceFile, WrongFirstBytesAreAnErrorWithItsPlace) {
  const TemporaryFolder folder;
  const std::vector<std::uint8_t> good = bytes_of(RandomTrace(1).make(5), folder);
  const std::vector<std::pair<std::size_t, std::uint64_t>> places = {{0, 0},   {7, 0},   {8, 8},  {11, 8},
                                                                     {12, 12}, {16, 16}, {19, 16}};
  for (const auto& [damage, offset] : places) {
    std::vector<std::uint8_t> bytes = good;
    bytes[damage] ^= 0x41;
    const Result<Trace> read = read_trace_bytes(bytes);
    ASSERT_FALSE(read.ok()) << damage;
    EXPECT_EQ(read.error().offset, offset) << damage;
  }
  EXPECT_TRUE(looks_like_trace_file(good));
  EXPECT_FALSE(looks_like_trace_file(std::vector<std::uint8_t>{'F', 'L'}));
}

TEST(TraceFile, PathThatIsNoFileIsAnError) {
  const TemporaryFolder folder;
  EXPECT_FALSE(read_trace_file(folder / "missing").ok());
  EXPECT_FALSE(read_trace_file(folder / "").ok());
  write_bytes(folder / "empty", {});
  EXPECT_FALSE(read_trace_file(folder / "empty").ok());
}

TEST(TraceFile, ReaderAllocatesOnlyWhatTheFilePaysFor) {
  // Ids of four thousand million, in a file of a few bytes.
  const std::vector<std::uint8_t> huge = {0xff, 0xff, 0xff, 0xff, 0x0f};
  std::vector<std::uint8_t> string = huge;
  string.insert(string.end(), {1, 'x'});
  std::vector<std::uint8_t> frame = {1};
  frame.insert(frame.end(), huge.begin(), huge.end());
  frame.insert(frame.end(), {0, 0});
  std::vector<std::uint8_t> tensor = {1, 0, 0, 0};
  tensor.insert(tensor.end(), huge.begin(), huge.end());
  std::vector<std::uint8_t> event = {0x20};
  event.insert(event.end(), {0xfc, 0xff, 0xff, 0xff, 0x1f});  // allocation + 2^32 - 2
  const std::vector<std::uint8_t> file = HandMadeFile()
                                             .record(0x01, string)
                                             .record(0x02, frame)
                                             .record(0x04, tensor)
                                             .record(0x05, {0, 0, 0, 0, 0, 0, 0})
                                             .record(0x40, event)
                                             .record(0xff, {})
                                             .bytes();
  const Result<Trace> read = read_trace_bytes(file);
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(lost(*read, kLostBadDefinitions), 3u);
  EXPECT_EQ(lost(*read, kLostUnusableEvents), 1u);
  EXPECT_EQ(read->allocation_count, 0u);
}

}  // namespace
}  // namespace faultline
