"""The recording's Python side in one process: begins with the first framework's import, ends with the process."""

import json
import os
import sys
import time

from . import FRAMEWORKS
from .exceptions import Exceptions
from .pool_maps import PoolMaps
from .process import MOST_WORDS, Process

DEFAULTS = {"history": True, "history_entries": 200000, "buffers": False}
# With --buffers: settings that make each of a framework's buffers an allocation of the driver's, where the recording sees it.
_BUFFERS = {
    "jax": (("XLA_PYTHON_CLIENT_PREALLOCATE", "false"), ("XLA_PYTHON_CLIENT_ALLOCATOR", "platform")),
    "tensorflow": (("TF_GPU_ALLOCATOR", "cuda_malloc_async"),),
}


class Recording:
    def __init__(self, folder, start_ns):
        self.process = Process(folder, start_ns)
        self.options = dict(DEFAULTS)
        self.torch = self.tensorflow = self.jax = None
        self._pool_maps = PoolMaps(self.process)
        self._exceptions = Exceptions(self)
        self._words = ""
        try:
            given = json.loads(os.environ.get("FAULTLINE_RUN_OPTIONS") or "{}")
            self.options.update(
                {name: value for name, value in given.items() if type(value) is type(DEFAULTS.get(name))}
            )
        except (ValueError, AttributeError) as problem:
            self.process.note(f"FAULTLINE_RUN_OPTIONS is not understood ({problem}): the defaults are used")

    def before_import(self, name):
        self._pool_maps.arm()
        if not self.options["buffers"]:
            return
        for variable, value in _BUFFERS.get(name, ()):
            if variable not in os.environ:
                os.environ[variable] = value
                self.process.note(
                    f"{variable}={value} was set for {name}, so that each of its buffers is seen: its own pool is not in use, and it may be slower"
                )

    def after_import(self, name, module):
        if name == "torch":
            from .torch_memory import TorchMemory

            self.torch = TorchMemory(self, module)
        elif name == "tensorflow" and self.options["history"]:
            self.tensorflow = self._watched("TensorFlow", module, "tensorflow_memory", "TensorFlowMemory")
        elif name == "jax":
            self.jax = self._watched("JAX", module, "jax_memory", "JaxMemory")
        self._exceptions.install()
        self.write()

    def _watched(self, called, module, part, name):
        """None, with a note, for a release that is not like those that are known."""
        from importlib import import_module

        try:
            return getattr(import_module(f".{part}", __package__), name)(self, module)
        except Exception as problem:
            self.process.note(
                f"{called} {getattr(module, '__version__', '')} cannot be watched here ({type(problem).__name__}: {problem}): what ended the program is told without its tensors"
            )
            return None

    def write(self):
        self.process.know(
            frameworks={name: str(version) for name, version in _versions()}, cpu_builds=list(_cpu_builds())
        )
        if self.torch is not None:
            self.process.know(torch=self.torch.state())
        self.process.write()

    def uncaught(self, described, ends_process, words=str):
        """An exception that nobody caught. The snapshot comes before the report of it, which may not return."""
        process = self.process
        if ends_process:
            process.know(exception=described)
        elif len(process.knows("other_exceptions")) < 8:
            process.know(other_exceptions=process.knows("other_exceptions") + [described])
        if self.torch is not None and described["kind"] == "device":
            self.torch.snapshot("error", most=1)
        if self.tensorflow is not None and ends_process:
            self.tensorflow.begin()
        if self.jax is not None and described["kind"] == "memory":
            self.jax.profile()
        # Not of a KeyboardInterrupt: Python's own code that prints tracebacks can make Python forget that it was one, and end with another status.
        has_words = (ends_process and described["type"] != "KeyboardInterrupt") or described["kind"]
        if has_words and (self.jax is not None or "tensorflow" in sys.modules):
            self._save_words(words())
        self.write()

    def _save_words(self, words):
        """The traceback as Python prints it, for the reader of pasted errors; what ended the process comes last."""
        self._words = (self._words + words + "\n")[-MOST_WORDS:]
        self.process.save(
            f"failure-{self.process.pid}.txt", lambda file: file.write(self._words.encode("utf-8", "replace"))
        )

    def at_exit(self):
        if self.process.pid != os.getpid():
            return  # forked where Python was not told
        self._exceptions.look_back()
        died = self.process.knows("exception")
        if self.tensorflow is not None:
            self.tensorflow.stop()
        if self.torch is not None and not (died and self.torch.has_snapshot_of(died["kind"])):
            self.torch.snapshot("exit", most=1)
        # What Python itself ends with after an uncaught exception; sys.exit's status is known only outside.
        self.process.know(
            end_ns=time.time_ns(),
            came_to_exit=True,
            exit_status=1 if died and died["type"] != "KeyboardInterrupt" else None,
        )
        self.write()
        if os.environ.get("FAULTLINE_CORE_DUMP_ARMED") == "1":
            time.sleep(
                1
            )  # the driver ends the program for a fault, but for some kinds a moment after it said that all went well

    def after_fork(self, start_ns):
        self.process.after_fork(start_ns)
        self._words = ""
        for framework in (self.torch, self.tensorflow, self.jax):
            if framework is not None:
                framework.after_fork()


def _cpu_builds():
    """The frameworks in this process that were built without a GPU's code, by their names and versions."""
    for name, called, is_one in (
        ("torch", "PyTorch", lambda torch: torch.version.cuda is None and getattr(torch.version, "hip", None) is None),
        ("tensorflow", "TensorFlow", lambda tensorflow: not tensorflow.sysconfig.get_build_info()["is_cuda_build"]),
        ("jax", "JAX", lambda _jax: not _has_gpu_of_jax()),
    ):
        module = sys.modules.get(name)
        try:
            if module is not None and is_one(module):
                yield f"{called} {module.__version__}"
        except Exception:
            pass  # still being imported, or a release without the answer: nothing is claimed


def _has_gpu_of_jax():
    from importlib.metadata import distributions, version

    return "cuda" in version("jaxlib") or any(
        (found.metadata["Name"] or "").lower().replace("_", "-").startswith(("jax-cuda", "jax-rocm"))
        for found in distributions()
    )


def _versions():
    for name in (*FRAMEWORKS, "triton", "numpy"):
        version = getattr(sys.modules.get(name), "__version__", None)
        if version is not None:
            yield name, version
