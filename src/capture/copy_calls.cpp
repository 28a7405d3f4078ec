// Copies and sets: which bytes from where to where, on which stream.
#include <algorithm>

#include "capture/recorder.h"

namespace faultline::capture {
namespace {

CopyId interned(ThreadRecorder& thread, const Copy& copy) {
  Key key;
  key.add(copy.source);
  key.add(static_cast<std::uint64_t>(copy.source_side) | static_cast<std::uint64_t>(copy.destination_side) << 8 |
          std::uint64_t{copy.asynchronous} << 16 | std::uint64_t{copy.source_device} << 32);
  key.add(copy.width_bytes);
  key.add(std::uint64_t{copy.height} << 32 | copy.depth);
  key.add(copy.source_pitch_bytes);
  key.add(copy.destination_pitch_bytes);
  if (const std::uint32_t known = thread.copies().find(key); known != KeyMap::kNone) return CopyId(known);
  const CopyId id = thread.recorder().next_copy();
  (void)thread.writer().define_call(id, copy);
  thread.copies().insert(key, id.value);
  return id;
}

struct Moved {
  std::uint64_t destination;
  std::uint64_t size_bytes;
  Copy copy;
  CUstream stream = nullptr;
};

CUresult copied(ObservedCall& call, const Moved& moved) {
  const CUresult result = call.real();
  Event event = stamp_work(call, EventKind::kCopy, moved.stream);
  event.address = moved.destination;
  event.set(kAddressKnown);
  event.size_bytes = moved.size_bytes;
  event.extra = interned(call.thread, moved.copy).value;
  return append_work(call, event, result);
}

Copy row(std::uint64_t source, MemorySide from, MemorySide to, bool asynchronous) {
  Copy copy;
  copy.source = source;
  copy.source_side = from;
  copy.destination_side = to;
  copy.asynchronous = asynchronous;
  return copy;
}

Copy on_device(std::uint64_t source) { return row(source, MemorySide::kDevice, MemorySide::kDevice, true); }

MemorySide side_of(CUmemorytype type) {
  switch (type) {
    case CU_MEMORYTYPE_HOST: return MemorySide::kHost;
    case CU_MEMORYTYPE_DEVICE: return MemorySide::kDevice;
    case CU_MEMORYTYPE_ARRAY: return MemorySide::kArray;
    default: return MemorySide::kUnified;
  }
}

// Where an end of a copy of rows begins. An array has no address.
template <class Geometry>
std::uint64_t source_start(const Geometry& g) {
  const std::uint64_t base = g.srcMemoryType == CU_MEMORYTYPE_HOST    ? reinterpret_cast<std::uintptr_t>(g.srcHost)
                             : g.srcMemoryType == CU_MEMORYTYPE_ARRAY ? 0
                                                                      : g.srcDevice;
  return base == 0 ? 0 : base + g.srcXInBytes + g.srcY * g.srcPitch;
}
template <class Geometry>
std::uint64_t destination_start(const Geometry& g) {
  const std::uint64_t base = g.dstMemoryType == CU_MEMORYTYPE_HOST    ? reinterpret_cast<std::uintptr_t>(g.dstHost)
                             : g.dstMemoryType == CU_MEMORYTYPE_ARRAY ? 0
                                                                      : g.dstDevice;
  return base == 0 ? 0 : base + g.dstXInBytes + g.dstY * g.dstPitch;
}

template <class Geometry>
Moved moved_rows(const Geometry& g, std::size_t depth, std::uint64_t source, std::uint64_t destination,
                 bool asynchronous, CUstream stream) {
  Copy copy = row(source, side_of(g.srcMemoryType), side_of(g.dstMemoryType), asynchronous);
  copy.width_bytes = g.WidthInBytes;
  copy.height = static_cast<std::uint32_t>(g.Height);
  copy.depth = static_cast<std::uint32_t>(depth);
  copy.source_pitch_bytes = g.srcPitch;
  copy.destination_pitch_bytes = g.dstPitch;
  return {destination, std::uint64_t{g.WidthInBytes} * g.Height * depth, copy, stream};
}

Moved plane(const CUDA_MEMCPY2D& g, bool asynchronous, CUstream stream) {
  return moved_rows(g, 1, source_start(g), destination_start(g), asynchronous, stream);
}

// Layers may be padded with rows that are not copied. Such a box is told by its layers: from the first byte of one to its last, at the distance from one layer to the next.
// Where the two ends have different pitches a layer counts as long as the shorter one, so that no byte is claimed that is not touched.
Moved box(const CUDA_MEMCPY3D& g, bool asynchronous, CUstream stream) {
  const std::uint64_t source = source_start(g), destination = destination_start(g);
  Moved moved =
      moved_rows(g, g.Depth, source == 0 ? 0 : source + g.srcZ * g.srcPitch * g.srcHeight,
                 destination == 0 ? 0 : destination + g.dstZ * g.dstPitch * g.dstHeight, asynchronous, stream);
  if (g.Depth < 2 || g.Height == 0 || (g.srcHeight <= g.Height && g.dstHeight <= g.Height)) return moved;
  const auto pitch_of = [&](std::size_t pitch) { return std::max(pitch, g.WidthInBytes); };
  const std::size_t from = pitch_of(g.srcPitch), to = pitch_of(g.dstPitch);
  const bool is_array[2] = {g.srcMemoryType == CU_MEMORYTYPE_ARRAY, g.dstMemoryType == CU_MEMORYTYPE_ARRAY};
  const std::size_t pitch = is_array[0] ? to : is_array[1] ? from : std::min(from, to);
  moved.copy.width_bytes = (g.Height - 1) * pitch + g.WidthInBytes;
  moved.copy.height = 1;
  moved.copy.source_pitch_bytes = std::max(g.srcHeight, g.Height) * from;
  moved.copy.destination_pitch_bytes = std::max(g.dstHeight, g.Height) * to;
  return moved;
}

// Rows of a 2D set are told as one range from the first byte to the last.
CUresult was_set(ObservedCall& call, std::uint64_t address, std::uint64_t pitch_bytes, std::uint64_t width_bytes,
                 std::uint64_t height, CUstream stream) {
  const CUresult result = call.real();
  Event event = stamp_work(call, EventKind::kSet, stream);
  event.address = address;
  event.set(kAddressKnown);
  event.size_bytes = height == 0 ? 0 : pitch_bytes * (height - 1) + width_bytes;
  return append_work(call, event, result);
}

// The driver answers for a copy that says nothing of itself.
CUresult copied_rows(ObservedCall& call, const CUDA_MEMCPY2D* geometry, bool asynchronous, CUstream stream) {
  return geometry == nullptr ? call.real() : copied(call, plane(*geometry, asynchronous, stream));
}
CUresult copied_rows(ObservedCall& call, const CUDA_MEMCPY3D* geometry, bool asynchronous, CUstream stream) {
  return geometry == nullptr ? call.real() : copied(call, box(*geometry, asynchronous, stream));
}

}  // namespace

CUresult observe::cuMemcpy(ObservedCall& call, CUdeviceptr to, CUdeviceptr from, std::size_t bytes) {
  return copied(call, {to, bytes, row(from, MemorySide::kUnified, MemorySide::kUnified, false)});
}
CUresult observe::cuMemcpyAsync(ObservedCall& call, CUdeviceptr to, CUdeviceptr from, std::size_t bytes,
                                CUstream stream) {
  return copied(call, {to, bytes, row(from, MemorySide::kUnified, MemorySide::kUnified, true), stream});
}
CUresult observe::cuMemcpyHtoD(ObservedCall& call, CUdeviceptr to, const void* from, std::size_t bytes) {
  return copied(call, {to, bytes, row(address_of(from), MemorySide::kHost, MemorySide::kDevice, false)});
}
CUresult observe::cuMemcpyHtoDAsync(ObservedCall& call, CUdeviceptr to, const void* from, std::size_t bytes,
                                    CUstream stream) {
  return copied(call, {to, bytes, row(address_of(from), MemorySide::kHost, MemorySide::kDevice, true), stream});
}
CUresult observe::cuMemcpyDtoH(ObservedCall& call, void* to, CUdeviceptr from, std::size_t bytes) {
  return copied(call, {address_of(to), bytes, row(from, MemorySide::kDevice, MemorySide::kHost, false)});
}
CUresult observe::cuMemcpyDtoHAsync(ObservedCall& call, void* to, CUdeviceptr from, std::size_t bytes,
                                    CUstream stream) {
  return copied(call, {address_of(to), bytes, row(from, MemorySide::kDevice, MemorySide::kHost, true), stream});
}
CUresult observe::cuMemcpyDtoD(ObservedCall& call, CUdeviceptr to, CUdeviceptr from, std::size_t bytes) {
  return copied(call, {to, bytes, on_device(from)});
}
CUresult observe::cuMemcpyDtoDAsync(ObservedCall& call, CUdeviceptr to, CUdeviceptr from, std::size_t bytes,
                                    CUstream stream) {
  return copied(call, {to, bytes, on_device(from), stream});
}
CUresult observe::cuMemcpyPeer(ObservedCall& call, CUdeviceptr to, CUcontext, CUdeviceptr from, CUcontext,
                               std::size_t bytes) {
  return copied(call, {to, bytes, on_device(from)});
}
CUresult observe::cuMemcpyPeerAsync(ObservedCall& call, CUdeviceptr to, CUcontext, CUdeviceptr from, CUcontext,
                                    std::size_t bytes, CUstream stream) {
  return copied(call, {to, bytes, on_device(from), stream});
}
CUresult observe::cuMemcpy2D(ObservedCall& call, const CUDA_MEMCPY2D* geometry) {
  return copied_rows(call, geometry, false, nullptr);
}
CUresult observe::cuMemcpy2DUnaligned(ObservedCall& call, const CUDA_MEMCPY2D* geometry) {
  return copied_rows(call, geometry, false, nullptr);
}
CUresult observe::cuMemcpy2DAsync(ObservedCall& call, const CUDA_MEMCPY2D* geometry, CUstream stream) {
  return copied_rows(call, geometry, true, stream);
}
CUresult observe::cuMemcpy3D(ObservedCall& call, const CUDA_MEMCPY3D* geometry) {
  return copied_rows(call, geometry, false, nullptr);
}
CUresult observe::cuMemcpy3DAsync(ObservedCall& call, const CUDA_MEMCPY3D* geometry, CUstream stream) {
  return copied_rows(call, geometry, true, stream);
}

// The twelve sets differ in the width of the value alone.
#define FAULTLINE_OBSERVE_SETS(bits, Value)                                                                            \
  CUresult observe::cuMemsetD##bits(ObservedCall& call, CUdeviceptr to, Value, std::size_t count) {                    \
    return was_set(call, to, 0, count * sizeof(Value), 1, nullptr);                                                    \
  }                                                                                                                    \
  CUresult observe::cuMemsetD##bits##Async(ObservedCall& call, CUdeviceptr to, Value, std::size_t count,               \
                                           CUstream stream) {                                                          \
    return was_set(call, to, 0, count * sizeof(Value), 1, stream);                                                     \
  }                                                                                                                    \
  CUresult observe::cuMemsetD2D##bits(ObservedCall& call, CUdeviceptr to, std::size_t pitch, Value, std::size_t width, \
                                      std::size_t height) {                                                            \
    return was_set(call, to, pitch, width * sizeof(Value), height, nullptr);                                           \
  }                                                                                                                    \
  CUresult observe::cuMemsetD2D##bits##Async(ObservedCall& call, CUdeviceptr to, std::size_t pitch, Value,             \
                                             std::size_t width, std::size_t height, CUstream stream) {                 \
    return was_set(call, to, pitch, width * sizeof(Value), height, stream);                                            \
  }
FAULTLINE_OBSERVE_SETS(8, unsigned char)
FAULTLINE_OBSERVE_SETS(16, unsigned short)
FAULTLINE_OBSERVE_SETS(32, unsigned)
#undef FAULTLINE_OBSERVE_SETS

}  // namespace faultline::capture
