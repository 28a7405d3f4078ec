"""How the Python package is built: every name says one thing, and what records a run does not lean on what plans one."""

import ast
import os
import re
from collections import Counter
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[2] / "python" / "faultline"
FILES = sorted(PACKAGE.rglob("*.py"))


def imported(source: str, package: list) -> set:
    """The modules that a file of a package imports anywhere in it, by their full names; of `from a import b` both a and a.b."""
    names = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = (
                ".".join([*package[: len(package) + 1 - node.level], *filter(None, [node.module])])
                if node.level
                else node.module
            )
            names |= {base, *(f"{base}.{alias.name}" for alias in node.names)}
    return names


@pytest.mark.parametrize("part, other", [("run", "plan"), ("plan", "run")])
def test_the_two_parts_do_not_import_each_other(part, other):
    files = [file for file in FILES if file.relative_to(PACKAGE).parts[0] == part]
    assert files
    for file in files:
        names = imported(file.read_text(encoding="utf-8"), ["faultline", *file.relative_to(PACKAGE).parts[:-1]])
        assert not [name for name in names if f"{name}.".startswith(f"faultline.{other}.")], file


@pytest.mark.parametrize(
    "source",
    [
        "import faultline.plan.stacks",
        "from ..plan import stacks",
        "from ..plan.stacks import is_own",
        "from .. import plan",
        "def late():\n    from ..plan.stacks import is_own",
        "from faultline import plan",
    ],
)
def test_imports_of_every_form_are_seen(source):
    assert any(f"{name}.".startswith("faultline.plan.") for name in imported(source, ["faultline", "run"]))


def test_no_two_files_and_no_two_classes_have_one_name():
    files = Counter(file.name for file in FILES if file.name != "__init__.py")
    classes = Counter(
        node.name
        for file in FILES
        for node in ast.parse(file.read_text(encoding="utf-8")).body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    assert [name for counted in (files, classes) for name, count in counted.items() if count > 1] == []


def glibc_of(binary: Path) -> tuple:
    """The newest symbol version of the C library that a file asks for."""
    versions = re.findall(rb"GLIBC_(\d+)\.(\d+)", binary.read_bytes())
    return max(tuple(map(int, version)) for version in versions)


def test_everything_that_is_installed_runs_with_glibc_2_35():
    built = Path(os.environ["FAULTLINE"]).resolve().parent
    binaries = [
        built / "faultline",
        built / "libfaultline_dryrun.so",
        *built.glob("capture/*.so*"),
        *built.glob("vgpu/*.so*"),
    ]
    assert len(binaries) >= 4
    assert {binary.name: glibc_of(binary) for binary in binaries if glibc_of(binary) > (2, 35)} == {}
