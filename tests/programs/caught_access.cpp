// Gives the virtual driver's way out an access, as a check of kernels would: 4 bytes behind an allocation, written by the last thread.
#include <dlfcn.h>

#include "driver/caught_access.h"
#include "driver_program.h"

int main() {
  begin();
  const CUdeviceptr values = take(16 << 10);
  void* const library = dlopen(std::getenv("FAULTLINE_DRIVER"), RTLD_NOW | RTLD_NOLOAD);
  const auto report = library == nullptr ? nullptr : reinterpret_cast<void (*)(const faultline::driver::CaughtAccess&)>(dlsym(library, faultline::driver::kReportViolation));
  if (report == nullptr) return 5;
  faultline::driver::CaughtAccess access;
  access.kind = faultline::ViolationKind::kOutOfBounds;
  access.access = faultline::AccessKind::kWrite;
  access.address = values + (16 << 10);
  access.size_bytes = 4;
  access.memory_start = values;
  access.kernel = "_Z3addPf";
  access.file = "/home/user/project/add.cu";
  access.place.line = 7;
  access.place.grid = {33, 1, 1};
  access.place.block = {128, 1, 1};
  access.place.block_index = {32, 0, 0};
  access.place.has_thread = true;
  report(access);
  CHECK(cuMemFree(values));
  return 0;
}
