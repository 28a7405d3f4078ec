"""What `run` adds to every Python process: a program does not notice it, and what it leaves in the folder is right. No framework is needed here."""

import json
import os
import re
import shutil
import subprocess
import sys
import textwrap
import time

import pytest

from common import ROOT

OWN = (str(ROOT / "python/faultline") + os.sep, "<frozen faultline")  # how the paths of Faultline's own code begin
INJECTED = str(ROOT / "python/faultline/_inject")


class Ran:
    def __init__(self, process, folder):
        self.status, self.out, self.err = process.returncode, process.stdout, process.stderr
        self.files = sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []
        self.processes = [
            json.loads(path.read_text()) for path in sorted(folder.glob("process-*.json")) if path.is_file()
        ]
        self.notes = "".join(path.read_text() for path in sorted(folder.glob("notes-*.txt")))

    @property
    def process(self):
        assert len(self.processes) == 1, self.files
        return self.processes[0]


def environment(folder=None, options=None, **more):
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("FAULTLINE_", "PYTHONPATH"))}
    paths = [more.pop("PYTHONPATH", "")]
    if folder is not None:
        clean["FAULTLINE_RUN_FOLDER"] = str(folder)
        paths.insert(0, INJECTED)
    if options is not None:
        clean["FAULTLINE_RUN_OPTIONS"] = json.dumps(options)
    return {**clean, "PYTHONPATH": os.pathsep.join(path for path in paths if path), **more}


def run(where, program, *arguments, watched=True, folder=None, options=None, python=(sys.executable,), **more):
    script = where / "program.py"
    script.write_text(textwrap.dedent(program))
    left = folder or where / "left"
    if folder is None:
        left.mkdir(exist_ok=True)
    process = subprocess.run(
        [*python, str(script), *arguments],
        capture_output=True,
        text=True,
        cwd=where,
        env=environment(left if watched else None, options, **more),
    )
    return Ran(process, left)


def both(where, program, *arguments, **more):
    """With and without: the same output, byte for byte but for addresses, and the same status."""
    without = run(where, program, *arguments, watched=False, **more)
    ran = run(where, program, *arguments, **more)
    assert (ran.status, ran.out, _without_addresses(ran.err)) == (
        without.status,
        without.out,
        _without_addresses(without.err),
    )
    return ran


def _without_addresses(text):
    return re.sub("0x[0-9a-f]{6,}", "0x", text)


def framework(where, name, source="__version__ = '1.2.3'"):
    """A package that only bears a framework's name."""
    (where / name).mkdir()
    (where / name / "__init__.py").write_text(textwrap.dedent(source))


def test_a_process_without_a_framework_leaves_nothing(tmp_path):
    ran = both(
        tmp_path,
        """
        import json, sys, threading
        assert sys.excepthook is sys.__excepthook__ and "ctypes" not in sys.modules
        print("hello"); print("there", file=sys.stderr); sys.exit(7)
    """,
    )
    assert ran.status == 7 and ran.files == []


def test_nothing_heavy_is_imported_at_the_start(tmp_path):
    listing = "import sys; print(*sorted(sys.modules))"
    plain, watched = (
        set(
            subprocess.run(
                [sys.executable, "-c", listing], capture_output=True, text=True, env=environment(folder)
            ).stdout.split()
        )
        for folder in (None, tmp_path)
    )
    assert {name for name in watched - plain if not name.startswith("faultline")} <= {
        "atexit",
        "sitecustomize",
        "__future__",
        "time",
    }


def test_what_lies_beside_the_package_is_on_nobodys_path(tmp_path):
    package = tmp_path / "site-packages"
    shutil.copytree(ROOT / "python/faultline", package / "faultline", ignore=shutil.ignore_patterns("__pycache__"))
    (package / "another.py").write_text("")
    script = tmp_path / "program.py"
    script.write_text(
        "import sys\nfor entry in sys.path: print(entry)\ntry: import another\nexcept ImportError: print('not found')\n"
        "print(sys.modules['faultline'].__file__)"
    )
    left = tmp_path / "left"
    left.mkdir()
    variables = environment(left, PYTHONPATH="")
    variables["PYTHONPATH"] = str(package / "faultline/_inject")
    done = subprocess.run([sys.executable, script], env=variables, capture_output=True, text=True, check=True)
    assert str(package) not in done.stdout.splitlines() and "not found" in done.stdout
    assert done.stdout.splitlines()[-1] == str(package / "faultline/__init__.py")


def test_a_framework_leaves_what_is_known_of_the_process(tmp_path):
    framework(tmp_path, "cupy")
    before = time.time_ns()
    ran = both(tmp_path, "import cupy, sys; print(cupy.__version__, sys.argv[1:])", "one", "two")
    known = ran.process
    assert (
        known["argv"][-2:] == ["one", "two"]
        and known["frameworks"]["cupy"] == "1.2.3"
        and known["python"] == sys.version.split()[0]
    )
    assert (
        before < known["start_ns"] < known["end_ns"]
        and known["parent_pid"] == os.getpid()
        and known["exception"] is None
        and ran.files == [f"process-{known['pid']}.json"]
    )


def test_an_uncaught_exception_is_printed_as_ever_and_recorded_with_the_programs_own_line(tmp_path):
    framework(tmp_path, "cupy")
    ran = both(
        tmp_path,
        """
        import cupy, json
        def inner(text):
            return json.loads(text)
        def outer():
            try:
                inner("{")
            except ValueError as problem:
                raise RuntimeError("CUDA error: an illegal memory access was encountered") from problem
        outer()
    """,
    )
    found = ran.process["exception"]
    assert ran.status == 1 and ran.process["exit_status"] == 1
    assert (
        found["type"] == "RuntimeError"
        and found["kind"] == "device"
        and found["at"] == {"file": str(tmp_path / "program.py"), "line": 9, "function": "outer", "own": True}
    )
    assert [frame["function"] for frame in found["frames"]] == ["outer", "<module>"]


def test_the_programs_own_line_comes_before_the_librarys(tmp_path):
    framework(tmp_path, "cupy")
    found = run(tmp_path, "import cupy, json\njson.loads('{')\n").process["exception"]
    assert (
        found["at"]["file"].endswith("program.py")
        and found["at"]["line"] == 2
        and not found["frames"][0]["own"]
        and found["kind"] == ""
    )


def test_a_framework_that_lies_beside_the_program_is_not_the_program(tmp_path):
    framework(tmp_path, "cupy", "def fails():\n    raise RuntimeError('CUDA error: misaligned address')\n")
    found = run(tmp_path, "import cupy\ncupy.fails()\n").process["exception"]
    assert (
        found["at"]["line"] == 2
        and found["at"]["file"].endswith("program.py")
        and [frame["own"] for frame in found["frames"]] == [False, True]
    )


def test_an_exception_is_recorded_though_the_program_has_a_hook_of_its_own(tmp_path):
    framework(tmp_path, "cupy")
    ran = both(
        tmp_path,
        """
        import cupy, sys
        sys.excepthook = lambda kind, problem, traceback: print("mine", kind.__name__)
        raise KeyError("x")
    """,
    )
    assert ran.out == "mine KeyError\n" and ran.process["exception"]["type"] == "KeyError"


def test_a_hook_that_was_there_before_is_still_called(tmp_path):
    framework(tmp_path, "cupy")
    ran = both(
        tmp_path,
        """
        import sys
        sys.excepthook = lambda kind, problem, traceback: print("mine", kind.__name__)
        import cupy
        raise KeyError("x")
    """,
    )
    assert ran.out == "mine KeyError\n" and ran.process["exception"]["type"] == "KeyError"


def test_exceptions_of_threads_and_finalizers_are_printed_as_ever_and_recorded(tmp_path):
    framework(tmp_path, "cupy")
    ran = both(
        tmp_path,
        """
        import cupy, threading
        def work():
            raise RuntimeError("CUDA error: misaligned address")
        thread = threading.Thread(target=work, name="worker")
        thread.start()
        thread.join()
        class Buffer:
            def __del__(self):
                raise RuntimeError("CUDA driver error: unknown")
            def __repr__(self):
                return "<a buffer>"
        Buffer()
    """,
    )
    known = ran.process
    assert (
        ran.status == 0
        and known["exception"] is None
        and [(e["thread"], e["kind"]) for e in known["other_exceptions"]]
        == [("worker", "device"), ("a finalizer", "device")]
    )


@pytest.mark.parametrize(
    "ending, status",
    [
        ("sys.exit('gone')", 1),
        ("sys.exit(3)", 3),
        ("os._exit(4)", 4),
        ("os.kill(os.getpid(), 9)", -9),
        ("os.abort()", -6),
        ("raise KeyboardInterrupt", -2),
        ("[].x", 1),
    ],
)
def test_every_way_to_end_keeps_its_status_and_output(tmp_path, ending, status):
    framework(tmp_path, "cupy")
    ran = both(tmp_path, f"import cupy, os, sys\nprint('before', flush=True)\n{ending}\n")
    assert ran.status == status and ran.process["frameworks"]["cupy"] == "1.2.3"


def test_atexit_functions_of_the_program_run_before_ours(tmp_path):
    framework(tmp_path, "cupy")
    ran = both(
        tmp_path,
        """
        import atexit, glob, json, os
        atexit.register(lambda: print("last", json.load(open(glob.glob("left/process-*.json")[0]))["end_ns"] if os.environ.get("FAULTLINE_RUN_FOLDER") else None))
        import cupy
        atexit.register(lambda: print("first"))
    """,
    )
    assert ran.out == "first\nlast None\n" and ran.process["end_ns"]


def test_a_failed_import_looks_the_same_and_the_next_one_is_seen(tmp_path):
    framework(
        tmp_path,
        "cupy",
        """
        import os, warnings
        warnings.warn("from the import", stacklevel=2)
        if not os.path.exists("again"):
            raise ImportError("no libcudart") if os.environ.get("KIND") == "import" else ValueError("broken")
        __version__ = "2"
    """,
    )
    program = """
        import importlib.util, os, sys, traceback
        assert importlib.util.find_spec("cupy") is not None and "cupy" not in sys.modules
        def load():
            import cupy
            return cupy
        try:
            load()
        except Exception:
            traceback.print_exc()
        open("again", "w").close()
        print(load().__version__)
        os.unlink("again")
    """
    for kind in ("import", "value"):
        ran = both(tmp_path, program, KIND=kind)
        assert (
            "cupy/__init__.py" in ran.err
            and "program.py:5: UserWarning" in ran.err
            and not any(own in ran.err for own in OWN)
            and ran.processes[0]["frameworks"]["cupy"] == "2"
        )


def test_a_reload_and_an_import_in_threads_act_once(tmp_path):
    framework(tmp_path, "cupy", "import time; time.sleep(0.05); __version__ = '3'")
    ran = both(
        tmp_path,
        """
        import importlib, sys, threading
        threads = [threading.Thread(target=lambda: importlib.import_module("cupy")) for _ in range(8)]
        [t.start() for t in threads]
        [t.join() for t in threads]
        hook = sys.excepthook
        assert "exec_module" not in vars(sys.modules["cupy"].__spec__.loader)
        importlib.reload(sys.modules["cupy"])
        assert sys.excepthook is hook
    """,
    )
    assert ran.process["frameworks"]["cupy"] == "3"


def test_other_import_hooks_and_ours_do_not_call_each_other_for_ever(tmp_path):
    framework(tmp_path, "cupy")
    ran = both(
        tmp_path,
        """
        import importlib.abc, importlib.util, sys
        class Finder(importlib.abc.MetaPathFinder):
            busy = False
            def find_spec(self, name, path=None, target=None):
                if name != "cupy" or self.busy:
                    return None
                Finder.busy = True
                try:
                    return importlib.util.find_spec(name)
                finally:
                    Finder.busy = False
        sys.meta_path.append(Finder())
        sys.meta_path.insert(0, Finder())
        import cupy
        print(cupy.__version__)
    """,
    )
    assert ran.process["frameworks"]["cupy"] == "1.2.3"


def test_a_folder_that_cannot_be_written_changes_nothing(tmp_path):
    framework(tmp_path, "cupy")
    not_a_folder = tmp_path / "file"
    not_a_folder.write_text("")
    ran = both(tmp_path, "import cupy\nprint('fine')\nraise SystemExit(5)\n", folder=not_a_folder)
    assert ran.status == 5 and ran.out == "fine\n"


def test_a_file_that_cannot_be_written_is_noted(tmp_path):
    framework(tmp_path, "cupy")
    ran = both(
        tmp_path,
        """
        import os
        if "FAULTLINE_RUN_FOLDER" in os.environ:
            os.mkdir(f"left/process-{os.getpid()}.json")
        import cupy
    """,
    )
    assert ran.notes.count("could not be written") == 1


def test_the_users_own_sitecustomize_still_runs(tmp_path):
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "sitecustomize.py").write_text("import builtins\nbuiltins.mark = 'own'\n")
    ran = both(tmp_path, "print(mark)", PYTHONPATH=str(tmp_path / "own"))
    assert ran.out == "own\n"


@pytest.mark.parametrize("flag", ["-I", "-S", "-E"])
def test_an_interpreter_that_ignores_its_environment_runs_without_us(tmp_path, flag):
    ran = both(tmp_path, "print('fine')", python=(sys.executable, flag))
    assert ran.out == "fine\n" and ran.files == []


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_children_are_processes_of_their_own(tmp_path, method):
    framework(tmp_path, "cupy")
    ran = both(
        tmp_path,
        f"""
        import multiprocessing, os
        def work(number):
            import cupy
            return number * 2
        if __name__ == "__main__":
            with multiprocessing.get_context({method!r}).Pool(2) as pool:
                print(pool.map(work, range(6)))
    """,
    )
    assert (
        ran.out == "[0, 2, 4, 6, 8, 10]\n"
        and 1 <= len({known["pid"] for known in ran.processes}) == len(ran.processes) <= 2
        and ran.notes == ""
    )


def test_a_forked_child_that_ends_as_python_does_writes_of_itself_alone(tmp_path):
    framework(tmp_path, "cupy")
    ran = both(
        tmp_path,
        """
        import cupy, os, sys
        child = os.fork()
        if child == 0:
            sys.exit(3)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    """,
    )
    assert ran.out == "3\n" and len(ran.processes) == 2
    parent, child = sorted(ran.processes, key=lambda known: known["start_ns"])
    assert child["parent_pid"] == parent["pid"] and child["start_ns"] > parent["start_ns"]


def test_buffers_are_asked_for_before_the_import_and_only_where_the_user_has_not_chosen(tmp_path):
    framework(tmp_path, "jax", "import os; seen = {k: v for k, v in os.environ.items() if k.startswith('XLA_')}")
    program = "import os\nos.environ.setdefault('XLA_PYTHON_CLIENT_ALLOCATOR', 'bfc')\nimport jax\nprint(jax.seen)\n"
    ran = run(tmp_path, program, options={"buffers": True})
    assert (
        ran.out == "{'XLA_PYTHON_CLIENT_ALLOCATOR': 'bfc', 'XLA_PYTHON_CLIENT_PREALLOCATE': 'false'}\n"
        and "XLA_PYTHON_CLIENT_PREALLOCATE=false was set for jax" in ran.notes
    )
    assert "XLA_PYTHON_CLIENT_PREALLOCATE" not in run(tmp_path, program, options={"buffers": False}).out


def test_options_that_are_not_understood_are_noted(tmp_path):
    framework(tmp_path, "cupy")
    ran = run(tmp_path, "import cupy", FAULTLINE_RUN_OPTIONS="{")
    assert ran.status == 0 and "FAULTLINE_RUN_OPTIONS is not understood" in ran.notes


def test_an_exception_that_a_test_runner_kept_did_not_end_the_program(tmp_path):
    framework(tmp_path, "cupy")
    ran = both(
        tmp_path,
        """
        import cupy, sys
        def test():
            raise AssertionError("caught")
        def runner():
            try:
                test()
            except AssertionError as problem:
                sys.last_value = problem
        runner()
    """,
    )
    assert ran.status == 0 and ran.process["exception"] is None


def test_a_wrapped_function_is_not_in_tracebacks(tmp_path):
    program = f"""
        import sys, traceback, warnings
        sys.path.insert(0, {str(ROOT / "python")!r})
        from faultline.run.around import around, strip
        calls = []
        def fails(text, more=1):
            try:
                [][len(text)]
            except IndexError as problem:
                raise ValueError(text) from problem
        if sys.argv[1:] == ["wrapped"]:
            fails = around(fails, lambda *args, **kwargs: calls.append("before"), lambda: calls.append("after"))
        def caller():
            fails("one", more=2)
        for _ in range(2):
            try:
                caller()
            except ValueError as problem:
                if sys.version_info < (3, 11):
                    strip(problem)
                traceback.print_exc()
        assert calls == ["before", "after"] * 2 * len(sys.argv[1:])
    """
    plain, wrapped = run(tmp_path, program, watched=False), run(tmp_path, program, "wrapped", watched=False)
    assert plain.status == wrapped.status == 0, wrapped.err
    assert plain.err == wrapped.err and plain.err.count("ValueError: one") == 2


def _raised(name, base, text):
    return type(name, (base,), {})(text)


@pytest.mark.parametrize(
    "problem, kind",
    [
        (_raised("OutOfMemoryError", RuntimeError, "CUDA out of memory. Tried to allocate 2.00 GiB."), "memory"),
        (_raised("OutOfMemoryError", MemoryError, "Out of memory allocating 1,024 bytes"), "memory"),
        (
            _raised(
                "XlaRuntimeError",
                RuntimeError,
                "RESOURCE_EXHAUSTED: Out of memory while trying to allocate 6291456 bytes.",
            ),
            "memory",
        ),
        (_raised("ResourceExhaustedError", Exception, "OOM when allocating tensor with shape[1]"), "memory"),
        (_raised("AcceleratorError", RuntimeError, "CUDA error: device-side assert triggered"), "device"),
        (_raised("XlaRuntimeError", RuntimeError, "INTERNAL: CUDA_ERROR_ILLEGAL_ADDRESS"), "device"),
        (_raised("CUDADriverError", RuntimeError, "CUDA_ERROR_MISALIGNED_ADDRESS: misaligned address"), "device"),
        (RuntimeError("Triton Error [CUDA]: an illegal memory access was encountered"), "device"),
        (RuntimeError("CUBLAS_STATUS_EXECUTION_FAILED when calling cublasSgemm"), "device"),
        (RuntimeError("mat1 and mat2 shapes cannot be multiplied"), ""),
        (MemoryError(), ""),
        (ImportError("libcudart.so: CUDA error"), ""),
        (KeyboardInterrupt(), ""),
    ],
)
def test_errors_of_the_gpu_are_told_from_others(problem, kind):
    sys.path.insert(0, str(ROOT / "python"))
    from faultline.run.exceptions import kind_of

    assert kind_of(problem) == kind


def test_what_may_be_large_leaves_the_program_its_part_of_the_disk(tmp_path):
    sys.path.insert(0, str(ROOT / "python"))
    from faultline.run.process import Process, room_in

    process = Process(str(tmp_path), 0)
    disk = os.statvfs(tmp_path)
    assert room_in(tmp_path) == disk.f_bavail * disk.f_frsize - min(2 << 30, disk.f_blocks * disk.f_frsize // 20)

    class Vast(bytes):  # says that it is as large as what is free, so that no disk needs to be filled
        def __len__(self):
            return os.statvfs(tmp_path).f_bavail * disk.f_frsize

    assert process.save("small", lambda file: file.write(b"x" * 1000), may_be_large=True)
    assert not process.save("large", lambda file: file.write(Vast()), may_be_large=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == [f"notes-{os.getpid()}.txt", "small"]
    assert (
        "large could not be written (OSError: the rest of the disk is left to the program)"
        in (tmp_path / f"notes-{os.getpid()}.txt").read_text()
    )
