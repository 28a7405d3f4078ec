"""The device of a dry run: PyTorch's allocator, modelled, and the trace it writes (libfaultline_dryrun.so).

A thin binding. The library decides where each block goes and when memory is exhausted; see src/dryrun/dryrun.h for what each call means.
"""

from __future__ import annotations

import ctypes
from ctypes import POINTER, byref, c_char_p, c_int32, c_int64, c_uint32, c_uint64, c_void_p

HEAP_DRIVER, HEAP_TORCH = 0, 1


class Stats(ctypes.Structure):
    _fields_ = [
        (name, c_uint64)
        for name in (
            "allocated_bytes",
            "peak_allocated_bytes",
            "reserved_bytes",
            "peak_reserved_bytes",
            "requested_bytes",
            "peak_requested_bytes",
            "inactive_split_bytes",
            "current_allocations",
            "allocations",
            "current_segments",
            "segments_taken",
            "segments_returned",
            "alloc_retries",
            "out_of_memories",
            "device_free_bytes",
            "limit_bytes",
        )
    ]


class Segment(ctypes.Structure):
    _fields_ = [
        (name, c_uint64)
        for name in (
            "address",
            "size_bytes",
            "allocated_bytes",
            "requested_bytes",
            "stream_handle",
            "pool_major",
            "pool_minor",
        )
    ] + [
        ("first_block", c_uint32),
        ("block_count", c_uint32),
        ("is_small", c_int32),
        ("is_expandable", c_int32),
        ("device", c_uint32),
    ]


class Block(ctypes.Structure):
    _fields_ = [
        ("address", c_uint64),
        ("size_bytes", c_uint64),
        ("requested_bytes", c_uint64),
        ("allocation", c_uint32),
        ("stack", c_uint32),
    ]


_SIGNATURES = {
    "open": (c_void_p, [c_char_p, c_char_p, c_uint64, c_uint64, c_char_p, c_char_p, c_char_p, c_uint64]),
    "open_pool": (
        c_void_p,
        [c_char_p, c_char_p, c_uint64, c_uint64, c_char_p, c_int32, c_char_p, c_char_p, c_uint64],
    ),
    "no_trace": (c_uint64, [c_char_p, c_uint64]),
    "add_device": (c_uint32, [c_void_p, c_char_p, c_uint64, c_uint64]),
    "close": (None, [c_void_p]),
    "error": (c_uint64, [c_void_p, c_char_p, c_uint64]),
    "after_fork_child": (None, [c_void_p]),
    "string": (c_uint32, [c_void_p, c_char_p, c_uint64]),
    "frame": (c_uint32, [c_void_p, c_uint32, c_uint32, c_uint32]),
    "stack": (c_uint32, [c_void_p, c_uint32, c_uint32]),
    "tensor": (c_uint32, [c_void_p, c_uint32, c_uint32, c_uint32, c_uint32, c_uint32, POINTER(c_int64)]),
    "stream": (c_uint32, [c_void_p, c_uint32, c_uint64]),
    "pool": (c_uint32, [c_void_p, c_uint32, c_uint64, c_uint64]),
    "release_pool": (None, [c_void_p, c_uint32, c_uint64, c_uint64, c_int64]),
    "alloc": (
        c_int32,
        [c_void_p, c_uint32, c_uint64, c_uint32, c_uint32, c_uint32, c_uint32, POINTER(c_uint32), POINTER(c_uint64)],
    ),
    "estimate": (None, [c_void_p, c_uint32, c_uint32, c_uint32, c_uint64, c_uint64, c_uint32, c_uint32]),
    "free": (None, [c_void_p, c_uint32, c_uint32]),
    "empty_cache": (None, [c_void_p, c_uint32, c_uint32]),
    "set_limit": (None, [c_void_p, c_uint32, c_uint64]),
    "set_overcommit": (None, [c_void_p, c_int32]),
    "take_outside": (c_int32, [c_void_p, c_uint32, c_uint64, c_uint32]),
    "pin": (c_uint32, [c_void_p, c_uint64, c_uint32, c_uint32]),
    "unpin": (None, [c_void_p, c_uint32, c_uint32]),
    "op_begin": (None, [c_void_p, c_uint32, c_uint32]),
    "op_end": (None, [c_void_p, c_uint32, c_int32, c_uint32]),
    "tensor_note": (None, [c_void_p, c_uint32, c_uint32, c_uint32]),
    "step_mark": (None, [c_void_p, c_uint64, c_uint32]),
    "property": (None, [c_void_p, c_char_p, c_char_p]),
    "lost": (None, [c_void_p, c_char_p, c_uint64]),
    "get_stats": (None, [c_void_p, c_uint32, POINTER(Stats)]),
    "reset_peaks": (None, [c_void_p, c_uint32]),
    "snapshot": (None, [c_void_p, POINTER(c_uint64), POINTER(c_uint64)]),
    "snapshot_segments": (c_uint64, [c_void_p, POINTER(Segment), c_uint64]),
    "snapshot_blocks": (c_uint64, [c_void_p, POINTER(Block), c_uint64]),
}


class OutOfMemory(Exception):
    """The device cannot serve the request. The dry run turns it into PyTorch's own error."""


class NoTrace(RuntimeError):
    """The trace's file cannot be made."""

    def __init__(self, text: str, why: str):
        super().__init__(text)
        self.why = why  # as a clause


class Device:
    def __init__(
        self,
        library: str,
        trace_path: str,
        name: str,
        capacity_bytes: int,
        context_bytes: int,
        alloc_conf: str,
        torch_version: str,
    ):
        self.sizes = [(capacity_bytes, context_bytes)]  # of each GPU
        self._begin(
            library,
            "_open",
            trace_path.encode(),
            name.encode(),
            capacity_bytes,
            context_bytes,
            alloc_conf.encode(),
            torch_version.encode(),
        )

    def _begin(self, library: str, opens: str, *arguments) -> None:
        lib = ctypes.PyDLL(library)  # calls are short and never call back: keep the interpreter's lock
        for function, (result, types) in _SIGNATURES.items():
            entry = getattr(lib, "faultline_" + function)
            entry.restype, entry.argtypes = result, types
            setattr(self, "_" + function, entry)
        problem = ctypes.create_string_buffer(1000)
        self._handle = getattr(self, opens)(*arguments, problem, len(problem))
        if not self._handle:
            text, why = problem.value, ctypes.create_string_buffer(1000)
            has_trace = not self._no_trace(why, len(why))
            text = text.decode("utf-8", "replace")
            raise RuntimeError(text) if has_trace else NoTrace(text, why.value.decode("utf-8", "replace"))
        self._strings: dict[str, int] = {"": 0}
        self._tensors: dict[tuple, int] = {}

    # --- names

    def string(self, text: str) -> int:
        known = self._strings.get(text)
        if known is None:
            encoded = text.encode("utf-8", "backslashreplace")
            known = self._strings[text] = self._string(self._handle, encoded, len(encoded))
        return known

    def frame(self, function: str, file: str, line: int) -> int:
        return self._frame(self._handle, self.string(function), self.string(file), max(line, 0))

    def stack(self, caller: int, frame: int) -> int:
        return self._stack(self._handle, caller, frame)

    def tensor(self, shape: tuple, dtype: str, op: str = "", name: str = "", operands: str = "") -> int:
        key = (shape, dtype, op, name, operands)
        known = self._tensors.get(key)
        if known is None:
            dims = (c_int64 * len(shape))(*shape)
            known = self._tensors[key] = self._tensor(
                self._handle,
                self.string(dtype),
                self.string(op),
                self.string(name),
                self.string(operands),
                len(shape),
                dims,
            )
        return known

    def stream(self, handle: int, place: int = 0) -> int:
        return self._stream(self._handle, place, handle)

    # --- memory; `place` is the number of the GPU

    def add(self, name: str, capacity_bytes: int, context_bytes: int) -> None:
        """One more GPU."""
        self._add_device(self._handle, name.encode(), capacity_bytes, context_bytes)
        self.sizes.append((capacity_bytes, context_bytes))

    def alloc(
        self, size_bytes: int, stream: int = 0, heap: int = HEAP_TORCH, stack: int = 0, tensor: int = 0, place: int = 0
    ) -> tuple[int, int]:
        allocation, address = c_uint32(), c_uint64()  # of this call: the program's threads come here beside each other
        if self._alloc(self._handle, place, size_bytes, stream, heap, stack, tensor, byref(allocation), byref(address)):
            raise OutOfMemory(size_bytes)
        return allocation.value, address.value

    def estimate(self, size, allocation: int, stream: int = 0, stack: int = 0, place: int = 0) -> None:
        """The size of what was just allocated is an Estimated; allocation 0: nothing was, and may be for a moment."""
        if size.is_open:
            what = self.string(size.what)
            self._estimate(self._handle, place, stream, allocation, size.least, size.most, what, stack)

    def free(self, allocation: int, stack: int = 0) -> None:
        self._free(self._handle, allocation, stack)

    def take_outside(self, size_bytes: int, stack: int, place: int = 0) -> None:
        """By a library, beside PyTorch's allocator."""
        if self._take_outside(self._handle, place, size_bytes, stack):
            raise OutOfMemory(size_bytes)

    def pin(self, size_bytes: int, stack: int, tensor: int) -> int:
        return self._pin(self._handle, size_bytes, stack, tensor)

    def unpin(self, allocation: int, stack: int) -> None:
        self._unpin(self._handle, allocation, stack)

    def pool(self, major: int, minor: int, place: int = 0) -> int:
        return self._pool(self._handle, place, major, minor)

    def release_pool(self, major: int, minor: int, place: int = 0, empty_stack: int = -1) -> None:
        """Nobody holds the pool any more: its memory goes with the cache, or at once where a stack is given."""
        self._release_pool(self._handle, place, major, minor, empty_stack)

    def empty_cache(self, stack: int, place: int = 0) -> None:
        self._empty_cache(self._handle, place, stack)

    def set_limit(self, limit_bytes: int, place: int = 0) -> None:
        self._set_limit(self._handle, place, limit_bytes)

    def set_overcommit(self, on: bool) -> None:
        self._set_overcommit(self._handle, int(on))

    # --- marks

    def mark(self, name: str, stack: int) -> None:
        """An operation in which nothing happens (marks.py)."""
        self.op_begin(name, stack)
        self.op_end("", False, stack)

    def op_begin(self, name: str, stack: int) -> None:
        self._op_begin(self._handle, self.string(name), stack)

    def op_end(self, text: str, failed: bool, stack: int) -> None:
        self._op_end(self._handle, self.string(text), int(failed), stack)

    def tensor_note(self, allocation: int, tensor: int, stack: int) -> None:
        self._tensor_note(self._handle, allocation, tensor, stack)

    def step_mark(self, number: int, name: str) -> None:
        self._step_mark(self._handle, number, self.string(name))

    def property(self, key: str, value: str) -> None:
        self._property(self._handle, key.encode("utf-8", "backslashreplace"), value.encode("utf-8", "backslashreplace"))

    def lost(self, name: str, count: int = 1) -> None:
        self._lost(self._handle, name.encode("utf-8", "backslashreplace"), count)

    # --- what torch.cuda tells the program

    def stats(self, place: int = 0) -> Stats:
        stats = Stats()
        self._get_stats(self._handle, place, byref(stats))
        return stats

    def reset_peaks(self, place: int = 0) -> None:
        self._reset_peaks(self._handle, place)

    def segments(self) -> list[dict]:
        """What torch.cuda.memory_snapshot() lists."""
        segment_count, block_count = c_uint64(), c_uint64()
        self._snapshot(self._handle, byref(segment_count), byref(block_count))
        segments, blocks = (Segment * max(1, segment_count.value))(), (Block * max(1, block_count.value))()
        found = self._snapshot_segments(self._handle, segments, segment_count.value)
        self._snapshot_blocks(self._handle, blocks, block_count.value)
        result = []
        for segment in segments[:found]:
            inside = blocks[segment.first_block : segment.first_block + segment.block_count]
            result.append(
                {
                    "device": segment.device,
                    "address": segment.address,
                    "total_size": segment.size_bytes,
                    "allocated_size": segment.allocated_bytes,
                    "active_size": segment.allocated_bytes,
                    "requested_size": segment.requested_bytes,
                    "stream": segment.stream_handle,
                    "segment_type": "small" if segment.is_small else "large",
                    "segment_pool_id": (segment.pool_major, segment.pool_minor),
                    "is_expandable": bool(segment.is_expandable),
                    "frames": [],
                    "blocks": [
                        {
                            "address": b.address,
                            "size": b.size_bytes,
                            "requested_size": b.requested_bytes,
                            "state": "active_allocated" if b.allocation else "inactive",
                            "frames": [],
                        }
                        for b in inside
                    ],
                }
            )
        return result

    def problem(self) -> str:
        """Why not all is in the trace, where that is so."""
        text = ctypes.create_string_buffer(1000)
        return text.value.decode("utf-8", "replace") if self._error(self._handle, text, len(text)) else ""

    def close(self) -> None:
        if self._handle:
            handle, self._handle = self._handle, None
            self._close(handle)

    def leave_to_parent(self) -> None:
        """In a forked child: the file is the parent's."""
        self._after_fork_child(self._handle)


class PoolDevice(Device):
    """One GPU with the pool of TensorFlow or JAX on it. settings: what the program sets, "XLA_CLIENT_MEM_FRACTION=0.5"."""

    def __init__(self, library: str, trace_path: str, gpu, context_bytes: int, framework: str, settings: str):
        self.sizes = [(gpu.capacity_bytes, context_bytes)]
        self._begin(
            library,
            "_open_pool",
            trace_path.encode(),
            gpu.name.encode(),
            gpu.capacity_bytes,
            context_bytes,
            framework.encode(),
            gpu.major,
            settings.encode(),
        )
