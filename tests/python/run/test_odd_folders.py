"""Faultline in folders with unusual names: LD_PRELOAD and PYTHONPATH cannot hold them all, and a name in a path says nothing about whose a file is."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from common import ROOT


@pytest.fixture(scope="module", params=["with a space", "with:colon"])
def installed(request, binary, tmp_path_factory):
    """Faultline as it lies after a build, in a folder of this name; the folder, and its program."""
    folder = tmp_path_factory.mktemp("installed") / request.param / "faultline"
    build = Path(binary).parent
    for part in (
        "faultline",
        "libfaultline_dryrun.so",
        "capture/libcuda.so.1",
        "vgpu/libfaultline_vgpu.so",
        "programs/double_free",
    ):
        (folder / "build" / part).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(build / part, folder / "build" / part)
    shutil.copytree(ROOT / "python", folder / "python", ignore=shutil.ignore_patterns("__pycache__"))
    return folder


def run(installed, into, *command, **more):
    environment = {**os.environ, "TMPDIR": str(into.parent), **more}
    done = subprocess.run(
        [installed / "build/faultline", "run", "--gpu", "virtual:1GiB", "-o", str(into), "--", *command],
        capture_output=True,
        text=True,
        env=environment,
    )
    return done, json.loads((into / "report.json").read_text()) if (into / "report.json").exists() else None


@pytest.mark.parametrize("into", ["run", "run in here:there"])
def test_a_program_is_recorded_as_anywhere(installed, tmp_path, into):
    done, report = run(installed, tmp_path / into, installed / "build/programs/double_free")
    assert (
        done.returncode == 0 and "nothing is recorded" not in done.stderr and "cannot be preloaded" not in done.stderr
    ), done.stderr
    assert [finding["rule"] for finding in report["findings"]] == ["api/bad-free"]


def test_the_users_own_preloaded_library_stays_first(installed, tmp_path):
    shown = "import os; print(os.environ['LD_PRELOAD'])"
    done, _ = run(installed, tmp_path / "run", sys.executable, "-c", shown, LD_PRELOAD="libm.so.6")
    assert done.stdout.startswith("libm.so.6:") and done.stdout.count(":") == 1 and " " not in done.stdout, done.stdout


def test_python_programs_find_faultlines_part(installed, tmp_path):
    """A program right beside that part, in a folder whose name begins like its own, is still the user's."""
    program = installed / "python" / "faultline-course" / "train.py"
    program.parent.mkdir(exist_ok=True)
    (program.parent / "cupy.py").write_text("__version__ = '1'\n")
    program.write_text("import cupy\n\ndef faultline():\n    raise ValueError('here')\n\nfaultline()\n")
    done, _ = run(installed, tmp_path / "run", sys.executable, str(program))
    assert done.returncode == 1 and "ValueError: here" in done.stderr, done.stderr
    known = json.loads(next((tmp_path / "run").glob("process-*.json")).read_text())
    assert (
        known["exception"]["at"]["line"] == 4
        and known["exception"]["at"]["file"] == str(program)
        and known["exception"]["at"]["own"]
    )


def test_plan_finds_it_too(installed, tmp_path):
    shown = "import sys; print(sys.modules['faultline'].__file__)"
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    done = subprocess.run(
        [
            installed / "build/faultline",
            "plan",
            "--gpu",
            "T4",
            "-o",
            tmp_path / "run",
            "--",
            sys.executable,
            "-c",
            shown,
        ],
        capture_output=True,
        text=True,
        env=environment,
    )
    found = [line for line in (done.stdout + done.stderr).splitlines() if line.endswith("faultline/__init__.py")]
    assert found and os.path.realpath(found[0]).startswith(str(installed.resolve())), done.stderr


def test_doctor_finds_the_recorder_in_order(installed, tmp_path):
    done = subprocess.run(
        [installed / "build/faultline", "doctor", "--format", "json"],
        capture_output=True,
        text=True,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    recorder = next(ability for ability in json.loads(done.stdout)["abilities"] if ability["name"] == "recorder")
    assert recorder["mark"] == "ok", recorder
