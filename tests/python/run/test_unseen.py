"""What was not seen is said: how a program ended, what of it was not recorded, and what the virtual GPU could not do. None of it is called clean."""

import json
import os
import shlex
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from common import FAULTLINE, PROGRAMS, RECORDINGS

BUILD = PROGRAMS.parent
SUMMARY = "SUMMARY: nothing found in what was seen, which is not all"
CLEAN = ("Nothing wrong was found", "SUMMARY: clean")


def run(tmp_path, *command, gpu=("--gpu", "virtual:1GiB"), options=(), **more):
    folder = tmp_path / "run"
    done = subprocess.run(
        [FAULTLINE, "run", *gpu, "-o", str(folder), *options, "--", *map(str, command)],
        capture_output=True,
        text=True,
        **more,
    )
    report = json.loads((folder / "report.json").read_text()) if (folder / "report.json").exists() else None
    return done, report, folder


def is_called_clean(text):
    return any(words in text for words in CLEAN)


def not_judged(report, rule):
    return [item["why"] for item in report["not_judged"] if item["rule"] == rule]


ENDINGS = {
    "11": (-11, "was killed by signal 11 (SIGSEGV)"),
    "9": (-9, "was killed by signal 9 (SIGKILL)"),
    "15": (-15, "was killed by signal 15 (SIGTERM)"),
    "7": (-7, "was killed by signal 7 (SIGBUS)"),
    "abort": (-6, "was killed by signal 6 (SIGABRT)"),
    "throw": (-6, "was killed by signal 6 (SIGABRT)"),
    "status": (3, "ended with status 3;"),
    "_exit": (0, "ended without exit(), by _exit()"),
}


@pytest.mark.parametrize("how", ENDINGS)
def test_a_program_that_did_not_end_well_is_not_called_clean(tmp_path, how):
    status, words = ENDINGS[how]
    done, report, folder = run(tmp_path, PROGRAMS / "ends", how)
    assert done.returncode == status
    assert any(words in sentence for sentence in report["input"]["unseen"]), report["input"]
    assert (
        SUMMARY in done.stderr
        and words.rstrip(";") in " ".join(done.stderr.split())
        and not is_called_clean(done.stderr)
    )
    held = [why for why in not_judged(report, "memory/leak") if "did not come to exit()" in why]
    assert bool(held) == (how != "status"), report["not_judged"]
    again = subprocess.run([FAULTLINE, "explain", str(folder)], capture_output=True, text=True)
    assert SUMMARY in again.stdout and not is_called_clean(again.stdout)


def test_the_same_program_that_ends_well_is_called_clean(tmp_path):
    done, report, _ = run(tmp_path, PROGRAMS / "ends")
    assert done.returncode == 0 and "unseen" not in report["input"]
    assert all(words in done.stderr for words in CLEAN) and not not_judged(report, "memory/leak")


def test_a_shells_status_for_a_signal_is_told_as_that(tmp_path):
    done, report, _ = run(tmp_path, "sh", "-c", f"{shlex.quote(str(PROGRAMS / 'ends'))} 11; exit 139")
    assert done.returncode == 139
    assert any(
        "ended with status 139, which a shell gives for a program that signal 11 (SIGSEGV) ended" in sentence
        for sentence in report["input"]["unseen"]
    )


def test_an_exception_that_ended_a_python_program_is_told(tmp_path):
    (tmp_path / "cupy").mkdir()
    (tmp_path / "cupy" / "__init__.py").write_text("__version__ = '1'\n")
    script = tmp_path / "program.py"
    script.write_text(
        textwrap.dedent("""
        import ctypes, cupy
        cuda, context = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p()
        assert cuda.cuInit(0) == 0 and cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0 and cuda.cuCtxSetCurrent(context) == 0
        memory = ctypes.c_uint64()
        assert cuda.cuMemAlloc_v2(ctypes.byref(memory), ctypes.c_size_t(1 << 20)) == 0 and cuda.cuMemFree_v2(memory) == 0
        raise ValueError("a label is missing")
    """)
    )
    done, report, _ = run(tmp_path, sys.executable, script, cwd=tmp_path)
    assert done.returncode == 1
    assert any(
        "ended with status 1, by an exception that nobody caught (ValueError: a label is missing)" in sentence
        for sentence in report["input"]["unseen"]
    ), report["input"]
    assert not is_called_clean(done.stderr)


@pytest.mark.parametrize("more", [(), ("allocate",)], ids=["calls", "all"])
def test_a_recording_that_ended_early_is_not_called_clean(tmp_path, more):
    done, report, _ = run(tmp_path, PROGRAMS / "many_calls", "300000", "1", *more, options=("--keep", "1MiB"))
    assert done.returncode == 0, done.stderr
    unseen = report["input"]["unseen"]
    assert len(unseen) == 1 and ("ended before it did" if more else "are not recorded from a moment on") in unseen[0], (
        unseen
    )
    assert "--keep" in unseen[0] and not is_called_clean(done.stderr)


def test_a_folder_whose_run_nobody_saw_end_is_not_called_clean(tmp_path):
    _, report, folder = run(tmp_path, PROGRAMS / "ends", "9")
    (folder / "command.json").write_text("{}\n")  # as run leaves it when it is killed along with its program
    (folder / "report.json").unlink()
    again = subprocess.run([FAULTLINE, "explain", str(folder)], capture_output=True, text=True)
    assert "its recording stops without an end" in " ".join(again.stdout.split()) and not is_called_clean(again.stdout)


def test_a_damaged_recording_is_not_called_clean(tmp_path):
    _, _, folder = run(tmp_path, PROGRAMS / "all_well")
    trace = next(folder.glob("process-*.faultline"))
    whole = subprocess.run([FAULTLINE, "explain", str(trace)], capture_output=True, text=True)
    assert "could not be read" not in whole.stdout
    content = bytearray(trace.read_bytes())
    middle = content.index(b"all_well")
    content[middle - 200 : middle + 400] = b"\xff" * 600
    damaged = tmp_path / "damaged.faultline"
    damaged.write_bytes(content)
    told = subprocess.run([FAULTLINE, "explain", str(damaged)], capture_output=True, text=True)
    assert "Not all of the recording could be read" in told.stdout and not is_called_clean(told.stdout)


@pytest.mark.parametrize(
    "what, calls, why",
    [
        ("tables", "cuGetExportTable (once)", "Programs on the CUDA runtime do not run on it"),
        ("arrays", "cuArrayCreate", "lacks what docs/virtual-gpu.md lists"),
    ],
)
def test_what_the_virtual_gpu_refused_is_said_and_never_clean(tmp_path, what, calls, why):
    done, report, _ = run(tmp_path, PROGRAMS / "lacks_kernels", what)
    assert done.returncode == 0, done.stderr
    told = " ".join(report["input"]["unseen"])
    assert calls in told and why in told and "run it without --gpu" in told
    assert SUMMARY in done.stderr and not is_called_clean(done.stderr)


def test_what_the_virtual_gpu_did_is_clean(tmp_path):
    done, report, _ = run(tmp_path, PROGRAMS / "lacks_kernels")
    assert "unseen" not in report["input"] and all(words in done.stderr for words in CLEAN)


DRIVER_RULES = {
    "access/illegal-address",
    "access/out-of-bounds",
    "access/use-after-free",
    "access/uninitialized",
    "access/misaligned",
    "tensor/index-out-of-range",
    "api/launch-error",
    "api/bad-free",
    "api/bad-copy",
}


@pytest.mark.parametrize("name", ["train_clean", "leak_list", "oom_fragmented", "state_only"])
def test_a_snapshot_does_not_judge_what_it_cannot_show(name):
    report = json.loads(
        subprocess.run(
            [FAULTLINE, "explain", str(RECORDINGS / f"{name}.pickle.xz"), "--format", "json"],
            capture_output=True,
            text=True,
        ).stdout
    )
    assert DRIVER_RULES <= {item["rule"] for item in report["not_judged"]}
    assert all("faultline run" in why for rule in DRIVER_RULES for why in not_judged(report, rule))


def test_a_run_judges_copies_and_frees_and_says_that_accesses_are_not_checked(tmp_path):
    _, report, _ = run(tmp_path, PROGRAMS / "all_well")
    unjudged = {item["rule"] for item in report["not_judged"]}
    assert {"access/out-of-bounds", "access/use-after-free", "access/uninitialized"} <= unjudged
    assert not unjudged & {"api/bad-copy", "api/bad-free", "access/illegal-address", "api/launch-error"}


@pytest.mark.parametrize("how", ["destroy", "reset", "release"])
def test_memory_that_ended_with_its_context_is_not_taken_for_what_lies_there_now(tmp_path, how):
    done, report, _ = run(tmp_path, PROGRAMS / "contexts", *how.split())
    assert done.returncode == 0, done.stderr
    assert [finding for finding in report["findings"] if finding["severity"] != "note"] == []


def test_a_release_that_is_not_the_last_ends_nothing(tmp_path):
    _, report, _ = run(tmp_path, PROGRAMS / "contexts", "release", "stays")
    kept = [(finding["rule"], finding["bytes"]) for finding in report["findings"] if finding["severity"] != "note"]
    assert sorted(kept) == [("memory/leak", 4 * 4096), ("memory/leak", 4 * 16 << 21)]  # pinned, and the device's


@pytest.mark.parametrize("how", ["destroy", "reset", "release"])
def test_a_copy_that_is_too_long_is_found_in_the_next_context_too(tmp_path, how):
    done, report, _ = run(tmp_path, PROGRAMS / "contexts", how, "overrun")
    copies = [finding for finding in report["findings"] if finding["rule"] == "api/bad-copy"]
    assert len(copies) == 1 and copies[0]["evidence"]["too_many_bytes"] == 4096, report["findings"]
    assert "an allocation of 32.00 MiB" in copies[0]["message"]


@pytest.fixture
def driver_folder(tmp_path):
    """A machine's own driver, played by the virtual one."""
    folder = tmp_path / "driver"
    folder.mkdir()
    (folder / "libcuda.so.1").symlink_to(BUILD / "vgpu" / "libfaultline_vgpu.so")
    (folder / "libcuda.so").symlink_to("libcuda.so.1")
    return folder


@pytest.mark.parametrize(
    "name", ["libcuda.so.1", "libcuda.so", "{}/libcuda.so.1", "{}/libcuda.so", "{}/../driver/libcuda.so.1"]
)
def test_the_driver_is_recorded_under_whatever_name_it_is_opened(tmp_path, driver_folder, name):
    done, report, _ = run(
        tmp_path,
        PROGRAMS / "opens_driver",
        name.format(driver_folder),
        gpu=(),
        env={**os.environ, "LD_LIBRARY_PATH": str(driver_folder)},
    )
    assert done.returncode == 0, (done.stdout, done.stderr)
    assert report is not None, done.stderr
    left = [finding for finding in report["findings"] if finding["rule"] == "memory/leak"]
    assert len(left) == 1 and left[0]["bytes"] == 7 << 20, report["findings"]


@pytest.mark.parametrize(
    "name", ["libcuda.so", "/usr/lib/x86_64-linux-gnu/libcuda.so.1", "/nowhere/libcuda.so.580.65.06"]
)
def test_a_virtual_gpu_brings_its_driver_under_every_name(tmp_path, name):
    done, report, _ = run(tmp_path, PROGRAMS / "opens_driver", name)
    assert done.returncode == 0, (done.stdout, done.stderr)
    assert report["input"]["events"] >= 7


@pytest.mark.parametrize("name", ["/nowhere/libcuda.so.1", "libcuda.so.999", "libcudart.so.999", "/nowhere/libm.so.6"])
def test_a_name_that_is_not_there_is_not_there_with_us(tmp_path, driver_folder, name):
    alone = subprocess.run(
        [PROGRAMS / "opens_driver", name],
        capture_output=True,
        text=True,
        env={**os.environ, "LD_LIBRARY_PATH": str(driver_folder)},
    )
    done, report, _ = run(
        tmp_path, PROGRAMS / "opens_driver", name, gpu=(), env={**os.environ, "LD_LIBRARY_PATH": str(driver_folder)}
    )
    assert alone.returncode == done.returncode == 5 and alone.stdout == done.stdout == "- told why\n"
    assert "no call to the CUDA driver was seen" in done.stderr and "did not use CUDA" not in done.stderr


def test_a_library_beside_its_caller_is_still_found(tmp_path):
    """The loader looks beside the caller (RUNPATH), so it must see who calls."""
    (tmp_path / "lib").mkdir()
    (tmp_path / "beside.c").write_text("int beside(void) { return 42; }\n")
    (tmp_path / "caller.c").write_text(
        '#include <dlfcn.h>\nint call(void) { void *l = dlopen("libbeside.so", RTLD_NOW); return l ? ((int (*)(void))dlsym(l, "beside"))() : 1; }\n'
    )
    (tmp_path / "main.c").write_text("int call(void);\nint main(void) { return call(); }\n")

    def gcc(*words):
        subprocess.run(["gcc", *words], check=True, cwd=tmp_path)

    gcc("-shared", "-fPIC", "-o", "lib/libbeside.so", "beside.c")
    gcc(
        "-shared", "-fPIC", "-o", "lib/libcaller.so", "caller.c", "-Wl,-rpath,$ORIGIN", "-Wl,--enable-new-dtags", "-ldl"
    )
    gcc("-o", "main", "main.c", "-Llib", "-lcaller", f"-Wl,-rpath,{tmp_path}/lib")
    done, _, _ = run(tmp_path, tmp_path / "main")
    assert done.returncode == 42, done.stderr


@pytest.mark.parametrize(
    "program, status, words",
    [
        ("/nonexistent", 127, "was not found"),
        ("./no-such-program", 127, "was not found"),
        ("no-such-program-on-the-path", 127, "was not found"),
        ("/etc/passwd", 126, "is not executable"),
        ("/tmp", 126, "is not executable"),
    ],
)
def test_what_cannot_be_started_ends_with_a_shells_status(tmp_path, program, status, words):
    done, report, folder = run(tmp_path, program, cwd=tmp_path)
    assert subprocess.run(["sh", "-c", program], capture_output=True, cwd=tmp_path).returncode == status
    assert done.returncode == status and words in done.stderr and report is None


@pytest.mark.parametrize("name", ["SIGPIPE", "SIGURG", "SIGXFSZ", "SIGUSR1"])
def test_a_signal_sent_to_faultline_alone_reaches_the_program(tmp_path, name):
    script = f"import signal, sys, time\nsignal.signal(signal.{name}, lambda *_: (print('told', flush=True), sys.exit(9)))\nprint('ready', flush=True)\ntime.sleep(1000)\n"
    process = subprocess.Popen(
        [FAULTLINE, "run", "--gpu", "virtual", "-o", str(tmp_path / "run"), "--", sys.executable, "-c", script],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline() == "ready\n"
    process.send_signal(getattr(signal, name))
    out, errors = process.communicate(timeout=600)
    assert (process.returncode, out) == (9, "told\n"), errors


KEPT = {  # what is still there at the end, in MiB
    "pinned": 5,
    "mapped": 6,
    "mapped-half": 4,
    "context": 5,
    "capture-kept": 5,
    "gone-kept": 5,
    "nothing": 0,
    "pinned-freed": 0,
    "registered": 0,
    "mapped-freed": 0,
    "fills-mapped": 0,
    "capture-freed": 0,
    "gone-freed": 0,
}


@pytest.mark.parametrize("what", KEPT)
def test_memory_of_every_kind_is_told_where_it_is_kept_and_only_there(tmp_path, what):
    done, report, _ = run(tmp_path, PROGRAMS / "takes", what)
    assert done.returncode == 0, (done.stdout, done.stderr)
    assert [(finding["rule"], finding["bytes"]) for finding in report["findings"]] == (
        [("memory/leak", KEPT[what] << 20)] if KEPT[what] else []
    )
    assert "unseen" not in report["input"] and "SUMMARY: clean" in done.stderr
    assert (
        not not_judged(report, "memory/leak")
        and "only a state" not in done.stderr
        and "without its history" not in done.stderr
    )
    assert not any(
        times for name, times in report["input"]["lost"].items() if name == "capture.frees_of_unknown_memory"
    ), report["input"]["lost"]
    if KEPT[what]:
        assert ("still held when the program ended" in report["findings"][0]["message"]) == (what != "context")
        assert report["findings"][0]["location"]["file"].endswith(("takes.cpp", "driver_program.h"))


def test_a_program_that_took_nothing_is_told_so(tmp_path):
    done, report, folder = run(tmp_path, PROGRAMS / "takes", "nothing")
    assert report["input"]["events"] == 0
    trace = subprocess.run(
        [FAULTLINE, "explain", str(next(folder.glob("process-*.faultline")))], capture_output=True, text=True
    )
    for told in (done.stderr, trace.stdout):
        assert "took no GPU memory" in told and "SUMMARY: clean" in told and "state and no history" not in told


def test_a_fill_beyond_what_is_mapped_is_told_as_that(tmp_path):
    _, report, _ = run(tmp_path, PROGRAMS / "takes", "fills-beyond")
    (finding,) = report["findings"]
    assert finding["rule"] == "api/bad-copy" and "begins in memory that is there and ends" in finding["message"]


@pytest.mark.parametrize("how", ["status", "signal"])
def test_the_last_call_that_was_refused_is_named_where_nothing_else_explains_the_end(tmp_path, how):
    program = f"{shlex.quote(str(PROGRAMS / 'takes'))} refused 4" + ("; kill -SEGV $$" if how == "signal" else "")
    done, report, _ = run(tmp_path, "sh", "-c", program)
    told = report["input"]["unseen"][0]
    assert (
        "no finding explains it. The last call that the driver refused was cuMemAlloc" in told
        and "CUDA_ERROR_INVALID_VALUE, at takes.cpp:" in told
    ), told
    assert ("signal 11" in told) == (how == "signal") and not is_called_clean(done.stderr)


def test_a_signal_is_told_beside_an_error_that_was_found(tmp_path):
    program = f"{shlex.quote(str(PROGRAMS / 'takes'))} fills-beyond; kill -SEGV $$"
    _, report, _ = run(tmp_path, "sh", "-c", program)
    assert [finding["rule"] for finding in report["findings"]] == ["api/bad-copy"]
    assert any("was killed by signal 11 (SIGSEGV)" in sentence for sentence in report["input"]["unseen"])


@pytest.mark.parametrize(
    "status, words", [(0, None), (7, "ended with status 7;"), (139, "ended with status 139, which a shell gives")]
)
def test_a_process_that_ended_badly_is_told_though_the_command_went_well(tmp_path, status, words):
    done, report, _ = run(
        tmp_path,
        "sh",
        "-c",
        f"{shlex.quote(str(PROGRAMS / 'takes'))} pinned-freed {status}; {shlex.quote(str(PROGRAMS / 'takes'))} pinned-freed; exit 0",
    )
    assert done.returncode == 0 and len(report["input"]["parts"]) == 2
    told = report["input"].get("unseen", [])
    assert len(told) == (1 if words else 0) and all(
        sentence.startswith("Process ") and words in sentence for sentence in told
    ), told
    assert is_called_clean(done.stderr) == (words is None)


def test_a_trace_that_may_not_grow_is_told_as_cut_short(tmp_path):
    folder = tmp_path / "run"
    command = f"ulimit -f 8; exec {shlex.quote(FAULTLINE)} run --gpu virtual:1GiB -o {shlex.quote(str(folder))} -- {shlex.quote(str(PROGRAMS / 'ends'))}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    again = subprocess.run([FAULTLINE, "explain", str(folder), "--format", "json"], capture_output=True, text=True)
    unseen = json.loads(again.stdout)["input"]["unseen"]
    assert len(unseen) == 1 and "ended before it did, the trace cannot be written: File too large" in unseen[0], unseen
    assert "without exit()" not in done.stderr and not is_called_clean(done.stderr)


def test_the_first_allocation_of_a_python_program_has_its_line(tmp_path):
    """Not one of the interpreter's own, which may have debug information."""
    script = tmp_path / "program.py"
    script.write_text(
        textwrap.dedent("""
        import ctypes
        cuda, context, memory = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p(), ctypes.c_uint64()
        def take():
            assert cuda.cuMemAlloc_v2(ctypes.byref(memory), ctypes.c_size_t(1 << 20)) == 0
        assert cuda.cuInit(0) == 0 and cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0 and cuda.cuCtxSetCurrent(context) == 0
        take()
    """)
    )
    _, report, _ = run(tmp_path, sys.executable, script)
    (finding,) = report["findings"]
    assert (Path(finding["location"]["file"]).name, finding["location"]["line"]) == ("program.py", 5), finding[
        "location"
    ]


@pytest.mark.parametrize("program", ["ends", "all_well"])
def test_a_recording_cut_at_any_byte_is_refused_or_said_to_be_cut(tmp_path, program):
    _, _, folder = run(tmp_path, PROGRAMS / program)
    content = next(folder.glob("process-*.faultline")).read_bytes()
    used = len(content.rstrip(b"\0"))
    cut = tmp_path / "cut.faultline"
    for at in sorted({*range(8, used, max(1, used // 24)), used - 1, used - 2}):
        cut.write_bytes(content[:at])
        told = subprocess.run([FAULTLINE, "explain", str(cut)], capture_output=True, text=True)
        assert told.returncode in (0, 1, 2) and not is_called_clean(told.stdout), (at, used, told.stdout)


def test_a_process_that_runs_on_after_its_command_is_told_as_that(tmp_path):
    script = tmp_path / "runs_on.py"
    script.write_text(
        textwrap.dedent("""
        import ctypes, pathlib, sys, time
        cuda, context, memory = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p(), ctypes.c_uint64()
        assert cuda.cuInit(0) == 0 and cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0 and cuda.cuCtxSetCurrent(context) == 0
        assert cuda.cuMemAlloc_v2(ctypes.byref(memory), ctypes.c_size_t(1 << 20)) == 0
        pathlib.Path(sys.argv[1]).touch()
        while pathlib.Path(sys.argv[1]).exists(): time.sleep(0.05)
    """)
    )
    mark = tmp_path / "mark"
    done, report, _ = run(
        tmp_path,
        "sh",
        "-c",
        f"{shlex.quote(sys.executable)} {shlex.quote(str(script))} {mark} >/dev/null 2>&1 & "
        f"while [ ! -e {mark} ]; do sleep 0.1; done",
    )
    mark.unlink()
    assert done.returncode == 0
    (told,) = report["input"]["unseen"]
    assert "ended before it did" in told and "the command had ended" in told and "without exit()" not in told, told


@pytest.mark.parametrize("what, kept", [("pool", 5 << 20), ("pool-freed", 0), ("graph", 0), ("graph-freed", 0)])
def test_memory_that_a_graph_will_take_is_not_taken_yet(tmp_path, what, kept):
    """The virtual driver does not put allocations into graphs; one that does stands before it here."""
    folder = tmp_path / "driver"
    folder.mkdir()
    (folder / "pool.c").write_text(
        "int cuMemAllocAsync(unsigned long long *p, unsigned long n, void *s) { *p = 0x7abc00000000; return 0; }\n"
        "int cuMemFreeAsync(unsigned long long p, void *s) { return 0; }\n"
    )
    vgpu = BUILD / "vgpu" / "libfaultline_vgpu.so"
    subprocess.run(
        [
            "gcc",
            "-shared",
            "-fPIC",
            "-o",
            folder / "libcuda.so.1",
            folder / "pool.c",
            "-Wl,--no-as-needed",
            vgpu,
            f"-Wl,-rpath,{vgpu.parent}",
        ],
        check=True,
    )
    done, report, _ = run(
        tmp_path, PROGRAMS / "takes", what, gpu=(), env={**os.environ, "LD_LIBRARY_PATH": str(folder)}
    )
    assert done.returncode == 0 and report is not None, (done.stdout, done.stderr)
    assert [finding["bytes"] for finding in report["findings"] if finding["rule"] == "memory/leak"] == (
        [kept] if kept else []
    ), report["findings"]
    assert not report["input"]["lost"].get("capture.frees_of_unknown_memory"), report["input"]["lost"]


@pytest.mark.parametrize("where, line", [("site-packages", ("main.c", 3)), ("own", ("give.c", 1))])
def test_a_line_of_an_installed_library_is_not_taken_for_the_users(tmp_path, where, line):
    """It may come with debug information: the line that calls it is the one to change. A library of the program's own is the program's."""
    folder = tmp_path / where
    folder.mkdir()
    (tmp_path / "give.c").write_text(
        "int cuMemFree_v2(unsigned long long); int give(void) { int refused = cuMemFree_v2(4096); return !refused; }\n"
    )
    (tmp_path / "main.c").write_text(
        "int give(void), cuInit(unsigned), cuDevicePrimaryCtxRetain(void **, int), cuCtxSetCurrent(void *);\n"
        "int main(void) { void *c; if (cuInit(0) || cuDevicePrimaryCtxRetain(&c, 0) || cuCtxSetCurrent(c)) return 9;\n  int failed = give();\n  return failed; }\n"
    )
    driver = BUILD / "capture" / "libcuda.so.1"
    subprocess.run(
        ["gcc", "-g", "-shared", "-fPIC", "-o", folder / "libgive.so", "give.c", driver], check=True, cwd=tmp_path
    )
    subprocess.run(
        ["gcc", "-g", "-o", "main", "main.c", "-L", folder, "-lgive", driver, f"-Wl,-rpath,{folder}"],
        check=True,
        cwd=tmp_path,
    )
    done, report, _ = run(tmp_path, tmp_path / "main")
    assert done.returncode == 0, done.stderr
    (finding,) = report["findings"]
    assert (Path(finding["location"]["file"]).name, finding["location"]["line"]) == line, finding["location"]


# Maps a file of the driver's name for a moment, as a program does that uses it.
USES_DRIVER = "import mmap, sys, time; f = open(sys.argv[1], 'rb'); m = mmap.mmap(f.fileno(), 0, prot=1); time.sleep(4)"


@pytest.mark.parametrize("start, is_named", [("env -i", True), ("exec env -i", True), ("", False)])
def test_a_process_without_the_recorder_is_named(tmp_path, start, is_named):
    driver = tmp_path / "libcuda.so.1"
    driver.write_bytes(b"x" * 4096)
    words = [shlex.quote(str(word)) for word in (sys.executable, "-S", "-c", USES_DRIVER, driver)]
    command = f"{shlex.quote(str(PROGRAMS / 'ends'))}; {start} {' '.join(words)}"
    done, report, folder = run(tmp_path, "sh", "-c", command)
    named = [s for s in report["input"].get("unseen", []) if "used the CUDA driver and was not recorded" in s]
    assert bool(named) == is_named and is_called_clean(done.stderr) != is_named, (report["input"], done.stderr)
    assert bool(json.loads((folder / "command.json").read_text()).get("unrecorded")) == is_named
