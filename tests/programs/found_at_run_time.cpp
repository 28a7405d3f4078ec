// Finds the driver as the CUDA runtime does: dlopen, then cuGetProcAddress for everything, in two versions and with both stream flags.
#include <cuda.h>
#include <cudaTypedefs.h>
#include <dlfcn.h>

#include <cstdio>
#include <cstring>

template <class Function>
static Function find(PFN_cuGetProcAddress_v12000 ask, const char* name, int version, cuuint64_t flags) {
  void* function = nullptr;
  CUdriverProcAddressQueryResult status;
  if (ask(name, &function, version, flags, &status) != CUDA_SUCCESS || function == nullptr) {
    std::fprintf(stderr, "%s of %d was not found\n", name, version);
    std::_Exit(4);
  }
  return reinterpret_cast<Function>(function);
}

int main() {
  void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
  if (library == nullptr) return 3;
  const auto first = reinterpret_cast<PFN_cuGetProcAddress_v12000>(dlsym(library, "cuGetProcAddress_v2"));
  const auto ask = find<PFN_cuGetProcAddress_v12000>(first, "cuGetProcAddress", 13000, CU_GET_PROC_ADDRESS_DEFAULT);
  find<PFN_cuInit_v2000>(ask, "cuInit", 13000, 0)(0);
  CUcontext context;
  find<PFN_cuDevicePrimaryCtxRetain_v7000>(ask, "cuDevicePrimaryCtxRetain", 13000, 0)(&context, 0);
  find<PFN_cuCtxSetCurrent_v4000>(ask, "cuCtxSetCurrent", 13000, 0)(context);
  CUdeviceptr pointer = 0;
  if (find<PFN_cuMemAlloc_v3020>(ask, "cuMemAlloc", 13000, 0)(&pointer, 4096) != CUDA_SUCCESS) return 5;
  char values[4096];
  std::memset(values, 1, sizeof values);
  const auto legacy = find<PFN_cuMemcpyHtoDAsync_v3020>(ask, "cuMemcpyHtoDAsync", 13000, CU_GET_PROC_ADDRESS_LEGACY_STREAM);
  const auto per_thread = find<PFN_cuMemcpyHtoDAsync_v7000_ptsz>(ask, "cuMemcpyHtoDAsync", 13000, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM);
  if (legacy == per_thread) return 6;
  if (legacy(pointer, values, 1024, nullptr) != CUDA_SUCCESS || per_thread(pointer, values, 2048, nullptr) != CUDA_SUCCESS) return 7;
  find<PFN_cuCtxSynchronize_v2000>(ask, "cuCtxSynchronize", 12000, 0)();
  return find<PFN_cuMemFree_v3020>(ask, "cuMemFree", 13000, 0)(pointer) == CUDA_SUCCESS ? 0 : 8;
}
