// A context ends with memory in it, and the next one is given the same addresses. With "overrun" the last copy is too long.
#include <cstring>
#include <string>
#include <vector>

#include "driver_program.h"

static CUcontext begin_context(CUdevice device, bool is_primary) {
  CUcontext context = nullptr;
  if (is_primary) {
    CHECK(cuDevicePrimaryCtxRetain(&context, device));
    CHECK(cuCtxSetCurrent(context));
  } else {
    CHECK(cuCtxCreate(&context, nullptr, 0, device));
  }
  return context;
}

static void end_context(CUdevice device, CUcontext context, const std::string& how) {
  if (how == "destroy") CHECK(cuCtxDestroy(context));
  else if (how == "reset") CHECK(cuDevicePrimaryCtxReset(device));
  else CHECK(cuDevicePrimaryCtxRelease(device));
  if (how != "destroy") CHECK(cuCtxSetCurrent(nullptr));
}

int main(int count, char** words) {
  const std::string how = count > 1 ? words[1] : "destroy", more = count > 2 ? words[2] : "";
  constexpr size_t kSmall = 2 << 20, kLarge = 32 << 20, kPage = 4096;
  std::vector<char> host(kLarge + kPage, 1);
  CUdevice device;
  CHECK(cuInit(0));
  CHECK(cuDeviceGet(&device, 0));
  const bool is_primary = how != "destroy";
  CUcontext kept = nullptr;
  if (more == "stays") CHECK(cuDevicePrimaryCtxRetain(&kept, device));  // so that no release is the last one
  for (int round = 0; round < 4; ++round) {
    CUcontext context = begin_context(device, is_primary);
    for (int i = 0; i < 16; ++i) take(kSmall);  // nobody frees them: the context does
    void* pinned = nullptr;
    CHECK(cuMemAllocHost(&pinned, kPage));
    CHECK(cuCtxSynchronize());
    end_context(device, context, how);
    context = begin_context(device, is_primary);
    const CUdeviceptr large = take(kLarge);
    for (size_t at = 0; at < kLarge; at += kSmall) CHECK(cuMemcpyHtoD(large + at, host.data(), kLarge - at));
    CHECK(cuMemsetD8(large, 0, kLarge));
    CHECK(cuMemcpyDtoH(host.data(), large, kLarge));
    if (more == "overrun" && round == 3) {
      const CUresult result = cuMemcpyHtoD(large, host.data(), kLarge + kPage);  // the bug
      (void)result;
    }
    CHECK(cuMemFree(large));
    end_context(device, context, how);
  }
  return 0;
}
