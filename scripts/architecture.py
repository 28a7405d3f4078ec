#!/usr/bin/env python3
"""The rules of the house, checked, and the two figures of docs/architecture.md and the list of rules in docs/report.schema.json, written from the code.

    scripts/architecture.py [--write]

Checked: a room of src/ includes only rooms that stand before it, and a folder of python/faultline imports only what does, without cycles (python_imports.py); no file has more than 500 lines and no function more than 80 (long_functions.py); the figures are those of the code; what docs/architecture.md names exists;
no framework is told from another by its name as a word;
every input and every output format has its row in docs/cli.md, every rule its row in docs/rules/README.md and its place in the schema, and nothing asks for a rule by its name; the form of files: no tabs, no space at the end of a line, one line end at the end of a file, includes in order.
--write draws the figures anew, lists the rules in the schema and puts includes in order. Status 1 where something is not as it should be.
"""

import re
import sys
from pathlib import Path

import long_functions
import python_imports

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "architecture.md"
SCHEMA = ROOT / "docs" / "report.schema.json"
SPINE = [
    "base",
    "trace",
    "sources",
    "facts",
    "models",
    "rules",
    "plan",
    "report",
    "view",
    "cli",
]  # each sees those before it
BESIDE = {
    "driver": ["base", "trace"],
    "confine": ["base"],
    "pack": ["base", "trace", "sources"],
    "process": ["base", "trace", "confine", "sources", "facts", "models", "driver", "plan"],
    "doctor": ["base", "confine", "driver", "process"],
    "capture": ["base", "trace", "driver"],
    "vgpu": ["base", "trace", "driver"],
    "dryrun": ["base", "trace", "sources", "facts", "models"],
}
MORE = {"cli": ["confine", "pack", "process", "doctor"]}
MOST_LINES = 500
# Functions that are longer than others may be. Nothing is added here; what has become shorter is taken out.
MAY_BE_LONG = {
    "src/confine/file_layer_walk.cpp FileLayer::find",  # a path's walk, step by step as the kernel does it
    "src/sources/torch_snapshot/pickle_reader.cpp Reader::common_run",  # the loop over a pickle's opcodes
    "src/plan/plan_fields.h fields",
}


def rooms():
    return [path.name for path in sorted((ROOT / "src").iterdir()) if path.is_dir()]


def allowed(room):
    return SPINE[: SPINE.index(room)] + MORE.get(room, []) if room in SPINE else BESIDE.get(room, [])


def code(kind="*", tests=False):
    for path in sorted((ROOT / "src").rglob(kind)):
        if path.suffix in (".cpp", ".h") and (
            tests or not re.search(r"_(test|fuzz|bench|test_support)\.|sample", path.name)
        ):
            yield path


def includes():
    """room → the rooms it includes, tests apart."""
    found = {room: set() for room in rooms()}
    for path in code():
        room = path.relative_to(ROOT / "src").parts[0]
        for other in re.findall(r'^#include "(\w+)/', path.read_text(), re.M):
            if other in found and other != room:
                found[room].add(other)
    return found


def ordered(found):
    """Rooms so that each stands behind what it includes."""
    order = []
    while len(order) < len(found):
        ready = [room for room in found if room not in order and found[room] <= set(order)]
        if not ready:
            sys.exit("rooms include each other in a circle: " + ", ".join(sorted(set(found) - set(order))))
        order += sorted(ready, key=lambda room: (room not in SPINE, SPINE.index(room) if room in SPINE else 0, room))
    return order


def figure_of_rooms():
    found = includes()
    lines = []
    for room in ordered(found):
        below = [other for other in ordered(found) if other in found[room]]
        lines.append(f"{room:<9}{'on ' + ' '.join(below) if below else ''}".rstrip())
    return "\n".join(lines)


def listed(path, pattern):
    return re.findall(pattern, (ROOT / path).read_text())


def rule_names():
    """constant → name, of the header that has each name once."""
    return dict(listed("src/sources/rule_names.h", r'string_view (k\w+) = "([^"]+)"'))


def registered_rules(of_traces=False):
    """The names of the registry, in its order; of_traces: without those of a plan's limits, which no trace is judged by."""
    names = rule_names()
    rows = listed("src/rules/registry.cpp", r"\{\.name = rule_name::(k\w+),\s*(?:\.topic = Topic::(k\w+))?")
    return [names[constant] for constant, topic in rows if not (of_traces and topic == "kLimit")]


def in_rows(words, indent, width=110):
    rows, row = [], ""
    for word in words:
        if row and len(row) + len(word) + 3 > width:
            rows.append(row)
            row = ""
        row += (" · " if row else "") + word
    return ("\n" + " " * indent).join([*rows, row])


def figure_of_report():
    registry = (ROOT / "src/sources/registry.cpp").read_text()
    sources = re.findall(r'\.kind = "([\w-]+)"(.*?)(?=\.kind =|\n\};)', registry, re.S)
    files = [kind for kind, rest in sources if ".recognises =" in rest]
    folders = [kind for kind, rest in sources if ".recognises_folder =" in rest]
    if not files or not folders:
        sys.exit("src/sources/registry.cpp names no sources in a form that is understood here")
    facts = listed("src/facts/facts.h", r"\n  (?:[A-Z]\w+|std::vector<[\w:]+>) (\w+);")
    lines = [
        "a path",
        "  │  open_input()      sources/input.h",
        f"  │    files           {in_rows(files, 23)}",
        f"  │    folders         {in_rows(folders, 23)}",
        "  ▼",
        "Input: parts, each a trace and its statements; notes, what was left out, a plan",
        "  │  judge()           rules/judge.h, each part",
        f"  │    facts           {in_rows(facts, 23)}",
        f"  │    rules           {in_rows(registered_rules(of_traces=True), 23)}",
        "  ▼",
        "Judgement: findings, what was not judged, proofs",
        "  │  make_report()     report/assemble.h",
        "  ▼",
        "Report ── to_terminal() ─▶ the page",
        "       ── to_json() ─▶ report.json (report_of() reads it again)",
    ]
    lines = "\n".join(lines).split("\n")
    return "\n".join(
        line if line.startswith(("  │", "  ▼")) or not line.startswith(" " * 23) else "  │" + line[3:] for line in lines
    )


def in_order(text):
    """The text with each block of includes in order."""

    def sort(block):
        lines = block[0].rstrip("\n").split("\n")
        return "\n".join(sorted(lines, key=lambda line: re.search(r'["<](.*)[">]', line)[1])) + "\n"

    return re.sub(r'(?:^#include ["<][^">]*[">][^\n]*\n){2,}', sort, text, flags=re.M)


def check_form(write):
    for path in [
        *code(tests=True),
        *(ROOT / "python").rglob("*.py"),
        *(ROOT / "scripts").rglob("*.py"),
        *(ROOT / "tests").rglob("*.py"),
        *(ROOT / "tests").rglob("*.cpp"),
    ]:
        text = path.read_text()
        name = path.relative_to(ROOT)
        if re.search(r"^ *\t", re.sub(r'R"(\w*)\(.*?\)\1"', "", text, flags=re.S), re.M):
            yield f"{name} has a tab"
        if re.search(r"[ \t\r]$", text, re.M):
            yield f"{name} has space at the end of a line"
        if text and not re.search(r"[^\n]\n\Z", text):
            yield f"{name} does not end with one line end"
        if path.suffix in (".cpp", ".h") and in_order(text) != text:
            if write:
                path.write_text(in_order(text))
            else:
                yield f"{name} has includes out of order: scripts/architecture.py --write puts them right"


def check_schema(write):
    """The rules that the schema of the report names are those of the registry, in its order."""
    text = SCHEMA.read_text()
    new = re.sub(r'(?<=so far: )[^"]*', ", ".join(registered_rules()), text)
    if new != text and write:
        SCHEMA.write_text(new)
    elif new != text:
        yield "the rules that docs/report.schema.json names are not those of the registry: scripts/architecture.py --write lists them"


def check_rules():
    """The table of docs/rules has the rules of the registry; code names rules by their constants, and only where it makes findings."""
    rows = set(listed("docs/rules/README.md", r"(?m)^\| \[(\w+/[\w-]+)\]"))
    rules = set(registered_rules())
    for rule in sorted(rows ^ rules):
        yield f"docs/rules/README.md {'has no row for' if rule in rules else 'has a row for a rule that is not registered:'} {rule}"
    for path in code():
        name = path.relative_to(ROOT)
        if str(name) == "src/sources/rule_names.h":
            continue
        text = path.read_text()
        for rule in rule_names().values():
            if f'"{rule}"' in text:
                yield f"{name} has the name {rule}, which stands in src/sources/rule_names.h"
        for comparison in re.findall(r"[!=]= rule_name::k\w+|rule_name::k\w+ [!=]=", text):
            yield f"{name} asks for a rule by its name ({comparison.strip('!= ')}): a trait in src/rules/registry.h says what is meant"
    named = re.compile(r'"((?:%s)/[a-z-]+)"' % "|".join(sorted({rule.partition("/")[0] for rule in rules})))
    for path in sorted((ROOT / "python").rglob("*.py")):
        for rule in named.findall(path.read_text()):
            if path.name != "rule_names.py":
                yield f"{path.relative_to(ROOT)} has the name {rule}, which stands in python/faultline/rule_names.py"
            elif rule not in rules:
                yield f"{path.relative_to(ROOT)} names {rule}, which is not registered"


def check_functions():
    long = {
        f"{path.relative_to(ROOT)} {name}": f"{line}: {name} has {lines} lines"
        for path in [*code(), *(ROOT / "python").rglob("*.py")]
        for name, line, lines in long_functions.over(path)
    }
    for key in sorted(long.keys() - MAY_BE_LONG):
        yield f"{key.split()[0]}:{long[key]}, more than {long_functions.MOST_LINES}"
    for key in sorted(MAY_BE_LONG - long.keys()):
        yield f"{key} may be long, says scripts/architecture.py, and is not, or is no more"


def check_inputs():
    page = (ROOT / "docs/cli.md").read_text()
    for what in listed("src/sources/registry.cpp", r'\.what = "([^"]*)"'):
        if f"\n| {what} |" not in page:
            yield f'docs/cli.md has no row "{what}" under explain'


def check_formats():
    """Each output format has its row in docs/cli.md, and is told from the others in its own file and in the table alone."""
    page = (ROOT / "docs/cli.md").read_text()
    names = dict(listed("src/cli/formats.h", r'(k\w+) = "([^"]+)"'))
    for name, constant in listed("src/cli/formats.cpp", r'\{\.name = (?:"([\w-]+)"|format_name::(k\w+))'):
        if f"`--format {name or names[constant]}`" not in page:
            yield f"docs/cli.md has no row `--format {name or names[constant]}` under explain"


FIGURES = {"what includes what": figure_of_rooms, "how an input becomes a report": figure_of_report}


def drawn(text):
    for name, figure in FIGURES.items():
        block = re.compile(rf"(<!-- drawn by scripts/architecture.py: {re.escape(name)} -->\n```\n).*?(```)", re.S)
        if not block.search(text):
            sys.exit(f"{PAGE.name} has no figure \"{name}\"")
        text = block.sub(lambda match: match[1] + figure() + "\n" + match[2], text)
    return text


# A framework's name is decided in src/trace/framework.h: elsewhere none is compared, chosen or set by its words. Python packages of that name (doctor) are packages.
FRAMEWORK_NAMES = ROOT / "src" / "trace" / "framework.h"
NAME = r'"(?:jax|tensorflow|pytorch|bfc\.framework)"'
BY_NAME = re.compile(
    rf"[=!]=\s*{NAME}|{NAME}\s*[=!]=|[?:]\s*{NAME}\s*[:;,)]|\w*(?:framework|program|maker)\w*(?:\(| = ){NAME}|said\(.*{NAME}",
    re.I,
)


def check_frameworks():
    for path in code():
        if path == FRAMEWORK_NAMES or "doctor" in path.parts:
            continue
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if BY_NAME.search(line.split("//")[0]):
                place = f"{path.relative_to(ROOT)}:{number}"
                yield f"{place} decides by a framework's name: src/trace/framework.h has them as an enum"


def main():
    wrong = []
    for room, found in includes().items():
        wrong += [
            f"src/{room} includes src/{other}, which does not stand before it"
            for other in sorted(found - set(allowed(room)))
        ]
    wrong += python_imports.check(ROOT / "python")
    long = [
        path
        for path in [*code(tests=True), *(ROOT / "python").rglob("*.py"), *(ROOT / "scripts").rglob("*.py")]
        if len(path.read_text().splitlines()) > MOST_LINES
    ]
    wrong += [f"{path.relative_to(ROOT)} has more than {MOST_LINES} lines" for path in long]
    wrong += [*check_form("--write" in sys.argv), *check_schema("--write" in sys.argv)]
    wrong += [*check_rules(), *check_functions(), *check_inputs(), *check_formats(), *check_frameworks()]
    text = PAGE.read_text()
    for name in sorted(set(re.findall(r"`((?:src|python|scripts|tests|docs)/[\w./-]+?)`", text))):
        if not (ROOT / name).exists():
            wrong.append(f"docs/architecture.md names {name}, which does not exist")
    new = drawn(text)
    if "--write" in sys.argv:
        PAGE.write_text(new)
    elif new != text:
        wrong.append(
            "the figures of docs/architecture.md are not those of the code: scripts/architecture.py --write draws them"
        )
    for sentence in wrong:
        print(sentence)
    return 1 if wrong else 0


sys.exit(main())
