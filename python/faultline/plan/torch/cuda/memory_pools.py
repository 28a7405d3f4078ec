"""Private pools of memory: those of CUDA graphs, and torch.cuda.MemPool.

What is allocated in one is never shared with the rest. As long as somebody holds a pool what it took stays with it, free or not; afterwards it is given back with the cache.
"""

from __future__ import annotations

import contextlib
import threading

import torch

from ..tensors import places
from ..tensors.memory import Memory


class Pools:
    def __init__(self, memory: Memory):
        self._memory = memory
        self._number = 0
        self._holders: dict[tuple, int] = {}  # (id, GPU) → how many

    def new(self) -> tuple[int, int]:
        self._number += 1
        return (0, self._number)

    def hold(self, pool: tuple[int, int], place: int) -> None:
        key = (tuple(pool), place)
        self._holders[key] = self._holders.get(key, 0) + 1

    def let_go(self, pool: tuple[int, int], place: int, empty: bool = False) -> None:
        key = (tuple(pool), place)
        self._holders[key] = self._holders.get(key, 1) - 1
        if self._holders[key] <= 0 and not self._memory.closed:
            self._memory.device.release_pool(*pool, place, self._memory.stacks.here() if empty else -1)

    def holders(self, pool: tuple[int, int], place: int) -> int:
        return self._holders.get((tuple(pool), place), 0)

    def heap(self, pool: tuple[int, int], place: int) -> int:
        return self._memory.device.pool(*pool, place)

    # --- what this thread allocates

    def begin_on_thread(self, place: int, pool: tuple[int, int]) -> None:
        self.hold(pool, place)
        self._memory.thread_heaps.setdefault(threading.get_ident(), []).append((place, self.heap(pool, place)))

    def end_on_thread(self, place: int, pool: tuple[int, int]) -> None:
        heaps = self._memory.thread_heaps.get(threading.get_ident(), [])
        if (place, self.heap(pool, place)) in heaps:
            heaps.remove((place, self.heap(pool, place)))
        if not heaps:
            self._memory.thread_heaps.pop(threading.get_ident(), None)


def install(pools: Pools) -> None:
    module = torch.cuda.memory

    class MemPool:
        """torch.cuda.MemPool; an allocator of its own is not asked."""

        def __init__(self, allocator=None, use_on_oom=False, no_split=False, symmetric=False):
            self.id, self._place = pools.new(), places.current()
            self.allocator = allocator
            pools.hold(self.id, self._place)

        def __del__(self):
            with contextlib.suppress(Exception):
                pools.let_go(self.id, self._place, empty=True)

        def use_count(self) -> int:
            return pools.holders(self.id, self._place)

        def snapshot(self, include_traces=True):
            return [s for s in torch.cuda.memory_snapshot() if tuple(s.get("segment_pool_id", ())) == self.id]

    answers = {
        "MemPool": MemPool,
        "_cuda_beginAllocateCurrentThreadToPool": pools.begin_on_thread,
        "_cuda_beginAllocateToPool": pools.begin_on_thread,
        "_cuda_endAllocateToPool": pools.end_on_thread,
        "_cuda_endAllocateCurrentStreamToPool": pools.end_on_thread,
        "_cuda_releasePool": lambda place, pool: pools.let_go(pool, place),
    }
    for name, answer in answers.items():
        if hasattr(module, name):
            setattr(module, name, answer)
        if hasattr(torch._C, name):
            setattr(torch._C, name, answer)
    if hasattr(torch.cuda, "MemPool"):
        torch.cuda.MemPool = MemPool
