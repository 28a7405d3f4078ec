"""Edits put together into the lines of a file: several of them as one for each place, what comes of them, and for each new line the one that it stands for.

An edit is (line, old lines, new lines); without old lines the new ones come before that line. Edits of the same line go together where they change different parts of it, or put further arguments
at the same place; what they say otherwise is a Conflict.
"""

from __future__ import annotations

from bisect import bisect_right


class Conflict(Exception):
    """A line is another than an edit says, or two edits want the same part of it."""


class _Part:
    """A part of the text and what comes in its place. Whole lines are put in at the start of one."""

    def __init__(self, begin: int, end: int, put: str, is_lines: bool):
        self.begin, self.end, self.put, self.is_lines = begin, end, put, is_lines

    def place(self) -> tuple:
        return self.begin, not self.is_lines, self.end

    def is_same(self, other: _Part) -> bool:
        return (*self.place(), self.put) == (*other.place(), other.put)

    def goes_with(self, other: _Part) -> bool:
        if self.begin == self.end == other.begin == other.end:
            further = self.put.startswith(",") and other.put.startswith(",")
            return self.is_lines or other.is_lines or further
        return self.end <= other.begin or other.end <= self.begin


def joined(lines: list[str], edits: list[tuple]) -> list[tuple]:
    """Edits that share no line and come to the same, in the order of the file."""
    text, starts = "\n".join(lines), [0]
    for line in lines:
        starts.append(starts[-1] + len(line) + 1)
    parts: list[_Part] = []
    for line, old, new in edits:
        if not new or not 0 < line <= len(lines) or lines[line - 1 : line - 1 + len(old)] != list(old):
            raise Conflict(f"line {line} is another")
        part = _part(starts[line - 1], "\n".join(old), "\n".join(new), not old)
        if any(part.is_same(other) for other in parts):
            continue
        if not all(part.goes_with(other) for other in parts):
            raise Conflict(f"two edits change line {line}")
        parts.append(part)
    groups: list[list] = []  # first line, last line (the one before the first: lines are put in), parts
    for part in sorted(parts, key=_Part.place):  # at one place in the order of the edits
        first = bisect_right(starts, part.begin) - 1
        last = first - 1 if part.is_lines else bisect_right(starts, part.end) - 1
        before = groups[-1] if groups else None
        if before and part.is_lines and before[0] < first <= before[1]:
            raise Conflict(f"line {first + 1} is put into lines that are changed")
        if before and (part.is_lines == before[2][0].is_lines) and (first <= before[1] or before[:2] == [first, last]):
            before[1] = max(before[1], last)
            before[2].append(part)
        else:
            groups.append([first, last, [part]])
    return [_edit(lines, text, starts, *group) for group in groups]


def _part(start: int, old: str, new: str, is_lines: bool) -> _Part:
    """Only what is another, so that something else of the line can be, too."""
    if is_lines:
        return _Part(start, start, new + "\n", True)
    head = 0
    while head < min(len(old), len(new)) and old[head] == new[head]:
        head += 1
    tail = 0
    while tail < min(len(old), len(new)) - head and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    return _Part(start + head, start + len(old) - tail, new[head : len(new) - tail], False)


def _edit(lines: list[str], text: str, starts: list[int], first: int, last: int, parts: list[_Part]) -> tuple:
    if parts[0].is_lines:
        return first + 1, [], "".join(part.put for part in parts).split("\n")[:-1]
    new, at = "", starts[first]
    for part in parts:
        new += text[at : part.begin] + part.put
        at = part.end
    new += text[at : starts[last] + len(lines[last])]
    return first + 1, lines[first : last + 1], new.split("\n")


def edited(lines: list[str], edits: list[tuple]) -> tuple[list[str], list[int]]:
    """With edits as joined() gives them: the new lines, and the number in the file of the line that each stands for."""
    result, origins, done = [], [], 0  # done: lines of the file that are in the result
    for line, old, new in edits:
        begin = line - 1
        result += lines[done:begin] + new
        origins += [*range(done + 1, line), *_origins(line, old, new)]
        done = begin + len(old)
    return result + lines[done:], origins + list(range(done + 1, len(lines) + 1))


def _origins(line: int, old: list[str], new: list[str]) -> list[int]:
    """A new line is the next old one that says the same, whatever its indent, else the one that is changed there."""
    found, at = [], 0
    for text in new:
        same = next((n for n in range(at, len(old)) if old[n].strip() == text.strip()), None)
        if same is not None:
            at = same + 1
        found.append(line + (same if same is not None else max(0, min(at, len(old) - 1))))
    return found
