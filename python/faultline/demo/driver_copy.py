"""A program of the CUDA driver interface with two slips: it copies the last batch in full although it is smaller, and frees a buffer twice.

faultline run --gpu virtual -- python driver_copy.py
"""

import ctypes
import sys

cuda = ctypes.CDLL("libcuda.so.1")
BATCH_BYTES = 1 << 20


def take(size):
    buffer = ctypes.c_uint64()
    cuda.cuMemAlloc_v2(ctypes.byref(buffer), ctypes.c_size_t(size))
    return buffer


def main():
    device, context = ctypes.c_int(), ctypes.c_void_p()
    if cuda.cuInit(0) or cuda.cuDeviceGet(ctypes.byref(device), 0):
        return 2
    cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device)
    cuda.cuCtxSetCurrent(context)

    batch = bytes(BATCH_BYTES)
    full, last = take(BATCH_BYTES), take(BATCH_BYTES // 3)
    for buffer in (full, last):
        if cuda.cuMemcpyHtoD_v2(buffer, batch, ctypes.c_size_t(BATCH_BYTES)):
            print("a batch was not copied")
    cuda.cuMemFree_v2(full)
    cuda.cuMemFree_v2(last)
    return 1 if cuda.cuMemFree_v2(full) else 0


sys.exit(main())
