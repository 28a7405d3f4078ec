"""Another value for some of the program's own constants: batch_size = 8 in the source becomes batch_size = 16, for this run only.

What counts as the constant is found in the source of the program's own files, by its name: an assignment of a number, a keyword argument of that name, a
parameter's default, and the default of an argparse option of that name. The files on disk are not touched.
"""

from __future__ import annotations

import ast
import operator

from .reader import program_sources

found: list[dict] = []  # where the constants stood
edited: list[str] = []  # names of numbers that are others by an edit of the source (changed_source.py)


_SUMS = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.LShift: operator.lshift,
    ast.Pow: operator.pow,
}
_LARGEST = 1 << 40  # of what is multiplied; an exponent is less than its bits


def whole_number(node) -> int | None:
    """Of digits, or of what is reckoned of them alone: 1_024, 2 * 512, 1 << 10."""
    if isinstance(node, ast.Constant):
        return node.value if type(node.value) is int else None
    if not isinstance(node, ast.BinOp) or type(node.op) not in _SUMS:
        return None
    left, right = whole_number(node.left), whole_number(node.right)
    if left is None or right is None or not 0 <= left <= _LARGEST:
        return None
    bounded = (
        0 <= right < _LARGEST.bit_length() if isinstance(node.op, (ast.LShift, ast.Pow)) else 0 < right <= _LARGEST
    )
    return _SUMS[type(node.op)](left, right) if bounded else None


class _Rewrite(ast.NodeTransformer):
    """values: the names with the numbers they get; None leaves the number as it is, and only notes where it stands."""

    def __init__(self, values: dict[str, int | None], file: str, found: list[dict]):
        self._values, self._file, self._found = {name.lower(): v for name, v in values.items()}, file, found
        self._options = {
            option: name for name in self._values for option in ("--" + name, "--" + name.replace("_", "-"))
        }

    def _number(self, node, name: str | None, what: str):
        """The node with the other value, if it is a number."""
        own = whole_number(node) if name is not None else None
        if own is None:
            return node
        self._found.append(
            {
                "name": name,
                "file": self._file,
                "line": node.lineno,
                "column": node.col_offset,
                "end": node.end_col_offset if node.end_lineno == node.lineno else 0,
                "value": own,
                "what": what.replace("{}", name),
            }
        )
        value = self._values[name]
        return node if value is None else ast.copy_location(ast.Constant(value), node)

    def _known(self, name: str | None) -> str | None:
        return name.lower() if name and name.lower() in self._values else None

    def _name_of(self, target) -> str | None:
        if isinstance(target, ast.Name):
            return self._known(target.id)
        return self._known(target.attr) if isinstance(target, ast.Attribute) else None

    def visit_Assign(self, node):
        self.generic_visit(node)
        name = next((found for target in node.targets if (found := self._name_of(target))), None)
        if name is not None:
            node.value = self._number(node.value, name, f"{name} = …")
        elif (
            len(node.targets) == 1
            and isinstance(node.targets[0], ast.Tuple)
            and isinstance(node.value, ast.Tuple)
            and len(node.targets[0].elts) == len(node.value.elts)
        ):
            node.value.elts = [
                self._number(value, self._name_of(target), "{} = …")
                for target, value in zip(node.targets[0].elts, node.value.elts)
            ]
        return node

    def visit_AnnAssign(self, node):
        self.generic_visit(node)
        if node.value is not None:
            node.value = self._number(node.value, self._name_of(node.target), "{}: … = …")
        return node

    def visit_keyword(self, node):
        self.generic_visit(node)
        node.value = self._number(node.value, self._known(node.arg), f"{node.arg}=…")
        return node

    def visit_Dict(self, node):
        self.generic_visit(node)
        node.values = [
            self._number(value, self._known(key.value), f"'{key.value}': …")
            if isinstance(key, ast.Constant) and isinstance(key.value, str)
            else value
            for key, value in zip(node.keys, node.values)
        ]
        return node

    def visit_FunctionDef(self, node):
        self.generic_visit(node)
        arguments = node.args
        positional = arguments.posonlyargs + arguments.args
        first = len(positional) - len(arguments.defaults)
        arguments.defaults = [
            self._number(default, self._known(positional[first + index].arg), "default of {}")
            for index, default in enumerate(arguments.defaults)
        ]
        arguments.kw_defaults = [
            default and self._number(default, self._known(arguments.kwonlyargs[index].arg), "default of {}")
            for index, default in enumerate(arguments.kw_defaults)
        ]
        return node

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_Call(self, node):
        self.generic_visit(node)
        if isinstance(node.func, ast.Attribute) and node.func.attr == "add_argument":
            names = [self._options.get(a.value) for a in node.args if isinstance(a, ast.Constant)]
            name = next((n for n in names if n), None)
            for keyword in node.keywords:
                if keyword.arg == "default":
                    keyword.value = self._number(keyword.value, name, f"default of --{name}")
        return node


def numbers_of_program(names: tuple) -> list[dict]:
    """Where numbers of these names stand in the files that the program has loaded and that are its own."""
    numbers: list[dict] = []
    for source in program_sources():
        _Rewrite(dict.fromkeys(names), source.file, numbers).visit(source.tree)  # changes nothing: no name has a number
    return numbers


def told() -> dict | None:
    """Where the number stands that was given another value."""
    places = found or (numbers_of_program(tuple(edited)) if edited else [])
    return {"found": places} if places else None


def rewritten(tree: ast.Module, file: str, values: dict[str, int]):
    return ast.fix_missing_locations(_Rewrite(values, file, found).visit(tree))


def wanted(options: dict) -> dict[str, int]:
    """The numbers of a request: the one that is searched for, and those of remedies ("batch": "batch_size=4")."""
    vary = options.get("vary")
    values = {vary["name"]: int(vary["value"])} if vary else {}
    for remedy in ("batch", "sequence"):
        name, _, value = str((options.get("changes") or {}).get(remedy) or "").partition("=")
        if value.isdigit():
            values[name] = int(value)
    return values
