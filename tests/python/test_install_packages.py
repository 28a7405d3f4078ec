"""scripts/install_packages.sh as an ordinary user: it asks for root only when a package is missing, and says in one sentence what it cannot do."""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

SCRIPT = (Path(__file__).resolve().parents[2] / "scripts/install_packages.sh").read_text()
pytestmark = pytest.mark.skipif(shutil.which("dpkg-query") is None, reason="not a Debian system")


@pytest.fixture
def install():
    """A run with nothing on the path but what is named; `sudo`: a script that stands in for it, for nothing may be installed here."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        for tool in ("dpkg-query", "env", "grep", "id", "sh"):
            os.symlink(shutil.which(tool), Path(folder, tool))

        def install(*packages, sudo=None):
            if sudo is not None:
                Path(folder, "sudo").write_text("#!/bin/sh\n" + sudo)
                os.chmod(Path(folder, "sudo"), 0o755)
            ordinary = {"user": 65534, "group": 65534, "extra_groups": []} if os.getuid() == 0 else {}
            return subprocess.run(
                [shutil.which("sh"), "-s", "--", *packages],
                input=SCRIPT,
                capture_output=True,
                text=True,
                cwd="/",
                env={"PATH": folder},
                **ordinary,
            )

        yield install


def test_when_nothing_is_missing_nobody_is_asked(install):
    done = install("dpkg", "base-files", sudo="echo asked >&2; exit 1")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_without_sudo_one_sentence_names_what_is_missing(install):
    done = install("dpkg", "no-such-package", "nor-this")
    assert (done.returncode, done.stdout) == (1, "")
    assert (
        done.stderr
        == "These Debian packages are missing and only root can install them, as there is no sudo here: apt-get install no-such-package nor-this\n"
    )


def test_a_sudo_that_refuses_is_asked_once(install):
    done = install("no-such-package", sudo="echo refused >&2; exit 1")
    assert (done.returncode, done.stdout) == (1, "")
    assert (
        done.stderr
        == "refused\nThese Debian packages are missing and could not be installed: apt-get install no-such-package\n"
    )


def test_only_what_is_missing_is_installed(install):
    done = install("dpkg", "no-such-package", sudo='echo "$@" >&2')
    assert (done.returncode, done.stdout) == (0, "installing: no-such-package\n")
    asked = done.stderr.splitlines()
    assert (
        len(asked) == 3
        and asked[1].endswith("update")
        and asked[2].endswith("install -y --no-install-recommends no-such-package")
    )
