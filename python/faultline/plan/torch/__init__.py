"""Dry runs of PyTorch programs: dry_run_session.py begins and ends one, torch_hooks.py puts it into PyTorch's Python code.

Folders stand in the order in which they import each other:

    release/     what a release of PyTorch does, and what it calls things
    tensors/     tensors, storages and their memory on the planned GPU, and what the trace calls them
    operations/  what an operation is given and gives; shapes that PyTorch does not tell
    program/     what the program is doing: modules, steps, phases, who holds what
    values/      which values are known, and what is known of the others
    kernels/     what kernels take beside their results, and which kernel it is
    hooks/       Python functions of PyTorch that others stand in for
    cuda/        torch.cuda
    ranks/       torch.distributed
    compiled/    torch.compile
    dispatch/    the mode that answers every operation, and its handlers
    libraries/   libraries that need a GPU
    remedies/    what would make a program need less
"""
