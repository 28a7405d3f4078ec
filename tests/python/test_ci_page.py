"""docs/ci.md: what people copy from it is taken by those who read it."""

import re
import subprocess

import pytest

from common import FAULTLINE, ROOT

PAGE = (ROOT / "docs/ci.md").read_text(encoding="utf-8")


def blocks(language):
    parts = re.split(r"^```(.*)\n", PAGE, flags=re.MULTILINE)  # text, language, block, "", text, …
    return [block for told, block in zip(parts[1::4], parts[2::4]) if told == language]


def workflow():
    yaml = pytest.importorskip("yaml")
    (text,) = blocks("yaml")
    return yaml.safe_load(text)


def commands(text):
    """Each command line of faultline: its words before `--` and before the shell's own."""
    for line in text.replace("\\\n", " ").split("\n"):
        match = re.match(r"\s*faultline (.*?)(?: -- .*| \|\| .*| >+ .*|\s+#.*)?$", line)
        if match:
            yield re.split(r" -- | >+ | \|\| ", match[1])[0].split()


def test_the_workflow_has_the_form_that_github_reads():
    content = workflow()
    assert (
        content[True] and content["name"] and content["permissions"]["security-events"] == "write"
    )  # YAML reads `on` so
    (job,) = content["jobs"].values()
    assert job["runs-on"] and job["steps"]
    for step in job["steps"]:
        assert ("run" in step) != ("uses" in step), step
        assert set(step) <= {"name", "run", "uses", "with", "if"}, step
    text = "\n".join(step.get("run", "") for step in job["steps"])
    for part in ("pytest", "--budget", "--compare", "--format sarif", "--format github"):
        assert part in text, part


def test_every_option_on_the_page_is_one_of_the_verb():
    (job,) = workflow()["jobs"].values()
    given = [words for step in job["steps"] for words in commands(step.get("run", ""))]
    given += [words for block in blocks("") for words in commands(block)]
    assert len(given) >= 7
    helped = {}
    for verb, *words in given:
        if verb not in helped:
            helped[verb] = subprocess.run(
                [FAULTLINE, verb, "--help"], capture_output=True, text=True, check=True
            ).stdout
        for option in words:
            if option.startswith("-"):
                assert re.search(rf"(^|[\s,]){re.escape(option)}\b", helped[verb], re.MULTILINE), (verb, option)


def test_the_python_on_the_page_is_python():
    for block in blocks("python"):
        compile(block, "docs/ci.md", "exec")
