"""Which of the planned GPUs something happens on: the one of the operation that runs, or else the thread's current one.

A thread's current GPU is kept by the dry run's library, because PyTorch's C++ asks for it too (src/dryrun/guard.cpp).
"""

from __future__ import annotations

import ctypes
import threading

import torch

ASKED_FOR = "the program asked for"  # says which GPU it was, of those that a plan does not have
count = 1
started = 1  # processes that the program started together with this one (mp.spawn)
_devices = (torch.device("cuda", 0),)
_own: ctypes.CDLL | None = None


class _Running(threading.local):
    place: int | None = None  # of the operation that the thread runs


_running = _Running()


def install(library: str, number: int) -> None:
    global count, _devices, _own
    count, _own = number, ctypes.CDLL(library)
    _devices = tuple(torch.device("cuda", index) for index in range(number))
    _own.faultline_set_device_count(number)


def check(index: int) -> int:
    """The number itself; refused as CUDA would refuse it where there is no such GPU. -1 is PyTorch's word for the current one."""
    if index == -1:
        return current()
    if not 0 <= index < count:
        kind = getattr(torch, "AcceleratorError", RuntimeError)
        planned = "one GPU, cuda:0" if count == 1 else f"{count} GPUs, cuda:0 to cuda:{count - 1}"
        among = f" in one of {started} processes that it started" if started > 1 else ""
        raise kind(
            f"CUDA error: invalid device ordinal\nGPU device may be out of range, do you have enough GPUs? (The plan has {planned}; {ASKED_FOR} cuda:{index}{among}.)"
        )
    return index


def current() -> int:
    return _own.faultline_current_device() if count > 1 else 0


def exchange(index: int) -> int:
    """Makes it the thread's current one and returns the former; a negative number changes nothing."""
    former = current()
    if index >= 0:
        check(index)
        if count > 1:
            _own.faultline_make_current(index)
    return former


def of(device) -> int:
    """The number of what the program calls a device: None, a number, "cuda:1"."""
    if device is None:
        return current()
    if isinstance(device, int):
        return check(device)
    index = torch.device(device).index
    return current() if index is None else check(index)


def here() -> int:
    """Of what is made now."""
    if count == 1:
        return 0
    place = _running.place
    return current() if place is None else place


def device() -> torch.device:
    return _devices[here()]


def of_operation(place: torch.device | None, operands) -> int:
    """Where an operation runs: where its result is wanted, or where its operands are."""
    if place is not None and place.type == "cuda":
        return current() if place.index is None else check(place.index)
    return next(operand.get_device() for operand in operands if operand.is_cuda)


class running:
    """While an operation runs on that GPU."""

    __slots__ = ("_place", "_before")

    def __init__(self, place: int):
        self._place = place

    def __enter__(self):
        self._before, _running.place = _running.place, self._place

    def __exit__(self, *_problem):
        _running.place = self._before
