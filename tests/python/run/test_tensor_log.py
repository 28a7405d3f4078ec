"""What the Python side of `run` leaves of TensorFlow and JAX programs, without either of them: packages that bear their names, and the log of tensors by itself."""

import json
import os
import re
import signal
import subprocess
import sys

import pytest

from common import ROOT
from test_shim import framework, run

HEAD = """source tensors
property bfc.framework = tensorflow
device 0 name="host memory (mklcpu)"
heap driver0 kind=driver device=0 name=driver
heap mklcpu kind=bfc device=0 below=driver0
"""
LOG = f"""
import os, sys
sys.path.insert(0, {str(ROOT / "python")!r})
from faultline.run import tensor_log
from faultline.run.process import Process
process = Process(sys.argv[1], 0)
log = lambda: tensor_log.TensorLog(process, {HEAD!r})
"""


def logged(folder, program, signalled=None):
    done = subprocess.run([sys.executable, "-c", LOG + program, str(folder)], capture_output=True, text=True)
    assert done.returncode == (-signalled if signalled else 0), done.stderr
    (path,) = folder.glob("tensors-*.txt")
    return path


def explained(binary, path):
    done = subprocess.run([binary, "explain", "--format", "json", str(path)], capture_output=True, text=True)
    return json.loads(done.stdout)


@pytest.mark.parametrize("file", ["train.py", "/a folder/with \"quotes\" and \\.py", "/tab\tand > arrow: 3.py", "/ünïcode/モデル.py"])  # fmt: skip
def test_any_path_comes_back_as_it_was(binary, tmp_path, file):
    program = f"""
l = log()
s = l.stack(l.stack(0, l.frame("<module>", "outer.py", 3)), l.frame("f g", {file!r}, 12))
for _ in range(200):
    l.made("mklcpu", 4000000, s, l.tensor("float32", (1000, 1000), "Fill"))
"""
    report = explained(binary, logged(tmp_path, program))
    (leak,) = [f for f in report["findings"] if f["rule"] == "memory/leak"]
    assert (leak["location"]["file"], leak["location"]["line"]) == (file, 12)


def test_a_killed_process_leaves_all_of_it(binary, tmp_path):
    path = logged(
        tmp_path,
        "l = log()\ns = l.stack(0, l.frame('<module>', 'a.py', 3))\nfor _ in range(300): l.made('mklcpu', 1 << 20, s, 'float32[262144]')\nos.kill(os.getpid(), 9)",
        signal.SIGKILL,
    )
    assert explained(binary, path)["input"]["events"] == 300


CUT = "write = os.write\nos.write = lambda file, data: write(file, data[:7] if l.count == 20 and data[:5] == b'alloc' else data)"


@pytest.mark.parametrize(
    "limit, why, events",
    [
        ("tensor_log._MOST_BYTES = 5000", "when the 0 MiB that it may take were full", 50),
        ("tensor_log._LOOK_AT_DISK = 3000\nrooms = [9000, 100]\ntensor_log.room_in = lambda folder: rooms.pop(0)", "left to the program", 30),
        (CUT, "the disk was full", 20),
    ],
    ids=["its bound", "the program's part", "full"],
)  # fmt: skip
def test_it_ends_where_it_must_and_says_so(binary, tmp_path, limit, why, events):
    program = f"""
class l: count = 0
{limit}
made = log()
s = made.stack(0, made.frame("<module>", "a.py", 3))
for l.count in range(200):
    made.made("mklcpu", 4000, s, "float32[1000]")
"""
    path = logged(tmp_path, program)
    report = explained(binary, path)
    assert events <= report["input"]["events"] <= events + 20
    assert any(why in said for said in report["input"]["unseen"])
    assert why in "".join(note.read_text() for note in tmp_path.glob("notes-*.txt"))


def test_where_the_disk_is_full_there_is_none(tmp_path):
    program = "tensor_log.room_in = lambda folder: 0\nl = log()\nl.made('mklcpu', 4000, l.stack(0, 'a.py:3 f'), 'float32[1000]')"
    done = subprocess.run([sys.executable, "-c", LOG + program, str(tmp_path)], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    (note,) = tmp_path.iterdir()
    assert "tensors are not recorded" in note.read_text()


OTHERS = {  # what another thread does while this one writes, and why the log ends then
    "ends it": ("l.close()", None),
    "finds it full": ("tensor_log._MOST_BYTES = 1", "MiB that it may take were full"),
    "closes what there is": ("os.closerange(3, 64)", "because the program closed its file"),
}


@pytest.mark.parametrize("case", OTHERS)
def test_nothing_is_ever_written_into_a_file_of_the_programs(binary, tmp_path, case):
    other, why = OTHERS[case]
    program = f"""
import threading
l = log()
s = l.stack(0, l.frame("<module>", "a.py", 3))
begun, stopped, go = threading.Event(), threading.Event(), threading.Event()
about = tensor_log.os.fstat
class Slow:  # a thread that was about to write when the other came
    def __getattr__(self, name): return getattr(os, name)
    def write(self, file, data):
        if threading.current_thread() is writer and not stopped.is_set():
            begun.set()
            stopped.wait()
        return os.write(file, data)
def writes():
    for _ in range(50): l.made("mklcpu", 4000, s, "float32[1000]")
writer = threading.Thread(target=writes)
{"tensor_log.os = Slow()" if "close()" in other else ""}
def meanwhile():
    {"begun.wait()" if "close()" in other else "writes()"}
    {other}
    l.made("mklcpu", 4000, s, "float32[1000]")
    files = [open(os.path.join(sys.argv[1], f"own-{{n}}"), "wb", buffering=0) for n in range(40)]  # numbers that were closed are given out again
    stopped.set()
    for file in files: file.write(b"mine")
    return files
beside = threading.Thread(target=lambda: kept.extend(meanwhile()))
kept = []
if {"close()" in other}: writer.start()
beside.start()
beside.join()
if not {"close()" in other}: writer.start()
writer.join()
l.close()
for file in kept: file.write(b" still")
"""
    path = logged(tmp_path, program)
    own = sorted(tmp_path.glob("own-*"))
    assert len(own) == 40 and {file.read_bytes() for file in own} == {b"mine still"}
    report = explained(binary, path)
    assert report["input"]["events"] >= (1 if case == "ends it" else 50) - 1
    assert why is None or any(why in said for said in report["input"]["unseen"])


def test_many_threads_leave_whole_lines_and_one_end(binary, tmp_path):
    program = """
import threading
tensor_log._MOST_BYTES = 200000
sys.setswitchinterval(1e-6)
l = log()
s = l.stack(0, l.frame("<module>", "a.py", 3))
together = threading.Barrier(8)
def work():
    together.wait()
    for _ in range(600): l.ended(l.made("mklcpu", 4000, s, l.tensor("float32", (1000,), "Fill")))
threads = [threading.Thread(target=work) for _ in range(8)]
for thread in threads: thread.start()
for thread in threads: thread.join()
"""
    path = logged(tmp_path, program)
    lines = path.read_text().splitlines()
    assert all(line.split()[0] in ("alloc", "free", "stack", "tensor", "property", "source", "device", "heap", "faultline-trace-text") for line in lines)  # fmt: skip
    assert sum("ended_because" in line for line in lines) == 1
    assert path.stat().st_size < 210000 and explained(binary, path)["input"]["events"] > 1000


def test_a_program_that_replaces_itself_has_a_second_log(tmp_path):
    program = """
l = log()
l.made("mklcpu", 4000, l.stack(0, l.frame("<module>", "a.py", 3)), "float32[1000]")
if len(sys.argv) < 3: os.execv(sys.executable, [sys.executable, "-c", PROGRAM, sys.argv[1], "again"])
"""
    program = f"PROGRAM = {LOG + program!r}\n" + program
    done = subprocess.run([sys.executable, "-c", LOG + program, str(tmp_path)], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    first, second = sorted(tmp_path.glob("tensors-*.txt"), key=lambda path: len(path.name))
    assert second.name == first.name.replace(".txt", "-2.txt")
    assert all(path.read_text().count("alloc #a1 ") == 1 for path in (first, second))


# --- packages that bear the names

JAX = """
__version__ = '9.9'
import sys, types
sys.modules['jax._src'] = types.ModuleType('jax._src')
sys.modules['jax._src.xla_bridge'] = bridge = types.ModuleType('jax._src.xla_bridge')
bridge._backends = {backends}
class JaxRuntimeError(RuntimeError): pass
class Array:
    def __init__(self, ready=True, problem=None): self.ready, self.problem = ready, problem
    def is_deleted(self): return False
    def is_ready(self): return self.ready
    def block_until_ready(self):
        assert self.ready, 'waited for'
        if self.problem: raise JaxRuntimeError(self.problem)
live = []
def live_arrays(): return live
def local_devices(): return []
class profiler:
    device_memory_profile = staticmethod(lambda: b'profile')
class monitoring:
    listeners = []
    register_event_duration_secs_listener = listeners.append
def compiled():
    for listener in monitoring.listeners: listener('/jax/core/compile/backend_compile_duration', 0.1, fun_name='f')
"""
OUT = "RESOURCE_EXHAUSTED: Out of memory while trying to allocate 4000000000 bytes."


def jax(where, program, backends="{'gpu': 1}", **more):
    framework(where, "jax", JAX.format(backends=backends))
    return run(where, "import jax\n" + program, options={}, PYTHONPATH=str(where), **more)


def test_an_array_that_nobody_read_is_asked_at_the_exit(tmp_path):
    ran = jax(tmp_path, f"jax.live += [jax.Array(), jax.Array(ready=False), jax.Array(problem={OUT!r})]\nprint('done')")
    assert (ran.status, ran.out, ran.err) == (0, "done\n", "")
    (told,) = ran.process["other_exceptions"]
    assert told["kind"] == "memory" and told["thread"] == "an array that nobody read"
    (words,) = [name for name in ran.files if name.startswith("failure-")]
    assert OUT in (tmp_path / "left" / words).read_text()
    assert [name for name in ran.files if re.fullmatch(r"jax-\d+-oom-\d+\.prof", name)]


@pytest.mark.parametrize(
    "program, backends",
    [
        ("jax.live += [jax.Array(), jax.Array(problem='INVALID_ARGUMENT: a callback failed')]", "{'gpu': 1}"),
        (f"jax.live += [jax.Array(problem={OUT!r})]", "{}"),
        ("pass", "{'gpu': 1}"),
    ],
    ids=["of another kind", "not begun", "none"],
)
def test_nothing_else_is_told(tmp_path, program, backends):
    ran = jax(tmp_path, program, backends)
    assert ran.status == 0 and ran.process["other_exceptions"] == [] and ran.notes == ""
    assert not [name for name in ran.files if name.startswith(("failure-", "jax-"))]


def test_an_exception_that_ends_it_leaves_its_words_and_the_profile(tmp_path):
    ran = jax(tmp_path, f"raise jax.JaxRuntimeError({OUT!r})")
    assert ran.status == 1 and ran.process["exception"]["kind"] == "memory"
    assert [name.split("-")[0] for name in ran.files if not name.startswith("process")] == ["failure", "jax"]


def looks_of(ran):
    return [name for name in ran.files if re.fullmatch(r"jax-\d+-\d+\.prof", name)]


LOOKS = "import os, sys, time\nlooks = jax.monitoring.listeners[0].__self__\n"
THREE = "while len(looks._kept) < 3: time.sleep(0.01)\n"  # looks, of the thread that takes them
ENDED = "while looks._ended.locked(): time.sleep(0.01)\n"  # that thread


def test_arrays_are_looked_at_from_the_first_program_that_is_compiled(tmp_path):
    ran = jax(
        tmp_path,
        LOOKS + "jax.compiled()\n" + THREE + "jax.compiled()\nimport threading\nprint(threading.active_count())",
    )
    assert (ran.status, ran.out, ran.err, ran.notes) == (0, "1\n", "", "")
    assert len(looks_of(ran)) >= 4  # and the last at the end


# Without the thread, by a clock that goes on by what the looks want to wait.
BY_A_CLOCK = """
class Clock:
    now = 0.0
    def time_ns(self): return int(self.now * 1e9)
clock = sys.modules[type(looks).__module__].time = Clock()
looks._pid = os.getpid()
while clock.now < 60:
    clock.now += looks._seconds
    assert looks._look()
"""


def test_there_are_never_more_looks_than_forty_and_they_are_spread_over_the_run(tmp_path):
    ran = jax(tmp_path, LOOKS + BY_A_CLOCK)
    assert (ran.status, ran.err) == (0, "")
    moments = sorted(int(name.split("-")[2].split(".")[0]) for name in looks_of(ran))
    assert 20 <= len(moments) <= 40
    assert moments[0] < 2_000_000 and moments[-1] > 58_000_000
    between = [after - before for before, after in zip(moments, moments[1:])]
    assert max(between) <= 2 * min(between) + 2


@pytest.mark.parametrize(
    "program, backends",
    [
        ("time.sleep(0.3)", "{'gpu': 1}"),
        ("jax.compiled(); time.sleep(0.3)", "{}"),
        ("jax.monitoring.listeners[0]('/jax/core/compile/jaxpr_trace_duration', 0.1); time.sleep(0.3)", "{'gpu': 1}"),
    ],
    ids=["nothing compiled", "not begun", "only traced"],
)
def test_there_is_no_look_before_the_program_has_begun(tmp_path, program, backends):
    ran = jax(tmp_path, "import time\n" + program, backends)
    assert ran.status == 0 and looks_of(ran) == [] and ran.notes == ""


def test_a_look_that_fails_is_noted_and_the_program_goes_on(tmp_path):
    ran = jax(
        tmp_path,
        LOOKS + "def no(): raise RuntimeError('no profile')\njax.profiler.device_memory_profile = staticmethod(no)\n"
        "jax.compiled()\n" + ENDED + "print('done')",
    )
    assert (ran.status, ran.out, ran.err) == (0, "done\n", "") and "no profile" in ran.notes and looks_of(ran) == []


@pytest.mark.parametrize("size, is_told", [((4 << 20) + 1, True), (4 << 20, False)])
def test_a_profile_that_is_too_large_ends_the_looks_and_that_is_noted(tmp_path, size, is_told):
    large = f"jax.profiler.device_memory_profile = staticmethod(lambda: bytes({size}))\njax.compiled()\n"
    ran = jax(tmp_path, LOOKS + large + (ENDED if is_told else THREE) + "print('done')")
    assert (ran.status, ran.out, ran.err) == (0, "done\n", "") and bool(looks_of(ran)) is not is_told
    assert ran.notes.count("a profile of them had more than 4 MiB") == is_told


def test_looks_that_have_ended_end_at_once_and_look_no_more(tmp_path):
    ran = jax(
        tmp_path,
        LOOKS + "looks._seconds = 3600\njax.compiled()\nlooks.end()\n"  # which would be the next
        "print(len(looks._kept), looks._ended.locked())\nlooks.end()\nprint(len(looks._kept))",
    )
    assert (ran.status, ran.out, ran.err) == (0, "1 True\n1\n", "")


def test_a_child_that_was_forked_does_not_look(tmp_path):
    ran = jax(
        tmp_path,
        LOOKS + "jax.compiled()\n" + THREE + "if os.fork() == 0:\n    time.sleep(0.4)\n    os._exit(0)\nos.wait()",
    )
    assert ran.status == 0 and len({name.split("-")[1] for name in looks_of(ran)}) == 1


def test_an_interrupt_stays_one(tmp_path):
    ran = jax(tmp_path, "raise KeyboardInterrupt")
    assert ran.status == -2 and not [name for name in ran.files if name.startswith("failure-")]


ASKS = "import os\nprint(os.environ.get('TF_BFC_MEMORY_DUMP'))"


def test_maps_of_the_pool_go_into_the_folder_and_each_process_has_its_own(tmp_path):
    ran = jax(
        tmp_path,
        ASKS
        + "\nimport subprocess, sys\nif len(sys.argv) < 2: print(subprocess.run([sys.executable, __file__, 'child'], capture_output=True, text=True).stdout)",
    )
    mine, child = ran.out.split()
    assert mine != child
    assert all(os.path.dirname(path) == str(tmp_path / "left") for path in (mine, child))


def test_settings_of_the_user_win_and_what_is_lost_is_said(tmp_path):
    ran = jax(tmp_path, ASKS, TF_BFC_MEMORY_DUMP="/tmp/mine")
    assert ran.out == "/tmp/mine\n"
    assert "TF_BFC_MEMORY_DUMP is set already, and is left as it is" in ran.notes


def test_a_release_that_is_not_known_is_noted_and_runs(tmp_path):
    framework(tmp_path, "tensorflow")
    ran = run(tmp_path, "import tensorflow\nprint('ran')", options={}, PYTHONPATH=str(tmp_path))
    assert (ran.status, ran.out, ran.err) == (0, "ran\n", "")
    assert "TensorFlow 1.2.3 cannot be watched here" in ran.notes
