// One stopped thread of a confined program: its registers, its memory, and room in it for words of ours.
#pragma once

#include <sys/types.h>
#include <sys/user.h>

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace faultline::confine {

using Registers = user_regs_struct;

// What is known of a program's memory, shared by the threads that share the memory: room that was made in it, of which a piece is lent for one call; and whether
// the kernel lets it be looked at.
struct Room {
  static constexpr std::uint64_t kPieceBytes = 16 << 10;
  std::vector<std::uint64_t> free;  // addresses
  bool may_be_hidden = false;       // since it was last looked at: a new program, other rights
  std::optional<int> dumpable;      // what the program is to believe of PR_SET_DUMPABLE, where that is not so
};

// What a thread is in the middle of.
struct Pending {
  enum class Kind : std::uint8_t {
    kNone,
    kMakingRoom,
    kRewritten,
    kWorkingFolder,
    kStandardInput,
    kOneMessage,
    kSeesReads,
    kSeesLists,
    kListing,
    kMadeVisible,
    kIdentity
  };
  Kind kind = Kind::kNone;
  Registers before{};      // as they were when the call began
  std::uint64_t room = 0;  // lent
};

struct Tracee {
  pid_t thread = 0;
  pid_t process = 0;
  std::shared_ptr<Room> room = std::make_shared<Room>();
  Pending pending;
  bool sees_reads = false;  // it stops at every read, not only at those of descriptor 0
  enum class Lists : std::uint8_t { kUnseen, kSeen, kCannotBeSeen };
  Lists lists = Lists::kUnseen;  // whether it stops where it lists a folder
  bool was_live =
      false;  // it ran before it was watched, or comes from one that did: it may remember which files it had open
};

std::uint64_t argument(const Registers& registers, int index);
void set_argument(Registers& registers, int index, std::uint64_t value);

std::optional<Registers> read_registers(pid_t thread);
bool write_registers(pid_t thread, const Registers& registers);

bool read_memory(pid_t thread, std::uint64_t address, void* to, std::size_t size);
bool write_memory(pid_t thread, std::uint64_t address, const void* from, std::size_t size);
// Up to its end or PATH_MAX; nothing where it cannot be read or is longer.
std::optional<std::string> read_path(pid_t thread, std::uint64_t address);

// Its memory cannot be read by the one who watches it: it is not dumpable, by its own wish or because its program may be executed and not read.
bool is_hidden(pid_t thread);

// What a link below /proc/THREAD says.
std::string proc_link(pid_t thread, const std::string& name);
// A number that /proc/THREAD/fdinfo/DESCRIPTOR has on a line of this form: "pos: %lld".
std::optional<long long> descriptor_number(pid_t thread, int descriptor, const char* form);
// A number that /proc/THREAD/status has on a line of this form: "Umask: %o".
unsigned status_number(pid_t thread, const char* format, unsigned otherwise);
pid_t process_of(pid_t thread);

}  // namespace faultline::confine
