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
    from .session import TensorFlowSession

    session = TensorFlowSession(options)
    session.install()
    return session
