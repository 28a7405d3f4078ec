"""Changes to the program's own source, to be shown: a statement is found by a line of it, and said anew. Where the line is not of a form that is known nothing is shown."""

from __future__ import annotations

import ast
import linecache
from dataclasses import dataclass

from ..._file_owner import is_library, is_own


@dataclass
class Edit:
    file: str
    line: int  # of the first old line; of what is put in without an old one, the line it stands before
    old: list[str]
    new: list[str]


def split_place(place: str) -> tuple[str, int]:
    """ "train.py:12" """
    file, _, line = place.rpartition(":")
    return file, int(line) if line.isdigit() else 0


class Statement:
    """The innermost statement that has a line in it, without those that have others inside."""

    def __init__(self, place: str):
        self.file, at = split_place(place)
        self.node, self.lines = None, []
        if not at or is_library(self.file) or is_own(self.file):
            return
        lines = linecache.getlines(self.file)
        try:
            tree = ast.parse("".join(lines))
        except (SyntaxError, ValueError):
            return
        for node in ast.walk(tree):
            if isinstance(node, ast.stmt) and not hasattr(node, "body") and node.lineno <= at <= node.end_lineno:
                self.node = node
        if self.node is not None:
            self.lines = [line.rstrip("\n") for line in lines[self.node.lineno - 1 : self.node.end_lineno]]
            alone = lines[self.node.lineno - 1][: self.node.col_offset].strip() == ""
            self.node = self.node if alone and ";" not in self.lines[-1] else None

    @property
    def indent(self) -> str:
        return self.lines[0][: len(self.lines[0]) - len(self.lines[0].lstrip())]

    def target(self) -> str:
        """The name that it assigns to; empty where that is not one name."""
        node = self.node
        one = isinstance(node, ast.Assign) and len(node.targets) == 1
        return ast.unparse(node.targets[0]) if one and isinstance(node.targets[0], (ast.Name, ast.Attribute)) else ""

    def calls(self) -> list[ast.Call]:
        return [node for node in ast.walk(self.node) if isinstance(node, ast.Call)] if self.node is not None else []

    def wrapped(self, header: str) -> list[Edit]:
        """In a block of its own, where it is an assignment of one call, or the call alone."""
        if self.node is None or not isinstance(getattr(self.node, "value", None), ast.Call):
            return []
        new = [self.indent + header, *("    " + line for line in self.lines)]
        return [Edit(self.file, self.node.lineno, self.lines, new)]

    def before(self, *texts: str) -> list[Edit]:
        return (
            [Edit(self.file, self.node.lineno, [], [self.indent + text for text in texts])]
            if self.node is not None
            else []
        )

    def after(self, *texts: str) -> list[Edit]:
        return (
            [Edit(self.file, self.node.end_lineno + 1, [], [self.indent + text for text in texts])]
            if self.node is not None
            else []
        )

    def with_call(self, call: ast.Call, function: str | None = None, more: str = "", first: str = "") -> list[Edit]:
        """The call with another function, one more argument at its end, or another first argument."""
        if call.lineno != call.end_lineno or call.lineno != call.func.end_lineno:
            return []
        row = call.lineno - self.node.lineno
        line = self.lines[row].encode()
        head, body, tail = (
            line[: call.col_offset],
            line[call.func.end_col_offset : call.end_col_offset],
            line[call.end_col_offset :],
        )
        inside = body.strip()[1:-1].decode().strip().rstrip(",")
        name = function or line[call.col_offset : call.func.end_col_offset].decode()
        arguments = ", ".join(part for part in (first, inside, more) if part)
        new = list(self.lines)
        new[row] = f"{head.decode()}{name}({arguments}){tail.decode()}"
        return [Edit(self.file, self.node.lineno, self.lines, new)]


def number_edit(file: str, line: int, old: int, new: int) -> list[Edit]:
    """Another number on a line where it stands once."""
    import re

    text = linecache.getline(file, line).rstrip("\n")
    pattern = rf"(?<![\w.]){old}(?![\w.])"
    if len(re.findall(pattern, text)) != 1:
        return []
    return [Edit(file, line, [text], [re.sub(pattern, str(new), text)])]
