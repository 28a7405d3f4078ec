"""Collectives that are operations (torch.ops._c10d_functional, which DTensor uses), and the operations that FSDP defines in Python."""

from __future__ import annotations

import torch

Tensor = torch.Tensor


def _several(value):
    return list(value) if isinstance(value, (list, tuple)) else [value]


def _named(func, args, kwargs) -> dict:
    return {**{argument.name: value for argument, value in zip(func._schema.arguments, args)}, **kwargs}


def _collective(dry, func, args, kwargs):
    """The result is made as the operation's shape rule says; its values are those of this rank, repeated."""
    from torch._C._distributed_c10d import _resolve_process_group

    from . import process_group

    name = func._schema.name.rpartition("::")[2]
    given = _named(func, args, kwargs)
    inputs = _several(given.get("input", given.get("inputs")))
    group = _resolve_process_group(given["group_name"])
    size, rank = group.size(), group.rank()
    result = dry.run(func, args, kwargs, values=False)
    with dry:
        for output, source in zip(_several(result), inputs):
            if name.startswith("all_gather"):
                process_group.gathered(output, source.contiguous(), size)
            elif name.startswith("reduce_scatter"):
                process_group.scattered(output, source, rank, given.get("reduce_op", "sum"), size)
            else:
                if output is not source and output.size() == source.size():
                    output.copy_(source)
                if name.startswith("all_reduce"):
                    process_group.reduced(output, given.get("reduce_op", "sum"), size)
    if isinstance(group, process_group.OneRanksGroup):
        group._done(_several(result), name)
    return result


def _waited(dry, func, args, kwargs):
    return args[0]


def _in_python(dry, func, args, kwargs):
    """An operation that is written in Python for the GPU: its parts come back one by one."""
    with dry:
        return func._op_dk(torch._C.DispatchKey.CUDA, *args, **kwargs)


def handler(func):
    """Of an operation that is no ATen operation; None where it is answered like any other."""
    if func.namespace == "fsdp":
        return _in_python if torch._C._dispatch_has_kernel_for_dispatch_key(func.name(), "CUDA") else None
    if func.namespace != "_c10d_functional":
        return None
    name = func._schema.name
    if name.endswith("wait_tensor"):
        return _waited
    of_group = any(argument.name == "group_name" for argument in func._schema.arguments)
    return _collective if of_group and not name.endswith(("p2p_ops", "isend", "irecv")) else None
