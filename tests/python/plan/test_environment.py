"""What the program finds in its environment is its user's, and processes that it starts are followed all the same; its own hard end is an end."""

import json
import os
import shlex
import subprocess
import sys

import pytest

SHOWN = ("PYTHONPATH", "MALLOC_MMAP_THRESHOLD_", "CUDA_VISIBLE_DEVICES")
TELL = (
    "import json, os, sys; print(json.dumps([[os.environ.get(n), os.getenv(n)] for n in %r] + ['faultline.plan.await_torch' in sys.modules]), flush=True)"
    % (SHOWN,)
)
# How a program starts another: each must see the same, and be followed.
STARTS = {
    "inherits": "subprocess.run([sys.executable, '-c', TELL])",
    "a copy": "subprocess.run([sys.executable, '-c', TELL], env=os.environ.copy())",
    "a dict with more": "subprocess.run([sys.executable, '-c', TELL], env={**os.environ, 'MORE': '1'})",
    "posix_spawn": "os.waitpid(os.posix_spawn(sys.executable, [sys.executable, '-c', TELL], os.environ), 0)",
    "system": "open('tell.py', 'w').write(TELL); os.system(repr(sys.executable) + ' tell.py')",
    "execve": "os.execve(sys.executable, [sys.executable, '-c', TELL], dict(os.environ))",
}


def plan(binary, folder, command, **users):
    environment = {name: value for name, value in os.environ.items() if name not in SHOWN}
    return subprocess.run(
        [binary, "plan", "--no-try", "--gpu", "T4", "--allow-writes", "--", *command],
        capture_output=True,
        text=True,
        cwd=folder,
        env={**environment, **users},
    )


@pytest.mark.parametrize(
    "users",
    [
        {},
        {"CUDA_VISIBLE_DEVICES": "1", "PYTHONPATH": "/none:/of/these"},
        {"CUDA_VISIBLE_DEVICES": "", "MALLOC_MMAP_THRESHOLD_": "1000"},
    ],
    ids=["none", "set", "empty"],
)
def test_a_program_and_what_it_starts_see_their_users_environment(binary, tmp_path, users):
    starts = "\n".join(STARTS.values())
    (tmp_path / "p.py").write_text(f"import os, subprocess, sys\nTELL = {TELL!r}\nexec(TELL)\n{starts}\n")
    done = plan(binary, tmp_path, [sys.executable, "p.py"], **users)
    told = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("[[")]
    expected = [[users.get(name)] * 2 for name in SHOWN] + [True]
    assert told == [expected] * (1 + len(STARTS)), done.stdout + done.stderr


def test_what_the_program_sets_is_what_it_and_its_children_see(binary, tmp_path):
    (tmp_path / "p.py").write_text(
        f"import os, subprocess, sys\nTELL = {TELL!r}\nos.environ['PYTHONPATH'] = '/mine'\nos.environ['CUDA_VISIBLE_DEVICES'] = '2'\n"
        f"{STARTS['inherits']}\ndel os.environ['PYTHONPATH']\nos.environ.pop('CUDA_VISIBLE_DEVICES')\n{STARTS['inherits']}\n"
    )
    done = plan(binary, tmp_path, [sys.executable, "p.py"], PYTHONPATH="/users")
    told = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("[[")]
    assert [[each[0][0], each[2][0], each[3]] for each in told] == [["/mine", "2", True], [None, None, True]], (
        done.stdout
    )


def test_what_a_script_sets_before_python_is_the_programs(binary, tmp_path):
    (tmp_path / "p.py").write_text(TELL)
    command = f"export CUDA_VISIBLE_DEVICES=3 PYTHONPATH=/first:$PYTHONPATH; exec {shlex.quote(sys.executable)} p.py"
    done = plan(binary, tmp_path, ["sh", "-c", command], PYTHONPATH="/users")
    told = json.loads(next(line for line in done.stdout.splitlines() if line.startswith("[[")))
    assert [told[0][0], told[2][0], told[3]] == ["/first:/users", "3", True]


LOOK = """import os, torch
{before}
print(torch.cuda.is_available(), torch.cuda.device_count())
x = torch.empty(20 << 28, device="cuda" if torch.cuda.is_available() else "meta")
"""


@pytest.mark.parametrize(
    ("value", "is_seen"),
    [
        ("", False),
        ("-1", False),
        ("-1,0", False),
        ("none", False),
        ("0", True),
        ("1", True),
        ("GPU-5ebe", True),
        (" 2,3", True),
    ],
)
def test_gpus_that_are_hidden_are_hidden_in_the_plan(dry_run, value, is_seen):
    ran = dry_run(LOOK.format(before=f"os.environ['CUDA_VISIBLE_DEVICES'] = {value!r}"))
    assert ran.out.startswith("True 1" if is_seen else "False 0"), ran.out + ran.err
    assert ("OutOfMemoryError" in ran.err) == is_seen
    assert ("CUDA_VISIBLE_DEVICES" in str(ran.summary["unplanned"])) != is_seen


def test_hidden_after_the_first_use_is_too_late_as_with_cuda(dry_run):
    ran = dry_run(LOOK.format(before="y = torch.ones(1, device='cuda'); os.environ['CUDA_VISIBLE_DEVICES'] = ''"))
    assert ran.out == "True 1\n" and ran.summary["unplanned"] is None


def test_a_program_that_uses_a_hidden_gpu_fails_as_it_would(dry_run):
    ran = dry_run("import os, torch\nos.environ['CUDA_VISIBLE_DEVICES'] = ''\ntorch.ones(1, device='cuda')\n")
    assert "No CUDA GPUs are available" in ran.err and "unset that variable" in ran.summary["unplanned"]["text"]


@pytest.mark.parametrize(
    "where", ["", "def f(): os._exit(STATUS)\nf()", "import atexit; atexit.register(os._exit, STATUS)"]
)
@pytest.mark.parametrize("status", [0, 3])
def test_a_hard_end_is_an_end_with_its_status(dry_run, where, status):
    end = (where or "os._exit(STATUS)").replace("STATUS", str(status))
    ran = dry_run(f"import os, torch\nx = torch.empty(1 << 28, device='cuda')\n{end}\n")
    assert ran.status == status
    assert ran.summary is not None and ran.summary["peak_allocated"] == 1 << 30


def test_a_hard_end_after_an_out_of_memory_that_was_caught(dry_run):
    ran = dry_run("""
        import os, torch
        x = torch.empty(1 << 28, device="cuda")
        try: torch.empty(20 << 28, device="cuda")
        except RuntimeError: os._exit(0)
    """)
    assert ran.status == 0 and ran.summary["ooms"] == 1 and not ran.summary["died_of_memory"]
