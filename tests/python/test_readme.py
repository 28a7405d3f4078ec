"""What the tour shows is what the program prints: each line of its examples, in order, but where it says that lines are left out."""

import re
import subprocess
import sys

import pytest

from common import ROOT

TOUR = (ROOT / "docs/tour.md").read_text()
BLOCKS = [part.split("\n", 1)[1] for part in TOUR.split("```")[1::2]]


def block(start):
    found = [text for text in BLOCKS if text.startswith(start)]
    assert len(found) == 1, f"{len(found)} examples begin with {start!r}"
    return found[0].splitlines()


def check(shown, printed):
    """The lines that are shown are printed in this order, and without others between them unless `…` stands there."""
    at, gap = 0, True
    for line in shown:
        if line.strip() == "…":
            gap = True
            continue
        if not line.strip() and gap:
            continue
        place = next((number for number in range(at, len(printed)) if printed[number].rstrip() == line.rstrip()), None)
        assert place is not None, f"not printed: {line!r}\n" + "\n".join(printed)
        assert gap or place == at, f"left out before {line!r}: {printed[at:place]}"
        at, gap = place + 1, False


def printed(binary, *arguments, stream="stdout"):
    done = subprocess.run(
        [binary, *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        env={"PATH": "/usr/bin:/bin", "HOME": "/nowhere", "LC_ALL": "C.UTF-8"},
    )
    assert done.returncode in (0, 1), done.stderr
    return getattr(done, stream).splitlines()


def test_the_report(binary):
    check(
        block("$ faultline explain gpt_oom.pickle.xz")[1:],
        printed(binary, "explain", "tests/fixtures/torch/gpt_oom.pickle.xz"),
    )


def test_the_replay(binary):
    command = re.search(r"^build/faultline (replay .*churn_tight.*expandable_segments.*)$", TOUR, re.M)[1]
    check(block("Replay of "), printed(binary, *command.split()))


def test_the_plan_until_what_would_help(binary, tmp_path):
    pytest.importorskip("torch")
    shown = block("$ faultline plan -v --gpu T4")
    shown = shown[1 : shown.index("What would make it fit")]
    check(
        shown,
        printed(
            binary,
            "plan",
            "-v",
            "--gpu",
            "T4",
            "--no-try",
            "-o",
            str(tmp_path / "run"),
            "--",
            sys.executable,
            "examples/train_gpt.py",
            "--batch-size",
            "16",
            stream="stderr",
        ),
    )


def anchors_of(page):
    """As GitHub makes them of headings."""
    return {
        re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        for heading in re.findall(r"^#+ (.*)$", page.read_text(), re.M)
    }


def test_every_page_and_heading_that_is_named_is_there():
    links = 0
    for page in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]:
        for link, _, anchor in re.findall(
            r"\]\(([^)#\s]*)(#([^)\s]*))?\)", re.sub(r"```.*?```|`[^`\n]*`", "", page.read_text(), flags=re.S)
        ):
            if "://" in link:
                continue
            links += 1
            target = (page.parent / link) if link else page
            assert target.exists(), f"{page.relative_to(ROOT)} names {link}"
            assert not anchor or anchor in anchors_of(target), (
                f"{page.relative_to(ROOT)} names {link}#{anchor}: {sorted(anchors_of(target))}"
            )
    assert links > 100


def test_every_page_is_on_the_map():
    pages = {path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")}
    named = set(re.findall(r"\]\(([\w./-]+\.md)\)", (ROOT / "docs/README.md").read_text()))
    rules = {page for page in pages if page.startswith("rules/")} - {"rules/README.md"}  # they have a map of their own
    assert pages - rules - {"README.md"} == named


def test_all_that_is_installed_is_named_among_the_dependencies():
    """Debian's packages by the name of what is in them, those of PyPI by their own."""
    page = (ROOT / "docs/dependencies.md").read_text().lower()
    makefile = (ROOT / "Makefile").read_text()
    debian = " ".join(re.findall(r"^APT_\w+ := (.*)$", makefile, re.M)).split()
    known_as = {"g++": "gcc", "ninja-build": "ninja", "libclang-rt-14-dev": "sanitizer", "llvm-14": "llvm-symbolizer"}
    known_as |= {"nlohmann-json3-dev": "nlohmann/json"}
    known_as |= {"libgtest-dev": "googletest", "libbenchmark-dev": "google benchmark", "python3-venv": "`.venv`"}
    named = [known_as.get(name) or re.sub(r"^lib|\d*-dev$|\d+g-dev$|-\d+$", "", name) for name in debian]
    pypi = re.findall(r"^([\w-]+)==", (ROOT / "tests/python/requirements.txt").read_text(), re.M)
    pypi += re.findall(r"([\w-]+)==", makefile)
    pypi += re.findall(r'"([\w-]+)[=>]=', (ROOT / "pyproject.toml").read_text())
    assert len(debian) > 15 and len(pypi) > 12
    assert not [name for name in [*named, *pypi] if name.lower().removesuffix("-cpu") not in page]
