"""From `pip install` to a verdict on the reader's own program, on a machine that has PyTorch and nothing of ours: in a terminal and in a notebook. How long it took is printed (pytest -s)."""

import os
import subprocess
import sys
import time
import venv

import pytest

from a_kernel import Kernel
from test_wheel import WHEELS, pytestmark  # noqa: F401

OWN = """\
import torch

net = torch.nn.Sequential(*[torch.nn.Linear(4096, 4096) for _ in range(8)]).cuda()
x = torch.randn(300_000, 4096, device="cuda")
net(x).sum().backward()
"""


@pytest.fixture
def fresh(tmp_path):
    """An environment that has just got the wheel; the clock runs from pip on."""
    folder = tmp_path / "fresh"
    venv.create(folder, with_pip=True, symlinks=True)
    began = time.monotonic()
    subprocess.run(
        [folder / "bin/python", "-m", "pip", "-q", "install", "--no-index", "--no-deps", WHEELS[-1]], check=True
    )
    yield folder
    print(f"{time.monotonic() - began:.1f} seconds from pip to the verdict")


def test_in_a_terminal(fresh, tmp_path):
    pytest.importorskip("torch")
    (tmp_path / "train.py").write_text(OWN)
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("FAULTLINE", "PYTHON"))}
    told = subprocess.run(
        [fresh / "bin/faultline", "plan", "--gpu", "T4", "--no-try", "--", sys.executable, "train.py"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=clean,
    )
    assert told.returncode == 1 and "DOES NOT FIT on Tesla T4" in told.stderr, told.stderr
    assert "fails at    train.py:5" in told.stderr, told.stderr


def test_in_a_notebook(fresh, tmp_path):
    pytest.importorskip("torch")
    pytest.importorskip("jupyter_client")
    (packages,) = fresh.glob("lib/python*/site-packages")
    kernel = Kernel(tmp_path, "", PYTHONPATH=str(packages))
    try:
        loaded = kernel.run("%load_ext faultline\nimport faultline; print(faultline.__file__)")
        assert str(packages) in loaded.text, loaded
        shown = kernel.run("%%faultline plan --gpu T4\n" + OWN)
        assert "DOES NOT FIT on Tesla T4" in shown.text and f"cell [{shown.number}], line 6" in shown.text, shown
    finally:
        kernel.close()
