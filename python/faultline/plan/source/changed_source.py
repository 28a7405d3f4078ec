"""The program's source as a trial runs it: with the edits of remedies, and with other values for some of its numbers. The files on disk are not touched.

An edited file runs under its own name, and each of its new lines under the number of the line that it stands for in the file: stacks, tracebacks, inspect and linecache show the program as its user
has it, and what a trial tells of lines can be compared with what the first run told.

The main file is run in place of the interpreter, which would compile it as it is; modules come from the usual loader, with other code.
"""

from __future__ import annotations

import ast
import importlib.machinery
import importlib.util
import os
import sys
import threading

from ..._file_owner import is_library
from . import vary
from .edited_lines import Conflict, edited, joined

MANY = "@MANY@"  # in an edit: how many batches make a step (src/plan/offer.h)

_values: dict[str, int] = {}
_files: dict[str, _EditedFile] = {}
_made: list[str] = []  # remedies that are edits of the source in this run


class _EditedFile:
    def __init__(self, path: str):
        with open(path, "rb") as file:
            self._data = file.read()
        self._lines = importlib.util.decode_source(self._data).split("\n")
        self.edits: list[tuple] = []  # with MANY
        self._many = ""
        self.has_run = False

    def with_more(self, edits: list[tuple], many: str) -> None:
        """Raises Conflict where they do not go with those that it has, and SyntaxError where what comes of them is no Python."""
        both = self.edits + edits
        ast.parse("\n".join(self._edited(both, many)[0]))
        self.edits, self._many = both, many

    def _edited(self, edits: list[tuple], many: str) -> tuple[list[str], list[int]]:
        filled = [(line, old, [text.replace(MANY, many) for text in new]) for line, old, new in edits]
        return edited(self._lines, joined(self._lines, filled))

    def tree(self, data: bytes, path: str):
        """None: the file is another by now."""
        if data != self._data:
            return None
        lines, origins = self._edited(self.edits, self._many)
        self.has_run = True
        return _at_lines(ast.parse("\n".join(lines), path), origins)

    def told(self) -> list[tuple]:
        return joined(self._lines, self.edits)


def is_trial(options: dict) -> bool:
    """Is the program run otherwise than its user has it?"""
    return bool(options.get("changes") or options.get("vary") or _files)


def arm(options: dict) -> None:
    """What is an edit is no change of another kind any more; what cannot be one stays that."""
    for name, edits in (options.get("edits") or {}).items():
        if not _take(edits, str(options.get("many") or 2)):
            continue
        _made.append(name)
        if name == "vary":
            vary.edited.append(options["vary"]["name"])
            options["vary"] = None
        else:
            (options.get("changes") or {}).pop(name, None)
    _values.update(vary.wanted(options))
    if _values or _files:
        _hook_loader()
        _hook_runpy()


def _take(edits: list[dict], many: str) -> bool:
    by_file: dict[str, list[tuple]] = {}
    for one in edits:
        by_file.setdefault(os.path.abspath(one["file"]), []).append((one["line"], one["old"], one["new"]))
    if _have_run(set(by_file)):
        return False
    try:
        files = {path: _files.get(path) or _EditedFile(path) for path in by_file}
        before = {path: file.edits for path, file in files.items()}
        try:
            for path, file in files.items():
                file.with_more(by_file[path], many)
        except (Conflict, SyntaxError, ValueError):
            for path, file in files.items():
                file.edits = before[path]
            return False
    except (OSError, SyntaxError, ValueError):
        return False
    _files.update(files)
    return bool(files)


def _have_run(files: set[str]) -> bool:
    """Where a function of a living process is planned its modules were imported long ago."""
    loaded = (getattr(module, "__dict__", {}).get("__file__") for module in list(sys.modules.values()))
    return any(os.path.abspath(file) in files for file in loaded if isinstance(file, str))


def told() -> dict | None:
    """The remedies that were edits, and all of these together; None: not all that was edited has been run."""
    if not _files or not all(file.has_run for file in _files.values()):
        return None
    edits = [
        {"file": path, "line": line, "old": old, "new": new}
        for path, file in sorted(_files.items())
        for line, old, new in file.told()
    ]
    return {"remedies": _made, "edits": edits}


def _concerns(path) -> bool:
    return isinstance(path, str) and (os.path.abspath(path) in _files or bool(_values) and not is_library(path))


def code_of(data: bytes | str, path: str, optimize: int = -1):
    file = _files.get(os.path.abspath(path))
    tree = file.tree(data if isinstance(data, bytes) else data.encode(), path) if file is not None else None
    if tree is None:
        tree = ast.parse(data, path)
    if _values:
        tree = vary.rewritten(tree, path, _values)
    return compile(tree, path, "exec", dont_inherit=True, optimize=optimize)


def _at_lines(tree, origins: list[int]):
    """The tree with the line numbers of the file as it is."""
    most = len(origins)
    for node in ast.walk(tree):
        if not hasattr(node, "lineno"):
            continue
        node.lineno = origins[min(node.lineno, most) - 1]
        if getattr(node, "end_lineno", None) is not None:
            node.end_lineno = max(node.lineno, origins[min(node.end_lineno, most) - 1])
            if node.end_lineno == node.lineno:
                node.end_col_offset = max(node.col_offset, node.end_col_offset)
    return tree


def _hook_loader() -> None:
    loader = importlib.machinery.SourceFileLoader
    before, get_code, cache = loader.source_to_code, loader.get_code, loader._cache_bytecode

    def source_to_code(self, data, path, *, _optimize=-1):
        if _concerns(path) and isinstance(data, (bytes, str)):
            return code_of(data, path, _optimize)
        return before(self, data, path, _optimize=_optimize)

    def fresh_code(self, fullname):
        path = self.get_filename(fullname)
        if not _concerns(path):
            return get_code(self, fullname)
        return self.source_to_code(self.get_data(path), path)  # a cached compilation would be of the file as it is

    loader.source_to_code, loader.get_code = source_to_code, fresh_code
    loader._cache_bytecode = lambda self, source, *rest: None if _concerns(source) else cache(self, source, *rest)
    sys.dont_write_bytecode = True


def _hook_runpy() -> None:
    """Processes that are spawned read the main file once more this way."""
    import runpy

    before = getattr(runpy, "_get_code_from_file", None)
    if before is None:
        return

    def get_code(*arguments):
        found, path = before(*arguments), arguments[-1]
        if not _concerns(path):
            return found
        with open(path, "rb") as file:
            code = code_of(file.read(), path)
        return (code, path) if isinstance(found, tuple) else code

    runpy._get_code_from_file = get_code


def run_changed_script() -> None:
    """Called when the program's own folders are on sys.path (_inject/sitecustomize.py); returns where its main file is not to be changed."""
    if _values or _files:
        _run_script()


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


def _run_script() -> None:
    script = _script()
    if script is None or not _concerns(script):
        return
    path = os.path.abspath(script)
    try:
        with open(path, "rb") as file:
            code = code_of(file.read(), path)
    except (SyntaxError, ValueError):
        return  # the interpreter will say so
    import atexit
    import builtins
    import types

    main = types.ModuleType("__main__")
    main.__dict__.update(__file__=path, __builtins__=builtins, __annotations__={})
    sys.modules["__main__"] = main
    command = _command()
    sys.argv = command[command.index(script) :]
    sys.path.insert(0, os.path.dirname(os.path.realpath(path)))
    status = 0
    try:
        exec(code, main.__dict__)
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
    except BaseException as problem:
        sys.excepthook(type(problem), problem, problem.__traceback__.tb_next)
        status = 1
    threading._shutdown()  # the program's own threads come to their end, as at the end of any program
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)
