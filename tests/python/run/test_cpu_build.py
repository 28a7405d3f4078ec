"""Frameworks that were built for the CPU alone never call the driver: the run says so, and what to do instead."""

import shlex
import subprocess
import sys

import pytest

PLAIN = "the program made none, or it reaches the driver in a way that goes past the recorder"


def run(binary, folder, program, **extra):
    (folder / "fit.py").write_text(program)
    done = subprocess.run(
        [binary, "run", "--gpu", "virtual", "-o", "left", "--", sys.executable, "fit.py"],
        cwd=folder,
        capture_output=True,
        text=True,
        **extra,
    )
    told = subprocess.run([binary, "explain", "left"], cwd=folder, capture_output=True, text=True).stderr
    return done.stderr, told


def package(folder, name, body):
    (folder / name).mkdir()
    (folder / name / "__init__.py").write_text(body)


TORCH = "__version__ = '9.9+cpu'\nclass version:\n    cuda = {cuda}\n    hip = None\n"
FLOW = "__version__ = '9.9'\nclass sysconfig:\n    get_build_info = staticmethod(lambda: {{'is_cuda_build': {cuda}}})\n"


@pytest.mark.parametrize(
    "name, body, built, words",
    (
        ("torch", TORCH, "None", "PyTorch 9.9+cpu, built for the CPU alone"),
        ("torch", TORCH, "'12.8'", PLAIN),
        ("tensorflow", FLOW, "False", "TensorFlow 9.9, built for the CPU alone"),
        ("tensorflow", FLOW, "True", PLAIN),
        ("nothing", "{cuda}", "1", PLAIN),
    ),
)
def test_a_build_for_the_cpu_is_named(binary, tmp_path, name, body, built, words):
    package(tmp_path, name, body.format(cuda=built))
    said, again = run(binary, tmp_path, f"import {name}\n")
    assert words in said
    assert (words in again) == (words is not PLAIN)
    assert (f"faultline plan --gpu T4 -- {shlex.quote(sys.executable)} fit.py" in said) == (words is not PLAIN)


def test_pytorch_itself(binary, tmp_path):
    torch = pytest.importorskip("torch")
    if torch.version.cuda is not None:
        pytest.skip("this PyTorch has CUDA")
    said, _ = run(binary, tmp_path, "import torch\ntorch.zeros(3)\n")
    assert f"PyTorch {torch.__version__}, built for the CPU alone" in said
