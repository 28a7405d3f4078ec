// The shared room: memory that the processes of a recorded run write their traces into, and that `run` holds beside them and brings to disk.
//
//   run ── creates ──▶ ┌────────┬───────────┬──────┬────────┬────────┬─ … ┐ ◀── attaches ── every process of the program that uses the driver
//                      │ limits │ processes │ slot │ slot 0 │ slot 1 │    │
//   TraceKeeper        │        │           │ list │ 64 KiB │ 64 KiB │    │     RoomSpace: takes a free slot for each chunk of a thread, fills it,
//   writes slots ◀──── └────────┴───────────┴──────┴────────┴────────┴─ … ┘     marks it full, takes the next
//   to DIR/process-PID.faultline, zeroes them, marks them free
//
// Why not a file that the program itself writes. A descriptor that we keep open in somebody's process can be closed there (closefrom, daemons) and its number
// given to a file of the program's own; and a store into a mapped file ends the process with SIGBUS when the file is cut short, the disk
// fills, or a network file system loses its server. Here the program holds no descriptor, opens no trace, and writes to no disk: what it
// stores into is a System V segment, which nobody can shrink, which has its memory from the start, and which outlives the process that wrote it. So
// a process that is killed loses nothing complete, no disk is waited for inside a launch, and the limits of a run (how much is kept, how much
// of the disk is left) are looked at in one place for all of its processes. The segment is marked for removal as soon as it is there: it goes with the last process that has it.
//
// What is given up: when `run` itself is killed, recording ends. What was taken to disk until then can be read; that is at most half a second old.
//
// A slot is free, taken or full. Only a process makes it taken (one compare-and-swap) and full, only the keeper makes it free, zeroed. While taken, its bytes follow
// the trace file's own rule (a record's tag is written last), so the keeper can also copy what is there so far.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "trace/file_format.h"
#include "trace/file_space.h"

namespace faultline {

// the segment's number, for the processes of the program
inline constexpr const char* kRoomVariable = "FAULTLINE_ROOM";

inline constexpr const char* kPidNamespace = "/proc/self/ns/pid";

// How much is still recorded, of all the processes of a run. It only ever goes down.
enum class Wanted : std::uint32_t {
  // memory alone: no launches, copies and waits any more, which are most of a trace
  kAll,
  kMemory,
  kNothing,
};

struct SharedRoom {
  static constexpr std::uint64_t kMagic = 0x324d4f4f52544c46;  // "FLTROOM2"
  static constexpr std::uint32_t kSlots = 1024;
  static constexpr std::uint32_t kProcesses = 2048;

  enum class SlotState : std::uint32_t { kFree, kTaken, kFull };
  struct alignas(64) Slot {
    std::atomic<SlotState> state;
    std::uint32_t process;                  // which of `processes`
    std::atomic<std::uint64_t> place;       // 1 + the unit of its file that it goes to; 0: not known yet
    std::atomic<std::uint32_t> used_bytes;  // set with kFull
  };
  struct alignas(64) Process {
    std::atomic<std::int32_t> pid;             // 0: not begun
    std::atomic<std::uint64_t> pid_namespace;  // where the number means it; 0: not known
    std::atomic<std::uint64_t> units;          // of its file, handed out so far
    std::atomic<std::int64_t> begun_ns;
    std::atomic<std::int64_t> calls_until_ns;     // launches, copies and waits are recorded until then; 0: to the end
    std::atomic<std::int64_t> recorded_until_ns;  // anything is
    std::atomic<bool> has_ended;                  // of itself: nothing is written any more, by no thread
    std::atomic<bool> has_trouble;
    char trouble[159];  // why recording ended before the process did; set before has_trouble
  };

  std::atomic<std::uint64_t> magic;
  std::int64_t most_bytes;          // of all traces together
  std::atomic<std::int64_t> bytes;  // what they have so far, the slots in use counted whole
  std::atomic<Wanted> wanted;
  std::atomic<bool> is_over;                   // the keeper has gone
  std::atomic<std::uint32_t> processes_begun;  // one more than kProcesses: some were turned away
  Process processes[kProcesses];
  Slot slots[kSlots];
  alignas(4096) std::uint8_t memory[kSlots][kTraceUnitBytes];  // shmat promises pages, no more

  void want_less(Wanted most);
};
static_assert(std::atomic<SharedRoom::SlotState>::is_always_lock_free &&
              std::atomic<std::int64_t>::is_always_lock_free);

// One process's hand on the room. Thread-safe. In a forked child it is the parent's: the child begins one of its own in the same room.
class RoomSpace : public TraceSpace {
 public:
  // Attaches to the segment, once for the life of the process. Null, and why, where that is not possible.
  static SharedRoom* attach(int segment, const char*& why);
  // Null where the room knows no more processes.
  static std::unique_ptr<RoomSpace> begin(SharedRoom& room, std::int64_t now_ns);

  // Waits up to a second for a slot to become free; then, and when no more is wanted, an Error, for good.
  Result<MappedChunk> take_chunk(std::size_t room_bytes) override;
  void release(const MappedChunk& chunk, const std::uint8_t* used) override;

  Wanted wanted() const { return room_.wanted.load(std::memory_order_relaxed); }
  // What is written from now on are a few words at the end: they are taken whatever is wanted.
  void closes() { is_closing_.store(true); }
  // Said in the report; none of these allocates.
  void calls_end(std::int64_t now_ns);
  void recording_ends(std::int64_t now_ns, std::string_view trouble);
  void has_ended() { room_.processes[process_].has_ended.store(true, std::memory_order_release); }

 private:
  RoomSpace(SharedRoom& room, std::uint32_t process) : room_(room), process_(process) {}
  SharedRoom::Slot* take_slot(std::uint32_t& number);

  SharedRoom& room_;
  std::uint32_t process_;
  std::atomic<bool> is_closing_{false};
};

}  // namespace faultline
