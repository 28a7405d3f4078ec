#include "confine/calls.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <unordered_map>

#include "confine/file_calls.h"
#include "confine/filter.h"
#include "confine/input_calls.h"
#include "confine/process_calls.h"
#include "confine/socket_calls.h"

namespace faultline::confine {
namespace {

// newer than the headers
constexpr int kPidfdSendSignal = 424, kCloneWithArguments = 435, kPidfdGetfd = 438, kProcessMadvise = 440,
              kChangeModeAt = 452, kSetXattrAt = 463, kGetXattrAt = 464, kListXattrAt = 465, kRemoveXattrAt = 466;

using Handler = std::function<Decision(const Asked&)>;

Handler reads(int folder, int path, bool follow) {
  return [=](const Asked& call) { return read_call(call, folder, path, follow); };
}
// The flags of most calls say not to follow a link, or that there are no words but a descriptor.
Handler reads_by_flags(int folder, int path, int flags) {
  return
      [=](const Asked& call) { return read_call(call, folder, path, (call.number(flags) & AT_SYMLINK_NOFOLLOW) == 0); };
}
Handler looks(int folder, int path, bool follow) {
  return [=](const Asked& call) { return with_identity(call, read_call(call, folder, path, follow)); };
}
Handler looks_by_flags(int folder, int path, int flags) {
  return [=](const Asked& call) {
    return with_identity(call, read_call(call, folder, path, (call.number(flags) & AT_SYMLINK_NOFOLLOW) == 0));
  };
}
Handler attributes(int folder, int path, bool follow, bool owner_only) {
  return [=](const Asked& call) { return attribute_call(call, folder, path, follow, owner_only); };
}

Handler reads_input(int descriptor) {
  return [=](const Asked& call) { return input_read_call(call, descriptor); };
}

Handler signals(int signal) {
  return [=](const Asked& call) { return signal_call(call, signal); };
}
Handler reaches(int process) {
  return [=](const Asked& call) { return reach_call(call, process); };
}

using Handlers = std::unordered_map<int, Handler>;

// What looks for files, and at them.
const Handlers& handlers_of_looks() {
  static const Handlers list = {
      {SYS_open,
       [](const Asked& c) {
         return open_call(c, {kNoFolder, 0, c.number(1), c.number(2)});
       }},
      {SYS_creat,
       [](const Asked& c) {
         return open_call(c, {kNoFolder, 0, O_CREAT | O_WRONLY | O_TRUNC, c.number(1)});
       }},
      {SYS_openat,
       [](const Asked& c) {
         return open_call(c, {0, 1, c.number(2), c.number(3)});
       }},
      {SYS_openat2, open_with_how},
      {SYS_stat, looks(kNoFolder, 0, true)},
      {SYS_lstat, looks(kNoFolder, 0, false)},
      {SYS_newfstatat, looks_by_flags(0, 1, 3)},
      {SYS_statx, looks_by_flags(0, 1, 2)},
      {SYS_fstat, [](const Asked& c) { return with_identity(c, Decision::pass()); }},
      {SYS_access, reads(kNoFolder, 0, true)},
      {SYS_faccessat, reads(0, 1, true)},
      {SYS_faccessat2, reads_by_flags(0, 1, 3)},
      {SYS_readlink, reads(kNoFolder, 0, false)},
      {SYS_readlinkat, reads(0, 1, false)},
      {SYS_statfs, reads(kNoFolder, 0, true)},
      {SYS_getxattr, reads(kNoFolder, 0, true)},
      {SYS_lgetxattr, reads(kNoFolder, 0, false)},
      {SYS_listxattr, reads(kNoFolder, 0, true)},
      {SYS_llistxattr, reads(kNoFolder, 0, false)},
      {kGetXattrAt, reads_by_flags(0, 1, 2)},
      {kListXattrAt, reads_by_flags(0, 1, 2)},
      {SYS_inotify_add_watch, reads(kNoFolder, 1, true)},
      {SYS_execve, reads(kNoFolder, 0, true)},
      {SYS_execveat, reads_by_flags(0, 1, 4)},
      {SYS_chdir, change_folder},
      {SYS_getcwd, working_folder},
  };
  return list;
}

// What changes them.
const Handlers& handlers_of_changes() {
  static const Handlers list = {
      {SYS_truncate, attributes(kNoFolder, 0, true, false)},
      {SYS_chmod, attributes(kNoFolder, 0, true, true)},
      {SYS_fchmodat, attributes(0, 1, true, true)},
      {kChangeModeAt,
       [](const Asked& c) {
         return has_no_words(c, 1) ? mode_call(c, 2)
                                   : attribute_call(c, 0, 1, (c.number(3) & AT_SYMLINK_NOFOLLOW) == 0, true);
       }},
      {SYS_chown, attributes(kNoFolder, 0, true, true)},
      {SYS_lchown, attributes(kNoFolder, 0, false, true)},
      {SYS_fchownat, [](const Asked& c) { return owner_call(c, 0, 1, c.number(4)); }},
      {SYS_utime, attributes(kNoFolder, 0, true, false)},
      {SYS_utimes, attributes(kNoFolder, 0, true, false)},
      {SYS_futimesat,
       [](const Asked& c) { return c.number(1) != 0 ? attribute_call(c, 0, 1, true, false) : Decision::answer(0); }},
      {SYS_utimensat, times_call},
      {SYS_setxattr, attributes(kNoFolder, 0, true, true)},
      {SYS_lsetxattr, attributes(kNoFolder, 0, false, true)},
      {SYS_removexattr, attributes(kNoFolder, 0, true, true)},
      {SYS_lremovexattr, attributes(kNoFolder, 0, false, true)},
      {kSetXattrAt, xattr_at_call},
      {kRemoveXattrAt, xattr_at_call},
      {SYS_fchmod, [](const Asked& c) { return mode_call(c, 1); }},
      {SYS_fchown, descriptor_owner_call},
      {SYS_fsetxattr, xattr_call},
      {SYS_fremovexattr, xattr_call},
      {SYS_mkdir, [](const Asked& c) { return make_folder_call(c, kNoFolder, 0); }},
      {SYS_mkdirat, [](const Asked& c) { return make_folder_call(c, 0, 1); }},
      {SYS_mknod, [](const Asked& c) { return make_node_call(c, kNoFolder, 0); }},
      {SYS_mknodat, [](const Asked& c) { return make_node_call(c, 0, 1); }},
      {SYS_symlink, [](const Asked& c) { return make_link_call(c, kNoFolder, 1); }},
      {SYS_symlinkat, [](const Asked& c) { return make_link_call(c, 1, 2); }},
      {SYS_unlink, [](const Asked& c) { return remove_call(c, kNoFolder, 0, false); }},
      {SYS_rmdir, [](const Asked& c) { return remove_call(c, kNoFolder, 0, true); }},
      {SYS_unlinkat, [](const Asked& c) { return remove_call(c, 0, 1, (c.number(2) & AT_REMOVEDIR) != 0); }},
      {SYS_rename, [](const Asked& c) { return rename_call(c, kNoFolder, 0, kNoFolder, 1, 0); }},
      {SYS_renameat, [](const Asked& c) { return rename_call(c, 0, 1, 2, 3, 0); }},
      {SYS_renameat2, [](const Asked& c) { return rename_call(c, 0, 1, 2, 3, c.number(4)); }},
      {SYS_link, [](const Asked& c) { return link_call(c, kNoFolder, 0, kNoFolder, 1, 0); }},
      {SYS_linkat, [](const Asked& c) { return link_call(c, 0, 1, 2, 3, c.number(4)); }},
  };
  return list;
}

// What speaks to others: sockets, the standard input, processes, the machine's settings.
const Handlers& handlers_of_others() {
  static const Handlers list = {
      {SYS_bind, bind_call},
      {SYS_connect, connect_call},
      {SYS_sendto, send_to_call},
      {SYS_sendmsg, send_message_call},
      {SYS_sendmmsg, send_messages_call},
      {SYS_read, reads_input(0)},
      {SYS_readv, reads_input(0)},
      {SYS_preadv2, reads_input(0)},
      {SYS_recvfrom, reads_input(0)},
      {SYS_recvmsg, reads_input(0)},
      {SYS_recvmmsg, reads_input(0)},
      {SYS_splice, reads_input(0)},
      {SYS_tee, reads_input(0)},
      {SYS_sendfile, reads_input(1)},
      {SYS_dup, input_copied_call},
      {SYS_dup2, input_copied_call},
      {SYS_dup3, input_copied_call},
      {SYS_fcntl,
       [](const Asked& c) {
         return c.small(1) == F_SETOWN || c.small(1) == F_SETOWN_EX ? owned_call(c) : input_copied_call(c);
       }},
      {SYS_ioctl, owned_call},
      {SYS_adjtimex, [](const Asked& c) { return clock_call(c, 0); }},
      {SYS_clock_adjtime, [](const Asked& c) { return clock_call(c, 1); }},
      {SYS_kill, kill_call},
      {SYS_tkill, signals(1)},
      {SYS_tgkill, signals(2)},
      {SYS_rt_sigqueueinfo, signals(1)},
      {SYS_rt_tgsigqueueinfo, signals(2)},
      {kPidfdSendSignal, signal_by_descriptor_call},
      {SYS_getdents, list_call},
      {SYS_getdents64, list_call},
      {SYS_ptrace, reaches(1)},
      {SYS_process_vm_writev, reaches(0)},
      {kPidfdGetfd, reach_by_descriptor_call},
      {kProcessMadvise, reach_by_descriptor_call},
      {SYS_prlimit64, reaches(0)},
      {SYS_sched_setaffinity, reaches(0)},
      {SYS_sched_setscheduler, reaches(0)},
      {SYS_sched_setparam, reaches(0)},
      {SYS_sched_setattr, reaches(0)},
      {SYS_migrate_pages, reaches(0)},
      {SYS_move_pages, reaches(0)},
      {SYS_setpriority, priority_call},
      {SYS_ioprio_set, priority_call},
      {SYS_clone, clone_call},
      {kCloneWithArguments, clone_with_arguments_call},
      {SYS_prctl, dumpable_call},
      {SYS_setuid, rights_call},
      {SYS_setgid, rights_call},
      {SYS_setreuid, rights_call},
      {SYS_setregid, rights_call},
      {SYS_setresuid, rights_call},
      {SYS_setresgid, rights_call},
      {SYS_setfsuid, rights_call},
      {SYS_setfsgid, rights_call},
      {SYS_capset, rights_call},
  };
  return list;
}

const Handlers& handlers() {
  static const Handlers all = [] {
    Handlers list = handlers_of_looks();
    list.insert(handlers_of_changes().begin(), handlers_of_changes().end());
    list.insert(handlers_of_others().begin(), handlers_of_others().end());
    return list;
  }();
  return all;
}

// The filter looks at the arguments of these before it lets them stop.
bool has_filter_of_its_own(int number) {
  const auto is_one_of = [=](const auto& calls) {
    return std::find(calls.begin(), calls.end(), number) != calls.end();
  };
  return number == SYS_sendto || number == SYS_fcntl || number == SYS_ptrace || number == SYS_clone ||
         number == SYS_prctl || number == SYS_ioctl || number == SYS_fstat || number == SYS_getdents ||
         number == SYS_getdents64 || is_one_of(kReadingCalls) || is_one_of(kDuplicatingCalls) ||
         is_one_of(kCallsOnProcesses);
}

}  // namespace

const std::vector<int>& watched_calls() {
  static const std::vector<int> numbers = [] {
    std::vector<int> list;
    for (const auto& [number, handler] : handlers()) {
      if (!has_filter_of_its_own(number)) list.push_back(number);
    }
    return list;
  }();
  return numbers;
}

Decision decide(Confinement& confinement, const Tracee& tracee, const Registers& registers) {
  const auto handler = handlers().find(static_cast<int>(registers.orig_rax));
  if (handler == handlers().end()) return Decision::pass();
  return handler->second(Asked{confinement, tracee, registers});
}

}  // namespace faultline::confine
