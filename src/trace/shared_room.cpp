#include "trace/shared_room.h"

#include <sys/shm.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>

namespace faultline {
namespace {

constexpr int kMostWaitMs = 1000;  // for a keeper that is behind; one that is gone does not come back

void wait_a_millisecond() {
  const timespec time{0, 1'000'000};
  ::nanosleep(&time, nullptr);
}

}  // namespace

void SharedRoom::want_less(Wanted most) {
  Wanted now = wanted.load();
  while (now < most && !wanted.compare_exchange_weak(now, most)) {
  }
}

SharedRoom* RoomSpace::attach(int segment, const char*& why) {
  shmid_ds about{};
  if (::shmctl(segment, IPC_STAT, &about) != 0 || about.shm_segsz < sizeof(SharedRoom)) {
    why = "the memory shared with faultline run is not there";
    return nullptr;
  }
  void* const place = ::shmat(segment, nullptr, 0);
  if (reinterpret_cast<std::intptr_t>(place) == -1) {
    why = errno == ENOMEM ? "there is no room in its address space for the memory shared with faultline run"
                          : "the memory shared with faultline run cannot be reached";
    return nullptr;
  }
  auto* const room = static_cast<SharedRoom*>(place);
  if (room->magic.load(std::memory_order_acquire) == SharedRoom::kMagic) return room;
  ::shmdt(place);
  why = "the memory shared with faultline run is of another version";
  return nullptr;
}

std::unique_ptr<RoomSpace> RoomSpace::begin(SharedRoom& room, std::int64_t now_ns) {
  const std::uint32_t process = room.processes_begun.fetch_add(1);
  if (process >= SharedRoom::kProcesses) {
    room.processes_begun.store(SharedRoom::kProcesses + 1);
    return nullptr;
  }
  std::unique_ptr<RoomSpace> space(new RoomSpace(room, process));
  room.processes[process].begun_ns.store(now_ns);
  struct stat about {};
  if (::stat(kPidNamespace, &about) == 0) room.processes[process].pid_namespace.store(about.st_ino);
  room.processes[process].pid.store(::getpid(), std::memory_order_release);
  return space;
}

SharedRoom::Slot* RoomSpace::take_slot(std::uint32_t& number) {
  // The lowest free one: the same few are used again and again, so that the room takes little memory.
  for (number = 0; number < SharedRoom::kSlots; ++number) {
    SharedRoom::Slot& slot = room_.slots[number];
    SharedRoom::SlotState free = SharedRoom::SlotState::kFree;
    if (slot.state.load(std::memory_order_relaxed) == free &&
        slot.state.compare_exchange_strong(free, SharedRoom::SlotState::kTaken, std::memory_order_acquire))
      return &slot;
  }
  return nullptr;
}

Result<MappedChunk> RoomSpace::take_chunk(std::size_t room_bytes) {
  // a chunk may have to stand behind the file's header
  constexpr std::size_t kUsable = kTraceUnitBytes - sizeof(TraceFileHeader);
  if (room_bytes + sizeof(ChunkHeader) > kUsable)
    return Error{"a record is larger than the shared memory has room for", {}, {}};
  if (!is_closing_.load(std::memory_order_relaxed)) {
    const std::int64_t bytes = room_.bytes.load(std::memory_order_relaxed);
    if (bytes >= room_.most_bytes / 2) room_.want_less(Wanted::kMemory);
    if (bytes >= room_.most_bytes) room_.want_less(Wanted::kNothing);
    if (wanted() == Wanted::kNothing) return Error{"no more of the trace is kept", {}, {}};
  }
  std::uint32_t number = 0;
  SharedRoom::Slot* slot = nullptr;
  for (int waited_ms = 0; (slot = take_slot(number)) == nullptr; ++waited_ms) {
    if (room_.is_over.load() || waited_ms == kMostWaitMs) return Error{"faultline run takes nothing any more", {}, {}};
    wait_a_millisecond();
  }
  if (room_.is_over.load()) {
    slot->state.store(SharedRoom::SlotState::kFree);
    return Error{"faultline run has ended", {}, {}};
  }
  room_.bytes.fetch_add(kTraceUnitBytes, std::memory_order_relaxed);
  slot->process = process_;
  slot->place.store(1 + room_.processes[process_].units.fetch_add(1, std::memory_order_relaxed),
                    std::memory_order_release);
  std::uint8_t* const memory = room_.memory[number];
  return MappedChunk{memory, memory + kUsable, kTraceUnitBytes, number, memory};
}

void RoomSpace::release(const MappedChunk& chunk, const std::uint8_t* used) {
  SharedRoom::Slot& slot = room_.slots[chunk.place];
  slot.used_bytes.store(static_cast<std::uint32_t>(used - chunk.mapping), std::memory_order_relaxed);
  slot.state.store(SharedRoom::SlotState::kFull, std::memory_order_release);
}

void RoomSpace::calls_end(std::int64_t now_ns) {
  std::int64_t not_yet = 0;
  room_.processes[process_].calls_until_ns.compare_exchange_strong(not_yet, now_ns);
}

void RoomSpace::recording_ends(std::int64_t now_ns, std::string_view trouble) {
  SharedRoom::Process& process = room_.processes[process_];
  std::int64_t not_yet = 0;
  if (!process.recorded_until_ns.compare_exchange_strong(not_yet, now_ns) || trouble.empty()) return;
  const std::size_t length = std::min(trouble.size(), sizeof process.trouble - 1);
  std::memcpy(process.trouble, trouble.data(), length);
  process.trouble[length] = '\0';
  process.has_trouble.store(true, std::memory_order_release);
}

}  // namespace faultline
