#!/usr/bin/env python3
"""Does a program compute the same under `faultline run`, bit for bit?

    python3 scripts/run_overhead/bit_equal.py [--faultline build/faultline] [--steps 50]

Fifty training steps of a small GPT and of an MLP with deterministic algorithms: the loss and every gradient of every step are hashed. Two native runs show
that the program itself repeats; the recorded runs must give the same hashes. Exit status 1 if they differ.
"""

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent


def train(steps, device):
    import torch

    sys.path.insert(0, str(HERE))
    from models import gpt, mlp

    torch.use_deterministic_algorithms(True)
    if device == "cuda":  # the fast attention kernels have no deterministic backward
        torch.backends.cuda.enable_flash_sdp(False)
        torch.backends.cuda.enable_mem_efficient_sdp(False)
        torch.backends.cuda.enable_cudnn_sdp(False)
    found = {}
    for name, step in (
        ("gpt", gpt(device, batch=4, length=128, layers=4, width=256, heads=4, vocabulary=5000)),
        ("mlp", mlp(device)),
    ):
        losses, gradients = hashlib.sha256(), hashlib.sha256()
        for _ in range(steps):
            loss, parts = step()
            losses.update(loss.detach().float().cpu().numpy().tobytes())
            for part in parts:
                gradients.update(part.float().cpu().numpy().tobytes())
        found[name] = {
            "losses": losses.hexdigest()[:16],
            "gradients": gradients.hexdigest()[:16],
            "last_loss": f"{loss.item():.6g}",
        }
    print("FOUND " + json.dumps(found), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument(
        "--faultline", default=os.environ.get("FAULTLINE", str(HERE.parents[1] / "build" / "faultline"))
    )
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--device", default="cuda", help="cpu tries the script itself")
    parser.add_argument("--train", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.train:
        train(arguments.steps, arguments.device)
        return
    ways = {
        "native": [],
        "native again": [],
        "run": ["run"],
        "run --history off": ["run", "--history", "off"],
        "run --native-stacks": ["run", "--native-stacks"],
    }
    first, same = None, True
    for name, options in ways.items():
        folder = tempfile.mkdtemp()
        wrap = (
            [os.path.abspath(arguments.faultline), *options, "-o", os.path.join(folder, "run"), "--"] if options else []
        )
        done = subprocess.run(
            [
                *wrap,
                sys.executable,
                str(Path(__file__).resolve()),
                "--train",
                "--steps",
                str(arguments.steps),
                "--device",
                arguments.device,
            ],
            capture_output=True,
            text=True,
            timeout=300,
            env={**os.environ, "CUBLAS_WORKSPACE_CONFIG": ":4096:8"},
        )
        shutil.rmtree(folder, ignore_errors=True)
        told = [line for line in done.stdout.splitlines() if line.startswith("FOUND ")]
        found = json.loads(told[-1][6:]) if told else None
        first = first or found
        equal = found is not None and found == first
        same = same and equal
        print(
            f"{'same' if equal else 'DIFFERENT':10} {name:20} {json.dumps(found) if found else done.stderr[-600:]}",
            flush=True,
        )
    sys.exit(0 if same else 1)


if __name__ == "__main__":
    main()
