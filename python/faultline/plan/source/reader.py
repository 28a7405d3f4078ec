"""The program's own source: the lines and the syntax of each of its files, read once, and the frames in which the program runs now.

Trees are shared by everybody who asks for a file: nobody changes one. What is to be changed is parsed anew (vary.py).
"""

from __future__ import annotations

import ast
import functools
import linecache
import os
import sys

from ..._file_owner import is_library, is_own

_MOST_CHARACTERS = 1 << 20  # of a file; what is longer was written by a program
_MOST_FILES = 200
_main: list[str] = []
_read: dict[str, Source | None] = {}

Function = (ast.FunctionDef, ast.AsyncFunctionDef)


class Source:
    """A file that Python can read."""

    def __init__(self, file: str, lines: list[str], tree: ast.Module):
        self.file, self.lines, self.tree = file, lines, tree

    @functools.cached_property
    def parents(self) -> dict[ast.AST, ast.AST]:
        return {child: node for node in ast.walk(self.tree) for child in ast.iter_child_nodes(node)}

    @functools.cached_property
    def functions(self) -> dict[str, list]:
        """By name; methods among them."""
        found: dict[str, list] = {}
        for node in ast.walk(self.tree):
            if isinstance(node, Function):
                found.setdefault(node.name, []).append(node)
        return found

    @functools.cached_property
    def classes(self) -> dict[str, list]:
        found: dict[str, list] = {}
        for node in ast.walk(self.tree):
            if isinstance(node, ast.ClassDef):
                found.setdefault(node.name, []).append(node)
        return found

    def line(self, number: int) -> str:
        return self.lines[number - 1] if 0 < number <= len(self.lines) else ""

    def function_of(self, code):
        """The node that the code was made of, the whole tree for a module's; None: it is not of here."""
        if code.co_name == "<module>":
            return self.tree
        for node in self.functions.get(code.co_name, ()):
            if min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)]) == code.co_firstlineno:
                return node
        return None


def source_of(file: str) -> Source | None:
    """None where there is no source, or none that Python understands."""
    if file not in _read:
        lines = [line.rstrip("\n") for line in linecache.getlines(file)]
        _read[file] = None
        if lines and sum(map(len, lines)) < _MOST_CHARACTERS:
            try:
                _read[file] = Source(file, lines, ast.parse("\n".join(lines) + "\n"))
            except (SyntaxError, ValueError, RecursionError):
                pass
    return _read[file]


def is_of_program(file: str) -> bool:
    return not is_own(file) and not is_library(file)


def source_of_program(file: str) -> Source | None:
    """The same, and None where the file is a library's."""
    return source_of(file) if is_of_program(file) else None


# --- the frames that run


def program_frames(innermost=None):
    """Those of the program itself, innermost first."""
    frame = innermost or sys._getframe(1)
    while frame is not None:
        if is_of_program(frame.f_code.co_filename):
            yield frame
        frame = frame.f_back


def calling_frame():
    """The one that called Faultline's code, where that is the program's; None: a library did."""
    frame = sys._getframe(1)
    while frame is not None and is_own(frame.f_code.co_filename):
        frame = frame.f_back
    return frame if frame is not None and not is_library(frame.f_code.co_filename) else None


# --- all files of the program


def note_main() -> None:
    """Python takes the main file's name away when it has run."""
    file = getattr(sys.modules.get("__main__"), "__file__", None)
    if isinstance(file, str):
        _main.append(os.path.abspath(file))


def program_sources():
    """The files that the program has loaded and that are its own."""
    loaded = [vars(module).get("__file__") for module in list(sys.modules.values()) if hasattr(module, "__dict__")]
    files = {os.path.abspath(f) for f in (*loaded, *_main) if isinstance(f, str)}
    own = sorted(f for f in files if is_of_program(f) and not f.endswith(".so"))
    for file in own[:_MOST_FILES]:
        if (source := source_of(file)) is not None:
            yield source
