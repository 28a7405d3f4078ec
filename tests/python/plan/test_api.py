"""faultline.plan(function, gpu): the plan of a function of this very process."""

import subprocess
import sys
import textwrap

import pytest

from common import ROOT

pytest.importorskip("torch")


def run(program, binary):
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        capture_output=True,
        text=True,
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(ROOT / "python"), "FAULTLINE": binary, "HOME": "/tmp"},
    )


def test_a_function_is_planned_and_the_process_is_left_as_it_was(binary):
    done = run(
        """
        import faultline, torch
        def train(layers):
            model = torch.nn.Sequential(*[torch.nn.Linear(8192, 8192) for _ in range(layers)]).cuda()
            optimizer = torch.optim.Adam(model.parameters())
            model(torch.randn(64, 8192, device="cuda")).sum().backward()
            optimizer.step()
        small, large = faultline.plan(lambda: train(4), gpu="T4"), faultline.plan(lambda: train(20), gpu="T4")
        assert small.fits is True and large.fits is False and large.needed_bytes > large.capacity_bytes > small.needed_bytes > 16 * 8192 * 8192 * 4
        assert large.gpu == "Tesla T4" and "DOES NOT FIT" in str(large) and any(f["rule"] == "memory/out-of-memory" for f in large.report["findings"])
        assert not torch.cuda.is_available() and torch.save.__module__ == "torch.serialization"
    """,
        binary,
    )
    assert done.returncode == 0, done.stderr


def test_the_text_tells_of_the_function_and_of_no_folder(binary):
    done = run(
        """
        import faultline, os, sys, torch
        def train():
            torch.empty(99, device="cuda")
        plan = faultline.plan(train, gpu="T4")
        assert "command     function train\\n" in str(plan) and "_stand_in" not in str(plan) and "Kept in" not in str(plan) and "/tmp/" not in str(plan), plan
        assert plan.report["plan"]["command"] == ["function", "train"] and plan.report["plan"]["folder"] == ""
    """,
        binary,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "script, outcome",
    [
        ("head -c 1000000 /dev/zero >&2", "the plan could not be made"),  # more than a pipe holds
        (
            """for last; do :; done; exec "$PYTHON" -c '
import socket, sys, time
one = socket.socket(socket.AF_UNIX); one.connect(sys.argv[1]); one.sendall(b"/nowhere\\n"); one.close(); time.sleep(1)
two = socket.socket(socket.AF_UNIX); two.connect(sys.argv[1]); two.close(); time.sleep(1); sys.exit("gone")
' "$last" """,
            "gone",
        ),  # who asked does not wait for the answer
    ],
)
def test_whatever_the_tool_does_the_caller_gets_an_answer(tmp_path, script, outcome):
    tool = tmp_path / "faultline"
    tool.write_text("#!/bin/sh\n" + script)
    tool.chmod(0o755)
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            textwrap.dedent(
                """
        import faultline.api
        faultline.api.find_binary = lambda: %r
        try:
            faultline.plan(lambda: None, gpu="T4")
        except ValueError as problem:
            print(str(problem).strip("\\0"))
    """
                % str(tool)
            ),
        ],
        capture_output=True,
        text=True,
        timeout=600,
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(ROOT / "python"), "PYTHON": sys.executable},
    )
    assert done.returncode == 0, done.stderr
    assert outcome in done.stdout, (done.stdout, done.stderr)


def test_a_gpu_that_is_not_known_is_an_error(binary):
    done = run(
        """
        import faultline
        try:
            faultline.plan(lambda: None, gpu="T5")
        except ValueError as problem:
            print(problem)
    """,
        binary,
    )
    assert "'T5' is no GPU that Faultline knows" in done.stdout, done.stderr


@pytest.mark.parametrize(
    "end, fits", [("sys.exit(0)", True), ("sys.exit()", True), ("sys.exit(3)", None), ("sys.exit('no data')", None)]
)
def test_a_function_that_exits_with_a_status_is_no_fit(binary, end, fits):
    done = run(
        f"""
        import faultline, sys, torch
        def train():
            torch.empty(99, device="cuda")
            {end}
        plan = faultline.plan(train, gpu="T4")
        assert plan.fits is {fits}, plan
    """,
        binary,
    )
    assert done.returncode == 0, done.stderr
