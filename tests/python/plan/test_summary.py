"""The summary that the dry run of a process leaves: one table of its keys, from which it is written, and of which the verb's reader and the page know every row."""

import json
import re

import pytest
from common import ROOT

from faultline.plan.session import summary

READER = (ROOT / "src/process/dry_run_files.cpp").read_text()
FIELDS = (ROOT / "src/plan/plan_fields.h").read_text()


def function(text: str, name: str) -> str:
    """A function's body, without what is in the braces of functions inside it."""
    return re.search(rf"\nvoid {name}\((.*?)\n}}\n", text, re.S)[1]


def names_in(text: str, by: str = r"(?:read|inside|vary|keeps|archive)") -> set:
    return set(re.findall(rf'\b{by}(?:\.(?:each|group))?\("(\w+)"', text)) | set(
        re.findall(r'parsed->find\("(\w+)"\)', text)
    )


def inside(name: str) -> str:
    """What the reader does with the objects under a key."""
    return re.search(rf'read\.(?:each|group)\("{name}".*?\n  }}\);', READER, re.S)[0]


def test_the_verb_reads_the_keys_of_the_table_and_no_others():
    read = names_in(function(READER, "read_summary"), "read")
    assert read == {name for name, key in summary.KEYS.items() if key.is_read}


@pytest.mark.parametrize(
    "name, text, members",
    [
        ("edit", function(READER, "read_edit"), summary.EDIT),
        (
            "loop",
            FIELDS[FIELDS.index("void fields(auto& archive, PlanLoop") :].partition("\n}\n")[0],
            summary.KEYS["loop"].kind,
        ),
        ("rising", inside("rising"), summary.KEYS["rising"].kind[0]),
        ("unplanned", inside("unplanned"), summary.KEYS["unplanned"].kind),
    ],
)
def test_what_is_read_of_an_object_is_what_the_table_says(name, text, members):
    assert names_in(text) - {name} == set(members)


def test_what_is_read_of_an_offer_is_what_the_table_says():
    read = names_in(function(READER, "read_offer"))
    assert read == set(summary.OFFER)


def test_what_is_read_of_a_number_is_in_the_table():
    for text, kind in (
        (inside("numbers"), summary.KEYS["numbers"].kind[0]),
        (function(READER, "read_vary"), summary.PLACE),
    ):
        assert names_in(text, r"(?:read|inside)") - {"numbers"} <= set(kind)


def test_the_page_lists_every_key():
    page = (ROOT / "docs/run-folder.md").read_text()
    rows = re.findall(
        r"^\| `(\w+)` \| ([^|]*) \| ([^|]*) \|$", page.partition("## What a dry run leaves of a process")[2], re.M
    )
    assert rows == [(name, summary.in_words(key.kind), key.means) for name, key in summary.KEYS.items()]


def test_what_nobody_tells_is_written_as_it_is_by_default(tmp_path):
    summary.leave({"folder": str(tmp_path)}, {"unsupported": {"text": "why", "of": "folder"}})
    (file,) = tmp_path.glob("process-*.json")
    left = json.loads(file.read_text())
    assert left["unsupported"] == {"text": "why", "of": "folder"} and left["steps"] == 0 and left["exception"] is None
    assert summary.wrong_in(left) == []


@pytest.mark.parametrize(
    "change, found",
    [
        ({"steps": "8"}, "steps is not count"),
        ({"steps": True}, "steps is not count"),
        ({"died_of_memory": 1}, "died_of_memory is not flag"),
        ({"stopped": 8}, "stopped is not text"),
        ({"steps": None}, "steps is not count"),
        ({"unplanned": {"text": "a", "where": "b"}}, "unplanned has where"),
        ({"rising": [{"where": "a", "number": "b"}]}, "rising[0].number is not count"),
        ({"lasting": {"parameters": "b"}}, "lasting.parameters is not bytes"),
        ({"phases": "training"}, "phases is no list"),
        ({"step": 8}, "step is no key"),
    ],
)
def test_a_summary_that_is_not_as_the_table_has_it_is_told(change, found):
    good = {name: key.default for name, key in summary.KEYS.items()}
    assert summary.wrong_in(good) == []
    assert [text for text in summary.wrong_in({**good, **change}) if text.startswith(found)]
    del good["steps"]
    assert summary.wrong_in(good) == ["steps is missing"]
