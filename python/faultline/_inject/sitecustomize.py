"""Brings Faultline into a Python program that it starts, without changing the program.

Python imports this file at its start because Faultline put its folder on PYTHONPATH. It stands in the way of a sitecustomize of the user's own, so it steps
aside first: its folder leaves sys.path, the user's is imported in its place, and what that leaves (its values, its error, or nothing at all where there is none)
is what the program finds. Any trouble of ours is told in one sentence and the program runs on.
"""

import os
import sys

_HERE = os.path.dirname(os.path.abspath(__file__))


def _import_users():
    """The error that Python is to find, if any."""
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry or ".") != _HERE]
    sys.path_importer_cache.pop(_HERE, None)
    sys.modules.pop("sitecustomize", None)
    try:
        import sitecustomize  # noqa: F401 the user's, of this name
    except Exception as problem:
        return problem
    return None


def _load_package(path):
    """By its file: what lies beside the package (all of a site-packages, where it is installed) is on nobody's path. Where the program has a module of this
    name, ours has another."""
    finders = sys.modules["_frozen_importlib_external"]  # without importing importlib for it
    folder = os.path.dirname(_HERE)
    file = os.path.join(folder, "__init__.py")
    users = _files().find_spec("faultline", path)
    is_ours = users is None or users.origin is None or os.path.realpath(users.origin) == os.path.realpath(file)
    name = "faultline" if is_ours else "_faultline"
    if name not in sys.modules:
        spec = finders.spec_from_file_location(name, file, submodule_search_locations=[folder])
        module = sys.modules[name] = sys.modules["_frozen_importlib"].module_from_spec(spec)
        spec.loader.exec_module(module)
    return name


def _files():
    return next(finder for finder in sys.meta_path if getattr(finder, "__name__", "") == "PathFinder")


def _module(name):
    __import__(name)
    return sys.modules[name]


def _pythons_own(path):
    library = os.path.dirname(os.__file__)
    return [
        entry
        for entry in path
        if (entry + os.sep).startswith(library + os.sep) and not entry.endswith(("site-packages", "dist-packages"))
    ]


def _programs_folder():
    """What Python will put before all else on its path: the script's folder, or the working folder."""
    if getattr(sys.flags, "safe_path", False) or sys.flags.isolated:
        return []
    script = (getattr(sys, "argv", None) or [""])[0]
    if script in ("", "-c", "-m"):
        return [os.getcwd()]
    return [script if os.path.isdir(script) else os.path.dirname(os.path.realpath(script))]


def _apart(arm):
    """What ours imports is Python's own, whatever of that name lies in the program's folders; the program finds its own by that name afterwards."""
    before, path = set(sys.modules), list(sys.path)
    pythons = _pythons_own(path)
    first = [entry for entry in path if entry not in pythons]
    try:
        first = _programs_folder() + first
    except OSError:  # the working folder is gone
        pass
    sys.path[:] = pythons or path
    try:
        return arm(_load_package(first))
    finally:
        sys.path[:] = path
        files, fresh = _files(), [name for name in sys.modules if name not in before]
        for root in {name.partition(".")[0] for name in fresh} - {"faultline", "_faultline"}:
            if files.find_spec(root, first) is not None:
                for name in fresh:
                    if name == root or name.startswith(root + "."):
                        del sys.modules[name]


def _arm_plan(package):
    _module(f"{package}.plan.await_torch").arm(os.environ["FAULTLINE_PLAN"])
    return _module(f"{package}.plan.source.changed_source")


def _arm_run(package):
    _module(f"{package}.run.await_frameworks").arm(os.environ["FAULTLINE_RUN_FOLDER"])


_users_error = _import_users()

if os.environ.get("FAULTLINE_PLAN"):
    try:
        _apart(_arm_plan).run_changed_script()
    except Exception as problem:
        print(
            f"faultline: the dry run could not be prepared in this process ({type(problem).__name__}: {problem})",
            file=sys.stderr,
        )

if os.environ.get("FAULTLINE_RUN_FOLDER"):
    try:
        _apart(_arm_run)
    except Exception as problem:  # the run is recorded without its Python side; the program's output stays its own
        try:
            with open(
                os.path.join(os.environ["FAULTLINE_RUN_FOLDER"], f"notes-{os.getpid()}.txt"),
                "a",
                encoding="utf-8",
                opener=lambda path, flags: os.open(path, flags, 0o600),
            ) as notes:
                notes.write(
                    f"the Python side of the recording could not be prepared in this process ({type(problem).__name__}: {problem})\n"
                )
        except OSError:
            pass

if _users_error is not None:
    raise _users_error  # that there is none is an error too, of which Python says nothing
