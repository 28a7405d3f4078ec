// dlopen, as the program finds it: whoever opens the driver under another name than libcuda.so.1 (libcuda.so, its full path) gets the recorder as well.
//
// Every other call goes on to the C library as if nothing stood here: by a jump, so that it sees the caller's own address, by which the loader decides where to look (RUNPATH).
// What is not there without Faultline is not there with it: the real file is opened first, and its absence is the answer. A virtual GPU brings its driver along.
#include "capture/open_driver.h"

#include <dlfcn.h>

#include <atomic>
#include <cstdlib>
#include <cstring>

namespace faultline::capture {
namespace {

using Open = void* (*)(const char*, int);

// libcuda.so, libcuda.so.580.65.06, and with a folder before it libcuda.so.1 too; that name alone is the recorder's own.
bool names_driver(const char* name) {
  const char* const slash = std::strrchr(name, '/');
  const char* const file = slash != nullptr ? slash + 1 : name;
  constexpr const char* kDriver = "libcuda.so";
  if (std::strncmp(file, kDriver, std::strlen(kDriver)) != 0) return false;
  const char* const rest = file + std::strlen(kDriver);
  if (*rest == '\0') return true;
  return *rest == '.' && rest[1] != '\0' && std::strspn(rest, ".0123456789") == std::strlen(rest) &&
         (slash != nullptr || std::strcmp(rest, ".1") != 0);
}

// this thread opens the real driver for the recorder
thread_local bool is_ours __attribute__((tls_model("initial-exec"))) = false;

}  // namespace

extern "C" {
__attribute__((visibility("hidden"))) std::atomic<Open> faultline_next_dlopen{nullptr};
}

// The name to open in its place.
extern "C" __attribute__((visibility("hidden"))) const char* faultline_name_to_open(const char* name, int flags) {
  Open next = faultline_next_dlopen.load(std::memory_order_acquire);
  if (next == nullptr) {
    next = reinterpret_cast<Open>(::dlsym(RTLD_NEXT, "dlopen"));
    faultline_next_dlopen.store(next, std::memory_order_release);
  }
  if (name == nullptr || is_ours || (flags & RTLD_NOLOAD) != 0 || !names_driver(name)) return name;
  static const bool brings_driver = std::getenv("FAULTLINE_VGPU") != nullptr;
  static const bool stands_before_one = std::getenv("FAULTLINE_DRIVER") != nullptr;
  if (!stands_before_one || (!brings_driver && next(name, RTLD_LAZY | RTLD_LOCAL) == nullptr)) return name;
  return "libcuda.so.1";  // this very library, by its own name
}

void* open_real_driver(const char* path) {
  is_ours = true;
  void* const library = ::dlopen(path, RTLD_NOW | RTLD_LOCAL);
  is_ours = false;
  return library;
}

}  // namespace faultline::capture

#if defined(__x86_64__)
asm(R"(
  .text
  .globl dlopen
  .type dlopen, @function
dlopen:
  .cfi_startproc
  endbr64
  pushq %rsi
  .cfi_adjust_cfa_offset 8
  call faultline_name_to_open
  popq %rsi
  .cfi_adjust_cfa_offset -8
  movq %rax, %rdi
  jmp *faultline_next_dlopen(%rip)
  .cfi_endproc
  .size dlopen, .-dlopen
)");
#endif
