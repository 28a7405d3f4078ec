// Memory: taken and given back, of every kind.
#include "capture/recorder.h"

namespace faultline::capture {
namespace {

bool is_host(HeapKind kind) { return kind == HeapKind::kPinnedHost || kind == HeapKind::kRegisteredHost; }

// Whether the function that frees memory of kind `by` also frees memory of kind `of`.
bool can_free(HeapKind by, HeapKind of) {
  const auto on_device = [](HeapKind kind) {
    return kind == HeapKind::kDriver || kind == HeapKind::kManaged || kind == HeapKind::kStreamOrderedPool;
  };
  return by == of ||
         (on_device(by) && on_device(of) && !(by == HeapKind::kStreamOrderedPool && of == HeapKind::kManaged));
}

void allocation_failed(ObservedCall& call, CUresult error, std::uint64_t size_bytes, HeapKind kind,
                       std::uint16_t device) {
  Recorder& recorder = call.thread.recorder();
  if (error == CUDA_ERROR_OUT_OF_MEMORY && !is_host(kind)) {
    Event event = call.thread.stamp(EventKind::kAllocFailed, Natives::kAlways);
    event.device = device;
    event.heap = recorder.heap(call.thread, kind, event.device);
    event.size_bytes = size_bytes;
    if (const std::optional<DeviceMemory> memory =
            device == recorder.current_device() ? recorder.device_memory() : std::nullopt) {
      event.address = memory->free_bytes;
      event.set(kHasDeviceFree);
    }
    call.thread.append(event);
  }
  (void)call.told(error);
}

struct NewMemory {
  std::uint64_t address;
  std::uint64_t size_bytes;
  HeapKind kind;
  CUstream stream = nullptr;
  Natives natives = Natives::kAlways;
};

CUresult allocated(ObservedCall& call, CUresult result, const NewMemory& memory) {
  Recorder& recorder = call.thread.recorder();
  if (result != CUDA_SUCCESS) {
    allocation_failed(call, result, memory.size_bytes, memory.kind, recorder.current_device());
    return result;
  }
  if (memory.address == 0 || memory.size_bytes == 0) return result;
  Event event = call.thread.stamp(is_host(memory.kind) ? EventKind::kHostPin : EventKind::kAlloc, memory.natives);
  if (memory.kind == HeapKind::kStreamOrderedPool)
    recorder.set_stream(call.thread, event, memory.stream, call.stream);
  else
    event.device = recorder.current_device();
  event.heap = recorder.heap(call.thread, memory.kind, is_host(memory.kind) ? std::uint16_t{0} : event.device);
  event.address = memory.address;
  event.set(kAddressKnown);
  event.size_bytes = memory.size_bytes;
  event.allocation = recorder.next_allocation();
  // a pool is the device's
  const void* const context = memory.kind == HeapKind::kStreamOrderedPool ? nullptr : recorder.current_context();
  if (!recorder.live().add(memory.address,
                           {event.allocation, memory.size_bytes, event.heap, memory.kind, event.device, context})) {
    recorder.count("capture.allocations_left_out");
    return result;
  }
  call.thread.append(event);
  if (memory.kind == HeapKind::kDriver) recorder.note_unasked(call.thread, event);
  return result;
}

// The driver writes the address where `pointer` points, if it succeeds.
template <class Pointer>
CUresult taken(ObservedCall& call, Pointer* pointer, std::uint64_t size_bytes, HeapKind kind) {
  const CUresult result = call.real();
  return allocated(call, result, {result == CUDA_SUCCESS ? address_of(*pointer) : 0, size_bytes, kind});
}
CUresult taken_from_pool(ObservedCall& call, const CUdeviceptr* pointer, std::uint64_t size_bytes, CUstream stream) {
  const CUresult result = call.real();
  if (result == CUDA_SUCCESS && is_captured(call, stream)) return result;  // the graph takes it, each time it runs
  return allocated(
      call, result,
      {result == CUDA_SUCCESS ? *pointer : 0, size_bytes, HeapKind::kStreamOrderedPool, stream, Natives::kIfNoPython});
}

// Recorded before the driver has it: another thread may be given the address at once.
CUresult freed(ObservedCall& call, std::uint64_t address, HeapKind kind, CUstream stream = nullptr) {
  Recorder& recorder = call.thread.recorder();
  if (address == 0) return call.made_and_told();
  Event event = call.thread.stamp(is_host(kind) ? EventKind::kHostUnpin : EventKind::kFree);
  event.device = recorder.current_device();
  if (kind == HeapKind::kStreamOrderedPool) recorder.set_stream(call.thread, event, stream, call.stream);
  event.address = address;
  event.set(kAddressKnown);
  // Memory of a kind that this function cannot free is left where it is: the driver will refuse.
  const std::optional<LiveAllocation> known =
      recorder.live().take(address, [kind](HeapKind of) { return can_free(kind, of); });
  if (known) {
    event.allocation = known->id;
    event.size_bytes = known->size_bytes;
    event.heap = known->heap;
    event.device = known->device;
    call.thread.append(event);
  }
  const CUresult result = call.real();
  if (known && result != CUDA_SUCCESS && result != CUDA_ERROR_DEINITIALIZED) {
    // Refused for another reason than the pointer (a stream that is gone, a capture under way): it ended nothing, and is told again as that.
    recorder.live().add(address, *known);
    return append_work(call, event, result);
  }
  const bool is_graphs =
      kind == HeapKind::kStreamOrderedPool && result == CUDA_SUCCESS && !known && is_captured(call, stream);
  if (known || is_graphs || (result == CUDA_SUCCESS && recorder.live().has_left_out())) return call.told(result);
  event.heap = recorder.heap(call.thread, kind, is_host(kind) ? std::uint16_t{0} : event.device);
  if (result == CUDA_SUCCESS) recorder.count("capture.frees_of_unknown_memory");
  return append_work(call, event, result);
}

// A mapping of device memory, made or ended, as an event of the driver's heap.
Event of_mapping(ThreadRecorder& thread, Event event, std::uint64_t address, std::uint64_t size_bytes, int device) {
  event.device = static_cast<std::uint16_t>(device);
  event.heap = thread.recorder().heap(thread, HeapKind::kDriver, event.device);
  event.address = address;
  event.set(kAddressKnown);
  event.size_bytes = size_bytes;
  return event;
}

}  // namespace

CUresult observe::cuMemAlloc(ObservedCall& call, CUdeviceptr* pointer, std::size_t size_bytes) {
  return taken(call, pointer, size_bytes, HeapKind::kDriver);
}
CUresult observe::cuMemAllocPitch(ObservedCall& call, CUdeviceptr* pointer, std::size_t* pitch, std::size_t width_bytes,
                                  std::size_t height, unsigned) {
  const CUresult result = call.real();
  const bool is_there = result == CUDA_SUCCESS;
  return allocated(call, result,
                   {is_there ? *pointer : 0, (is_there ? *pitch : width_bytes) * height, HeapKind::kDriver});
}
CUresult observe::cuMemFree(ObservedCall& call, CUdeviceptr pointer) { return freed(call, pointer, HeapKind::kDriver); }
CUresult observe::cuMemAllocManaged(ObservedCall& call, CUdeviceptr* pointer, std::size_t size_bytes, unsigned) {
  return taken(call, pointer, size_bytes, HeapKind::kManaged);
}
CUresult observe::cuMemAllocHost(ObservedCall& call, void** pointer, std::size_t size_bytes) {
  return taken(call, pointer, size_bytes, HeapKind::kPinnedHost);
}
CUresult observe::cuMemHostAlloc(ObservedCall& call, void** pointer, std::size_t size_bytes, unsigned) {
  return taken(call, pointer, size_bytes, HeapKind::kPinnedHost);
}
CUresult observe::cuMemFreeHost(ObservedCall& call, void* pointer) {
  return freed(call, address_of(pointer), HeapKind::kPinnedHost);
}
CUresult observe::cuMemHostRegister(ObservedCall& call, void* pointer, std::size_t size_bytes, unsigned) {
  return taken(call, &pointer, size_bytes, HeapKind::kRegisteredHost);
}
CUresult observe::cuMemHostUnregister(ObservedCall& call, void* pointer) {
  return freed(call, address_of(pointer), HeapKind::kRegisteredHost);
}
// The handle does not say how large it is; one byte is known to be there.
CUresult observe::cuIpcOpenMemHandle(ObservedCall& call, CUdeviceptr* pointer, CUipcMemHandle, unsigned) {
  return taken(call, pointer, 1, HeapKind::kImported);
}
CUresult observe::cuIpcCloseMemHandle(ObservedCall& call, CUdeviceptr pointer) {
  return freed(call, pointer, HeapKind::kImported);
}
CUresult observe::cuMemAllocAsync(ObservedCall& call, CUdeviceptr* pointer, std::size_t size_bytes, CUstream stream) {
  return taken_from_pool(call, pointer, size_bytes, stream);
}
CUresult observe::cuMemAllocFromPoolAsync(ObservedCall& call, CUdeviceptr* pointer, std::size_t size_bytes,
                                          CUmemoryPool, CUstream stream) {
  return taken_from_pool(call, pointer, size_bytes, stream);
}
CUresult observe::cuMemFreeAsync(ObservedCall& call, CUdeviceptr pointer, CUstream stream) {
  return freed(call, pointer, HeapKind::kStreamOrderedPool, stream);
}

CUresult observe::cuMemCreate(ObservedCall& call, CUmemGenericAllocationHandle* handle, std::size_t size_bytes,
                              const CUmemAllocationProp* properties, unsigned long long) {
  const CUresult result = call.real();
  const bool on_device = properties != nullptr && properties->location.type == CU_MEM_LOCATION_TYPE_DEVICE;
  if (result == CUDA_SUCCESS)
    call.thread.recorder().physical().created(*handle, on_device ? properties->location.id : -1);
  else if (on_device)
    allocation_failed(call, result, size_bytes, HeapKind::kDriver, static_cast<std::uint16_t>(properties->location.id));
  else
    (void)call.told(result);
  return result;
}

CUresult observe::cuMemMap(ObservedCall& call, CUdeviceptr address, std::size_t size_bytes, std::size_t,
                           CUmemGenericAllocationHandle handle, unsigned long long) {
  Recorder& recorder = call.thread.recorder();
  const CUresult result = call.real();
  const int device = recorder.physical().device(handle, recorder.current_device());
  if (result != CUDA_SUCCESS || device < 0) return call.told(result);
  const Event event =
      of_mapping(call.thread, call.thread.stamp(EventKind::kMap, Natives::kAlways), address, size_bytes, device);
  recorder.live().add_mapping(address, size_bytes, event.device);
  recorder.physical().mapped(address, size_bytes, device);
  call.thread.append(event);
  recorder.note_unasked(call.thread, event);
  return result;
}

CUresult observe::cuMemRelease(ObservedCall& call, CUmemGenericAllocationHandle handle) {
  call.thread.recorder().physical().released(handle);  // what is mapped keeps its device
  return call.made_and_told();
}

CUresult observe::cuMemUnmap(ObservedCall& call, CUdeviceptr address, std::size_t size_bytes) {
  const CUresult result = call.real();
  if (result != CUDA_SUCCESS) return call.told(result);
  const Event unmap = call.thread.stamp(EventKind::kUnmap);
  Recorder& recorder = call.thread.recorder();
  recorder.physical().unmapped(address, size_bytes, [&](std::uint64_t start, std::uint64_t bytes, int device) {
    const Event event = of_mapping(call.thread, unmap, start, bytes, device);
    recorder.live().remove_mapping(start, bytes, event.device);
    call.thread.append(event);
  });
  return result;
}

}  // namespace faultline::capture
