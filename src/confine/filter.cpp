#include "confine/filter.h"

#include <fcntl.h>
#include <linux/audit.h>
#include <linux/blkpg.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <linux/keyctl.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <linux/sockios.h>
#include <scsi/sg.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <initializer_list>
#include <utility>

#include "confine/calls.h"

namespace faultline::confine {
namespace {

constexpr std::uint32_t kOtherAbi = 0x40000000;  // x32
constexpr std::uint32_t kLastKnownCall = 466;    // removexattrat
constexpr std::uint32_t kLook = SECCOMP_RET_TRACE;
constexpr std::uint32_t refused(int error) { return SECCOMP_RET_ERRNO | static_cast<std::uint32_t>(error); }

constexpr std::uint32_t at_number = offsetof(seccomp_data, nr);
constexpr std::uint32_t at_abi = offsetof(seccomp_data, arch);
constexpr std::uint32_t low_half(int argument) {
  return static_cast<std::uint32_t>(offsetof(seccomp_data, args) + 8 * static_cast<std::size_t>(argument));
}
constexpr std::uint32_t high_half(int argument) { return low_half(argument) + 4; }

class Program {
 public:
  void load(std::uint32_t offset) { code_.push_back(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offset)); }
  void answer(std::uint32_t what) { code_.push_back(BPF_STMT(BPF_RET | BPF_K, what)); }
  void answer_if_equal(std::uint32_t value, std::uint32_t what) {
    code_.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, 1));
    answer(what);
  }
  void answer_if_greater(std::uint32_t value, std::uint32_t what) {
    code_.push_back(BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, value, 0, 1));
    answer(what);
  }
  void keep_bits(std::uint32_t bits) { code_.push_back(BPF_STMT(BPF_ALU | BPF_AND | BPF_K, bits)); }
  // The instructions that `inside` adds are run only where it is equal.
  template <class Inside>
  void where_equal(std::uint32_t value, Inside inside) {
    const std::size_t at = code_.size();
    code_.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, 0));
    inside();
    code_[at].jf = static_cast<std::uint8_t>(code_.size() - at - 1);
  }
  void answer_if_any_bit(std::uint32_t bits, std::uint32_t what) {
    code_.push_back(BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, bits, 0, 1));
    answer(what);
  }
  std::vector<sock_filter> take() { return std::move(code_); }

 private:
  std::vector<sock_filter> code_;
};

// A file's flags, version, key or subvolumes can be changed through a descriptor that may only read it. Of these families what reads passes, and what needs a
// descriptor that may write: such a one leads aside.
void look_at_ioctl(Program& program) {
  constexpr std::uint32_t kFamily = 0xff00, kOfFile = 'f' << 8, kOfVersion = 'v' << 8, kOfXfs = 'X' << 8,
                          kOfBtrfs = 0x9400, kOfLoop = 'L' << 8, kOfMapper = 0xfd00;
  constexpr std::uint32_t kDeduplicate = 0xc0189436;  // FIDEDUPERANGE
  program.load(low_half(1));
  for (const std::uint32_t harmless :
       {static_cast<std::uint32_t>(FS_IOC_GETFLAGS), static_cast<std::uint32_t>(FS_IOC_FIEMAP),
        static_cast<std::uint32_t>(FS_IOC_GETVERSION), static_cast<std::uint32_t>(FS_IOC_FSGETXATTR),
        static_cast<std::uint32_t>(FICLONE), static_cast<std::uint32_t>(FICLONERANGE), kDeduplicate}) {
    program.answer_if_equal(harmless, SECCOMP_RET_ALLOW);
  }
  for (const std::uint32_t whom : {FIOSETOWN, SIOCSPGRP}) program.answer_if_equal(whom, kLook);
  // Types into the user's terminal or hangs it up; changes a disk's partitions or its lock, or talks to it past the kernel.
  for (const std::uint32_t harmful :
       {static_cast<std::uint32_t>(TIOCSTI), static_cast<std::uint32_t>(TIOCLINUX),
        static_cast<std::uint32_t>(TIOCVHANGUP), static_cast<std::uint32_t>(BLKROSET),
        static_cast<std::uint32_t>(BLKRRPART), static_cast<std::uint32_t>(BLKPG), static_cast<std::uint32_t>(SG_IO)})
    program.answer_if_equal(harmful, refused(EPERM));
  program.keep_bits(kFamily);
  for (const std::uint32_t family : {kOfLoop, kOfMapper}) program.answer_if_equal(family, refused(EPERM));
  for (const std::uint32_t family : {kOfFile, kOfVersion, kOfXfs, kOfBtrfs})
    program.answer_if_equal(family, refused(EOPNOTSUPP));
  program.answer(SECCOMP_RET_ALLOW);
}

// A filter that asks another process goes before ours: what that one lets pass, nobody here would see. One that asks so already answers so too.
void look_at_filters(Program& program) {
  program.load(low_half(0));
  program.where_equal(SECCOMP_SET_MODE_FILTER, [&] {
    program.load(low_half(1));
    program.answer_if_any_bit(SECCOMP_FILTER_FLAG_NEW_LISTENER, refused(EBUSY));
  });
  program.answer(SECCOMP_RET_ALLOW);
}

// The machine's own log and keys: what only reads them passes.
void look_at_machine(Program& program) {
  program.where_equal(SYS_syslog, [&] {
    constexpr std::uint32_t kRead = 2, kReadAll = 3, kUnread = 9, kSize = 10;
    program.load(low_half(0));
    for (const std::uint32_t reads : {kRead, kReadAll, kUnread, kSize})
      program.answer_if_equal(reads, SECCOMP_RET_ALLOW);
    program.answer(refused(EPERM));
  });
  program.where_equal(SYS_keyctl, [&] {
    program.load(low_half(0));
    for (const std::uint32_t reads : {KEYCTL_GET_KEYRING_ID, KEYCTL_JOIN_SESSION_KEYRING, KEYCTL_DESCRIBE,
                                      KEYCTL_SEARCH, KEYCTL_READ, KEYCTL_GET_SECURITY, KEYCTL_GET_PERSISTENT})
      program.answer_if_equal(reads, SECCOMP_RET_ALLOW);
    program.answer(refused(EPERM));
  });
}

// Only what may reach another process, or take this one out of sight.
void look_at_processes(Program& program) {
  for (const long number : kCallsOnProcesses) {
    program.where_equal(static_cast<std::uint32_t>(number), [&] {
      program.load(low_half(0));
      program.answer_if_equal(0, SECCOMP_RET_ALLOW);
      program.answer(kLook);
    });
  }
  program.where_equal(SYS_ptrace, [&] {
    program.load(low_half(0));
    for (const std::uint32_t attaches : {PTRACE_ATTACH, PTRACE_SEIZE}) program.answer_if_equal(attaches, kLook);
    program.answer(SECCOMP_RET_ALLOW);
  });
  program.where_equal(SYS_prctl, [&] {
    program.load(low_half(0));
    for (const std::uint32_t dumpable : {PR_SET_DUMPABLE, PR_GET_DUMPABLE}) program.answer_if_equal(dumpable, kLook);
    program.answer(SECCOMP_RET_ALLOW);
  });
  program.where_equal(SYS_clone, [&] {
    program.load(low_half(0));
    program.answer_if_any_bit(CLONE_UNTRACED, kLook);
    program.answer(SECCOMP_RET_ALLOW);
  });
  program.where_equal(SYS_fcntl, [&] {
    program.load(low_half(1));
    for (const std::uint32_t owner : {F_SETOWN, F_SETOWN_EX}) program.answer_if_equal(owner, kLook);
    program.load(at_number);
  });
}

}  // namespace

std::vector<sock_filter> confining_filter(Watched watched) {
  Program program;
  program.load(at_abi);
  program.where_equal(AUDIT_ARCH_X86_64, [&] { program.load(at_number); });
  // The 32-bit architecture's number, which is what is loaded then, has this bit too.
  static_assert((AUDIT_ARCH_I386 & kOtherAbi) != 0);
  program.answer_if_any_bit(kOtherAbi, refused(ENOSYS));
  // whatever it is, nobody looked at it: libraries have another way
  program.answer_if_greater(kLastKnownCall, refused(ENOSYS));
  for (const int number : {SYS_io_uring_setup, SYS_io_uring_enter, SYS_io_uring_register, SYS_mq_open, SYS_mq_unlink,
                           SYS_shmget, SYS_shmat, SYS_shmctl, SYS_msgget, SYS_msgsnd, SYS_msgrcv, SYS_msgctl,
                           SYS_semget, SYS_semop, SYS_semtimedop, SYS_semctl, SYS_uselib})
    program.answer_if_equal(static_cast<std::uint32_t>(number), refused(ENOSYS));
  for (const int number : {SYS_mount,        SYS_umount2,         SYS_pivot_root,
                           SYS_chroot,       SYS_move_mount,      SYS_open_tree,
                           SYS_fsopen,       SYS_fsconfig,        SYS_fsmount,
                           SYS_fspick,       SYS_mount_setattr,   SYS_open_by_handle_at,
                           SYS_swapon,       SYS_swapoff,         SYS_acct,
                           SYS_quotactl,     SYS_quotactl_fd,     SYS_bpf,
                           SYS_setns,        SYS_settimeofday,    SYS_clock_settime,
                           SYS_sethostname,  SYS_setdomainname,   SYS_reboot,
                           SYS_kexec_load,   SYS_kexec_file_load, SYS_init_module,
                           SYS_finit_module, SYS_delete_module,   SYS_iopl,
                           SYS_ioperm,       SYS_vhangup,         SYS_fanotify_init,
                           SYS_add_key}) {
    program.answer_if_equal(static_cast<std::uint32_t>(number), refused(EPERM));
  }
  program.where_equal(SYS_ioctl, [&] { look_at_ioctl(program); });
  program.where_equal(SYS_seccomp, [&] { look_at_filters(program); });
  look_at_machine(program);
  program.where_equal(SYS_sendto, [&] {  // a datagram says where it goes, or the socket knows
    program.load(low_half(4));
    program.where_equal(0, [&] {
      program.load(high_half(4));
      program.answer_if_equal(0, SECCOMP_RET_ALLOW);
    });
    program.answer(kLook);
  });
  look_at_processes(program);
  if (watched == Watched::kFilesAndIdentity) program.answer_if_equal(SYS_fstat, kLook);
  if (watched == Watched::kFilesAndInput) {
    std::vector<long> at_input(kReadingCalls.begin(), kReadingCalls.end());
    at_input.insert(at_input.end(), kDuplicatingCalls.begin(), kDuplicatingCalls.end());
    for (const long number : at_input) {
      program.where_equal(static_cast<std::uint32_t>(number), [&] {
        program.load(low_half(number == SYS_sendfile ? 1 : 0));
        program.answer_if_equal(STDIN_FILENO, kLook);
        program.answer(SECCOMP_RET_ALLOW);
      });
    }
    program.where_equal(SYS_fcntl, [&] {
      program.load(low_half(0));
      program.where_equal(STDIN_FILENO, [&] {
        program.load(low_half(1));
        for (const std::uint32_t duplicates : {F_DUPFD, F_DUPFD_CLOEXEC}) program.answer_if_equal(duplicates, kLook);
      });
      program.answer(SECCOMP_RET_ALLOW);
    });
  }
  for (const int number : watched_calls()) program.answer_if_equal(static_cast<std::uint32_t>(number), kLook);
  program.answer(SECCOMP_RET_ALLOW);
  return program.take();
}

std::vector<sock_filter> reads_filter() {
  Program program;
  program.load(at_number);
  for (const long number : kReadingCalls) program.answer_if_equal(static_cast<std::uint32_t>(number), kLook);
  program.answer(SECCOMP_RET_ALLOW);
  return program.take();
}

std::vector<sock_filter> lists_filter() {
  Program program;
  program.load(at_number);
  for (const std::uint32_t number : {SYS_getdents, SYS_getdents64}) program.answer_if_equal(number, kLook);
  program.answer(SECCOMP_RET_ALLOW);
  return program.take();
}

int confine_this_process(const std::vector<sock_filter>& filter) {
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return errno;
  const sock_fprog program{static_cast<unsigned short>(filter.size()), const_cast<sock_filter*>(filter.data())};
  return ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) == 0 ? 0 : errno;
}

}  // namespace faultline::confine
