#!/usr/bin/env python3
"""Times training steps in this process, when it is its turn. Started by measure.py, one process per variant.

Each line on standard input names a program ("mlp", "gpt"); the answer is one line of JSON with the milliseconds of a step. A step's time is that of a few steps
in a row, from an idle device to an idle device, divided by their number: a synchronisation after each would hide what launching costs.
"""

import argparse
import json
import os
import sys
import time

import torch

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from models import PROGRAMS  # noqa: E402

STEPS_IN_A_ROW = {"gpt": 4, "mlp": 20}
SMALL_GPT = {"batch": 2, "length": 32, "layers": 2, "width": 64, "heads": 2, "vocabulary": 100}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument(
        "--history",
        choices=["none", "python", "all"],
        default="none",
        help="PyTorch's own memory history, with these stacks",
    )
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--small", action="store_true", help="a tiny GPT, to try the script itself")
    arguments = parser.parse_args()
    if arguments.history != "none":
        torch.cuda.memory._record_memory_history(stacks=arguments.history, max_entries=200000)
    synchronize = torch.cuda.synchronize if arguments.device == "cuda" else lambda: None
    steps = {}
    for line in iter(sys.stdin.readline, ""):
        name = line.strip()
        if name not in steps:
            steps[name] = PROGRAMS[name](arguments.device, **(SMALL_GPT if arguments.small and name == "gpt" else {}))
            for _ in range(3):
                steps[name]()
        synchronize()
        begin = time.perf_counter()
        for _ in range(STEPS_IN_A_ROW[name]):
            steps[name]()
        synchronize()
        print(
            json.dumps({"program": name, "ms": (time.perf_counter() - begin) / STEPS_IN_A_ROW[name] * 1000}), flush=True
        )


if __name__ == "__main__":
    main()
