#!/usr/bin/env python3
"""Times training steps in this process and prints the medians as one line of JSON. Started by measure.py, once per variant and round.

A step's time is that of a few steps in a row, from an idle device to an idle device, divided by their number: a synchronisation after each would hide
what launching costs.
"""
import argparse
import gc
import json
import os
import statistics
import sys
import time

import torch

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from models import PROGRAMS  # noqa: E402

STEPS_IN_A_ROW = {"gpt": 4, "mlp": 20}


def measure(name, seconds, device, **sizes):
    """The median of a step in milliseconds, over as many rows of steps as fit in the time."""
    synchronize = torch.cuda.synchronize if device == "cuda" else lambda: None
    step = PROGRAMS[name](device, **sizes)
    begin = time.perf_counter()
    for _ in range(3):
        step()
    synchronize()
    warm = time.perf_counter() - begin
    in_a_row = STEPS_IN_A_ROW[name] if warm < seconds else 1
    for _ in range(in_a_row if warm < seconds else 0):
        step()
    synchronize()
    times, end = [], time.perf_counter() + seconds
    while len(times) < 3 or time.perf_counter() < end:
        begin = time.perf_counter()
        for _ in range(in_a_row):
            step()
        synchronize()
        times.append((time.perf_counter() - begin) / in_a_row * 1000)
        if warm > seconds and time.perf_counter() > end:
            break
    return {"median_ms": statistics.median(times), "least_ms": min(times), "rows": len(times), "steps_in_a_row": in_a_row}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--programs", default="mlp,gpt")
    parser.add_argument("--seconds", type=float, default=1.5, help="for each program")
    parser.add_argument("--history", choices=["none", "python", "all"], default="none", help="PyTorch's own memory history, with these stacks")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--small", action="store_true", help="a tiny GPT, to try the script itself")
    arguments = parser.parse_args()
    if arguments.history != "none":
        torch.cuda.memory._record_memory_history(stacks=arguments.history, max_entries=200000)
    found = {}
    for name in arguments.programs.split(","):
        sizes = {"batch": 2, "length": 32, "layers": 2, "width": 64, "heads": 2, "vocabulary": 100} if arguments.small and name == "gpt" else {}
        found[name] = measure(name, arguments.seconds, arguments.device, **sizes)
        gc.collect()
        if arguments.device == "cuda":
            found[name]["peak_bytes"] = torch.cuda.max_memory_reserved()
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats()
    print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
