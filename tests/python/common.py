"""What tests of several files share: the program under test ($FAULTLINE, or the one that `make build` leaves in build/), where things lie, and what a refusal is."""

import json
import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FAULTLINE = os.path.abspath(os.environ.get("FAULTLINE", ROOT / "build" / "faultline"))
PROGRAMS = Path(FAULTLINE).parent / "programs"
RECORDINGS = ROOT / "tests" / "fixtures" / "torch"
SCHEMA = json.loads((ROOT / "docs" / "report.schema.json").read_text())


def write(path, content):
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def refusal(done):
    """Of a call that ended with status 2 and nothing on standard output: the one line that says why."""
    sentence = done.stderr.decode()
    assert done.returncode == 2 and not done.stdout, sentence
    assert sentence.startswith("faultline: ") and sentence.endswith(".\n") and sentence.count("\n") == 1, sentence
    return sentence
