"""Streams, events and graphs of the planned GPU: nothing runs on them, but blocks are cached by stream and graphs have pools of memory of their own."""

from __future__ import annotations

import contextlib
import threading
import time
import weakref

import torch

from ..release.older_torch import EventBase, StreamBase
from ..tensors import places

_state = threading.local()
api = None  # the Api in force


class Stream(StreamBase):
    """A stream is a name under which blocks are cached; nothing runs on it."""

    _next = 1
    device_type = 1

    def __init__(self, device=None, priority=0, stream_id=None, **_ignored):
        self.device_index = places.of(device)
        self.device = torch.device("cuda", self.device_index)
        if stream_id is None:
            stream_id, Stream._next = Stream._next, Stream._next + 1
        self.stream_id = self.cuda_stream = stream_id
        self.priority = priority

    def wait_event(self, event):
        pass

    def wait_stream(self, stream):
        pass

    def synchronize(self):
        pass

    def query(self):
        return True

    def is_capturing(self):
        return False

    def record_event(self, event=None):
        event = event or Event()
        event.record(self)
        return event

    def __enter__(self):
        self._context = use_stream(self)
        self._context.__enter__()
        return self

    def __exit__(self, *problem):
        return self._context.__exit__(*problem)

    def __eq__(self, other):
        return (
            isinstance(other, Stream) and other.stream_id == self.stream_id and other.device_index == self.device_index
        )

    def __hash__(self):
        return hash(("faultline stream", self.device_index, self.stream_id))

    def __repr__(self):
        return f"<torch.cuda.Stream device={self.device} cuda_stream={self.stream_id:#x}>"


class Event(EventBase):
    def __init__(self, enable_timing=False, blocking=False, interprocess=False, external=False):
        self._time = None
        self.cuda_event = id(self)
        self.device = torch.device("cuda", places.current())

    def record(self, stream=None):
        self._time = time.perf_counter()

    def wait(self, stream=None):
        pass

    def query(self):
        return True

    def synchronize(self):
        pass

    def elapsed_time(self, end):
        return max(0.0, ((end._time or 0) - (self._time or 0)) * 1000)


def default_stream(device=None) -> Stream:
    return Stream(device, stream_id=0)


def current_stream(device=None) -> Stream:
    place = places.of(device)
    return getattr(_state, "streams", {}).get(place) or default_stream(place)


@contextlib.contextmanager
def use_stream(stream):
    if stream is None:
        yield
        return
    before, current = current_stream(stream.device_index), places.exchange(stream.device_index)
    api.set_stream(stream)
    try:
        yield
    finally:
        api.set_stream(before)
        places.exchange(current)


class _Seeds:
    """Two numbers that random operations of a captured graph read: they are made, outside the graph's pool, with the first graph that there is."""

    _all = weakref.WeakValueDictionary()  # by GPU

    @classmethod
    def of(cls, place: int) -> _Seeds:
        known = cls._all.get(place)
        if known is None:
            known = cls._all[place] = cls()
        return known

    def __init__(self):
        self._seeds = [torch.empty(1, dtype=torch.int64, device="cuda") for _ in range(2)]


class Graph:
    """A CUDA graph: its work is run once while it is captured, with the graph's own pool; a replay computes nothing."""

    @staticmethod
    def new_pool():
        return api.pools.new()

    def __new__(cls, keep_graph=False):
        return super().__new__(cls)

    def __init__(self, keep_graph=False):
        self._pool, self._holds = None, False

    def capture_begin(self, pool=None, **_ignored):
        self._release()
        self._pool, self._place = tuple(getattr(pool, "id", pool) or Graph.new_pool()), places.current()
        self._seeds = _Seeds.of(self._place)
        api.pools.hold(self._pool, self._place)
        self._holds = True
        self._heap = api.memory.heap
        api.memory.heap = api.pools.heap(self._pool, self._place)
        api.capturing = True
        api.notes.add("mode", "a CUDA graph's work was run once, eagerly, with the graph's own pool of memory")

    def capture_end(self):
        api.memory.heap = self._heap
        api.capturing = False

    def _release(self):
        if self._holds:
            self._holds = False
            api.pools.let_go(self._pool, self._place)

    def __del__(self):
        with contextlib.suppress(Exception):
            self._release()

    def pool(self):
        return self._pool

    def replay(self):
        pass

    def instantiate(self):
        pass

    def reset(self):
        self._release()

    def enable_debug_mode(self):
        pass

    def debug_dump(self, path):
        pass


def remember(stream: Stream) -> None:
    """The thread's current stream of that GPU."""
    _state.streams = {**getattr(_state, "streams", {}), stream.device_index: stream}
