"""Eager operations, constants and variables.

TensorFlow's short way from an operation's Python function into C++ is closed, so that every operation comes here with its arguments as tensors; gradients are recorded by TensorFlow as ever.
"""

from __future__ import annotations

import math
import threading
import weakref

from ...common import tensorflow_shapes as shapes
from ...common.holdings import Holding, zeros
from ...common.shared_memory import SharedMemory
from ..session import stand_in_reads
from ..session.device import OutOfMemory
from ..session.estimates import size_from_values
from ..session.session import current
from . import host_arrays, operation_kinds

_SMALL_BYTES = 8 << 20  # of results that are computed
_SMALL_OF_STAND_INS = 256 << 10  # whose numbers are none
_MOST_BYTES = (
    1 << 30
)  # of results that are computed and live: a program may keep as many as the GPU has room for, which this machine may not have
_FEW = 1 << 16  # elements
_PAGE = 4096
# look at no more than they return
_OF_A_PART = ("StridedSlice", "Slice", "GatherV2", "GatherNd", "Shape", "ShapeN", "Size", "Rank")
_SMALL_WORK = 1 << 25  # multiplications


class Eager:
    def __init__(self, session):
        self._session = session
        self.shared = SharedMemory(session, self._hold_new)
        self._local = threading.local()
        self._told_of_other = False
        self._computed_bytes = 0  # of what lives

    @property
    def inside(self) -> bool:
        return getattr(self._local, "depth", 0) > 0

    def unwatched(self, function, *arguments, **named):
        self._local.depth = getattr(self._local, "depth", 0) + 1
        try:
            return function(*arguments, **named)
        finally:
            self._local.depth -= 1

    def install(self) -> None:
        from tensorflow.python import pywrap_tfe
        from tensorflow.python.eager import core, execute
        from tensorflow.python.framework import constant_op

        short = pywrap_tfe.TFE_Py_FastPathExecute

        def the_long_way(*arguments):
            if self.inside or self._session.closed:
                return short(*arguments)
            raise core._FallbackException("followed by Faultline")

        pywrap_tfe.TFE_Py_FastPathExecute = the_long_way
        for name in ("execute", "execute_with_cancellation"):
            setattr(execute, name, self._around(getattr(execute, name)))
        convert = constant_op.convert_to_eager_tensor

        def converted(value, ctx, dtype=None):
            watched = not self.inside and not self._session.closed
            if watched and host_arrays.is_large(value):
                return self._converted_large(value, ctx, dtype, convert)
            result = convert(value, ctx, dtype)
            if watched and result is not value and self._is_planned(ctx):
                self._hold_new(result, "Const")
            return result

        constant_op.convert_to_eager_tensor = converted

    def _converted_large(self, value, ctx, dtype, convert):
        """An array that is not copied before there is room for it on the GPU, nor where this machine has none."""
        import tensorflow as tf

        dtype = tf.as_dtype(value.dtype if dtype is None else dtype)
        holding, stand_in = None, False
        if self._is_planned(ctx):
            (holding,) = self.take_all([(value.shape, dtype)], "Const")
        try:
            result = self.unwatched(host_arrays.in_place, value) if dtype == value.dtype else None
            if result is None and host_arrays.may_be_copied(value.nbytes):
                result = self.unwatched(convert, value, ctx, dtype)
            if result is None:
                result, stand_in = self.stand_in(value.shape, dtype), True
        except BaseException:
            if holding is not None:
                self._session.give_back(holding.allocation)
            raise
        if holding is not None or stand_in:
            self._session.tensors.follow(result, holding or Holding(0), stand_in)
        return result

    def _is_planned(self, ctx) -> bool:
        if self._session.only_cpu or "CPU" in str(ctx.device_name or "").upper():
            return False
        other = current()
        if other is not None and other is not self._session:
            if not self._told_of_other:
                self._told_of_other = True
                other.notes.add(
                    "mode",
                    "TensorFlow computes in the same process: what it takes of a GPU, most of it unless it is told otherwise, is not counted",
                    "",
                    verdict="without what TensorFlow takes",
                )
            return False
        return True

    def _around(self, run):
        def execute(op_name, num_outputs, inputs, attrs, ctx, *more, **named):
            if self.inside or self._session.closed or not self._is_planned(ctx):
                return run(op_name, num_outputs, inputs, attrs, ctx, *more, **named)
            name = op_name.decode() if isinstance(op_name, bytes) else op_name
            return self._execute(
                name,
                num_outputs,
                inputs,
                attrs or (),
                lambda: run(op_name, num_outputs, inputs, attrs, ctx, *more, **named),
            )

        return execute

    # --- one operation

    def _execute(self, name: str, count: int, inputs, attributes, run):
        session = self._session
        session.tick()
        stand_in_given = name not in shapes.OF_SHAPES and any(map(self.is_stand_in, inputs))
        if not stand_in_given:
            run = self._telling_failures(name, inputs, run)
        if name.startswith("__inference") or name.startswith("__forward") or name.startswith("__backward"):
            return self.unwatched(run)  # a traced function: graphs.py has counted it
        if name in shapes.SHARES or not count:
            results = self.unwatched(run)
            if results and shapes.is_brought_to_host(results[0].dtype.name, name):
                session.tensors.follow(results[0], Holding(0), self.is_stand_in(inputs[0]))
            else:
                self.shared.after(name, inputs, results)
            return results
        most = None if stand_in_given else self.unwatched(shapes.most_elements, name, inputs)
        if most is not None and most <= _FEW:  # computed before anybody has to ask how large it is
            results = self.unwatched(run)
            for result in results:
                self._hold_new(result, name)
            return results
        told = self.unwatched(shapes.results_of, name, inputs, attributes, count)
        if told is None or any(shape is None for shape, _ in told):
            if stand_in_given and told is not None:
                session.notes.add(
                    "value",
                    "sizes may come from a number that a dry run does not compute: the stand-in may be less than it is (--real computes it)",
                    verdict=f"with the sizes of {name} from numbers that are not computed",
                )
            results = self._computed(run, None, stand_in_given)[0]
            for result in results or ():
                self._hold_new(result, name, stand_in_given)
            return results
        holdings = self.take_all(told, name)
        try:
            if name in shapes.IN_SCRATCH:
                self._work_in_scratch(name, inputs, told)
            is_plain = all(shapes.is_plain(dtype) for _, dtype in told)
            if session.all_real or not is_plain or self._is_small(name, inputs, told, stand_in_given):
                results, stand_in = self._computed(run, told if is_plain else None, stand_in_given)
            else:
                results, stand_in = self.stand_ins(told), True
        except BaseException:
            for holding in holdings:
                session.give_back(holding.allocation)
            raise
        for result, holding in zip(results, holdings):
            session.tensors.follow(result, holding, stand_in)
            if not stand_in:
                self._count_computed(result)
        return results

    def _count_computed(self, tensor) -> None:
        size = shapes.bytes_of(shapes.dims(tensor), tensor.dtype) if shapes.is_plain(tensor.dtype) else 0
        if size > _SMALL_OF_STAND_INS:
            self._computed_bytes += size
            weakref.finalize(tensor, self._is_gone, size).atexit = False

    def _is_gone(self, size: int) -> None:
        self._computed_bytes -= size

    def _computed(self, run, told, stand_in_given: bool):
        """The results, and whether their numbers are none. What an operation refuses because of numbers that were not computed it may well take on a GPU."""
        from tensorflow.python.framework import errors_impl

        try:
            return self.unwatched(run), stand_in_given
        except errors_impl.InvalidArgumentError:
            if not stand_in_given:
                raise
            stand_in_reads.note(self._session)
            if told is None:
                raise
            return self.stand_ins(told), True

    def is_stand_in(self, tensor) -> bool:
        """Was it, or what the variable has, not computed?"""
        return self._session.tensors.is_stand_in(tensor) or self.shared.is_stand_in(tensor)

    def give_value(self, resource) -> None:
        """A variable that was to be assigned to by what was not computed: what has no value yet gets zeros, so that it can be read."""
        from tensorflow.python.ops import gen_resource_variable_ops as variables

        self.shared.mark(resource)
        if bool(self.unwatched(variables.var_is_initialized_op, resource)):
            return
        for kind in getattr(getattr(resource, "_handle_data", None), "shape_and_type", ()):
            import tensorflow as tf

            shape = tf.TensorShape(kind.shape)
            if shape.is_fully_defined():
                zeros = self.stand_in(shape.as_list(), tf.as_dtype(kind.dtype))
                self.unwatched(variables.assign_variable_op, resource, zeros)

    def _telling_failures(self, name: str, inputs, run):
        """What an operation refuses is told with its arguments."""

        def told():
            try:
                return run()
            except Exception as problem:
                session = self._session
                stack = session.here()
                session.device.op_begin(name, stack)
                for tensor in inputs:
                    if getattr(tensor, "shape", None) is None or not tensor.shape.is_fully_defined():
                        continue
                    known = session.tensors.of(tensor)
                    number = session.device.tensor(shapes.dims(tensor), tensor.dtype.name)
                    session.device.tensor_note(known.holding.allocation if known is not None else 0, number, 0)
                session.device.op_end(str(getattr(problem, "message", problem)), True, stack)
                raise

        return told

    def take_all(self, told, name: str, is_loose: bool = False) -> list[Holding]:
        """Memory for each result, or TensorFlow's own error. is_loose: they may be smaller."""
        session, holdings = self._session, []
        stack = session.here()
        line = session.line_name()
        for shape, dtype in told:
            size = shapes.bytes_of(shape, dtype) if shapes.is_on_gpu(dtype.name, name) else 0
            try:
                tensor = session.device.tensor(tuple(shape), dtype.name, name, line)
                taken = session.take(size_from_values(size) if is_loose else size, stack, tensor)
                holdings.append(Holding(taken, is_loose))
            except OutOfMemory:
                for holding in holdings:
                    session.give_back(holding.allocation)
                raise session.out_of_memory(shape, dtype.name, name) from None
        return holdings

    def _work_in_scratch(self, name: str, inputs, told) -> None:
        import tensorflow as tf

        given = shapes.dims(inputs[0]) if inputs and inputs[0].shape.rank is not None else ()
        worked_in = shapes.scratch_of(given, told[0][0])
        for holding in self.take_all([(shape, tf.float32) for shape in worked_in], name):
            self._session.give_back(holding.allocation)

    def _is_small(self, name: str, inputs, told, stand_in_given: bool) -> bool:
        size = sum(shapes.bytes_of(shape, dtype) for shape, dtype in told)
        if size > (_SMALL_OF_STAND_INS if stand_in_given else _SMALL_BYTES):
            return False
        if size > _SMALL_OF_STAND_INS and self._computed_bytes + size > _MOST_BYTES:
            return False
        if name not in _OF_A_PART and sum(shapes.bytes_of(shapes.dims(t), t.dtype) for t in inputs) > 8 * _SMALL_BYTES:
            return False
        out = sum(math.prod(shape) for shape, _ in told)
        if name in operation_kinds.MATRIX_PRODUCTS and inputs:
            return out * max((max(shapes.dims(t) or (1,)) for t in inputs), default=1) <= _SMALL_WORK
        if name.startswith(operation_kinds.CONVOLUTIONS) and len(inputs) > 1:
            return out * max(1, max(math.prod(shapes.dims(t) or (1,)) for t in inputs[1:2])) <= _SMALL_WORK
        return True

    def stand_ins(self, told) -> list:
        return [self.stand_in(shape, dtype) for shape, dtype in told]

    def stand_in(self, shape, dtype):
        """A tensor of zeros that nobody has touched."""
        import numpy as np
        import tensorflow as tf

        def made():
            if dtype == tf.bfloat16:
                return tf.bitcast(tf.experimental.dlpack.from_dlpack(zeros(shape, np.uint16).__dlpack__()), tf.bfloat16)
            return tf.experimental.dlpack.from_dlpack(zeros(shape, dtype.as_numpy_dtype).__dlpack__())

        if shapes.bytes_of(shape, dtype) <= _PAGE:  # numpy's small arrays lie where TensorFlow does not want tensors
            return self.unwatched(tf.zeros, shape, dtype)
        try:
            return self.unwatched(made)
        except Exception:  # of a type that cannot be handed over
            return self.unwatched(tf.zeros, shape, dtype)

    def _hold_new(self, tensor, name: str, stand_in: bool = False, is_loose: bool = False) -> None:
        if self._session.tensors.of(tensor) is not None or not hasattr(tensor, "dtype"):
            return
        if tensor.shape.is_fully_defined():
            (holding,) = self.take_all([(shapes.dims(tensor), tensor.dtype)], name, is_loose)
            self._session.tensors.follow(tensor, holding, stand_in)
