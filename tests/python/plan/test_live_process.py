"""faultline.plan(function): what a running program has open stays as it was for it, and is for the function as the program left it."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

pytest.importorskip("torch")
HERE = Path(__file__).resolve().parent

PROGRAM = """
import ctypes, mmap, multiprocessing.shared_memory, os, sqlite3, tempfile, faultline, numpy, torch
open("lines", "w").write("".join(f"line {n}\\n" for n in range(2000)))
reading = open("lines"); reading.readline()
raw = os.open("lines", os.O_RDONLY); os.read(raw, 7); twin = os.dup(raw)
unnamed = tempfile.TemporaryFile(); unnamed.write(b"before"); unnamed.flush()
memory = os.memfd_create("x"); os.write(memory, b"before")
bases = []
for mode in ("delete", "wal"):
    base = sqlite3.connect(mode); base.execute(f"pragma journal_mode={mode}"); base.execute("create table t (x)"); base.execute("insert into t values (1)"); base.commit()
    bases.append((mode, base))
shared = multiprocessing.shared_memory.SharedMemory(create=True, size=4096); shared.buf[:3] = b"abc"
anonymous = mmap.mmap(-1, 4096); anonymous[:3] = b"abc"
parts = mmap.mmap(-1, 3 * 4096); parts[:] = b"x" * (3 * 4096); ctypes.CDLL(None).mprotect(ctypes.c_void_p(ctypes.addressof(ctypes.c_char.from_buffer(parts)) + 4096), 4096, 1)
view = numpy.memmap("view", dtype="uint8", mode="w+", shape=4096); view[:] = 1; view.flush()
writing = open("both", "w+"); writing.write("before\\n"); writing.flush(); beside = open("both")
folder = os.open(".", os.O_RDONLY); entries = os.scandir("."); next(entries)
tensor = torch.ones(8).share_memory_()
named = os.open("removed", os.O_CREAT | os.O_RDWR); os.link("removed", "kept"); os.remove("removed"); os.write(named, b"before")
rows = lambda base: [row[0] for row in base.execute("select x from t")]

def function():
    assert reading.readline() == "line 1\\n"; list(reading)
    assert os.read(raw, 7) == b"line 1\\n" and os.read(twin, 7) == b"line 2\\n"   # two of one opening stay one
    unnamed.write(b" inside"); unnamed.seek(0); assert unnamed.read() == b"before inside"
    os.pwrite(memory, b"INSIDE", 0); os.ftruncate(memory, 100); os.pwrite(named, b"INSIDE", 0)
    for name, base in bases:
        base.execute("insert into t values (2)"); base.commit()
        assert rows(base) == [1, 2] == rows(sqlite3.connect(name))
    shared.buf[:3] = b"XYZ"; again = multiprocessing.shared_memory.SharedMemory(shared.name); assert bytes(again.buf[:3]) == b"XYZ"; again.close()
    anonymous[:3] = b"XYZ"; assert parts[:] == b"x" * (3 * 4096); parts[:9] = parts[-9:] = b"y" * 9
    child = os.fork()
    if child == 0:
        anonymous[3:6] = b"kid"; os._exit(0)
    os.waitpid(child, 0); assert anonymous[:6] == b"XYZkid"
    view[:] = 9; view.flush(); assert open("view", "rb").read() == bytes([9]) * 4096
    writing.write("inside\\n"); writing.flush(); assert beside.read() == "before\\ninside\\n"
    assert os.path.samestat(os.fstat(writing.fileno()), os.stat("both"))
    os.close(os.open("made", os.O_CREAT | os.O_WRONLY, dir_fd=folder)); assert "made" in os.listdir(folder); list(entries)
    tensor.fill_(7); os.kill(os.getppid(), 15); torch.ones(8, device="cuda")

plan = faultline.plan(function, gpu="T4"); found = plan.report["plan"]
assert found["exception"] is None, found["exception"]
assert [name for name in found["effects"]["written"] if "/" not in name and "-" not in name] == ["both", "delete", "made", "view"], found["effects"]
assert found["effects"]["unsent_signals"] == [f"SIGTERM to {os.getpid()} ({open('/proc/self/comm').read().strip()})"]
assert reading.readline() == "line 1\\n" and os.read(raw, 7) == b"line 1\\n" and os.read(twin, 7) == b"line 2\\n"
unnamed.seek(0); assert unnamed.read() == b"before" and os.pread(memory, 100, 0) == b"before" and open("kept").read() == "before"
for name, base in bases:
    assert rows(base) == [1]; base.execute("insert into t values (3)"); base.commit(); assert rows(sqlite3.connect(name)) == [1, 3]
assert bytes(shared.buf[:3]) == b"abc" and anonymous[:6] == b"abc\\0\\0\\0" and parts[:] == b"x" * (3 * 4096) and (view == 1).all() and tensor.sum() == 8
assert open("both").read() == "before\\n" and not os.path.exists("made") and len(list(entries)) > 3
shared.close(); shared.unlink(); assert "1 would have been sent (SIGTERM to" in " ".join(plan.text.split()); print("as before")
"""


def test_what_is_open_is_the_programs_own(binary, tmp_path):
    (tmp_path / "program.py").write_text(textwrap.dedent(PROGRAM))
    environment = {**os.environ, "PYTHONPATH": str(HERE.parents[2] / "python"), "FAULTLINE": binary}
    done = subprocess.run(
        [sys.executable, "program.py"], cwd=tmp_path, capture_output=True, text=True, timeout=600, env=environment
    )
    assert done.stdout.endswith("as before\n"), done.stderr
