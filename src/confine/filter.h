// Which system calls of a confined program stop for Faultline to look at them: those that take a path or change a file by its descriptor, those that
// reach other machines, and reading standard input where it is to be kept. All others run at full speed. Ways around (io_uring, other ABIs, mounts)
// are refused by the kernel itself.
#pragma once

#include <linux/filter.h>
#include <sys/syscall.h>

#include <array>
#include <cstdint>
#include <vector>

namespace faultline::confine {

// Calls that may read standard input, of which all but sendfile (its second) say from where by their first argument; and that may make another descriptor of it.
inline constexpr std::array<long, 9> kReadingCalls = {SYS_read,     SYS_readv,  SYS_preadv2, SYS_recvfrom, SYS_recvmsg,
                                                      SYS_recvmmsg, SYS_splice, SYS_tee,     SYS_sendfile};
inline constexpr std::array<long, 3> kDuplicatingCalls = {SYS_dup, SYS_dup2, SYS_dup3};  // and fcntl

// Calls that change a process, by their first argument; 0 is the caller's own.
inline constexpr std::array<long, 7> kCallsOnProcesses = {
    SYS_prlimit64,     SYS_sched_setaffinity, SYS_sched_setscheduler, SYS_sched_setparam,
    SYS_sched_setattr, SYS_migrate_pages,     SYS_move_pages};

enum class Watched : std::uint8_t {
  kFiles,
  kFilesAndInput,
  kFilesAndIdentity,  // and which file a descriptor stands for: of a process that had files open before
};
std::vector<sock_filter> confining_filter(Watched watched);
// To be added to it where standard input has other descriptors too: every read stops.
std::vector<sock_filter> reads_filter();
// To be added to it where a large folder is listed.
std::vector<sock_filter> lists_filter();

// In the process that is to be confined: after this its calls stop, so somebody must be tracing it. 0, or an errno. Async-signal-safe.
int confine_this_process(const std::vector<sock_filter>& filter);

}  // namespace faultline::confine
