#include "vgpu/api.h"
#include "vgpu/call.h"
#include "vgpu/capture.h"
#include "vgpu/context.h"
#include "vgpu/device.h"

namespace faultline::vgpu {
namespace {

CUresult create(CUcontext* context, unsigned flags, CUdevice device) {
  require(context != nullptr);
  *context = create_context(device, flags)->handle;
  push_context(*context);
  return CUDA_SUCCESS;
}

constexpr int kLeastPriority = 0, kGreatestPriority = -5;

}  // namespace

CUresult api::cuCtxCreate(CUcontext* context, unsigned flags, CUdevice device) { return create(context, flags, device); }

CUresult api::cuCtxCreate(CUcontext* context, CUexecAffinityParam*, int affinities, unsigned flags, CUdevice device) {
  require(affinities == 0, CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY);
  return create(context, flags, device);
}

CUresult api::cuCtxCreate(CUcontext* context, CUctxCreateParams* parameters, unsigned flags, CUdevice device) {
  require(parameters == nullptr || (parameters->numExecAffinityParams == 0 && parameters->cigParams == nullptr), CUDA_ERROR_NOT_SUPPORTED);
  return create(context, flags, device);
}

CUresult api::cuCtxDestroy(CUcontext handle) {
  require(handle != nullptr, CUDA_ERROR_INVALID_CONTEXT);
  end_context(require_context(handle));
  if (current_context() == handle) pop_context();
  return CUDA_SUCCESS;
}

CUresult api::cuCtxPushCurrent(CUcontext handle) {
  require(handle != nullptr, CUDA_ERROR_INVALID_CONTEXT);
  require_context(handle);
  push_context(handle);
  return CUDA_SUCCESS;
}

CUresult api::cuCtxPopCurrent(CUcontext* handle) {
  const CUcontext popped = pop_context();
  if (handle != nullptr) *handle = popped;
  return CUDA_SUCCESS;
}

CUresult api::cuCtxSetCurrent(CUcontext handle) {
  if (handle != nullptr) require_context(handle);
  set_context(handle);
  return CUDA_SUCCESS;
}

CUresult api::cuCtxGetCurrent(CUcontext* handle) { return answer(handle, [&] { return current_context(); }); }

CUresult api::cuCtxGetDevice(CUdevice* device) { return answer(device, [&] { return require_context()->device; }); }

CUresult api::cuCtxGetDevice(CUdevice* device, CUcontext handle) { return answer(device, [&] { return require_context(handle)->device; }); }

CUresult api::cuCtxGetFlags(unsigned* flags) { return answer(flags, [&] { return require_context()->flags.load(); }); }

CUresult api::cuCtxSetFlags(unsigned flags) {
  require_context()->flags = flags;
  return CUDA_SUCCESS;
}

CUresult api::cuCtxGetId(CUcontext handle, unsigned long long* id) { return answer(id, [&] { return require_context(handle)->id; }); }

CUresult api::cuCtxGetApiVersion(CUcontext handle, unsigned* version) {
  require(version != nullptr);
  require_context(handle);
  *version = 3020;  // what the real driver answers for contexts of every later version
  return CUDA_SUCCESS;
}

CUresult api::cuCtxGetLimit(std::size_t* value, CUlimit limit) {
  require(value != nullptr);
  require(limit >= 0 && limit < CU_LIMIT_MAX, CUDA_ERROR_UNSUPPORTED_LIMIT);
  *value = require_context()->limits[limit];
  return CUDA_SUCCESS;
}

CUresult api::cuCtxSetLimit(CUlimit limit, std::size_t value) {
  require(limit >= 0 && limit < CU_LIMIT_MAX, CUDA_ERROR_UNSUPPORTED_LIMIT);
  require_context()->limits[limit] = value;
  return CUDA_SUCCESS;
}

CUresult api::cuCtxGetCacheConfig(CUfunc_cache* config) {
  require(config != nullptr);
  require_context();
  *config = CU_FUNC_CACHE_PREFER_NONE;
  return CUDA_SUCCESS;
}

CUresult api::cuCtxSetCacheConfig(CUfunc_cache) {
  require_context();
  return CUDA_SUCCESS;
}

CUresult api::cuCtxGetSharedMemConfig(CUsharedconfig* config) {
  require(config != nullptr);
  require_context();
  *config = CU_SHARED_MEM_CONFIG_FOUR_BYTE_BANK_SIZE;
  return CUDA_SUCCESS;
}

CUresult api::cuCtxSetSharedMemConfig(CUsharedconfig) {
  require_context();
  return CUDA_SUCCESS;
}

CUresult api::cuCtxResetPersistingL2Cache() {
  require_context();
  return CUDA_SUCCESS;
}

CUresult api::cuCtxGetStreamPriorityRange(int* least, int* greatest) {
  require_context();
  if (least != nullptr) *least = kLeastPriority;
  if (greatest != nullptr) *greatest = kGreatestPriority;
  return CUDA_SUCCESS;
}

CUresult api::cuCtxSynchronize() {
  const ContextPointer context = require_context();
  require_no_capture_disturbed();
  synchronize(*context);
  return CUDA_SUCCESS;
}

CUresult api::cuCtxSynchronize(CUcontext handle) {
  const ContextPointer context = require_context(handle);
  require_no_capture_disturbed();
  synchronize(*context);
  return CUDA_SUCCESS;
}

CUresult api::cuCtxEnablePeerAccess(CUcontext peer, unsigned flags) {
  require(flags == 0);
  const ContextPointer other = require_context(peer);
  require(other != require_context(), CUDA_ERROR_INVALID_DEVICE);
  return CUDA_SUCCESS;  // all devices share one address space and can always reach each other
}

CUresult api::cuCtxDisablePeerAccess(CUcontext peer) {
  require_context(peer);
  return CUDA_SUCCESS;
}

CUresult api::cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) { return answer(context, [&] { return retain_primary(device); }); }

CUresult api::cuDevicePrimaryCtxRelease(CUdevice device) {
  release_primary(device);
  return CUDA_SUCCESS;
}

CUresult api::cuDevicePrimaryCtxReset(CUdevice device) {
  reset_primary(device);
  return CUDA_SUCCESS;
}

CUresult api::cuDevicePrimaryCtxSetFlags(CUdevice device, unsigned flags) {
  set_primary_flags(device, flags);
  return CUDA_SUCCESS;
}

CUresult api::cuDevicePrimaryCtxGetState(CUdevice device, unsigned* flags, int* active) {
  require(flags != nullptr && active != nullptr);
  *active = primary_state(device, *flags) ? 1 : 0;
  return CUDA_SUCCESS;
}

}  // namespace faultline::vgpu
