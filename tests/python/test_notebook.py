"""%load_ext faultline in a real kernel; faultline.explain and faultline.Report; cells by their numbers.

There is no GPU here: the driver's side is played by the virtual one, PyTorch's by tensors of the CPU that are taken for tensors of a GPU (PRETEND).
"""

import html.parser
import json
import lzma
import os
import pickle
import re
import struct
import subprocess
import sys
import textwrap
import traceback
import types
import weakref
from pathlib import Path

import pytest
from a_kernel import Kernel
from common import RECORDINGS, ROOT

sys.path.insert(0, str(ROOT / "python"))
from faultline import Report, explain
from faultline.notebook import kept_alive, orders
from faultline.notebook.cells import Cells
from faultline.report import Section, page_of

pytest.importorskip("ipykernel")
pytest.importorskip("jupyter_client")
pytestmark = pytest.mark.xdist_group("notebook")

DRIVER = """
import ctypes
driver = ctypes.CDLL("libcuda.so.1")
driver.cuInit(0)
device, context = ctypes.c_int(), ctypes.c_void_p()
driver.cuDeviceGet(ctypes.byref(device), 0)
driver.cuCtxCreate_v2(ctypes.byref(context), 0, device)
def hold(count):
    for _ in range(count):
        driver.cuMemAlloc_v2(ctypes.byref(ctypes.c_uint64()), ctypes.c_size_t(1 << 30))
"""

# What PyTorch says of a GPU, of tensors that lie on the CPU.
PRETEND = """
import gc, sys, weakref, torch
import faultline.notebook.kept_alive as _kept
_kept.is_on_gpu = lambda tensor: True
_live, asked, history = {}, [], [False]
def gpu(count, depth=1):
    tensor = torch.zeros(count, dtype=torch.uint8)
    frames, frame = [], sys._getframe(depth)
    while frame is not None:
        frames.append({"filename": frame.f_code.co_filename, "line": frame.f_lineno, "name": frame.f_code.co_name})
        frame = frame.f_back
    _live[tensor.untyped_storage().data_ptr()] = (weakref.ref(tensor), count, frames if history[0] else [])
    return tensor
def _alive():
    return [(at, size, frames) for at, (tensor, size, frames) in _live.items() if tensor() is not None]
def _snapshot():
    blocks = [{"address": at, "size": size, "requested_size": size, "state": "active_allocated", "frames": frames} for at, size, frames in _alive()]
    return {"segments": [{"device": 0, "blocks": blocks}], "device_traces": [[]]}
def _record(enabled="all", **settings):
    asked.append((enabled, settings))
    history[0] = enabled is not None
torch.cuda.is_initialized, torch.cuda.device_count = lambda: True, lambda: 1
torch.cuda.memory_allocated = lambda index=0: sum(size for _, size, _ in _alive())
torch.cuda.empty_cache = lambda: None
torch.cuda.memory._snapshot, torch.cuda.memory._record_memory_history = _snapshot, _record
torch._C._cuda_isHistoryEnabled = lambda: history[0]
torch._C._cuda_attach_out_of_memory_observer = lambda observer: globals().update(_observer=observer)
"""


@pytest.fixture(scope="module")
def kernel(binary, tmp_path_factory):
    made = Kernel(tmp_path_factory.mktemp("kernel"), binary)
    assert made.run("%load_ext faultline").status == "ok"
    yield made
    made.close()
    assert [path.name for path in made.tmp.iterdir() if path.name.startswith("faultline")] == []


@pytest.fixture(scope="module")
def torch_kernel(kernel):
    pytest.importorskip("torch")
    shown = kernel.run(PRETEND)
    assert shown.status == "ok", shown.error
    return kernel


# --- the driver's side, before PyTorch is in the kernel


def test_nothing_is_lost_and_it_is_said_where_there_is_no_gpu(kernel):
    shown = kernel.run("%%faultline run\nkept = 3\nkept")
    assert shown.status == "ok" and shown.result == "3" and kernel.run("kept").result == "3"
    assert f"Nothing was seen on a GPU in cell [{shown.number}]" in shown.text
    assert "no CUDA driver" in shown.text or os.path.exists("/dev/nvidia0")


@pytest.mark.parametrize(
    "page, cell", [("nodir/x.html", "7"), ("x.html", "7"), ("x.html", "raise RuntimeError('CUDA out of memory.')")]
)
def test_a_page_of_nothing_is_said_not_to_be_written(kernel, page, cell):
    shown = kernel.run(f"%%faultline run --page {page}\n{cell}")
    assert f"The page {page} was not written" in shown.text and "There is no recording to show." in shown.text
    assert kernel.run("import os; os.path.exists('x.html')").result == "False"
    assert "not written" not in kernel.run(f"%%faultline run\n{cell}").text


@pytest.mark.parametrize(
    "cell, result, error",
    [
        ("import asyncio\nawait asyncio.sleep(0)\n'awaited'", "'awaited'", None),
        ("%%time\nx = 7\nx", "7", None),
        ("7;", None, None),
        ("def f(:\n    pass", None, "SyntaxError"),
        ("raise SystemExit(3)", None, "SystemExit"),
        ("import _thread, time\n_thread.interrupt_main()\ntime.sleep(9)", None, "KeyboardInterrupt"),
        ("get_ipython().run_cell('11');\n12", "12", None),
        ("!true\n5", "5", None),
        ("", None, None),
    ],
)
@pytest.mark.parametrize("verb", ["run", "watch"])
def test_a_cell_ends_as_it_would_without(kernel, verb, cell, result, error):
    shown = kernel.run(f"%%faultline {verb}\n{cell}")
    assert (shown.result, shown.error[0] if shown.error else None) == (result, error), shown
    assert "faultline:" not in shown.err
    assert kernel.run("40 + 2").text == ""  # nothing goes on behind the cell


def test_a_cell_is_recorded_at_the_driver_and_told_by_cells_and_lines(kernel):
    first = kernel.run("%%faultline run --gpu virtual:4GiB" + DRIVER + "hold(2)")
    assert first.status == "ok" and "Nothing wrong was found" in first.text
    assert re.search(rf"2\.00 GiB .*cell \[{first.number}\], line 10 in hold", first.text)
    second = kernel.run("%%faultline run --as told\n\nhold(3)\nraise KeyError('mine')")
    assert second.status == "error" and second.error[:2] == ("KeyError", "'mine'")
    assert "-> 4 raise" in re.sub(r"\x1b\[[\d;]*m", "", second.error[2])
    assert "memory/out-of-memory  (proved)" in second.text and "ipykernel" not in second.text
    assert f"where       cell [{first.number}], line 10 in hold" in second.text
    assert f"called from cell [{second.number}], line 3" in second.text
    assert "How process" not in second.text  # the kernel goes on
    third = kernel.run("%%faultline run --page memory.html\nafter = 1")
    assert kernel.run("import pathlib; 'hold' in pathlib.Path('memory.html').read_text()").result == "True"
    assert "not written" not in third.text
    without_page = kernel.run("%%faultline run --page nodir/x.html\nafter = 2")
    assert "The page nodir/x.html was not written" in without_page.text, without_page
    assert "Nothing wrong was found" in third.text and "earlier cells is not repeated (1)" in third.text
    assert kernel.run("len(told.findings), told.findings[0]['rule']").result == "(1, 'memory/out-of-memory')"
    assert kernel.run("%faultline").text.count("are recorded in this kernel") == 1
    assert (
        kernel.run(
            "import os; [n for n in os.environ if n.startswith('FAULTLINE_R') or n == 'FAULTLINE_DRIVER']"
        ).result
        == "[]"
    )


def test_trouble_of_ours_leaves_the_cell_alone(kernel):
    kernel.run("import faultline.notebook.watched_cell as _w; _begin, _end = _w.WatchedCell.begin, _w.WatchedCell.end")
    for part in ("begin", "end"):
        kernel.run(f"_w.WatchedCell.{part} = lambda *_: 1 // 0")
        shown = kernel.run("%%faultline watch\nstays = 'it'\nstays")
        kernel.run("_w.WatchedCell.begin, _w.WatchedCell.end = _begin, _end")
        assert shown.status == "ok" and shown.result == "'it'" and "ZeroDivisionError" in shown.err
        assert shown.err.count("\n") == 1 and shown.err.startswith("faultline: ")


@pytest.mark.parametrize(
    "line, words",
    [
        ("%%faultline\n1", "there is no command"),
        ("%%faultline pln\n1", "there is no pln"),
        ("%%faultline run --gpu T4\n1", "plan takes other GPUs"),
        ("%%faultline run --as 3x\n1", "no name of a variable"),
        ("%%faultline plan --steps many\n1", "--steps"),
        ("%%faultline plan 'T4\n1", "quotation"),
        ("%%faultline plan --gpu T4\nawait x", "await"),
        ("%%faultline plan --gpu Q9\nx = 1", "Q9"),
        ("%faultline relase", "relase"),
        ("%faultline explain /no/such/file.txt", "no such file"),
    ],
)
def test_what_is_not_understood_is_said_in_a_sentence_and_nothing_is_run(kernel, line, words):
    kernel.run("x = 'before'")
    shown = kernel.run(line)
    assert shown.status == "error" and words in shown.err + str(shown.error), shown
    assert kernel.run("x").result == "'before'"


# --- PyTorch's side


def test_a_cell_is_planned_and_not_run(torch_kernel):
    torch_kernel.run("def rows():\n    return 20\n_kept.is_on_gpu = lambda tensor: tensor.is_cuda")
    shown = torch_kernel.run(
        '%%faultline plan --gpu T4 --as planned\nimport os\nopen("written", "w").close()\nfor n in range(2):\n    w = torch.empty(rows() * n, 1 << 30, device="cuda")'
    )
    torch_kernel.run("_kept.is_on_gpu = lambda tensor: True")
    assert shown.status == "ok", (shown.err, shown.error)
    assert (
        f"fails at    cell [{shown.number}], line 5\n" in shown.text
        and f"cell [{shown.number}], line 1" not in shown.text
    )
    assert "DOES NOT FIT on Tesla T4" in shown.text and "ipykernel" not in shown.text + shown.html
    assert torch_kernel.run("import os; 'w' in globals(), os.path.exists('written')").result == "(False, False)"
    assert torch_kernel.run("planned.content['plan']['verdict']").result == "'does-not-fit'"


def test_a_function_of_a_cell_is_planned_and_told_by_its_cell(torch_kernel):
    made = torch_kernel.run('def train():\n    return torch.empty(20, 1 << 30, device="cuda")')
    shown = torch_kernel.run("import faultline\nfaultline.plan(train, gpu='T4')")
    assert f"cell [{made.number}], line 2" in shown.html and "ipykernel" not in shown.html
    assert "does not fit" in shown.html


def test_what_a_cell_leaves_on_the_gpu_is_told_by_line_and_by_who_keeps_it(torch_kernel):
    shown = torch_kernel.run(
        "%%faultline watch\ndef make():\n    return gpu(3 << 20)\nlist_of_mine = [make() for _ in range(2)]\ntemporary = gpu(1 << 20)\ndel temporary"
    )
    assert f"Cell [{shown.number}] left 6.00 MiB on the GPU" in shown.text
    assert f"6.00 MiB  cell [{shown.number}], line 3 in make  ×2" in shown.text
    assert f"6.00 MiB  list_of_mine  a variable of cell [{shown.number}]" in shown.text
    assert torch_kernel.run("asked").result.count("(None, {})") == 1  # switched on, and off again
    clean = torch_kernel.run("%%faultline watch\ngone = gpu(1 << 20)\ndel gone")
    assert f"Cell [{clean.number}] left nothing on the GPU" in clean.text and "Who keeps it" not in clean.text
    assert "freed 6.00 MiB" in torch_kernel.run("%%faultline watch\ndel list_of_mine").text


def test_a_history_that_the_user_records_stays_as_it_is(torch_kernel):
    torch_kernel.run("asked.clear(); torch.cuda.memory._record_memory_history(max_entries=7)")
    shown = torch_kernel.run("%%faultline watch\n1")
    assert (
        "recorded by the notebook itself" in shown.text
        and torch_kernel.run("len(asked), history").result == "(1, [True])"
    )
    torch_kernel.run("torch.cuda.memory._record_memory_history(enabled=None); asked.clear()")
    torch_kernel.run("%%faultline watch\ntorch.cuda.memory._record_memory_history(max_entries=9)")
    assert (
        torch_kernel.run("asked[-1], history, torch.cuda.memory._record_memory_history is _record").result
        == "(('all', {'max_entries': 9}), [True], True)"
    )
    torch_kernel.run("torch.cuda.memory._record_memory_history(enabled=None)")


TRAPS = [
    ("gpu(2 << 20)", r"2\.00 MiB  Out\[{n}\] and _  an output that IPython keeps", "End a line that shows a tensor with ;"),
    ("def step():\n    batch = gpu(2 << 20)\n    raise ValueError('stop')\nstep()", r"2\.00 MiB  the last error  .*batch in step\(\), cell \[{n}\], line\s+\d", "%faultline release"),
    ("def step():\n    batch = gpu(2 << 20)\n    raise ValueError('stop')\ntry:\n    step()\nexcept ValueError as problem:\n    caught = problem", r"2\.00 MiB  caught  an exception in a variable: .*batch in\s+step\(\)", "del caught"),
    ("class Box:\n    def __init__(self):\n        self.inside = {{'a': [gpu(2 << 20)]}}\nbox = Box()".replace("{{", "{").replace("}}", "}"), r"2\.00 MiB  box  a variable of cell \[{n}\]", None),
    ("model = torch.nn.Linear(8, 8)\nmodel.kept = gpu(2 << 20)", r"2\.00 MiB  model  a variable of cell \[{n}\]", None),
]  # fmt: skip


@pytest.mark.parametrize("cell, held, fix", TRAPS)
def test_the_traps_of_a_notebook_are_named(torch_kernel, cell, held, fix):
    torch_kernel.run("%faultline release")
    made = torch_kernel.run(cell)
    told = torch_kernel.run("%faultline").text
    flat = re.sub(r"\n\s+", " ", told)
    assert re.search(held.replace("{n}", str(made.number)), flat), told
    assert (fix in flat) if fix else ("kept by the notebook itself" not in flat), told
    torch_kernel.run("%faultline release\nfor _n in ('caught', 'box', 'model'): globals().pop(_n, None)")
    assert "2.00 MiB" not in torch_kernel.run("%faultline").text
    assert torch_kernel.run("gc.collect(); torch.cuda.memory_allocated()").result == "0"  # nobody else has it


def test_a_cell_that_is_run_again_and_leaves_more_each_time_is_told(torch_kernel):
    torch_kernel.run("losses = []")
    cell = "%%faultline watch\nlosses.append(gpu(1 << 20))"
    torch_kernel.run(cell)
    shown = torch_kernel.run(cell)
    assert "run 2 times, and each time something stayed: 1.00 MiB, 1.00 MiB" in re.sub(r"\n\s+", " ", shown.text)
    assert f"cell [{shown.number}], line 2" in shown.text and "losses  a variable" in shown.text
    torch_kernel.run("del losses")


def test_after_cuda_has_begun_pytorchs_own_history_is_what_is_seen(torch_kernel, tmp_path):
    """PyTorch's recorded snapshot of a failure, given out where PyTorch would."""
    snapshot = pickle.loads(lzma.decompress((RECORDINGS / "gpt_oom.pickle.xz").read_bytes()))
    path = tmp_path / "snapshot.pickle"
    path.write_bytes(pickle.dumps(snapshot))
    stopped = torch_kernel.run("import faultline.notebook.extension as _e; _e.loaded.extension.recorder.stop()")
    assert stopped.status == "ok", stopped.error
    shown = torch_kernel.run(
        f"""%%faultline run
import pickle
def failing():
    taken = pickle.load(open({str(path)!r}, 'rb'))
    here = sys._getframe().f_code.co_filename
    for frame in [f for t in taken['device_traces'] for e in t for f in e.get('frames', ())] + [f for s in taken['segments'] for b in s['blocks'] for f in b.get('frames', ())]:
        if frame['filename'].endswith('snap.py'):
            frame['filename'] = here
    torch.cuda.memory._snapshot = lambda: taken
    _observer(0, 0, 0, 0)
    raise torch.OutOfMemoryError('CUDA out of memory. Tried to allocate 786.00 MiB. GPU 0 has a total capacity of 139.80 GiB of which 134.24 GiB is free.')
failing()"""
    )
    torch_kernel.run("torch.cuda.memory._snapshot = _snapshot")
    assert shown.status == "error" and shown.error[0] == "OutOfMemoryError"
    assert "own-limit" in shown.text and f"cell [{shown.number}], line 22" in shown.text, shown.text
    assert "Calls of the CUDA driver were not recorded: the recording of this kernel has ended" in shown.text
    again = torch_kernel.run("import faultline\nfaultline.explain()")
    assert "own-limit" in again.result and "own-limit" in torch_kernel.run("faultline.explain(sys.last_value)").result
    torch_kernel.run("%faultline release")


def test_an_error_without_a_recording_is_explained_with_its_cell(torch_kernel):
    shown = torch_kernel.run("raise RuntimeError('CUDA error: an illegal memory access was encountered')")
    told = torch_kernel.run("import faultline\nfaultline.explain()")
    assert "access/illegal-address" in told.result and f"cell [{shown.number}], line 1" in told.result
    assert "<script" not in told.html and "access/illegal-address" in told.html


def test_a_run_that_recorded_nothing_explains_the_error_in_its_own_words(torch_kernel):
    shown = torch_kernel.run("%%faultline run\na = torch.ones(3, 4)\na @ torch.ones(5, 6)")
    assert shown.error[0] == "RuntimeError" and "tensor/shape-mismatch" in shown.text, shown.text
    assert f"cell [{shown.number}], line 3" in shown.text
    shown = torch_kernel.run("%%faultline run\nraise ValueError('nothing of a GPU')")
    assert shown.error[0] == "ValueError" and "ERROR" not in shown.text


def test_jax_is_told_by_its_own_profile(kernel):
    pytest.importorskip("jax")
    made = kernel.run("import jax.numpy as jnp\nkept_by_jax = jnp.ones((1000, 1000))")
    shown = kernel.run("%%faultline run\ndef big():\n    return jnp.zeros((10**6, 10**7)).block_until_ready()\nbig()")
    assert "RESOURCE_EXHAUSTED" in shown.error[1] and "memory/host-memory" in shown.text, shown
    assert f"where       cell [{shown.number}], line 3 in big" in shown.text
    assert f"3.81 MiB  ×1  other  cell [{made.number}], line 2" in shown.text


def test_a_kernel_that_dies_in_the_midst_of_a_cell_is_told_of_by_the_next(kernel):
    kernel.start_and_lose("%%faultline run\nvalue = 1\nimport os, signal\nos.kill(os.getpid(), signal.SIGKILL)")
    shown = kernel.run("%load_ext faultline")
    assert shown.status == "ok" and "The kernel before this one ended in cell [" in shown.text, shown
    assert "restarted, killed or died" in shown.text and "value = 1" in shown.text
    kernel.start_and_lose(
        "%%faultline run --gpu virtual:4GiB" + DRIVER + "hold(5)\nos = __import__('os')\nos.kill(os.getpid(), 9)"
    )
    shown = kernel.run("%load_ext faultline")
    assert "What was recorded until then" in shown.text and "memory/out-of-memory" in shown.text
    assert "cell [2], line 10 in hold" in shown.text and "ipykernel" not in shown.text, shown.text
    assert kernel.run("%reload_ext faultline").text == ""  # told once
    assert kernel.run("%unload_ext faultline").status == "ok"
    assert kernel.run("%%faultline run\n1").status == "error"
    assert kernel.run("%load_ext faultline").text == ""


# --- without a kernel


class _Parsed(html.parser.HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.tags, self.attributes = set(), set()
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attributes}


@pytest.mark.parametrize(
    "hostile",
    ["<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "</pre></details><b>", "&lt;i&gt;\x00\u202e"],
)
def test_no_name_of_a_program_becomes_html(hostile):
    place = {"file": hostile, "line": 3, "function": hostile}
    finding = {
        "rule": hostile,
        "severity": hostile,
        "confidence": hostile,
        "message": hostile,
        "location": place,
        "holders": [{"bytes": 1, "category": hostile, "location": place}],
        "tries": [{"what": hostile}],
    }
    content = {
        "findings": [finding] * 6,
        "plan": {"verdict": hostile, "gpu": {"name": hostile, "capacity": 1}, "needed": 2},
    }
    page = page_of(content, (Section(hostile, (hostile,), ((1, hostile, hostile),), (hostile,)),), hostile * 20000)
    parsed = _Parsed(page)
    assert parsed.tags <= {"div", "b", "code", "table", "tr", "td", "ul", "li", "details", "summary", "pre"}
    assert parsed.attributes <= {"style"} and len(page) < 1 << 20


@pytest.mark.parametrize(
    "text, told",
    [
        ("/tmp/ipykernel_12/3456789.py:7", "cell [4], line 7"),
        ("at 3456789.py:7, then", "at cell [4], line 7, then"),
        ("<ipython-input-12-0a1b2c3d>:3", "cell [12], line 3"),
        ("/tmp/ipython-input-9-123456.py:2 in f", "cell [9], line 2 in f"),
        ("/tmp/ipykernel_12/1111111.py:7", "/tmp/ipykernel_12/1111111.py:7"),
        ("/home/me/train.py:7", "/home/me/train.py:7"),
        ("1234567.py:7", "1234567.py:7"),
    ],
)  # fmt: skip
def test_files_of_cells_are_cells(text, told):
    assert Cells(None, {"/tmp/ipykernel_12/3456789.py": 4}).in_words(text) == told


@pytest.mark.parametrize(
    "cell, is_one",
    [
        ("%%faultline run\nx", True),
        ("\n%%faultline watch --as r\nx", True),
        ("%%faultline plan\nx", False),
        ("%%faultline rnu\nx", False),
        ("%%faultlines run\nx", False),
        ("x = '''\n%%faultline run'''", False),
    ],
)
def test_only_cells_that_are_run_as_they_are_lose_their_first_line(cell, is_one):
    assert (orders.order_above(cell) is not None) is is_one
    lines = cell.lstrip("\n").splitlines(keepends=True)
    assert orders.without_order(lines) == (["\n", *lines[1:]] if is_one else lines)


class _Thing:
    pass


def _failing():
    thing = _Thing()
    raise ValueError(id(thing))


def _suspended():
    while True:
        thing = _Thing()
        yield weakref.ref(thing)
        thing = None
        yield None


@pytest.mark.parametrize("kind", ["exception", "generator", "out", "variable"])
def test_looking_keeps_nothing_alive(monkeypatch, kind):
    """What is found is let go, as it would have been, when its owner lets go of it."""
    monkeypatch.setattr(
        kept_alive, "_array", lambda thing: ((0, id(thing)), 5000, 0) if type(thing) is _Thing else None
    )
    space = {"_oh": {}}
    if kind == "exception":
        try:
            _failing()
        except ValueError as problem:
            space["caught"] = problem
            thing = weakref.ref(problem.__traceback__.tb_next.tb_frame.f_locals["thing"])
            problem.__traceback__.tb_next.tb_frame.f_locals.clear() if sys.version_info < (3, 13) else None
    elif kind == "generator":
        space["batches"] = _suspended()
        thing = next(space["batches"])
    else:
        made = _Thing()
        space.update({"_oh": {3: [made]}} if kind == "out" else {"made": {"deep": (made,)}})
        thing = weakref.ref(made)
        del made
    [holder] = kept_alive.Search(types.SimpleNamespace(user_ns=space)).holders
    assert (holder.name, holder.bytes()) == (
        {"exception": "caught", "generator": "batches", "out": "Out[3]", "variable": "made"}[kind],
        5000,
    )
    assert thing() is not None
    if kind == "exception":
        assert holder.locals[0][:2] == ("thing", "_failing")
        traceback.clear_frames(space["caught"].__traceback__)
    elif kind == "generator":
        next(space["batches"])
    else:
        space.clear()
    assert thing() is None


def test_what_can_be_explained_without_a_notebook(binary, tmp_path):
    text = "Traceback (most recent call last):\n  File \"<ipython-input-12-0a1b2c3d>\", line 3, in <module>\nRuntimeError: CUDA error: an illegal memory access was encountered\n"
    report = explain(text)
    assert isinstance(report, Report) and report.findings[0]["rule"] == "access/illegal-address"
    assert "cell [12], line 3" in str(report) == repr(report)
    (tmp_path / "log.txt").write_text(text)
    assert explain(tmp_path / "log.txt").findings == explain(str(tmp_path / "log.txt")).findings == report.findings
    snapshot = pickle.loads(lzma.decompress((RECORDINGS / "gpt_oom.pickle.xz").read_bytes()))
    assert explain(snapshot).findings[0]["cause"] == "own-limit"
    assert "nothing was" not in json.dumps(
        explain(lzma.decompress((RECORDINGS / "gpt_oom.pickle.xz").read_bytes())).content
    )
    for nothing, words in (
        (tmp_path / "none", "none"),
        ("no_such_file.txt", "no such file"),
        ("all is well, really", "no GPU"),
        (3, "int is nothing"),
    ):
        with pytest.raises(ValueError, match=words):
            explain(nothing)


def test_a_report_is_readable_where_the_program_has_gone(monkeypatch):
    report = explain("RuntimeError: CUDA error: an illegal memory access was encountered")
    monkeypatch.setattr("faultline.report.find_binary", lambda: "/no/such/program")
    words = Report(report.content).text
    assert (
        words.startswith("ERROR  access/illegal-address: A kernel touched an address")
        and "illegal-address" in Report(report.content)._repr_html_()
    )


def test_the_recorder_leaves_libraries_that_are_loaded_after_it_their_static_memory(binary):
    """A process has some 1.6 KB of it for all libraries that it loads while it runs; one that finds none left cannot be loaded."""
    library = (Path(binary).parent / "capture" / "libcuda.so.1").read_bytes()
    begin, size, count = struct.unpack_from("<Q14xHH", library, 32)
    headers = [struct.unpack_from("<I36xQ", library, begin + size * at) for at in range(count)]
    assert sum(bytes_in_memory for kind, bytes_in_memory in headers if kind == 7) <= 128  # PT_TLS


def test_importing_the_package_imports_nothing_else(binary):
    program = """
        import sys, faultline
        report, explain = faultline.Report, faultline.explain
        assert not {"IPython", "torch", "numpy", "jax"} & set(sys.modules), sys.modules.keys()
        for shell in (None, object()):
            try:
                faultline.load_ipython_extension(shell)
            except RuntimeError as problem:
                assert "IPython" in str(problem) and "faultline.explain" in str(problem)
            else:
                raise SystemExit("no sentence")
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        capture_output=True,
        text=True,
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(ROOT / "python"), "FAULTLINE": binary},
        check=False,
    )
    assert done.returncode == 0, done.stderr
