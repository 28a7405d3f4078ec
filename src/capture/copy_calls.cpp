// Copies and sets: which bytes from where to where, on which stream.
#include "capture/observed_calls.h"
#include "capture/recorder.h"

namespace faultline::capture {
namespace {

CopyId interned(ThreadRecorder& thread, const Copy& copy) {
  Key key;
  key.add(copy.source);
  key.add(static_cast<std::uint64_t>(copy.source_side) | static_cast<std::uint64_t>(copy.destination_side) << 8 | std::uint64_t{copy.asynchronous} << 16 |
          std::uint64_t{copy.source_device} << 32);
  key.add(copy.width_bytes);
  key.add(std::uint64_t{copy.height} << 32 | copy.depth);
  key.add(copy.source_pitch_bytes);
  key.add(copy.destination_pitch_bytes);
  if (const std::uint32_t known = thread.copies().find(key); known != KeyMap::kNone) return CopyId(known);
  const CopyId id = thread.recorder().next_copy();
  (void)thread.writer().define_copy(id, copy);
  thread.copies().insert(key, id.value);
  return id;
}

struct Moved {
  std::uint64_t destination;
  std::uint64_t size_bytes;
  Copy copy;
  CUstream stream = nullptr;
};

CUresult copied(ThreadRecorder& thread, const Call& call, CUresult result, const Moved& moved) {
  Event event = thread.stamp(EventKind::kCopy);
  thread.recorder().set_stream(thread, event, moved.stream, call.stream);
  event.address = moved.destination;
  event.set(kAddressKnown);
  event.size_bytes = moved.size_bytes;
  event.extra = interned(thread, moved.copy).value;
  mark_captured(call, event, moved.stream);
  if (result != CUDA_SUCCESS) event.set(kFailed);
  thread.append(event);
  return told(thread, call, result);
}

Copy row(std::uint64_t source, MemorySide from, MemorySide to, bool asynchronous) {
  Copy copy;
  copy.source = source;
  copy.source_side = from;
  copy.destination_side = to;
  copy.asynchronous = asynchronous;
  return copy;
}

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
  const std::uint64_t base = g.srcMemoryType == CU_MEMORYTYPE_HOST ? reinterpret_cast<std::uintptr_t>(g.srcHost) : g.srcMemoryType == CU_MEMORYTYPE_ARRAY ? 0 : g.srcDevice;
  return base == 0 ? 0 : base + g.srcXInBytes + g.srcY * g.srcPitch;
}
template <class Geometry>
std::uint64_t destination_start(const Geometry& g) {
  const std::uint64_t base = g.dstMemoryType == CU_MEMORYTYPE_HOST ? reinterpret_cast<std::uintptr_t>(g.dstHost) : g.dstMemoryType == CU_MEMORYTYPE_ARRAY ? 0 : g.dstDevice;
  return base == 0 ? 0 : base + g.dstXInBytes + g.dstY * g.dstPitch;
}

template <class Geometry>
Moved moved_rows(const Geometry& g, std::size_t depth, std::uint64_t source, std::uint64_t destination, bool asynchronous, CUstream stream) {
  Copy copy = row(source, side_of(g.srcMemoryType), side_of(g.dstMemoryType), asynchronous);
  copy.width_bytes = g.WidthInBytes;
  copy.height = static_cast<std::uint32_t>(g.Height);
  copy.depth = static_cast<std::uint32_t>(depth);
  copy.source_pitch_bytes = g.srcPitch;
  copy.destination_pitch_bytes = g.dstPitch;
  return {destination, std::uint64_t{g.WidthInBytes} * g.Height * depth, copy, stream};
}

Moved plane(const CUDA_MEMCPY2D& g, bool asynchronous, CUstream stream) { return moved_rows(g, 1, source_start(g), destination_start(g), asynchronous, stream); }

Moved box(const CUDA_MEMCPY3D& g, bool asynchronous, CUstream stream) {
  const std::uint64_t source = source_start(g), destination = destination_start(g);
  return moved_rows(g, g.Depth, source == 0 ? 0 : source + g.srcZ * g.srcPitch * g.srcHeight, destination == 0 ? 0 : destination + g.dstZ * g.dstPitch * g.dstHeight,
                    asynchronous, stream);
}

// Rows of a 2D set are told as one range from the first byte to the last.
CUresult was_set(ThreadRecorder& thread, const Call& call, CUresult result, std::uint64_t address, std::uint64_t pitch_bytes, std::uint64_t width_bytes, std::uint64_t height,
                 CUstream stream) {
  Event event = thread.stamp(EventKind::kSet);
  thread.recorder().set_stream(thread, event, stream, call.stream);
  event.address = address;
  event.set(kAddressKnown);
  event.size_bytes = height == 0 ? 0 : pitch_bytes * (height - 1) + width_bytes;
  mark_captured(call, event, stream);
  if (result != CUDA_SUCCESS) event.set(kFailed);
  thread.append(event);
  return told(thread, call, result);
}

}  // namespace

FAULTLINE_OBSERVER(cuMemcpy, CUdeviceptr, CUdeviceptr, std::size_t)
(ThreadRecorder& thread, const Call& call, const Real<CUdeviceptr, CUdeviceptr, std::size_t>& real, CUdeviceptr to, CUdeviceptr from, std::size_t bytes) {
  return copied(thread, call, real(to, from, bytes), {to, bytes, row(from, MemorySide::kUnified, MemorySide::kUnified, false)});
}
FAULTLINE_OBSERVER(cuMemcpyAsync, CUdeviceptr, CUdeviceptr, std::size_t, CUstream)
(ThreadRecorder& thread, const Call& call, const Real<CUdeviceptr, CUdeviceptr, std::size_t, CUstream>& real, CUdeviceptr to, CUdeviceptr from, std::size_t bytes, CUstream stream) {
  return copied(thread, call, real(to, from, bytes, stream), {to, bytes, row(from, MemorySide::kUnified, MemorySide::kUnified, true), stream});
}
FAULTLINE_OBSERVER(cuMemcpyHtoD, CUdeviceptr, const void*, std::size_t)
(ThreadRecorder& thread, const Call& call, const Real<CUdeviceptr, const void*, std::size_t>& real, CUdeviceptr to, const void* from, std::size_t bytes) {
  return copied(thread, call, real(to, from, bytes), {to, bytes, row(address_of(from), MemorySide::kHost, MemorySide::kDevice, false)});
}
FAULTLINE_OBSERVER(cuMemcpyHtoDAsync, CUdeviceptr, const void*, std::size_t, CUstream)
(ThreadRecorder& thread, const Call& call, const Real<CUdeviceptr, const void*, std::size_t, CUstream>& real, CUdeviceptr to, const void* from, std::size_t bytes, CUstream stream) {
  return copied(thread, call, real(to, from, bytes, stream), {to, bytes, row(address_of(from), MemorySide::kHost, MemorySide::kDevice, true), stream});
}
FAULTLINE_OBSERVER(cuMemcpyDtoH, void*, CUdeviceptr, std::size_t)
(ThreadRecorder& thread, const Call& call, const Real<void*, CUdeviceptr, std::size_t>& real, void* to, CUdeviceptr from, std::size_t bytes) {
  return copied(thread, call, real(to, from, bytes), {address_of(to), bytes, row(from, MemorySide::kDevice, MemorySide::kHost, false)});
}
FAULTLINE_OBSERVER(cuMemcpyDtoHAsync, void*, CUdeviceptr, std::size_t, CUstream)
(ThreadRecorder& thread, const Call& call, const Real<void*, CUdeviceptr, std::size_t, CUstream>& real, void* to, CUdeviceptr from, std::size_t bytes, CUstream stream) {
  return copied(thread, call, real(to, from, bytes, stream), {address_of(to), bytes, row(from, MemorySide::kDevice, MemorySide::kHost, true), stream});
}
FAULTLINE_OBSERVER(cuMemcpyDtoD, CUdeviceptr, CUdeviceptr, std::size_t)
(ThreadRecorder& thread, const Call& call, const Real<CUdeviceptr, CUdeviceptr, std::size_t>& real, CUdeviceptr to, CUdeviceptr from, std::size_t bytes) {
  return copied(thread, call, real(to, from, bytes), {to, bytes, row(from, MemorySide::kDevice, MemorySide::kDevice, true)});
}
FAULTLINE_OBSERVER(cuMemcpyDtoDAsync, CUdeviceptr, CUdeviceptr, std::size_t, CUstream)
(ThreadRecorder& thread, const Call& call, const Real<CUdeviceptr, CUdeviceptr, std::size_t, CUstream>& real, CUdeviceptr to, CUdeviceptr from, std::size_t bytes, CUstream stream) {
  return copied(thread, call, real(to, from, bytes, stream), {to, bytes, row(from, MemorySide::kDevice, MemorySide::kDevice, true), stream});
}
FAULTLINE_OBSERVER(cuMemcpyPeer, CUdeviceptr, CUcontext, CUdeviceptr, CUcontext, std::size_t)
(ThreadRecorder& thread, const Call& call, const Real<CUdeviceptr, CUcontext, CUdeviceptr, CUcontext, std::size_t>& real, CUdeviceptr to, CUcontext to_context, CUdeviceptr from,
 CUcontext from_context, std::size_t bytes) {
  return copied(thread, call, real(to, to_context, from, from_context, bytes), {to, bytes, row(from, MemorySide::kDevice, MemorySide::kDevice, true)});
}
FAULTLINE_OBSERVER(cuMemcpyPeerAsync, CUdeviceptr, CUcontext, CUdeviceptr, CUcontext, std::size_t, CUstream)
(ThreadRecorder& thread, const Call& call, const Real<CUdeviceptr, CUcontext, CUdeviceptr, CUcontext, std::size_t, CUstream>& real, CUdeviceptr to, CUcontext to_context,
 CUdeviceptr from, CUcontext from_context, std::size_t bytes, CUstream stream) {
  return copied(thread, call, real(to, to_context, from, from_context, bytes, stream), {to, bytes, row(from, MemorySide::kDevice, MemorySide::kDevice, true), stream});
}
FAULTLINE_OBSERVER(cuMemcpy2D, const CUDA_MEMCPY2D*)
(ThreadRecorder& thread, const Call& call, const Real<const CUDA_MEMCPY2D*>& real, const CUDA_MEMCPY2D* geometry) {
  const CUresult result = real(geometry);
  return geometry == nullptr ? result : copied(thread, call, result, plane(*geometry, false, nullptr));
}
FAULTLINE_OBSERVER(cuMemcpy2DUnaligned, const CUDA_MEMCPY2D*)
(ThreadRecorder& thread, const Call& call, const Real<const CUDA_MEMCPY2D*>& real, const CUDA_MEMCPY2D* geometry) {
  const CUresult result = real(geometry);
  return geometry == nullptr ? result : copied(thread, call, result, plane(*geometry, false, nullptr));
}
FAULTLINE_OBSERVER(cuMemcpy2DAsync, const CUDA_MEMCPY2D*, CUstream)
(ThreadRecorder& thread, const Call& call, const Real<const CUDA_MEMCPY2D*, CUstream>& real, const CUDA_MEMCPY2D* geometry, CUstream stream) {
  const CUresult result = real(geometry, stream);
  return geometry == nullptr ? result : copied(thread, call, result, plane(*geometry, true, stream));
}
FAULTLINE_OBSERVER(cuMemcpy3D, const CUDA_MEMCPY3D*)
(ThreadRecorder& thread, const Call& call, const Real<const CUDA_MEMCPY3D*>& real, const CUDA_MEMCPY3D* geometry) {
  const CUresult result = real(geometry);
  return geometry == nullptr ? result : copied(thread, call, result, box(*geometry, false, nullptr));
}
FAULTLINE_OBSERVER(cuMemcpy3DAsync, const CUDA_MEMCPY3D*, CUstream)
(ThreadRecorder& thread, const Call& call, const Real<const CUDA_MEMCPY3D*, CUstream>& real, const CUDA_MEMCPY3D* geometry, CUstream stream) {
  const CUresult result = real(geometry, stream);
  return geometry == nullptr ? result : copied(thread, call, result, box(*geometry, true, stream));
}

// The twelve sets differ in the width of the value alone.
#define FAULTLINE_OBSERVE_SETS(bits, Value)                                                                                                                              \
  FAULTLINE_OBSERVER(cuMemsetD##bits, CUdeviceptr, Value, std::size_t)                                                                                                   \
  (ThreadRecorder& thread, const Call& call, const Real<CUdeviceptr, Value, std::size_t>& real, CUdeviceptr to, Value value, std::size_t count) {                        \
    return was_set(thread, call, real(to, value, count), to, 0, count * sizeof(Value), 1, nullptr);                                                                      \
  }                                                                                                                                                                      \
  FAULTLINE_OBSERVER(cuMemsetD##bits##Async, CUdeviceptr, Value, std::size_t, CUstream)                                                                                  \
  (ThreadRecorder& thread, const Call& call, const Real<CUdeviceptr, Value, std::size_t, CUstream>& real, CUdeviceptr to, Value value, std::size_t count,                \
   CUstream stream) {                                                                                                                                                    \
    return was_set(thread, call, real(to, value, count, stream), to, 0, count * sizeof(Value), 1, stream);                                                               \
  }                                                                                                                                                                      \
  FAULTLINE_OBSERVER(cuMemsetD2D##bits, CUdeviceptr, std::size_t, Value, std::size_t, std::size_t)                                                                       \
  (ThreadRecorder& thread, const Call& call, const Real<CUdeviceptr, std::size_t, Value, std::size_t, std::size_t>& real, CUdeviceptr to, std::size_t pitch,             \
   Value value, std::size_t width, std::size_t height) {                                                                                                                 \
    return was_set(thread, call, real(to, pitch, value, width, height), to, pitch, width * sizeof(Value), height, nullptr);                                              \
  }                                                                                                                                                                      \
  FAULTLINE_OBSERVER(cuMemsetD2D##bits##Async, CUdeviceptr, std::size_t, Value, std::size_t, std::size_t, CUstream)                                                      \
  (ThreadRecorder& thread, const Call& call, const Real<CUdeviceptr, std::size_t, Value, std::size_t, std::size_t, CUstream>& real, CUdeviceptr to, std::size_t pitch,   \
   Value value, std::size_t width, std::size_t height, CUstream stream) {                                                                                                \
    return was_set(thread, call, real(to, pitch, value, width, height, stream), to, pitch, width * sizeof(Value), height, stream);                                       \
  }
FAULTLINE_OBSERVE_SETS(8, unsigned char)
FAULTLINE_OBSERVE_SETS(16, unsigned short)
FAULTLINE_OBSERVE_SETS(32, unsigned)
#undef FAULTLINE_OBSERVE_SETS

}  // namespace faultline::capture
