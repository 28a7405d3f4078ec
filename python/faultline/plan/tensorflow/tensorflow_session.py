"""The dry run of a TensorFlow program in this process."""

from __future__ import annotations

import os
import re
import traceback
import weakref

from ..._file_owner import is_library, is_own
from ...common.holdings import Holdings
from ...common.stacks import user_line
from ...common.tensorflow_errors import places_while_traced, refused_while_traced
from ..session import stand_in_reads
from ..session.device import OutOfMemory
from ..session.pool_session import PoolSession
from ..session.unplannable import Unplannable

_SETTINGS = ("TF_FORCE_GPU_ALLOW_GROWTH", "TF_ENABLE_GPU_GARBAGE_COLLECTION", "TF_DEVICE_MIN_SYS_MEMORY_IN_MB")
# What the CPU says of operations that a GPU has.
_ONLY_ON_GPU = re.compile(
    r"No OpKernel was registered|no registered kernels|only supports (?:the )?NHWC|CPU .* NCHW|not supported on CPU",
    re.I,
)
_MADE_OF_CODE = "__autograph_generated_file"  # what TensorFlow traces of a function lies in a file of its own
_MOST_LATE_SECONDS = 15
_METHODS = ("numpy", "__bool__", "__float__", "__int__", "__index__", "__array__")


class TensorFlowSession(PoolSession):
    framework, title = "tensorflow", "TensorFlow"
    packages = ("tensorflow", "keras", "tf_keras")

    def __init__(self, options: dict):
        super().__init__(options)
        self.tensors = Holdings(self)
        self.all_real = bool(options.get("real"))
        self.chosen: dict[str, str] = {}  # by the program itself
        self.saw_graph = False
        self.left_out_line = ""  # where a graph that changes something was not computed
        self._calls: dict[int, tuple] = {}  # by the id of a living function: it, and how often it was called
        self._step = None
        self._trained: dict[str, frozenset] = {}  # by the program's line: the variables that it trained last
        self._training_calls, self._models = 0, 1

    def install(self) -> None:
        from tensorflow.python.framework import ops

        from . import eager, graphs, pipelines, tensorflow_devices

        tensorflow_devices.install(self)
        self.eager = eager.Eager(self)
        self.eager.install()
        tensorflow_devices.show_devices(self)
        graphs.install(self)
        pipelines.install(self)
        stand_in_reads.note_reads(self, ops.EagerTensor.__mro__[1], _METHODS, self.tensors.is_stand_in)
        super().install()

    def settings(self) -> str:
        told = dict(self.chosen)
        told.update({name: os.environ[name] for name in _SETTINGS if os.environ.get(name)})
        if (allocator := os.environ.get("TF_GPU_ALLOCATOR", "").lower()) in ("cuda_malloc_async", "cuda_malloc"):
            self.notes.add(
                "instead",
                f"TF_GPU_ALLOCATOR={allocator} has no model: memory was counted as if a pool grew with the program",
                "",
                verdict=f"with a pool instead of the {allocator} allocator",
            )
            told["TF_FORCE_GPU_ALLOW_GROWTH"] = "true"
        if self.options.get("overcommit") and self.gpu.name == "GPU of any size":
            told["TF_FORCE_GPU_ALLOW_GROWTH"] = "true"
        return ",".join(f"{name}={value}" for name, value in told.items())

    def context_bytes(self) -> int:
        """0: by TensorFlow's own reserve, which the device knows."""
        return 0

    def is_out_of_memory(self, problem: BaseException) -> bool:
        from tensorflow.python.framework import errors_impl

        return isinstance(problem, errors_impl.ResourceExhaustedError)

    def note_death(self, problem: BaseException, trace) -> None:
        from tensorflow.python.framework import errors_impl

        super().note_death(problem, trace)
        if self.problem and (places := places_while_traced(str(problem))):
            self.problem.update(zip(("file", "line", "function"), (places[-1][0], int(places[-1][1]), places[-1][2])))
        if isinstance(problem, errors_impl.OpError) and _ONLY_ON_GPU.search(str(problem)):
            self.left_out_line = self.left_out_line or f"{self.problem['file']}:{self.problem['line']}"
        if self.left_out_line and isinstance(problem, errors_impl.OpError) and not self.died_of_memory:
            self.decided_by_stand_in = True
            self.notes.stand_in_read = self.notes.stand_in_read or self.left_out_line

    def blame(self, problem: BaseException, trace, place) -> None:
        super().blame(problem, trace, place)
        refused = refused_while_traced(str(problem))
        if refused is None:
            return
        self.open()
        device, stack = self.device, 0
        called = [(f.filename, f.lineno or 0, f.name) for f in traceback.extract_tb(trace)]
        own = [f for f in called if not is_library(f[0]) and not is_own(f[0]) and _MADE_OF_CODE not in f[0]]
        for file, line, function in own + places_while_traced(str(problem)):
            stack = device.stack(stack, device.frame(function, file, int(line)))
        given = [device.tensor(shape, refused.dtype) for shape in refused.shapes]
        try:  # of the GPU, where nothing of them lies yet
            held = [self.take(1, 0, tensor) for tensor in given]
        except OutOfMemory:
            return
        device.op_begin(refused.operation, stack)
        for allocation, tensor in zip(held, given):
            device.tensor_note(allocation, tensor, 0)
        device.op_end(refused.words, True, stack)

    def may_be_stopped(self, late_seconds: float) -> bool:
        """A function that is being traced runs first: what it needs is most of what is asked."""
        from tensorflow.python.eager import context

        if self.stopped or not any(one.is_building_function for one in context.context().context_switches.stack):
            return True
        if late_seconds > _MOST_LATE_SECONDS:
            Unplannable(
                "the time was over while TensorFlow traced a function that had not run yet (--seconds gives it more)"
            )
            return True
        return False

    def out_of_memory(self, shape, dtype, operation: str):
        from tensorflow.python.framework import errors_impl

        sizes = ",".join(str(size) for size in shape)
        kind = {"float32": "float", "float16": "half", "float64": "double"}.get(dtype, dtype)
        return errors_impl.ResourceExhaustedError(
            None,
            None,
            f"OOM when allocating tensor with shape[{sizes}] and type {kind} on /job:localhost/replica:0/task:0/device:GPU:0 by allocator GPU_0_bfc [Op:{operation}] (A dry run by Faultline: no GPU was used.)",
        )

    def count_training(self, function, assigned: dict) -> None:
        """A line that trains one model after another has a round for each."""
        line, trained = user_line(), frozenset(assigned)
        if not trained:
            return
        self._training_calls += b"initialize_variables" not in bytes(function.name)
        if not trained & self._trained.setdefault(line, trained):
            self._trained[line] = trained
            self._models += 1
            self._begins_round = True
            self.mark_round(f"models trained at {os.path.basename(line)}")

    def count_call(self, function) -> None:
        """A traced function that is called again and again is a step."""
        key = id(function)
        known, count = self._calls.get(key, (None, 0))
        if known is None:  # not held: what it captures would live on
            known = weakref.ref(function, lambda _: self._calls.pop(key, None))
        self._calls[key] = (known, count + 1)
        if count > 0 and self._models == 1 and (self._step is None or self._step() is function):
            self._step = known
            self.step(
                str(function.name.decode() if isinstance(function.name, bytes) else function.name)
                .removeprefix("__inference_")
                .rpartition("_")[0]
            )

    def offers(self) -> list[dict]:
        from .remedies import TensorFlowRemedies

        return TensorFlowRemedies(self).offers()

    def tell_at_end(self) -> None:
        if self._models > 1:
            self.notes.add(
                "mode",
                f"{self._models} models were trained one after the other at one line, in {self._training_calls} steps: after the first, a step of this plan is a model",
                "",
            )
        if self.saw_graph:
            self.notes.add(
                "kernel",
                "inside tf.function and sessions the operations were counted one after the other, each result until its last use: TensorFlow rewrites graphs and runs operations beside each other, and with jit_compile XLA decides",
                "",
                verdict="with graphs counted operation by operation",
            )
