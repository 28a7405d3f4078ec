"""Another value for some of the program's own constants: batch_size = 8 in the source becomes batch_size = 16, for this run only.

What counts as the constant is found in the source of the program's own files, by its name: an assignment of a number, a keyword argument of that name, a
parameter's default, and the default of an argparse option of that name. The files on disk are not touched.
"""

from __future__ import annotations

import ast
import importlib.machinery
import os
import sys
import threading

from ..._file_owner import is_library
from .reader import program_sources

found: list[dict] = []  # where the constants stood


class _Rewrite(ast.NodeTransformer):
    """values: the names with the numbers they get; None leaves the number as it is, and only notes where it stands."""

    def __init__(self, values: dict[str, int | None], file: str, found: list[dict]):
        self._values, self._file, self._found = {name.lower(): v for name, v in values.items()}, file, found
        self._options = {
            option: name for name in self._values for option in ("--" + name, "--" + name.replace("_", "-"))
        }

    def _number(self, node, name: str | None, what: str):
        """The node with the other value, if it is a plain number."""
        if name is None or not isinstance(node, ast.Constant) or type(node.value) is not int:
            return node
        self._found.append(
            {
                "name": name,
                "file": self._file,
                "line": node.lineno,
                "column": node.col_offset,
                "value": node.value,
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


def rewritten(source: bytes | str, file: str, values: dict[str, int]):
    tree = ast.parse(source, file)
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


_armed: dict[str, int] = {}


def arm(values: dict[str, int]) -> None:
    before = importlib.machinery.SourceFileLoader.source_to_code

    def source_to_code(loader, data, path, *, _optimize=-1):
        if isinstance(path, str) and not is_library(path) and isinstance(data, (bytes, str)):
            return compile(rewritten(data, path, values), path, "exec", dont_inherit=True, optimize=_optimize)
        return before(loader, data, path, _optimize=_optimize)

    importlib.machinery.SourceFileLoader.source_to_code = source_to_code
    sys.dont_write_bytecode = True
    importlib.machinery.SourceFileLoader._cache_bytecode = lambda *_a: None
    get_code = importlib.machinery.SourceFileLoader.get_code

    def fresh_code(loader, fullname):
        path = loader.get_filename(fullname)
        if is_library(path):
            return get_code(loader, fullname)
        return loader.source_to_code(loader.get_data(path), path)  # a cached compilation would have the old value

    importlib.machinery.SourceFileLoader.get_code = fresh_code
    _armed.update(values)


def run_changed_script() -> None:
    """Called when the program's own folders are on sys.path (_inject/sitecustomize.py); returns where its source is not to be changed."""
    if _armed:
        _run_script(_armed)


def _command() -> list[str]:
    """As this interpreter was started."""
    if (command := getattr(sys, "orig_argv", None)) is not None:
        return list(command)
    with open("/proc/self/cmdline", "rb") as file:  # Python 3.9
        return [os.fsdecode(word) for word in file.read().split(b"\0")[:-1]]


def _script() -> str | None:
    """The file that this interpreter was asked to run, if it was one."""
    arguments = _command()[1:]
    while arguments and arguments[0].startswith("-"):
        option = arguments.pop(0)
        if option in ("-c", "-m") or option.startswith(("-c", "-m")):
            return None
        if option in ("-W", "-X") and arguments:
            arguments.pop(0)
    return arguments[0] if arguments and os.path.isfile(arguments[0]) else None


def _run_script(values: dict[str, int]) -> None:
    """Runs the program's main file from its changed source, in place of the interpreter, which would compile it unchanged."""
    script = _script()
    if script is None:
        return
    with open(script, "rb") as file:
        source = file.read()
    try:
        code = compile(rewritten(source, script, values), script, "exec", dont_inherit=True)
    except SyntaxError:
        return  # the interpreter will say so
    import atexit
    import builtins
    import types

    main = types.ModuleType("__main__")
    main.__dict__.update(__file__=script, __builtins__=builtins, __annotations__={})
    sys.modules["__main__"] = main
    command = _command()
    sys.argv = command[command.index(script) :]
    sys.path.insert(0, os.path.dirname(os.path.abspath(script)))
    status = 0
    try:
        exec(code, main.__dict__)
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
    except BaseException:
        sys.excepthook(*sys.exc_info())
        status = 1
    threading._shutdown()  # the program's own threads come to their end, as at the end of any program
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)
