// The driver's ways to describe a copy, and ours.
#include "vgpu/call.h"
#include "vgpu/copies.h"

namespace faultline::vgpu {
namespace {

CopyEnd end_of(CUmemorytype type, const void* host, CUdeviceptr device, std::size_t x_bytes, std::size_t y,
               std::size_t z, std::size_t pitch_bytes, std::size_t rows) {
  require(type != CU_MEMORYTYPE_ARRAY, CUDA_ERROR_NOT_SUPPORTED);
  require(type == CU_MEMORYTYPE_HOST || type == CU_MEMORYTYPE_DEVICE || type == CU_MEMORYTYPE_UNIFIED);
  const bool on_host = type == CU_MEMORYTYPE_HOST;
  CopyEnd end;
  end.side = on_host ? Side::kHost : type == CU_MEMORYTYPE_DEVICE ? Side::kDevice : Side::kEither;
  end.pitch_bytes = pitch_bytes;
  end.slice_bytes = pitch_bytes * rows;
  end.address =
      (on_host ? reinterpret_cast<std::uint64_t>(host) : device) + x_bytes + y * pitch_bytes + z * end.slice_bytes;
  return end;
}

template <class Copy>
CopyRequest request_3d(const Copy& copy) {
  CopyRequest request;
  request.width_bytes = copy.WidthInBytes;
  request.height = copy.Height;
  request.depth = copy.Depth;
  request.to = end_of(copy.dstMemoryType, copy.dstHost, copy.dstDevice, copy.dstXInBytes, copy.dstY, copy.dstZ,
                      copy.dstPitch, copy.dstHeight);
  request.from = end_of(copy.srcMemoryType, copy.srcHost, copy.srcDevice, copy.srcXInBytes, copy.srcY, copy.srcZ,
                        copy.srcPitch, copy.srcHeight);
  return request;
}

CUmemorytype type_of(Side side) {
  return side == Side::kHost     ? CU_MEMORYTYPE_HOST
         : side == Side::kDevice ? CU_MEMORYTYPE_DEVICE
                                 : CU_MEMORYTYPE_UNIFIED;
}

}  // namespace

CopyRequest copy_request(const CUDA_MEMCPY2D& copy) {
  CopyRequest request;
  request.width_bytes = copy.WidthInBytes;
  request.height = copy.Height;
  const std::size_t to_pitch = copy.dstPitch != 0 ? copy.dstPitch : copy.WidthInBytes;
  const std::size_t from_pitch = copy.srcPitch != 0 ? copy.srcPitch : copy.WidthInBytes;
  request.to = end_of(copy.dstMemoryType, copy.dstHost, copy.dstDevice, copy.dstXInBytes, copy.dstY, 0, to_pitch, 0);
  request.from =
      end_of(copy.srcMemoryType, copy.srcHost, copy.srcDevice, copy.srcXInBytes, copy.srcY, 0, from_pitch, 0);
  return request;
}

CopyRequest copy_request(const CUDA_MEMCPY3D& copy) { return request_3d(copy); }
CopyRequest copy_request(const CUDA_MEMCPY3D_PEER& copy) { return request_3d(copy); }

CUDA_MEMCPY3D as_node_parameters(const CopyRequest& request) {
  CUDA_MEMCPY3D copy{};
  copy.dstMemoryType = type_of(request.to.side);
  copy.dstHost = reinterpret_cast<void*>(request.to.address);
  copy.dstDevice = request.to.address;
  copy.dstPitch = request.to.pitch_bytes;
  copy.dstHeight = request.to.pitch_bytes != 0 ? request.to.slice_bytes / request.to.pitch_bytes : 0;
  copy.srcMemoryType = type_of(request.from.side);
  copy.srcHost = reinterpret_cast<void*>(request.from.address);
  copy.srcDevice = request.from.address;
  copy.srcPitch = request.from.pitch_bytes;
  copy.srcHeight = request.from.pitch_bytes != 0 ? request.from.slice_bytes / request.from.pitch_bytes : 0;
  copy.WidthInBytes = request.width_bytes;
  copy.Height = request.height;
  copy.Depth = request.depth;
  return copy;
}

}  // namespace faultline::vgpu
