"""Runs a program on a real GPU and keeps what its memory did: the peaks, and for every operation the blocks it took and returned.

  python record.py PROGRAM.py OUT.json.gz [--ops]

Without --ops the program runs undisturbed; its peaks are what a plan is compared with, and its requests and returns in order (+bytes, -bytes). With --ops each operation is
watched through a dispatch mode, so that a plan that differs can be compared operation by operation.
"""

import gzip
import json
import os
import runpy
import sys

import torch
from torch.utils._python_dispatch import TorchDispatchMode


def signature(value):
    if isinstance(value, torch.Tensor):
        place = "" if value.is_cuda else "@" + value.device.type
        return f"{str(value.dtype)[6:]}{list(value.shape)}{list(value.stride())}{place}"
    if isinstance(value, (list, tuple)):
        inner = [signature(v) for v in value]
        return "[" + ", ".join(inner[:6]) + (f", … {len(inner)}" if len(inner) > 6 else "") + "]"
    return repr(value)


class Ops(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.ops = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        self.ops.append(
            [str(func), [signature(a) for a in args] + [f"{k}={signature(v)}" for k, v in kwargs.items()], None]
        )
        index = len(self.ops) - 1
        torch.cuda.memory._set_memory_metadata(str(index))
        result = func(*args, **kwargs)
        torch.cuda.memory._set_memory_metadata(f"after {index}")
        self.ops[index][2] = signature(result)
        return result


def events_by_op(ops):
    rows = [{"op": op, "in": inputs, "out": out, "events": []} for op, inputs, out in ops]
    between = []
    actions = {"alloc": "+", "free_completed": "-", "segment_alloc": "S", "segment_free": "s"}
    for entry in torch.cuda.memory._snapshot()["device_traces"][0]:
        action = actions.get(entry["action"])
        if action is None:
            continue
        where = entry.get("user_metadata", "")
        event = [action, entry["size"], entry["addr"]]
        if where.isdigit():
            rows[int(where)]["events"].append(event)
        elif where.startswith("after "):
            rows[int(where[6:])].setdefault("after", []).append(event)
        else:
            between.append(event)
    return {"ops": rows, "before": between}


def main():
    program, out = sys.argv[1:3]
    watch = "--ops" in sys.argv
    sys.path.insert(0, os.path.dirname(os.path.abspath(program)))
    sys.argv = [program]
    result = {"program": os.path.basename(program), "torch": torch.__version__, "gpu": torch.cuda.get_device_name(0)}
    if watch:
        torch.cuda.memory._record_memory_history(max_entries=2_000_000, context=None)
        mode = Ops()
        with mode:
            runpy.run_path(program, run_name="__main__")
        torch.cuda.synchronize()
        result |= events_by_op(mode.ops)
    else:
        torch.cuda.memory._record_memory_history(max_entries=2_000_000, context=None)
        runpy.run_path(program, run_name="__main__")
        torch.cuda.synchronize()
        marks = {"alloc": 1, "free_completed": -1}
        result["events"] = [
            marks[e["action"]] * e["size"]
            for e in torch.cuda.memory._snapshot()["device_traces"][0]
            if e["action"] in marks
        ]
    stats = torch.cuda.memory_stats()
    free, total = torch.cuda.mem_get_info()
    result |= {
        "peak_allocated": stats["allocated_bytes.all.peak"],
        "peak_reserved": stats["reserved_bytes.all.peak"],
        "allocated": stats["allocated_bytes.all.current"],
        "reserved": stats["reserved_bytes.all.current"],
        "allocations": stats["allocation.all.allocated"],
        "outside": total - free - stats["reserved_bytes.all.current"],
        "total": total,
    }
    with gzip.open(out, "wt") as file:
        json.dump(result, file)
    print(
        result["program"], result["peak_allocated"], result["peak_reserved"], result["allocations"], result["outside"]
    )


main()
