#!/usr/bin/env python3
"""`fits until about step N` beside the step at which the real GPU runs out of memory.

    python3 scripts/device/fits_until.py [--faultline build/faultline] [--gpu H200]

Each program below leaks in another way. It is run on this machine's GPU until it dies, and planned (stopped after 8 steps) by the same PyTorch. One row each.
"""

import argparse
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

TRAINING = """
import torch
from torch import nn
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4096, 8192), nn.ReLU(), nn.Linear(8192, 4096)).cuda()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
kept = []
for step in range(1, 100000):
    x = torch.randn(16384, 4096, device="cuda")
    loss = (model(x) - x).pow(2).mean()
    optimizer.zero_grad()
    loss.backward({retain})
    optimizer.step()
    {keep}
    print("step", step, flush=True)
"""
PROGRAMS = {
    "outputs kept": TRAINING.format(retain="", keep="kept.append(model(x).detach())"),
    "losses with their graph": TRAINING.format(retain="", keep="kept.append((model(x) - x).pow(2).mean())"),
    "every other step, two sizes": TRAINING.format(
        retain="", keep="kept.append(x[: 8192 if step % 2 else 16384].clone())"
    ),
    "inputs in a dict": TRAINING.format(retain="", keep="kept.append({'input': x, 'mask': x > 0})"),
}


def real_end(path):
    done = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, timeout=280)
    steps = re.findall(r"^step (\d+)$", done.stdout, re.M)
    return int(steps[-1]) if steps and "OutOfMemoryError" in done.stderr else None


def planned_end(faultline, gpu, path, folder):
    done = subprocess.run(
        [
            faultline,
            "plan",
            "--gpu",
            gpu,
            "--steps",
            "8",
            "--no-try",
            "--format",
            "json",
            "-o",
            str(folder),
            "--",
            sys.executable,
            str(path),
        ],
        capture_output=True,
        text=True,
        timeout=280,
    )
    plan = json.loads(done.stdout)["plan"]
    return plan["verdict"], plan["until_step"]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--faultline", default=str(Path(__file__).resolve().parents[2] / "build" / "faultline"))
    parser.add_argument("--gpu", default="H200")
    options = parser.parse_args()
    print("| program | last step on the GPU | planned | verdict | off by |\n|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for number, (name, text) in enumerate(PROGRAMS.items()):
            path = Path(folder, f"program{number}.py")
            path.write_text(text)
            verdict, planned = planned_end(options.faultline, options.gpu, path, Path(folder, f"plan{number}"))
            real = real_end(path)
            off = f"{100 * (planned / real - 1):+.1f} %" if real and planned else "-"
            print(f"| {name} | {real or '?'} | {planned or '?'} | {verdict} | {off} |", flush=True)


main()
