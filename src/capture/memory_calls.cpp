// Memory: taken and given back, of every kind.
#include <algorithm>
#include <atomic>
#include <iterator>
#include <map>
#include <mutex>
#include <string>

#include "capture/observed_calls.h"
#include "capture/real_driver.h"
#include "capture/recorder.h"

namespace faultline::capture {
namespace {

// Which device a physical allocation (cuMemCreate) lies on; -1: not a device's.
class PhysicalMemory {
 public:
  void created(CUmemGenericAllocationHandle handle, int device) {
    const std::lock_guard hold(lock_);
    devices_[handle] = device;
  }
  void released(CUmemGenericAllocationHandle handle) {
    const std::lock_guard hold(lock_);
    devices_.erase(handle);
  }
  // Unknown handles (imported ones) are taken to be the current device's.
  int device(CUmemGenericAllocationHandle handle, int otherwise) {
    const std::lock_guard hold(lock_);
    const auto at = devices_.find(handle);
    return at != devices_.end() ? at->second : otherwise;
  }
  void mapped(std::uint64_t address, std::uint64_t size_bytes, int device) {
    const std::lock_guard hold(lock_);
    mappings_[address] = {size_bytes, device};
  }
  // One unmap may cover several mappings.
  template <class Each>
  void unmapped(std::uint64_t address, std::uint64_t size_bytes, Each each) {
    const std::lock_guard hold(lock_);
    for (auto at = mappings_.lower_bound(address); at != mappings_.end() && at->first < address + size_bytes; at = mappings_.erase(at)) {
      each(at->first, at->second.size_bytes, at->second.device);
    }
  }

 private:
  struct Mapping {
    std::uint64_t size_bytes;
    int device;
  };
  std::mutex lock_;
  std::map<CUmemGenericAllocationHandle, int> devices_;
  std::map<std::uint64_t, Mapping> mappings_;
};

PhysicalMemory*& physical_memory_place() {
  static PhysicalMemory* memory = new PhysicalMemory;
  return memory;
}
PhysicalMemory& physical_memory() { return *physical_memory_place(); }

std::atomic<std::int64_t> looked_ns{0};
std::atomic<std::uint64_t> most_unasked_bytes[64] = {};

bool is_host(HeapKind kind) { return kind == HeapKind::kPinnedHost || kind == HeapKind::kRegisteredHost; }

// Whether the function that frees memory of kind `by` also frees memory of kind `of`.
bool can_free(HeapKind by, HeapKind of) {
  const auto on_device = [](HeapKind kind) { return kind == HeapKind::kDriver || kind == HeapKind::kManaged || kind == HeapKind::kStreamOrderedPool; };
  return by == of || (on_device(by) && on_device(of) && !(by == HeapKind::kStreamOrderedPool && of == HeapKind::kManaged));
}

void add_device_free(Event& event) {
  const std::optional<DeviceMemory> memory = memory_of_current_device();
  if (!memory) return;
  event.address = memory->free_bytes;
  event.set(kHasDeviceFree);
}

// Device memory that is taken and that nobody asked for here: the context, kernels' code, other processes. Looked at when the program takes memory, which is
// when it is slow anyway, and not more often than needed; the most that was seen is kept.
void note_unasked(ThreadRecorder& thread, const Event& event) {
  constexpr std::int64_t kBetweenLooksNs = 100'000'000;
  std::int64_t before = looked_ns.load(std::memory_order_relaxed);
  if (event.device >= std::size(most_unasked_bytes) || event.device != thread.recorder().current_device() || event.time_ns - before < kBetweenLooksNs || !looked_ns.compare_exchange_strong(before, event.time_ns)) return;
  const std::optional<DeviceMemory> memory = memory_of_current_device();
  if (!memory) return;
  const std::uint64_t accounted = memory->free_bytes + thread.recorder().live().device_bytes(event.device);
  const std::uint64_t unasked = memory->total_bytes > accounted ? memory->total_bytes - accounted : 0;
  if (unasked <= most_unasked_bytes[event.device].load()) return;
  most_unasked_bytes[event.device].store(unasked);
  thread.recorder().property(thread, "driver.unasked." + std::to_string(event.device), std::to_string(unasked));
}

void allocation_failed(ThreadRecorder& thread, const Call& call, CUresult error, std::uint64_t size_bytes, HeapKind kind, std::uint16_t device) {
  if (error == CUDA_ERROR_OUT_OF_MEMORY && !is_host(kind)) {
    Event event = thread.stamp(EventKind::kAllocFailed, Natives::kAlways);
    event.device = device;
    event.heap = thread.recorder().heap(thread, kind, event.device);
    event.size_bytes = size_bytes;
    if (device == thread.recorder().current_device()) add_device_free(event);
    thread.append(event);
  }
  thread.recorder().failed(thread, call.name, error);
}

struct NewMemory {
  std::uint64_t address;
  std::uint64_t size_bytes;
  HeapKind kind;
  CUstream stream = nullptr;
  Natives natives = Natives::kAlways;
};

CUresult allocated(ThreadRecorder& thread, const Call& call, CUresult result, const NewMemory& memory) {
  if (result != CUDA_SUCCESS) {
    allocation_failed(thread, call, result, memory.size_bytes, memory.kind, thread.recorder().current_device());
    return result;
  }
  if (memory.address == 0 || memory.size_bytes == 0) return result;
  Recorder& recorder = thread.recorder();
  Event event = thread.stamp(is_host(memory.kind) ? EventKind::kHostPin : EventKind::kAlloc, memory.natives);
  if (memory.kind == HeapKind::kStreamOrderedPool) recorder.set_stream(thread, event, memory.stream, call.stream);
  else event.device = recorder.current_device();
  event.heap = recorder.heap(thread, memory.kind, is_host(memory.kind) ? std::uint16_t{0} : event.device);
  event.address = memory.address;
  event.set(kAddressKnown);
  event.size_bytes = memory.size_bytes;
  event.allocation = recorder.next_allocation();
  if (!recorder.live().add(memory.address, {event.allocation, memory.size_bytes, event.heap, memory.kind, event.device})) {
    recorder.count("capture.allocations_left_out");
    return result;
  }
  thread.append(event);
  if (memory.kind == HeapKind::kDriver) note_unasked(thread, event);
  return result;
}

// Recorded before the driver has it: another thread may be given the address at once.
template <class Real>
CUresult freed(ThreadRecorder& thread, const Call& call, std::uint64_t address, HeapKind kind, CUstream stream, Real real) {
  Recorder& recorder = thread.recorder();
  if (address == 0) {
    return told(thread, call, real());
  }
  Event event = thread.stamp(is_host(kind) ? EventKind::kHostUnpin : EventKind::kFree);
  event.device = recorder.current_device();
  if (kind == HeapKind::kStreamOrderedPool) recorder.set_stream(thread, event, stream, call.stream);
  event.address = address;
  event.set(kAddressKnown);
  // Memory of a kind that this function cannot free is left where it is: the driver will refuse.
  const std::optional<LiveAllocation> known = recorder.live().take(address, [kind](HeapKind of) { return can_free(kind, of); });
  if (known) {
    event.allocation = known->id;
    event.size_bytes = known->size_bytes;
    event.heap = known->heap;
    event.device = known->device;
    thread.append(event);
  }
  const CUresult result = real();
  if (!known && !(result == CUDA_SUCCESS && recorder.live().has_left_out())) {
    event.heap = recorder.heap(thread, kind, is_host(kind) ? std::uint16_t{0} : event.device);
    if (result != CUDA_SUCCESS) event.set(kFailed);
    else recorder.count("capture.frees_of_unknown_memory");
    thread.append(event);
  }
  return told(thread, call, result);
}

}  // namespace

void forget_memory_after_fork() {
  physical_memory_place() = new PhysicalMemory;
  looked_ns.store(0);
  for (std::atomic<std::uint64_t>& most : most_unasked_bytes) most.store(0);
}

FAULTLINE_OBSERVER(cuMemAlloc, CUdeviceptr*, std::size_t)
(ThreadRecorder& thread, const Call& call, const Real<CUdeviceptr*, std::size_t>& real, CUdeviceptr* pointer, std::size_t size_bytes) {
  const CUresult result = real(pointer, size_bytes);
  return allocated(thread, call, result, {result == CUDA_SUCCESS ? *pointer : 0, size_bytes, HeapKind::kDriver});
}

FAULTLINE_OBSERVER(cuMemAllocPitch, CUdeviceptr*, std::size_t*, std::size_t, std::size_t, unsigned)
(ThreadRecorder& thread, const Call& call, const Real<CUdeviceptr*, std::size_t*, std::size_t, std::size_t, unsigned>& real, CUdeviceptr* pointer, std::size_t* pitch,
 std::size_t width_bytes, std::size_t height, unsigned element_bytes) {
  const CUresult result = real(pointer, pitch, width_bytes, height, element_bytes);
  return allocated(thread, call, result, {result == CUDA_SUCCESS ? *pointer : 0, (result == CUDA_SUCCESS ? *pitch : width_bytes) * height, HeapKind::kDriver});
}

FAULTLINE_OBSERVER(cuMemFree, CUdeviceptr)
(ThreadRecorder& thread, const Call& call, const Real<CUdeviceptr>& real, CUdeviceptr pointer) {
  return freed(thread, call, pointer, HeapKind::kDriver, nullptr, [&] { return real(pointer); });
}

FAULTLINE_OBSERVER(cuMemAllocManaged, CUdeviceptr*, std::size_t, unsigned)
(ThreadRecorder& thread, const Call& call, const Real<CUdeviceptr*, std::size_t, unsigned>& real, CUdeviceptr* pointer, std::size_t size_bytes, unsigned flags) {
  const CUresult result = real(pointer, size_bytes, flags);
  return allocated(thread, call, result, {result == CUDA_SUCCESS ? *pointer : 0, size_bytes, HeapKind::kManaged});
}

FAULTLINE_OBSERVER(cuMemAllocHost, void**, std::size_t)
(ThreadRecorder& thread, const Call& call, const Real<void**, std::size_t>& real, void** pointer, std::size_t size_bytes) {
  const CUresult result = real(pointer, size_bytes);
  return allocated(thread, call, result, {result == CUDA_SUCCESS ? address_of(*pointer) : 0, size_bytes, HeapKind::kPinnedHost});
}

FAULTLINE_OBSERVER(cuMemHostAlloc, void**, std::size_t, unsigned)
(ThreadRecorder& thread, const Call& call, const Real<void**, std::size_t, unsigned>& real, void** pointer, std::size_t size_bytes, unsigned flags) {
  const CUresult result = real(pointer, size_bytes, flags);
  return allocated(thread, call, result, {result == CUDA_SUCCESS ? address_of(*pointer) : 0, size_bytes, HeapKind::kPinnedHost});
}

FAULTLINE_OBSERVER(cuMemFreeHost, void*)
(ThreadRecorder& thread, const Call& call, const Real<void*>& real, void* pointer) {
  return freed(thread, call, address_of(pointer), HeapKind::kPinnedHost, nullptr, [&] { return real(pointer); });
}

FAULTLINE_OBSERVER(cuMemHostRegister, void*, std::size_t, unsigned)
(ThreadRecorder& thread, const Call& call, const Real<void*, std::size_t, unsigned>& real, void* pointer, std::size_t size_bytes, unsigned flags) {
  return allocated(thread, call, real(pointer, size_bytes, flags), {address_of(pointer), size_bytes, HeapKind::kRegisteredHost});
}

FAULTLINE_OBSERVER(cuMemHostUnregister, void*)
(ThreadRecorder& thread, const Call& call, const Real<void*>& real, void* pointer) {
  return freed(thread, call, address_of(pointer), HeapKind::kRegisteredHost, nullptr, [&] { return real(pointer); });
}

FAULTLINE_OBSERVER(cuIpcOpenMemHandle, CUdeviceptr*, CUipcMemHandle, unsigned)
(ThreadRecorder& thread, const Call& call, const Real<CUdeviceptr*, CUipcMemHandle, unsigned>& real, CUdeviceptr* pointer, CUipcMemHandle handle, unsigned flags) {
  const CUresult result = real(pointer, handle, flags);
  // The handle does not say how large it is; one byte is known to be there.
  return allocated(thread, call, result, {result == CUDA_SUCCESS ? *pointer : 0, 1, HeapKind::kImported});
}

FAULTLINE_OBSERVER(cuIpcCloseMemHandle, CUdeviceptr)
(ThreadRecorder& thread, const Call& call, const Real<CUdeviceptr>& real, CUdeviceptr pointer) {
  return freed(thread, call, pointer, HeapKind::kImported, nullptr, [&] { return real(pointer); });
}

FAULTLINE_OBSERVER(cuMemAllocAsync, CUdeviceptr*, std::size_t, CUstream)
(ThreadRecorder& thread, const Call& call, const Real<CUdeviceptr*, std::size_t, CUstream>& real, CUdeviceptr* pointer, std::size_t size_bytes, CUstream stream) {
  const CUresult result = real(pointer, size_bytes, stream);
  return allocated(thread, call, result, {result == CUDA_SUCCESS ? *pointer : 0, size_bytes, HeapKind::kStreamOrderedPool, stream, Natives::kIfNoPython});
}

FAULTLINE_OBSERVER(cuMemAllocFromPoolAsync, CUdeviceptr*, std::size_t, CUmemoryPool, CUstream)
(ThreadRecorder& thread, const Call& call, const Real<CUdeviceptr*, std::size_t, CUmemoryPool, CUstream>& real, CUdeviceptr* pointer, std::size_t size_bytes,
 CUmemoryPool pool, CUstream stream) {
  const CUresult result = real(pointer, size_bytes, pool, stream);
  return allocated(thread, call, result, {result == CUDA_SUCCESS ? *pointer : 0, size_bytes, HeapKind::kStreamOrderedPool, stream, Natives::kIfNoPython});
}

FAULTLINE_OBSERVER(cuMemFreeAsync, CUdeviceptr, CUstream)
(ThreadRecorder& thread, const Call& call, const Real<CUdeviceptr, CUstream>& real, CUdeviceptr pointer, CUstream stream) {
  return freed(thread, call, pointer, HeapKind::kStreamOrderedPool, stream, [&] { return real(pointer, stream); });
}

FAULTLINE_OBSERVER(cuMemCreate, CUmemGenericAllocationHandle*, std::size_t, const CUmemAllocationProp*, unsigned long long)
(ThreadRecorder& thread, const Call& call, const Real<CUmemGenericAllocationHandle*, std::size_t, const CUmemAllocationProp*, unsigned long long>& real,
 CUmemGenericAllocationHandle* handle, std::size_t size_bytes, const CUmemAllocationProp* properties, unsigned long long flags) {
  const CUresult result = real(handle, size_bytes, properties, flags);
  const bool on_device = properties != nullptr && properties->location.type == CU_MEM_LOCATION_TYPE_DEVICE;
  if (result == CUDA_SUCCESS) {
    physical_memory().created(*handle, on_device ? properties->location.id : -1);
  } else if (on_device) {
    allocation_failed(thread, call, result, size_bytes, HeapKind::kDriver, static_cast<std::uint16_t>(properties->location.id));
  } else {
    thread.recorder().failed(thread, call.name, result);
  }
  return result;
}

FAULTLINE_OBSERVER(cuMemMap, CUdeviceptr, std::size_t, std::size_t, CUmemGenericAllocationHandle, unsigned long long)
(ThreadRecorder& thread, const Call& call, const Real<CUdeviceptr, std::size_t, std::size_t, CUmemGenericAllocationHandle, unsigned long long>& real, CUdeviceptr address,
 std::size_t size_bytes, std::size_t offset, CUmemGenericAllocationHandle handle, unsigned long long flags) {
  Recorder& recorder = thread.recorder();
  const CUresult result = real(address, size_bytes, offset, handle, flags);
  const int device = physical_memory().device(handle, recorder.current_device());
  if (result != CUDA_SUCCESS) {
    recorder.failed(thread, call.name, result);
  } else if (device >= 0) {
    Event event = thread.stamp(EventKind::kMap, Natives::kAlways);
    event.device = static_cast<std::uint16_t>(device);
    event.heap = recorder.heap(thread, HeapKind::kDriver, event.device);
    event.address = address;
    event.set(kAddressKnown);
    event.size_bytes = size_bytes;
    recorder.live().add_mapping(address, size_bytes, event.device);
    physical_memory().mapped(address, size_bytes, device);
    thread.append(event);
    note_unasked(thread, event);
  }
  return result;
}

FAULTLINE_OBSERVER(cuMemRelease, CUmemGenericAllocationHandle)
(ThreadRecorder& thread, const Call& call, const Real<CUmemGenericAllocationHandle>& real, CUmemGenericAllocationHandle handle) {
  physical_memory().released(handle);  // what is mapped keeps its device
  return told(thread, call, real(handle));
}

FAULTLINE_OBSERVER(cuMemUnmap, CUdeviceptr, std::size_t)
(ThreadRecorder& thread, const Call& call, const Real<CUdeviceptr, std::size_t>& real, CUdeviceptr address, std::size_t size_bytes) {
  Recorder& recorder = thread.recorder();
  const CUresult result = real(address, size_bytes);
  if (result != CUDA_SUCCESS) {
    recorder.failed(thread, call.name, result);
    return result;
  }
  const Event unmap = thread.stamp(EventKind::kUnmap);
  physical_memory().unmapped(address, size_bytes, [&](std::uint64_t start, std::uint64_t bytes, int device) {
    Event event = unmap;
    event.device = static_cast<std::uint16_t>(device);
    event.heap = recorder.heap(thread, HeapKind::kDriver, event.device);
    event.address = start;
    event.set(kAddressKnown);
    event.size_bytes = bytes;
    recorder.live().remove_mapping(start, bytes, event.device);
    thread.append(event);
  });
  return result;
}

}  // namespace faultline::capture
