"""Dry runs of JAX programs.

The program runs with the JAX that its interpreter has, on the CPU. What it would have on the GPU is followed at the level at which JAX itself takes memory: arrays, and executions of
compiled functions.

    program ─▶ jit, eager operations, random, scan … ─▶ executions.py   results and temporaries are taken from the pool; only what is small is computed
               device_put, jnp.asarray               ─▶ array_transfers.py
               jax.devices(), memory_stats(), …      ─▶ jax_devices.py  what the planned GPU would answer
    ../../common/holdings.py   which allocation an array has, and whether its numbers were computed

Folders stand in the order in which they import each other; the files beside them stand on both:

    functions/   compiled functions: their work (jaxpr_cost.py), arrays that they close over (constants.py), and what they take beside their results: XLA's own answer for the planned GPU
                 where its CUDA plugin is installed (gpu_compiler.py), else an estimate (estimated_temporaries.py)
    remedies/    changes that a run can try; recomputation.py: jax.checkpoint for layers, as a trial
"""

from __future__ import annotations


def begin(options: dict):
    from jax._src import xla_bridge

    from ..session.session import NotOfThisFramework
    from .jax_session import JaxSession

    if xla_bridge._backends:
        raise NotOfThisFramework(
            "JAX has computed in this process already, and its threads do not come along into the dry run's copy of it: plan the program with faultline plan, or call faultline.plan before anything is computed"
        )

    session = JaxSession(options)
    session.install()
    return session
