"""Lets PyTorch carry tensors whose device is cuda where there is no GPU, and also where it was built without CUDA.

Every build knows the device type, its dispatch keys and its autograd formulas; what is missing are two small objects that C++ asks for on the way:
  - a device guard for CUDA, which tells how many GPUs there are and which is a thread's current one. One with the dry run's own functions is put in its
    place. (Newer PyTorch has a do-nothing one itself, torch._C._ensureCUDADeviceGuardSet, which serves where the header is not there.);
  - the hooks that say whether an accelerator was built in, and whether the driver has a context. The autograd engine refuses to run for cuda tensors
    without the one, and asks a missing driver for the other. The hooks object is given a copy of its own function table in which these
    answers differ.
The order of the functions in both tables is read from the headers that ship with the same PyTorch, so that it is no matter of versions.
Nothing is written into PyTorch's code or files. Whatever does not look as expected ends with Unsupported, before anything was changed.
"""

from __future__ import annotations

import ctypes
import os
import re

import torch
from torch.utils._python_dispatch import _disable_current_modes

_GUARD_SYMBOL = "_ZN3c104impl26device_guard_impl_registryE"
_HOOKS_SYMBOL = "_ZN2at6detail12getCUDAHooksEv"
_CUDA_SLOT = 1  # c10::DeviceType::CUDA
_kept: list[object] = []  # what C++ points to from now on
_slots: dict[str, tuple] = {}  # places in the hooks' table


def take_host_memory_as_pinned(library_path: str) -> None:
    """C++ that makes pinned memory and insists on it (the reducer of DistributedDataParallel) is told so. Python code asks the dry run itself. PyTorch
    answers so only for a device that it has initialised, which it does when pinned memory is first asked for."""
    own = ctypes.CDLL(library_path)
    for name, answer in (
        ("isPinnedPtr", own.faultline_answer_1),
        ("init", own.faultline_answer_0),
        ("initCUDA", own.faultline_answer_0),
    ):
        if name in _slots:
            table, slot = _slots[name]
            table[slot] = _address(answer)
    try:
        with _disable_current_modes():
            torch.ops.aten.empty.memory_format([1], pin_memory=True)
    except RuntimeError:
        pass  # there is none, but now it has been asked for


class Unsupported(RuntimeError):
    """This PyTorch is not built the way the dry run knows."""


def _address(function) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value


def library(name: str) -> ctypes.CDLL:
    try:
        return ctypes.CDLL(os.path.join(os.path.dirname(torch.__file__), "lib", name))
    except OSError as problem:
        raise Unsupported(f"PyTorch's {name} could not be opened ({problem})") from problem


def _virtual_functions(header: str, inherited: list[str]) -> list[str]:
    """The functions of the interface that a header declares, in the order of its table, behind those it inherits; a destructor takes two places."""
    try:
        with open(
            os.path.join(os.path.dirname(torch.__file__), "include", *header.split("/")), encoding="utf-8"
        ) as file:
            text = re.sub(r"//[^\n]*|/\*.*?\*/", " ", file.read(), flags=re.DOTALL)
    except OSError:
        return []
    names = list(inherited)
    for name in re.findall(r"\bvirtual\s+(?:[\w:<>&*\s,]+?[\s&*])?(~?\w+)\s*\(", text):
        if name not in inherited:
            names += [name, name] if name.startswith("~") else [name]
    return names


def _install_guard(own) -> bool:
    """Is it the dry run's own?"""
    try:
        slots = (ctypes.c_void_p * (_CUDA_SLOT + 1)).in_dll(library("libc10.so"), _GUARD_SYMBOL)
    except ValueError as problem:
        raise Unsupported("PyTorch's table of device guards was not found") from problem
    names = _virtual_functions("c10/core/impl/DeviceGuardImplInterface.h", [])
    answers = {
        "type": own.faultline_guard_current,
        "getDevice": own.faultline_guard_current,
        "exchangeDevice": own.faultline_guard_exchange,
        "setDevice": own.faultline_guard_exchange,
        "uncheckedSetDevice": own.faultline_guard_exchange,
        "deviceCount": own.faultline_device_count,
        "queryStream": own.faultline_answer_1,
        "queryEvent": own.faultline_answer_1,
        **dict.fromkeys(
            ("getStream", "getDefaultStream", "getStreamFromGlobalPool", "getNewStream", "exchangeStream"),
            own.faultline_guard_stream,
        ),
    }
    if set(answers) - set(names) <= {"getNewStream", "getStreamFromGlobalPool"}:
        table = (ctypes.c_void_p * (len(names) + 16))(
            *[_address(answers.get(name, own.faultline_answer_0)) for name in names],
            *[_address(own.faultline_answer_0)] * 16,
        )
        guard = (ctypes.c_void_p * 2)(ctypes.addressof(table), 0)
        _kept.extend((table, guard))
        slots[_CUDA_SLOT] = ctypes.addressof(guard)
        return True
    if hasattr(torch._C, "_ensureCUDADeviceGuardSet"):
        _let_pytorch_install_guard(slots, _address(own.faultline_answer_0))
        return False
    raise Unsupported("PyTorch's header of device guards is not there, or not as expected")


def _let_pytorch_install_guard(slots, answer_0: int) -> None:
    """It does so only if some guard with no devices stands there, so one is put there for a moment."""
    if slots[_CUDA_SLOT]:
        torch._C._ensureCUDADeviceGuardSet()
        return
    table = (ctypes.c_void_p * 64)(*[answer_0] * 64)  # whichever function is asked, the answer is 0: no devices
    nobody = (ctypes.c_void_p * 2)(ctypes.addressof(table), 0)
    slots[_CUDA_SLOT] = ctypes.addressof(nobody)
    torch._C._ensureCUDADeviceGuardSet()
    if slots[_CUDA_SLOT] == ctypes.addressof(nobody):
        slots[_CUDA_SLOT] = None
        raise Unsupported("PyTorch did not put its device guard for CUDA in place")


def _install_hooks(own, own_guard: bool) -> None:
    names = _virtual_functions("ATen/detail/AcceleratorHooksInterface.h", [])
    names = _virtual_functions("ATen/detail/CUDAHooksInterface.h", names)
    built = "isBuilt" if "isBuilt" in names else "hasCUDA"
    get_hooks = getattr(library("libtorch_cpu.so"), _HOOKS_SYMBOL, None)
    if get_hooks is None or built not in names or "hasPrimaryContext" not in names:
        raise Unsupported("PyTorch's CUDA hooks are not where they were expected")
    get_hooks.restype, get_hooks.argtypes = ctypes.c_void_p, []
    pointer = ctypes.c_void_p.from_address(get_hooks())
    old = pointer.value
    table = (ctypes.c_void_p * (len(names) + 2))()
    ctypes.memmove(table, old - 16, ctypes.sizeof(table))  # two words stand before the first function
    table[2 + names.index(built)] = _address(own.faultline_answer_1)
    # With a context the engine asks the guard for the streams of those who call it; before 2.5 it takes them for granted.
    table[2 + names.index("hasPrimaryContext")] = _address(
        own.faultline_answer_1 if own_guard else own.faultline_answer_0
    )
    _kept.append(table)
    _slots.update(
        {name: (table, 2 + names.index(name)) for name in ("isPinnedPtr", "init", "initCUDA") if name in names}
    )
    pointer.value = ctypes.addressof(table) + 16
    if _accelerator() not in (None, "cuda"):
        pointer.value = old
        raise Unsupported("PyTorch does not accept cuda as its accelerator")


def _accelerator() -> str | None:
    """What PyTorch takes for its accelerator; None where it has no such word."""
    try:
        found = torch._C._accelerator_getAccelerator()
    except (AttributeError, RuntimeError):
        return None
    return "" if found is None else found.type


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
    own = ctypes.CDLL(library)  # functions of C, not of Python: PyTorch's threads ask after Python has ended, too
    _install_hooks(own, _install_guard(own))
    if not torch.backends.cuda.is_built():
        _hide_substitutes()
