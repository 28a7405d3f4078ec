#!/usr/bin/env python3
"""Records the allocator log of each program in programs/ with TensorFlow on the CPU, as tests/fixtures/tensorflow holds them.

    python3 scripts/bfc/record.py --python VENV/bin/python --out DIR [NAME …]

TensorFlow's CPU allocator is then the same BFC allocator that serves a GPU, so the log has everything but a GPU's addresses. Minutes per program: the
allocator writes a symbolised stack for every request. Fixtures keep the innermost frames of each stack, and no path of the machine they were made on.
"""

import argparse
import lzma
import os
import re
import subprocess
from pathlib import Path

PROGRAMS = Path(__file__).resolve().parent / "programs"
LIMITS_MB = {"out_of_memory": 256, "shapes": 160, "leak": 512}
FRAMES_KEPT = 10
BEGIN, END = "*** Begin stack trace ***", "*** End stack trace ***"


def record(python: str, name: str, log: Path) -> None:
    environment = {
        **os.environ,
        "TF_CPP_VMODULE": "bfc_allocator=4",
        "TF_CPP_MIN_LOG_LEVEL": "0",
        "TF_CPU_ALLOCATOR_USE_BFC": "true",
        "TF_CPU_BFC_MEM_LIMIT_IN_MB": str(LIMITS_MB.get(name, 1024)),
        "CUDA_VISIBLE_DEVICES": "-1",
    }
    with log.open("wb") as out:
        subprocess.run([python, str(PROGRAMS / f"{name}.py")], env=environment, stderr=out, check=True)


def shortened(text: str) -> str:
    """Each stack with its innermost named frames; a stack without an end mark (long ones are cut) stays without one."""
    lines, frames = [], None
    for line in text.splitlines():
        if line.endswith(BEGIN):
            frames = 0
        elif frames is not None and line.startswith("\t"):
            frames += bool(line.strip())
            if (frames > FRAMES_KEPT or not line.strip()) and line != "\tPy_FinalizeEx":
                continue
        elif line:
            frames = None
        lines.append(line)
    return re.sub(r"/(?:work|home|root|tmp|usr)/[^\s:\"']*/", "/home/user/project/", "\n".join(lines) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", required=True, help="an interpreter that has TensorFlow")
    parser.add_argument("--out", required=True, type=Path)
    parser.add_argument("names", nargs="*")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    for name in arguments.names or sorted(path.stem for path in PROGRAMS.glob("*.py")):
        log = arguments.out / f"{name}.log"
        record(arguments.python, name, log)
        short = shortened(log.read_text(errors="replace"))
        packed = arguments.out / f"{name}.log.xz"
        packed.write_bytes(lzma.compress(short.encode(), preset=9))
        print(name, log.stat().st_size, "bytes,", packed.stat().st_size, "as a fixture", flush=True)


if __name__ == "__main__":
    main()
