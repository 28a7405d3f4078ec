"""Reports for other tools: each form is what its own schema or parser takes, and says what the JSON report says."""

import json
import lzma
import re
import subprocess
import urllib.parse
import xml.etree.ElementTree as ElementTree

import jsonschema
import pytest

from common import FAULTLINE, ROOT, write

INPUTS = [
    *sorted((ROOT / "tests" / "fixtures" / "errors").glob("*.txt"))[::9],
    *sorted((ROOT / "tests" / "fixtures" / "torch").glob("*.xz"))[::3],
    *sorted((ROOT / "tests" / "fixtures" / "coredump").glob("*.xz"))[::4],
]
SARIF = jsonschema.Draft7Validator(
    json.loads(lzma.open(ROOT / "tests" / "fixtures" / "sarif" / "sarif-schema-2.1.0.json.xz").read())
)


def explained(form, *inputs):
    done = subprocess.run([FAULTLINE, "explain", "--format", form, *map(str, inputs)], capture_output=True, cwd=ROOT)
    return done.stdout.decode(), done.returncode


def groups(report):
    """Findings that are told once: those of one fingerprint together."""
    return {finding["fingerprint"] or id(finding) for finding in report["findings"]}


@pytest.mark.parametrize("input", INPUTS, ids=lambda path: path.name)
def test_each_form_says_what_the_report_says(input):
    text, status = explained("json", input)
    if status == 2:
        pytest.skip("no input of its own")
    report = json.loads(text)

    text, of_sarif = explained("sarif", input)
    log = json.loads(text)
    assert [error.message for error in SARIF.iter_errors(log)] == []
    (run,) = log["runs"]
    assert len(run["results"]) == len(groups(report)) and of_sarif == status
    for result in run["results"]:
        assert run["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == result["ruleId"]
        assert result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]

    text, of_junit = explained("junit", input)
    suites = ElementTree.fromstring(text)
    for suite in suites:
        cases = list(suite.iter("testcase"))
        for attribute, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
            assert int(suite.get(attribute)) == sum(case.find(tag) is not None for case in cases)
        assert int(suite.get("tests")) == len(cases) > 0
    failed = int(suites.get("failures")) + int(suites.get("errors"))
    assert (failed > 0) == (status == 1 or bool(report["input"].get("unseen"))) and of_junit == status

    text, of_github = explained("github", input)
    commands = re.findall(r"^::(error|warning|notice) (.*?)::(.*)$", text, re.M)
    assert len(commands) == len(groups(report)) and of_github == status
    assert len(text.splitlines()) == len(commands) + 1

    text, of_markdown = explained("markdown", input)
    assert text.startswith("### Faultline: ") and of_markdown == status
    assert text.count("<details>") == text.count("</details>") == 1
    above = text.partition("<details>")[0]
    for finding in report["findings"]:
        assert (f"`{finding['rule']}`" in above) == (finding["severity"] != "note")
        if finding["severity"] != "note" and finding["location"].get("line"):
            line = finding["location"]["line"]  # of a cell of a notebook: "cell [4], line 2"
            assert f":{line}" in above or f", line {line}" in above or finding["call_path"]


def test_several_inputs_are_one_document():
    log = json.loads(explained("sarif", *INPUTS[:3])[0])
    assert len(log["runs"]) == 3 and not list(SARIF.iter_errors(log))
    assert len(ElementTree.fromstring(explained("junit", *INPUTS[:3])[0])) == 3


@pytest.mark.parametrize("name", ["a b.py", "ü.py", "100%.py", "a'b\".py", "a<b>&.py", "a,b:c.py"])
def test_any_name_of_a_file_is_a_place(tmp_path, name):
    message = 'Traceback (most recent call last):\n  File "/home/user/%s", line 7, in step\n    y = model(x)\ntorch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 15.77 GiB of which 1.00 GiB is free. Of the allocated memory 13.00 GiB is allocated by PyTorch, and 200.00 MiB is reserved by PyTorch but unallocated.\n'
    log = write(tmp_path / "log.txt", message % name)
    sarif = json.loads(explained("sarif", log)[0])
    assert not list(SARIF.iter_errors(sarif))
    place = sarif["runs"][0]["results"][0]["locations"][0]["physicalLocation"]
    assert place["region"]["startLine"] == 7
    assert urllib.parse.unquote(place["artifactLocation"]["uri"]).endswith("/home/user/" + name)
    assert re.fullmatch(r"[-A-Za-z0-9._~/%!$'()*+,;=@:]+", place["artifactLocation"]["uri"])
    command = explained("github", log)[0].splitlines()[0]
    assert re.match(r"::error file=[^,]*,line=7,title=Faultline%3A memory/out-of-memory::", command), command
    ElementTree.fromstring(explained("junit", log)[0])
