#!/usr/bin/env python3
"""Tests with marks of the pytest plugin on a machine with a GPU: each is planned and then run for real, and what must come of it is known beforehand.

    python3 scripts/device/marked_tests.py [--faultline build/faultline]

PyTorch with CUDA and pytest must be there; half a minute. Beside each budget PyTorch's own peak is printed, as the real run had it. Exit status 1 if something came otherwise.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TESTS = '''
import pytest, torch

GIB = 1 << 30
KEPT = []


@pytest.fixture(scope="session")
def shared():
    return torch.ones(1024, 1024, device="cuda")


@pytest.fixture
def layer():
    return torch.nn.Linear(4096, 4096, device="cuda")


@pytest.mark.gpu_memory("2GiB")
def test_fits(layer):
    torch.cuda.reset_peak_memory_stats()
    x = layer(torch.randn(8192, 4096, device="cuda"))
    x.sum().backward()
    assert torch.isfinite(layer.weight.grad).all()
    print("PEAK", torch.cuda.max_memory_allocated())


@pytest.mark.gpu_memory("1GiB")
def test_over(layer):
    torch.empty(2 * GIB, dtype=torch.uint8, device="cuda")


@pytest.mark.gpu_memory("2GiB")
def test_fails_only_for_real(layer):
    assert torch.arange(1 << 20, device="cuda").sum().item() == -1


@pytest.mark.no_gpu_leak
def test_leaks(layer):
    KEPT.append(layer(torch.randn(256, 4096, device="cuda")))


@pytest.mark.no_gpu_leak
def test_does_not_leak(layer):
    layer(torch.randn(256, 4096, device="cuda")).sum().backward()


def test_without_a_mark(shared):
    assert shared.is_cuda and shared.sum().item() == 1024 * 1024


@pytest.mark.gpu_memory("2GiB")
def test_after_cuda_has_begun(layer):
    layer(torch.randn(8, 4096, device="cuda"))


@pytest.mark.gpu_memory("2GiB")
def test_with_what_another_test_made_for_real(shared):
    shared + 1
'''
# what must come of each; None: only that it ends, and what it says is printed
EXPECTED = {
    "test_fits": ("passed", ""),
    "test_over": ("failed", "over its budget of 1.00 GiB"),
    "test_fails_only_for_real": ("failed", ""),
    "test_leaks": ("failed", "more after each of 10 runs"),
    # a backward pass was run for real by then
    "test_does_not_leak": ("failed", "could not be judged"),
    "test_without_a_mark": ("passed", ""),
    "test_after_cuda_has_begun": ("passed", ""),
    "test_with_what_another_test_made_for_real": (None, ""),
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--faultline", default=str(ROOT / "build/faultline"))
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "test_marked.py").write_text(TESTS)
        environment = {**os.environ, "PYTHONPATH": str(ROOT / "python"), "FAULTLINE": arguments.faultline}
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-p", "faultline.pytest_plugin", "-p", "no:cacheprovider", "-rA", "-v"]
            + ["--faultline-summary", "test_marked.py"],
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
        )
    print(done.stdout, done.stderr)
    wrong = 0
    for name, (outcome, words) in EXPECTED.items():
        came = re.search(rf"^test_marked\.py::{name} (\w+)", done.stdout, re.MULTILINE)
        came = came[1].lower() if came else "nothing"
        block = re.search(rf"^_+ {name} _+\n(.*?)(?=^_{{4,}}|^={{4,}})", done.stdout, re.MULTILINE | re.DOTALL)
        right = came == outcome if outcome else came in ("passed", "failed")
        right = right and (not words or block is not None and words in block[1])
        wrong += not right
        print(f"{'right' if right else 'WRONG'}  {name}: {came}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
