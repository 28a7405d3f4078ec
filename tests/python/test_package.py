"""How the Python package is built: every name says one thing, and what records a run does not lean on what plans one."""

import ast
import builtins
import os
import re
import symtable
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


GIVEN = {*dir(builtins), "__file__", "__path__", "__annotations__"}


def undefined(source: str) -> set:
    """Names that are read in a file and that nothing gives a meaning: of code by its scopes, in annotations (which have none) by those of the whole file."""
    top = symtable.symtable(source, "a file", "exec")
    tables, of_file, anywhere, read = [top], set(GIVEN), set(GIVEN), set()
    while tables:
        table = tables.pop()
        tables += table.get_children()
        for symbol in table.get_symbols():
            name, is_of_file = symbol.get_name(), table is top or symbol.is_global()
            if symbol.is_assigned() or symbol.is_imported() or symbol.is_parameter():
                anywhere.add(name)
                if is_of_file:
                    of_file.add(name)
            if is_of_file and symbol.is_referenced():
                read.add(name)
    words = {node.id for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Name)}
    return (read - of_file) | (words - anywhere)


def test_every_name_has_a_meaning():
    files = sorted(PACKAGE.parent.rglob("*.py"))
    assert FILES[0] in files
    found = {str(file): undefined(file.read_text(encoding="utf-8")) for file in files}
    assert {file: names for file, names in found.items() if names} == {}


@pytest.mark.parametrize(
    "source, names",
    [
        ("class Kept2:\n    pass\n\ndef take():\n    return Kept()\n", {"Kept"}),
        ("from __future__ import annotations\nclass A:\n    def __init__(self):\n        self.all: list[Kept] = []\n", {"Kept"}),
        ("def one():\n    here = 1\n\ndef other():\n    return here\n", {"here"}),
        ("def one():\n    return later()\n\ndef later():\n    global given\n    given = len([x for x in given])\n", set()),
        ("import os.path as p\ntry:\n    import q\nexcept ImportError as e:\n    q = e\n\ndef f(a, *b, c: int = 1, **d):\n    return [p, q, a, b, c, d, lambda x: x]\n", set()),
    ],
)  # fmt: skip
def test_names_without_a_meaning_are_seen(source, names):
    assert undefined(source) == names


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
