#include "vgpu/api.h"
#include "vgpu/call.h"
#include "vgpu/context.h"
#include "vgpu/copies.h"

namespace faultline::vgpu {
namespace {

constexpr CUstream kStreamZero = nullptr;

std::uint64_t address_of(const void* pointer) { return reinterpret_cast<std::uint64_t>(pointer); }

CUresult copy_on(CUstream stream, const CopyRequest& request, HostWait wait) {
  copy(request, require_stream(stream), wait);
  return CUDA_SUCCESS;
}

CUresult copy_now(const CopyRequest& request) { return copy_on(kStreamZero, request, HostWait::kSync); }

template <class Copy>
const Copy& given(const Copy* pointer) {
  require(pointer != nullptr);
  return *pointer;
}

// A copy between contexts that the host starts waits for everything in both.
void synchronize_both(CUcontext to, CUcontext from) {
  wait_for_all(require_context(to)->pending());
  wait_for_all(require_context(from)->pending());
}

CUresult copy_batch(const CUdeviceptr* to, const CUdeviceptr* from, const std::size_t* sizes, std::size_t count, std::size_t& failed, CUstream stream) {
  require(stream != nullptr && to != nullptr && from != nullptr && sizes != nullptr && count != 0);
  const StreamPointer target = require_stream(stream);
  for (failed = 0; failed < count; ++failed) {
    copy(CopyRequest::linear(Side::kEither, to[failed], Side::kEither, from[failed], sizes[failed]), target, HostWait::kAsync);
  }
  return CUDA_SUCCESS;
}

}  // namespace

CUresult api::cuMemcpy(CUdeviceptr to, CUdeviceptr from, std::size_t size_bytes) {
  return copy_now(CopyRequest::linear(Side::kEither, to, Side::kEither, from, size_bytes));
}
CUresult api::cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, std::size_t size_bytes, CUstream stream) {
  return copy_on(stream, CopyRequest::linear(Side::kEither, to, Side::kEither, from, size_bytes), HostWait::kAsync);
}
CUresult api::cuMemcpyHtoD(CUdeviceptr to, const void* from, std::size_t size_bytes) {
  return copy_now(CopyRequest::linear(Side::kDevice, to, Side::kHost, address_of(from), size_bytes));
}
CUresult api::cuMemcpyHtoDAsync(CUdeviceptr to, const void* from, std::size_t size_bytes, CUstream stream) {
  return copy_on(stream, CopyRequest::linear(Side::kDevice, to, Side::kHost, address_of(from), size_bytes), HostWait::kAsync);
}
CUresult api::cuMemcpyDtoH(void* to, CUdeviceptr from, std::size_t size_bytes) {
  return copy_now(CopyRequest::linear(Side::kHost, address_of(to), Side::kDevice, from, size_bytes));
}
CUresult api::cuMemcpyDtoHAsync(void* to, CUdeviceptr from, std::size_t size_bytes, CUstream stream) {
  return copy_on(stream, CopyRequest::linear(Side::kHost, address_of(to), Side::kDevice, from, size_bytes), HostWait::kAsync);
}
CUresult api::cuMemcpyDtoD(CUdeviceptr to, CUdeviceptr from, std::size_t size_bytes) {
  return copy_now(CopyRequest::linear(Side::kDevice, to, Side::kDevice, from, size_bytes));
}
CUresult api::cuMemcpyDtoDAsync(CUdeviceptr to, CUdeviceptr from, std::size_t size_bytes, CUstream stream) {
  return copy_on(stream, CopyRequest::linear(Side::kDevice, to, Side::kDevice, from, size_bytes), HostWait::kAsync);
}
CUresult api::cuMemcpyPeer(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context, std::size_t size_bytes) {
  synchronize_both(to_context, from_context);
  return copy_now(CopyRequest::linear(Side::kDevice, to, Side::kDevice, from, size_bytes));
}
CUresult api::cuMemcpyPeerAsync(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context, std::size_t size_bytes, CUstream stream) {
  require_context(to_context);
  require_context(from_context);
  return copy_on(stream, CopyRequest::linear(Side::kDevice, to, Side::kDevice, from, size_bytes), HostWait::kAsync);
}

CUresult api::cuMemcpy2D(const CUDA_MEMCPY2D* request) { return copy_now(copy_request(given(request))); }
CUresult api::cuMemcpy2DUnaligned(const CUDA_MEMCPY2D* request) { return copy_now(copy_request(given(request))); }
CUresult api::cuMemcpy2DAsync(const CUDA_MEMCPY2D* request, CUstream stream) { return copy_on(stream, copy_request(given(request)), HostWait::kAsync); }
CUresult api::cuMemcpy3D(const CUDA_MEMCPY3D* request) { return copy_now(copy_request(given(request))); }
CUresult api::cuMemcpy3DAsync(const CUDA_MEMCPY3D* request, CUstream stream) { return copy_on(stream, copy_request(given(request)), HostWait::kAsync); }
CUresult api::cuMemcpy3DPeer(const CUDA_MEMCPY3D_PEER* request) {
  synchronize_both(given(request).dstContext, request->srcContext);
  return copy_now(copy_request(*request));
}
CUresult api::cuMemcpy3DPeerAsync(const CUDA_MEMCPY3D_PEER* request, CUstream stream) {
  return copy_on(stream, copy_request(given(request)), HostWait::kAsync);
}

CUresult api::cuMemcpyWithAttributesAsync(CUdeviceptr to, CUdeviceptr from, std::size_t size_bytes, CUmemcpyAttributes*, CUstream stream) {
  return copy_on(stream, CopyRequest::linear(Side::kEither, to, Side::kEither, from, size_bytes), HostWait::kAsync);
}

CUresult api::cuMemcpyBatchAsync(CUdeviceptr* to, CUdeviceptr* from, std::size_t* sizes, std::size_t count, CUmemcpyAttributes*, std::size_t*, std::size_t,
                                 CUstream stream) {
  std::size_t failed = 0;
  return copy_batch(to, from, sizes, count, failed, stream);
}

CUresult api::cuMemcpyBatchAsync(CUdeviceptr* to, CUdeviceptr* from, std::size_t* sizes, std::size_t count, CUmemcpyAttributes*, std::size_t*, std::size_t,
                                 std::size_t* failed, CUstream stream) {
  std::size_t unwanted = 0;
  return copy_batch(to, from, sizes, count, failed != nullptr ? *failed : unwanted, stream);
}

}  // namespace faultline::vgpu
