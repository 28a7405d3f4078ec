"""A report as an object: text in a terminal, HTML in a notebook."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from dataclasses import dataclass, field
from functools import cached_property
from html import escape

from ._program import find_binary

_WIDTH = 100
_TABLE = (
    '<table style="color:inherit;font:inherit;background:transparent;margin:0">'  # also where tables do not inherit
)
_MOST_TEXT = 60_000  # characters of the whole text in a page
_MOST_SHOWN = 4  # findings that stand open
# Middle tones, which can be read on white and on black; all other colours are the page's own.
_COLOURS = {"error": "#d64545", "warning": "#c27c0e", "note": "#4a86c5", "good": "#2f9e60"}


@dataclass(frozen=True)
class Section:
    """What the notebook's side found out: sentences, and rows of bytes, who and what about it."""

    title: str
    sentences: tuple = ()
    rows: tuple = ()  # of (bytes, name, words)
    fixes: tuple = ()
    is_head: bool = False  # it stands before the findings

    def __str__(self) -> str:
        lines = [self.title, *(_wrapped(sentence, "  ") for sentence in self.sentences)]
        sizes = [bytes_in_words(row[0]) for row in self.rows]
        wide = max(map(len, sizes), default=0)
        for size, (_, name, words) in zip(sizes, self.rows):
            lines.append(_wrapped(f"{name}  {words}".rstrip(), f"    {size:>{wide}}  "))
        lines += [_wrapped(fix, "  try  · " if at == 0 else "       · ") for at, fix in enumerate(self.fixes)]
        return "\n".join(lines) + "\n"

    def as_html(self) -> str:
        rows = "".join(
            f'<tr><td style="text-align:right;white-space:nowrap">{escape(bytes_in_words(size))}</td>'
            f'<td style="text-align:left"><code>{escape(name)}</code> {escape(words)}</td></tr>'
            for size, name, words in self.rows
        )
        return (
            f"<div><b>{escape(self.title)}</b></div>"
            + "".join(f"<div>{escape(sentence)}</div>" for sentence in self.sentences)
            + (f"{_TABLE}{rows}</table>" if rows else "")
            + _html_list("try", self.fixes)
        )


@dataclass(frozen=True)
class Report:
    """What was found. `content` is the JSON report of the command line tool; `sections` what is known beside it."""

    content: dict = field(default_factory=dict)
    sections: tuple = ()

    @property
    def findings(self) -> list:
        return self.content.get("findings", [])

    @cached_property
    def told(self) -> str:
        """The tool's own words, all of them: there is no --verbose to ask with."""
        return shown_again(self.content, "-vv") if self.content else ""

    @property
    def text(self) -> str:
        heads, rest = in_order(self.sections)
        return "\n".join([*map(str, heads), *([self.told] if self.told else []), *map(str, rest)])

    def __str__(self) -> str:
        return self.text

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return page_of(self.content, self.sections, self.told)


def in_order(sections):
    return [one for one in sections if one.is_head], [one for one in sections if not one.is_head]


def page_of(content: dict, sections, text: str) -> str:
    """A piece of HTML without scripts, pictures and addresses. Whatever a program calls its things is text in it and nothing else."""
    findings = content.get("findings", [])
    heads, rest = in_order(sections)
    parts = [section.as_html() for section in heads]
    parts += [_html_of_plan(content["plan"])] if content.get("plan") else []
    parts += [_html_of_finding(finding) for finding in findings[:_MOST_SHOWN]]
    if len(findings) > _MOST_SHOWN:
        parts.append(f"<div>{len(findings) - _MOST_SHOWN} more findings stand below.</div>")
    if content and not findings and not content.get("plan"):
        unseen = content.get("input", {}).get("unseen", [])
        parts.append(
            f"<div>{escape('Nothing was found in what was seen, which is not all.' if unseen else 'Nothing was found.')}</div>"
        )
    parts += [section.as_html() for section in rest]
    if text:
        cut = text if len(text) <= _MOST_TEXT else text[:_MOST_TEXT] + "\n… str(report) has the rest"
        parts.append(
            f'<details><summary>the whole report</summary><pre style="color:inherit;background:transparent;white-space:pre;overflow-x:auto">{escape(cut)}</pre></details>'
        )
    body = "".join(f'<div style="margin:0 0 .6em 0">{part}</div>' for part in parts)
    return f'<div style="color:inherit;background:transparent;max-width:70em">{body}</div>'


def _html_of_plan(plan: dict) -> str:
    verdict = plan.get("verdict", "")
    tone = "good" if verdict in ("fits", "fits-tightly") else "error" if verdict == "does-not-fit" else "warning"
    gpu = (plan.get("gpu") or {}).get("name", "")
    capacity = (plan.get("gpu") or {}).get("capacity", 0)
    needed = plan.get("needed", 0)
    least, most = (bytes_in_words(plan.get(f"needed_{end}") or needed) for end in ("least", "most"))
    words = f"needs {bytes_in_words(needed) if least == most else f'{least} to {most}'}" if needed else ""
    if capacity:
        words += f"{' of ' if words else ''}{bytes_in_words(capacity)}"
    head = f'<b style="color:{_COLOURS[tone]}">{escape(verdict.replace("-", " "))}</b>'
    return f"{head}{escape(f' on {gpu}' if gpu else '')}{escape(f': {words}' if words else '')}"


def _html_of_finding(finding: dict) -> str:
    colour = _COLOURS.get(finding.get("severity", ""), _COLOURS["note"])
    place = place_in_words(finding.get("location") or {})
    holders = "".join(
        f'<tr><td style="text-align:right;white-space:nowrap">{escape(bytes_in_words(holder.get("bytes", 0)))}</td>'
        f'<td style="text-align:left">{escape(str(holder.get("category", "")))}</td>'
        f'<td style="text-align:left">{escape(place_in_words(holder.get("location") or {}) or str(holder.get("detail") or ""))}</td></tr>'
        for holder in finding.get("holders", [])[:5]
    )
    tries = [("✔ " if one.get("confirmed") else "") + str(one.get("what", "")) for one in finding.get("tries", [])[:4]]
    return (
        f'<div style="border-left:4px solid {colour};padding-left:.7em">'
        f'<div><b style="color:{colour}">{escape(str(finding.get("severity", "")))}</b> '
        f"<code>{escape(str(finding.get('rule', '')))}</code> ({escape(str(finding.get('confidence', '')))})</div>"
        f"<div>{escape(str(finding.get('message', '')))}</div>"
        + (f"<div>at <b>{escape(place)}</b></div>" if place else "")
        + (f"<div>held by</div>{_TABLE}{holders}</table>" if holders else "")
        + _html_list("try", tries)
        + "</div>"
    )


def _html_list(head: str, lines) -> str:
    if not lines:
        return ""
    return f'<div>{head}</div><ul style="margin:0">' + "".join(f"<li>{escape(line)}</li>" for line in lines) + "</ul>"


def place_in_words(location: dict) -> str:
    file, line, function = (location.get(key) or "" for key in ("file", "line", "function"))
    text = str(file)
    if file and line:
        text += f", line {line}" if text.startswith("cell [") else f":{line}"
    if function and function != "<module>":
        text += f"{' ' if text else ''}in {function}"
    return text


def bytes_in_words(size: int) -> str:
    for unit, factor in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if abs(size) >= factor:
            return f"{size / factor:.2f} {unit}"
    return f"{size} B"


def _wrapped(text: str, begin: str) -> str:
    import textwrap

    return textwrap.fill(text, _WIDTH, initial_indent=begin, subsequent_indent=" " * len(begin), break_long_words=False)


def shown_again(content: dict, *options: str) -> str:
    """A report's JSON as the terminal shows it; in few words where the program cannot be asked any more."""
    try:
        told = _shown_by_program(content, options)
    except OSError:
        told = ""
    return told or "".join(_line_of(finding) for finding in content.get("findings", ())) or "Nothing was found.\n"


def _line_of(finding: dict) -> str:
    place = place_in_words(finding.get("location") or {})
    head = f"{str(finding.get('severity', '')).upper()}  {finding.get('rule', '')}{f' at {place}' if place else ''}: "
    return _wrapped(head + str(finding.get("message", "")), "") + "\n"


def _shown_by_program(content: dict, options) -> str:
    with tempfile.TemporaryDirectory(prefix="faultline-") as folder:
        path = os.path.join(folder, "report.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump(content, file)
        return call("explain", path, *options)[1]


def call(*words: str):
    """The program's status, output and what it said beside it."""
    environment = {**os.environ, "NO_COLOR": "1", "COLUMNS": str(_WIDTH)}
    for name in ("FAULTLINE_FORMAT", "LD_PRELOAD"):
        environment.pop(name, None)
    done = subprocess.run(
        [find_binary(), *words],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        env=environment,
    )
    return done.returncode, done.stdout.decode("utf-8", "replace"), done.stderr.decode("utf-8", "replace")
