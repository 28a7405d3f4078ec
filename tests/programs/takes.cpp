// Memory of several kinds, taken and given back or kept, and calls that the driver refuses for other reasons than their pointers.
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "driver_program.h"

static constexpr size_t kBytes = 5 << 20;
static std::vector<char> host(kBytes);

static void from_pool(bool in_capture, bool is_freed) {
  CUstream stream;
  CUgraph graph = nullptr;
  CUdeviceptr memory;
  CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  if (in_capture) CHECK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  CHECK(cuMemAllocAsync(&memory, kBytes, stream));
  if (is_freed) CHECK(cuMemFreeAsync(memory, stream));
  if (in_capture) CHECK(cuStreamEndCapture(stream, &graph));
}

struct Mapped {
  CUdeviceptr address = 0;
  size_t piece = 0;
};
static Mapped map_pieces(int pieces) {
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  CUmemAccessDesc access{};
  access.location = properties.location;
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  Mapped mapped;
  CHECK(cuMemGetAllocationGranularity(&mapped.piece, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
  CHECK(cuMemAddressReserve(&mapped.address, 8 * mapped.piece, 0, 0, 0));
  for (int i = 0; i < pieces; ++i) {
    CUmemGenericAllocationHandle handle;
    CHECK(cuMemCreate(&handle, mapped.piece, &properties, 0));
    CHECK(cuMemMap(mapped.address + i * mapped.piece, mapped.piece, 0, handle, 0));
    CHECK(cuMemRelease(handle));
  }
  CHECK(cuMemSetAccess(mapped.address, pieces * mapped.piece, &access, 1));
  return mapped;
}

static CUresult free_while_capturing(CUdeviceptr memory) {
  CUstream stream;
  CUgraph graph = nullptr;
  CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  CHECK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  const CUresult refused = cuMemFree(memory);
  (void)cuStreamEndCapture(stream, &graph);
  return refused;
}

static CUresult free_on_a_stream_that_is_gone(CUdeviceptr memory) {
  CUstream stream;
  CHECK(cuStreamCreate(&stream, 0));
  CHECK(cuStreamDestroy(stream));
  return cuMemFreeAsync(memory, stream);
}

static void refused_then(CUresult (*refuse)(CUdeviceptr), bool is_freed_then) {
  const CUdeviceptr memory = take(kBytes);
  if (refuse(memory) == CUDA_SUCCESS) std::exit(5);
  CHECK(cuMemcpyHtoD(memory, host.data(), kBytes));
  if (is_freed_then) CHECK(cuMemFree(memory));
}

int main(int count, char** words) {
  const std::map<std::string, std::function<void()>> cases = {
      {"nothing", [] {}},
      {"pinned", [] { void* memory; CHECK(cuMemAllocHost(&memory, kBytes)); }},
      {"pinned-freed", [] { void* memory; CHECK(cuMemAllocHost(&memory, kBytes)); CHECK(cuMemFreeHost(memory)); }},
      {"registered", [] { CHECK(cuMemHostRegister(host.data(), kBytes, 0)); }},
      {"mapped", [] { map_pieces(3); }},
      {"mapped-freed", [] { const Mapped mapped = map_pieces(3); CHECK(cuMemUnmap(mapped.address, 3 * mapped.piece)); }},
      {"mapped-half", [] { const Mapped mapped = map_pieces(3); CHECK(cuMemUnmap(mapped.address, mapped.piece)); }},
      {"fills-mapped", [] { const Mapped mapped = map_pieces(3); CHECK(cuMemsetD8(mapped.address, 1, 3 * mapped.piece)); CHECK(cuMemUnmap(mapped.address, 3 * mapped.piece)); }},
      {"fills-beyond", [] { const Mapped mapped = map_pieces(3); (void)cuMemsetD8(mapped.address, 1, 4 * mapped.piece); CHECK(cuMemUnmap(mapped.address, 3 * mapped.piece)); }},
      {"pool", [] { from_pool(false, false); }},
      {"pool-freed", [] { from_pool(false, true); }},
      {"graph", [] { from_pool(true, false); }},
      {"graph-freed", [] { from_pool(true, true); }},
      {"context", [] { CUcontext context; CHECK(cuCtxCreate(&context, nullptr, 0, 0)); take(kBytes); CHECK(cuCtxDestroy(context)); }},
      {"capture-freed", [] { refused_then(free_while_capturing, true); }},
      {"capture-kept", [] { refused_then(free_while_capturing, false); }},
      {"gone-freed", [] { refused_then(free_on_a_stream_that_is_gone, true); }},
      {"gone-kept", [] { refused_then(free_on_a_stream_that_is_gone, false); }},
      {"refused", [] { CUdeviceptr memory; (void)cuMemAlloc(&memory, 0); }},
  };
  begin();
  cases.at(words[1])();
  return count > 2 ? std::atoi(words[2]) : 0;
}
