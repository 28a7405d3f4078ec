"""faultline.plan(function, gpu): the plan of a function of this very process."""
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

pytest.importorskip("torch")
ROOT = Path(__file__).resolve().parents[3]


def run(program, binary):
    return subprocess.run([sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True,
                          env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(ROOT / "python"), "FAULTLINE": binary, "HOME": "/tmp"})


def test_a_function_is_planned_and_the_process_is_left_as_it_was(binary):
    done = run("""
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
    """, binary)
    assert done.returncode == 0, done.stderr


def test_a_gpu_that_is_not_known_is_an_error(binary):
    done = run("""
        import faultline
        try:
            faultline.plan(lambda: None, gpu="T5")
        except ValueError as problem:
            print(problem)
    """, binary)
    assert "'T5' is no GPU that Faultline knows" in done.stdout, done.stderr
