"""What the dry run had to assume or leave out. Each is told once per line, with how often it happened."""

from __future__ import annotations

import json

from ...common.stacks import user_line
from ..source import decisions

TRUTH = "truth"  # the group of truth values that are read
_MANY_TRUTHS = 100  # reads at one line that look like a loop's condition


class Notes:
    def __init__(self):
        self._found: dict[tuple[str, str, str], tuple[str, int]] = {}
        self._most: set[str] = set()  # texts about sizes that were counted as large as they can be
        self._verdicts: dict[tuple[str, str], str] = {}  # (text, line) → what belongs beside the verdict
        self.stand_in_read = ""  # the line that last read a stand-in
        self._decided: dict[tuple[str, str], tuple[bool, int]] = {}  # (what, line) → the most it can be, looks before

    def add(self, kind: str, text: str, line: str | None = None, group: str | None = None, verdict: str = "") -> None:
        """kind: 'instead' (something else was planned than what runs), 'value' (a value was assumed), 'skipped' (not done in a dry run), 'kernel' (memory estimated), 'mode' (how it was run).
        Notes of one group and line are one, with the first's text. verdict: words that the verdict is not said without."""
        key = (kind, group or text, user_line() if line is None else line)
        first, count = self._found.get(key, (text, 0))
        self._found[key] = first, count + 1
        if verdict:
            self._verdicts.setdefault((first, key[2]), verdict)

    def at_most(self, text: str, line: str | None = None, group: str | None = None) -> None:
        """A size that depends on values was counted as large as it can be."""
        self._most.add(text)
        self.add("value", text, line, group)

    def set_total(self, kind: str, group: str, text: str) -> None:
        """A note about a sum: the last text holds."""
        self._found[kind, group, ""] = text, 1

    def stand_in(self, text: str, group: str | None = None) -> None:
        """The program reads values that were not computed."""
        self.stand_in_read = user_line()
        self.add("value", text, self.stand_in_read, group)

    def may_decide(self, found: tuple[str, str] | None, is_most: bool, looks: int) -> None:
        """A stand-in was read that may decide sizes or a branch (decisions.py), when so many kinds of results had been seen."""
        if found is not None:
            self._decided.setdefault(found, (is_most, looks))

    def tell_decided(self, looks: int) -> None:
        """At the end. Sizes were decided only where something new was made afterwards."""
        for (what, line), (is_most, before) in self._decided.items():
            if what == decisions.BRANCH:
                self.add(
                    "value",
                    "a branch is decided by a value that a dry run does not compute: the other way was not seen (--real computes it)",
                    line,
                    verdict=f"with a branch decided by a value that is not computed ({decisions.at(line)})",
                )
            elif what == decisions.PERHAPS:
                self.add(
                    "value",
                    "a branch is decided by a value that a dry run does not compute, and what it calls may take memory: the other way was not seen (--real computes it)",
                    line,
                )
            elif what == decisions.GIVEN:
                if looks > before:
                    self.add(
                        "value",
                        "a function whose code was not looked into is given a number that a dry run does not compute: whether a size comes of it is not known (--real computes it)",
                        line,
                    )
            elif looks > before and is_most:
                self.at_most(
                    "sizes may come from a number that a dry run does not compute: it was taken as the most there can be",
                    line,
                )
            elif looks > before:
                self.add(
                    "value",
                    "sizes may come from a number that a dry run does not compute: the stand-in may be less than it is (--real computes it)",
                    line,
                    verdict=f"with sizes from a number that is not computed ({decisions.at(line)})",
                )

    def waiting(self) -> None:
        """The program ran out of time: is there a loop that may wait for a value it will not get?"""
        count, line = max(
            ((count, line) for (_, group, line), (_, count) in self._found.items() if group == TRUTH), default=(0, "")
        )
        if count >= _MANY_TRUTHS:
            self.add(
                "mode",
                f"a truth value that a dry run does not compute was read {count} times here until the program was stopped: a loop that ends only by it does not end in a dry run; give it a limit, or plan with --real",
                line,
            )

    def write(self, device) -> None:
        for number, ((kind, _, line), (text, count)) in enumerate(self._found.items()):
            if number == 200:
                device.lost("notes of the dry run beyond the first 200", len(self._found) - 200)
                break
            device.property(
                f"dry-run.note.{number:03}",
                json.dumps(
                    {
                        "kind": kind,
                        "text": text,
                        "line": line,
                        **({"verdict": self._verdicts[text, line]} if (text, line) in self._verdicts else {}),
                        **({"most": True} if text in self._most else {}),
                        "count": count,
                    }
                ),
            )
