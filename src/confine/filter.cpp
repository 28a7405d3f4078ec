#include "confine/filter.h"

#include <fcntl.h>
#include <linux/audit.h>
#include <linux/fs.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <initializer_list>

#include "confine/calls.h"

namespace faultline::confine {
namespace {

constexpr std::uint32_t kOtherAbi = 0x40000000;  // x32
constexpr std::uint32_t kLook = SECCOMP_RET_TRACE;
constexpr std::uint32_t refused(int error) { return SECCOMP_RET_ERRNO | static_cast<std::uint32_t>(error); }

constexpr std::uint32_t at_number = offsetof(seccomp_data, nr);
constexpr std::uint32_t at_abi = offsetof(seccomp_data, arch);
constexpr std::uint32_t low_half(int argument) { return static_cast<std::uint32_t>(offsetof(seccomp_data, args) + 8 * static_cast<std::size_t>(argument)); }
constexpr std::uint32_t high_half(int argument) { return low_half(argument) + 4; }

class Program {
 public:
  void load(std::uint32_t offset) { code_.push_back(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offset)); }
  void answer(std::uint32_t what) { code_.push_back(BPF_STMT(BPF_RET | BPF_K, what)); }
  void answer_if_equal(std::uint32_t value, std::uint32_t what) {
    code_.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, 1));
    answer(what);
  }
  // The next `length` instructions only where it is equal.
  void only_if_equal(std::uint32_t value, std::uint8_t length) { code_.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, length)); }
  void answer_if_any_bit(std::uint32_t bits, std::uint32_t what) {
    code_.push_back(BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, bits, 0, 1));
    answer(what);
  }
  std::vector<sock_filter> take() { return std::move(code_); }

 private:
  std::vector<sock_filter> code_;
};

}  // namespace

std::vector<sock_filter> confining_filter(bool watch_standard_input) {
  Program program;
  program.load(at_abi);
  program.only_if_equal(AUDIT_ARCH_X86_64, 1);
  program.load(at_number);
  // The 32-bit architecture's number, which is what is loaded then, has this bit too.
  static_assert((AUDIT_ARCH_I386 & kOtherAbi) != 0);
  program.answer_if_any_bit(kOtherAbi, refused(ENOSYS));
  for (const int number : {SYS_io_uring_setup, SYS_io_uring_enter, SYS_io_uring_register}) program.answer_if_equal(static_cast<std::uint32_t>(number), refused(ENOSYS));
  for (const int number : {SYS_mount, SYS_umount2, SYS_pivot_root, SYS_chroot, SYS_move_mount, SYS_open_tree, SYS_fsopen, SYS_fsmount, SYS_open_by_handle_at, SYS_swapon, SYS_acct, SYS_mount_setattr}) {
    program.answer_if_equal(static_cast<std::uint32_t>(number), refused(EPERM));
  }
  // Attributes of a file through a descriptor that may only read it.
  program.only_if_equal(SYS_ioctl, 6);
  program.load(low_half(1));
  program.answer_if_equal(FS_IOC_SETFLAGS, refused(EOPNOTSUPP));
  program.answer_if_equal(FS_IOC_FSSETXATTR, refused(EOPNOTSUPP));
  program.answer(SECCOMP_RET_ALLOW);
  // Most stats are of descriptors.
  program.only_if_equal(SYS_newfstatat, 4);
  program.load(low_half(3));
  program.answer_if_any_bit(AT_EMPTY_PATH, SECCOMP_RET_ALLOW);
  program.answer(kLook);
  // A datagram says where it goes, or the socket knows.
  program.only_if_equal(SYS_sendto, 6);
  program.load(low_half(4));
  program.only_if_equal(0, 3);
  program.load(high_half(4));
  program.answer_if_equal(0, SECCOMP_RET_ALLOW);
  program.answer(kLook);
  if (watch_standard_input) {
    program.only_if_equal(SYS_read, 4);
    program.load(low_half(0));
    program.answer_if_equal(STDIN_FILENO, kLook);
    program.answer(SECCOMP_RET_ALLOW);
  }
  for (const int number : watched_calls()) program.answer_if_equal(static_cast<std::uint32_t>(number), kLook);
  program.answer(SECCOMP_RET_ALLOW);
  return program.take();
}

int confine_this_process(const std::vector<sock_filter>& filter) {
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return errno;
  const sock_fprog program{static_cast<unsigned short>(filter.size()), const_cast<sock_filter*>(filter.data())};
  return ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) == 0 ? 0 : errno;
}

}  // namespace faultline::confine
