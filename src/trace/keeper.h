// TraceKeeper: the other side of the shared room. Lives in `run`, brings what the program's processes write to disk, and looks after the limits.
//
// A thread of its own goes over the slots a hundred times a second: full ones are written to their process's file, zeroed and freed. Twice a second it also writes what
// the taken ones have so far, so that the files can be read while they grow, and little is lost when everything is killed at once; slots of processes that were killed it frees then. When the
// program has ended, finish() takes the rest: what a killed process left in its slots is all there.
//
// Limits: `most_bytes` for all traces of the run together, and a part of the disk that is left to the program whatever happens (disk_reserve). Half
// of the room that a limit leaves is for everything, the rest for memory events alone; then nothing is taken any more. What was left out from when on
// is said in each trace (trace/recorded_part.h), by the keeper, which still can when the process cannot.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/result.h"
#include "trace/file_chunks.h"
#include "trace/shared_room.h"

namespace faultline {

// Counter: bytes that could not be brought to disk.
inline constexpr const char* kLostUnkept = "trace_file.bytes_not_kept";

class TraceKeeper {
 public:
  static Result<std::unique_ptr<TraceKeeper>> create(const std::string& folder, std::uint64_t most_bytes);
  ~TraceKeeper();
  TraceKeeper(const TraceKeeper&) = delete;
  TraceKeeper& operator=(const TraceKeeper&) = delete;

  std::string room_number() const { return std::to_string(segment_); }  // for kRoomVariable
  // The program has ended. Processes of it that still run record no further.
  void finish();
  // Sentences for whoever reads the report: what went wrong while recording.
  const std::vector<std::string>& notes() const { return notes_; }
  // Traces that could not be written to their end, so that they cannot say so themselves: their names without folder and ending, and why.
  const std::map<std::string, std::string>& cut_short() const { return cut_short_; }

 private:
  struct File {
    std::string path;  // empty: not made yet
    std::int64_t looks_since_end = 0;
    bool was_killed = false;
    bool runs_on = false;  // after the command has ended
    std::uint64_t lost_bytes = 0;
    int error = 0;
  };
  struct Brought {  // of what a slot holds now
    std::uint64_t kept_bytes = 0, lost_bytes = 0;
  };
  TraceKeeper(std::string folder, int segment, SharedRoom& room, std::uint64_t most_bytes);
  void keep();
  void look(bool also_taken);
  void look_at_disk();
  void create_file(std::uint32_t process);
  bool has_file(std::uint32_t process) const { return process < files_.size() && !files_[process].path.empty(); }
  void look_for_killed();
  void look_for_running();
  void bring(std::uint32_t number, Bytes bytes);
  bool write(std::uint32_t process, std::uint64_t unit, Bytes bytes);
  void write_taken(std::uint32_t number);
  void free(std::uint32_t number, std::uint32_t used_bytes);
  void last_words(std::uint32_t process);

  std::string folder_;
  int segment_;
  SharedRoom& room_;
  std::vector<File> files_;       // by process
  std::vector<Brought> brought_;  // by slot
  std::vector<std::uint8_t> tags_, copy_;
  std::vector<std::string> notes_;
  std::map<std::string, std::string> cut_short_;
  std::uint64_t reserve_bytes_ = 0;
  std::uint64_t disk_free_bytes_ = UINT64_MAX;  // when last looked at, less what was written since
  bool disk_was_low_ = false;
  std::uint64_t pid_namespace_ = 0;  // 0: not known
  std::atomic<bool> ends_{false};
  std::thread thread_;
};

// What a recording leaves of a disk to the program: a twentieth of it, at most 2 GiB.
std::uint64_t disk_reserve(const std::string& folder);

}  // namespace faultline
