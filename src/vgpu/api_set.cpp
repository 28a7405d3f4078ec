#include "vgpu/api.h"
#include "vgpu/call.h"
#include "vgpu/context.h"
#include "vgpu/copies.h"

namespace faultline::vgpu {
namespace {

CUresult fill_on(CUstream stream, const FillRequest& request, HostWait wait) {
  fill(request, require_stream(stream), wait);
  return CUDA_SUCCESS;
}

CUresult fill_now(const FillRequest& request) { return fill_on(nullptr, request, HostWait::kSync); }

template <class Element>
FillRequest row(CUdeviceptr to, Element value, std::size_t count) {
  return {.address = to, .pitch_bytes = 0, .value = value, .element_bytes = sizeof(Element), .width = count, .height = 1};
}

template <class Element>
FillRequest rows(CUdeviceptr to, std::size_t pitch_bytes, Element value, std::size_t width, std::size_t height) {
  return {.address = to, .pitch_bytes = pitch_bytes, .value = value, .element_bytes = sizeof(Element), .width = width, .height = height};
}

}  // namespace

CUresult api::cuMemsetD8(CUdeviceptr to, unsigned char value, std::size_t count) { return fill_now(row(to, value, count)); }
CUresult api::cuMemsetD16(CUdeviceptr to, unsigned short value, std::size_t count) { return fill_now(row(to, value, count)); }
CUresult api::cuMemsetD32(CUdeviceptr to, unsigned value, std::size_t count) { return fill_now(row(to, value, count)); }
CUresult api::cuMemsetD8Async(CUdeviceptr to, unsigned char value, std::size_t count, CUstream stream) {
  return fill_on(stream, row(to, value, count), HostWait::kAsync);
}
CUresult api::cuMemsetD16Async(CUdeviceptr to, unsigned short value, std::size_t count, CUstream stream) {
  return fill_on(stream, row(to, value, count), HostWait::kAsync);
}
CUresult api::cuMemsetD32Async(CUdeviceptr to, unsigned value, std::size_t count, CUstream stream) {
  return fill_on(stream, row(to, value, count), HostWait::kAsync);
}

CUresult api::cuMemsetD2D8(CUdeviceptr to, std::size_t pitch, unsigned char value, std::size_t width, std::size_t height) {
  return fill_now(rows(to, pitch, value, width, height));
}
CUresult api::cuMemsetD2D16(CUdeviceptr to, std::size_t pitch, unsigned short value, std::size_t width, std::size_t height) {
  return fill_now(rows(to, pitch, value, width, height));
}
CUresult api::cuMemsetD2D32(CUdeviceptr to, std::size_t pitch, unsigned value, std::size_t width, std::size_t height) {
  return fill_now(rows(to, pitch, value, width, height));
}
CUresult api::cuMemsetD2D8Async(CUdeviceptr to, std::size_t pitch, unsigned char value, std::size_t width, std::size_t height, CUstream stream) {
  return fill_on(stream, rows(to, pitch, value, width, height), HostWait::kAsync);
}
CUresult api::cuMemsetD2D16Async(CUdeviceptr to, std::size_t pitch, unsigned short value, std::size_t width, std::size_t height, CUstream stream) {
  return fill_on(stream, rows(to, pitch, value, width, height), HostWait::kAsync);
}
CUresult api::cuMemsetD2D32Async(CUdeviceptr to, std::size_t pitch, unsigned value, std::size_t width, std::size_t height, CUstream stream) {
  return fill_on(stream, rows(to, pitch, value, width, height), HostWait::kAsync);
}

}  // namespace faultline::vgpu
