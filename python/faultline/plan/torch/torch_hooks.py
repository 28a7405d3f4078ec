"""Hooks into PyTorch's Python code: steps, modules, backward, attention, recurrent layers, and what a dry run must not do."""

from __future__ import annotations

import functools
import math
import secrets
import sys

import torch

from ...common.stacks import user_line
from ..session.unplannable import Unplannable
from . import libraries
from .compiled import compiled, flexible_attention
from .dispatch import custom_operations, nested_tensors, special_operations
from .hooks import checkpoint_files, cudnn_rnn, legacy_tensor_types, printing, safetensors_files
from .hooks.overrides import overridable
from .kernels import attention_choice
from .operations.outcome import flatten
from .program.program_names import argument_names
from .release.older_torch import OutOfMemoryError, autocast_dtype, check_distributions_as_newer, watch_backward
from .tensors import loose_sizes, storages
from .tensors.naming import operands_text


def install(session) -> None:
    _watch(session)
    _choose_kernels(session)
    compiled.install(session)
    flexible_attention.install(session)
    custom_operations.install()
    libraries.install(session)
    nested_tensors.install(session)
    confined = bool(session.options.get("confined"))
    checkpoint_files.CheckpointFiles(
        session.notes, session.mode.host, confined, session.options.get("token") or secrets.token_hex()
    ).install()
    safetensors_files.install(session.notes, confined, session.progress.phases.around_save)
    session.progress.phases.install()
    check_distributions_as_newer()
    storages.install(session.mode.host, session.memory)
    mode = session.mode
    legacy_tensor_types.install(lambda tensor: special_operations.read_scalar(mode, None, (tensor,), {}))
    printing.install(session)
    if torch.distributed.is_available():
        from .ranks import many_ranks

        many_ranks.install(session)
    _profile_the_host()
    _truncated_normal(session.mode.host)
    _hear_refusals(session)
    session.remedies.install()


def _watch(session) -> None:
    progress = session.progress
    torch.nn.modules.module.register_module_forward_pre_hook(progress.enter_module)
    torch.nn.modules.module.register_module_forward_hook(progress.leave_module, always_call=True)
    sys.modules[torch.optim.Optimizer.__module__].register_optimizer_step_post_hook(progress.step)
    progress.before_step, progress.on_backward = session.remedies.seen.stepped, session.remedies.seen.backward

    def watched(run):
        def from_line(*args, **kwargs):
            Unplannable.backward_line = user_line()
            return run(*args, **kwargs)

        return progress.around_backward(from_line)

    watch_backward(watched)


def _choose_kernels(session) -> None:
    attention_choice.install(session)
    _batch_norm()
    _linear()
    _one_hot(session.mode)
    _ctc_loss(session)
    cudnn_rnn.install(session)


def _linear() -> None:
    """A linear layer on an input that is not contiguous adds its bias in place, but not while a dispatch mode is on."""
    original = torch._C._nn.linear

    @overridable(original)
    def linear(input, weight, bias=None):
        if bias is None or not input.is_cuda or input.dim() < 3 or input.is_contiguous() or bias.dim() != 1:
            return original(input, weight, bias)
        if (dtype := autocast_dtype()) is not None:
            bias = bias.to(dtype)
        return torch.matmul(input, weight.t()).add_(bias)

    torch._C._nn.linear = torch.nn.functional.linear = linear


def _one_hot(mode) -> None:
    """Zeros that are then written: without its name nothing tells what they are for."""
    original = torch._C._nn.one_hot

    @overridable(original)
    def one_hot(tensor, num_classes=-1):
        mode.made_by = "aten::one_hot", operands_text([tensor])
        try:
            return original(tensor, num_classes)
        finally:
            mode.made_by = None

    torch._C._nn.one_hot = torch.nn.functional.one_hot = one_hot


def _ctc_loss(session) -> None:
    """Lengths are read as numbers wherever they are, but not while a dispatch mode is on."""
    original = torch.ctc_loss

    def lengths(given, otherwise: list[int], even: bool):
        if not isinstance(given, torch.Tensor):
            return given
        values = session.values.view(given) if given.is_cuda else given
        if values is not None and not (given.is_cuda and session.values.is_assumed(given)):
            return values.flatten().tolist()
        if even:
            session.notes.add("value", "lengths of targets for ctc_loss() are not known: they were taken as equal")
        else:
            session.notes.at_most("lengths for ctc_loss() are not known: they were taken as the longest there can be")
        return otherwise

    @overridable(original)
    def ctc_loss(log_probs, targets, input_lengths, target_lengths, *rest, **options):
        if log_probs.is_cuda and log_probs.dim() in (2, 3):
            batch = log_probs.size(1) if log_probs.dim() == 3 else 1
            joined = targets.dim() == 1
            share, left = divmod(targets.size(0), batch) if joined else (targets.size(1), 0)
            input_lengths = lengths(input_lengths, [log_probs.size(0)] * batch, False)
            target_lengths = lengths(target_lengths, [share + (n < left) for n in range(batch)], joined)
        return original(log_probs, targets, input_lengths, target_lengths, *rest, **options)

    torch.ctc_loss = ctc_loss


def _batch_norm() -> None:
    """On a GPU batch norm is cuDNN's wherever cuDNN takes it."""
    original = torch.batch_norm

    @overridable(original)
    def batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps, cudnn_enabled):
        if (
            input.is_cuda
            and cudnn_enabled
            and weight is not None
            and bias is not None
            and (running_mean is not None and running_var is not None or running_mean is running_var and training)
            and input.dim() >= 3
            and eps >= 1e-5
            and 0 < input.numel() < 2**31 - 1
            and input.size(0) <= (880801 if training else 65535)
            and torch.bfloat16 not in (input.dtype, weight.dtype)
            and (input.dtype is not torch.float16 or weight.dtype is torch.float32)
        ):
            return torch.cudnn_batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps)[0]
        return original(input, weight, bias, running_mean, running_var, training, momentum, eps, cudnn_enabled)

    torch.batch_norm = batch_norm


def _truncated_normal(host) -> None:
    """PyTorch draws until all numbers are within the bounds, and so reads them. Where they are left for later the same distribution is made in one go."""
    original = torch.nn.init._no_grad_trunc_normal_

    def faultline(tensor, mean, std, a, b, generator=None):
        if not host.is_unfilled(tensor):
            return original(tensor, mean, std, a, b, generator)
        low, high = (math.erf((bound - mean) / std / math.sqrt(2)) for bound in (a, b))
        with torch.no_grad():
            return (
                tensor.uniform_(low, high, generator=generator)
                .erfinv_()
                .mul_(std * math.sqrt(2))
                .add_(mean)
                .clamp_(a, b)
            )

    torch.nn.init._no_grad_trunc_normal_ = faultline


def _profile_the_host() -> None:
    """A profiler that was asked for the GPU would complain at every operation."""
    kind = torch.autograd.profiler.profile
    init = kind.__init__

    def faultline(profiler, *args, **kwargs):
        init(
            profiler,
            *args,
            **{
                name: value
                for name, value in kwargs.items()
                if not (name == "use_cuda" or name == "use_device" and value == "cuda")
            },
        )

    kind.__init__ = faultline


def _hear_refusals(session) -> None:
    """Some functions refuse shapes before any operation is reached; the operands are known only here."""
    functional = torch.nn.functional
    for name in (
        "cross_entropy",
        "nll_loss",
        "binary_cross_entropy",
        "binary_cross_entropy_with_logits",
        "batch_norm",
        "layer_norm",
        "group_norm",
        "embedding",
        "multi_head_attention_forward",
        "bilinear",
        "kl_div",
    ):
        setattr(functional, name, _heard(getattr(functional, name), f"torch.nn.functional.{name}", session))


def _heard(function, name: str, session):
    @functools.wraps(function)
    def faultline(*args, **kwargs):
        try:
            return function(*args, **kwargs)
        except OutOfMemoryError:
            raise
        except (RuntimeError, ValueError, IndexError, TypeError) as problem:
            operands = flatten(args, kwargs)
            loose_sizes.check(session.memory, name, operands, problem)
            session.progress.failed_operation(name, operands, problem, argument_names(function, args, kwargs))
            raise

    return faultline
