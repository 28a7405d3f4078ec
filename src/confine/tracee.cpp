#include "confine/tracee.h"

#include <elf.h>
#include <fcntl.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>

namespace faultline::confine {
namespace {

constexpr std::size_t kPage = 4096;

bool through_proc(pid_t thread, std::uint64_t address, void* bytes, std::size_t size, bool write) {
  const std::string path = "/proc/" + std::to_string(thread) + "/mem";
  const int file = ::open(path.c_str(), (write ? O_WRONLY : O_RDONLY) | O_CLOEXEC);
  if (file < 0) return false;
  const ssize_t done = write ? ::pwrite(file, bytes, size, static_cast<off_t>(address)) : ::pread(file, bytes, size, static_cast<off_t>(address));
  ::close(file);
  return done == static_cast<ssize_t>(size);
}

}  // namespace

std::uint64_t argument(const Registers& registers, int index) {
  switch (index) {
    case 0: return registers.rdi;
    case 1: return registers.rsi;
    case 2: return registers.rdx;
    case 3: return registers.r10;
    case 4: return registers.r8;
    default: return registers.r9;
  }
}

void set_argument(Registers& registers, int index, std::uint64_t value) {
  switch (index) {
    case 0: registers.rdi = value; break;
    case 1: registers.rsi = value; break;
    case 2: registers.rdx = value; break;
    case 3: registers.r10 = value; break;
    case 4: registers.r8 = value; break;
    default: registers.r9 = value; break;
  }
}

std::optional<Registers> read_registers(pid_t thread) {
  Registers registers{};
  if (::ptrace(PTRACE_GETREGS, thread, nullptr, &registers) != 0) return std::nullopt;
  return registers;
}

bool write_registers(pid_t thread, const Registers& registers) { return ::ptrace(PTRACE_SETREGS, thread, nullptr, &registers) == 0; }

bool read_memory(pid_t thread, std::uint64_t address, void* to, std::size_t size) {
  const iovec here{to, size}, there{reinterpret_cast<void*>(address), size};
  if (::process_vm_readv(thread, &here, 1, &there, 1, 0) == static_cast<ssize_t>(size)) return true;
  return through_proc(thread, address, to, size, false);
}

bool write_memory(pid_t thread, std::uint64_t address, const void* from, std::size_t size) {
  const iovec here{const_cast<void*>(from), size}, there{reinterpret_cast<void*>(address), size};
  if (::process_vm_writev(thread, &here, 1, &there, 1, 0) == static_cast<ssize_t>(size)) return true;
  return through_proc(thread, address, const_cast<void*>(from), size, true);
}

std::optional<std::string> read_path(pid_t thread, std::uint64_t address) {
  std::string path;
  char piece[kPage];
  while (path.size() < PATH_MAX) {
    const std::size_t size = kPage - address % kPage;  // never beyond a page that may not be there
    if (!read_memory(thread, address, piece, size)) return std::nullopt;
    if (const std::size_t length = ::strnlen(piece, size); length < size) {
      path.append(piece, length);
      return path.size() < PATH_MAX ? std::optional(path) : std::nullopt;
    }
    path.append(piece, size);
    address += size;
  }
  return std::nullopt;
}

std::string proc_link(pid_t thread, const std::string& name) {
  char target[PATH_MAX];
  const ssize_t size = ::readlink(("/proc/" + std::to_string(thread) + "/" + name).c_str(), target, sizeof target);
  return size > 0 ? std::string(target, static_cast<std::size_t>(size)) : std::string();
}

}  // namespace faultline::confine
