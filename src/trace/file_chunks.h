// The reader's way to the bytes: where the chunks are, and how far each of them can be trusted.
//
// A file may grow while it is read, so its bytes are never mapped (a file cut short under a mapping kills the reader) but copied, twice:
// a record whose tag stands in the first copy is whole in the second, because a tag is written after its record. The same argument one level
// up gives the order of reading: how far the records reach is noted first (index_chunks), the definitions are read afterwards; so whatever
// an event inside the noted extent names has been read. And once more for the events of several writers, in trace/file_reader.cpp.
// Bytes in memory do not change and are used where they are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/byte_cursor.h"
#include "base/result.h"
#include "trace/file_format.h"

namespace faultline {

class TraceBytes {
 public:
  explicit TraceBytes(Bytes bytes) : bytes_(bytes), size_(bytes.size()) {}
  static Result<TraceBytes> open(const std::string& path);
  ~TraceBytes();
  TraceBytes(TraceBytes&& other) noexcept;
  TraceBytes(const TraceBytes&) = delete;
  TraceBytes& operator=(const TraceBytes&) = delete;

  std::uint64_t size() const { return size_; }
  bool may_grow() const { return file_ >= 0; }
  void look_again();  // how large the file is now
  // What is there of [offset, offset + size) now; `buffer` holds it if it must be copied.
  Bytes load(std::uint64_t offset, std::uint64_t size, std::vector<std::uint8_t>& buffer) const;

 private:
  explicit TraceBytes(int file, std::uint64_t size) : file_(file), size_(size) {}
  Bytes bytes_;
  int file_ = -1;
  std::uint64_t size_ = 0;
};

struct Record {
  RecordTag tag = RecordTag::kNothingYet;
  Bytes payload;
  std::size_t end = 0;  // where the next record begins
};

enum class RecordStep : std::uint8_t { kRecord, kNothingYet, kCut, kDamaged };
// The record at `at`, which may be the end of `bytes`.
inline RecordStep read_record(Bytes bytes, std::size_t at, Record& record) {
  if (at >= bytes.size()) return RecordStep::kCut;
  if (bytes[at] == 0) return RecordStep::kNothingYet;
  record.tag = static_cast<RecordTag>(bytes[at]);
  std::uint64_t length = 0;
  std::size_t body = at + 1;
  bool is_cut = false;
  const auto next = [&]() -> std::uint8_t {
    is_cut = body >= bytes.size();
    return is_cut ? std::uint8_t{0} : bytes[body++];
  };
  const bool is_number = read_varint(next, length, 5);
  if (is_cut) return RecordStep::kCut;
  if (!is_number) return RecordStep::kDamaged;
  if (length > kMostRecordBytes) return RecordStep::kDamaged;
  if (length > bytes.size() - body) return RecordStep::kCut;
  record.payload = bytes.subspan(body, length);
  record.end = body + length;
  return RecordStep::kRecord;
}

struct ChunkExtent {
  std::uint64_t offset = 0;       // of the first record
  std::uint64_t room_bytes = 0;   // from there to the chunk's end or the file's
  std::uint64_t whole_bytes = 0;  // from there to the end of the last whole record
  std::uint32_t writer = 0;
  std::uint64_t next_sequence = 0;
  std::int64_t time_ns = 0;
  std::uint64_t events = 0;  // event records, of whatever kind
  bool defines = false;      // has definition records
  bool ended = false;        // by kChunkFull or kWriterFinished: nothing will be added
  bool finished = false;     // by kWriterFinished
  friend bool operator==(const ChunkExtent&, const ChunkExtent&) = default;
};

struct ChunkIndex {
  std::vector<ChunkExtent> chunks;  // by position
  std::uint64_t events = 0;
  std::uint64_t unfinished_writers = 0;
  std::uint64_t cut_chunks = 0;
  std::uint64_t damaged_chunks = 0;
};

// How far the whole records of a chunk reach that may be growing. `tags` was copied before `bytes`.
std::size_t whole_record_bytes(Bytes tags, Bytes bytes);

// Errors: not a trace file, a version or feature this reader does not know.
Result<ChunkIndex> index_chunks(const TraceBytes& bytes);
// The index of a file that may have grown since; chunks that had ended then are not read again.
Result<ChunkIndex> index_chunks_again(TraceBytes& bytes, const ChunkIndex& before);

// The chunk's whole records as they are now: what the index saw, and what was added since. `tags` and `buffer` hold copies if needed.
Bytes load_records(const TraceBytes& bytes, const ChunkExtent& chunk, std::vector<std::uint8_t>& tags,
                   std::vector<std::uint8_t>& buffer);

}  // namespace faultline
