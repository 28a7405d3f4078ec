"""What differs between the versions of PyTorch that a dry run serves (2.1 and newer), each chosen by what is found."""

from __future__ import annotations

import abc
import weakref

import torch

OutOfMemoryError = getattr(torch, "OutOfMemoryError", None) or torch.cuda.OutOfMemoryError

_set_version = torch._C._autograd._unsafe_set_version_counter
try:
    _set_version((torch.empty(0),), (0,))
except TypeError:
    set_version = _set_version
else:

    def set_version(tensor: torch.Tensor, version: int) -> None:
        """How often the tensor counts as changed."""
        _set_version((tensor,), (version,))


if hasattr(torch, "get_autocast_dtype"):

    def autocast_dtype() -> torch.dtype | None:
        """The type to which autocast casts on the GPU; None while it is off."""
        return torch.get_autocast_dtype("cuda") if torch.is_autocast_enabled("cuda") else None
else:

    def autocast_dtype() -> torch.dtype | None:
        return torch.get_autocast_gpu_dtype() if torch.is_autocast_enabled() else None


if hasattr(torch._C, "_TorchDispatchModeKey"):
    _mode, _FAKE = torch._C._get_dispatch_mode, torch._C._TorchDispatchModeKey.FAKE

    def fake_mode():
        """The mode in which PyTorch looks at a program by itself, where it lies below the dry run's; None while there is none."""
        return _mode(_FAKE)
else:

    def fake_mode():
        return None  # it is a mode like others, and answers before the dry run's does


def use_count(tensor: torch.Tensor) -> int:
    """How many hold the tensor, in C++ and in Python; 0 where PyTorch does not tell."""
    return tensor._use_count() if hasattr(tensor, "_use_count") else 0


run_backward = torch.autograd.Variable._execution_engine.run_backward


def watch_backward(around) -> None:
    """Every backward pass goes through around(the function that runs it) from now on."""
    engine = getattr(torch.autograd.graph, "_engine_run_backward", None)
    if engine is not None:
        torch.autograd.graph._engine_run_backward = around(engine)
        if getattr(torch.autograd, "_engine_run_backward", None) is engine:
            torch.autograd._engine_run_backward = torch.autograd.graph._engine_run_backward
        return

    class Engine:  # before 2.3 Python calls the engine itself
        def __init__(self, real):
            self._real, self.run_backward = real, around(real.run_backward)

        def __getattr__(self, name):
            return getattr(self._real, name)

    torch.autograd.Variable._execution_engine = Engine(torch.autograd.Variable._execution_engine)


_probe = torch.empty(0)
if _probe.untyped_storage() is _probe.untyped_storage():
    StorageRef = weakref.ref  # PyTorch keeps a storage's object as long as C++ holds the storage

    def notice_deaths() -> None:
        """Tells those who follow storages (StorageRef) which have gone."""
else:
    _followed: set[StorageRef] = set()
    _expired = torch.UntypedStorage._expired

    class StorageRef:
        """As weakref.ref is to a storage from 2.2 on. In 2.1 the object is only a handle, so that C++ is asked whether the storage is still there."""

        __slots__ = ("_weak", "_callback")

        def __new__(cls, *_args):
            return object.__new__(cls)

        def __init__(self, storage, callback):
            self._weak, self._callback = storage._weak_ref(), callback
            _followed.add(self)

        def __call__(self):
            return torch.UntypedStorage._new_with_weak_ptr(self._weak)

        def __del__(self):
            torch.UntypedStorage._free_weak_ref(self._weak)

    def notice_deaths() -> None:
        gone = [ref for ref in _followed if _expired(ref._weak)]
        for ref in gone:
            _followed.discard(ref)
            ref._callback(ref)


def _base(name: str) -> type:
    """What PyTorch's own streams and events are derived from, where that is a class of Python: torch._dynamo insists on it."""
    found = getattr(getattr(torch, "_streambase", None), name, None)
    return found if isinstance(found, abc.ABCMeta) else object


StreamBase, EventBase = _base("_StreamBase"), _base("_EventBase")


def check_distributions_as_newer() -> None:
    """Whether parameters and samples are valid is asked by torch._is_all_true() in newer releases, and before by valid.all(), which may be anybody's question."""
    kind = torch.distributions.Distribution
    for function in (kind.__init__, kind._validate_sample):
        code = function.__code__
        if "all" in code.co_names and "_is_all_true" not in code.co_names:
            names = tuple("_is_all_true" if name == "all" else name for name in code.co_names)
            function.__code__ = code.replace(co_names=names)
