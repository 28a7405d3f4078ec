#include "confine/tracee.h"

#include <elf.h>
#include <fcntl.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstring>

#include "base/descriptor.h"
#include "confine/paths.h"

namespace faultline::confine {
namespace {

constexpr std::size_t kPage = 4096;
constexpr std::array kArguments = {&Registers::rdi, &Registers::rsi, &Registers::rdx,
                                   &Registers::r10, &Registers::r8,  &Registers::r9};

bool through_proc(pid_t thread, std::uint64_t address, void* bytes, std::size_t size, bool write) {
  const std::string path = "/proc/" + std::to_string(thread) + "/mem";
  const Descriptor file(::open(path.c_str(), (write ? O_WRONLY : O_RDONLY) | O_CLOEXEC));
  if (!file) return false;
  const auto at = static_cast<off_t>(address);
  return (write ? ::pwrite(file.number(), bytes, size, at) : ::pread(file.number(), bytes, size, at)) ==
         static_cast<ssize_t>(size);
}

template <class Number>
std::optional<Number> number_in(const std::string& path, const char* form) {
  std::FILE* file = std::fopen(path.c_str(), "re");
  if (file == nullptr) return std::nullopt;
  Number number{};
  bool found = false;
  char line[256];
  while (!found && std::fgets(line, sizeof line, file) != nullptr) found = std::sscanf(line, form, &number) == 1;
  std::fclose(file);
  return found ? std::optional(number) : std::nullopt;
}

}  // namespace

std::uint64_t argument(const Registers& registers, int index) {
  return registers.*kArguments.at(static_cast<std::size_t>(index));
}
void set_argument(Registers& registers, int index, std::uint64_t value) {
  registers.*kArguments.at(static_cast<std::size_t>(index)) = value;
}

std::optional<Registers> read_registers(pid_t thread) {
  Registers registers{};
  if (::ptrace(PTRACE_GETREGS, thread, nullptr, &registers) != 0) return std::nullopt;
  return registers;
}

bool write_registers(pid_t thread, const Registers& registers) {
  return ::ptrace(PTRACE_SETREGS, thread, nullptr, &registers) == 0;
}

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

bool is_hidden(pid_t thread) {
  char target[PATH_MAX];
  return ::readlink(("/proc/" + std::to_string(thread) + "/cwd").c_str(), target, sizeof target) < 0 &&
         (errno == EACCES || errno == EPERM);
}

std::string proc_link(pid_t thread, const std::string& name) {
  return read_link("/proc/" + std::to_string(thread) + "/" + name);
}

std::optional<long long> descriptor_number(pid_t thread, int descriptor, const char* form) {
  return number_in<long long>("/proc/" + std::to_string(thread) + "/fdinfo/" + std::to_string(descriptor), form);
}

unsigned status_number(pid_t thread, const char* format, unsigned otherwise) {
  return number_in<unsigned>("/proc/" + std::to_string(thread) + "/status", format).value_or(otherwise);
}

pid_t process_of(pid_t thread) {
  return static_cast<pid_t>(status_number(thread, "Tgid: %u", static_cast<unsigned>(thread)));
}

}  // namespace faultline::confine
