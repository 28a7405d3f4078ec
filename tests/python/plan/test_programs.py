"""Small programs that people are told are at fault: the true verdict on each, and silence on the innocent ones."""

import json
import subprocess
from pathlib import Path

import pytest

from dry import interpreter_with

PROGRAMS = Path(__file__).resolve().parents[3] / "examples/programs"
EXPECTED = json.loads((PROGRAMS / "expected.json").read_text())


def test_every_program_has_its_verdict():
    assert sorted(EXPECTED) == sorted(path.name for path in PROGRAMS.glob("*.py"))


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_the_verdict_is_the_true_one(binary, tmp_path, name):
    framework = "tensorflow" if "tensorflow" in name else "torch"
    if framework == "torch":
        pytest.importorskip("torch")
    python = interpreter_with(framework)
    if python is None:
        pytest.skip("TensorFlow is not installed (FAULTLINE_TENSORFLOW_PYTHON names an interpreter that has it)")
    folder = tmp_path / "run"
    done = subprocess.run(
        [
            binary,
            "plan",
            "--gpu",
            "H200",
            "--no-try",
            "--seconds",
            "0",
            "-o",
            str(folder),
            "--",
            python,
            str(PROGRAMS / name),
        ],
        capture_output=True,
        text=True,
    )
    expected = EXPECTED[name]
    report = json.loads((folder / "report.json").read_text())
    found = {f["rule"]: f for f in report["findings"]}
    assert len(found) == len(report["findings"]), report["findings"]
    places = {rule: f"{Path(f['location']['file']).name}:{f['location']['line']}" for rule, f in found.items()}
    assert places == {**expected["finds"], **expected.get("notes", {})}, done.stderr
    assert (report["plan"]["verdict"] == "fits") == expected["fits"]
    assert done.returncode == (1 if expected["finds"] else 0)
    if "error" in expected:  # of the program's own, which is not about memory
        assert report["plan"]["exception"]["type"] == expected["error"]
    if "cause" in expected:
        assert found["memory/out-of-memory"]["cause"] == expected["cause"]
