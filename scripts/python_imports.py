"""What the modules of python/faultline import of each other, late imports too, and whether that is in order: no cycles, and no folder imports what stands behind it.

The order of the folders of a package stands in its docstring, one row each ("    source/  what …"); the files beside them stand behind all of them. That of the package itself is ORDER.
"""

import ast
import re
from pathlib import Path

PACKAGE = "faultline"
# Folders, and modules that stand apart from the others of theirs. "_*": those with an underscore; "*": the rest of the package's own; notebook's three: what explain() asks of a shell, too.
ORDER = [
    "_*",
    "demo",
    "common",
    "run",
    "plan",
    "report",
    "notebook.loaded",
    "notebook.cells",
    "notebook.kept_alive",
    "*",
    "notebook",
    "__init__",
    "_inject",
]


def modules(folder: Path) -> dict[str, Path]:
    found = {}
    for path in sorted((folder / PACKAGE).rglob("*.py")):
        parts = path.relative_to(folder).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imports_of(name: str, path: Path, known) -> set[str]:
    """The package's modules that a module names in an import, wherever in it that stands."""
    found = set()
    package = name.split(".") if path.name == "__init__.py" else name.split(".")[:-1]
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            base = ".".join([*base, *([node.module] if node.module else [])])
            found.update(f"{base}.{alias.name}" if f"{base}.{alias.name}" in known else base for alias in node.names)
    return {each for each in found if each in known and each != name}


def cycle_in(graph: dict[str, set[str]]) -> list[str]:
    """One, from a module back to it; empty: there is none."""
    done, way = set(), []

    def look(at):
        if at in way:
            return [*way[way.index(at) :], at]
        if at in done:
            return []
        way.append(at)
        found = next((cycle for each in sorted(graph[at]) if (cycle := look(each))), [])
        way.pop()
        done.add(at)
        return found

    return next((cycle for each in sorted(graph) if (cycle := look(each))), [])


def listed_in(path: Path) -> list[str]:
    """The folders of a package, as its docstring has them."""
    text = ast.get_docstring(ast.parse(path.read_text()), clean=False) or ""
    return re.findall(r"^    (\w+)/(?= )", text, re.M)


def places(folder: Path, known: dict[str, Path]) -> tuple[dict[str, int], list[str]]:
    """For each module its place in the order, and what is missing in that."""
    order, wrong = [], []

    def add(package: str):
        inside = {name.split(".")[package.count(".") + 1] for name in known if name.startswith(package + ".")}
        folders = [each for each in sorted(inside) if (folder / package.replace(".", "/") / each).is_dir()]
        named = listed_in(known[package]) if folders else []
        if sorted(named) != folders:
            wrong.append(
                f"the docstring of {known[package].relative_to(folder.parent)} lists the folders {named}, and there are {folders}"
            )
        for each in [*named, *(more for more in folders if more not in named)]:
            add(f"{package}.{each}")
        order.append(package)

    for each in ORDER:
        if (folder / PACKAGE / each).is_dir() and f"{PACKAGE}.{each}" in known and each != "notebook":
            add(f"{PACKAGE}.{each}")
        else:
            order.append(PACKAGE if each == "__init__" else f"{PACKAGE}.{each}")

    def place(name: str) -> int:
        last = name.rpartition(".")[2]
        kinds = [name, *(f"{name.rsplit('.', up)[0]}" for up in range(1, name.count(".")))]
        if name.count(".") == 1 and not known[name].name == "__init__.py":
            kinds.append(f"{PACKAGE}._*" if last.startswith("_") else f"{PACKAGE}.*")
        found = next((order.index(kind) for kind in kinds if kind in order), None)
        if found is None:
            wrong.append(f"{name} has no place in the order of scripts/python_imports.py")
        return found or 0

    return {name: place(name) for name in known}, wrong


def check(folder: Path) -> list[str]:
    """What is wrong with the package in a folder, in sentences."""
    known = modules(folder)
    graph = {name: imports_of(name, path, known) for name, path in known.items()}
    at, wrong = places(folder, known)
    for name, others in graph.items():
        wrong += [
            f"{name} imports {other}, which does not stand before it"
            for other in sorted(others)
            if at[other] > at[name]
        ]
    if cycle := cycle_in(graph):
        wrong.append("modules import each other in a circle: " + " → ".join(cycle))
    return wrong
