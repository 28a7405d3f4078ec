#!/usr/bin/env python3
"""Cells of a notebook under %%faultline on this machine's GPU: what is told of each beside what is true.

    python3 scripts/device/notebook_cells.py [--faultline build/faultline] [--words]

A real kernel where ipykernel and jupyter_client are installed, else IPython's shell alone; IPython and PyTorch must be there. Under a minute. Exit status 1 if something that is
true was not told. --words also prints all that was shown.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LIMIT = "torch.cuda.set_per_process_memory_fraction(4 * 2**30 / torch.cuda.get_device_properties(0).total_memory)\n"
FILL = (
    "def fill(kept):\n    for _ in range(100):\n        kept.append(torch.empty(256, 2**20, device='cuda'))\nfill([])"
)

# For each kernel: (what, the cell, what must be shown, what must not). {n} is the cell's number.
KERNELS = {
    "recorder first": [
        ("load", "%load_ext faultline\nimport torch", [], ["Traceback"]),
        ("state", "%faultline", ["are recorded in this kernel"], []),
        ("clean", "%%faultline run\na = torch.randn(2048, 2048, device='cuda')\nb = (a @ a).sum().item()\ndel a", ["Nothing wrong was found"], ["not recorded"]),
        ("out of memory", "%%faultline run\n" + LIMIT + FILL, ["memory/out-of-memory", "own-limit", r"cell \[{n}\], line 5", "OutOfMemoryError", "the last error", r"kept in fill\(\)"], ["ipykernel_", "How process"]),
        ("explain", "import faultline\nprint(faultline.explain())", ["memory/out-of-memory", "own-limit"], []),
        ("release", "%faultline release\nprint('left', torch.cuda.memory_allocated() >> 20)", ["left (\\d|3\\d)\n"], []),
        ("watch", "%%faultline watch\ndef make():\n    return torch.empty(16 * 2**20, device='cuda')\nkept = [make()]\ngone = make()\ndel gone", [r"left 64\.00 MiB", r"64\.00 MiB  cell \[{n}\], line 3 in make  ×1", r"kept  a variable of cell \[{n}\]"], []),
        ("watch, clean", "%%faultline watch\nx = torch.empty(2**20, device='cuda')\ndel x", ["left nothing on the GPU"], ["Who keeps it"]),
        ("grows", "losses = []", [], []),
        ("grows 1", "%%faultline watch\nlosses.append(torch.ones(2**20, device='cuda'))", [r"left 4\.00 MiB"], []),
        ("grows 2", "%%faultline watch\nlosses.append(torch.ones(2**20, device='cuda'))", ["run 2 times", "losses"], []),
        ("Out", "torch.ones(2**20, device='cuda')", [], []),
        ("its trap", "%faultline", [r"4\.00 MiB  Out\[\d+\]"], []),
        ("history off again", "print('recording', torch._C._cuda_isHistoryEnabled())", ["recording False"], []),
        ("plan beside CUDA", "%%faultline plan --gpu T4\nw = torch.empty(20, 2**30, device='cuda')", ["DOES NOT FIT", r"cell \[{n}\], line 2"], []),
        ("what lies on the GPU", "%%faultline plan --gpu T4\nkept[0] * 2", ["cannot use what lies on the GPU already: kept"], []),
        ("bad index", "%%faultline run\ntable = torch.zeros(10, 4, device='cuda')\nrows = torch.tensor([3, 99], device='cuda')\nprint(torch.nn.functional.embedding(rows, table).sum().item())", [r"ERROR", r"cell \[{n}\], line [34]"], ["there is no report"]),
    ],
    "CUDA first": [
        ("CUDA begins", "import torch\nold = torch.ones(2**20, device='cuda')", [], []),
        ("load", "%load_ext faultline", [], ["Traceback"]),
        ("out of memory", "%%faultline run\n" + LIMIT + FILL, ["were not recorded: CUDA's driver is in this kernel already", "memory/out-of-memory", r"cell \[{n}\], line 5", "OutOfMemoryError"], ["ipykernel_"]),
        ("who", "%faultline", [r"old  a variable of cell \[1\]", "the last error"], []),
    ],
}  # fmt: skip


def in_kernel(cells, environment):
    from jupyter_client.manager import start_new_kernel

    manager, client = start_new_kernel(kernel_name="python3", env=environment)
    try:
        for cell in cells:
            shown = []

            def take(message, shown=shown):
                content = message["content"]
                shown.append(content.get("text") or (content.get("data") or {}).get("text/plain") or "")
                shown.append(
                    f"{content.get('ename', '')}: {content.get('evalue', '')}" if message["msg_type"] == "error" else ""
                )

            began = time.monotonic()
            client.execute_interactive(cell, timeout=120, output_hook=take)
            yield "\n".join(shown), time.monotonic() - began
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


def in_shell(cells, environment):
    child = subprocess.run(
        [sys.executable, __file__, "--shell"],
        input=json.dumps(cells),
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )
    found = [line for line in child.stdout.splitlines() if line.startswith("\x01")]
    if len(found) != len(cells):
        print(child.stdout[-2000:], child.stderr[-2000:])
    yield from (tuple(json.loads(line[1:])) for line in found)
    yield from [("", 0.0)] * (len(cells) - len(found))


def be_shell():
    from IPython.core.interactiveshell import InteractiveShell
    from IPython.utils.capture import capture_output

    shell = InteractiveShell.instance()
    for cell in json.load(sys.stdin):
        began = time.monotonic()
        with capture_output() as shown:
            shell.run_cell(cell, store_history=True)
        words = shown.stdout + shown.stderr + "\n".join(one.data.get("text/plain", "") for one in shown.outputs)
        print("\x01" + json.dumps([words, time.monotonic() - began]), flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--faultline", default=str(ROOT / "build" / "faultline"))
    parser.add_argument("--words", action="store_true")
    parser.add_argument("--shell", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.shell:
        return be_shell()
    try:
        import ipykernel  # noqa: F401
        import jupyter_client  # noqa: F401

        run, how = in_kernel, "a real kernel"
    except ImportError:
        run, how = in_shell, "IPython's shell without a kernel"
    path = os.pathsep.join([str(ROOT / "python"), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = {**os.environ, "FAULTLINE": os.path.abspath(options.faultline), "PYTHONPATH": path}
    print(f"in {how}\n")
    wrong, began = 0, time.monotonic()
    for kernel, rows in KERNELS.items():
        print(f"{kernel}\n{'':2}{'cell':<22}{'seconds':>8}  told")
        cells = [cell for _, cell, _, _ in rows]
        for number, (row, (shown, seconds)) in enumerate(zip(rows, run(cells, environment)), 1):
            what, _, wanted, unwanted = row
            flat = re.sub(r"\x1b\[[\d;]*m", "", shown)
            flat = re.sub(r"\n +", " ", flat) + "\n"
            missing = [one for one in wanted if not re.search(one.replace("{n}", str(number)), flat)]
            missing += [f"not: {one}" for one in unwanted if one in flat]
            wrong += bool(missing)
            print(f"{'':2}{what:<22}{seconds:>8.2f}  {'as it is' if not missing else 'MISSING ' + '; '.join(missing)}")
            if options.words or missing:
                print("\n".join(f"      | {line}" for line in shown.strip().splitlines()[:80]))
        left = [p.name for p in Path(os.environ.get("TMPDIR", "/tmp")).glob(f"faultline-notebook-{os.getuid()}-*")]
        print(f"{'':2}left in the folder for temporary files: {len(left)}")
    print(f"\n{wrong} wrong, {time.monotonic() - began:.0f} s")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
