"""faultline.__version__ is what `faultline --version` prints, in a source tree; test_wheel.py asks the same of what is installed."""

import os
import subprocess
import sys

from common import ROOT


def asked(*lines, **environment):
    return subprocess.run(
        [sys.executable, "-c", "\n".join(lines)],
        capture_output=True,
        text=True,
        cwd="/",
        env={**os.environ, **environment},
    )


def test_the_package_and_the_tool_have_one_version(binary):
    told = subprocess.run([binary, "--version"], capture_output=True, text=True, check=True).stdout
    ours = asked("import faultline", "print('faultline', faultline.__version__)", PYTHONPATH=str(ROOT / "python"))
    assert ours.stdout == told, ours.stderr
