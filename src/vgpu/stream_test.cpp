#include <atomic>
#include <thread>

#include "vgpu/vgpu_test_support.h"

namespace faultline::vgpu {
namespace {

using VirtualStreams = VirtualGpu;

TEST_F(VirtualStreams, AsyncWorkRunsInTheOrderOfItsStream) {
  const CUstream stream = create_stream();
  const CUdeviceptr address = allocate(100);
  {
    Gate gate(stream);
    for (unsigned char value = 0; value < 100; ++value) EXPECT_CUDA(cuMemsetD8Async(address, value, 100, stream));
    EXPECT_EQ(cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
  }
  ASSERT_CUDA(cuStreamSynchronize(stream));
  EXPECT_CUDA(cuStreamQuery(stream));
  EXPECT_EQ(byte_at(address + 50), 99);
}

TEST_F(VirtualStreams, ACopyWaitsForTheEventOfAnotherStream) {
  const CUstream producer = create_stream(CU_STREAM_NON_BLOCKING), consumer = create_stream(CU_STREAM_NON_BLOCKING);
  const CUevent ready = create_event();
  const CUdeviceptr source = allocate(100), target = allocate(100);
  ASSERT_CUDA(cuMemsetD8(source, 1, 100));
  ASSERT_CUDA(cuMemsetD8(target, 0, 100));
  ASSERT_CUDA(cuCtxSynchronize());
  {
    Gate gate(producer);
    ASSERT_CUDA(cuMemsetD8Async(source, 2, 100, producer));
    ASSERT_CUDA(cuEventRecord(ready, producer));
    ASSERT_CUDA(cuStreamWaitEvent(consumer, ready, 0));
    ASSERT_CUDA(cuMemcpyDtoDAsync(target, source, 100, consumer));
    EXPECT_EQ(cuEventQuery(ready), CUDA_ERROR_NOT_READY);
    EXPECT_EQ(cuStreamQuery(consumer), CUDA_ERROR_NOT_READY);
  }
  ASSERT_CUDA(cuStreamSynchronize(consumer));
  EXPECT_CUDA(cuEventQuery(ready));
  EXPECT_EQ(byte_at(target), 2);
}

TEST_F(VirtualStreams, AWaitMeansTheLatestRecordWhenItWasAsked) {
  const CUstream first = create_stream(CU_STREAM_NON_BLOCKING), second = create_stream(CU_STREAM_NON_BLOCKING);
  const CUevent event = create_event();
  ASSERT_CUDA(cuEventRecord(event, first));
  ASSERT_CUDA(cuStreamWaitEvent(second, event, 0));
  Gate gate(first);
  ASSERT_CUDA(cuEventRecord(event, first));
  ASSERT_CUDA(cuStreamSynchronize(second));
  EXPECT_EQ(cuEventQuery(event), CUDA_ERROR_NOT_READY);
}

TEST_F(VirtualStreams, AnEventNeverRecordedIsComplete) {
  const CUevent event = create_event();
  EXPECT_CUDA(cuEventQuery(event));
  EXPECT_CUDA(cuEventSynchronize(event));
  EXPECT_CUDA(cuStreamWaitEvent(create_stream(), event, 0));
}

TEST_F(VirtualStreams, ElapsedTimeGoesFromRecordToRecord) {
  const CUstream stream = create_stream();
  const CUevent start = create_event(), end = create_event();
  float milliseconds = -1;
  EXPECT_EQ(cuEventElapsedTime(&milliseconds, start, end), CUDA_ERROR_INVALID_HANDLE);
  ASSERT_CUDA(cuEventRecord(start, stream));
  {
    Gate gate(stream);
    ASSERT_CUDA(cuEventRecord(end, stream));
    EXPECT_EQ(cuEventElapsedTime(&milliseconds, start, end), CUDA_ERROR_NOT_READY);
  }
  ASSERT_CUDA(cuEventSynchronize(end));
  ASSERT_CUDA(cuEventElapsedTime(&milliseconds, start, end));
  EXPECT_GT(milliseconds, 0);
}

TEST_F(VirtualStreams, PageableMemoryIsReadBeforeTheCallReturns) {
  const CUstream stream = create_stream();
  const CUdeviceptr address = allocate(100);
  std::vector<std::uint8_t> bytes(100, 1);
  {
    Gate gate(stream);
    ASSERT_CUDA(cuMemcpyHtoDAsync(address, bytes.data(), 100, stream));
    bytes.assign(100, 2);
  }
  ASSERT_CUDA(cuStreamSynchronize(stream));
  EXPECT_EQ(byte_at(address), 1);
}

TEST_F(VirtualStreams, PinnedMemoryIsReadWhenTheStreamGetsThere) {
  const CUstream stream = create_stream();
  const CUdeviceptr address = allocate(100);
  std::uint8_t* const pinned = allocate_pinned(100);
  pinned[0] = 1;
  {
    Gate gate(stream);
    ASSERT_CUDA(cuMemcpyHtoDAsync(address, pinned, 100, stream));
    pinned[0] = 2;
  }
  ASSERT_CUDA(cuStreamSynchronize(stream));
  EXPECT_EQ(byte_at(address), 2);
}

TEST_F(VirtualStreams, PinnedMemoryIsWrittenWhenTheStreamGetsThere) {
  const CUstream stream = create_stream();
  const CUdeviceptr address = allocate(100);
  std::uint8_t* const pinned = allocate_pinned(100);
  pinned[0] = 1;
  ASSERT_CUDA(cuMemsetD8(address, 7, 100));
  ASSERT_CUDA(cuCtxSynchronize());
  {
    Gate gate(stream);
    ASSERT_CUDA(cuMemcpyDtoHAsync(pinned, address, 100, stream));
    EXPECT_EQ(pinned[0], 1);
  }
  ASSERT_CUDA(cuStreamSynchronize(stream));
  EXPECT_EQ(pinned[0], 7);
}

TEST_F(VirtualStreams, PageableMemoryIsWrittenBeforeTheCallReturns) {
  const CUstream stream = create_stream();
  const CUdeviceptr address = allocate(100);
  std::vector<std::uint8_t> bytes(100, 1);
  ASSERT_CUDA(cuMemsetD8Async(address, 7, 100, stream));
  ASSERT_CUDA(cuMemcpyDtoHAsync(bytes.data(), address, 100, stream));
  EXPECT_EQ(bytes, std::vector<std::uint8_t>(100, 7));
}

TEST_F(VirtualStreams, LegacyDefaultStreamAndBlockingStreamsWaitForEachOther) {
  const CUstream blocking = create_stream();
  const CUdeviceptr address = allocate(1);
  {
    Gate gate(blocking);
    ASSERT_CUDA(cuMemsetD8Async(address, 1, 1, blocking));
    ASSERT_CUDA(cuMemsetD8Async(address, 2, 1, nullptr));
    EXPECT_EQ(cuStreamQuery(nullptr), CUDA_ERROR_NOT_READY);
  }
  ASSERT_CUDA(cuCtxSynchronize());
  EXPECT_EQ(byte_at(address), 2);
  {
    Gate gate(nullptr);
    ASSERT_CUDA(cuMemsetD8Async(address, 3, 1, nullptr));
    ASSERT_CUDA(cuMemsetD8Async(address, 4, 1, blocking));
    EXPECT_EQ(cuStreamQuery(blocking), CUDA_ERROR_NOT_READY);
  }
  ASSERT_CUDA(cuCtxSynchronize());
  EXPECT_EQ(byte_at(address), 4);
}

TEST_F(VirtualStreams, NonBlockingStreamsStandAside) {
  const CUstream free = create_stream(CU_STREAM_NON_BLOCKING);
  const CUdeviceptr address = allocate(1);
  Gate gate(nullptr);
  ASSERT_CUDA(cuMemsetD8Async(address, 1, 1, free));
  ASSERT_CUDA(cuStreamSynchronize(free));
  EXPECT_EQ(cuStreamQuery(nullptr), CUDA_ERROR_NOT_READY);
}

TEST_F(VirtualStreams, PerThreadDefaultStreamsAreDifferentAndFoundByFlag) {
  unsigned long long here = 0, there = 0, legacy = 0;
  void* function = nullptr;
  ASSERT_CUDA(
      cuGetProcAddress("cuStreamGetId", &function, 12000, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM, nullptr));
  auto* const id_of = reinterpret_cast<CUresult (*)(CUstream, unsigned long long*)>(function);
  ASSERT_CUDA(id_of(nullptr, &here));
  unsigned long long named = 0;
  ASSERT_CUDA(cuStreamGetId(CU_STREAM_PER_THREAD, &named));
  EXPECT_EQ(here, named);
  ASSERT_CUDA(cuStreamGetId(nullptr, &legacy));
  std::thread([&] {
    EXPECT_CUDA(cuCtxSetCurrent(context_));
    EXPECT_CUDA(id_of(nullptr, &there));
  }).join();
  EXPECT_NE(here, there);
  EXPECT_NE(here, legacy);
}

TEST_F(VirtualStreams, SynchronousCopiesWaitForTheDefaultStream) {
  const CUstream blocking = create_stream();
  const CUdeviceptr address = allocate(1);
  std::uint8_t value = 0;
  Gate gate(blocking);
  ASSERT_CUDA(cuMemsetD8Async(address, 9, 1, blocking));
  std::thread opener([&] { gate.open(); });
  ASSERT_CUDA(cuMemcpyDtoH(&value, address, 1));
  EXPECT_EQ(value, 9);
  opener.join();
}

TEST_F(VirtualStreams, HostFunctionsMayNotUseTheDriver) {
  struct Seen {
    CUresult result = CUDA_SUCCESS;
    CUdeviceptr address = 0;
  } seen;
  ASSERT_CUDA(cuLaunchHostFunc(
      nullptr,
      [](void* argument) {
        auto* const self = static_cast<Seen*>(argument);
        self->result = cuMemAlloc(&self->address, 1);
      },
      &seen));
  ASSERT_CUDA(cuCtxSynchronize());
  EXPECT_EQ(seen.result, CUDA_ERROR_NOT_PERMITTED);
}

TEST_F(VirtualStreams, CallbacksGetTheirStreamAndState) {
  struct Seen {
    CUstream stream = nullptr;
    CUresult state = CUDA_ERROR_UNKNOWN;
  } seen;
  const CUstream stream = create_stream();
  ASSERT_CUDA(cuStreamAddCallback(
      stream,
      [](CUstream which, CUresult state, void* argument) {
        *static_cast<Seen*>(argument) = {which, state};
      },
      &seen, 0));
  ASSERT_CUDA(cuStreamSynchronize(stream));
  EXPECT_EQ(seen.stream, stream);
  EXPECT_EQ(seen.state, CUDA_SUCCESS);
}

TEST_F(VirtualStreams, ValuesInMemoryHoldAndReleaseStreams) {
  const CUstream waiting = create_stream(CU_STREAM_NON_BLOCKING), writing = create_stream(CU_STREAM_NON_BLOCKING);
  const CUdeviceptr flag = allocate(8), target = allocate(1);
  ASSERT_CUDA(cuMemsetD32(flag, 0, 2));
  ASSERT_CUDA(cuMemsetD8(target, 0, 1));
  ASSERT_CUDA(cuCtxSynchronize());
  ASSERT_CUDA(cuStreamWaitValue64(waiting, flag, 5, CU_STREAM_WAIT_VALUE_GEQ));
  ASSERT_CUDA(cuMemsetD8Async(target, 1, 1, waiting));
  EXPECT_EQ(cuStreamQuery(waiting), CUDA_ERROR_NOT_READY);
  ASSERT_CUDA(cuStreamWriteValue64(writing, flag, 6, 0));
  ASSERT_CUDA(cuStreamSynchronize(waiting));
  EXPECT_EQ(byte_at(target), 1);
  EXPECT_EQ(cuStreamWriteValue32(writing, flag + 2, 0, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuStreamWriteValue32(writing, 0x1000, 0, 0), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(VirtualStreams, ADestroyedStreamDrains) {
  const CUstream stream = create_stream(CU_STREAM_NON_BLOCKING);
  const CUdeviceptr address = allocate(1);
  {
    Gate gate(stream);
    ASSERT_CUDA(cuMemsetD8Async(address, 8, 1, stream));
    ASSERT_CUDA(cuStreamDestroy(stream));
    EXPECT_EQ(cuStreamQuery(stream), CUDA_ERROR_INVALID_HANDLE);
  }
  ASSERT_CUDA(cuCtxSynchronize());
  EXPECT_EQ(byte_at(address), 8);
}

TEST_F(VirtualStreams, FreeingMemoryWaitsForItsUsers) {
  const CUstream stream = create_stream(CU_STREAM_NON_BLOCKING);
  const CUdeviceptr address = allocate(1), kept = allocate(1);
  Gate gate(stream);
  ASSERT_CUDA(cuMemsetD8Async(address, 8, 1, stream));
  ASSERT_CUDA(cuMemcpyDtoDAsync(kept, address, 1, stream));
  std::atomic<bool> opened{false};
  std::thread opener([&] {
    opened = true;
    gate.open();
  });
  ASSERT_CUDA(cuMemFree(address));
  EXPECT_TRUE(opened);
  opener.join();
  EXPECT_EQ(byte_at(kept), 8);
}

TEST_F(VirtualStreams, UnknownHandlesAreRefused) {
  const auto stream = reinterpret_cast<CUstream>(0x1234);
  const auto event = reinterpret_cast<CUevent>(0x1234);
  EXPECT_EQ(cuStreamSynchronize(stream), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(cuEventQuery(event), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(cuEventRecord(event, nullptr), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(cuStreamDestroy(nullptr), CUDA_ERROR_INVALID_HANDLE);
}

TEST_F(VirtualStreams, ManyThreadsShareStreamsAndEvents) {
  const CUstream shared = create_stream();
  const CUdeviceptr counters = allocate(1000);
  std::vector<std::thread> threads;
  for (unsigned char number = 0; number < 6; ++number) {
    threads.emplace_back([&, number] {
      EXPECT_CUDA(cuCtxSetCurrent(context_));
      const CUstream own = create_stream(CU_STREAM_NON_BLOCKING);
      const CUevent event = create_event();
      for (int round = 0; round < 100; ++round) {
        EXPECT_CUDA(cuMemsetD8Async(counters + number * 100u, number, 100, own));
        EXPECT_CUDA(cuEventRecord(event, own));
        EXPECT_CUDA(cuStreamWaitEvent(shared, event, 0));
        EXPECT_CUDA(cuMemsetD8Async(counters + number * 100u, static_cast<unsigned char>(number + 1), 100,
                                    round % 2 == 0 ? shared : nullptr));
        EXPECT_CUDA(cuEventRecord(event, shared));
        EXPECT_CUDA(cuStreamWaitEvent(own, event, 0));
        EXPECT_CUDA(cuStreamSynchronize(nullptr));
      }
      EXPECT_CUDA(cuEventDestroy(event));
      EXPECT_CUDA(cuStreamDestroy(own));
    });
  }
  for (std::thread& thread : threads) thread.join();
  ASSERT_CUDA(cuCtxSynchronize());
  EXPECT_EQ(byte_at(counters + 350), 4);
}

}  // namespace
}  // namespace faultline::vgpu
