// TraceSpace: where the writers of one trace get the memory they write into. TraceFile: a trace file that this process grows itself.
//
// A space hands out chunks, sequence numbers and writer numbers; what is inside a chunk is its writer's business (trace/file_writer.h). There are two: the
// TraceFile below, for programs of our own and for dry runs, and the shared room (trace/shared_room.h), for programs that are recorded.
//
// A TraceFile's chunks are shared mappings of the file: what was stored there survives the process, killed or not. No descriptor is kept between two chunks,
// because a program may close every descriptor it finds and be given the number again for a file of its own: each use opens the file by its
// path, makes sure that it is still the same one, and closes it. Disk blocks are reserved before they are mapped, because a store into a mapped hole on a
// full disk kills the process; so a full disk is an Error from take_chunk and everything written before stays. The blocks are reserved with fallocate
// itself; where a file system does not know it, zeros are written in its place, as many as are needed. Nothing here touches the
// bytes of a chunk already handed out.
//
// Thread-safe throughout. A process that forks must not let the child write: both would hold the same chunk.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "base/result.h"

namespace faultline {

// One writer's piece of the trace, in memory. [begin, end) is what it may use, chunk header included.
struct MappedChunk {
  std::uint8_t* begin = nullptr;
  std::uint8_t* end = nullptr;
  std::uint32_t chunk_bytes = 0;  // as the chunk header has it
  std::uint64_t place = 0;        // the space's own: where it stands
  std::uint8_t* mapping = nullptr;
};

class TraceSpace {
 public:
  explicit TraceSpace(std::uint32_t first_writer = 0) : writers_(first_writer) {}
  virtual ~TraceSpace() = default;
  TraceSpace(const TraceSpace&) = delete;
  TraceSpace& operator=(const TraceSpace&) = delete;

  // A zeroed chunk with at least `room_bytes` besides its header. An Error is for good.
  virtual Result<MappedChunk> take_chunk(std::size_t room_bytes) = 0;
  // `used` is where the writer's last byte stands.
  virtual void release(const MappedChunk& chunk, const std::uint8_t* used) = 0;

  std::uint64_t take_sequence() { return sequence_.fetch_add(1, std::memory_order_relaxed); }
  std::uint64_t next_sequence() const { return sequence_.load(std::memory_order_relaxed); }
  std::uint32_t take_writer() { return writers_.fetch_add(1, std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> sequence_{0};
  std::atomic<std::uint32_t> writers_;
};

class TraceFile : public TraceSpace {
 public:
  // The file must not exist: a trace is never written over.
  static Result<std::unique_ptr<TraceFile>> create(const std::string& path);

  // After the first failure every call fails, at once and with the same error.
  Result<MappedChunk> take_chunk(std::size_t room_bytes) override;
  void release(const MappedChunk& chunk, const std::uint8_t* used) override;

  // Gives back what was reserved and not used. All writers must be finished.
  Status close();

 private:
  TraceFile(std::string path, dev_t device, ino_t inode) : path_(std::move(path)), device_(device), inode_(inode) {}
  int open_again() const;  // -errno
  Status write_header();
  Status reserve_until(std::uint64_t end);
  int allocate_blocks(std::uint64_t begin, std::uint64_t end);  // errno

  std::string path_;
  dev_t device_;
  ino_t inode_;
  std::atomic<std::uint64_t> next_unit_{0};
  std::atomic<std::uint64_t> reserved_bytes_{0};
  std::atomic<std::uint64_t> used_bytes_{0};
  std::atomic<std::int64_t> mapped_chunks_{0};
  std::mutex growing_;
  int failed_errno_ = 0;  // guarded by growing_
  bool has_fallocate_ = true;
};

}  // namespace faultline
