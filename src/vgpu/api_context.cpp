#include "vgpu/api.h"
#include "vgpu/call.h"
#include "vgpu/capture.h"
#include "vgpu/context.h"
#include "vgpu/device.h"

namespace faultline::vgpu {

void api::cuCtxCreate(CUcontext* context, unsigned flags, CUdevice device) {
  require(context != nullptr);
  *context = create_context(device, flags)->handle;
  push_context(*context);
}

void api::cuCtxCreate(CUcontext* context, CUexecAffinityParam*, int affinities, unsigned flags, CUdevice device) {
  require(affinities == 0, CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY);
  api::cuCtxCreate(context, flags, device);
}

void api::cuCtxCreate(CUcontext* context, CUctxCreateParams* parameters, unsigned flags, CUdevice device) {
  require(parameters == nullptr || (parameters->numExecAffinityParams == 0 && parameters->cigParams == nullptr),
          CUDA_ERROR_NOT_SUPPORTED);
  api::cuCtxCreate(context, flags, device);
}

void api::cuCtxDestroy(CUcontext handle) {
  require(handle != nullptr, CUDA_ERROR_INVALID_CONTEXT);
  end_context(require_context(handle));
  if (current_context() == handle) pop_context();
}

void api::cuCtxPushCurrent(CUcontext handle) {
  require(handle != nullptr, CUDA_ERROR_INVALID_CONTEXT);
  require_context(handle);
  push_context(handle);
}

void api::cuCtxPopCurrent(CUcontext* handle) {
  const CUcontext popped = pop_context();
  if (handle != nullptr) *handle = popped;
}

void api::cuCtxSetCurrent(CUcontext handle) {
  if (handle != nullptr) require_context(handle);
  set_context(handle);
}

void api::cuCtxGetCurrent(CUcontext* handle) {
  answer(handle, [&] { return current_context(); });
}

void api::cuCtxGetDevice(CUdevice* device) {
  answer(device, [&] { return require_context()->device; });
}

void api::cuCtxGetDevice(CUdevice* device, CUcontext handle) {
  answer(device, [&] { return require_context(handle)->device; });
}

void api::cuCtxGetFlags(unsigned* flags) {
  answer(flags, [&] { return require_context()->flags.load(); });
}

void api::cuCtxSetFlags(unsigned flags) { require_context()->flags = flags; }

void api::cuCtxGetId(CUcontext handle, unsigned long long* id) {
  answer(id, [&] { return require_context(handle)->id; });
}

void api::cuCtxGetApiVersion(CUcontext handle, unsigned* version) {
  require(version != nullptr);
  require_context(handle);
  *version = 3020;  // what the real driver answers for contexts of every later version
}

void api::cuCtxGetLimit(std::size_t* value, CUlimit limit) {
  require(value != nullptr);
  require(limit >= 0 && limit < CU_LIMIT_MAX, CUDA_ERROR_UNSUPPORTED_LIMIT);
  *value = require_context()->limits[limit];
}

void api::cuCtxSetLimit(CUlimit limit, std::size_t value) {
  require(limit >= 0 && limit < CU_LIMIT_MAX, CUDA_ERROR_UNSUPPORTED_LIMIT);
  require_context()->limits[limit] = value;
}

void api::cuCtxGetCacheConfig(CUfunc_cache* config) {
  require(config != nullptr);
  require_context();
  *config = CU_FUNC_CACHE_PREFER_NONE;
}

void api::cuCtxSetCacheConfig(CUfunc_cache) { require_context(); }

void api::cuCtxGetSharedMemConfig(CUsharedconfig* config) {
  require(config != nullptr);
  require_context();
  *config = CU_SHARED_MEM_CONFIG_FOUR_BYTE_BANK_SIZE;
}

void api::cuCtxSetSharedMemConfig(CUsharedconfig) { require_context(); }

void api::cuCtxResetPersistingL2Cache() { require_context(); }

void api::cuCtxGetStreamPriorityRange(int* least, int* greatest) {
  require_context();
  if (least != nullptr) *least = kLeastPriority;
  if (greatest != nullptr) *greatest = kGreatestPriority;
}

void api::cuCtxSynchronize() { api::cuCtxSynchronize(nullptr); }

void api::cuCtxSynchronize(CUcontext handle) {
  const ContextPointer context = require_context(handle);
  require_no_capture_disturbed();
  synchronize(*context);
}

// All devices share one address space and can always reach each other.
void api::cuCtxEnablePeerAccess(CUcontext peer, unsigned flags) {
  require(flags == 0);
  const ContextPointer other = require_context(peer);
  require(other != require_context(), CUDA_ERROR_INVALID_DEVICE);
}

void api::cuCtxDisablePeerAccess(CUcontext peer) { require_context(peer); }

void api::cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
  answer(context, [&] { return retain_primary(device); });
}

void api::cuDevicePrimaryCtxRelease(CUdevice device) { release_primary(device); }

void api::cuDevicePrimaryCtxReset(CUdevice device) { reset_primary(device); }

void api::cuDevicePrimaryCtxSetFlags(CUdevice device, unsigned flags) { set_primary_flags(device, flags); }

void api::cuDevicePrimaryCtxGetState(CUdevice device, unsigned* flags, int* active) {
  require(flags != nullptr && active != nullptr);
  *active = primary_state(device, *flags) ? 1 : 0;
}

}  // namespace faultline::vgpu
