"""The wheel that `make wheel` leaves in dist/: installed into a fresh environment, used there, and taken out again."""

import ast
import json
import os
import subprocess
import sys
import venv
import zipfile

import pytest

from common import PROGRAMS, RECORDINGS, ROOT

WHEELS = sorted((ROOT / "dist").glob("faultline-*.whl"))
pytestmark = [
    pytest.mark.xdist_group("wheel"),
    pytest.mark.skipif(
        not WHEELS, reason="there is no wheel in dist/: make wheel makes it, and make test before the tests"
    ),
]


def files_below(folder):
    """Not folders: pip leaves those of share/, which others use too."""
    found = {path.relative_to(folder) for path in folder.rglob("*") if path.is_file() or path.is_symlink()}
    return {path for path in found if "__pycache__" not in path.parts}


@pytest.fixture(scope="module")
def empty(tmp_path_factory):
    """An environment with nothing but pip, and what is in it."""
    folder = tmp_path_factory.mktemp("with space") / "env"
    venv.create(folder, with_pip=True, symlinks=True)
    return folder, files_below(folder)


@pytest.fixture(scope="module")
def installed(empty):
    folder, _ = empty
    pip = [folder / "bin/python", "-m", "pip", "-q", "--disable-pip-version-check"]
    subprocess.run([*pip, "install", "--no-index", "--no-deps", WHEELS[-1]], check=True)
    return folder


@pytest.fixture
def faultline(installed, tmp_path):
    def call(*arguments, **more):
        clean = {name: value for name, value in os.environ.items() if not name.startswith(("FAULTLINE", "PYTHON"))}
        return subprocess.run(
            [installed / "bin/faultline", *map(str, arguments)],
            capture_output=True,
            text=True,
            cwd=tmp_path,
            env={**clean, "PATH": f"{installed / 'bin'}:/usr/bin:/bin"},
            **more,
        )

    return call


def test_it_is_one_small_file_for_every_python():
    (wheel,) = WHEELS
    assert wheel.name.endswith("-py3-none-manylinux_2_35_x86_64.whl")
    assert wheel.stat().st_size <= 15 << 20
    names = zipfile.ZipFile(wheel).namelist()
    packed = {name for name in names if name.endswith(".py")}
    assert packed == {
        f"faultline/{path.relative_to(ROOT / 'python/faultline')}" for path in (ROOT / "python/faultline").rglob("*.py")
    }
    assert not [name for name in names if "__pycache__" in name or "/tests/" in name]
    assert {"faultline/docs/rules/memory-leak.md", "faultline/lib/capture/libcuda.so.1"} <= set(names)
    assert {"faultline/demo/gpt_oom.pack.zip", "faultline/demo/leak.pack.zip"} <= set(names)


def test_what_needs_no_framework_works(faultline, installed):
    assert faultline("--version").stdout.startswith("faultline ")
    told = faultline("explain", RECORDINGS / "gpt_oom.pickle.xz")
    assert told.returncode == 1 and "memory/out-of-memory at snap.py:22" in told.stdout
    assert "faultline rule memory/out-of-memory" in told.stdout
    (page,) = installed.glob("lib/python*/site-packages/faultline/docs/rules/memory-out-of-memory.md")
    assert faultline("rule", "memory/out-of-memory").stdout.splitlines()[0].strip("# ") in page.read_text()
    told = faultline("demo", "--no-plan")
    assert told.returncode == 0 and told.stdout.endswith(".faultline/demo/page.html\n"), told.stderr
    told = faultline("doctor", "--format", "json")
    assert told.returncode in (0, 1) and json.loads(told.stdout) and str(installed) in told.stdout
    told = faultline("run", "--gpu", "virtual:1GiB", "-o", "left", "--", PROGRAMS / "double_free")
    assert "api/bad-free" in told.stderr, told.stderr
    assert (installed / "share/man/man1/faultline.1").read_text().startswith(".TH FAULTLINE 1")
    assert "complete -o filenames" in (installed / "share/bash-completion/completions/faultline").read_text()
    by_module = subprocess.run(
        [installed / "bin/python", "-m", "faultline", "--version"], capture_output=True, text=True
    )
    assert by_module.stdout == faultline("--version").stdout
    version = "import faultline; print('faultline', faultline.__version__)"
    of_package = subprocess.run([installed / "bin/python", "-c", version], capture_output=True, text=True, cwd="/")
    assert of_package.stdout == by_module.stdout, of_package.stderr


def test_pytest_finds_the_plugin_by_itself(installed, tmp_path):
    (packages,) = installed.glob("lib/python*/site-packages")
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("FAULTLINE", "PYTEST"))}
    told = subprocess.run(
        [sys.executable, "-m", "pytest", "--markers"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**clean, "PYTHONPATH": str(packages)},
    )
    assert "@pytest.mark.gpu_memory(" in told.stdout and "@pytest.mark.no_gpu_leak(" in told.stdout, told


def test_a_program_of_another_environment_is_planned(faultline, installed, tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        "import sys, torch\nprint(sys.path)\nx = torch.zeros(1 << 30, device='cuda')\ny = torch.zeros(1 << 33, device='cuda')\n"
    )
    told = faultline("plan", "--gpu", "T4", "--no-try", "-o", "left", "--", sys.executable, program)
    assert told.returncode == 1 and "program.py:4" in told.stderr, told.stdout + told.stderr
    ours = [entry for entry in ast.literal_eval(told.stdout.splitlines()[0]) if entry.startswith(str(installed))]
    assert all(entry.endswith("/faultline/_inject") for entry in ours), "its packages are not the program's"


def test_taken_out_it_leaves_nothing(empty, installed, faultline):
    faultline("explain", RECORDINGS / "gpt_oom.pickle.xz")
    folder, before = empty
    pip = [folder / "bin/python", "-m", "pip", "-q", "--disable-pip-version-check"]
    subprocess.run([*pip, "uninstall", "-y", "faultline"], check=True)
    assert files_below(folder) == before
