"""What a program that is kept aside would do to other processes is not done: signals are noted, tracing and changing them is refused. Its own it reaches as ever."""

import contextlib
import os
import signal
import subprocess
import sys

import pytest
from keeping import Confined

SIGNALS = {
    "kill": "os.kill(V, 15)",
    "tkill": "assert C.syscall(200, V, 15) == 0",
    "tgkill": "assert C.syscall(234, V, V, 15) == 0",
    "rt_sigqueueinfo": "assert C.syscall(129, V, 15, (ctypes.c_int * 32)(15, 0, -1)) == 0",
    "rt_tgsigqueueinfo": "assert C.syscall(297, V, V, 15, (ctypes.c_int * 32)(15, 0, -1)) == 0",
    "by a descriptor": "signal.pidfd_send_signal(os.pidfd_open(V), 15)",
    "by a folder of /proc": "signal.pidfd_send_signal(os.open(f'/proc/{V}', os.O_RDONLY), 15)",
    "by a descriptor, to the group": "assert C.syscall(424, os.pidfd_open(V), 15, None, 4) in (0, -1)",
    "its group": "os.killpg(os.getpgid(V), 15)",
    "a shell": "subprocess.run(['sh', '-c', f'kill -TERM {V}'], check=True)",
}
BEGIN = "import ctypes, fcntl, os, resource, signal, socket, struct, subprocess, sys, time\npair = socket.socketpair()\na = pair[0].fileno()\nC = ctypes.CDLL(None, use_errno=True)\nV = int(sys.argv[1])\n"


@pytest.fixture
def victim():
    process = subprocess.Popen(["sleep", "1000"], start_new_session=True)
    yield process
    process.kill()
    process.wait()


def lives(process):
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(0.1)
    return process.returncode is None


@pytest.mark.parametrize("way", SIGNALS)
def test_a_signal_to_another_process_is_noted_and_not_sent(confined, home, victim, way):
    done = confined.run(home, sys.executable, "-c", BEGIN + SIGNALS[way] + "\nprint('on')", victim.pid)
    assert done.stdout == "on\n", done.stderr
    assert lives(victim)
    effects = confined.effects()
    if "group" not in way or effects["unsent_count"]:  # older kernels do not know that flag
        assert effects["unsent_signals"] == [f"SIGTERM to {victim.pid} (sleep)"] and effects["unsent_count"] == 1


REFUSED = {
    "told by a descriptor": "fcntl.fcntl(a, 10, 15); fcntl.fcntl(a, fcntl.F_SETFL, os.O_ASYNC); fcntl.fcntl(a, fcntl.F_SETOWN, V)",
    "and its group": "fcntl.fcntl(a, 10, 15); fcntl.fcntl(a, fcntl.F_SETFL, os.O_ASYNC); fcntl.fcntl(a, fcntl.F_SETOWN, -os.getpgid(V))",
    "by the longer call": "fcntl.fcntl(a, 10, 15); fcntl.fcntl(a, fcntl.F_SETFL, os.O_ASYNC); assert C.fcntl(a, 15, (ctypes.c_int * 2)(1, V)) == -1",
    "by ioctl": "fcntl.fcntl(a, 10, 15); fcntl.fcntl(a, fcntl.F_SETFL, os.O_ASYNC); fcntl.ioctl(a, 0x8901, struct.pack('i', V))",
    "traced": "assert C.ptrace(0x4206, V, None, None) == -1",
    "written into": "assert C.syscall(311, V, None, 0, None, 0, 0) == -1",
    "robbed of a descriptor": "assert C.syscall(438, os.pidfd_open(V), 0, 0) == -1",
    "limited": "resource.prlimit(V, resource.RLIMIT_NOFILE, (5, 5))",
    "made nice": "os.setpriority(os.PRIO_PROCESS, V, 7)",
    "moved to one core": "os.sched_setaffinity(V, {0})",
    "ended first": "open(f'/proc/{V}/oom_score_adj', 'w').write('1000')",
}


@pytest.mark.parametrize("way", REFUSED)
def test_another_process_is_not_changed(confined, home, victim, way):
    def state():
        with open(f"/proc/{victim.pid}/oom_score_adj") as score:
            return (
                os.getpriority(os.PRIO_PROCESS, victim.pid),
                os.sched_getaffinity(victim.pid),
                open(f"/proc/{victim.pid}/limits").read(),
                score.read(),
            )

    before = state()
    program = BEGIN + f"try:\n    {REFUSED[way]}\nexcept PermissionError:\n    pass\npair[1].send(b'x'); print('on')"
    done = confined.run(home, sys.executable, "-c", program, victim.pid)
    assert done.stdout == "on\n", done.stderr
    assert state() == before and lives(victim)


def test_its_own_processes_are_reached_as_ever(confined, home):
    done = confined.python(
        home,
        """
        import ctypes, fcntl, os, resource, signal, socket, subprocess, threading, time
        child = subprocess.Popen(["sleep", "1000"]); child.terminate(); print(child.wait())
        child = subprocess.Popen(["sh", "-c", "exit 3"])
        while open(f"/proc/{child.pid}/stat").read().split(") ")[1][0] != "Z": time.sleep(0.01)
        os.kill(child.pid, 15); print(child.wait())                       # it has ended, and nobody asked how
        child = subprocess.Popen("sleep 1000 & wait", shell=True, start_new_session=True); os.killpg(child.pid, 9); print(child.wait())
        child = subprocess.Popen(["sleep", "1000"]); os.setpriority(os.PRIO_PROCESS, child.pid, 7); os.sched_setaffinity(child.pid, {0})
        resource.prlimit(child.pid, resource.RLIMIT_NOFILE, (50, 50)); signal.pidfd_send_signal(os.pidfd_open(child.pid), 9); print(child.wait())
        heard = []; signal.signal(signal.SIGUSR1, lambda *_: heard.append(1))
        os.kill(os.getpid(), 10); signal.raise_signal(10); signal.pthread_kill(threading.get_ident(), 10); print(len(heard))
        pair = socket.socketpair(); fcntl.fcntl(pair[0], fcntl.F_SETOWN, os.getpid()); fcntl.fcntl(pair[0], 10, 10); fcntl.fcntl(pair[0], fcntl.F_SETFL, os.O_ASYNC)
        pair[1].send(b"x"); fcntl.fcntl(pair[0], fcntl.F_SETOWN, 0); print(len(heard))
        open("/proc/self/oom_score_adj", "w").close(); signal.signal(signal.SIGTERM, lambda *_: heard.append(2)); os.kill(0, 15); print(heard[-1])
        """,
    )
    assert done.stdout.split() == ["-15", "3", "-9", "-9", "3", "4", "2"], done.stderr


def test_a_signal_to_everybody_reaches_its_own_alone(confined, home):
    """Tried where nobody else is, in a space of processes of its own, should it not hold."""
    inside = """
import os, time
child = os.fork()
if child == 0:
    time.sleep(1000)
os.kill(-1, 9); print(os.waitpid(child, 0)[1], flush=True)
"""
    program = (
        "import subprocess, sys\nbystander = subprocess.Popen(['sleep', '1000'])\nprint(subprocess.run(sys.argv[1:], capture_output=True, text=True).stdout.strip())\n"
        "print(bystander.poll()); bystander.kill()"
    )
    done = subprocess.run(
        ["unshare", "-r", "-p", "-f", "--mount-proc", sys.executable, "-c", program]
        + confined.command(sys.executable, "-c", inside),
        cwd=home,
        capture_output=True,
        text=True,
        timeout=600,
    )
    if done.returncode != 0:
        pytest.skip("no space of processes of its own here: " + done.stderr)
    assert done.stdout.split() == ["9", "None"]
    assert confined.effects()["unsent_signals"] == ["SIGKILL to all processes of this machine"]


def test_a_child_that_is_not_to_be_traced_is_watched_and_ended_too(confined, home):
    done = confined.python(
        home,
        """
        import ctypes, os, time
        C = ctypes.CDLL(None)
        arguments = (ctypes.c_uint64 * 8)(0x00800000, 0, 0, 0, 17, 0, 0, 0)
        for ask in (lambda: C.syscall(56, 0x00800000 | 17, 0, 0, 0, 0), lambda: C.syscall(435, arguments, 64)):
            if ask() == 0:
                os.remove("a"); print(os.getpid(), os.path.exists("a"), flush=True); open("late", "w").close(); time.sleep(1000)
        """,
    )
    left = [line.split() for line in done.stdout.splitlines()]
    assert len(left) >= 1 and all(seen == "False" for _, seen in left), done.stderr
    for process, _ in left:
        with pytest.raises(ProcessLookupError):
            os.kill(int(process), 0)
    assert (home / "a").exists() and not (home / "late").exists()


def test_a_program_dies_with_faultline(binary, home, tmp_path):
    """However Faultline ends, by a signal that nobody hears too."""
    own = Confined(binary, tmp_path / "own")
    launcher = "import subprocess, sys; print(subprocess.Popen(sys.argv[1:], stdin=subprocess.DEVNULL).wait())"
    program = "import os, time; print(os.getpid(), flush=True); time.sleep(1000)"
    above = subprocess.Popen(
        [sys.executable, "-c", launcher, *own.command(sys.executable, "-c", program)],
        cwd=home,
        stdout=subprocess.PIPE,
        text=True,
    )
    process = int(above.stdout.readline())
    handle = os.pidfd_open(process)
    above.send_signal(signal.SIGKILL)
    above.wait()
    import select

    assert select.select([handle], [], [], 300)[0], "the program lives on"
    os.close(handle)
