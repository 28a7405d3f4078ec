"""Dry runs of TensorFlow programs.

The program runs with the TensorFlow that its interpreter has, on the CPU. Each eager operation is seen before it runs, with its arguments:

    eager.py        operations, constants and variables: what their results take is taken from the pool; only what is small is computed
    host_arrays.py  large NumPy arrays
    graphs.py       calls of traced functions, sessions.py: runs of sessions
    graph_facts.py  what is known of a graph's tensors in a run: shapes, and numbers that shapes are made of
    walk.py         the operations of a graph, one after the other, each result held until its last use;
                    calls.py functions, branches, loops; tensor_lists.py what loops keep; pipelines.py tf.data; ragged.py ragged and sparse tensors; cudnn_recurrent.py cuDNN
    loops_of_version_1.py  loops of sessions are made as functions
    remedies/       edits of the program that a run can try
    left_out.py     what a graph that is not computed would have changed
    tensorflow_devices.py  what the planned GPU would answer, and what the program sets for its pool

Eager operations take what they take on a GPU. Inside a graph it is an estimate: TensorFlow rewrites graphs and runs operations beside each other, and libraries take scratch memory.
"""

from __future__ import annotations


def begin(options: dict):
    from tensorflow.python.eager import context

    from ..session.session import NotOfThisFramework
    from .tensorflow_session import TensorFlowSession

    if context.context()._context_handle is not None:
        raise NotOfThisFramework(
            "TensorFlow has computed in this process already, and its threads do not come along into the dry run's copy of it: plan the program with faultline plan, or call faultline.plan before anything is computed"
        )

    session = TensorFlowSession(options)
    session.install()
    return session
