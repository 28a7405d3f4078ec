"""TensorFlow's tensors, each with the line that made it, and what its operations refuse.

Eager operations and calls of traced functions come through two doors into C++, and constants through a third; they are looked at on their way out, and nothing is changed. What is made inside
a traced function or a session lives in C++ alone and is not seen; that it failed is. The allocator's own log (TF_CPP_VMODULE=bfc_allocator=4) would show it, but it goes to the program's standard
error, has no Python lines, and takes minutes for a few thousand requests.
"""

import inspect
import math
import os
import re
import sys
import threading

from .._file_owner import OWN_FOLDER
from ..common import tensorflow_shapes as shapes
from ..common.holdings import Holding, Holdings
from ..common.shared_memory import SharedMemory
from ..common.stacks import Stacks
from ..common.tensorflow_errors import refused_in_graph
from .around import as_library
from .tensor_log import TensorLog

_LEAST_BYTES = 1024
_ASKED = re.compile(r"OOM when allocating tensor with shape\s*\[([\d,]*)\] and type (\w+) on \S*device:(\w+):(\d+)")
_OPERATION = re.compile(r"\[Op:(\w+)\]|\{\{node (?:\S*/)?([A-Za-z]\w*?)(?:_\d+)?\}\}")
_OF_FUNCTION = "[Op:__inference"  # an operation of a traced function, before its words are complete
_C_TYPES = {"float": "float32", "half": "float16", "double": "float64", "complex64": "complex64", "complex128": "complex128"}  # fmt: skip
_TOLD = ("ResourceExhaustedError", "InvalidArgumentError")


class TensorFlowMemory:
    def __init__(self, recording, tensorflow):
        self._recording, self._tensorflow = recording, tensorflow
        self._on, self._log = True, None
        self._local, self._first = threading.local(), threading.RLock()
        self._own = (OWN_FOLDER, as_library(lambda: 0).__code__.co_filename)
        self._inside = (os.path.join(os.path.dirname(tensorflow.__file__), ""), *self._own)
        self._last_failure = None
        self._functions_are_watched = False
        self.tensors = Holdings(self)
        self._shared = SharedMemory(self, self._hold_new)
        self._install()

    def stop(self):
        """The program has ended; what Python puts away now was held to the end."""
        self._on = False
        if self._log is not None:
            self._log.close()

    def after_fork(self):
        """TensorFlow does not survive a fork; what the child frees was its parent's."""
        self._on, self._first = False, threading.RLock()  # another thread of the parent may have had it
        if self._log is not None:
            self._log.close()

    def give_back(self, allocation):
        if self._on and allocation:
            self._log.ended(allocation)

    # --- the doors

    def _install(self):
        from tensorflow.python import pywrap_tfe
        from tensorflow.python.framework import constant_op, errors_impl

        for name, first in (
            ("TFE_Py_FastPathExecute", lambda given: (given[1], given[3:])),
            ("TFE_Py_Execute", lambda given: (given[2], given[3])),
            ("TFE_Py_ExecuteCancelable", lambda given: (given[2], given[3])),
        ):
            setattr(pywrap_tfe, name, self._watched(getattr(pywrap_tfe, name), first))
        convert = constant_op.convert_to_eager_tensor

        @as_library
        def converted(value, ctx, dtype=None):
            result = convert(value, ctx, dtype)
            if self._on and result is not value:
                self._quietly(self._hold_new, result, "Const")
            return result

        constant_op.convert_to_eager_tensor = converted
        made = errors_impl.OpError.__init__

        @as_library
        def init(problem, *given, **named):
            made(problem, *given, **named)
            later = self._functions_are_watched and _OF_FUNCTION in str(problem.message)
            if self._on and type(problem).__name__ in _TOLD and not later and not _is_printed(sys._getframe(1)):
                self._quietly(self._refused, problem)

        self._watch_functions()
        init.__signature__ = inspect.signature(made)  # by which a copy of the exception is made
        errors_impl.OpError.__init__ = init

    def _watch_functions(self):
        """The words of what a traced function refuses get their lines when the call ends."""
        from tensorflow.python.eager.polymorphic_function import atomic_function

        kind = getattr(atomic_function, "InterpolateRuntimeError", None)
        if kind is None:
            return
        leave = kind.__exit__

        @as_library
        def left(one, exception, problem, traceback):
            answer = leave(one, exception, problem, traceback)
            if self._on and type(problem).__name__ in _TOLD:
                self._quietly(self._refused, problem)
            return answer

        kind.__exit__ = left
        self._functions_are_watched = True

    def _watched(self, run, first):
        @as_library
        def faultline(*given):
            if not self._on:
                return run(*given)
            self._local.failed = None
            try:
                results = run(*given)
            except Exception as problem:
                if type(problem).__name__ != "_FallbackException":  # it is tried in another way
                    self._quietly(self._did_not_run, first, given)
                # TensorFlow keeps the innermost frame of the traceback, which is not to be this one; a bare raise does not put it back (before Python 3.11 it does)
                problem.__traceback__ = problem.__traceback__.tb_next
                raise
            self._quietly(self._ran, first, given, results)
            return results

        return faultline

    def _quietly(self, part, *arguments):
        try:
            part(*arguments)
        except Exception as problem:  # of ours: the program goes on without it
            self._on = False
            self._recording.process.note(
                f"TensorFlow {self._tensorflow.__version__} cannot be watched to its end here ({type(problem).__name__}: {problem})"
            )

    # --- what comes out

    def _did_not_run(self, first, given):
        """What it was given, in words: the tensors themselves are not kept for it."""
        name, inputs = first(given)
        self._begin()
        operands = [one for one in inputs if hasattr(one, "dtype") and hasattr(one, "shape")]
        self._local.failed = (
            _text(name),
            [(_number(self.tensors.of(one)), self._described(one)) for one in operands if one.shape.is_fully_defined()],
        )

    def _ran(self, first, given, results):
        name, inputs = first(given)
        name = _text(name)
        if results is None:
            results = ()
        elif not isinstance(results, (list, tuple)):
            results = (results,)
        if name in shapes.SHARES or not results:
            self._shared.after(name, inputs, results)
            return
        for result in results:
            self._hold_new(result, name)

    def _hold_new(self, tensor, name):
        size = _bytes_of(tensor)
        if size < _LEAST_BYTES or self.tensors.of(tensor) is not None:
            return
        self._begin()
        number = self._log.made(self._pool_of(tensor.device), size, self._here(True), self._described(tensor, name))
        self.tensors.follow(tensor, Holding(number))

    def _refused(self, problem):
        kind, op, message = type(problem).__name__, problem.op, str(problem.message)
        failed, self._local.failed = getattr(self._local, "failed", None), None
        found, asked, inside = _OPERATION.search(message), _ASKED.search(message), refused_in_graph(message)
        if failed is None and op is None and found is None and asked is None and inside is None:
            return  # no operation's: TensorFlow asks itself for what a graph does not have
        self._begin()
        stack = self._here()
        # a session's error is made twice, in C++ and in Python
        if self._last_failure == (kind, stack) or (op is not None and self._last_failure == (kind, asked and asked[0])):
            return
        self._last_failure = (kind, asked[0]) if asked else (kind, stack)
        name = op.type if op is not None else (found[1] or found[2]) if found else ""
        for file, line, function in inside.made_at if inside is not None else ():
            stack = self._log.stack(stack, self._log.frame(function, file, int(line)))
        if asked is not None:
            size = math.prod(int(side) for side in asked[1].split(",") if side) * self._size_of(asked[2])
            self._log.refused(self._pool_of(f"/device:{asked[3]}:{asked[4]}"), size, stack, name)
            return
        if kind == "ResourceExhaustedError":
            return  # in other words; what ended the program is told with its own
        if inside is not None:  # what the traced function was given is not what the operation was
            return self._log.failed(inside.operation, (), inside.words, stack)
        self._log.failed(
            name or "an operation",
            failed[1] if failed is not None and found is not None and found[1] == failed[0] else (),
            message.replace("{{function_node ", "").split("}} ", 1)[-1],
            stack,
        )

    def _here(self, with_operation=False):
        """The stack of whoever called TensorFlow, and of its own frames, some twelve, the innermost alone: it tells what one line makes for itself from what it keeps."""
        frame = sys._getframe(1)
        while frame.f_back is not None and frame.f_code.co_filename.startswith(self._own):
            frame = frame.f_back
        first = frame
        while frame is not None and frame.f_code.co_filename.startswith(self._inside):
            frame = frame.f_back
        stack = self._stacks.here(frame or first)
        return self._stacks.push(stack, first) if with_operation and frame is not None and frame is not first else stack

    def _described(self, tensor, operation=""):
        return self._log.tensor(tensor.dtype.name, shapes.dims(tensor), operation)

    def _size_of(self, word):
        return self._tensorflow.dtypes.as_dtype(_C_TYPES.get(word, word)).size

    # --- the log's head

    def begin(self):
        """A program that an exception ended is told of, also where it made no tensor."""
        self._quietly(self._begin)

    def _begin(self):
        if self._log is not None:
            return
        from tensorflow.python.eager import context

        head = ['source tensors', 'property bfc.framework = tensorflow']  # fmt: skip
        pools, host = {}, _host_pool()
        has_begun = context.context_safe() is not None and context.context_safe()._initialized
        gpus = len(self._tensorflow.config.list_physical_devices("GPU")) if has_begun else 0
        for number in range(gpus):
            pools[f"GPU:{number}"] = f"GPU_{number}_bfc"
            head.append(f"device {number}")
        head.append(f'device {gpus} name="host memory ({host})"')
        for number, pool in enumerate([*pools.values(), host]):
            head.append(f"heap driver{number} kind=driver device={number} name=driver")
            head.append(f"heap {pool} kind=bfc device={number} below=driver{number}")
        if host == "mklcpu":
            given = os.environ.get("TF_MKL_ALLOC_MAX_BYTES", "")
            limit = int(given) if given.isdigit() else os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
            head.append(f"property bfc.mklcpu.limit = {limit}")
        elif host != "cpu" and (given := os.environ.get("TF_CPU_BFC_MEM_LIMIT_IN_MB", "")).isdigit():
            head.append(f"property bfc.{host}.limit = {int(given) << 20}")
        with self._first:
            if self._log is None:
                log = TensorLog(self._recording.process, "".join(line + "\n" for line in head))
                self._pools, self._host, self._stacks = pools, host, Stacks(log)
                self._log = log  # the last: who sees it sees all of it

    def _pool_of(self, device):
        return self._pools.get(":".join(device.rsplit(":", 2)[-2:]), self._host) if self._pools else self._host


def _host_pool():
    """TensorFlow with oneDNN has a pool for the host too, else it asks the system for each tensor."""
    from tensorflow.python.util import _pywrap_util_port

    if _pywrap_util_port.IsMklEnabled() and os.environ.get("TF_ENABLE_ONEDNN_OPTS") != "0":
        return "mklcpu"
    asked = os.environ.get("TF_CPU_ALLOCATOR_USE_BFC", "").lower()
    return "bfc_cpu_allocator_for_gpu" if asked in ("1", "true") else "cpu"


def _bytes_of(tensor):
    count = getattr(tensor, "_num_elements", None)
    return count() * tensor.dtype.size if count is not None and shapes.is_plain(tensor.dtype) else 0


def _is_printed(frame):
    """TensorFlow makes the exception again to print the one that it came from."""
    for _ in range(4):
        if frame is None:
            break
        if frame.f_code.co_name == "__str__":
            return True
        frame = frame.f_back
    return False


def _number(known):
    return known.holding.allocation if known is not None else 0


def _text(name):
    return name.decode() if isinstance(name, bytes) else name
