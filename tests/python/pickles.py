"""Pickles for tests: snapshots, other programs' objects, and files that want to do harm."""

import os
import pickle
import struct


class Runs:
    """Unpickling an instance runs a shell command."""

    def __init__(self, command):
        self.command = command

    def __reduce__(self):
        return os.system, (self.command,)


def runs_command(command, protocol):
    return pickle.dumps({"segments": [], "device_traces": [[Runs(command)]]}, protocol=protocol)


def another_programs():
    return {
        "list": pickle.dumps([1, 2, 3]),
        "weights": pickle.dumps({"layer.weight": [0.5, 0.25], "epoch": 3}),
        "text": pickle.dumps("hello"),
        "nested": pickle.dumps({"segments": {"a": 1}}),
    }


def claims_string(length):
    """A pickle that ends in a string of `length` bytes, of which none are there."""
    return b"\x80\x04}(\x8c\x08segments\x8d" + struct.pack("<Q", length)


def entry(action, address, size, time_us=0):
    return {
        "action": action,
        "addr": address,
        "size": size,
        "stream": 0,
        "time_us": time_us,
        "frames": [{"filename": "train.py", "line": 7, "name": "step"}],
    }


def small_snapshot():
    base = 0x7F0000000000
    block = {"address": base, "size": 1 << 20, "requested_size": 1 << 20, "state": "active_allocated", "frames": []}
    rest = {"address": base + (1 << 20), "size": 1 << 20, "requested_size": 0, "state": "inactive", "frames": []}
    segment = {
        "device": 0,
        "address": base,
        "total_size": 2 << 20,
        "allocated_size": 1 << 20,
        "active_size": 1 << 20,
        "requested_size": 1 << 20,
        "stream": 0,
        "segment_type": "small",
        "segment_pool_id": (0, 0),
        "is_expandable": False,
        "frames": [],
        "blocks": [block, rest],
    }
    return {
        "segments": [segment],
        "device_traces": [[entry("segment_alloc", base, 2 << 20, 1), entry("alloc", base, 1 << 20, 2)]],
    }
