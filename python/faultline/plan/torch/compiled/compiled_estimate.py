"""What a compiled function would keep for its backward pass: an estimate, from the graph that torch.compile's own partitioner makes of it.

The function is traced with tensors that have no memory (FakeTensor), forward and backward together, and cut where the partitioner says: what is cheap is computed again in
backward, what crosses the cut is kept. Nothing of that touches the program's tensors or the planned GPU.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import time

import torch
from torch.utils._pytree import tree_flatten, tree_unflatten

_MOST_PARAMETERS = 1000
_MOST_SECONDS = 10


class _Found(Exception):
    def __init__(self, size_bytes: int):
        super().__init__()
        self.size_bytes = size_bytes


def _kept_bytes(graph_module, inputs) -> int:
    """Of the forward graph's results, those that are none of its inputs, each storage once."""
    placeholders = {node for node in graph_module.graph.nodes if node.op == "placeholder"}
    (results,) = next(node for node in graph_module.graph.nodes if node.op == "output").args
    seen, total = set(), 0
    for node in tree_flatten(results)[0]:
        value = node.meta.get("val") if isinstance(node, torch.fx.Node) else None
        if node in placeholders or not isinstance(value, torch.Tensor):
            continue
        storage = value.untyped_storage()
        if storage._cdata in seen or any(
            storage._cdata == i.meta["val"].untyped_storage()._cdata
            for i in placeholders
            if isinstance(i.meta.get("val"), torch.Tensor)
        ):
            continue
        seen.add(storage._cdata)
        total += storage.nbytes()
    return int(total)


def _traced(function, flat, spec, module, names) -> int:
    from torch._decomp import core_aten_decompositions
    from torch._functorch.aot_autograd import aot_function
    from torch._functorch.partitioners import min_cut_rematerialization_partition

    def found(graph_module, inputs):
        raise _Found(_kept_bytes(graph_module, inputs))

    def flat_function(*given):
        own, rest = given[: len(names)], given[len(names) :]
        args, kwargs = tree_unflatten(list(rest), spec)
        if module is None:
            return function(*args, **kwargs)
        return torch.func.functional_call(module, dict(zip(names, own)), args, kwargs)

    compiled = aot_function(
        flat_function,
        fw_compiler=found,
        bw_compiler=found,
        inference_compiler=found,
        partition_fn=min_cut_rematerialization_partition,
        decompositions=core_aten_decompositions(),
    )
    try:
        compiled(*flat)
    except _Found as answer:
        return answer.size_bytes
    raise RuntimeError("it was not compiled")


def _kept_by_graph(module, function, own, given, spec) -> int:
    from torch._subclasses import fake_tensor

    fake_tensor.init_gpu_context = lambda *_device: None
    with torch.utils._python_dispatch._disable_current_modes():
        with fake_tensor.FakeTensorMode():
            flat = [_without_memory(t) for t in (*(t for _, t in own), *given)]
        with torch.enable_grad():
            return _traced(function, flat, spec, module, [name for name, _ in own])


def _without_memory(tensor):
    if not isinstance(tensor, torch.Tensor):
        return tensor
    made = torch.empty_strided(tensor.size(), tensor.stride(), dtype=tensor.dtype, device=tensor.device)
    return made.requires_grad_() if tensor.requires_grad else made


class Estimate:
    """Made by a process of its own, beside the program, which has it until it takes too long."""

    def __init__(self, child: int, answer: int, seconds: float):
        self._child, self._answer = child, answer
        self._until = time.monotonic() + seconds
        self.name = self.line = ""
        self.eager_bytes = 0

    def result(self) -> int | None:
        """Bytes; None where the function cannot be traced whole (values that decide, code that reads tensors), or in that time."""
        ready, _, _ = select.select([self._answer], [], [], max(0.0, self._until - time.monotonic()))
        text = os.read(self._answer, 100) if ready else b""
        os.close(self._answer)
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._child, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self._child, 0)
        return int(text) if text.isdigit() else None


def start(session, function, args, kwargs) -> Estimate | None:
    """None where there is nothing to keep, and in runs that only try a change."""
    module = getattr(function, "__self__", None)
    module = module if isinstance(module, torch.nn.Module) else None
    given, spec = tree_flatten((args, kwargs))
    own = [*module.named_parameters(), *module.named_buffers()] if module is not None else []
    trains = any(isinstance(t, torch.Tensor) and t.requires_grad for t in (*given, *(t for _, t in own)))
    if session.options.get("overcommit") or not trains or len(own) > _MOST_PARAMETERS:
        return None
    answer, writer = os.pipe()
    child = os.fork()
    if child:
        os.close(writer)
        return Estimate(child, answer, session.options.get("estimate_seconds", _MOST_SECONDS))
    try:
        null = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(null, stream)
        os.write(writer, str(_kept_by_graph(module, function, own, given, spec)).encode())
    except BaseException:
        os.write(writer, b"-")
    finally:
        os._exit(0)
