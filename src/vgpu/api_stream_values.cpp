// Numbers in memory that streams write and wait for.
#include <chrono>
#include <thread>

#include "vgpu/api.h"
#include "vgpu/call.h"
#include "vgpu/capture.h"
#include "vgpu/memory.h"

namespace faultline::vgpu {
namespace {

template <class Number>
Number* number_at(CUdeviceptr address, bool to_write) {
  require(address % sizeof(Number) == 0);
  std::byte* const bytes = Memory::get().bytes_of(ByteRange::of(address, sizeof(Number)), to_write);
  require(bytes != nullptr);
  return reinterpret_cast<Number*>(bytes);
}

template <class Number>
bool satisfied(Number now, Number value, unsigned how) {
  switch (how) {
    case CU_STREAM_WAIT_VALUE_GEQ: return static_cast<std::make_signed_t<Number>>(now - value) >= 0;
    case CU_STREAM_WAIT_VALUE_EQ: return now == value;
    case CU_STREAM_WAIT_VALUE_AND: return (now & value) != 0;
    default: return static_cast<Number>(~(now | value)) != 0;  // nor
  }
}

template <class Number>
Operation write_operation(CUdeviceptr address, Number value) {
  const auto run = [place = number_at<Number>(address, true), value] {
    __atomic_store_n(place, value, __ATOMIC_SEQ_CST);
  };
  return {.type = CU_GRAPH_NODE_TYPE_BATCH_MEM_OP, .run = run};
}

template <class Number>
Operation wait_operation(CUdeviceptr address, Number value, unsigned flags) {
  const unsigned how = flags & 3u;
  const auto run = [place = number_at<Number>(address, false), value, how] {
    while (!satisfied(__atomic_load_n(place, __ATOMIC_SEQ_CST), value, how) && !exiting())
      std::this_thread::sleep_for(std::chrono::microseconds(50));
  };
  return {.type = CU_GRAPH_NODE_TYPE_BATCH_MEM_OP, .run = run};
}

void submit_to(CUstream stream, Operation operation) { submit(*require_stream(stream), std::move(operation)); }

Operation batch_operation(const CUstreamBatchMemOpParams& item) {
  switch (item.operation) {
    case CU_STREAM_MEM_OP_WRITE_VALUE_32:
      return write_operation<std::uint32_t>(item.writeValue.address, item.writeValue.value);
    case CU_STREAM_MEM_OP_WRITE_VALUE_64:
      return write_operation<std::uint64_t>(item.writeValue.address, item.writeValue.value64);
    case CU_STREAM_MEM_OP_WAIT_VALUE_32:
      return wait_operation<std::uint32_t>(item.waitValue.address, item.waitValue.value, item.waitValue.flags);
    case CU_STREAM_MEM_OP_WAIT_VALUE_64:
      return wait_operation<std::uint64_t>(item.waitValue.address, item.waitValue.value64, item.waitValue.flags);
    case CU_STREAM_MEM_OP_BARRIER:
    case CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES: return {};
    default: refuse(CUDA_ERROR_NOT_SUPPORTED);
  }
}

}  // namespace

void api::cuStreamWriteValue32(CUstream stream, CUdeviceptr address, cuuint32_t value, unsigned) {
  submit_to(stream, write_operation<std::uint32_t>(address, value));
}
void api::cuStreamWriteValue64(CUstream stream, CUdeviceptr address, cuuint64_t value, unsigned) {
  submit_to(stream, write_operation<std::uint64_t>(address, value));
}
void api::cuStreamWaitValue32(CUstream stream, CUdeviceptr address, cuuint32_t value, unsigned flags) {
  submit_to(stream, wait_operation<std::uint32_t>(address, value, flags));
}
void api::cuStreamWaitValue64(CUstream stream, CUdeviceptr address, cuuint64_t value, unsigned flags) {
  submit_to(stream, wait_operation<std::uint64_t>(address, value, flags));
}

void api::cuStreamBatchMemOp(CUstream stream, unsigned count, CUstreamBatchMemOpParams* items, unsigned) {
  require(count != 0 && items != nullptr);
  const StreamPointer target = require_stream(stream);
  std::vector<Operation> operations;
  for (unsigned at = 0; at < count; ++at) operations.push_back(batch_operation(items[at]));
  for (Operation& operation : operations) submit(*target, std::move(operation));
}

}  // namespace faultline::vgpu
