#include "vgpu/api.h"
#include "vgpu/call.h"
#include "vgpu/context.h"
#include "vgpu/copies.h"

namespace faultline::vgpu {
namespace {

void fill_on(CUstream stream, const FillRequest& request) { fill(request, require_stream(stream), HostWait::kAsync); }
void fill_now(const FillRequest& request) { fill(request, require_stream(nullptr), HostWait::kSync); }

template <class Element>
FillRequest rows(CUdeviceptr to, std::size_t pitch_bytes, Element value, std::size_t width, std::size_t height) {
  return {.address = to,
          .pitch_bytes = pitch_bytes,
          .value = value,
          .element_bytes = sizeof(Element),
          .width = width,
          .height = height};
}
template <class Element>
FillRequest row(CUdeviceptr to, Element value, std::size_t count) {
  return rows(to, 0, value, count, 1);
}

}  // namespace

void api::cuMemsetD8(CUdeviceptr to, unsigned char value, std::size_t count) { fill_now(row(to, value, count)); }
void api::cuMemsetD16(CUdeviceptr to, unsigned short value, std::size_t count) { fill_now(row(to, value, count)); }
void api::cuMemsetD32(CUdeviceptr to, unsigned value, std::size_t count) { fill_now(row(to, value, count)); }
void api::cuMemsetD8Async(CUdeviceptr to, unsigned char value, std::size_t count, CUstream stream) {
  fill_on(stream, row(to, value, count));
}
void api::cuMemsetD16Async(CUdeviceptr to, unsigned short value, std::size_t count, CUstream stream) {
  fill_on(stream, row(to, value, count));
}
void api::cuMemsetD32Async(CUdeviceptr to, unsigned value, std::size_t count, CUstream stream) {
  fill_on(stream, row(to, value, count));
}

void api::cuMemsetD2D8(CUdeviceptr to, std::size_t pitch, unsigned char value, std::size_t width, std::size_t height) {
  fill_now(rows(to, pitch, value, width, height));
}
void api::cuMemsetD2D16(CUdeviceptr to, std::size_t pitch, unsigned short value, std::size_t width,
                        std::size_t height) {
  fill_now(rows(to, pitch, value, width, height));
}
void api::cuMemsetD2D32(CUdeviceptr to, std::size_t pitch, unsigned value, std::size_t width, std::size_t height) {
  fill_now(rows(to, pitch, value, width, height));
}
void api::cuMemsetD2D8Async(CUdeviceptr to, std::size_t pitch, unsigned char value, std::size_t width,
                            std::size_t height, CUstream stream) {
  fill_on(stream, rows(to, pitch, value, width, height));
}
void api::cuMemsetD2D16Async(CUdeviceptr to, std::size_t pitch, unsigned short value, std::size_t width,
                             std::size_t height, CUstream stream) {
  fill_on(stream, rows(to, pitch, value, width, height));
}
void api::cuMemsetD2D32Async(CUdeviceptr to, std::size_t pitch, unsigned value, std::size_t width, std::size_t height,
                             CUstream stream) {
  fill_on(stream, rows(to, pitch, value, width, height));
}

}  // namespace faultline::vgpu
