"""Every sentence that the fixtures make the tool print, in one file to read (build/sentences.txt); none uses a phrase that docs/words.md avoids."""

import os
import re
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from common import FAULTLINE, ROOT

SENTENCES = Path(FAULTLINE).parent / "sentences.txt"
FIXTURES = ROOT / "tests" / "fixtures"
LARGEST, MANY = 4 << 20, 16
LENGTHS = ((), ("-v",), ("-vv",))


def inputs():
    """All that explain takes there; what is an answer to compare with, or one of a case's several files, is left to its own test."""
    for folder in (FIXTURES, ROOT / "tests" / "golden"):
        for path in sorted(folder.rglob("*")):
            if path.is_file() and path.name not in ("expect.json", "README.md") and path.stat().st_size < LARGEST:
                yield path


def pages(paths, *options):
    done = subprocess.run(
        [FAULTLINE, "explain", *options, *map(str, paths)],
        capture_output=True,
        text=True,
        errors="replace",
        env={
            **os.environ,
            "COLUMNS": "120",
            "LC_ALL": "C.UTF-8",
            "FAULTLINE_FORMAT": "terminal",
            "FAULTLINE_VERBOSE": "",
        },
        timeout=600,
        check=False,
    )
    return done.stdout + done.stderr


def sentences_of(text):
    """Rows whose text goes on below are joined; numbers are #, so that one sentence is told once."""
    joined = ""
    for line in text.splitlines():
        goes_on = line.startswith("  ") and not re.match(r"  \S.{0,9}  +\S|  [✔✘·] ", line) and joined
        joined += (" " if goes_on else "\n") + line.strip()
    for row in joined.splitlines():
        row = re.sub(r"^(\w[\w ]{0,10}\w:?)  +", "", row)
        for sentence in re.split(r"(?<=[.:;])\s+(?=[A-Z(])", re.sub(r"\s+", " ", row)):
            yield re.sub(r"\d[\d,.]*", "#", sentence).strip()


def avoided():
    """The right column of the table; what has a remark in brackets depends on what it is said of, and is left to readers."""
    rows = re.findall(r"^\| .* \| (.*) \|$", (ROOT / "docs/words.md").read_text(), re.MULTILINE)
    for row in rows:
        if row.strip() in ("instead of",) or set(row) <= set("-| "):
            continue
        yield from (phrase.strip() for phrase in row.split(",") if "(" not in row)


@pytest.fixture(scope="module")
def sentences():
    told, all_of = {}, list(inputs())
    work = [(all_of[at : at + MANY], length) for at in range(0, len(all_of), MANY) for length in LENGTHS]
    with ThreadPoolExecutor(2) as pool:
        for (paths, length), text in zip(work, pool.map(lambda one: pages(one[0], *one[1]), work), strict=True):
            for sentence in sentences_of(text):
                told.setdefault(sentence, (paths, length))
    SENTENCES.write_text("".join(f"{sentence}\n" for sentence in sorted(told) if " " in sentence))
    return told


def test_there_is_much_to_read(sentences):
    assert len(sentences) > 2000 and SENTENCES.stat().st_size > 100_000


# Still said by rules, whose sentences are being gone through; a phrase leaves this list when none of them says it.
STILL_SAID = {
    "found no memory",
    "memory of the host",
    "the host's memory",
    "wanted",
    "was ended",
    "were asked for",
    "what speaks for and against each",
}


def own_uses(sentences, phrase):
    """Where a phrase is used and the input itself does not say it."""
    wanted = re.compile(rf"\b{re.escape(re.sub(chr(92) + 'd', '#', phrase))}\b")
    for sentence, (paths, _) in sentences.items():
        if wanted.search(sentence) and not any(phrase in path.read_text(errors="replace") for path in paths):
            yield sentence


@pytest.mark.parametrize("phrase", sorted(set(avoided()) - STILL_SAID))
def test_no_sentence_uses_a_phrase_that_is_avoided(sentences, phrase):
    used = list(own_uses(sentences, phrase))
    assert not used, f"{phrase!r}:\n" + "\n".join(used[:20])


def test_what_is_avoided_is_a_list():
    assert len(set(avoided())) > 15 and STILL_SAID <= set(avoided())
