"""Dry runs of TensorFlow programs.

The program runs with the TensorFlow that its interpreter has, on the CPU. Each eager operation is seen before it runs, with its arguments:

    eager.py     operations, constants and variables: what their results take is taken from the pool; only what is small is computed
    shapes.py    what shape a result would have, by TensorFlow's own inference
    graphs.py    tf.function and sessions: the operations of a graph, one after the other, each result held until its last use
    devices.py   what the planned GPU would answer, and what the program sets for its pool

Eager operations take what they take on a GPU. Inside a graph it is an estimate: TensorFlow rewrites graphs and runs operations beside each other, and libraries take scratch memory.
"""

from __future__ import annotations


def begin(options: dict):
    from tensorflow.python.eager import context

    from .tensorflow_session import TensorFlowSession

    if context.context()._context_handle is not None:
        raise RuntimeError(
            "TensorFlow has computed in this process already, and its threads do not come along into the dry run's copy of it: plan the program with faultline plan, or call faultline.plan before anything is computed"
        )

    session = TensorFlowSession(options)
    session.install()
    return session
