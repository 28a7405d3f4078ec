"""Errors of a PyTorch program that come of the dry run, or of what is not on this machine, and not of the program."""

from __future__ import annotations

import re

from ...session.unplannable import Unplannable, first_sentence, is_meant, of_own_code, own_failure
from .operations import taken_by_host

_NO_FORK = "autograd's threading in combination with fork"


def of_lost_threads(problem: BaseException) -> str:
    """A limit of a dry run in a copy of the process, in words; empty: it is something else."""
    if not isinstance(problem, RuntimeError) or _NO_FORK not in str(problem):
        return ""
    return "PyTorch ran a backward pass for real in this process before, and its threads do not come along into the copy that a dry run is: plan first, or in a process of its own"


def of_missing_cuda(problem: BaseException) -> str:
    """Native code that looks for CUDA by itself: a library that does not load, a driver that is asked."""
    text = str(problem)
    library = re.search(r"\blib(cuda|cudart|cublas\w*|cudnn\w*|c10_cuda|torch_cuda|nvrtc)\.so[\w.]*", text)
    if isinstance(problem, (ImportError, OSError)) and library:
        return f"a native library of the program needs {library.group()}, which is not here: {first_sentence(text)}"
    called = re.search(r"Could not run '([\w:.]+)' with arguments from the 'CUDA' backend", text)
    if isinstance(problem, NotImplementedError) and called:
        return f"{called[1]} is called on the GPU where a dry run does not see it (torch.FloatTensor([…]) of tensors on the GPU reads them so; torch.tensor([…]) is planned)"
    if re.search(r"no CUDA-capable device|CUDA driver version is insufficient|[Ff]ound no NVIDIA driver", text):
        return f"native code of the program asks the CUDA driver by itself, which a dry run does not answer: {first_sentence(text)}"
    return ""


def of_own_mistake(problem: BaseException, trace) -> str:
    """In words, where the dry run broke the program; empty: it is the program's."""
    if isinstance(problem, Unplannable) or is_meant(problem):
        return ""
    if operation := taken_by_host(problem):
        return own_failure(
            f"{operation} is refused here, and PyTorch's kernel for the CPU takes the same operands", problem
        )
    return of_own_code(problem, trace)
