"""What TensorFlow says of an operation inside a traced function that refused what it was given: which, and where the function's own lines made it."""

from __future__ import annotations

import re
from typing import NamedTuple

from .._file_owner import is_library, is_own

_IN_GRAPH = re.compile(r"^Detected at node (\S+) defined at", re.M)
_MADE_AT = re.compile(r'^  File "([^"\n]+)", line (\d+), in (.*)$', re.M)
_NODE = re.compile(r"\n\s*\[\[\{\{node .*", re.S)
_NAMED = re.compile(r"^(?:\{\{function_node .*?\}\} )?(.*?)\n\s*\[\[\{\{node (\S+)\}\}", re.S)
_IN_USER_CODE = re.compile(r'^    File "([^"\n]+)", line (\d+), in (\S+) +\*', re.M)
_WHILE_TRACED = re.compile(
    r"(?:^|\n) *\w+: (.*) for '\{\{node [^}]*\}\} = (\w+)\[(.*)\]\(.*\)' with input shapes: (.*?)\.? *(?:\n|$)"
)
_TYPE = re.compile(r"\bT=DT_(\w+)")
_TYPES = {"FLOAT": "float32", "HALF": "float16", "DOUBLE": "float64"}


class Refused(NamedTuple):
    operation: str
    made_at: (
        list  # file, line, function of the program's own, the innermost last; without the outermost, which is the call
    )
    words: str


def refused_in_graph(message: str) -> Refused | None:
    """None: the words are others."""
    found = _IN_GRAPH.search(message)
    if found is None:
        return None
    end, frames = found.end(), []
    for frame in _MADE_AT.finditer(message, found.end()):
        if message[end : frame.start()].strip() not in ("", "(most recent call last):") and frames:
            break  # another node's
        end = frame.end()
        if not is_library(frame[1]):
            frames.append(frame.groups())
    words = _NODE.sub("", message[end:]).strip()
    return Refused(_kind(found[1]), frames[1:], words)


def refused_by_node(message: str, graph) -> Refused | None:
    """Of a function that has no name of its own TensorFlow does not tell where it was defined; the graph knows."""
    found = _NAMED.match(message)
    if found is None:
        return None
    frames = []
    try:
        for frame in graph.get_operation_by_name(found[2]).traceback:
            if not is_library(frame.filename) and not is_own(frame.filename):
                frames.append((frame.filename, frame.lineno, frame.name))
    except (KeyError, ValueError, TypeError):  # in a function that it calls
        pass
    return Refused(_kind(found[2]), frames[1:], found[1].strip())


def places_while_traced(message: str) -> list:
    """File, line and function of the program's own lines, the innermost last, of what failed while a function was traced: the frames of the traceback are of a file that TensorFlow has made of it."""
    if "in user code:" not in message:
        return []
    return [frame.groups() for frame in _IN_USER_CODE.finditer(message) if not is_library(frame[1])]


class RefusedShapes(NamedTuple):
    operation: str
    shapes: list  # of its operands, as far as each is known whole
    dtype: str
    words: str


def refused_while_traced(message: str) -> RefusedShapes | None:
    """What TensorFlow's inference refused because of its operands' shapes."""
    found = _WHILE_TRACED.search(message)
    if found is None:
        return None
    words, operation, attributes, given = found.groups()
    kind = _TYPE.search(attributes)
    dtype = _TYPES.get(kind[1], kind[1].lower()) if kind else "float32"
    shapes = [
        tuple(int(size) for size in shape.split(",") if size)
        for shape in re.findall(r"\[([^\]]*)\]", given)
        if "?" not in shape
    ]
    return RefusedShapes(operation, shapes, dtype, f"{words} for {operation} with input shapes: {given}")


def _kind(node: str) -> str:
    return re.sub(r"_\d+$", "", node.rpartition("/")[2])
