"""Lets PyTorch carry tensors whose device is cuda where there is no GPU, and also where it was built without CUDA.

Every build knows the device type, its dispatch keys and its autograd formulas; what is missing are two small objects that C++ asks for on the way:
  - a device guard for CUDA. PyTorch puts a do-nothing one in place itself where a build has CUDA but the machine has no GPU
    (torch._C._ensureCUDADeviceGuardSet). It does so only if some guard with no devices stands there, so one is put there for a moment;
  - the hooks that say whether an accelerator was built in, and whether the driver has a context. The autograd engine refuses to run for cuda tensors
    without the one, and asks a missing driver for the other. The hooks object is given a copy of its own function table in which two
    answers differ: isBuilt is true, hasPrimaryContext is false. Where those two stand in the table is read from the header that ships with the
    same PyTorch.
Nothing is written into PyTorch's code or files. Whatever does not look as expected ends with Unsupported, before anything was changed.
"""
from __future__ import annotations

import ctypes
import os
import re

import torch

_GUARD_SYMBOL = "_ZN3c104impl26device_guard_impl_registryE"
_HOOKS_SYMBOL = "_ZN2at6detail12getCUDAHooksEv"
_CUDA_SLOT = 1  # c10::DeviceType::CUDA
_kept: list[object] = []  # what C++ points to from now on


class Unsupported(Exception):
    """This PyTorch is not built the way the dry run knows."""


def _library(name: str) -> ctypes.CDLL:
    try:
        return ctypes.CDLL(os.path.join(os.path.dirname(torch.__file__), "lib", name))
    except OSError as problem:
        raise Unsupported(f"PyTorch's {name} could not be opened ({problem})") from problem


def _install_guard(answers) -> None:
    try:
        slots = (ctypes.c_void_p * (_CUDA_SLOT + 1)).in_dll(_library("libc10.so"), _GUARD_SYMBOL)
    except ValueError as problem:
        raise Unsupported("PyTorch's table of device guards was not found") from problem
    if slots[_CUDA_SLOT]:
        torch._C._ensureCUDADeviceGuardSet()
        return
    table = (ctypes.c_void_p * 64)(*[answers[0]] * 64)  # whichever function is asked, the answer is 0: no devices
    nobody = (ctypes.c_void_p * 2)(ctypes.addressof(table), 0)
    slots[_CUDA_SLOT] = ctypes.addressof(nobody)
    torch._C._ensureCUDADeviceGuardSet()
    if slots[_CUDA_SLOT] == ctypes.addressof(nobody):
        slots[_CUDA_SLOT] = None
        raise Unsupported("PyTorch did not put its device guard for CUDA in place")


def _virtual_functions() -> list[str]:
    """The functions of AcceleratorHooksInterface in the order of its table; a destructor takes two places."""
    header = os.path.join(os.path.dirname(torch.__file__), "include", "ATen", "detail", "AcceleratorHooksInterface.h")
    try:
        with open(header, encoding="utf-8") as file:
            text = file.read()
    except OSError as problem:
        raise Unsupported(f"PyTorch's header {os.path.basename(header)} is not there") from problem
    names: list[str] = []
    for name in re.findall(r"virtual\s+(?:[\w:<>&*\s,]+?[\s&*])?(~?\w+)\s*\(", text):
        names += [name, name] if name.startswith("~") else [name]
    return names


def _install_hooks(answers) -> None:
    names = _virtual_functions()
    try:
        built, primary = names.index("isBuilt"), names.index("hasPrimaryContext")
        get_hooks = getattr(_library("libtorch_cpu.so"), _HOOKS_SYMBOL)
    except (ValueError, AttributeError) as problem:
        raise Unsupported("PyTorch's CUDA hooks are not where they were expected") from problem
    get_hooks.restype, get_hooks.argtypes = ctypes.c_void_p, []
    pointer = ctypes.c_void_p.from_address(get_hooks())
    old = pointer.value
    entries = len(names) + 64  # the CUDA interface adds its own behind those of the accelerator
    table = (ctypes.c_void_p * (entries + 2))()
    ctypes.memmove(table, old - 16, ctypes.sizeof(table))  # two words stand before the first function
    table[2 + built] = answers[1]
    table[2 + primary] = answers[0]
    _kept.append(table)
    pointer.value = ctypes.addressof(table) + 16
    found = torch._C._accelerator_getAccelerator()
    if found is None or found.type != "cuda":
        pointer.value = old
        raise Unsupported("PyTorch does not accept cuda as its accelerator")


def _hide_substitutes() -> None:
    """A few operations have a CUDA kernel and, for everybody else, a substitute made of several operations. Without the kernel the substitute would
    be taken, and the plan would show its memory. It is enough that a kernel stands there; none is ever reached."""
    global _library_of_kernels
    _library_of_kernels = torch.library.Library("aten", "IMPL")

    def kernel(*_args, **_kwargs):
        raise AssertionError("a kernel was reached in a dry run")
    for name in ("silu_backward", "mish_backward", "_fused_rms_norm", "_fused_rms_norm_backward"):
        full = "aten::" + name
        if torch._C._dispatch_has_kernel(full) and not torch._C._dispatch_has_kernel_for_dispatch_key(full, "CUDA"):
            _library_of_kernels.impl(name, kernel, "CUDA")


def prepare(library: str) -> None:
    """library is the dry run's own, which has the functions that answer. After this, tensors of device cuda can be made, computed with and differentiated, as long as no kernel is reached."""
    if not hasattr(torch._C, "_accelerator_getAccelerator") or not hasattr(torch._C, "_ensureCUDADeviceGuardSet"):
        raise Unsupported(f"PyTorch {torch.__version__} is older than the dry run can handle")
    # Functions of C, not of Python: PyTorch's threads ask after Python has ended, too.
    own = ctypes.CDLL(library)
    answers = [ctypes.cast(function, ctypes.c_void_p).value for function in (own.faultline_answer_0, own.faultline_answer_1)]
    _install_guard(answers)
    _install_hooks(answers)
    if not torch.backends.cuda.is_built():
        _hide_substitutes()
