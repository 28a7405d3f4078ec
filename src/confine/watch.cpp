#include "confine/watch.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "confine/input_calls.h"

namespace faultline::confine {
namespace {

constexpr std::uint64_t kMostKeptInput = 64ull << 20;
constexpr auto kMomentForChildren = std::chrono::seconds(3);
constexpr int kInstructionBytes = 2;  // of `syscall`

void go_on(pid_t thread, int request, int signal = 0) {
  ::ptrace(static_cast<__ptrace_request>(request), thread, nullptr, static_cast<long>(signal));
}

bool stops_processes(int signal) {
  return signal == SIGSTOP || signal == SIGTSTP || signal == SIGTTIN || signal == SIGTTOU;
}

// Where the kernel does not say, the way the child was made does.
bool shares_memory(pid_t one, pid_t other, bool unless_told) {
  const long answer = ::syscall(SYS_kcmp, one, other, 1 /* KCMP_VM */, 0, 0);
  return answer < 0 ? unless_told : answer == 0;
}

// The kernel writes a core file itself, past every watch: a signal that may end the process in one comes with the limit at nothing.
void forbid_core_file(pid_t thread, int signal) {
  switch (signal) {
    case SIGQUIT:
    case SIGILL:
    case SIGTRAP:
    case SIGABRT:
    case SIGBUS:
    case SIGFPE:
    case SIGSEGV:
    case SIGXCPU:
    case SIGXFSZ:
    case SIGSYS: break;
    default: return;
  }
  rlimit limit{};
  if (::prlimit(thread, RLIMIT_CORE, nullptr, &limit) != 0 || limit.rlim_cur == 0) return;
  limit.rlim_cur = 0;
  ::prlimit(thread, RLIMIT_CORE, &limit, nullptr);
}

}  // namespace

long watch_options() {
  return PTRACE_O_TRACESECCOMP | PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK |
         PTRACE_O_TRACECLONE | PTRACE_O_TRACEEXEC | PTRACE_O_EXITKILL;
}

Watch::Watch(std::string root, std::string own_folder, bool offline, std::optional<int> kept_input,
             const GivenFiles& given)
    : files_(std::move(root), std::move(own_folder)),
      network_(offline),
      given_(given),
      kept_input_(kept_input.value_or(-1)),
      keeps_input_(kept_input.has_value()) {}

Watch::~Watch() {
  if (kept_input_ >= 0) ::close(kept_input_);
}

int Watch::begin(pid_t process) {
  if (::ptrace(PTRACE_SEIZE, process, nullptr, watch_options()) != 0) return errno;
  tracee(process);
  if (keeps_input_) input_link_ = proc_link(process, "fd/0");
  return 0;
}

Tracee& Watch::tracee(pid_t thread) {
  const auto [at, fresh] = tracees_.try_emplace(thread);
  if (fresh) {
    at->second.thread = thread;
    at->second.process = process_of(thread);
    processes_.add(at->second.process);
  }
  return at->second;
}

void Watch::forget(pid_t thread) {
  const auto known = tracees_.find(thread);
  if (known == tracees_.end()) return;
  give_back_room(known->second);
  processes_.remove(known->second.process);
  tracees_.erase(known);
}

int Watch::run(pid_t main) {
  int main_status = 0;
  bool main_ended = false;
  std::chrono::steady_clock::time_point give_up{};
  while (!tracees_.empty()) {
    int status = 0;
    const pid_t thread = ::waitpid(-1, &status, __WALL | __WNOTHREAD | (main_ended ? WNOHANG : 0));
    if (thread < 0) {
      if (errno == EINTR) continue;
      break;
    }
    if (thread == 0) {  // the program is over; its children may still be busy with their own end
      if (std::chrono::steady_clock::now() > give_up) {
        end_those_left();
        break;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
      continue;
    }
    if (WIFSTOPPED(status)) {
      stopped(thread, status);
      continue;
    }
    forget(thread);
    if (thread == main) {
      main_status = status;
      main_ended = true;
      give_up = std::chrono::steady_clock::now() + kMomentForChildren;
    }
  }
  return main_status;
}

void Watch::end_those_left() {
  for (const auto& [thread, tracee] : tracees_) ::kill(tracee.process, SIGKILL);
  int status = 0;
  while (!tracees_.empty()) {
    const pid_t thread = ::waitpid(-1, &status, __WALL | __WNOTHREAD);
    if (thread < 0 && errno == EINTR) continue;
    if (thread < 0) return;
    if (WIFSTOPPED(status))
      go_on(thread, PTRACE_CONT, SIGKILL);
    else
      forget(thread);
  }
}

void Watch::stopped(pid_t thread, int status) {
  const int signal = WSTOPSIG(status), event = status >> 16;
  Tracee& tracee = this->tracee(thread);
  switch (event) {
    case PTRACE_EVENT_SECCOMP: return call_begins(tracee);
    case PTRACE_EVENT_FORK:
    case PTRACE_EVENT_VFORK:
    case PTRACE_EVENT_CLONE:
      has_child(tracee, event);
      return go_on(thread, tracee.pending.kind == Pending::Kind::kNone ? PTRACE_CONT : PTRACE_SYSCALL);
    case PTRACE_EVENT_EXEC: has_new_image(tracee); return go_on(thread, PTRACE_CONT);
    case PTRACE_EVENT_STOP:
      if (stops_processes(signal)) return go_on(thread, PTRACE_LISTEN);
      return go_on(thread, PTRACE_CONT);
    default: break;
  }
  if (signal == (SIGTRAP | 0x80)) return call_ends(tracee);
  forbid_core_file(thread, signal);
  go_on(thread, tracee.pending.kind == Pending::Kind::kNone ? PTRACE_CONT : PTRACE_SYSCALL, signal);
}

// Memory is shared by threads and by a child of vfork; a fork has a copy of it, with the same room at the same addresses.
void Watch::has_child(Tracee& parent, int event) {
  unsigned long child = 0;
  if (::ptrace(PTRACE_GETEVENTMSG, parent.thread, nullptr, &child) != 0) return;
  const std::shared_ptr<Room> room = parent.room;
  Tracee& fresh = tracee(static_cast<pid_t>(child));
  fresh.sees_reads = parent.sees_reads;
  fresh.lists = parent.lists;
  fresh.was_live = parent.was_live;
  fresh.room =
      shares_memory(parent.thread, fresh.thread, event != PTRACE_EVENT_FORK) ? room : std::make_shared<Room>(*room);
}

void Watch::has_new_image(Tracee& tracee) {
  unsigned long former = 0;
  if (::ptrace(PTRACE_GETEVENTMSG, tracee.thread, nullptr, &former) == 0 && static_cast<pid_t>(former) != tracee.thread)
    forget(static_cast<pid_t>(former));
  give_back_room(tracee);
  tracee.room = std::make_shared<Room>();
  tracee.room->may_be_hidden = true;
  tracee.was_live = false;
}

// Lent for a call that did not return: others may share the memory.
void Watch::give_back_room(Tracee& tracee) {
  if (tracee.pending.room != 0) tracee.room->free.push_back(tracee.pending.room);
  tracee.pending = {};
}

void Watch::call_begins(Tracee& tracee) {
  const std::optional<Registers> registers = read_registers(tracee.thread);
  if (!registers) return go_on(tracee.thread, PTRACE_CONT);
  if (std::exchange(tracee.room->may_be_hidden, false) && is_hidden(tracee.thread))
    return make_visible(tracee, *registers);
  if (registers->orig_rax == SYS_chdir && takes_on(tracee, *registers)) return;
  Confinement confinement{files_, network_, processes_, given_, listings_, input_link_};
  carry_out(tracee, *registers, decide(confinement, tracee, *registers));
}

// A process that is no child of the watched one asks, through it, to be watched too: by "going to" …/watch/PID in Faultline's own folder.
// faultline.plan(function) does.
bool Watch::takes_on(Tracee& tracee, const Registers& registers) {
  constexpr std::string_view kDoor = "/watch/";
  const std::optional<std::string> words = read_path(tracee.thread, argument(registers, 0));
  const std::size_t door = words ? words->rfind(kDoor) : std::string::npos;
  if (door == std::string::npos || !files_.is_own(*words)) return false;
  const pid_t process = std::atoi(words->c_str() + door + kDoor.size());
  const int problem = process <= 0 ? ESRCH : ::ptrace(PTRACE_SEIZE, process, nullptr, watch_options()) == 0 ? 0 : errno;
  const pid_t asks = tracee.thread;
  if (problem == 0) {
    this->tracee(process).was_live = true;
    files_.remember_identities();
  }
  carry_out(this->tracee(asks), registers, Decision::answer(-problem));
  return true;
}

void Watch::carry_out(Tracee& tracee, const Registers& registers, const Decision& decision) {
  if (decision.kind == Decision::Kind::kPass) return go_on(tracee.thread, PTRACE_CONT);
  if (decision.kind == Decision::Kind::kPassAndLook) {
    tracee.pending = {decision.look, registers, 0};
    return go_on(tracee.thread, PTRACE_SYSCALL);
  }
  Registers changed = registers;
  const auto answer = [&](long result) {
    changed = registers;
    changed.orig_rax = static_cast<unsigned long long>(-1);
    changed.rax = static_cast<unsigned long long>(result);
    write_registers(tracee.thread, changed);
    go_on(tracee.thread, PTRACE_CONT);
  };
  if (decision.kind == Decision::Kind::kAnswer) return answer(decision.result);
  const bool needs_room = !decision.bytes.empty();
  if (needs_room && tracee.room->free.empty()) return make_room(tracee, registers);
  const std::uint64_t room = needs_room ? tracee.room->free.back() : 0;
  std::uint64_t at = room;
  std::vector<std::uint64_t> pieces;
  for (auto [index, bytes] : decision.bytes) {
    if (at + bytes.size() > room + Room::kPieceBytes) return answer(-ENAMETOOLONG);
    for (const Decision::Pointer& pointer : decision.pointers) {
      if (pointer.in == pieces.size())
        std::memcpy(bytes.data() + pointer.at, &pieces[pointer.to], sizeof pieces[pointer.to]);
    }
    pieces.push_back(at);
    if (!write_memory(tracee.thread, at, bytes.data(), bytes.size())) {
      // Memory that was thought to be shared is not, or the program gave the room away: it gets some of its own.
      tracee.room = std::make_shared<Room>();
      return make_room(tracee, registers);
    }
    if (index != Decision::kNoArgument) set_argument(changed, index, at);
    at += (bytes.size() + 15) / 16 * 16;
  }
  for (const auto& [index, value] : decision.numbers) set_argument(changed, index, value);
  if (decision.as_call >= 0) changed.orig_rax = static_cast<unsigned long long>(decision.as_call);
  if (needs_room) tracee.room->free.pop_back();
  tracee.pending = {decision.look == Pending::Kind::kNone ? Pending::Kind::kRewritten : decision.look, registers, room};
  write_registers(tracee.thread, changed);
  go_on(tracee.thread, PTRACE_SYSCALL);
}

// The program itself is made to say that it may be looked at; it goes on believing what it did.
void Watch::make_visible(Tracee& tracee, const Registers& registers) {
  if (!tracee.room->dumpable) tracee.room->dumpable = 0;
  Decision decision;
  decision.kind = Decision::Kind::kRewrite;
  decision.as_call = SYS_prctl;
  decision.numbers = {{0, PR_SET_DUMPABLE}, {1, 1}};
  decision.look = Pending::Kind::kMadeVisible;
  carry_out(tracee, registers, decision);
}

// The program itself is made to ask for memory, and then to begin its call again.
void Watch::make_room(Tracee& tracee, const Registers& registers) {
  Registers asks = registers;
  asks.orig_rax = SYS_mmap;
  asks.rdi = 0;
  asks.rsi = Room::kPieceBytes;
  asks.rdx = PROT_READ | PROT_WRITE;
  asks.r10 = MAP_PRIVATE | MAP_ANONYMOUS;
  asks.r8 = static_cast<unsigned long long>(-1);
  asks.r9 = 0;
  tracee.pending = {Pending::Kind::kMakingRoom, registers, 0};
  write_registers(tracee.thread, asks);
  go_on(tracee.thread, PTRACE_SYSCALL);
}

void Watch::call_ends(Tracee& tracee) {
  const Pending pending = std::exchange(tracee.pending, {});
  const std::optional<Registers> now = read_registers(tracee.thread);
  if (now && pending.kind == Pending::Kind::kMakingRoom) {
    Registers again = pending.before;
    const auto result = static_cast<long>(now->rax);
    if (result < 0 && result > -4096) {
      again.rax = static_cast<unsigned long long>(-ENOMEM);  // the call itself fails with it
    } else {
      tracee.room->free.push_back(now->rax);
      return begin_again(tracee, pending.before);
    }
    write_registers(tracee.thread, again);
  } else if (now && (pending.kind == Pending::Kind::kRewritten || pending.kind == Pending::Kind::kOneMessage)) {
    if (pending.room != 0) tracee.room->free.push_back(pending.room);
    Registers restored = pending.before;  // a call keeps its arguments' registers
    restored.rax = now->rax;
    // sendmmsg counts messages, and tells of each how much of it was sent
    if (pending.kind == Pending::Kind::kOneMessage && static_cast<long>(now->rax) >= 0) {
      const auto sent = static_cast<unsigned>(now->rax);
      write_memory(tracee.thread, argument(pending.before, 1) + offsetof(mmsghdr, msg_len), &sent, sizeof sent);
      restored.rax = 1;
    }
    write_registers(tracee.thread, restored);
  } else if (now && pending.kind == Pending::Kind::kSeesReads) {
    tracee.room->free.push_back(pending.room);
    tracee.sees_reads = true;
    input_was_cut_ = input_was_cut_ || now->rax != 0;
    return begin_again(tracee, pending.before);
  } else if (now && pending.kind == Pending::Kind::kSeesLists) {
    tracee.room->free.push_back(pending.room);
    tracee.lists = now->rax == 0 ? Tracee::Lists::kSeen : Tracee::Lists::kCannotBeSeen;
    return begin_again(tracee, pending.before);
  } else if (now && pending.kind == Pending::Kind::kListing) {
    tracee.pending.before = *now;
    list_more(tracee);
  } else if (now && pending.kind == Pending::Kind::kMadeVisible) {
    return begin_again(tracee, pending.before);
  } else if (now && pending.kind == Pending::Kind::kIdentity) {
    if (pending.room != 0) tracee.room->free.push_back(pending.room);
    tracee.pending.before = pending.before;
    tracee.pending.before.rax = now->rax;
    if (pending.room != 0) write_registers(tracee.thread, tracee.pending.before);
    fix_identity(tracee);
  } else if (now && pending.kind == Pending::Kind::kWorkingFolder) {
    tracee.pending.before = *now;
    fix_working_folder(tracee);
  } else if (now && pending.kind == Pending::Kind::kStandardInput) {
    tracee.pending.before = *now;
    keep_input(tracee);
  }
  tracee.pending = {};
  go_on(tracee.thread, PTRACE_CONT);
}

// What came between was ours: the call itself is still to be made.
void Watch::begin_again(Tracee& tracee, Registers registers) {
  registers.rip -= kInstructionBytes;
  registers.rax = registers.orig_rax;
  tracee.pending = {};
  write_registers(tracee.thread, registers);
  go_on(tracee.thread, PTRACE_CONT);
}

// The kernel has written the folder's real name; the program is to know it by its own, which is shorter.
void Watch::fix_working_folder(Tracee& tracee) {
  Registers registers = tracee.pending.before;
  const auto size = static_cast<long>(registers.rax);
  if (size <= 0 || size > PATH_MAX) return;
  const std::optional<std::string> real = read_path(tracee.thread, argument(registers, 0));
  if (!real) return;
  const std::string known = files_.known_as(*real);
  if (known == *real || !write_memory(tracee.thread, argument(registers, 0), known.c_str(), known.size() + 1)) return;
  registers.rax = known.size() + 1;
  write_registers(tracee.thread, registers);
}

// A file that it knew before is still the same to it, though a copy is shown.
void Watch::fix_identity(Tracee& tracee) {
  const Registers& registers = tracee.pending.before;
  if (static_cast<long>(registers.rax) != 0) return;
  const auto number = static_cast<int>(registers.orig_rax);
  const std::uint64_t at = argument(registers, number == SYS_statx ? 4 : number == SYS_newfstatat ? 2 : 1);
  if (number == SYS_statx) {
    struct statx told {};
    if (!read_memory(tracee.thread, at, &told, sizeof told)) return;
    const auto original = files_.original_of({makedev(told.stx_dev_major, told.stx_dev_minor), told.stx_ino});
    if (!original) return;
    told.stx_ino = original->number;
    told.stx_dev_major = major(original->device);
    told.stx_dev_minor = minor(original->device);
    write_memory(tracee.thread, at, &told, sizeof told);
    return;
  }
  struct stat told {};
  if (!read_memory(tracee.thread, at, &told, sizeof told)) return;
  const auto original = files_.original_of({told.st_dev, told.st_ino});
  if (!original) return;
  told.st_dev = original->device;
  told.st_ino = original->number;
  write_memory(tracee.thread, at, &told, sizeof told);
}

// The kernel has come to the end of what lies aside: those below it follow.
void Watch::list_more(Tracee& tracee) {
  Registers& registers = tracee.pending.before;
  if (registers.rax != 0) return;
  const Listings::Descriptor descriptor{tracee.process, static_cast<int>(argument(registers, 0))};
  bool too_small = false;
  const std::string bytes = listings_.more(descriptor, argument(registers, 2), too_small);
  if (!bytes.empty() && !write_memory(tracee.thread, argument(registers, 1), bytes.data(), bytes.size())) return;
  registers.rax = too_small ? static_cast<unsigned long long>(-EINVAL) : bytes.size();
  write_registers(tracee.thread, registers);
}

void Watch::keep_input(Tracee& tracee) {
  const auto size = static_cast<long>(tracee.pending.before.rax);
  if (size <= 0) return;
  const std::optional<std::string> bytes = bytes_read(tracee.thread, tracee.pending.before);
  input_was_cut_ = input_was_cut_ || kept_input_ < 0 || !bytes || kept_bytes_ + bytes->size() > kMostKeptInput;
  if (input_was_cut_) return;
  kept_bytes_ += bytes->size();
  for (std::size_t done = 0; done < bytes->size();) {
    const ssize_t put = ::write(kept_input_, bytes->data() + done, bytes->size() - done);
    if (put < 0 && errno != EINTR) {
      input_was_cut_ = true;
      return;
    }
    if (put > 0) done += static_cast<std::size_t>(put);
  }
}

}  // namespace faultline::confine
