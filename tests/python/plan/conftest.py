import sys
from pathlib import Path

import pytest

from dry import dry_run as run

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "python"))


@pytest.fixture
def dry_run(binary, tmp_path):
    return lambda *args, **options: run(binary, tmp_path, *args, **options)
