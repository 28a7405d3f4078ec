#include "vgpu/api.h"
#include "vgpu/call.h"
#include "vgpu/context.h"
#include "vgpu/copies.h"

namespace faultline::vgpu {
namespace {

constexpr CUstream kStreamZero = nullptr;

void copy_on(CUstream stream, const CopyRequest& request) { copy(request, require_stream(stream), HostWait::kAsync); }
void copy_now(const CopyRequest& request) { copy(request, require_stream(kStreamZero), HostWait::kSync); }

std::uint64_t address_of(const void* pointer) { return reinterpret_cast<std::uint64_t>(pointer); }

CopyRequest anywhere(CUdeviceptr to, CUdeviceptr from, std::size_t size_bytes) {
  return CopyRequest::linear(Side::kEither, to, Side::kEither, from, size_bytes);
}
CopyRequest to_device(CUdeviceptr to, const void* from, std::size_t size_bytes) {
  return CopyRequest::linear(Side::kDevice, to, Side::kHost, address_of(from), size_bytes);
}
CopyRequest to_host(void* to, CUdeviceptr from, std::size_t size_bytes) {
  return CopyRequest::linear(Side::kHost, address_of(to), Side::kDevice, from, size_bytes);
}
CopyRequest on_device(CUdeviceptr to, CUdeviceptr from, std::size_t size_bytes) {
  return CopyRequest::linear(Side::kDevice, to, Side::kDevice, from, size_bytes);
}

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

void copy_batch(const CUdeviceptr* to, const CUdeviceptr* from, const std::size_t* sizes, std::size_t count,
                std::size_t& failed, CUstream stream) {
  require(stream != nullptr && to != nullptr && from != nullptr && sizes != nullptr && count != 0);
  const StreamPointer target = require_stream(stream);
  for (failed = 0; failed < count; ++failed) {
    copy(anywhere(to[failed], from[failed], sizes[failed]), target, HostWait::kAsync);
  }
}

}  // namespace

void api::cuMemcpy(CUdeviceptr to, CUdeviceptr from, std::size_t size_bytes) {
  copy_now(anywhere(to, from, size_bytes));
}
void api::cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, std::size_t size_bytes, CUstream stream) {
  copy_on(stream, anywhere(to, from, size_bytes));
}
void api::cuMemcpyHtoD(CUdeviceptr to, const void* from, std::size_t size_bytes) {
  copy_now(to_device(to, from, size_bytes));
}
void api::cuMemcpyHtoDAsync(CUdeviceptr to, const void* from, std::size_t size_bytes, CUstream stream) {
  copy_on(stream, to_device(to, from, size_bytes));
}
void api::cuMemcpyDtoH(void* to, CUdeviceptr from, std::size_t size_bytes) { copy_now(to_host(to, from, size_bytes)); }
void api::cuMemcpyDtoHAsync(void* to, CUdeviceptr from, std::size_t size_bytes, CUstream stream) {
  copy_on(stream, to_host(to, from, size_bytes));
}
void api::cuMemcpyDtoD(CUdeviceptr to, CUdeviceptr from, std::size_t size_bytes) {
  copy_now(on_device(to, from, size_bytes));
}
void api::cuMemcpyDtoDAsync(CUdeviceptr to, CUdeviceptr from, std::size_t size_bytes, CUstream stream) {
  copy_on(stream, on_device(to, from, size_bytes));
}
void api::cuMemcpyPeer(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context,
                       std::size_t size_bytes) {
  synchronize_both(to_context, from_context);
  copy_now(on_device(to, from, size_bytes));
}
void api::cuMemcpyPeerAsync(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context,
                            std::size_t size_bytes, CUstream stream) {
  require_context(to_context);
  require_context(from_context);
  copy_on(stream, on_device(to, from, size_bytes));
}

void api::cuMemcpy2D(const CUDA_MEMCPY2D* request) { copy_now(copy_request(given(request))); }
void api::cuMemcpy2DUnaligned(const CUDA_MEMCPY2D* request) { copy_now(copy_request(given(request))); }
void api::cuMemcpy2DAsync(const CUDA_MEMCPY2D* request, CUstream stream) {
  copy_on(stream, copy_request(given(request)));
}
void api::cuMemcpy3D(const CUDA_MEMCPY3D* request) { copy_now(copy_request(given(request))); }
void api::cuMemcpy3DAsync(const CUDA_MEMCPY3D* request, CUstream stream) {
  copy_on(stream, copy_request(given(request)));
}
void api::cuMemcpy3DPeer(const CUDA_MEMCPY3D_PEER* request) {
  synchronize_both(given(request).dstContext, request->srcContext);
  copy_now(copy_request(*request));
}
void api::cuMemcpy3DPeerAsync(const CUDA_MEMCPY3D_PEER* request, CUstream stream) {
  copy_on(stream, copy_request(given(request)));
}

void api::cuMemcpyWithAttributesAsync(CUdeviceptr to, CUdeviceptr from, std::size_t size_bytes, CUmemcpyAttributes*,
                                      CUstream stream) {
  copy_on(stream, anywhere(to, from, size_bytes));
}

void api::cuMemcpyBatchAsync(CUdeviceptr* to, CUdeviceptr* from, std::size_t* sizes, std::size_t count,
                             CUmemcpyAttributes*, std::size_t*, std::size_t, CUstream stream) {
  std::size_t unwanted = 0;
  copy_batch(to, from, sizes, count, unwanted, stream);
}

void api::cuMemcpyBatchAsync(CUdeviceptr* to, CUdeviceptr* from, std::size_t* sizes, std::size_t count,
                             CUmemcpyAttributes*, std::size_t*, std::size_t, std::size_t* failed, CUstream stream) {
  std::size_t unwanted = 0;
  copy_batch(to, from, sizes, count, failed != nullptr ? *failed : unwanted, stream);
}

}  // namespace faultline::vgpu
