#include "trace/keeper.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <new>
#include <set>
#include <utility>

#include "base/units.h"
#include "trace/file_chunks.h"
#include "trace/file_writer.h"
#include "trace/recorded_part.h"

namespace faultline {
namespace {

constexpr auto kBetweenLooks = std::chrono::milliseconds(10);
constexpr int kLooksBetweenCopies = 50;
// a thread that was inside the driver when its process ended may still write for a moment, not for seconds
constexpr int kLooksUntilLeftBehind = 500;
constexpr std::uint64_t kMostReserveBytes = 2 * kGiB;
constexpr std::uint32_t kKeepersWriter = 1u << 31;  // no process has so many threads

struct Disk {
  std::uint64_t size_bytes = 0;
  std::uint64_t free_bytes = 0;
  bool is_known = false;
};
Disk disk_of(const std::string& folder) {
  struct statvfs about {};
  if (::statvfs(folder.c_str(), &about) != 0) return {};
  return {about.f_blocks * about.f_frsize, about.f_bavail * about.f_frsize, true};
}

int write_all(int file, Bytes bytes, std::uint64_t offset) {
  while (!bytes.empty()) {
    const ssize_t written = ::pwrite(file, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return written < 0 ? errno : ENOSPC;
    bytes = bytes.subspan(static_cast<std::size_t>(written));
    offset += static_cast<std::uint64_t>(written);
  }
  return 0;
}

// All of its threads have ended, whether somebody has asked for its status or not.
bool has_gone(pid_t process) {
  const int seen = static_cast<int>(::syscall(SYS_pidfd_open, process, 0));
  if (seen < 0) return errno == ESRCH || (::kill(process, 0) != 0 && errno == ESRCH);
  pollfd end{seen, POLLIN, 0};
  const bool ended = ::poll(&end, 1, 0) == 1;
  ::close(seen);
  return ended;
}

// A few records of the keeper's own, as one chunk in memory.
class OwnWords : public TraceSpace {
 public:
  OwnWords() : TraceSpace(kKeepersWriter), memory_(kTraceUnitBytes - sizeof(TraceFileHeader)) {}
  Result<MappedChunk> take_chunk(std::size_t) override {
    if (taken_) return Error{"the keeper has one chunk", {}, {}};
    taken_ = true;
    return MappedChunk{memory_.data(), memory_.data() + memory_.size(), kTraceUnitBytes, 0, memory_.data()};
  }
  void release(const MappedChunk& chunk, const std::uint8_t* used) override {
    used_ = static_cast<std::size_t>(used - chunk.mapping);
  }
  Bytes bytes() const { return Bytes(memory_).first(used_); }

 private:
  std::vector<std::uint8_t> memory_;
  std::size_t used_ = 0;
  bool taken_ = false;
};

}  // namespace

std::uint64_t disk_reserve(const std::string& folder) {
  return std::min(kMostReserveBytes, disk_of(folder).size_bytes / 20);
}

Result<std::unique_ptr<TraceKeeper>> TraceKeeper::create(const std::string& folder, std::uint64_t most_bytes) {
  const int segment = ::shmget(IPC_PRIVATE, sizeof(SharedRoom), IPC_CREAT | 0600);
  if (segment < 0) return Error{fmt::format("there is no memory to share with it: {}", std::strerror(errno)), {}, {}};
  void* const place = ::shmat(segment, nullptr, 0);
  const int error = errno;
  ::shmctl(segment, IPC_RMID, nullptr);  // it stays for those who have it, and for those who know its number meanwhile
  if (reinterpret_cast<std::intptr_t>(place) == -1)
    return Error{fmt::format("the memory to share with it cannot be had: {}", std::strerror(error)), {}, {}};
  return std::unique_ptr<TraceKeeper>(new TraceKeeper(folder, segment, *static_cast<SharedRoom*>(place), most_bytes));
}

TraceKeeper::TraceKeeper(std::string folder, int segment, SharedRoom& room, std::uint64_t most_bytes)
    : folder_(std::move(folder)),
      segment_(segment),
      room_(room),
      brought_(SharedRoom::kSlots),
      tags_(kTraceUnitBytes),
      copy_(kTraceUnitBytes),
      reserve_bytes_(disk_reserve(folder_)) {
  room_.most_bytes = static_cast<std::int64_t>(std::min<std::uint64_t>(most_bytes, INT64_MAX));
  struct stat about {};
  if (::stat(kPidNamespace, &about) == 0) pid_namespace_ = about.st_ino;
  room_.magic.store(SharedRoom::kMagic, std::memory_order_release);
  look_at_disk();
  // Signals are for the thread that waits for the program.
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::thread([this] { keep(); });
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

TraceKeeper::~TraceKeeper() {
  finish();
  ::shmdt(&room_);
}

void TraceKeeper::keep() {
  for (int looks = 1; !ends_.load(); ++looks) {
    const bool copies = looks % kLooksBetweenCopies == 0;
    if (copies) look_at_disk();
    look(copies);
    std::this_thread::sleep_for(kBetweenLooks);
  }
}

void TraceKeeper::look_at_disk() {
  const Disk disk = disk_of(folder_);
  if (!disk.is_known) return;
  disk_free_bytes_ = disk.free_bytes;
  if (disk.free_bytes < reserve_bytes_ + reserve_bytes_ / 4) {
    disk_was_low_ = true;
    room_.want_less(Wanted::kMemory);
  }
  if (disk.free_bytes < reserve_bytes_) room_.want_less(Wanted::kNothing);
}

void TraceKeeper::look(bool also_taken) {
  const std::uint32_t processes =
      std::min(room_.processes_begun.load(std::memory_order_acquire), SharedRoom::kProcesses);
  files_.resize(processes);
  for (std::uint32_t process = 0; process < processes; ++process) {
    if (!has_file(process) && room_.processes[process].pid.load(std::memory_order_acquire) != 0) create_file(process);
    if (room_.processes[process].has_ended.load(std::memory_order_acquire)) ++files_[process].looks_since_end;
  }
  if (also_taken) look_for_killed();
  std::uint64_t written = 0;
  for (std::uint32_t number = 0; number < SharedRoom::kSlots; ++number) {
    SharedRoom::Slot& slot = room_.slots[number];
    const SharedRoom::SlotState state = slot.state.load(std::memory_order_acquire);
    if (state == SharedRoom::SlotState::kFree || slot.place.load(std::memory_order_acquire) == 0 ||
        !has_file(slot.process))
      continue;  // one that has just begun: next time
    if (state == SharedRoom::SlotState::kTaken) {
      const bool is_left_behind =
          files_[slot.process].looks_since_end > kLooksUntilLeftBehind || files_[slot.process].was_killed;
      if (also_taken || is_left_behind) write_taken(number);
      if (is_left_behind && slot.state.load() == SharedRoom::SlotState::kTaken) free(number, kTraceUnitBytes);
    }
    if (state != SharedRoom::SlotState::kFull) continue;
    const std::uint32_t used = std::min<std::uint32_t>(slot.used_bytes.load(), kTraceUnitBytes);
    bring(number, {room_.memory[number], used});
    free(number, used);
    if (++written % 16 == 0) look_at_disk();
  }
}

// Those that hold slots and have ended without a word: killed, or replaced by another program (exec), which then has begun under the same number.
void TraceKeeper::look_for_killed() {
  std::vector<bool> holds(files_.size());
  for (const SharedRoom::Slot& slot : room_.slots) {
    if (slot.state.load(std::memory_order_acquire) == SharedRoom::SlotState::kTaken &&
        slot.place.load(std::memory_order_acquire) != 0 && has_file(slot.process))
      holds[slot.process] = true;
  }
  std::set<pid_t> begun_later;
  for (std::size_t process = files_.size(); process-- > 0;) {
    const SharedRoom::Process& about = room_.processes[process];
    const pid_t pid = about.pid.load(std::memory_order_acquire);
    // its number says nothing here
    if (pid == 0 || about.pid_namespace.load() != pid_namespace_ || pid_namespace_ == 0) continue;
    const bool is_latest = begun_later.insert(pid).second;
    if (holds[process]) files_[process].was_killed = !is_latest || has_gone(pid);
  }
}

// Those that the command has left behind: a daemon, a job of a script that did not wait.
void TraceKeeper::look_for_running() {
  std::set<pid_t> begun_later;
  for (std::size_t process = files_.size(); process-- > 0;) {
    const SharedRoom::Process& about = room_.processes[process];
    const pid_t pid = about.pid.load(std::memory_order_acquire);
    if (pid == 0 || about.pid_namespace.load() != pid_namespace_ || pid_namespace_ == 0) continue;
    files_[process].runs_on = begun_later.insert(pid).second && !about.has_ended.load() && !has_gone(pid);
  }
}

void TraceKeeper::free(std::uint32_t number, std::uint32_t used_bytes) {
  SharedRoom::Slot& slot = room_.slots[number];
  files_[slot.process].lost_bytes += std::exchange(brought_[number], {}).lost_bytes;
  std::memset(room_.memory[number], 0, kTraceUnitBytes);
  slot.place.store(0);
  room_.bytes.fetch_sub(kTraceUnitBytes - used_bytes);
  slot.state.store(SharedRoom::SlotState::kFree, std::memory_order_release);
}

// A process that replaced itself (exec) has a file of this name already.
void TraceKeeper::create_file(std::uint32_t process) {
  const std::string start = fmt::format("{}/process-{}", folder_, room_.processes[process].pid.load());
  File& file = files_[process];
  file.path = start + ".faultline";
  int opened = -1;
  for (int again = 2;
       (opened = ::open(file.path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600)) < 0 && errno == EEXIST;
       ++again) {
    file.path = fmt::format("{}-{}.faultline", start, again);
  }
  if (opened >= 0) ::fchmod(opened, 0600);  // whatever the umask
  const TraceFileHeader header;
  file.error =
      opened < 0 ? errno : write_all(opened, {reinterpret_cast<const std::uint8_t*>(&header), sizeof header}, 0);
  if (opened >= 0) ::close(opened);
}

// The same slot comes again and again as it fills: each of its bytes is lost once at most, and one that a later time brings to disk is not.
void TraceKeeper::bring(std::uint32_t number, Bytes bytes) {
  const SharedRoom::Slot& slot = room_.slots[number];
  Brought& brought = brought_[number];
  if (write(slot.process, slot.place.load(std::memory_order_acquire) - 1, bytes))
    brought = {bytes.size(), 0};
  else
    brought.lost_bytes = bytes.size() - std::min<std::uint64_t>(brought.kept_bytes, bytes.size());
}

bool TraceKeeper::write(std::uint32_t process, std::uint64_t unit, Bytes bytes) {
  File& file = files_[process];
  // What was on its way when the disk came to its reserve may take half of that.
  if (disk_free_bytes_ < reserve_bytes_ / 2 + bytes.size()) return false;
  disk_free_bytes_ -= bytes.size();
  const int opened = ::open(file.path.c_str(), O_WRONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  const int error =
      opened < 0 ? errno : write_all(opened, bytes, unit * kTraceUnitBytes + (unit == 0 ? sizeof(TraceFileHeader) : 0));
  if (opened >= 0) ::close(opened);
  if (error == 0) return true;
  file.error = error;
  room_.want_less(Wanted::kNothing);
  return false;
}

// A record whose tag stands in the first copy is whole in the second. Where its process has ended in an orderly way, the writer is finished too.
void TraceKeeper::write_taken(std::uint32_t number) {
  const std::uint8_t* const memory = room_.memory[number];
  std::memcpy(tags_.data(), memory, kTraceUnitBytes);
  std::atomic_thread_fence(std::memory_order_acquire);
  std::memcpy(copy_.data(), memory, kTraceUnitBytes);
  std::uint32_t magic = 0;
  std::memcpy(&magic, tags_.data(), sizeof magic);
  if (magic != kChunkMagic) return;
  std::size_t whole = sizeof(ChunkHeader) + whole_record_bytes(Bytes(tags_).subspan(sizeof(ChunkHeader)),
                                                               Bytes(copy_).subspan(sizeof(ChunkHeader)));
  if (room_.processes[room_.slots[number].process].has_ended.load() && whole + 2 <= copy_.size()) {
    copy_[whole++] = static_cast<std::uint8_t>(RecordTag::kWriterFinished);
    copy_[whole++] = 0;
  } else if (whole < copy_.size()) {
    copy_[whole++] = static_cast<std::uint8_t>(RecordTag::kNothingYet);  // so that the chunk does not look cut off
  }
  bring(number, Bytes(copy_).first(whole));
}

void TraceKeeper::finish() {
  if (!thread_.joinable()) return;
  ends_.store(true);
  thread_.join();
  room_.is_over.store(true);
  look(true);
  look_for_running();
  for (std::uint32_t number = 0; number < SharedRoom::kSlots; ++number) {
    if (const std::uint64_t lost_bytes = brought_[number].lost_bytes; lost_bytes != 0)
      files_[room_.slots[number].process].lost_bytes += lost_bytes;
  }
  for (std::uint32_t process = 0; process < files_.size(); ++process) {
    if (has_file(process)) last_words(process);
  }
  if (room_.processes_begun.load() > SharedRoom::kProcesses)
    notes_.push_back(fmt::format("only the first {} processes of the program are recorded", SharedRoom::kProcesses));
}

void TraceKeeper::last_words(std::uint32_t process) {
  SharedRoom::Process& about = room_.processes[process];
  const File& file = files_[process];
  const std::int64_t calls_until = about.calls_until_ns.load();
  std::int64_t recorded_until = about.recorded_until_ns.load();
  const bool is_left = file.runs_on && recorded_until == 0;
  if (is_left)
    recorded_until =
        std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch())
            .count();
  std::string because;
  if (about.has_trouble.load(std::memory_order_acquire))
    because = std::string(about.trouble, ::strnlen(about.trouble, sizeof about.trouble));
  else if (file.error != 0)
    because = fmt::format("the trace cannot be written: {}", std::strerror(file.error));
  else if (calls_until == 0 && recorded_until == 0 && file.lost_bytes == 0)
    return;
  else if (is_left && calls_until == 0 && file.lost_bytes == 0)
    because = "the command had ended";
  else if (disk_was_low_)
    because = fmt::format("{} of the disk are left to the program", format_bytes(reserve_bytes_));
  else
    because = fmt::format("the traces of a run may take {} (--keep)",
                          format_bytes(static_cast<std::uint64_t>(room_.most_bytes)));
  if (const std::int64_t until = calls_until != 0 ? calls_until : recorded_until, begun = about.begun_ns.load();
      until > begun && begun != 0) {
    because = fmt::format("{:.1f} s after it began: {}", static_cast<double>(until - begun) * 1e-9, because);
  }
  OwnWords words;
  {
    TraceFileWriter writer(words);
    if (calls_until != 0) (void)writer.define_property(kCallsUntil, std::to_string(calls_until));
    if (recorded_until != 0) (void)writer.define_property(kRecordedUntil, std::to_string(recorded_until));
    (void)writer.define_property(kEndedBecause, because);
    if (file.lost_bytes != 0) (void)writer.count(kLostUnkept, file.lost_bytes);
  }
  disk_free_bytes_ = UINT64_MAX;  // a few words
  if (!write(process, about.units.fetch_add(1), words.bytes())) {
    const std::string name = file.path.substr(file.path.rfind('/') + 1);
    cut_short_[name.substr(0, name.rfind('.'))] = because;
  }
  if (file.error != 0)
    notes_.push_back(fmt::format("not all of process {} is recorded: {}", about.pid.load(), because));
}

}  // namespace faultline
