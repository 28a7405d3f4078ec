// Opens the driver under the name it is given, as some programs do, and takes memory; "-" where that name is not to be found.
#include <cuda.h>
#include <dlfcn.h>

#include <cstdio>

template <class Function>
static Function* found(void* library, const char* name) {
  return reinterpret_cast<Function*>(::dlsym(library, name));
}

int main(int, char** words) {
  void* const library = ::dlopen(words[1], RTLD_NOW);
  if (library == nullptr) {
    std::printf("- %s\n", ::dlerror() != nullptr ? "told why" : "not told why");
    return 5;
  }
  CUdevice device;
  CUcontext context;
  CUdeviceptr memory;
  if (found<decltype(cuInit)>(library, "cuInit")(0) != CUDA_SUCCESS || found<decltype(cuDeviceGet)>(library, "cuDeviceGet")(&device, 0) != CUDA_SUCCESS) return 6;
  if (found<decltype(cuDevicePrimaryCtxRetain)>(library, "cuDevicePrimaryCtxRetain")(&context, device) != CUDA_SUCCESS) return 7;
  if (found<decltype(cuCtxSetCurrent)>(library, "cuCtxSetCurrent")(context) != CUDA_SUCCESS) return 8;
  const auto take = found<decltype(cuMemAlloc_v2)>(library, "cuMemAlloc_v2");
  for (int i = 0; i < 7; ++i) {
    if (take(&memory, 1 << 20) != CUDA_SUCCESS) return 9;
  }
  return 0;
}
