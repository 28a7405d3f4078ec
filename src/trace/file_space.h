// TraceFile: a growing trace file on disk, shared by all the threads that write it.
//
// It hands out chunks (one atomic addition each), sequence numbers and writer numbers; what is inside a chunk is its writer's business
// (trace/file_writer.h). Disk blocks are reserved before they are mapped, because a store into a mapped hole on a full disk kills the
// process; so a full disk is an Error from take_chunk and everything written before stays. Chunks are shared mappings: what was stored
// there survives the process, killed or not. Nothing here touches the bytes of a chunk already handed out.
//
// Thread-safe throughout. A process that forks must not let the child write: both would hold the same chunk.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "base/result.h"

namespace faultline {

// One writer's piece of the file, mapped. [begin, end) is what it may use, chunk header included.
struct MappedChunk {
  std::uint8_t* begin = nullptr;
  std::uint8_t* end = nullptr;
  std::uint32_t chunk_bytes = 0;   // as the chunk header has it
  std::uint64_t file_offset = 0;   // of the mapping
  std::uint8_t* mapping = nullptr;
};

class TraceFile {
 public:
  // The file must not exist: a trace is never written over.
  static Result<std::unique_ptr<TraceFile>> create(const std::string& path);
  ~TraceFile();
  TraceFile(const TraceFile&) = delete;
  TraceFile& operator=(const TraceFile&) = delete;

  // A zeroed chunk with at least `room_bytes` besides its header. After the first failure every call fails, at once and with the same error.
  Result<MappedChunk> take_chunk(std::size_t room_bytes);
  // Unmaps; `used` is where the writer's last byte stands.
  void release(const MappedChunk& chunk, const std::uint8_t* used);

  std::uint64_t take_sequence() { return sequence_.fetch_add(1, std::memory_order_relaxed); }
  std::uint64_t next_sequence() const { return sequence_.load(std::memory_order_relaxed); }
  std::uint32_t take_writer() { return writers_.fetch_add(1, std::memory_order_relaxed); }

  // Waits until the disk has what is written: for a machine that may lose power. A process that may be killed needs none of it.
  Status sync();
  // Gives back what was reserved and not used. All writers must be finished.
  Status close();

 private:
  explicit TraceFile(int file) : file_(file) {}
  Status write_header();
  Status reserve_until(std::uint64_t end);
  int allocate_blocks(std::uint64_t begin, std::uint64_t end);  // errno

  int file_;
  std::atomic<std::uint64_t> next_unit_{0};
  std::atomic<std::uint64_t> reserved_bytes_{0};
  std::atomic<std::uint64_t> used_bytes_{0};
  std::atomic<std::uint64_t> sequence_{0};
  std::atomic<std::uint32_t> writers_{0};
  std::atomic<std::int64_t> mapped_chunks_{0};
  std::mutex growing_;
  int failed_errno_ = 0;  // guarded by growing_
};

}  // namespace faultline
