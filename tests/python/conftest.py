import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))
from common import FAULTLINE  # noqa: E402


@pytest.fixture(scope="session")
def binary():
    path = Path(FAULTLINE).resolve()
    assert path.exists(), f"{path} is not there: run `make build`, or name the binary in FAULTLINE"
    return str(path)
