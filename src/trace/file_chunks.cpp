#include "trace/file_chunks.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/hash.h"
#include "base/plain_file.h"
#include "trace/file_codec.h"

namespace faultline {
namespace {

// How far whole records reach, and how they stop.
struct Extent {
  std::uint64_t whole_bytes = 0;
  std::uint64_t events = 0;
  bool defines = false;
  RecordTag last = RecordTag::kNothingYet;
  RecordStep stop = RecordStep::kNothingYet;
};

// Tags are believed where `tags`, the older copy, has them; the rest is read from `bytes`.
Extent measure(Bytes tags, Bytes bytes) {
  Extent extent;
  Record record;
  while (extent.whole_bytes < tags.size() && tags[extent.whole_bytes] != 0) {
    extent.stop = read_record(bytes, extent.whole_bytes, record);
    if (extent.stop != RecordStep::kRecord) return extent;
    extent.whole_bytes = record.end;
    extent.last = record.tag;
    if (is_event(record.tag)) {
      ++extent.events;
    } else if (ends_chunk(record.tag)) {
      return extent;
    } else {
      extent.defines = true;
    }
  }
  extent.stop = extent.whole_bytes < tags.size() ? RecordStep::kNothingYet : RecordStep::kCut;
  return extent;
}

Extent measure_now(const TraceBytes& bytes, std::uint64_t offset, std::uint64_t size, std::vector<std::uint8_t>& tags,
                   std::vector<std::uint8_t>& buffer, Bytes& loaded) {
  if (!bytes.may_grow()) {
    loaded = bytes.load(offset, size, buffer);
    return measure(loaded, loaded);
  }
  const Bytes older = bytes.load(offset, size, tags);
  loaded = bytes.load(offset, size, buffer);
  return measure(older.first(std::min(older.size(), loaded.size())), loaded);
}

Result<TraceFileHeader> read_header(const TraceBytes& bytes) {
  TraceFileHeader header;
  std::vector<std::uint8_t> buffer;
  const Bytes loaded = bytes.load(0, sizeof header, buffer);
  const std::size_t magic_seen = std::min(loaded.size(), kTraceFileMagic.size());
  if (magic_seen == 0 ||
      !std::equal(loaded.begin(), loaded.begin() + static_cast<std::ptrdiff_t>(magic_seen), kTraceFileMagic.begin())) {
    return Error{"not a Faultline trace file: the first bytes are not its mark", 0, {}};
  }
  if (loaded.size() < sizeof header) return Error{"the trace file ends inside its header", loaded.size(), {}};
  std::memcpy(&header, loaded.data(), sizeof header);
  if (header.version != kTraceFileVersion) {
    return Error{
        fmt::format("the trace file has version {}, this reader knows version {}", header.version, kTraceFileVersion),
        offsetof(TraceFileHeader, version), "Read it with the Faultline that wrote it, or a newer one."};
  }
  if (header.features != 0) {
    return Error{fmt::format("the trace file uses features {:#x} that this reader does not know", header.features),
                 offsetof(TraceFileHeader, features), "Read it with the Faultline that wrote it, or a newer one."};
  }
  if (!std::has_single_bit(header.unit_bytes) || header.unit_bytes < kLeastUnitBytes ||
      header.unit_bytes > kMostChunkBytes) {
    return Error{fmt::format("the trace file's unit of {} bytes is not possible", header.unit_bytes),
                 offsetof(TraceFileHeader, unit_bytes),
                 {}};
  }
  return header;
}

class Indexer {
 public:
  Indexer(const TraceBytes& bytes, std::uint32_t unit_bytes, const ChunkIndex& before)
      : bytes_(bytes), unit_bytes_(unit_bytes) {
    for (const ChunkExtent& chunk : before.chunks) {
      if (chunk.ended) known_.emplace(chunk.offset, &chunk);
    }
  }

  ChunkIndex run() {
    for (std::uint64_t unit_at = 0; unit_at < bytes_.size();) unit_at += visit_unit(unit_at);
    for (const auto& [writer, finished] : finished_) index_.unfinished_writers += finished ? 0 : 1;
    return std::move(index_);
  }

 private:
  // Returns how many bytes were dealt with, in whole units.
  std::uint64_t visit_unit(std::uint64_t unit_at) {
    const std::uint64_t header_at = unit_at == 0 ? sizeof(TraceFileHeader) : unit_at;
    ChunkHeader header;
    header.magic = 0;
    const Bytes loaded = load_chunk_header(header_at);
    if (loaded.empty()) return unit_bytes_;
    std::memcpy(&header, loaded.data(), loaded.size());
    if (header.magic == 0) return unit_bytes_;
    if (loaded.size() < sizeof header) {
      ++index_.cut_chunks;
      return unit_bytes_;
    }
    if (header.magic != kChunkMagic || header.chunk_bytes == 0 || header.chunk_bytes % unit_bytes_ != 0 ||
        header.chunk_bytes > kMostChunkBytes) {
      ++index_.damaged_chunks;
      return unit_bytes_;
    }
    ChunkExtent chunk;
    chunk.offset = header_at + sizeof header;
    chunk.room_bytes = std::min<std::uint64_t>(unit_at + header.chunk_bytes, bytes_.size()) - chunk.offset;
    chunk.writer = header.writer;
    chunk.next_sequence = header.next_sequence;
    chunk.time_ns = header.time_ns;
    if (const auto known = known_.find(chunk.offset); known != known_.end()) {
      chunk = *known->second;
    } else {
      measure_chunk(chunk);
    }
    finished_[chunk.writer] |= chunk.finished;
    index_.events += chunk.events;
    index_.chunks.push_back(chunk);
    return header.chunk_bytes;
  }

  // The magic is written last, so a header that has it is whole when read again.
  Bytes load_chunk_header(std::uint64_t at) {
    const Bytes first = bytes_.load(at, sizeof(ChunkHeader), buffer_);
    if (!bytes_.may_grow() || first.size() < sizeof(std::uint32_t)) return first;
    std::uint32_t magic = 0;
    std::memcpy(&magic, first.data(), sizeof magic);
    return magic == 0 ? first.first(sizeof magic) : bytes_.load(at, sizeof(ChunkHeader), buffer_);
  }

  void measure_chunk(ChunkExtent& chunk) {
    Bytes loaded;
    const Extent extent = measure_now(bytes_, chunk.offset, chunk.room_bytes, tags_, buffer_, loaded);
    chunk.whole_bytes = extent.whole_bytes;
    chunk.events = extent.events;
    chunk.defines = extent.defines;
    chunk.ended = ends_chunk(extent.last);
    chunk.finished = extent.last == RecordTag::kWriterFinished;
    const bool ran_out = !chunk.ended && extent.stop == RecordStep::kCut;
    const bool file_ends_here = chunk.offset + chunk.room_bytes == bytes_.size();
    if (ran_out && file_ends_here) ++index_.cut_chunks;
    if ((ran_out && !file_ends_here) || extent.stop == RecordStep::kDamaged) ++index_.damaged_chunks;
  }

  const TraceBytes& bytes_;
  std::uint64_t unit_bytes_;
  ChunkIndex index_;
  HashMap<std::uint64_t, const ChunkExtent*> known_;  // by offset
  HashMap<std::uint32_t, bool> finished_;
  std::vector<std::uint8_t> tags_;
  std::vector<std::uint8_t> buffer_;
};

}  // namespace

Result<TraceBytes> TraceBytes::open(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) return Error{fmt::format("the trace file cannot be opened: {}", std::strerror(errno)), {}, {}};
  TraceBytes bytes(file, 0);
  struct stat status {};
  if (::fstat(file, &status) != 0)
    return Error{fmt::format("the trace file cannot be read: {}", std::strerror(errno)), {}, {}};
  if (!S_ISREG(status.st_mode)) return Error{"not a regular file", {}, {}};
  if (std::optional<Error> hollow = hollow_file(file, status)) return *hollow;
  bytes.size_ = static_cast<std::uint64_t>(status.st_size);
  return bytes;
}

void TraceBytes::look_again() {
  struct stat status {};
  if (may_grow() && ::fstat(file_, &status) == 0) size_ = static_cast<std::uint64_t>(status.st_size);
}

TraceBytes::TraceBytes(TraceBytes&& other) noexcept
    : bytes_(other.bytes_), file_(std::exchange(other.file_, -1)), size_(other.size_) {}

TraceBytes::~TraceBytes() {
  if (file_ >= 0) ::close(file_);
}

Bytes TraceBytes::load(std::uint64_t offset, std::uint64_t size, std::vector<std::uint8_t>& buffer) const {
  size = offset < size_ ? std::min(size, size_ - offset) : 0;
  if (!may_grow()) return size == 0 ? Bytes{} : bytes_.subspan(offset, size);
  if (buffer.size() < size) buffer.resize(size);
  std::uint64_t have = 0;
  while (have < size) {
    const ssize_t got = ::pread(file_, buffer.data() + have, size - have, static_cast<off_t>(offset + have));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    have += static_cast<std::uint64_t>(got);
  }
  return Bytes(buffer).first(have);
}

std::size_t whole_record_bytes(Bytes tags, Bytes bytes) { return measure(tags, bytes).whole_bytes; }

Result<ChunkIndex> index_chunks(const TraceBytes& bytes) {
  const Result<TraceFileHeader> header = read_header(bytes);
  if (!header) return header.error();
  return Indexer(bytes, header->unit_bytes, {}).run();
}

Result<ChunkIndex> index_chunks_again(TraceBytes& bytes, const ChunkIndex& before) {
  bytes.look_again();
  const Result<TraceFileHeader> header = read_header(bytes);
  if (!header) return header.error();
  return Indexer(bytes, header->unit_bytes, before).run();
}

Bytes load_records(const TraceBytes& bytes, const ChunkExtent& chunk, std::vector<std::uint8_t>& tags,
                   std::vector<std::uint8_t>& buffer) {
  if (chunk.ended || !bytes.may_grow()) return bytes.load(chunk.offset, chunk.whole_bytes, buffer);
  Bytes loaded;
  const Extent extent = measure_now(bytes, chunk.offset, chunk.room_bytes, tags, buffer, loaded);
  return loaded.first(extent.whole_bytes);
}

}  // namespace faultline
