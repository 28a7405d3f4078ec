#include "confine/process_calls.h"

#include <fcntl.h>
#include <linux/sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "confine/paths.h"

namespace faultline::confine {
namespace {

namespace fs = std::filesystem;

constexpr unsigned kToGroup = 4;  // PIDFD_SIGNAL_PROCESS_GROUP

// Numbers of processes mean what they mean to us, unless the program lives in a space of its own: there all are its children.
bool has_own_numbers(pid_t thread) { return proc_link(thread, "ns/pid") != read_link("/proc/self/ns/pid"); }

std::vector<pid_t> members_of(pid_t group) {
  std::vector<pid_t> members;
  std::error_code problem;
  for (auto at = fs::directory_iterator("/proc", problem); !problem && at != fs::directory_iterator();
       at.increment(problem)) {
    const std::string name = at->path().filename().string();
    pid_t process = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), process);
    if (error == std::errc() && end == name.data() + name.size() && ::getpgid(process) == group)
      members.push_back(process);
  }
  return members;
}

bool may_be_reached(const Asked& call, pid_t process) {
  return call.confinement.processes.watches(process) || is_over(process) || has_own_numbers(call.tracee.thread);
}

Decision to_one(const Asked& call, pid_t process, int signal) {
  if (signal == 0 || may_be_reached(call, process)) return Decision::pass();
  if (::kill(process, 0) != 0) return Decision::answer(-errno);
  call.confinement.processes.note_unsent(signal, named_process(process));
  return Decision::answer(0);
}

// The watched ones of these get it; of the others it is only noted. Faultline itself is none that the program knows of.
Decision to_many(const Asked& call, const std::vector<pid_t>& processes, int signal) {
  Processes& known = call.confinement.processes;
  const auto is_ours_to_reach = [&](pid_t process) { return known.watches(process) || is_over(process); };
  if (processes.empty() || std::all_of(processes.begin(), processes.end(), is_ours_to_reach)) return Decision::pass();
  for (const pid_t process : processes) {
    if (known.watches(process))
      ::kill(process, signal);
    else if (!is_over(process) && !is_faultline(process) && ::kill(process, 0) == 0)
      known.note_unsent(signal, named_process(process));
  }
  return Decision::answer(0);
}

Decision to_group(const Asked& call, pid_t group, int signal) {
  if (signal == 0 || has_own_numbers(call.tracee.thread)) return Decision::pass();
  return to_many(call, members_of(group), signal);
}

Decision to_everybody(const Asked& call, int signal) {
  if (signal == 0 || has_own_numbers(call.tracee.thread)) return Decision::pass();
  for (const pid_t process : call.confinement.processes.others(call.tracee.process)) ::kill(process, signal);
  call.confinement.processes.note_unsent(signal, "all processes of this machine");
  return Decision::answer(0);
}

// What a descriptor of a process stands for; 0: for none, or one that has ended.
pid_t process_behind(const Asked& call, int index) {
  const auto process = descriptor_number(call.tracee.thread, call.small(index), "Pid: %lld");
  if (process && *process > 0) return static_cast<pid_t>(*process);
  const std::string link = link_of(call, index);  // a folder of /proc is one too
  return link.starts_with("/proc/") ? std::atoi(link.c_str() + 6) : 0;
}

Decision without_untraced(int argument, std::uint64_t flags) {
  Decision decision;
  decision.kind = Decision::Kind::kRewrite;
  decision.numbers.emplace_back(argument, flags & ~static_cast<std::uint64_t>(CLONE_UNTRACED));
  return decision;
}

}  // namespace

Decision kill_call(const Asked& call) {
  const int who = call.small(0), signal = call.small(1);
  if (who == -1) return to_everybody(call, signal);
  if (who <= 0) return to_group(call, who == 0 ? ::getpgid(call.tracee.process) : -who, signal);
  return to_one(call, process_of(who), signal);
}

Decision signal_call(const Asked& call, int signal) {
  return call.small(0) <= 0 ? Decision::pass() : to_one(call, process_of(call.small(0)), call.small(signal));
}

Decision signal_by_descriptor_call(const Asked& call) {
  const pid_t process = process_behind(call, 0);
  if (process <= 0) return Decision::pass();
  if ((call.number(3) & kToGroup) != 0) return to_group(call, ::getpgid(process), call.small(1));
  return to_one(call, process_of(process), call.small(1));
}

Decision reach_call(const Asked& call, int process) {
  const int who = call.small(process);
  return who <= 0 || may_be_reached(call, process_of(who)) ? Decision::pass() : Decision::answer(-EPERM);
}

Decision reach_by_descriptor_call(const Asked& call) {
  const pid_t process = process_behind(call, 0);
  return process <= 0 || may_be_reached(call, process_of(process)) ? Decision::pass() : Decision::answer(-EPERM);
}

Decision priority_call(const Asked& call) {
  if (call.small(0) == PRIO_PROCESS) return reach_call(call, 1);
  return call.small(1) == 0 && call.small(0) == PRIO_PGRP ? Decision::pass() : Decision::answer(-EPERM);
}

Decision owned_call(const Asked& call) {
  const bool by_ioctl = call.registers.orig_rax == SYS_ioctl;
  f_owner_ex owner{F_OWNER_PID, call.small(2)};
  if (by_ioctl && !read_memory(call.tracee.thread, call.number(2), &owner.pid, sizeof owner.pid))
    return Decision::pass();
  if (!by_ioctl && call.small(1) == F_SETOWN_EX &&
      !read_memory(call.tracee.thread, call.number(2), &owner, sizeof owner))
    return Decision::pass();
  const pid_t group = owner.type == F_OWNER_PGRP ? owner.pid : -owner.pid;
  if (owner.pid == 0 || has_own_numbers(call.tracee.thread)) return Decision::pass();
  if (group < 0) return may_be_reached(call, process_of(owner.pid)) ? Decision::pass() : Decision::answer(-EPERM);
  const std::vector<pid_t> members = members_of(group);
  return std::all_of(members.begin(), members.end(), [&](pid_t process) { return may_be_reached(call, process); })
             ? Decision::pass()
             : Decision::answer(-EPERM);
}

Decision clock_call(const Asked& call, int setting) {
  unsigned modes = 0;  // the first of what it points to
  const bool reads = !read_memory(call.tracee.thread, call.number(setting), &modes, sizeof modes) || modes == 0;
  return reads ? Decision::pass() : Decision::answer(-EPERM);
}

Decision clone_call(const Asked& call) { return without_untraced(0, call.number(0)); }

Decision clone_with_arguments_call(const Asked& call) {
  std::string arguments(std::min<std::uint64_t>(call.number(1), 4096), '\0');
  std::uint64_t flags = 0;
  if (arguments.size() < sizeof flags ||
      !read_memory(call.tracee.thread, call.number(0), arguments.data(), arguments.size()))
    return Decision::pass();
  std::memcpy(&flags, arguments.data(), sizeof flags);
  if ((flags & CLONE_UNTRACED) == 0) return Decision::pass();
  flags &= ~static_cast<std::uint64_t>(CLONE_UNTRACED);
  std::memcpy(arguments.data(), &flags, sizeof flags);
  Decision decision;
  decision.kind = Decision::Kind::kRewrite;
  decision.bytes.emplace_back(0, std::move(arguments));
  return decision;
}

Decision dumpable_call(const Asked& call) {
  std::optional<int>& told = call.tracee.room->dumpable;
  if (call.small(0) == PR_GET_DUMPABLE) return told ? Decision::answer(*told) : Decision::pass();
  if (call.number(1) > 1) return Decision::pass();  // which is no such value
  told = call.small(1);
  return Decision::answer(0);
}

Decision rights_call(const Asked& call) {
  call.tracee.room->may_be_hidden = true;
  return Decision::pass();
}

}  // namespace faultline::confine
