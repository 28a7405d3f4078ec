// A library to preload: of the allocations that the recorder makes, the FAULTLINE_TEST_FAILS-th fails, and with FAULTLINE_TEST_FAILS_ON all that follow it too. Those of the program
// and of all other libraries are served. At the end it says on standard error, if FAULTLINE_TEST_TELLS is set, how many the recorder made.
#include <dlfcn.h>
#include <link.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>

extern "C" void* __libc_malloc(size_t);
extern "C" void* __libc_calloc(size_t, size_t);

namespace {

struct Code {
  std::uintptr_t begin = 0, end = 0;
};
Code recorder;
std::atomic<long> made{0};
long fails = -1;
bool fails_on = false;

__attribute__((constructor)) void begin() {
  const char* which = std::getenv("FAULTLINE_TEST_FAILS");
  fails = which != nullptr ? std::atol(which) : -1;
  fails_on = std::getenv("FAULTLINE_TEST_FAILS_ON") != nullptr;
  dl_iterate_phdr(
      [](dl_phdr_info* module, size_t, void*) {
        if (std::strstr(module->dlpi_name, "libcuda.so.1") == nullptr) return 0;
        for (int part = 0; part < module->dlpi_phnum; ++part) {
          const ElfW(Phdr)& loaded = module->dlpi_phdr[part];
          if (loaded.p_type == PT_LOAD && (loaded.p_flags & PF_X) != 0) recorder = {module->dlpi_addr + loaded.p_vaddr, module->dlpi_addr + loaded.p_vaddr + loaded.p_memsz};
        }
        return 1;
      },
      nullptr);
}

__attribute__((destructor)) void end() {
  if (std::getenv("FAULTLINE_TEST_TELLS") != nullptr) std::fprintf(stderr, "the recorder made %ld allocations\n", made.load());
}

bool is_refused(void* caller) {
  const auto place = reinterpret_cast<std::uintptr_t>(caller);
  if (place < recorder.begin || place >= recorder.end) return false;
  const long number = made.fetch_add(1) + 1;
  return fails >= 0 && (number == fails || (fails_on && number > fails));
}

}  // namespace

extern "C" void* malloc(size_t bytes) { return is_refused(__builtin_return_address(0)) ? nullptr : __libc_malloc(bytes); }
extern "C" void* calloc(size_t count, size_t bytes) { return is_refused(__builtin_return_address(0)) ? nullptr : __libc_calloc(count, bytes); }
