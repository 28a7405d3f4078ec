"""What TensorFlow says of an operation inside a traced function that refused what it was given: which, and where the function's own lines made it."""

from __future__ import annotations

import re
from typing import NamedTuple

from .._file_owner import is_library, is_own

_IN_GRAPH = re.compile(r"^Detected at node (\S+) defined at", re.M)
_MADE_AT = re.compile(r'^  File "([^"\n]+)", line (\d+), in (.*)$', re.M)
_NODE = re.compile(r"\n\s*\[\[\{\{node .*", re.S)
_NAMED = re.compile(r"^(?:\{\{function_node .*?\}\} )?(.*?)\n\s*\[\[\{\{node (\S+)\}\}", re.S)


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


def _kind(node: str) -> str:
    return re.sub(r"_\d+$", "", node.rpartition("/")[2])
