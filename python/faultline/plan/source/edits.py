"""Changes to the program's own source: what a trial runs, and what is printed. A statement is found by a line of it, and said anew. Where the line is not of a form that is known there is no edit."""

from __future__ import annotations

import ast
import importlib.util
import itertools
import linecache
import os
import re
import sys
from dataclasses import asdict, dataclass
from typing import NamedTuple

from . import vary
from .changed_source import MANY
from .edited_lines import Conflict, edited, joined
from .reader import source_of, source_of_program


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
        source = source_of_program(self.file) if at else None
        if source is None:
            return
        lines, tree = source.lines, source.tree
        self._tree = tree
        for node in ast.walk(tree):
            if isinstance(node, ast.stmt) and not hasattr(node, "body") and node.lineno <= at <= node.end_lineno:
                self.node = node
        if self.node is not None:
            self.lines = lines[self.node.lineno - 1 : self.node.end_lineno]
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

    def moved_name(self) -> str:
        """Of "net = Net().cuda()" and of "net.cuda()": net; empty where it is not one name."""
        value = getattr(self.node, "value", None)
        if isinstance(self.node, ast.Expr) and isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
            return value.func.value.id if isinstance(value.func.value, ast.Name) else ""
        return name if (name := self.target()).isidentifier() else ""

    def only_call_of(self, name: str) -> OnlyCall | None:
        """Where the file calls what has this name, if that is one place and nothing else is made of it or with it."""
        named = [node for node in ast.walk(self._tree) if isinstance(node, ast.Name) and node.id == name]
        calls = [node for node in ast.walk(self._tree) if isinstance(node, ast.Call)]
        direct = [call for call in calls if any(call.func is node for node in named)]
        usual = {
            id(node.value)
            for node in ast.walk(self._tree)
            if isinstance(node, ast.Attribute) and node.attr in _HARMLESS
        }
        others = [node for node in named if isinstance(node.ctx, ast.Load) and id(node) not in usual]
        if len(direct) != 1 or others != [direct[0].func]:
            return None
        return OnlyCall(self.file, direct[0])

    def calls(self) -> list[ast.Call]:
        return [node for node in ast.walk(self.node) if isinstance(node, ast.Call)] if self.node is not None else []

    def wrapped(self, header: str) -> list[Edit]:
        """In a block of its own, where it is an assignment of one call, or the call alone."""
        if self.node is None or not isinstance(getattr(self.node, "value", None), ast.Call):
            return []
        new = [self.indent + header, *("    " + line for line in self.lines)]
        return [Edit(self.file, self.node.lineno, self.lines, new)]

    def call_wrapped(self, header: str, called: str) -> list[Edit]:
        """The call of one thing alone in a block of its own, what is made of its result behind it."""
        value = getattr(self.node, "value", None)
        inside = [node for node in ast.walk(value) if isinstance(node, ast.Call) and node is not value] if value else []
        if isinstance(value, ast.Call) and (not inside or name_called(value) == called):
            return self.wrapped(header)
        calls = [node for node in inside if name_called(node) == called]
        if not called or len(calls) != 1 or len(self.lines) != 1:
            return []
        line, call = self.lines[0].encode(), calls[0]
        name = unused_name(self._tree, ("out", "output", "model_output", "output_of_model"))
        new = [
            self.indent + header,
            f"{self.indent}    {name} = {line[call.col_offset : call.end_col_offset].decode()}",
            (line[: call.col_offset] + name.encode() + line[call.end_col_offset :]).decode(),
        ]
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
        spans = [Span.of(call.func, function)] if function else []
        arguments = [*call.args, *(word.value for word in call.keywords)]
        if first:
            begin = call.args[0] if call.args else None
            if begin is None:
                return []
            spans.append(Span(begin.lineno, begin.col_offset, begin.lineno, begin.col_offset, f"{first}, "))
        if more:
            spans.append(behind_arguments(self.file, call, arguments, more))
        return spans_edit(self.file, self.node.lineno, self.node.end_lineno, spans)


class Span(NamedTuple):
    """A part of the source, in the columns of its syntax tree, and what comes in its place."""

    line: int
    column: int
    end_line: int
    end_column: int
    text: str

    @classmethod
    def of(cls, node: ast.AST, text: str) -> Span:
        return cls(node.lineno, node.col_offset, node.end_lineno, node.end_col_offset, text)


def behind_arguments(file: str, call: ast.Call, arguments: list, words: str) -> Span:
    """One more argument at the call's end: in the line of the last one, or in a line of its own where they have that."""
    if not arguments:
        return Span(call.end_lineno, call.end_col_offset - 1, call.end_lineno, call.end_col_offset - 1, words)
    last = max(arguments, key=lambda node: (node.end_lineno, node.end_col_offset))
    line, column = last.end_lineno, last.end_col_offset
    source = source_of(file)
    behind = source.line(line).encode()[column:] if source is not None else b""
    if line == call.end_lineno or behind.strip() not in (b"", b","):
        return Span(line, column, line, column, f", {words}")
    text = source.line(line)
    indent = text[: len(text) - len(text.lstrip())]
    return Span(line, column, line, column, f",\n{indent}{words}")  # a comma behind the last one stays behind it


def spans_edit(file: str, first: int, last: int, spans: list[Span]) -> list[Edit]:
    """The lines from first to last with other parts."""
    source = source_of(file)
    if source is None or not spans:
        return []
    old = source.lines[first - 1 : last]
    lines = [line.encode() for line in old]
    for span in sorted(spans, reverse=True):
        head = lines[span.line - first][: span.column]
        tail = lines[span.end_line - first][span.end_column :]
        lines[span.line - first : span.end_line - first + 1] = [head + span.text.encode() + tail]
    new = b"\n".join(lines).decode().split("\n")
    while len(old) > 1 and old[-1] == new[-1]:  # lines that stay are none of its own
        old, new = old[:-1], new[:-1]
    while len(old) > 1 and len(new) > 1 and old[0] == new[0]:
        old, new, first = old[1:], new[1:], first + 1
    return [Edit(file, first, old, new)]


# Methods of a model that do not compute with it.
_HARMLESS = ("parameters", "named_parameters", "train", "eval", "cuda", "to", "zero_grad", "state_dict", "modules")


@dataclass
class OnlyCall:
    file: str
    call: ast.Call

    def as_edit(self, behind_arguments: list[str], behind: str) -> list[Edit]:
        """The call with something behind each argument, and behind itself."""
        call = self.call
        simple = (ast.Name, ast.Attribute, ast.Call, ast.Subscript)
        if call.keywords or len(call.args) != len(behind_arguments) or call.lineno != call.end_lineno:
            return []
        if not all(isinstance(argument, simple) for argument in call.args):
            return []
        text = linecache.getline(self.file, call.lineno).rstrip("\n")
        line = text.encode()
        places = [(call.end_col_offset, behind)]
        places += [(one.end_col_offset, words) for one, words in zip(call.args, behind_arguments)]
        for at, words in sorted(places, reverse=True):
            line = line[:at] + words.encode() + line[at:]
        return [Edit(self.file, call.lineno, [text], [line.decode()])]


VALUE = "@VALUE@"  # a number that is known only when the largest batch that fits is (src/plan/vary.cpp), as MANY is


def number_edits(number: dict, new) -> list[Edit]:
    """Another number in the place of one (vary.py). Others of its line are edits of their own."""
    source = source_of(number["file"])
    if source is None or number["end"] <= number["column"]:
        return []
    text = source.line(number["line"])
    line = text.encode()
    line = line[: number["column"]] + str(new).encode() + line[number["end"] :]
    return [Edit(number["file"], number["line"], [text], [line.decode()])]


def numbers_in_source(wanted: tuple) -> list[dict]:
    """Those of the program's own files that have these names, each with its edit."""
    found = vary.numbers_of_program(wanted)
    for number in found:
        number["edits"] = [asdict(edit) for edit in number_edits(number, VALUE)]
    return found


# What new lines may name, and what makes it known.
_IMPORTS = {
    "torch": "import torch",
    "bitsandbytes": "import bitsandbytes",
    "peft": "import peft",
    "torchao": "import torchao.optim",
    "fully_shard": "from torch.distributed.fsdp import fully_shard",
}


def with_imports(edits: list[Edit]) -> list[Edit]:
    """And the imports that their new lines need and that the file has not."""
    more = []
    for file in dict.fromkeys(edit.file for edit in edits):
        source = source_of(file)
        if source is None:
            continue
        tree = source.tree
        new = "\n".join(line for edit in edits if edit.file == file for line in edit.new)
        imports = [node for node in tree.body if isinstance(node, (ast.Import, ast.ImportFrom))]
        if not imports:
            continue
        known = {(a.asname or a.name).partition(".")[0] for node in imports for a in node.names}
        lines = [
            text for name, text in _IMPORTS.items() if re.search(rf"(?<![\w.]){name}\b", new) and name not in known
        ]
        if "torch.utils.checkpoint." in new:  # a module of its own, which import torch need not bring
            whole = {a.name for node in imports if isinstance(node, ast.Import) for a in node.names}
            lines += [] if "torch.utils.checkpoint" in whole else ["import torch.utils.checkpoint"]
        if lines:
            more.append(Edit(file, imports[-1].end_lineno + 1, [], lines))
    return more + edits


def all_or_none(places: list[list[Edit]]) -> list[Edit]:
    """Of what is to be changed in several places, each place once."""
    edits = [edit for some in places for edit in some]
    return [edit for at, edit in enumerate(edits) if edit not in edits[:at]] if all(places) else []


def whole(edits: list[Edit]) -> list[Edit]:
    """With their imports, where a run can make them and `patch` can apply them, one for each place; none of them else."""
    by_file: dict[str, list[tuple]] = {}
    for edit in with_imports(edits):
        by_file.setdefault(os.path.abspath(edit.file), []).append((edit.line, edit.old, edit.new))
    together: list[Edit] = []
    for file, of_file in by_file.items():
        try:
            with open(file, "rb") as opened:
                data = opened.read()
            lines = importlib.util.decode_source(data).split("\n")
            if b"\r" in data or lines[-1] and any(line + len(old) > len(lines) for line, old, _ in of_file):
                return []  # a diff of it would have to tell how lines end
            of_file = joined(lines, of_file)
            ast.parse("\n".join(edited(lines, of_file)[0]).replace(MANY, "2"))
        except (OSError, Conflict, SyntaxError, ValueError):
            return []
        imports = [
            re.match(r"(?:import|from)\s+(\w+)", line.lstrip()) for _, old, new in of_file if not old for line in new
        ]
        if not all(is_installed(found[1]) for found in imports if found):
            return []
        together += [Edit(file, line, old, new) for line, old, new in of_file]
    return together


def is_installed(library: str) -> bool:
    """What cannot be imported here cannot be tried here."""
    return library in sys.modules or importlib.util.find_spec(library) is not None


def name_called(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def unused_name(tree: ast.AST, wanted: tuple) -> str:
    """The first of these that the source does not use, else the last of them with a number."""
    used = set()
    for node in ast.walk(tree):
        used.update(getattr(node, part, None) for part in ("id", "arg", "name", "asname"))
        used.update(getattr(node, "names", ()) if isinstance(node, (ast.Global, ast.Nonlocal)) else ())
    return next(
        name
        for name in itertools.chain(wanted, (f"{wanted[-1]}_{number}" for number in itertools.count(2)))
        if name not in used
    )
