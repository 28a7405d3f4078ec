"""Ways to the user's files that go past their names, and what a program finds there as without a watch."""

import os
import pwd
import shutil
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

import pytest
from keeping import Confined, everything, make_home

INTO_THE_FOLDER = {
    "link": "os.link('a', own + '/door')",
    "linkat": "os.link('a', 'door', dst_dir_fd=os.open(own, os.O_RDONLY))",
    "of a descriptor": "assert C.linkat(os.open('a', os.O_RDONLY), b'', -100, (own + '/door').encode(), 0x1000) == -1",
    "by a descriptor's name": "assert C.linkat(-100, f\"/proc/self/fd/{os.open('a', os.O_RDONLY)}\".encode(), -100, (own + '/door').encode(), 0x400) == -1",
    "rename": "os.rename('a', own + '/door')",
    "symlink": "os.symlink(os.path.abspath('a'), own + '/door')",
    "a folder": "os.symlink(os.getcwd(), own + '/folder'); open(own + '/folder/a', 'w').write('harm')",
}


@pytest.mark.parametrize("way", INTO_THE_FOLDER)
def test_the_folder_of_the_run_is_no_door_to_the_users_files(confined, home, tmp_path, way):
    before = everything(home)
    program = f"""
import ctypes, os
C, own = ctypes.CDLL(None), os.environ["OWN"]
try:
    {INTO_THE_FOLDER[way]}
except OSError:
    pass
try:
    open(own + "/door", "r+").write("harm")
except FileNotFoundError:
    pass
"""
    done = confined.run(home, sys.executable, "-c", program, env={**os.environ, "OWN": str(tmp_path / "own")})
    assert done.returncode == 0, done.stderr
    assert everything(home) == before


TO_THE_OUTPUT = (
    "echo A; echo B >>/dev/stdout",
    "echo A; echo B >>/proc/self/fd/1; echo C >>/dev/fd/1",
    "echo A; echo B >>/dev/stdout; echo C",
    "echo A; echo B >>/dev/stderr; echo C",
    "echo A; sh -c 'echo B >>/dev/stdout'; echo C",
    "echo A; echo B >/dev/stdout; echo C",
    "echo A; echo B | tee /dev/stderr >>/dev/stdout",
)


@pytest.mark.parametrize("script", TO_THE_OUTPUT)
@pytest.mark.parametrize("mode", ["w", "a"])
def test_what_is_written_to_the_name_of_the_output_arrives(confined, home, script, mode):
    def output_of(command):
        (home / "out").write_text("before\n")
        with open(home / "out", mode) as out:
            subprocess.run(command, cwd=home, stdout=out, stderr=out, stdin=subprocess.DEVNULL, timeout=600)
        return (home / "out").read_text()

    plain, kept = output_of(["sh", "-c", script]), output_of(confined.command("sh", "-c", script))
    cuts = plain.count("before") == 0
    if mode == "a" and cuts:  # what was there before is never cut
        assert kept.startswith("before\nA\n") and kept.count("B\n") >= plain.count("B\n")
    else:
        assert kept == plain
    assert confined.effects()["written"] == [] and confined.effects()["done_for_real"] == []


def test_opens_that_ask_for_what_nobody_knows_are_as_without(confined, home):
    program = textwrap.dedent("""
        import ctypes, errno, os
        C = ctypes.CDLL(None, use_errno=True)
        open("own", "w").write("x")
        def answer(number): return "open" if number >= 0 else errno.errorcode[ctypes.get_errno()]
        for path in ("a", "own"):
            for more in (0, 0x10000000, 0x40000000, 0o100000, os.O_NOATIME, os.O_SYNC, os.O_DIRECTORY, os.O_PATH | os.O_APPEND):
                print(path, hex(more), answer(C.syscall(2, path.encode(), os.O_RDONLY | more, 0)), answer(C.syscall(257, -100, path.encode(), os.O_RDONLY | more, 0)))
        class How(ctypes.Structure): _fields_ = [("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64)]
        def how(path, flags, mode=0, resolve=0, size=24):
            return answer(C.syscall(437, -100, path, ctypes.byref(How(flags, mode, resolve)), ctypes.c_size_t(size)))
        for path in (b"own", b"a", b"link"):
            print(path, how(path, 2), how(path, 2, resolve=4), how(path, 0, resolve=2), how(path, 2 | 1 << 40), how(path, 0, size=8), how(path, 0, resolve=1 << 40))
    """)
    free = subprocess.run([sys.executable, "-c", program], cwd=make_home(home / "free"), capture_output=True, text=True)
    kept = confined.run(make_home(home / "kept"), sys.executable, "-c", program)
    assert kept.stdout == free.stdout and free.stdout.count("\n") == 19, kept.stderr


def test_paths_that_are_not_there_and_folders_of_a_group_are_as_without(confined, home):
    program = textwrap.dedent("""
        import ctypes, errno, os
        C = ctypes.CDLL(None, use_errno=True)
        def answer(number): return "done" if number >= 0 else errno.errorcode[ctypes.get_errno()]
        for path in (None, ctypes.c_void_p(8), b"x" * 5000, b"x" * 300):
            print(answer(C.syscall(2, path, os.O_WRONLY, 0)), answer(C.syscall(76, path, 0)), answer(C.syscall(83, path, 0o700)),
                  answer(C.syscall(82, path, b"new")), answer(C.syscall(82, b"a", path)), answer(C.syscall(86, b"a", path)))
        for mode in (0o2775, 0o775):
            os.mkdir(f"of{mode}"); os.chmod(f"of{mode}", mode); os.mkdir(f"of{mode}/below")
            print(oct(os.stat(f"of{mode}").st_mode), oct(os.stat(f"of{mode}/below").st_mode))
    """)
    free = subprocess.run([sys.executable, "-c", program], cwd=make_home(home / "free"), capture_output=True, text=True)
    kept = confined.run(make_home(home / "kept"), sys.executable, "-c", program)
    assert kept.stdout == free.stdout and free.stdout.count("\n") == 6, kept.stderr


def test_a_filter_of_the_programs_that_lets_all_pass_does_not_hide_it(confined, home):
    """One that asks a process of its own goes before the watch: "go on" from there would be the last word."""
    before = everything(home)
    program = """
        import ctypes, errno, fcntl, os, struct
        C = ctypes.CDLL(None, use_errno=True)
        def step(code, jt, jf, k): return struct.pack("HBBI", code, jt, jf, k)
        steps = step(0x20, 0, 0, 0) + step(0x15, 0, 1, 257) + step(6, 0, 0, 0x7FC00000) + step(6, 0, 0, 0x7FFF0000)
        plain = step(6, 0, 0, 0x7FFF0000)
        def filter_of(steps):
            kept.append(ctypes.create_string_buffer(steps, len(steps)))
            return ctypes.create_string_buffer(struct.pack("HxxxxxxQ", len(steps) // 8, ctypes.addressof(kept[-1])), 16)
        kept = []
        C.prctl(38, 1, 0, 0, 0)
        assert C.syscall(317, 1, 0, filter_of(plain)) == 0 and C.prctl(22, 2, filter_of(plain), 0, 0) == 0
        open("a", "w").write("harm")
        listener = C.syscall(317, 1, 8, filter_of(steps))
        print(errno.errorcode[ctypes.get_errno()] if listener < 0 else "heard", flush=True)
        if listener >= 0:
            if os.fork() == 0:
                asked = bytearray(80)
                while True:
                    asked[:] = bytes(80)
                    fcntl.ioctl(listener, 0xC0502100, asked)
                    fcntl.ioctl(listener, 0xC0182101, bytearray(asked[:8] + struct.pack("qiI", 0, 0, 1)))
            open("b", "w").write("harm")
    """
    done = confined.python(home, program)
    assert done.stdout == "EBUSY\n", done.stderr
    assert everything(home) == before


MACHINE = {
    "the clock": "C.syscall(159, (ctypes.c_uint32 * 64)(0x4000, 0, 0, 0, 0, 0, 0, 0)) == -1 and C.syscall(159, (ctypes.c_uint32 * 64)()) >= 0",
    "a clock": "C.syscall(305, 0, (ctypes.c_uint32 * 64)(0x4000)) == -1 and C.syscall(305, 0, (ctypes.c_uint32 * 64)()) >= 0",
    "the log": "C.klogctl(6, None, 0) == -1 and C.klogctl(7, None, 0) == -1",
    "a key": "C.syscall(248, b'user', b'faultline-test', b'x', 1, -4) == -1",
    "a watch over all files": "C.syscall(300, 4, 0) == -1",
    "a group of processes": "refused(os.mkdir, '/sys/fs/cgroup/faultline-test')",
    "the terminal": "refused(fcntl.ioctl, 0, 0x5437) and refused(fcntl.ioctl, 0, 0x541C, b'x')",
}


@pytest.mark.parametrize("what", MACHINE)
def test_the_machine_is_left_as_it_is(confined, home, what):
    program = f"""
        import ctypes, fcntl, os
        C = ctypes.CDLL(None)
        def refused(do, *what):
            try:
                do(*what)
            except OSError:
                return True
        print({MACHINE[what]})
    """
    done = confined.python(home, program)
    assert done.stdout == "True\n", done.stderr
    assert not os.path.exists("/sys/fs/cgroup/faultline-test")


def test_disks_are_not_written(confined, home):
    disks = [path for path in Path("/dev").glob("*") if path.is_block_device()]
    program = f"""
        import errno, os
        for path in {[str(disk) for disk in disks]}:
            for flags in (os.O_WRONLY, os.O_RDWR, os.O_RDWR | os.O_EXCL):
                try:
                    os.close(os.open(path, flags)); print("open")
                except OSError as problem:
                    assert problem.errno in (errno.EROFS, errno.EACCES, errno.EPERM, errno.ENXIO, errno.ENOMEDIUM), problem
        open("/dev/null", "w").write("x"); open("/dev/full", "r").close(); print("well")
    """
    done = confined.python(home, program)
    assert done.stdout == "well\n", done.stderr


@pytest.mark.parametrize("count", [2500])
def test_a_large_folder_in_which_something_changed_is_listed_whole(confined, home, count):
    (home / "many").mkdir()
    for number in range(count):
        os.mknod(home / "many" / str(number))
    done = confined.python(
        home,
        f"""
        import os, shutil, subprocess
        before = {{str(n) for n in range({count})}}
        open("many/new", "w").close(); os.remove("many/5"); open("many/7", "w").write("more"); os.rename("many/8", "many/eight"); os.rename("e", "many/e")
        expected = before - {{"5", "8"}} | {{"new", "eight", "e"}}
        def same(names):
            names = list(names); assert len(names) == len(set(names)) and set(names) == expected, set(names) ^ expected
        same(os.listdir("many")); same(os.listdir("many"))
        with os.scandir("many") as entries:
            kinds = {{entry.name: entry.is_dir() for entry in entries}}
        same(kinds); assert [name for name in kinds if kinds[name]] == ["e"]
        folder = os.open("many", os.O_RDONLY); same(os.listdir(folder)); same(os.listdir(folder))
        same(subprocess.run(["ls", "-U", "many"], capture_output=True, text=True).stdout.split())
        same(subprocess.run(["find", "many", "-mindepth", "1", "-maxdepth", "1", "-printf", "%f\\n"], capture_output=True, text=True).stdout.split())
        try:
            os.rmdir("many"); print("removed")
        except OSError:
            pass
        with os.scandir("many") as entries:                               # removed and made on the way
            for number, entry in enumerate(entries):
                if number % 1000 == 0 and entry.is_file():
                    os.remove(entry.path); expected.discard(entry.name)
        same(os.listdir("many")); shutil.rmtree("many"); assert not os.path.exists("many"); print("whole")
        """,
    )
    assert done.stdout == "whole\n", done.stderr
    assert len(list((home / "many").iterdir())) == count


NOBODY = 65534
HIDDEN = {
    "not dumpable": "import ctypes\nC = ctypes.CDLL(None)\nassert C.prctl(4, 0, 0, 0, 0) == 0 and C.prctl(3, 0, 0, 0, 0) == 0",
    "and again": "import ctypes\nC = ctypes.CDLL(None)\nassert C.prctl(4, 0, 0, 0, 0) == 0 and C.prctl(4, 1, 0, 0, 0) == 0 and C.prctl(3, 0, 0, 0, 0) == 1",
    "no such value": "import ctypes\nassert ctypes.CDLL(None).prctl(4, 7, 0, 0, 0) == -1",
    "by a child": "import ctypes\nctypes.CDLL(None).prctl(4, 0, 0, 0, 0)\nif os.fork():\n    sys.exit(os.waitstatus_to_exitcode(os.wait()[1]))",
    "a program that cannot be read": "",
}


@pytest.mark.skipif(os.geteuid() != 0, reason="another user is needed")
@pytest.mark.parametrize("way", HIDDEN)
def test_a_program_that_must_not_be_looked_at_works_all_the_same(binary, way):
    with tempfile.TemporaryDirectory() as name:
        top = Path(name)
        top.chmod(0o755)
        confined = Confined(binary, top / "own")
        home = make_home(top / "home")
        python = Path(shutil.which("python3", path="/usr/bin") or "/usr/bin/python3")
        if way == "a program that cannot be read":
            python = Path(shutil.copy(python, top / "python"))
            python.chmod(0o711)
        for folder, _, files in os.walk(home):
            for path in (folder, *(os.path.join(folder, file) for file in files)):
                os.chown(path, NOBODY, NOBODY, follow_symlinks=False)
        os.chown(top / "own", NOBODY, NOBODY)
        before = everything(home)
        program = f"import os, sys\n{HIDDEN[way]}\n" + textwrap.dedent("""
            open("a", "w").write("aside"); open("made", "w").close(); os.remove("b"); os.chdir("e")
            print(open("../a").read(), sorted(os.listdir("..")), os.getcwd()[-7:], flush=True)
        """)
        done = confined.run(home, python, "-c", program, user=NOBODY, group=NOBODY, extra_groups=[])
        assert done.stdout == "aside ['a', 'dangling', 'e', 'link', 'made', 'to_folder'] /home/e\n", done.stderr
        assert everything(home) == before and pwd.getpwuid(NOBODY)
