"""Loops of TensorFlow 1 (tf.while_loop, dynamic_rnn, scan without control flow 2): frames of operations that go round and have no function of their own.

While the program builds its graph they are made as functions, as TensorFlow 2 makes them, with the same results: then they are walked round by round (calls.py). Where that cannot be, and in graphs
that come from files, what they keep of each round is not known.
"""

from __future__ import annotations

import functools
import threading

_KEEP = frozenset(
    "StackPush StackPushV2 TensorArrayWrite TensorArrayWriteV2 TensorArrayWriteV3 TensorListPushBack TensorListSetItem".split()
)
_now = threading.local()


def install() -> None:
    import tensorflow as tf
    from tensorflow.python.ops import control_flow_util, tensor_array_ops, while_loop

    enabled = control_flow_util.EnableControlFlowV2
    control_flow_util.EnableControlFlowV2 = lambda graph: getattr(_now, "as_functions", False) or enabled(graph)

    def as_functions(call, *arguments, **named):
        before = getattr(_now, "as_functions", False)
        _now.as_functions = True
        try:
            return call(*arguments, **named)
        finally:
            _now.as_functions = before

    loop, made = while_loop.while_loop, tensor_array_ops.TensorArray.__init__

    @functools.wraps(loop)
    def while_loop_as_function(*arguments, **named):
        if not _is_of_version_1():
            return loop(*arguments, **named)
        try:
            return as_functions(loop, *arguments, **named)
        except Exception:  # what only version 1 can: assigning to its variables inside
            return loop(*arguments, **named)

    @functools.wraps(made)
    def init(self, *arguments, **named):
        as_functions(made, self, *arguments, **named)

    tensor_array_ops.TensorArray.__init__ = init
    while_loop.while_loop = while_loop_as_function
    tf.compat.v1.while_loop = while_loop_as_function


def _is_of_version_1() -> bool:
    from tensorflow.python.eager import context
    from tensorflow.python.framework import ops

    return not context.executing_eagerly() and not ops.get_default_graph().building_function


def kept_by(operations) -> str:
    """An operation that keeps something of each round of such a loop; empty: there is none."""
    if not any(operation.type == "LoopCond" for operation in operations):
        return ""
    return next((f"{operation.name}, {operation.type}" for operation in operations if operation.type in _KEEP), "")
