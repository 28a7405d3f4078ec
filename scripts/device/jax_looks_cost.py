#!/usr/bin/env python3
"""What looking at JAX's arrays costs: one training loop plain, twice under `run --history off` and under `run`, in turns; the median step of each.

python3 scripts/device/jax_looks_cost.py [--faultline build/faultline] [--rounds 3]
"""

import argparse
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = """
import sys, time
import jax, jax.numpy as jnp
arrays = [jnp.full((16,), float(i)) for i in range(int(sys.argv[1]))]  # what else is alive
step = jax.jit(lambda w, x: w - 0.001 * x.T @ (x @ w))
w, x = jnp.ones((256, 256)), jnp.ones((64, 256))
w = step(w, x).block_until_ready()
began = time.perf_counter()
for i in range(20000):
    w = step(w, x)
w.block_until_ready()
print((time.perf_counter() - began) / 20000 * 1e6)
"""


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--faultline", default=str(ROOT / "build/faultline"))
    options.add_argument("--rounds", type=int, default=3)
    given = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "loop.py"
        program.write_text(PROGRAM)
        under = [given.faultline, "run", "-o"]
        ways = {
            "plain": None,
            "history off": ["--history", "off"],
            "history off again": ["--history", "off"],
            "looks": [],
        }
        print("| arrays alive | " + " | ".join(f"{way}, µs a step" for way in ways) + " | control | looks |")
        print("|---|" + "---|" * (len(ways) + 2))
        for alive in ("10", "1000"):
            steps = {way: [] for way in ways}
            for at in range(given.rounds):
                for way, more in ways.items():
                    command = [sys.executable, str(program), alive]
                    if more is not None:
                        command = [*under, f"{folder}/{alive}-{way.replace(' ', '-')}-{at}", *more, "--", *command]
                    done = subprocess.run(command, capture_output=True, text=True)
                    assert done.returncode == 0, done.stderr
                    steps[way].append(float(done.stdout.split()[-1]))
            median = {way: statistics.median(taken) for way, taken in steps.items()}
            off, again = median["history off"], median["history off again"]
            print(
                f"| {alive} | "
                + " | ".join(f"{median[way]:.1f}" for way in ways)
                + f" | ×{again / off:.3f} | ×{median['looks'] / off:.3f} |"
            )


if __name__ == "__main__":
    main()
