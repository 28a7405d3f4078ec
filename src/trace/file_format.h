// The bytes of a trace file. docs/trace-format.md tells the whole story; this header is the part that the compiler can hold us to.
//
//   unit 0                                unit 1                         unit 2
//   ┌────────┬───────┬─────────────────┬──┬───────┬────────────────────┬──┬───── …
//   │ file   │ chunk │ record record … │0 │ chunk │ record record …    │0 │ zeros: taken by a thread that has not begun, or not taken yet
//   │ header │ header│                 │  │ header│                    │  │
//   └────────┴───────┴─────────────────┴──┴───────┴────────────────────┴──┴───── …
//     64        32
//   record: ┌─────┬────────┬─────────────┐   The tag is written last, so a record is there whole or not at all; a zero tag means that
//           │ tag │ varint │   payload   │   nothing has been written here yet. The length lets a reader pass over a tag it does not know.
//           │ u8  │ length │             │
//           └─────┴────────┴─────────────┘
//
// A unit is 64 KiB; a chunk is one unit (or several, for a record larger than a unit) and has one writer. All numbers are little-endian.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace faultline {

static_assert(std::endian::native == std::endian::little,
              "trace files are little-endian and copied in and out as they are");

inline constexpr std::array<std::uint8_t, 8> kTraceFileMagic = {0x89, 'F', 'L', 'T', 'R', 'A', 'C', 'E'};
inline constexpr std::uint32_t kTraceFileVersion = 1;
inline constexpr std::uint32_t kTraceUnitBytes = 64 * 1024;
inline constexpr std::uint32_t kLeastUnitBytes = 4 * 1024;
inline constexpr std::uint32_t kMostChunkBytes = 1u << 30;
// the payload, so that headers and marks fit beside it
inline constexpr std::uint32_t kMostRecordBytes = kMostChunkBytes - 1024;

struct TraceFileHeader {
  std::array<std::uint8_t, 8> magic = kTraceFileMagic;
  std::uint32_t version = kTraceFileVersion;
  std::uint32_t features = 0;  // a bit the reader does not know means that it cannot read the file
  std::uint32_t unit_bytes = kTraceUnitBytes;
  std::array<std::uint8_t, 44> reserved = {};
};
static_assert(sizeof(TraceFileHeader) == 64);

inline constexpr std::uint32_t kChunkMagic = 0x4B4E4843;  // "CHNK"

struct ChunkHeader {
  std::uint32_t magic = kChunkMagic;  // written last: until then the unit reads as not taken
  std::uint32_t chunk_bytes = 0;      // from the start of its first unit, a multiple of the unit
  std::uint32_t writer = 0;           // chunks of one writer stand in its own order
  std::uint32_t reserved = 0;
  std::uint64_t next_sequence = 0;  // the first event's sequence number, unless it says otherwise
  std::int64_t time_ns = 0;         // what the first event's time counts from
};
static_assert(sizeof(ChunkHeader) == 32);

// 0x01-0x3f define, 0x40-0x7f are events (0x40 + EventKind), 0x80-0xff steer the reader. 0x00 is never a record.
enum class RecordTag : std::uint8_t {
  kNothingYet = 0x00,
  kString = 0x01,
  kFrame = 0x02,
  kStack = 0x03,
  kTensor = 0x04,
  kHeap = 0x05,
  kStream = 0x06,
  kDevice = 0x07,
  kProperty = 0x08,
  kCounter = 0x09,
  kSource = 0x0a,
  kFinalBlock = 0x0b,
  kFinalSegment = 0x0c,
  kFinalState = 0x0d,
  kLaunch = 0x0e,
  kCopy = 0x0f,
  kFault = 0x10,
  kViolation = 0x11,
  kFirstEvent = 0x40,
  kLastEvent = 0x7f,
  kChunkFull = 0xfe,       // the writer goes on in another chunk
  kWriterFinished = 0xff,  // the writer is done
};
constexpr bool is_event(RecordTag tag) { return tag >= RecordTag::kFirstEvent && tag <= RecordTag::kLastEvent; }
constexpr bool ends_chunk(RecordTag tag) { return tag >= RecordTag::kChunkFull; }

// Named counters that reading a file may add to Trace::lost.
// killed, cut off, or still writing
inline constexpr const char* kLostUnfinishedWriters = "trace_file.unfinished_writers";
inline constexpr const char* kLostCutChunks = "trace_file.cut_chunks";  // the file ends inside a chunk
// bytes that are no record; the rest of the chunk is lost
inline constexpr const char* kLostDamagedChunks = "trace_file.damaged_chunks";
inline constexpr const char* kLostUnknownRecords = "trace_file.unknown_records";  // passed over
inline constexpr const char* kLostBadDefinitions = "trace_file.bad_definitions";  // passed over
inline constexpr const char* kLostMissingEvents = "trace_file.missing_events";    // gaps in the sequence numbers
// of an unknown heap, stream or device, or made twice
inline constexpr const char* kLostUnusableEvents = "trace_file.unusable_events";
// stack, tensor, call, name or allocation; event kept without it
inline constexpr const char* kLostUnknownReferences = "trace_file.unknown_references";
inline constexpr const char* kLostFinalState = "trace_file.incomplete_final_state";  // left out
// written by a writer that could get no more room
inline constexpr const char* kLostWriterStopped = "trace_file.writers_out_of_space";
// written by the same when it was closed
inline constexpr const char* kLostDroppedRecords = "trace_file.dropped_records";

}  // namespace faultline
