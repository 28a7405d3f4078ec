"""A PyTorch that is broken, half installed, too old or of an unknown version: a sentence, and no verdict."""

import os
import signal
import subprocess
import sys

import pytest

# the package torch of a program → words of the answer
BROKEN = {
    "raises": (
        "raise ImportError('libcudart.so.12: cannot open shared object file')",
        "ImportError: libcudart.so.12: cannot open",
    ),
    "half installed": ("from torch import nn", "could not be imported by"),
    "no Python": ("def (:", "SyntaxError"),
    "dies": ("import os, signal; os.kill(os.getpid(), signal.SIGBUS)", "the process ended in it"),
    "a folder of its name": ("__version__ = '2.8.0'", "is not whole, or not as any release"),
    "old": ("__version__ = '1.13.1+cu117'", "PyTorch 1.13.1+cu117 is older than 2.1"),
}


def plan(binary, folder, program: str):
    (folder / "program.py").write_text(program)
    return subprocess.run(
        [binary, "plan", "--gpu", "T4", "-o", str(folder / "run"), "--", sys.executable, "program.py"],
        cwd=folder,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
    )


@pytest.mark.parametrize("content, words", BROKEN.values(), ids=BROKEN)
def test_a_broken_pytorch_is_called_so(binary, tmp_path, content, words):
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "__init__.py").write_text(content + "\n")
    done = plan(binary, tmp_path, "import torch\ntorch.zeros(8, device='cuda')\n")
    assert done.returncode == 2, done.stderr
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("faultline: ") and words in last, done.stderr
    assert "FITS" not in done.stdout + done.stderr and "_import_watch" not in done.stderr


def test_one_that_is_interrupted_is_not_called_broken(binary, tmp_path):
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "__init__.py").write_text("import time\nprint('ready', flush=True)\ntime.sleep(600)\n")
    (tmp_path / "program.py").write_text("import torch\n")
    process = subprocess.Popen(
        [binary, "plan", "--gpu", "T4", "-o", "run", "--", sys.executable, "program.py"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stdout.readline() == "ready\n"
    os.killpg(process.pid, signal.SIGINT)
    _, errors = process.communicate()
    last = errors.strip().splitlines()[-1]
    assert process.returncode == 2 and "PyTorch was still being imported; it was interrupted" in last, errors
    assert "broken" not in last and "import torch" not in last


def test_one_that_is_not_installed_is_called_so_also_where_the_program_goes_on(binary, tmp_path):
    hidden = "import sys\nsys.path[:] = [p for p in sys.path if 'site-packages' not in p]\n"
    done = plan(binary, tmp_path, hidden + "try:\n    import torch\nexcept ImportError:\n    print('without')\n")
    assert done.returncode == 2 and "without" in done.stdout
    assert "PyTorch is not installed for " in done.stderr.strip().splitlines()[-1]


@pytest.mark.parametrize(
    "version, words",
    [
        ("2.99.0a0+gitabc", "newer than {newest}, the newest that is known"),
        ("unknown", "which is no release: it was planned as {newest}"),
        ("2.13.1+cu130", ""),
        ("2.1.2", ""),
    ],
)
def test_a_release_that_is_not_known_is_said(monkeypatch, version, words):
    torch = pytest.importorskip("torch")
    from faultline.plan.torch.release import releases

    words = words.format(newest=".".join(map(str, releases.NEWEST)))
    monkeypatch.setattr(torch, "__version__", version)
    assert words in releases.unknown() and bool(releases.unknown()) == bool(words)
    found = releases.installed()
    assert found.since(13) == (version not in ("2.1.2",))
