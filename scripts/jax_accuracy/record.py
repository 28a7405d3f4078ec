"""Records JAX programs on a GPU: peaks, the allocator's log, out-of-memory messages and dumps, profiles.

  python record.py OUT        (a folder; everything is packed into OUT/jax.tar.xz at the end)

Peaks are those of the device's own allocator (Device.memory_stats), once as XLA runs by default and once without the search for the fastest kernels,
which takes memory of its own. Logs keep the allocator's lines and leave out the stacks between them, but for one program.
"""

import concurrent.futures
import json
import os
import re
import subprocess
import sys
import tarfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
OUT = Path(sys.argv[1]).resolve()
WORK = OUT / "jax"
WORK.mkdir(parents=True, exist_ok=True)
PLAIN = {"XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
LOG = {"TF_CPP_VMODULE": "bfc_allocator=4", "TF_CPP_MIN_LOG_LEVEL": "0", "XLA_FLAGS": "--xla_gpu_autotune_level=0"}

# name → (program, environment)
FAILURES = {
    "oom_huge": (
        "import jax.numpy as jnp\nx = jnp.ones((1 << 20, 1 << 12))\n",
        {"XLA_PYTHON_CLIENT_MEM_FRACTION": "0.02"},
    ),
    "oom_jit": (
        "import jax, jax.numpy as jnp\n@jax.jit\ndef f(x):\n    y = jnp.sin(x)[:, None] * jnp.cos(x)[None, :]\n    return jnp.sort(y, axis=0) @ y\n"
        "keep = jnp.ones(1 << 28)\nprint(f(jnp.arange(30000.0)).sum())\n",
        {"XLA_PYTHON_CLIENT_MEM_FRACTION": "0.04"},
    ),
    "oom_fragmented": (
        "import jax.numpy as jnp\nkept = [jnp.ones(1 << 24) for _ in range(30)]\nkept = kept[::2]\nx = jnp.ones(1 << 26)\n",
        {"XLA_PYTHON_CLIENT_MEM_FRACTION": "0.015"},
    ),
    "oom_growth_regions": (
        "import jax.numpy as jnp\nkept = [jnp.ones(n << 18) for n in (1, 3, 100, 100, 300)]\nx = jnp.ones(300 << 18)\n",
        {"XLA_PYTHON_CLIENT_MEM_FRACTION": "0.00715", "XLA_PYTHON_CLIENT_PREALLOCATE": "false"},
    ),
    "oom_list": (
        "import jax, jax.numpy as jnp\nhistory = []\nfor step in range(1000):\n    history.append(jnp.tanh(jax.random.normal(jax.random.key(step), (4096, 4096))))\n",
        {"XLA_PYTHON_CLIENT_MEM_FRACTION": "0.02"},
    ),
    "oom_async": (
        "import jax.numpy as jnp\nk = [jnp.ones(1 << 28) for _ in range(400)]\n",
        {"XLA_PYTHON_CLIENT_ALLOCATOR": "cuda_async"},
    ),
    "oom_platform": (
        "import jax.numpy as jnp\nk = [jnp.ones(1 << 28) for _ in range(400)]\n",
        {"XLA_PYTHON_CLIENT_ALLOCATOR": "platform"},
    ),
    "fits_after_all": (
        "import jax.numpy as jnp\nkept = [jnp.ones(1 << 24) for _ in range(30)]\nprint(len(kept))\n",
        {"XLA_PYTHON_CLIENT_MEM_FRACTION": "0.02"},
    ),
    "oom_taken_by_another": (
        "import os, subprocess, sys, time\n"
        "other = subprocess.Popen([sys.executable, '-c', 'import torch, sys, time; x = torch.empty(132 << 30, dtype=torch.uint8, device=\"cuda\"); print(1, flush=True); time.sleep(600)'], stdout=subprocess.PIPE)\n"
        "other.stdout.readline()\ntry:\n    import jax.numpy as jnp\n    x = [jnp.ones(1 << 28) for _ in range(12)]\nfinally:\n    other.kill()\n",
        {"XLA_PYTHON_CLIENT_PREALLOCATE": "false"},
    ),
}


def run(arguments, environment, log, limit=150):
    began = time.time()
    with open(log, "wb") as file:
        try:
            status = subprocess.run(
                [sys.executable, *arguments],
                env={**os.environ, **environment},
                stdout=file,
                stderr=file,
                timeout=limit,
                cwd=WORK,
            ).returncode
        except subprocess.TimeoutExpired:
            status = "too long"
    return status, round(time.time() - began, 1)


def without_stacks(source, target):
    """The allocator's own lines: those with its file's name, and what follows a dump's header without a prefix is kept by that name too."""
    kept = 0
    with open(source, "rb") as lines, open(target, "wb") as out:
        for line in lines:
            if re.search(rb"bfc_allocator\.cc:\d+\]|RESOURCE_EXHAUSTED|Error", line):
                out.write(line[:600].rstrip(b"\n") + b"\n")
                kept += 1
    return kept


def peaks(program):
    name = program.stem
    results = {}
    for way, more in (("default", {}), ("no_search", {"XLA_FLAGS": "--xla_gpu_autotune_level=0"})):
        dump = WORK / f"{name}.{way}.hlo"
        flags = (more.get("XLA_FLAGS", "") + f" --xla_dump_to={dump}").strip()
        status = run(
            [str(HERE / "with_stats.py"), str(WORK / f"{name}.{way}.json"), str(program), "profile"],
            {**PLAIN, "XLA_FLAGS": flags},
            WORK / f"{name}.{way}.txt",
        )
        totals = {}
        for path in sorted(dump.glob("*buffer-assignment.txt")):
            text = path.read_text(errors="replace")
            found = re.search(r"BufferAssignment stats:.*?(?=\n\n|\Z)", text, re.S)
            sums = {
                kind: sum(int(n) for n in re.findall(rf"^allocation \d+: size (\d+), [^\n]*{kind}", text, re.M))
                for kind in ("parameter", "output", "preallocated-temp", "constant")
            }
            totals[path.name] = {"stats": found[0] if found else "", **sums}
        (WORK / f"{name}.{way}.modules.json").write_text(json.dumps(totals))
        subprocess.run(["rm", "-rf", str(dump)])
        data = json.loads((WORK / f"{name}.{way}.json").read_text()) if (WORK / f"{name}.{way}.json").exists() else {}
        results[way] = (status, data.get("stats", {}).get("peak_bytes_in_use"), data.get("failed"))
    return name, results


def logs(program):
    name = program.stem
    raw = WORK / f"{name}.log.raw"
    status = run([str(HERE / "with_stats.py"), str(WORK / f"{name}.logged.json"), str(program)], {**PLAIN, **LOG}, raw)
    size = raw.stat().st_size
    kept = without_stacks(raw, WORK / f"{name}.log")
    if name == "eager_arrays":
        with open(raw, "rb") as source, open(WORK / "eager_arrays.raw.log", "wb") as target:
            target.write(source.read(4 << 20))
    raw.unlink()
    return name, status, size, kept


def failures(name):
    program, environment = FAILURES[name]
    script = WORK / f"{name}.py"
    script.write_text(program)
    status = run(
        [str(script)], {"TF_BFC_MEMORY_DUMP": str(WORK / f"{name}.memory"), **environment}, WORK / f"{name}.txt"
    )
    return name, status, (WORK / f"{name}.txt").stat().st_size


def failures_logged(name):
    program, environment = FAILURES[name]
    raw = WORK / f"{name}.raw"
    status = run([str(WORK / f"{name}.py")], {**environment, **LOG}, raw)
    kept = without_stacks(raw, WORK / f"{name}.log")
    raw.unlink()
    return name, status, kept


programs = sorted((HERE / "programs").glob("*.py"))
with concurrent.futures.ThreadPoolExecutor(4) as pool:
    for row in pool.map(peaks, programs):
        print(*row, flush=True)
    for row in pool.map(logs, programs):
        print(*row, flush=True)
    small = [name for name in FAILURES if name not in ("oom_async", "oom_platform", "oom_taken_by_another")]
    for row in pool.map(failures, small):
        print(*row, flush=True)
    for row in pool.map(failures_logged, ["oom_fragmented", "oom_growth_regions", "oom_list", "fits_after_all"]):
        print(*row, flush=True)
for name in ("oom_async", "oom_platform", "oom_taken_by_another"):
    print(*failures(name), flush=True)
with tarfile.open(OUT / "jax.tar.xz", "w:xz") as archive:
    archive.add(WORK, "jax")
subprocess.run(["rm", "-rf", str(WORK)])
