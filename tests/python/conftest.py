"""The binary under test: $FAULTLINE, or the one that `make build` leaves in build/."""
import os
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(Path(__file__).resolve().parent))


@pytest.fixture(scope="session")
def binary():
    path = Path(os.environ.get("FAULTLINE", ROOT / "build" / "faultline")).resolve()
    assert path.exists(), f"{path} is not there: run `make build`, or name the binary in FAULTLINE"
    return str(path)
