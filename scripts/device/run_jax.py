#!/usr/bin/env python3
"""JAX programs under `faultline run` on this machine's GPU: each verdict beside the true answer.

    python3 scripts/device/run_jax.py [--faultline build/faultline] [--keep DIR] [--at-once 3] [name ...]

Each program gets a tenth of the GPU (XLA_PYTHON_CLIENT_MEM_FRACTION), so that several run beside each other. Exit status 1 if a verdict is not the true one.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HEAD = "import jax\nimport jax.numpy as jnp\n"

# The program from line 3 on; what is true: the rule and the line, "" for none; the status; further options of run.
PROGRAMS = {
    "huge array": ("w = jnp.ones((4096, 4096))\nx = jnp.zeros((10000, 10000, 10000))\nprint(x[0, 0, 0])\n", ("memory/out-of-memory", (4, 5)), 1, ()),
    "arrays that are kept": (
        "import time\nf = jax.jit(lambda w, x: (w - 0.001 * x.T @ (x @ w), x @ w))\nw, kept = jnp.ones((1024, 1024)), []\nfor i in range(300):\n    x = jnp.ones((256, 1024))\n    w, y = f(w, x)\n    kept.append(y)\n    time.sleep(0.01)\nprint(float(w.sum()), len(kept))\n",
        ("memory/leak", (8,)), 0, (),
    ),
    "arrays that are not kept": (
        "import time\nf = jax.jit(lambda w, x: (w - 0.001 * x.T @ (x @ w), x @ w))\nw, kept = jnp.ones((1024, 1024)), []\nfor i in range(300):\n    x = jnp.ones((256, 1024))\n    w, y = f(w, x)\n    kept = [y]\n    time.sleep(0.01)\nprint(float(w.sum()), len(kept))\n",
        ("", (None,)), 0, (),
    ),
    "data that is loaded": (
        "import time\nimport numpy as np\ndata = []\nfor i in range(300):\n    data.append(jax.device_put(np.full((256, 1024), float(i), np.float32)))\n    time.sleep(0.01)\nprint(float(sum(d[0, 0] for d in data)))\n",
        ("", (None,)), 0, (),
    ),
    "a list that grows": ("kept = []\nfor i in range(100):\n    kept.append(jnp.full((16384, 16384), float(i)).block_until_ready())\n", ("memory/out-of-memory", (5,)), 1, ()),
    "jit": ("f = jax.jit(lambda x: jnp.sort(x @ x.T, axis=0).sum())\nx = jnp.ones((100000, 16))\nprint(f(x))\n", ("memory/out-of-memory", (5,)), 1, ()),
    "nobody read it": ("f = jax.jit(lambda x: jnp.sort(x @ x.T, axis=0))\ny = f(jnp.ones((100000, 16)))\nprint('done')\n", ("memory/out-of-memory", (4, None)), None, ()),
    "training": (
        "@jax.jit\ndef step(w, x):\n    return w - 0.1 * jax.grad(lambda w: ((x @ w) ** 2).mean())(w)\nw = jnp.ones((2048, 2048))\nfor i in range(50):\n    w = step(w, jnp.ones((256, 2048)))\nprint(w.sum())\n",
        ("", (None,)), 0, (),
    ),
    "a list that grows, --buffers": ("kept = []\nfor i in range(1000):\n    kept.append(jnp.full((32768, 32768), float(i)).block_until_ready())\n", ("memory/out-of-memory", (5,)), 1, ("--buffers",)),
    "training, --buffers": (
        "step = jax.jit(lambda w, x: w - 0.1 * jax.grad(lambda w: ((x @ w) ** 2).mean())(w))\nw = jnp.ones((2048, 2048))\nfor i in range(20):\n    w = step(w, jnp.ones((256, 2048)))\nprint(w.sum())\n",
        ("", (None,)), 0, ("--buffers",),
    ),
}  # fmt: skip


def run(faultline, keep, name):
    program, (rule, lines), status, options = PROGRAMS[name]
    folder = keep / name.replace(" ", "_").replace(",", "")
    folder.mkdir(parents=True)
    (folder / "program.py").write_text(HEAD + program)
    environment = {**os.environ, "XLA_PYTHON_CLIENT_MEM_FRACTION": ".1"}
    began = time.monotonic()
    done = subprocess.run(
        [faultline, "run", *options, "-o", "left", "--", sys.executable, "program.py"],
        cwd=folder,
        capture_output=True,
        text=True,
        env=environment,
    )
    (folder / "output.txt").write_text(done.stdout + done.stderr)
    left = folder / "left"
    report = json.loads((left / "report.json").read_text()) if (left / "report.json").exists() else None
    found = [f for f in (report or {"findings": []})["findings"] if f["severity"] != "note"]
    told = [(f["rule"], f.get("cause") or "", f["location"].get("line"), f["confidence"]) for f in found]
    right = (not told and report is not None) if not rule else any(t[0] == rule and t[2] in lines for t in told)
    right &= status is None or done.returncode == status
    files = sorted(path.name.split("-")[0] for path in left.iterdir()) if left.is_dir() else []
    return right, [
        name,
        str(done.returncode),
        "; ".join(f"{r} {c} line {n} ({sure})" for r, c, n, sure in told) or ("nothing" if report else "no report"),
        f"{rule or 'nothing'}" + (f" line {' or '.join(map(str, lines))}" if rule else ""),
        "yes" if right else "NO",
        " ".join(f"{kind}×{files.count(kind)}" for kind in dict.fromkeys(files)),
        f"{time.monotonic() - began:.0f} s",
    ], done.stderr  # fmt: skip


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--faultline", default=str(ROOT / "build/faultline"))
    options.add_argument("--keep", type=Path)
    options.add_argument("--at-once", type=int, default=3)
    options.add_argument("names", nargs="*")
    given = options.parse_args()
    keep = (given.keep or Path(tempfile.mkdtemp(prefix="run-jax-"))).resolve()
    names = given.names or list(PROGRAMS)
    # what takes all of the GPU is alone
    beside = [name for name in names if "--buffers" not in PROGRAMS[name][3]]
    with ThreadPoolExecutor(given.at_once) as pool:
        rows = list(pool.map(lambda name: run(given.faultline, keep, name), beside))
    rows += [run(given.faultline, keep, name) for name in names if name not in beside]
    print("| program | status | what run said | what is true | right | files | took |\n|---|---|---|---|---|---|---|")
    for _, row, _ in rows:
        print("| " + " | ".join(row) + " |")
    for right, row, said in rows:
        if not right:
            print(f"\n--- {row[0]}\n" + said[-3000:])
    print(f"\nkept in {keep}")
    sys.exit(not all(right for right, _, _ in rows))


if __name__ == "__main__":
    main()
