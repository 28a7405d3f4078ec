"""faultline rule: the pages that reports name, from the program itself."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from common import FAULTLINE, ROOT

PAGES = ROOT / "docs" / "rules"
NAMES = sorted(page.stem.replace("-", "/", 1) for page in PAGES.glob("*.md") if page.stem != "README")


def printed(*words, program=FAULTLINE, columns=80, **environment):
    environment = {"LC_ALL": "C.UTF-8", "COLUMNS": str(columns), **environment}
    return subprocess.run([program, "rule", *words], capture_output=True, text=True, env=environment)


def test_alone_it_lists_every_rule():
    done = printed()
    listed = [line.split()[0] for line in done.stdout.splitlines() if line.startswith("  ") and line[2] != " "]
    assert done.returncode == 0 and sorted(listed) == NAMES
    spoken = subprocess.run([FAULTLINE, "--rules"], capture_output=True, text=True, check=True).stdout.split()
    assert set(spoken) <= set(listed)


@pytest.mark.parametrize("name", NAMES)
def test_a_page_has_all_that_is_written_in_it_and_fits_the_width(name):
    done = printed(name)
    text = (PAGES / f"{name.replace('/', '-')}.md").read_text()
    assert done.returncode == 0 and done.stdout.startswith(name + "\n")
    headings = [line.lstrip("# ") for line in text.splitlines() if line.startswith("## ")]
    assert headings and [line for line in done.stdout.splitlines() if line in headings] == headings
    # every word of its prose, in order: nothing is cut
    prose = "\n".join(part for at, part in enumerate(text.split("```")) if at % 2 == 0)
    wanted = re.findall(r"[a-z]{4,}", re.sub(r"\]\([^)]*\)", "", prose))
    given = iter(re.findall(r"[a-z]{4,}", done.stdout))
    assert all(word in given for word in wanted)
    examples = "\n".join(part for at, part in enumerate(text.split("```")) if at % 2 == 1)
    too_long = [line for line in done.stdout.splitlines() if len(line) > 80 and line.strip() not in examples]
    assert not too_long and "](" not in done.stdout.replace(examples, "")


@pytest.mark.parametrize("name", ["leak", "memory-leak", "docs/rules/memory-leak.md", "MEMORY/LEAK"])
def test_a_rule_is_known_by_what_people_call_it(name):
    assert printed(name).stdout == printed("memory/leak").stdout


def test_a_group_is_listed():
    done = printed("memory")
    listed = [line.split()[0] for line in done.stdout.splitlines() if line.startswith("  ") and line[2] != " "]
    assert done.returncode == 0 and sorted(listed) == [name for name in NAMES if name.startswith("memory/")]


def test_a_name_that_is_no_rule_gets_the_nearest():
    done = printed("memory/leek")
    assert done.returncode == 2 and not done.stdout
    assert done.stderr == "faultline: there is no rule memory/leek; the nearest is memory/leak.\n"
    assert printed("nonsense").stderr == "faultline: there is no rule nonsense; faultline rule lists them.\n"


def test_the_program_alone_has_the_pages(tmp_path):
    alone = tmp_path / "faultline"
    shutil.copy2(FAULTLINE, alone)
    assert printed("leak", program=alone).stdout == printed("leak").stdout
    fixture = ROOT / "tests" / "golden" / "memory-leak"
    recording = sorted(Path(fixture).glob("*/trace.txt"))[0]
    report = subprocess.run([alone, "explain", recording], capture_output=True, text=True, env={"COLUMNS": "60"})
    assert "faultline rule memory/leak\n" in report.stdout and "docs/rules" not in report.stdout


def test_letters_that_a_terminal_lacks_are_spelled():
    assert printed("memory/out-of-memory", LC_ALL="C").stdout.isascii()


EXAMPLES = [
    pytest.param(*found, id=page.stem)
    for page in sorted(PAGES.glob("*.md"))
    for found in re.findall(r"`faultline explain (-[^`]*)`[^\n]*\n\n```\n(.*?)```", page.read_text(), re.DOTALL)
]


@pytest.mark.parametrize(("words", "shown"), EXAMPLES)
def test_an_example_is_what_is_printed(words, shown):
    """A stretch of it, from the finding's first line on."""
    done = subprocess.run(
        [FAULTLINE, "explain", *words.split()],
        cwd=ROOT,
        capture_output=True,
        text=True,
        env={"LC_ALL": "C.UTF-8", "COLUMNS": "80"},
    )
    assert done.returncode in (0, 1), done.stderr
    assert shown in done.stdout, done.stdout


def test_there_are_examples():
    assert len(EXAMPLES) >= 10
