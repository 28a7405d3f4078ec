"""Another value for one of the program's own constants: batch_size = 8 in the source becomes batch_size = 16, for this run only.

What counts as the constant is found in the source of the program's own files, by its name: an assignment of a number, a keyword argument of that name, a
parameter's default, and the default of an argparse option of that name. The files on disk are not touched.
"""

from __future__ import annotations

import ast
import importlib.machinery
import os
import sys

from .._file_owner import is_library

found: list[dict] = []  # where the constant stood


class _Rewrite(ast.NodeTransformer):
    def __init__(self, name: str, value: int, file: str):
        self._name, self._value, self._file = name, value, file
        self._option = {"--" + name, "--" + name.replace("_", "-")}

    def _number(self, node, what: str):
        """The node with the other value, if it is a plain number."""
        if isinstance(node, ast.Constant) and type(node.value) is int:
            found.append({"file": self._file, "line": node.lineno, "value": node.value, "what": what})
            return ast.copy_location(ast.Constant(self._value), node)
        return node

    def _is_name(self, target) -> bool:
        return (
            isinstance(target, ast.Name)
            and target.id.lower() == self._name.lower()
            or isinstance(target, ast.Attribute)
            and target.attr.lower() == self._name.lower()
        )

    def visit_Assign(self, node):
        self.generic_visit(node)
        if any(self._is_name(target) for target in node.targets):
            node.value = self._number(node.value, f"{self._name} = …")
        elif (
            len(node.targets) == 1
            and isinstance(node.targets[0], ast.Tuple)
            and isinstance(node.value, ast.Tuple)
            and len(node.targets[0].elts) == len(node.value.elts)
        ):
            node.value.elts = [
                self._number(value, f"{self._name} = …") if self._is_name(target) else value
                for target, value in zip(node.targets[0].elts, node.value.elts)
            ]
        return node

    def visit_AnnAssign(self, node):
        self.generic_visit(node)
        if node.value is not None and self._is_name(node.target):
            node.value = self._number(node.value, f"{self._name}: … = …")
        return node

    def visit_keyword(self, node):
        self.generic_visit(node)
        if node.arg and node.arg.lower() == self._name.lower():
            node.value = self._number(node.value, f"{node.arg}=…")
        return node

    def visit_Dict(self, node):
        self.generic_visit(node)
        node.values = [
            self._number(value, f"'{self._name}': …")
            if isinstance(key, ast.Constant) and isinstance(key.value, str) and key.value.lower() == self._name.lower()
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
            self._number(default, f"default of {self._name}")
            if positional[first + index].arg.lower() == self._name.lower()
            else default
            for index, default in enumerate(arguments.defaults)
        ]
        arguments.kw_defaults = [
            self._number(default, f"default of {self._name}")
            if default is not None and arguments.kwonlyargs[index].arg.lower() == self._name.lower()
            else default
            for index, default in enumerate(arguments.kw_defaults)
        ]
        return node

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_Call(self, node):
        self.generic_visit(node)
        if (
            isinstance(node.func, ast.Attribute)
            and node.func.attr == "add_argument"
            and any(isinstance(a, ast.Constant) and a.value in self._option for a in node.args)
        ):
            for keyword in node.keywords:
                if keyword.arg == "default":
                    keyword.value = self._number(keyword.value, f"default of --{self._name}")
        return node


def rewritten(source: bytes | str, file: str, name: str, value: int):
    tree = ast.parse(source, file)
    return ast.fix_missing_locations(_Rewrite(name, value, file).visit(tree))


def arm(request: dict, options: dict) -> None:
    name, value = request["name"], int(request["value"])
    before = importlib.machinery.SourceFileLoader.source_to_code

    def source_to_code(loader, data, path, *, _optimize=-1):
        if isinstance(path, str) and not is_library(path) and isinstance(data, (bytes, str)):
            return compile(rewritten(data, path, name, value), path, "exec", dont_inherit=True, optimize=_optimize)
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
    _run_script(name, value)


def _script() -> str | None:
    """The file that this interpreter was asked to run, if it was one."""
    arguments = getattr(sys, "orig_argv", [])[1:]
    while arguments and arguments[0].startswith("-"):
        option = arguments.pop(0)
        if option in ("-c", "-m") or option.startswith(("-c", "-m")):
            return None
        if option in ("-W", "-X") and arguments:
            arguments.pop(0)
    return arguments[0] if arguments and os.path.isfile(arguments[0]) else None


def _run_script(name: str, value: int) -> None:
    """Runs the program's main file from its changed source, in place of the interpreter, which would compile it unchanged."""
    script = _script()
    if script is None:
        return
    with open(script, "rb") as file:
        source = file.read()
    try:
        code = compile(rewritten(source, script, name, value), script, "exec", dont_inherit=True)
    except SyntaxError:
        return  # the interpreter will say so
    import atexit
    import builtins
    import types

    main = types.ModuleType("__main__")
    main.__dict__.update(__file__=script, __builtins__=builtins, __annotations__={})
    sys.modules["__main__"] = main
    sys.argv = getattr(sys, "orig_argv", [script])[getattr(sys, "orig_argv", [script]).index(script) :]
    sys.path.insert(0, os.path.dirname(os.path.abspath(script)))
    status = 0
    try:
        exec(code, main.__dict__)
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
    except BaseException:
        sys.excepthook(*sys.exc_info())
        status = 1
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)
