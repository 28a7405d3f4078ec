"""A program whose changes to files are kept aside sees them, and the machine does not.

No GPU and no PyTorch: `faultline keep-aside`, which `plan` runs its program with, is tried alone. What the kernel itself answers is the measure.
"""

import os
import resource
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
from pathlib import Path

import pytest
from keeping import Confined, everything, make_home

HERE = Path(__file__).resolve().parent


@pytest.mark.parametrize("seed", range(1, 13))
def test_every_call_answers_as_the_kernel_does(confined, tmp_path, seed):
    free, kept = make_home(tmp_path / "free"), make_home(tmp_path / "kept")
    walk = [sys.executable, str(HERE / "random_file_calls.py"), str(seed), "150"]
    plain = subprocess.run(walk, cwd=free, capture_output=True, text=True, timeout=600)
    before = everything(kept)
    watched = confined.run(kept, *walk)
    assert plain.returncode == 0 and watched.returncode == 0, watched.stderr
    assert watched.stdout == plain.stdout
    assert everything(kept) == before
    assert everything(free) != before  # the walk does change things where nobody keeps them


def test_a_path_beside_the_flag_for_none_is_looked_at(confined, home):
    """fstatat() with AT_EMPTY_PATH is of the descriptor only where the path is empty."""
    done = confined.python(
        home,
        """
        import ctypes, os
        libc, status = ctypes.CDLL(None, use_errno=True), ctypes.create_string_buffer(256)
        def size(folder, path):
            failed = libc.syscall(262, folder, path, status, 0x1000)
            return -ctypes.get_errno() if failed else int.from_bytes(status[48:56], "little")
        os.remove("a")
        open("b", "w").write("longer than before")
        folder, file = os.open(".", os.O_RDONLY), os.open("b", os.O_RDONLY)
        print([size(folder, b"a"), size(folder, os.path.abspath("a").encode()), size(folder, b"b"), size(file, b"")])
        """,
    )
    assert done.stdout.strip() == "[-2, -2, 18, 18]", done.stderr


def test_all_ways_of_writing_are_kept_aside_and_seen(confined, home):
    before = everything(home)
    done = confined.python(
        home,
        """
        import ctypes, mmap, os, shutil, socket, sqlite3, subprocess, tempfile
        with open("a", "r+b") as file:
            view = mmap.mmap(file.fileno(), 0); view[0:3] = b"ONE"; view.close()
        assert open("a").read() == "ONE\\n"
        base = sqlite3.connect("base"); base.execute("create table t (x)"); base.execute("insert into t values (7)"); base.commit()
        assert list(sqlite3.connect("base").execute("select x from t")) == [(7,)]
        with tempfile.TemporaryDirectory(dir=".") as folder:
            open(f"{folder}/x", "w").write("y")
        with tempfile.TemporaryFile(dir=".") as file:
            file.write(b"1")
        subprocess.run("echo shell > s; cat b >> s; rm b; mkdir n && cd n && echo deep > d", shell=True, check=True)
        assert open("s").read() == "shell\\nbbb\\n" and not os.path.exists("b") and os.getcwd().endswith("/home") and open("n/d").read() == "deep\\n"
        open("run.sh", "w").write("#!/bin/sh\\necho from a script of its own > out; cat out\\n"); os.chmod("run.sh", 0o755)
        assert subprocess.run(["./run.sh"], capture_output=True, text=True, check=True).stdout == "from a script of its own\\n"
        os.chdir("n"); assert os.getcwd().endswith("/home/n") and os.path.realpath(".").endswith("/home/n") and "n" in os.listdir("..") and os.listdir(".") == ["d"]
        server = socket.socket(socket.AF_UNIX); server.bind("socket"); server.listen()
        client = socket.socket(socket.AF_UNIX); client.connect(os.path.abspath("socket")); client.close(); os.chdir("..")
        os.mkfifo("fifo"); assert "fifo" in os.listdir(".")
        reader = os.open("link", os.O_RDONLY); os.fchmod(reader, 0o600); os.utime(reader, (1, 1)); os.close(reader)
        assert os.stat("a").st_mode & 0o777 == 0o600 and os.stat("a").st_mtime == 1
        C = ctypes.CDLL(None, use_errno=True)
        number = C.syscall(2, b"e/f", os.O_WRONLY | os.O_TRUNC, 0)  # open, not through the C library's own function
        os.write(number, b"raw"); os.close(number); assert open("to_folder/f").read() == "raw"
        assert C.syscall(425, 8, None) == -1, "io_uring opens files without asking anybody"
        os.rename("e", "moved"); assert open("moved/f").read() == "raw" and open("moved/h/i").read() == "i\\n"
        folder = os.open("moved", os.O_RDONLY); os.unlink("f", dir_fd=folder); assert os.listdir(folder) == ["h"] and not os.path.exists("moved/f")
        hidden = os.open(".", os.O_TMPFILE | os.O_RDWR); os.write(hidden, b"named later")
        os.link(f"/proc/self/fd/{hidden}", "later", follow_symlinks=True, src_dir_fd=os.open("/", os.O_RDONLY)); assert open("later").read() == "named later"
        other = os.open("/proc/self/cwd/a", os.O_WRONLY | os.O_TRUNC); os.close(other); assert open("a").read() == ""
        print("seen")
    """,
    )
    assert done.stdout == "seen\n" and done.returncode == 0, done.stderr
    assert everything(home) == before
    effects = confined.effects()
    names = {os.path.relpath(path, home) for path in effects["written"]}
    assert {"a", "base", "s", "n/d", "run.sh", "out", "later", "moved"} <= names
    assert {os.path.relpath(path, home) for path in effects["removed"]} == {"b", "e"}


def test_ways_around_lead_nowhere(confined, home, tmp_path):
    before = everything(home)
    done = confined.python(
        home,
        """
        import ctypes, os, threading
        C = ctypes.CDLL(None, use_errno=True)
        EMPTY, HERE = 0x1000, -100
        reader = os.open("a", os.O_RDONLY)
        C.linkat(reader, b"", HERE, b"linked", EMPTY)                      # a second name for the user's own file
        open("linked", "w").write("harm"); assert open("a").read() == "harm"
        held = os.open("b", os.O_RDONLY); os.unlink("b"); os.fchmod(held, 0o777); os.utime(held, (5, 5))
        moved = os.open("e/f", os.O_RDONLY); os.rename("e/f", "e/g"); os.fchmod(moved, 0o777)
        folder = os.open("e", os.O_RDONLY); os.rename("e", "n"); os.fchmod(folder, 0o700)
        C.syscall(260, HERE, b"", 1000, 1000, EMPTY); C.syscall(452, HERE, b"", 0o700, EMPTY); C.utimensat(HERE, b"", None, EMPTY)
        own = os.environ["OWN"]
        open(own + "/../home/a", "w").write("through Faultline's folder")
        os.symlink(os.getcwd(), own + "/door"); open(own + "/door/link", "w").write("through a link in it")
        C.syscall(469, HERE, b"a", 0, 0, 0); assert C.syscall(425, 8, None) == -1
        os.makedirs("new"); assert open("new/../n/g").read() == "f\\n"     # through a folder that only the layer has
        assert "null" in os.listdir("/dev") or not os.path.exists("/dev/null")
        open("/dev/shm/faultline-test", "w").close(); assert "null" in os.listdir("/dev") and "faultline-test" in os.listdir("/dev/shm")
        def swap():                                                        # a link put where a file is about to be made
            for _ in range(1500):
                try:
                    os.symlink(os.environ["VICTIM"], "race"); os.unlink("race")
                except OSError:
                    pass
        def make():
            for _ in range(1500):
                try:
                    os.close(os.open("race", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)); os.unlink("race")
                except OSError:
                    pass
        threads = [threading.Thread(target=one) for one in (swap, make, swap, make)]
        [t.start() for t in threads]; [t.join() for t in threads]
        print("held")
    """,
        env={**os.environ, "OWN": str(tmp_path / "own"), "VICTIM": str(home / "e" / "h" / "i")},
    )
    assert done.stdout == "held\n", done.stderr
    (tmp_path / "own" / "door").unlink(missing_ok=True)
    assert everything(home) == before and not Path("/dev/shm/faultline-test").exists()


def test_a_limit_on_file_sizes_is_the_programs_alone(confined, home):
    done = confined.run(
        home, "sh", "-c", "exit 7", preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    )
    assert done.returncode == 7


def test_children_that_nothing_can_be_loaded_into_are_kept_too(confined, home, tmp_path):
    source = tmp_path / "static.c"
    source.write_text(
        '#include <fcntl.h>\n#include <unistd.h>\n#include <stdio.h>\nint main(void) { int f = open("a", O_WRONLY | O_TRUNC); write(f, "static", 6); close(f); rename("b", "c"); '
        'char t[16] = ""; f = open("a", O_RDONLY); read(f, t, 15); puts(t); return access("b", F_OK) == 0; }\n'
    )
    subprocess.run(["g++", "-x", "c", "-static", "-w", "-o", str(tmp_path / "static"), str(source)], check=True)
    before = everything(home)
    done = confined.run(home, tmp_path / "static")
    assert (done.stdout, done.returncode) == ("static\n", 0) and everything(home) == before


def test_many_processes_and_threads_write_at_once(confined, home):
    before = everything(home)
    done = confined.python(
        home,
        """
        import multiprocessing, os, threading
        def work(number):
            for step in range(20):
                path = f"w{number}/{step}"
                os.makedirs(os.path.dirname(path), exist_ok=True)
                with open(path + ".tmp", "w") as file: file.write(str(step))
                os.replace(path + ".tmp", path)
            return number
        with multiprocessing.Pool(4) as pool:
            assert pool.map(work, range(8)) == list(range(8))
        threads = [threading.Thread(target=work, args=(10 + n,)) for n in range(8)]
        [t.start() for t in threads]; [t.join() for t in threads]
        assert all(open(f"w{n}/{s}").read() == str(s) for n in [*range(8), *range(10, 18)] for s in range(20))
        context = multiprocessing.get_context("spawn"); queue = context.SimpleQueue(); queue.put(1); assert queue.get() == 1
        print("done")
    """,
    )
    assert done.stdout == "done\n", done.stderr
    assert everything(home) == before


def test_ends_as_the_program_ended(confined, home):
    assert confined.run(home, "sh", "-c", "exit 7").returncode == 7
    assert confined.run(home, "sh", "-c", "kill -SEGV $$").returncode == -signal.SIGSEGV
    nowhere = confined.run(home, "no-such-program")
    assert nowhere.returncode == 2 and nowhere.stderr == "faultline: no-such-program was not found.\n"


def test_what_stays_behind_is_ended_and_nothing_is_left_of_it(confined, home, tmp_path):
    done = confined.run(home, "sh", "-c", "(sleep 1000; echo late > a) & echo $!")
    left = int(done.stdout)
    with pytest.raises(ProcessLookupError):
        os.kill(left, 0)
    assert not (tmp_path / "own" / "aside").exists()


def test_signals_of_the_one_who_started_it_reach_the_program(confined, home):
    program = "import signal, sys, time; signal.signal(signal.SIGTERM, lambda *_: sys.exit(9)); print('ready', flush=True); time.sleep(1000)"
    process = subprocess.Popen(
        confined.command(sys.executable, "-c", program), cwd=home, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=600) == 9


def test_a_program_dies_with_its_watch(confined, home):
    process = subprocess.Popen(
        confined.command(sys.executable, "-c", "import os, time; print(os.getpid(), flush=True); time.sleep(1000)"),
        cwd=home,
        stdout=subprocess.PIPE,
        text=True,
    )
    program = int(process.stdout.readline())
    process.kill()
    process.wait()
    patience_ends = time.monotonic() + 600
    while True:
        assert time.monotonic() < patience_ends, "the program lives on without its watch"
        try:
            os.kill(program, 0)
        except ProcessLookupError:
            break
        if Path(f"/proc/{program}/stat").read_text().split(") ")[1].startswith("Z"):
            break
        time.sleep(0.01)


def test_stopped_and_continued_it_goes_on(confined, home):
    program = "import os, signal; print(os.getpid(), flush=True); os.kill(os.getpid(), signal.SIGSTOP); print('on', flush=True)"
    process = subprocess.Popen(
        confined.command(sys.executable, "-c", program), cwd=home, stdout=subprocess.PIPE, text=True
    )
    pid = int(process.stdout.readline())
    while ") T" not in (state := Path(f"/proc/{pid}/stat").read_text()) and ") t" not in state:
        time.sleep(0.01)
    time.sleep(0.2)
    os.kill(pid, signal.SIGCONT)
    assert process.stdout.readline() == "on\n" and process.wait(timeout=600) == 0


def test_connections_to_other_machines_are_counted_and_refused_offline(confined, home):
    done = confined.python(
        home,
        """
        import errno, socket
        def reach(address, family=socket.AF_INET, kind=socket.SOCK_STREAM):
            with socket.socket(family, kind) as one:
                try:
                    one.connect(address)
                except OSError as problem:
                    return errno.errorcode[problem.errno]
        server = socket.create_server(("127.0.0.1", 0)); assert reach(server.getsockname()) is None
        print(reach(("203.0.113.7", 443)), reach(("2001:db8::1", 443, 0, 0), socket.AF_INET6))
        datagram = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        for send in (lambda: datagram.sendto(b"x", ("203.0.113.8", 9)), lambda: datagram.sendmsg([b"x"], [], 0, ("203.0.113.8", 9))):
            try:
                send()
            except OSError as problem:
                print(errno.errorcode[problem.errno])
    """,
        options=["--offline"],
    )
    assert done.stdout.split() == ["ENETUNREACH"] * 4, done.stderr
    effects = confined.effects()
    assert (
        effects["connections"] == 4
        and effects["offline"]
        and set(effects["machines"]) == {"203.0.113.7:443", "[2001:db8::1]:443", "203.0.113.8:9"}
    )


def test_what_is_read_from_standard_input_is_kept(confined, home, tmp_path):
    kept = tmp_path / "own" / "input"
    done = confined.run(
        home,
        "sh",
        "-c",
        "read first; echo got $first; head -c 3; cat a | head -c 2",
        input="line\nrest of it\n",
        stdin=None,
        options=["--keep-input", str(kept)],
    )
    assert done.stdout.startswith("got line\nres") and kept.read_text().startswith("line\nres")


ANOTHER_WAY_TO_READ = {
    "dup": "one = os.dup(0); print(os.read(one, 100))",
    "dup2": "os.dup2(0, 9); print(os.read(9, 100))",
    "in a child": "one = os.dup(0); os.set_inheritable(one, True); subprocess.run(['sh', '-c', f'cat <&{one}'], stdin=subprocess.DEVNULL, close_fds=False)",
    "in another thread": "one = os.dup(0); thread = threading.Thread(target=lambda: print(os.read(one, 100))); thread.start(); thread.join()",
    "by its name": "print(open('/dev/stdin').read())",
    "by its number": "print(open('/proc/self/fd/0').read())",
    "into pieces": "pieces = bytearray(3), bytearray(90); print(os.readv(0, pieces))",
}


@pytest.mark.parametrize("way", ANOTHER_WAY_TO_READ)
def test_standard_input_is_kept_however_it_is_read(confined, home, tmp_path, way):
    kept = tmp_path / "own" / "input"
    program = (
        "import os, subprocess, threading\nprint(os.read(0, 2))\n" + ANOTHER_WAY_TO_READ[way] + "\nopen('a').read()"
    )
    done = confined.run(
        home, sys.executable, "-c", program, input="1 and all the rest", stdin=None, options=["--keep-input", str(kept)]
    )
    assert done.returncode == 0, done.stderr
    assert kept.read_text() == "1 and all the rest" and not confined.effects()["input_was_cut"]


def test_input_that_is_moved_by_the_kernel_is_known_to_be_cut(confined, home, tmp_path):
    done = confined.python(
        home,
        """
        import os
        read, write = os.pipe()
        print(os.splice(0, write, 100), os.read(read, 100))
    """,
        input="all of it",
        stdin=None,
        options=["--keep-input", str(tmp_path / "own" / "input")],
    )
    assert done.returncode == 0, done.stderr
    assert confined.effects()["input_was_cut"]


def test_what_was_open_before_is_written_for_real_and_that_is_told(confined, home):
    with open(home / "a", "a") as given, open(home / "b", "a") as untouched:
        numbers = given.fileno(), untouched.fileno()
        done = confined.python(
            home, f"import os; os.write({numbers[0]}, b'more'); open('c', 'w').close()", pass_fds=numbers
        )
    assert done.returncode == 0, done.stderr
    assert (home / "a").read_text() == "one\nmore" and confined.effects()["done_for_real"] == [str(home / "a")]


def test_datagrams_reach_a_socket_that_was_made_aside(confined, home):
    done = confined.python(
        home,
        """
        import ctypes, socket
        C = ctypes.CDLL(None, use_errno=True)
        server, client = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        server.bind("here")
        assert client.sendto(b"to", "here") == 2 and server.recv(9) == b"to"
        assert client.sendmsg([b"mess", b"age"], [], 0, "here") == 7 and server.recv(9) == b"message"

        class Piece(ctypes.Structure): _fields_ = [("base", ctypes.c_char_p), ("size", ctypes.c_size_t)]
        class Header(ctypes.Structure): _fields_ = [("name", ctypes.c_char_p), ("name_size", ctypes.c_uint), ("pieces", ctypes.POINTER(Piece)), ("count", ctypes.c_size_t), ("control", ctypes.c_void_p), ("control_size", ctypes.c_size_t), ("flags", ctypes.c_int)]
        class Message(ctypes.Structure): _fields_ = [("header", Header), ("sent", ctypes.c_uint)]
        name = socket.AF_UNIX.to_bytes(2, "little") + b"here\\0"
        words = b"one", b"three"
        messages = (Message * 2)(*(Message(Header(name, len(name), ctypes.pointer(Piece(word, len(word))), 1)) for word in words))
        done = 0
        while done < 2:
            sent = C.sendmmsg(client.fileno(), ctypes.byref(messages, done * ctypes.sizeof(Message)), 2 - done, 0)
            assert sent > 0, ctypes.get_errno()
            done += sent
        assert [server.recv(9), server.recv(9)] == list(words) and [message.sent for message in messages] == [3, 5]
        try:
            client.sendmsg([b"x"], [], 0, "nowhere")
        except FileNotFoundError:
            print("well")
    """,
    )
    assert done.stdout == "well\n", done.stderr
    assert not (home / "here").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="a file of somebody else's is needed")
def test_an_ordinary_user_may_not_do_more_than_without(binary):
    with tempfile.TemporaryDirectory() as name:
        top = Path(name)
        top.chmod(0o755)
        home, nobody = make_home(top / "home"), 65534
        (home / "others").write_text("not yours")
        confined = Confined(binary, top / "own")
        os.chown(home, nobody, nobody)
        os.chown(top / "own", nobody, nobody)
        done = confined.run(
            home,
            "/usr/bin/python3",
            "-c",
            textwrap.dedent("""
            import os
            for call in (lambda: open("others", "w"), lambda: os.chmod("others", 0o777), lambda: open("/etc/faultline", "w"), lambda: os.mkdir("/etc/faultline")):
                try:
                    call()
                except OSError as problem:
                    print(type(problem).__name__)
            os.remove("others"); open("mine", "w").close(); print(os.getuid(), "others" in os.listdir("."), "mine" in os.listdir("."))
        """),
            user=nobody,
            group=nobody,
            extra_groups=[],
        )
        assert done.stdout.splitlines() == ["PermissionError"] * 4 + ["65534 False True"], done.stderr
        assert (home / "others").read_text() == "not yours" and not (home / "mine").exists()


@pytest.mark.parametrize("raises", [False, True])
def test_a_crash_leaves_no_core_file(confined, home, raises):
    """The kernel writes it, and it may replace a file of the user's."""
    (home / "core").write_text("precious")
    before = everything(home)
    program = f"""
        import ctypes, os, resource
        if {raises}:
            resource.setrlimit(resource.RLIMIT_CORE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        if os.fork() == 0:
            ctypes.string_at(0)
        os.wait()
        ctypes.string_at(0)
    """

    def with_core_files():
        resource.setrlimit(resource.RLIMIT_CORE, (resource.getrlimit(resource.RLIMIT_CORE)[1],) * 2)

    done = confined.python(home, program, preexec_fn=with_core_files)
    assert done.returncode == -signal.SIGSEGV
    assert everything(home) == before


@pytest.mark.parametrize("descriptor", [0, 1])
def test_a_file_given_as_standard_input_is_told_when_it_changes_and_what_is_printed_is_not(confined, home, descriptor):
    with open(home / "a", "r+") as given:
        done = subprocess.run(
            confined.command(sys.executable, "-c", f"import os; os.pwrite({descriptor}, b'ZZ', 0)"),
            cwd=home,
            timeout=600,
            stderr=subprocess.PIPE,
            stdin=given if descriptor == 0 else subprocess.DEVNULL,
            stdout=given if descriptor == 1 else subprocess.PIPE,
        )
    assert done.returncode == 0, done.stderr
    assert confined.effects()["done_for_real"] == ([str(home / "a")] if descriptor == 0 else [])
