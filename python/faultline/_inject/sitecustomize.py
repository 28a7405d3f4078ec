"""Brings Faultline into a Python program that it starts, without changing the program.

Python imports this file at its start because Faultline put its folder on PYTHONPATH. A sitecustomize of the user's own, which it hides, is run
first. Any trouble here is told in one sentence and the program runs on.
"""

import os
import sys


def _run_hidden_sitecustomize():
    here = os.path.dirname(os.path.abspath(__file__))
    path = [entry for entry in sys.path if os.path.abspath(entry or ".") != here]
    files = next(
        finder for finder in sys.meta_path if getattr(finder, "__name__", "") == "PathFinder"
    )  # without importing importlib for it
    spec = files.find_spec("sitecustomize", path)
    if spec is not None and spec.loader is not None:
        import importlib.util

        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)


try:
    _run_hidden_sitecustomize()
except Exception as problem:  # the user's own file; Python itself would only print it as well
    print(
        f"faultline: the sitecustomize that was here before raised {type(problem).__name__}: {problem}", file=sys.stderr
    )


def _load_package():
    """By its file: what lies beside the package (all of a site-packages, where it is installed) is on nobody's path."""
    if "faultline" in sys.modules:
        return
    finders = sys.modules["_frozen_importlib_external"]  # without importing importlib for it
    folder = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    spec = finders.spec_from_file_location(
        "faultline", os.path.join(folder, "__init__.py"), submodule_search_locations=[folder]
    )
    module = sys.modules["faultline"] = sys.modules["_frozen_importlib"].module_from_spec(spec)
    spec.loader.exec_module(module)


if os.environ.get("FAULTLINE_PLAN"):
    try:
        _load_package()
        from faultline.plan import await_torch

        await_torch.arm(os.environ["FAULTLINE_PLAN"])
    except Exception as problem:
        print(
            f"faultline: the dry run could not be prepared in this process ({type(problem).__name__}: {problem})",
            file=sys.stderr,
        )

if os.environ.get("FAULTLINE_RUN_FOLDER"):
    try:
        _load_package()
        from faultline.run import await_frameworks

        await_frameworks.arm(os.environ["FAULTLINE_RUN_FOLDER"])
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
