"""Every sentence that the fixtures make the tool print, and the help of its verbs, in one file to read (build/sentences.txt); none uses a phrase that docs/words.md
avoids, and none that stands in the sources and that no fixture reaches."""

import ast
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


def to_read(sentence):
    """As it stands in the file: units, places and names give way too, so that one sentence stands there once. None: a row of numbers, or words of the input."""
    sentence = re.sub(
        r"0x[#0-9a-f]+|(?<![\w/])(?:/[\w.#+-]+){2,}(?::#)?|\b[\w./-]+\.(?:py|cu|cpp)(?::#)?", "PLACE", sentence
    )
    sentence = re.sub(r"# (?:[KMGT]i?B|B|%)(?![a-z])|\[#[#x]*\]", "#", sentence)
    words = re.findall(r"[A-Za-z]{2,}", sentence)
    is_row = sentence.count("#") * 3 > len(words)
    return (
        None
        if len(words) < 3
        or is_row
        or re.match(r"(inequality|text|also in text|survived before|writer|SUMMARY):", sentence)
        else sentence
    )


def helps():
    verbs = re.findall(
        r"^  ([a-z]+)  ", subprocess.run([FAULTLINE, "--help"], capture_output=True, text=True).stdout, re.MULTILINE
    )
    assert len(verbs) > 10
    for verb in verbs:
        yield subprocess.run([FAULTLINE, verb, "--help"], capture_output=True, text=True).stdout


# What prints; a room that reads other programs' texts has their words in it.
ROOMS = ("rules", "plan", "report", "view", "pack", "process", "doctor", "cli")


def literals():
    """The texts of the sources, with where they stand."""
    for room in ROOMS:
        for path in sorted((ROOT / "src" / room).rglob("*.cpp")):
            if path.stem.endswith(("_test", "_fuzz", "_bench")):
                continue
            code = re.sub(r"^\s*//.*$", "", path.read_text(), flags=re.MULTILINE)
            for text in re.findall(r'"((?:[^"\\\n]|\\.)*)"', re.sub(r'"\s*\n\s*"', "", code)):
                yield path.relative_to(ROOT), text
    for path in sorted((ROOT / "python/faultline").rglob("*.py")):
        tree = ast.parse(path.read_text())
        documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
        described = {
            id(node.body[0].value)
            for node in ast.walk(tree)
            if isinstance(node, documented) and node.body and isinstance(node.body[0], ast.Expr)
        }
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in described:
                yield path.relative_to(ROOT), node.value


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
    for text in helps():
        for sentence in sentences_of(text):
            told.setdefault(sentence, ((), ()))
    SENTENCES.write_text("".join(f"{sentence}\n" for sentence in sorted(filter(None, set(map(to_read, told))))))
    return told


def test_there_is_much_to_read(sentences):
    assert len(sentences) > 2000 and 100_000 < SENTENCES.stat().st_size < 1_500_000


def own_uses(sentences, phrase):
    """Where a phrase is used and the input itself does not say it."""
    wanted = re.compile(rf"\b{re.escape(re.sub(chr(92) + 'd', '#', phrase))}\b")
    for sentence, (paths, _) in sentences.items():
        if wanted.search(sentence) and not any(phrase in path.read_text(errors="replace") for path in paths):
            yield sentence


@pytest.mark.parametrize("phrase", sorted(set(avoided())))
def test_no_sentence_uses_a_phrase_that_is_avoided(sentences, phrase):
    used = list(own_uses(sentences, phrase))
    assert not used, f"{phrase!r}:\n" + "\n".join(used[:20])


def test_no_text_of_the_sources_uses_one():
    phrases = re.compile("|".join(rf"\b{re.escape(phrase)}\b" for phrase in set(avoided()) if " " in phrase))
    texts = [(path, text) for path, text in literals() if " " in text]
    used = [f"{path}: {text}" for path, text in texts if phrases.search(text)]
    assert len(texts) > 1500 and not used, "\n".join(used)


def test_what_is_avoided_is_a_list():
    assert len(set(avoided())) > 15
