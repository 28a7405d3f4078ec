"""Cells by their numbers: what IPython calls a cell's code (/tmp/ipykernel_12/345.py, <ipython-input-12-3f2b>) is "cell [12]" to a reader."""

from __future__ import annotations

import os
import re
import sys

_NUMBERED = re.compile(r"(?:.*/|<)ipython-input-(\d{1,9})-[0-9a-zA-Z]+(?:\.py|>)")
_ANY = re.compile(
    r"(?P<file>[^\s\"'(]*/ipykernel_\d+/\d+\.py|(?:[^\s\"'(]*/|<)ipython-input-\d{1,9}-[0-9a-zA-Z]+(?:\.py|>)|\b\d{3,20}\.py\b)"
    r"(?::(?P<line>\d+))?"
)


def running_shell():
    """IPython's, where this runs in one. IPython is not imported for it."""
    return getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()


class Cells:
    """Of a shell, or of nothing but names where there is none. `known` are numbers that were noted before, by file."""

    def __init__(self, shell=None, known=None):
        self._shell = shell
        self._noted = dict(known or {})

    def note(self, file: str, number: int) -> None:
        self._noted[file] = number

    def expect(self, source: str, number: int) -> None:
        """A cell that is about to be compiled."""
        try:
            self.note(self._shell.compile.get_code_name(source, source, number), number)
        except Exception:
            pass  # a release that names them in another way: known when it is compiled

    def all(self) -> dict:
        """Every cell's file that has a number."""
        compiler = getattr(self._shell, "compile", None)
        return {**self._noted, **(getattr(compiler, "_filename_map", None) or {})}

    def number_of(self, file: str) -> int | None:
        found = self.all().get(file)
        if found is not None:
            return found
        numbered = _NUMBERED.fullmatch(file)
        if numbered:
            return int(numbered[1])
        return self._looked_up(file) if "/ipykernel_" in file else None

    def name_of(self, file: str) -> str:
        number = self.number_of(file)
        return file if number is None else f"cell [{number}]"

    def _looked_up(self, file: str) -> int | None:
        """Older releases of IPython keep no list: the cells that were run are named once more."""
        name = getattr(getattr(self._shell, "compile", None), "get_code_name", None)
        history = getattr(self._shell, "history_manager", None)
        if name is None or history is None:
            return None
        raw, parsed = history.input_hist_raw, history.input_hist_parsed
        for number in range(min(len(raw), len(parsed)) - 1, 0, -1):
            try:
                named = name(raw[number], parsed[number], number)
            except Exception:
                return None
            self._noted.setdefault(named, number)
            if named == file:
                return number
        return None

    def in_words(self, text: str) -> str:
        """A text with the names of cells in it."""
        if ".py" not in text and "ipython-input-" not in text:
            return text
        by_name = {os.path.basename(file): number for file, number in self.all().items()}

        def said(found):
            file, line = found["file"], found["line"]
            number = self.number_of(file) if "/" in file or "<" in file else by_name.get(file)
            if number is None:
                return found[0]
            return f"cell [{number}]" + (f", line {line}" if line else "")

        return _ANY.sub(said, text)

    def in_report(self, part):
        """The same of a report's JSON, wherever files, lines and texts stand in it."""
        if isinstance(part, dict):
            return {
                key: self.name_of(value) if key == "file" and isinstance(value, str) else self.in_report(value)
                for key, value in part.items()
            }
        if isinstance(part, list):
            return [self.in_report(one) for one in part]
        return self.in_words(part) if isinstance(part, str) else part

    def in_traceback(self, text: str) -> str:
        """Of a traceback as Python prints it: the reader of pasted errors knows cells by this name."""

        def said(found):
            number = self.number_of(found[1])
            return found[0] if number is None else f'File "Cell In[{number}]", line '

        return re.sub(r'File "([^"\n]+)", line ', said, text)
