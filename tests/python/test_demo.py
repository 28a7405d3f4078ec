"""faultline demo: what comes with the tool, shown in the order of its numbers, with the path of the page at the end."""

import os
import re
import shlex
import subprocess

import pytest

from common import ROOT, refusal

PARTS = ROOT / "python/faultline/demo"


@pytest.fixture
def demo(binary, tmp_path):
    def demo(*options, **environment):
        return subprocess.run(
            [binary, "demo", *options], capture_output=True, cwd=tmp_path, env={**os.environ, **environment}
        )

    return demo


def test_everything_is_shown_and_the_page_is_there(demo, tmp_path):
    done = demo("--no-plan", FAULTLINE_FORMAT="json")
    told = done.stdout.decode()
    assert done.returncode == 0, done.stderr
    assert re.findall(r"^(\d)\. ", told, re.M) == list("123456")
    for words in ("memory/out-of-memory at snap.py:22", "memory/leak", "Not shown: a plan, as was asked"):
        assert words in told, words
    assert "api/bad-free" in done.stderr.decode() and "api/bad-copy" in done.stderr.decode()
    page = told.splitlines()[-1]
    assert page == ".faultline/demo/page.html" and os.path.getsize(tmp_path / page) > 10000
    # a second one has a folder of its own
    assert demo("--no-plan").stdout.decode().splitlines()[-1] == ".faultline/demo-2/page.html"


def test_without_python_the_rest_is_shown(demo):
    done = demo("-o", "there", PATH="/nowhere")
    told = done.stdout.decode()
    assert done.returncode == 0 and "there is no python3" in told and told.endswith("\nthere/page.html\n")


def test_commands_are_shown_as_a_shell_takes_them(demo, tmp_path):
    told = demo("-o", "it's here", PATH="/nowhere").stdout.decode()
    typed = [shlex.split(line[2:]) for line in told.splitlines() if line.startswith("$ faultline ")]
    assert len(typed) == 4 and "it's here/page.html" in typed[-1], told


def test_a_folder_that_is_there_is_not_used(demo, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "x").write_text("x")
    assert "it is there already, and Faultline did not make it" in refusal(demo("-o", "mine"))
    assert [(path.name, path.read_text()) for path in (tmp_path / "mine").iterdir()] == [("x", "x")]


def test_what_comes_with_it_is_small_and_tells_of_no_machine(binary):
    assert sum(path.stat().st_size for path in PARTS.iterdir() if path.is_file()) < 200_000
    for pack in PARTS.glob("*.zip"):
        trace = subprocess.run(
            [binary, "explain", "--format", "text-trace", pack], capture_output=True, check=True
        ).stdout
        for path in re.findall(rb'"(/[^"]*)"', trace):
            assert path.startswith((b"/home/user/project", b"/usr/")) or path == os.fsencode(pack), path
