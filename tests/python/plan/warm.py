"""An interpreter that has imported PyTorch (or JAX, or TensorFlow, where that is its argument) and the dry run already; every program runs in a fork of it, which saves two seconds each.

One request a line on standard input, as JSON: the program and its arguments, the folder, the environment, files for standard output and error. The answer is its exit status. What depends on
the moment of the import itself is tested by the tests that start programs as users do.
"""

import atexit
import contextlib
import gc
import importlib
import json
import os
import pkgutil
import signal
import sys
import threading
import types


def become(request: dict) -> int:
    """This process as the program's; the status that Python would end with."""
    for number, path, flags in (
        (0, os.devnull, os.O_RDONLY),
        (1, request["out"], os.O_WRONLY | os.O_CREAT),
        (2, request["err"], os.O_WRONLY | os.O_CREAT),
    ):
        os.dup2(os.open(path, flags), number)
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"])
    sys.argv = request["command"]
    sys.path[0] = os.path.dirname(sys.argv[0])
    main = sys.modules["__main__"] = types.ModuleType("__main__")
    main.__builtins__ = __builtins__
    try:
        from faultline.plan import await_torch
        from faultline.plan.source import changed_source

        await_torch.arm(os.environ["FAULTLINE_PLAN"])
        main.__file__ = sys.argv[0]
        with open(sys.argv[0], encoding="utf-8") as file:
            code = changed_source.code_of(file.read(), sys.argv[0])
        exec(code, vars(main))
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            return end.code or 0
        print(end.code, file=sys.stderr)
        return 1
    except BaseException as problem:
        sys.excepthook(type(problem), problem, problem.__traceback__.tb_next)
        return 1
    return 0


def end(status: int) -> None:
    """As Python ends, but for taking the interpreter apart: PyTorch does not stand that in a fork."""
    threading._shutdown()
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def serve() -> None:
    import faultline.plan

    framework = sys.argv[1] if len(sys.argv) > 1 else "torch"
    if framework == "torch":
        import torch._dynamo  # noqa: F401 (PyTorch imports it with the first optimizer)

        with contextlib.suppress(ImportError):
            import torch.distributed.tensor  # noqa: F401 (and this, since 2.5, at the first tensor that is made as the dry run makes its own)
        for module in pkgutil.walk_packages(faultline.plan.__path__, "faultline.plan."):
            importlib.import_module(module.name)
    else:
        for name in {"jax": ("jax", "jax.numpy"), "tensorflow": ("tensorflow",)}[framework]:
            importlib.import_module(name)
    gc.freeze()
    for line in iter(sys.stdin.readline, ""):
        child = os.fork()
        if child == 0:
            end(become(json.loads(line)))
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        print(status, flush=True)


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    serve()
