"""Stands for a library that takes device memory from the driver itself, past PyTorch, as communication libraries do."""
import ctypes

_driver = ctypes.CDLL("libcuda.so.1")
_driver.cuMemAlloc_v2.argtypes = (ctypes.POINTER(ctypes.c_uint64), ctypes.c_size_t)


def take(size_bytes):
    address = ctypes.c_uint64()
    status = _driver.cuMemAlloc_v2(ctypes.byref(address), size_bytes)
    if status != 0:
        raise RuntimeError(f"communicator: unhandled cuda error {status}")
    return address.value
