"""Runs a JAX program and writes what its device's allocator counted, however it ends: python with_stats.py OUT.json PROGRAM.py"""

import json
import runpy
import sys

import jax

out, program = sys.argv[1:3]
sys.argv = sys.argv[2:]
failed = None
try:
    runpy.run_path(program, run_name="__main__")
except BaseException as error:  # whatever it is, it is told
    failed = f"{type(error).__name__}: {error}"[:4000]
device = jax.devices()[0]
live = [(str(a.dtype), list(a.shape), a.nbytes) for a in jax.live_arrays()]
stats = device.memory_stats() or {}
with open(out, "w") as file:
    json.dump(
        {"device": device.device_kind, "jax": jax.__version__, "stats": stats, "live": live, "failed": failed}, file
    )
if len(sys.argv) > 1 and sys.argv[1] == "profile":
    jax.profiler.save_device_memory_profile(out.replace(".json", ".pprof"))
