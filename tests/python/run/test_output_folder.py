"""-o DIR: what is there already is not used, and nothing that Faultline did not write is removed or replaced."""

import json
import os
import shlex
import signal
import stat
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from common import FAULTLINE, PROGRAMS

DEMO = str(Path(__file__).parents[3] / "python" / "faultline" / "demo" / "gpt_oom.pack.zip")
MARK = "made-by-faultline.json"
DOUBLE_FREE = shlex.quote(str(PROGRAMS / "double_free"))
IS_ROOT = os.geteuid() == 0


def run(verb, *options, cwd, command=("true",), **more):
    gpu = ["--gpu", "virtual:1GiB"] if verb == "run" else []
    return subprocess.run(
        [FAULTLINE, verb, *gpu, *options, "--", *map(str, command)],
        capture_output=True,
        text=True,
        timeout=600,
        cwd=cwd,
        **more,
    )


def tree(folder):
    """All below it: kind, mode, content, inode."""
    found = {}
    for path in sorted(folder.rglob("*")):
        status = path.lstat()
        content = (
            os.readlink(path)
            if stat.S_ISLNK(status.st_mode)
            else path.read_bytes()
            if stat.S_ISREG(status.st_mode)
            else None
        )
        found[str(path.relative_to(folder))] = (oct(status.st_mode), status.st_ino, content)
    return found


def fill(folder):
    (folder / "best.pt").write_text("weights")
    (folder / "aside").mkdir()
    (folder / "aside" / "x").write_text("mine")
    for name in ("process-1.json", "command.json", "report.json", "plan.json", "page.html.part", "log.txt", MARK):
        (folder / name).write_text("mine")


def with_mode(mode):
    def make(here):
        (here / "d").mkdir()
        fill(here / "d")
        (here / "d").chmod(mode)
        return "d"

    return make


def empty(here):
    (here / "d").mkdir(mode=0o700)
    return "d"


def link_to_folder(here):
    (here / "real").mkdir(mode=0o700)
    (here / "link").symlink_to("real")
    return "link"


def link_to_nothing(here):
    (here / "link").symlink_to("nothing")
    return "link"


def plain_file(here):
    (here / "f").write_text("mine")
    return "f"


def pipe(here):
    os.mkfifo(here / "p")
    return "p"


def here_itself(here):
    fill(here)
    return "."


EXISTING = {
    "0700": with_mode(0o700),
    "0755": with_mode(0o755),
    "0777": with_mode(0o777),
    "0500": with_mode(0o500),
    "empty": empty,
    "link": link_to_folder,
    "link/": lambda here: link_to_folder(here) + "/",
    "dangling link": link_to_nothing,
    "file": plain_file,
    "fifo": pipe,
    ".": here_itself,
    "./": lambda here: here_itself(here) + "/",
    "..": lambda here: "..",
    "/": lambda here: "/",
    "//": lambda here: "//",
    "home": lambda here: os.path.expanduser("~"),
    "mount point": lambda here: "/proc",
    "/dev/shm": lambda here: "/dev/shm",
}


@pytest.mark.parametrize("force", [False, True], ids=["", "force"])
@pytest.mark.parametrize("verb", ["run", "plan", "demo"])
@pytest.mark.parametrize("case", EXISTING)
def test_what_is_there_is_refused_before_the_program_starts(tmp_path, verb, case, force):
    if verb == "demo" and force:
        pytest.skip("demo has no --force")
    here = tmp_path / "in"
    here.mkdir()
    name = EXISTING[case](here)
    before = tree(here)
    options = ["-o", name, *(["--force"] if force else [])]
    if verb == "demo":
        done = subprocess.run([FAULTLINE, "demo", *options], capture_output=True, text=True, timeout=600, cwd=here)
    else:
        done = run(verb, *options, cwd=here, command=["sh", "-c", "echo started"])
    assert done.returncode == 2 and "started" not in done.stdout
    assert done.stderr.count("\n") == 1 and "is not used" in done.stderr, done.stderr
    assert tree(here) == before


@pytest.mark.parametrize("verb", ["run", "plan"])
@pytest.mark.parametrize("command", [["./no-such-program"], ["./not-executable"]], ids=lambda words: words[0])
def test_a_program_that_is_not_there_leaves_nothing_and_takes_nothing(tmp_path, verb, command):
    (tmp_path / "not-executable").write_text("")
    before = tree(tmp_path)
    for folder in (None, "new", "deep/new"):
        done = run(verb, *(["-o", folder] if folder else []), cwd=tmp_path, command=command)
        assert done.returncode not in (0, 1), done.stderr
        if (tmp_path / "deep").exists():
            (tmp_path / "deep").rmdir()
        assert tree(tmp_path) == before


@pytest.mark.parametrize("verb", ["run", "plan"])
def test_a_new_name_is_made_for_its_owner_with_what_lies_above(tmp_path, verb):
    (tmp_path / "link").symlink_to("real")
    (tmp_path / "real").mkdir()
    for name in ("d", "e/", "a/b/c", "link/in", "real/../y"):
        done = run(verb, "-o", name, cwd=tmp_path, command=[sys.executable, "-c", "print('started')"])
        assert "started" in done.stdout and "not used" not in done.stderr, (name, done.stderr)
        if verb == "run":
            assert json.loads((tmp_path / name / MARK).read_text())["files"] is not None
            assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o700


def recorded(folder, *more, cwd):
    return run("run", "-o", folder, *more, cwd=cwd, command=[PROGRAMS / "double_free"])


def test_force_takes_a_run_of_ones_own_and_that_alone(tmp_path):
    assert recorded("d", cwd=tmp_path).returncode == 0
    first = tree(tmp_path / "d")
    refused = recorded("d", cwd=tmp_path)
    assert refused.returncode == 2 and "has a run in it already" in refused.stderr and tree(tmp_path / "d") == first
    again = recorded("d", "--force", cwd=tmp_path)
    assert again.returncode == 0 and "not used" not in again.stderr
    now = tree(tmp_path / "d")
    stay = {name for name in now if name.partition("/")[0] == "links"}  # of a recorder whose path has a blank in it
    assert "report.json" in now and not set(first) & set(now) - {"command.json", "report.json", MARK} - stay
    # and with a page of view's in it
    assert subprocess.run([FAULTLINE, "view", "d", "--no-open"], cwd=tmp_path, capture_output=True).returncode == 0
    assert recorded("d", "--force", cwd=tmp_path).returncode == 0
    assert "page.html" not in tree(tmp_path / "d")


def foreign_file(run):
    (run / "best.pt").write_text("mine")


def changed_report(run):
    (run / "report.json").write_text("mine")


def own_process_file(run):
    (run / "process-1.json").write_text("mine")


def own_folder(run):
    (run / "again").mkdir()
    (run / "again" / "process-1.json").write_text("mine")


def other_folder(run):
    (run / "checkpoints").mkdir()


def own_link(run):
    (run / "notes-1.txt").symlink_to("/etc/passwd")


def own_page(run):
    (run / "page.html").write_text("<html>mine</html>")


def no_list(run):
    (run / MARK).write_text('{"faultline": "1"}')


def no_mark(run):
    (run / MARK).unlink()


def broken_mark(run):
    (run / MARK).write_text("[" * 100)


@pytest.mark.parametrize(
    "change",
    [foreign_file, changed_report, own_process_file, own_folder, other_folder, own_link, own_page]
    + [no_list, no_mark, broken_mark],
    ids=lambda change: change.__name__,
)
def test_force_removes_nothing_where_anything_is_not_as_it_was_left(tmp_path, change):
    assert recorded("d", cwd=tmp_path).returncode == 0
    change(tmp_path / "d")
    before = tree(tmp_path / "d")
    done = recorded("d", "--force", cwd=tmp_path)
    assert done.returncode == 2 and "not used" in done.stderr and tree(tmp_path / "d") == before


def test_what_the_program_puts_into_the_folder_of_its_run_is_its_own(tmp_path):
    """`run` changes nothing: the program writes where it wants, and a later --force leaves that alone."""
    command = ["sh", "-c", f"echo mine > d/best.pt; mkdir d/again; echo mine > d/again/x; {DOUBLE_FREE}"]
    assert run("run", "-o", "d", cwd=tmp_path, command=command).returncode == 0
    assert (tmp_path / "d" / "best.pt").read_text() == "mine\n"
    done = recorded("d", "--force", cwd=tmp_path)
    assert done.returncode == 2 and (tmp_path / "d" / "best.pt").exists() and (tmp_path / "d" / "again" / "x").exists()


@pytest.mark.parametrize(
    "name",
    [
        "report.json",
        "log.txt",
        "process-9.txt",
        "torch-3d.png",
        "tensors-1.pt",
        "notes-2.md",
        "pool-3",
        "core-1x",
        "ranks-mine/x",
        "jax-1.py",
    ],
)
def test_a_file_of_the_programs_that_is_called_nearly_as_ours_stays(tmp_path, name):
    """Neither the report nor a later --force takes its place."""
    (tmp_path / "program").write_text(f"mkdir -p $(dirname d/{name}); echo mine > d/{name}; {DOUBLE_FREE}\n")
    assert run("run", "-o", "d", cwd=tmp_path, command=["sh", "program"]).returncode == 0
    assert (tmp_path / "d" / name).read_text() == "mine\n"
    done = recorded("d", "--force", cwd=tmp_path)
    assert done.returncode == 2 and "not Faultline's" in done.stderr
    assert (tmp_path / "d" / name).read_text() == "mine\n"


@pytest.mark.parametrize("verb", ["run", "plan"])
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL], ids=lambda how: how.name)
def test_an_interrupt_takes_nothing(tmp_path, verb, how):
    (tmp_path / "mine").write_text("mine")
    (tmp_path / "aside").mkdir()
    program = textwrap.dedent("""
        import os, signal, sys, time
        os.kill(int(sys.argv[1]), int(sys.argv[2])) if sys.argv[3] == "run" else None
        print("up", flush=True)
        time.sleep(1000)
    """)
    verb_process = subprocess.Popen(
        [FAULTLINE, verb, *(["--gpu", "virtual:1GiB"] if verb == "run" else []), "-o", "d", "--"]
        + [sys.executable, "-c", program, "0", "0", "plan"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert verb_process.stdout.readline() == "up\n"
    os.killpg(verb_process.pid, how)
    verb_process.wait(timeout=600)
    verb_process.communicate()
    assert (tmp_path / "mine").read_text() == "mine" and (tmp_path / "aside").is_dir()


@pytest.mark.skipif(not IS_ROOT, reason="mounting takes root")
@pytest.mark.parametrize("verb", ["run", "plan"])
@pytest.mark.parametrize("kind", ["full", "read-only"])
def test_a_disk_that_takes_nothing(tmp_path, verb, kind):
    (tmp_path / "disk").mkdir()
    full = "size=64k" if kind == "full" else "size=1m"
    fills = "head -c 1000000 /dev/zero > disk/fill 2>/dev/null" if kind == "full" else "mount -o remount,ro none disk"
    gpu = "--gpu virtual:1GiB" if verb == "run" else ""
    script = f"mount -t tmpfs -o {full} none disk && echo mine > disk/mine && {{ {fills}; true; }} && {shlex.quote(str(FAULTLINE))} {verb} {gpu} -o disk/d -- echo started; echo status $?; ls disk; cat disk/mine"
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", script], cwd=tmp_path, capture_output=True, text=True, timeout=600
    )
    if "status" not in done.stdout:
        pytest.skip("no mounts here: " + done.stderr)
    assert "mine\n" in done.stdout and ("could not be" in done.stderr or "disk is full" in done.stderr), done
    assert ("started" in done.stdout) == (verb == "run")  # trouble of ours does not stop a run


@pytest.mark.skipif(not IS_ROOT, reason="only root can leave what is another user's")
def test_what_another_user_left_is_never_taken(tmp_path):
    assert recorded("d", cwd=tmp_path).returncode == 0
    os.chown(tmp_path / "d", 12345, 12345)
    before = tree(tmp_path / "d")
    done = recorded("d", "--force", cwd=tmp_path)
    assert done.returncode == 2 and "another user" in done.stderr and tree(tmp_path / "d") == before


def test_a_folder_that_appears_between_check_and_use_is_refused(tmp_path):
    """Whoever makes it first has it: of ten that start at once with one name, one runs."""
    starts = [
        subprocess.Popen(
            [FAULTLINE, "run", "--gpu", "virtual:1GiB", "-o", "d", "--", "sh", "-c", "echo started; cat"],
            cwd=tmp_path,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        for _ in range(10)
    ]
    assert sorted(start.communicate()[0] for start in starts) == [""] * 9 + ["started\n"]


# --- files that the user names


@pytest.fixture
def recording(tmp_path):
    assert recorded("d", cwd=tmp_path).returncode == 0
    return next((tmp_path / "d").glob("process-*.faultline"))


WRITERS = {
    "view": lambda source, to: ["view", source, "--no-open", "-o", to],
    "pack": lambda source, to: ["pack", source, "-o", to],
    "explain --save-trace": lambda source, to: ["explain", source, "--save-trace", to],
    "replay --save-trace": lambda source, to: ["replay", DEMO, "--save-trace", to],
}


@pytest.mark.parametrize("verb", WRITERS)
def test_a_file_that_the_user_named(tmp_path, recording, verb):
    def write(to):
        return subprocess.run(
            [FAULTLINE, *WRITERS[verb](str(recording), str(to))], capture_output=True, text=True, cwd=tmp_path
        )

    folder = tmp_path / "files"
    folder.mkdir()
    (folder / "mine").write_text("mine")
    (folder / "new.part").write_text("mine")
    (folder / "dangling").symlink_to("nothing")
    (folder / "link").symlink_to("mine")
    os.mkfifo(folder / "pipe")
    before = tree(folder)
    for taken in ("mine", "dangling", "link", "pipe", ".", "/"):
        done = write(folder / taken)
        assert done.returncode == 2 and done.stderr, (taken, done)
        assert tree(folder) == before, taken
    assert write(folder / "new").returncode in (0, 1)
    assert write(folder / "new").returncode in (0, 1)  # Faultline's own is replaced
    (folder / "link to own").symlink_to("new")
    assert write(folder / "link to own").returncode in (0, 1)
    assert (folder / "link to own").is_symlink()
    made = tree(folder)
    assert {name: made[name] for name in before} == before and set(made) - set(before) == {"new", "link to own"}


@pytest.mark.parametrize("verb, status", [("run", 127), ("plan", 2)])
def test_a_command_that_cannot_be_started_costs_no_earlier_run(tmp_path, verb, status):
    assert recorded("d", cwd=tmp_path).returncode == 0
    before = tree(tmp_path)
    done = run(verb, "-o", "d", "--force", cwd=tmp_path, command=("no-such-command",))
    assert done.returncode == status and "no-such-command was not found" in done.stderr
    assert tree(tmp_path) == before
