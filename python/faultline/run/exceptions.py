"""Hears of exceptions that nobody catches. Whoever was to hear of them before still does, in the same way."""

import sys

from .around import strip
from .process import describe, words_of

_MEMORY_TYPES = ("OutOfMemoryError", "ResourceExhaustedError")
_DEVICE_TYPES = (
    "AcceleratorError",
    "CUDADriverError",
    "CUDARuntimeError",
    "CudaAPIError",
    "CUBLASError",
    "NcclError",
    "DistBackendError",
)
_MEMORY_TEXTS = (
    "CUDA out of memory",
    "CUDA_ERROR_OUT_OF_MEMORY",
    "RESOURCE_EXHAUSTED",
    "cudaErrorMemoryAllocation",
    "CUDA error: out of memory",
    "CUBLAS_STATUS_ALLOC_FAILED",
)
_DEVICE_TEXTS = (
    "CUDA error",
    "CUDA driver error",
    "CUDA_ERROR_",
    "Error [CUDA]",
    "CUBLAS_STATUS_",
    "CUDNN_STATUS_",
    "cuDNN error",
    "NCCL error",
    "cudaError",
)


def kind_of(problem):
    """'memory' or 'device' for an error that comes from the GPU, else ''."""
    names = {kind.__name__ for kind in type(problem).__mro__}
    if not isinstance(problem, Exception) or isinstance(problem, (SyntaxError, ImportError, OSError)):
        return ""
    try:
        text = str(problem)[:4000]
    except Exception:
        text = ""
    if names.intersection(_MEMORY_TYPES) or any(part in text for part in _MEMORY_TEXTS):
        return "memory"
    if names.intersection(_DEVICE_TYPES) or any(part in text for part in _DEVICE_TEXTS):
        return "device"
    return ""


class Exceptions:
    def __init__(self, recording):
        self._recording = recording
        self._installed = False
        self._ended_by = None  # id of the exception that ended the main thread

    def install(self):
        if self._installed:
            return
        self._installed = True
        import threading

        main, thread, unraisable = sys.excepthook, threading.excepthook, sys.unraisablehook

        def excepthook(kind, problem, traceback):
            self._tell(problem, traceback, "MainThread", True)
            main(kind, problem, traceback)

        def in_thread(args):
            if args.exc_value is not None and args.exc_type is not SystemExit:
                self._tell(args.exc_value, args.exc_traceback, getattr(args.thread, "name", None) or "a thread", False)
            thread(args)

        def in_finalizer(args):
            if args.exc_value is not None and kind_of(args.exc_value):
                self._tell(args.exc_value, args.exc_traceback, "a finalizer", False)
            unraisable(args)

        sys.excepthook, threading.excepthook, sys.unraisablehook = excepthook, in_thread, in_finalizer
        shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
        if shell is not None:
            shell.events.register("post_run_cell", self._after_cell)

    def _after_cell(self, result):
        problem = getattr(result, "error_in_exec", None)
        if problem is not None and kind_of(problem):
            self._tell(problem, problem.__traceback__, "a notebook cell", False)

    def look_back(self):
        """At the exit: the exception that ended the program, where a hook of its own kept it from ours."""
        problem = getattr(sys, "last_exc", None) or getattr(sys, "last_value", None)
        if not isinstance(problem, BaseException) or id(problem) == self._ended_by or hasattr(sys, "ps1"):
            return
        traceback = problem.__traceback__
        # Test runners and shells keep exceptions there that ended nothing; one that ended the program came through its outermost frame.
        if traceback is not None and traceback.tb_frame.f_code.co_name in ("<module>", "_run_module_as_main"):
            self._tell(problem, traceback, "MainThread", True)

    def _tell(self, problem, traceback, thread, ends_process):
        if (
            sys.is_finalizing() or sys.meta_path is None
        ):  # modules are going away: the program's own end was told before
            return
        try:
            if ends_process:
                self._ended_by = id(problem)
            strip(problem)
            self._recording.uncaught(
                describe(problem, traceback, thread, kind_of(problem)),
                ends_process,
                lambda: words_of(problem, traceback),
            )
        except Exception as trouble:
            self._recording.process.note(
                f"an exception of the program could not be recorded ({type(trouble).__name__}: {trouble})"
            )
