"""Golden cases: each bug is found at its line, each clean twin stays silent, and nothing else is said.

tests/golden/<rule>/<case>/ holds one input (`trace.txt`, a trace as text; `message.txt`, a pasted error; or `recording`, which names a file
of the repository), `expect.json`, and perhaps `args` for the command line. A folder whose name ends in `-clean` is a twin: its rule is silent.

`expect.json` lists the findings, all of them, in the order of the report. A finding names `rule severity confidence` and, where it has them, `cause`
and `at` ("file.py:12", by the file's own name). Every rule that the tool may name (`faultline --rules`) has its page, its cases and its place in the schema. Optional: `evidence` (numbers that must be equal), `says` (words that must stand somewhere in it),
`tries` (how many changes a replay confirmed). Optional beside `findings`: `not_judged`, rules that could not be judged, and `judged`, rules that could. `why` says what the program does.
"""

import json
import shlex
import subprocess

import pytest

from common import FAULTLINE, RECORDINGS, ROOT

GOLDEN = ROOT / "tests" / "golden"
TRUTH = {entry["case"]: entry for entry in json.loads((RECORDINGS / "truth.json").read_text())}
INCOMPLETE = {
    "ring_default",
    "ring_expandable",
    "ring_streams",
    "ring_train",
    "state_only",
}  # their peaks may lie before the recording
CASES = sorted(path.parent for path in GOLDEN.glob("*/*/expect.json"))
RULES = sorted(path for path in GOLDEN.iterdir() if path.is_dir())
REGISTERED = subprocess.run([FAULTLINE, "--rules"], capture_output=True, text=True, check=True).stdout.split()
CASE_KEYS = {"why", "findings", "not_judged", "judged"}
KEYS = {"rule", "severity", "confidence", "cause", "at", "evidence", "says", "tries"}


def name_of(case):
    return str(case.relative_to(GOLDEN))


def input_of(case):
    recording = case / "recording"
    if recording.exists():
        return ROOT / recording.read_text().strip()
    return next(path for path in (case / "trace.txt", case / "message.txt") if path.exists())


def explain(case):
    args = shlex.split((case / "args").read_text()) if (case / "args").exists() else []
    done = subprocess.run(
        [FAULTLINE, "explain", "--format", "json", str(input_of(case)), *args], capture_output=True, text=True
    )
    assert done.returncode in (0, 1), done.stderr
    return json.loads(done.stdout), done.returncode


def place(location):
    if not location or not location["file"]:
        return ""
    return f"{location['file'].split('/')[-1]}:{location['line']}"


def words(finding):
    return " ".join(
        [finding["message"], finding["memory"]]
        + [attempt["what"] for attempt in finding["tries"]]
        + [f"{item['what']} at {place(item['location'])}" for item in finding.get("related", [])]
    )


def identity(finding):
    """What a finding is, apart from its numbers."""
    return {
        "rule": finding["rule"],
        "severity": finding["severity"],
        "confidence": finding["confidence"],
        "cause": finding.get("cause") or "",
        "at": place(finding["location"]),
    }


def wanted_identity(finding):
    assert set(finding) <= KEYS, f"unknown keys {set(finding) - KEYS}"
    return {
        "rule": finding["rule"],
        "severity": finding["severity"],
        "confidence": finding["confidence"],
        "cause": finding.get("cause", ""),
        "at": finding.get("at", ""),
    }


@pytest.mark.parametrize("case", CASES, ids=name_of)
def test_what_is_found_is_what_is_there(case):
    expect = json.loads((case / "expect.json").read_text())
    assert set(expect) <= CASE_KEYS, f"unknown keys {set(expect) - CASE_KEYS}"
    assert set(expect.get("not_judged", [])) | set(expect.get("judged", [])) <= set(REGISTERED)
    report, status = explain(case)
    assert [identity(finding) for finding in report["findings"]] == [
        wanted_identity(finding) for finding in expect["findings"]
    ]
    assert {entry["rule"] for entry in report["findings"] + report["not_judged"]} <= set(REGISTERED)
    for finding, wanted in zip(report["findings"], expect["findings"]):
        for name, value in wanted.get("evidence", {}).items():
            got = finding["evidence"].get(name)
            assert got == (pytest.approx(value, rel=1e-3) if isinstance(value, float) else value), name
        for part in wanted.get("says", []):
            assert part in words(finding)
        if "tries" in wanted:
            assert sum(attempt["confirmed"] is True for attempt in finding["tries"]) == wanted["tries"]
    not_judged = {entry["rule"] for entry in report["not_judged"]}
    assert set(expect.get("not_judged", [])) <= not_judged
    assert not set(expect.get("judged", [])) & not_judged
    assert status == (1 if any(finding["severity"] != "note" for finding in expect["findings"]) else 0)


@pytest.mark.parametrize("case", CASES, ids=name_of)
def test_a_bug_names_its_rule_and_a_twin_does_not(case):
    rule = case.parent.name.replace("-", "/", 1)
    found = [finding["rule"] for finding in json.loads((case / "expect.json").read_text())["findings"]]
    assert (rule not in found) if case.name.endswith("-clean") else (rule in found)


@pytest.mark.parametrize("rule", RULES, ids=lambda path: path.name)
def test_every_rule_has_a_bug_and_a_twin(rule):
    cases = [case.name for case in CASES if case.parent == rule]
    assert any(name.endswith("-clean") for name in cases)
    assert any(not name.endswith("-clean") for name in cases)


OF_LIMITS = {
    "memory-over-budget",
    "memory-grown",
}  # of a plan beside what was asked of it (test_limits.py): no recording has them


def test_every_rule_has_a_page_cases_and_its_place_in_the_schema():
    named = {name.replace("/", "-") for name in REGISTERED}
    pages = {page.stem for page in (ROOT / "docs" / "rules").glob("*.md")}
    assert named == pages - {"README"} and OF_LIMITS <= named
    assert sorted(named - OF_LIMITS) == [rule.name for rule in RULES]
    described = json.loads((ROOT / "docs" / "report.schema.json").read_text())["$defs"]["rule"]["description"]
    assert REGISTERED == described.split("so far: ")[1].split(", ")
    table = (ROOT / "docs" / "rules" / "README.md").read_text()
    assert [name for name in REGISTERED if f"| [{name}]({name.replace('/', '-')}.md) |" not in table] == []


def test_every_case_has_one_input():
    for folder in (path for path in GOLDEN.glob("*/*") if path.is_dir()):
        assert (folder / "expect.json").exists(), folder
        assert sum((folder / name).exists() for name in ("trace.txt", "message.txt", "recording")) == 1, folder


def test_every_recording_is_judged_by_some_case():
    used = {input_of(case).resolve() for case in CASES}
    assert [path.name for path in sorted(RECORDINGS.glob("*.pickle.xz")) if path.resolve() not in used] == []


@pytest.mark.parametrize("name", sorted(set(TRUTH) - INCOMPLETE))
def test_peaks_and_failures_are_those_pytorch_counted(name):
    done = subprocess.run(
        [FAULTLINE, "explain", "--format", "json", str(RECORDINGS / (name + ".pickle.xz"))],
        capture_output=True,
        text=True,
    )
    report = json.loads(done.stdout)
    peak = report["devices"][0]["peak"]
    assert (peak["allocated"], peak["reserved"]) == (TRUTH[name]["peak_allocated"], TRUTH[name]["peak_reserved"])
    failed = sum(finding["count"] for finding in report["findings"] if finding["rule"] == "memory/out-of-memory")
    assert failed == TRUTH[name]["ooms"]
