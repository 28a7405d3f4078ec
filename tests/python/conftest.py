import signal
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))
from common import FAULTLINE  # noqa: E402

# Programs that are started here are told of signals as in a terminal, also where the tests run under nohup or in the
# background of a shell, which ignore some, and so would all that they start.
signal.signal(signal.SIGHUP, signal.SIG_DFL)
signal.signal(signal.SIGQUIT, signal.SIG_DFL)
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def binary():
    path = Path(FAULTLINE).resolve()
    assert path.exists(), f"{path} is not there: run `make build`, or name the binary in FAULTLINE"
    return str(path)
