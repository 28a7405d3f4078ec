"""Hooks into PyTorch's Python code: steps, modules, backward, attention, recurrent layers, compile, and what a dry run must not do."""
from __future__ import annotations

import functools
import sys

import torch

from . import recurrent, sdpa


def install(session) -> None:
    _watch(session)
    _choose_kernels(session)
    _run_eagerly(session)
    _write_nothing(session)
    _hear_refusals(session)
    session.changes.install()


def _watch(session) -> None:
    marks = session.marks
    torch.nn.modules.module.register_module_forward_pre_hook(marks.enter_module)
    torch.nn.modules.module.register_module_forward_hook(marks.leave_module, always_call=True)
    sys.modules[torch.optim.Optimizer.__module__].register_optimizer_step_post_hook(marks.step)
    run = torch.autograd.graph._engine_run_backward
    watched = marks.around_backward(run)
    torch.autograd.graph._engine_run_backward = watched
    if getattr(torch.autograd, "_engine_run_backward", None) is run:
        torch.autograd._engine_run_backward = watched


def _choose_kernels(session) -> None:
    sdpa.install(session)
    _batch_norm()
    _linear()
    recurrent.install(session)


def _linear() -> None:
    """A linear layer on an input that is not contiguous adds its bias in place, but not while a dispatch mode is on."""
    original = torch._C._nn.linear

    def linear(input, weight, bias=None):
        if bias is None or not input.is_cuda or input.dim() < 3 or input.is_contiguous() or bias.dim() != 1:
            return original(input, weight, bias)
        if torch.is_autocast_enabled("cuda"):
            bias = bias.to(torch.get_autocast_dtype("cuda"))
        return torch.matmul(input, weight.t()).add_(bias)
    torch._C._nn.linear = torch.nn.functional.linear = linear


def _batch_norm() -> None:
    """On a GPU batch norm is cuDNN's wherever cuDNN takes it."""
    original = torch.batch_norm

    def batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps, cudnn_enabled):
        if (input.is_cuda and cudnn_enabled and weight is not None and bias is not None and (running_mean is not None or training) and 2 <= input.dim() <= 5 and eps >= 1e-5
                and input.numel() and (input.size(0) <= 880801 if training else input.size(0) <= 65535) and input.dtype is not torch.float64 and input.dtype is not torch.bfloat16):
            return torch.cudnn_batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps)[0]
        return original(input, weight, bias, running_mean, running_var, training, momentum, eps, cudnn_enabled)
    torch.batch_norm = batch_norm


def _run_eagerly(session) -> None:
    """torch.compile takes other memory than eager execution, mostly less; a dry run shows the eager program and says so."""
    def compile(model=None, **options):
        if model is None:
            return lambda function: compile(function, **options)
        session.notes.add("mode", "torch.compile was not applied: the plan shows the eager program, which usually needs more memory than the compiled one")
        return model
    torch.compile = compile
    torch.nn.Module.compile = lambda module, *args, **kwargs: compile(module) and None


def _write_nothing(session) -> None:
    """A checkpoint written by a dry run would hold no weights, and might replace one that does."""
    def save(obj, f, *args, **kwargs):
        session.notes.add("skipped", f"torch.save wrote nothing to {f!r}" if isinstance(f, str) else "torch.save wrote nothing")
    torch.save = save
    torch.serialization.save = save


def _hear_refusals(session) -> None:
    """Some functions refuse shapes before any operation is reached; the operands are known only here."""
    functional = torch.nn.functional
    for name in ("cross_entropy", "nll_loss", "binary_cross_entropy", "binary_cross_entropy_with_logits", "batch_norm", "layer_norm", "group_norm", "embedding", "multi_head_attention_forward", "bilinear", "kl_div"):
        setattr(functional, name, _heard(getattr(functional, name), f"torch.nn.functional.{name}", session))


def _heard(function, name: str, session):
    @functools.wraps(function)
    def faultline(*args, **kwargs):
        try:
            return function(*args, **kwargs)
        except torch.OutOfMemoryError:
            raise
        except (RuntimeError, ValueError, IndexError, TypeError) as problem:
            session.marks.failed_operation(name, [a for a in (*args, *kwargs.values()) if isinstance(a, torch.Tensor)], problem)
            raise
    return faultline
