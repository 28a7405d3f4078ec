"""What the program is doing: which module runs, which step it is, which forward line a gradient belongs to, which operation failed."""

from __future__ import annotations

import functools
import threading
import weakref

import torch

from ...session import marks
from ...session.weak_by_id import WeakById
from ..release.older_torch import StorageRef, notice_deaths, run_backward
from ..tensors import tensors
from ..tensors.memory import Memory, storage_id
from ..tensors.naming import dtype_name
from .phases import Phases
from .program_names import model_name, names_of
from .unharmed import unharmed
from .updates import Updates

_sequence = torch.autograd._get_sequence_nr
_MOST_FORWARDS = 500_000
_MOST_TURNS = 20_000
_MOST_NAMED = 100  # failures whose operands are looked for in the program
_TOLD = "_faultline_told"  # on an error of an operation that the trace has


def empty_backward(index: int) -> None:
    """A pass that computes nothing, and whose own tensors are never freed: it goes through the thread of GPU index behind whatever the thread still has to let go of."""
    leaf, gradient = tensors.immortal_on(index).requires_grad_(), tensors.immortal_on(index)
    run_backward((leaf,), (gradient,), False, False, (leaf,), allow_unreachable=True, accumulate_grad=False)


class _Running(threading.local):
    """The modules that run in a thread, one inside the other."""

    def __init__(self):
        self.module = ""
        self.open: list[str] = []


class Progress:
    def __init__(self, memory: Memory):
        self._memory = memory
        self._running = _Running()
        self._paths = WeakById()
        self._models: dict[str, object] = {}  # by name
        self._forward: dict[int, tuple[int, str]] = {}
        self._backwards = self._failures = 0
        self.read_sizes: set[int] = set()  # stand-ins that the program read and may make tensors by
        self._optimized: set[int] = set()  # allocations of which the trace knows that an optimizer has them
        self.saw_backward = False
        self.model_calls = 0  # by the program
        self.steps = 0
        self._stepped: dict[
            int, int
        ] = {}  # optimizers, each by its first parameter: how often since the last step was counted
        self._leader = 0
        self.turns: dict[int, list[int]] = {}  # of each optimizer: its number, how often it stepped
        self.host = None
        self.on_round = None  # told of each step, and of each call of a model by the program
        self.calls = None  # told of the calls of models, and to which of them a backward pass comes
        self.on_model = None  # told of each model before it first runs
        self.before_first_backward = None
        self.on_call = None  # told of each call of a module that is inside no other
        self.on_step = None  # told after each optimizer step
        self.before_step = self.on_backward = None  # told of the step before it is counted, and of each pass
        self._pins: dict[int, object] = {}
        self.phases = Phases(memory)
        self.updates = Updates(self, memory)

    # --- modules

    @unharmed
    def enter_module(self, module, _inputs) -> None:
        running = self._running
        if not running.open:
            self.updates.goes_on()
        if not running.open and module not in self._paths:
            model = module._modules.get("_orig_mod", module)  # as torch.compile wraps it
            self._name_all(model)
            self._paths.setdefault(module, self._paths[model])
            if self.on_model is not None:
                self.on_model(model)
        if not running.open:
            self.model_calls += 1
            if self.on_call is not None:
                self.on_call(module)
        if not running.open and not self._backwards:
            self.phases.model_runs(module)
            if self.on_round is not None:
                self.on_round()
        if not running.open and self.calls is not None:
            self.calls.enter(module)
        running.open.append(running.module)
        path = self._paths.get(module)
        inside = running.module + "." if running.module else ""
        running.module = path if path is not None else inside + type(module).__name__

    @unharmed
    def leave_module(self, module, _inputs, _output) -> None:
        running = self._running
        if running.open:
            running.module = running.open.pop()
        if not running.open and self.calls is not None:
            self.calls.leave(module)

    @property
    def module(self) -> str:
        return self._running.module

    @property
    def depth(self) -> int:
        """How many modules are running in this thread, one inside the other."""
        return len(self._running.open)

    def _name_all(self, root) -> None:
        prefix = model_name(root, self._models)
        self._models[prefix] = weakref.ref(root)
        for path, module in root.named_modules():
            self._paths.setdefault(module, f"{prefix}.{path}" if path else prefix)
        for path, parameter in root.named_parameters():
            record = self._memory.find(parameter) if parameter.is_cuda else None
            if record is not None and record.allocation:
                number = self._memory.device.tensor(
                    tuple(parameter.size()), dtype_name(parameter.dtype), "parameter", f"{prefix}.{path}"
                )
                self._memory.device.tensor_note(record.allocation, number, 0)
                if parameter.requires_grad:
                    self.updates.has_parameter(record)

    # --- forward and backward

    def note_forward(self, stack: int) -> None:
        if torch.is_grad_enabled():
            if len(self._forward) > _MOST_FORWARDS:
                self._forward.clear()
            self._forward[_sequence() - 1] = (stack, self.module)

    def forward_of_current(self) -> tuple[int, str] | None:
        if not self._backwards:
            return None
        node = torch._C._current_autograd_node()
        if node is None:
            return None
        number = node._sequence_nr()
        if self.calls is not None:
            self.calls.backward_reaches(number)
        return self._forward.get(number)

    @property
    def in_backward(self) -> bool:
        return self._backwards > 0

    def around_backward(self, run):
        @functools.wraps(run)
        def faultline(*args, **kwargs):
            first = self.before_first_backward is not None
            if first and not torch._C._are_functorch_transforms_active():
                prepare, self.before_first_backward = self.before_first_backward, None
                prepare()
            self.saw_backward = True
            self.updates.goes_on()
            self.phases.trains()
            if self.calls is not None:
                self.calls.backward_began()
            if self.on_backward is not None:
                self.on_backward(first)
            self._memory.stacks.enter_backward()
            self._memory.backward_streams = self._memory.streams
            self._backwards += 1
            try:
                return run(*args, **kwargs)
            except RuntimeError:
                if self._backwards == 1:  # PyTorch reports the error before the GPU's thread has dropped the pass
                    empty_backward(0)
                raise
            finally:
                self._backwards -= 1
                self._memory.stacks.leave_backward()
                self.updates.backward_ran()

        return faultline

    # --- steps

    def optimizes(self, given) -> None:
        """What an optimizer holds is a parameter, whether or not a module has it."""
        for tensor in given:
            is_plain = tensor.is_cuda and tensor.layout is torch.strided
            record = self._memory.find(tensor) if is_plain else None
            if record is not None and record.allocation and record.allocation not in self._optimized:
                self._optimized.add(record.allocation)
                number = self._memory.device.tensor(tuple(tensor.size()), dtype_name(tensor.dtype), "parameter")
                self._memory.device.tensor_note(record.allocation, number, 0)

    @unharmed
    def step(self, optimizer, _args=None, _kwargs=None) -> None:
        notice_deaths()
        self.optimizes(p for group in getattr(optimizer, "param_groups", ()) for p in group["params"])
        self.phases.trains(stepped=True)
        if self.before_step is not None:
            self.before_step(optimizer)
        if self._ends_round(optimizer):
            self._ended(type(optimizer).__name__)

    def updated(self) -> None:
        """A step that no optimizer of PyTorch made (updates.py)."""
        notice_deaths()
        self.phases.trains(stepped=True)
        self._ended("by hand")

    def _ended(self, by: str) -> None:
        self._memory.device.step_mark(self.steps, f"Optimizer.step#{by}.step")
        self.steps += 1
        if self.on_round is not None:
            self.on_round()
        if self.on_step is not None:
            self.on_step()

    @property
    def optimizers(self) -> int:
        """How many take part in a step."""
        return len(self._stepped)

    def _ends_round(self, optimizer) -> bool:
        """Where several optimizers take turns (a GAN, an actor and a critic, one for each layer) a step is from one of the first to its next: one round of all. One that steps twice
        meanwhile takes its place."""
        groups = getattr(optimizer, "param_groups", None) or [{}]
        key = id(next(iter(groups[0].get("params") or ()), optimizer))
        self._stepped[key] = self._stepped.get(key, 0) + 1
        self._mark_turn(key)
        if not self._leader or key == self._leader or self._stepped[key] > 1:
            self._leader = key
            self._stepped = dict.fromkeys(self._stepped, 0)
            return True
        return False

    def _mark_turn(self, key: int) -> None:
        """Between which of them something happened is read in src/plan/verdict.cpp."""
        turn = self.turns.setdefault(key, [len(self.turns), 0])
        turn[1] += 1
        if turn[1] * len(self.turns) <= _MOST_TURNS:
            self._memory.device.mark(f"{marks.TURN}{turn[0]}", self._memory.stacks.here())

    # --- failures

    def has_failed(self, problem: BaseException) -> bool:
        """Is it an operation's own error?"""
        return hasattr(problem, _TOLD)

    def failed_operation(self, op: str, operands, problem: Exception, arguments: list[str]) -> None:
        """arguments: what the operation calls each of its operands."""
        if hasattr(problem, _TOLD):
            return  # already told, further in
        if any(not self.read_sizes.isdisjoint((size, size - 1)) for operand in operands for size in operand.size()):
            return  # maybe for a size that was made of a stand-in (n, or a last place + 1): of that nothing is proved
        setattr(problem, _TOLD, True)  # to keep the error would keep its frames, and what they hold
        device, stacks = self._memory.device, self._memory.stacks
        here = stacks.here()
        self._failures += 1
        names = names_of(operands, self._paths) if self._failures <= _MOST_NAMED else [("", "")] * len(operands)
        device.op_begin(op, here)
        for operand, argument, (kind, name) in list(zip(operands, arguments, names))[:16]:
            if operand.layout is not torch.strided or operand.is_nested:
                continue
            record = self._memory.find(operand) if operand.is_cuda else None
            number = device.tensor(tuple(operand.size()), dtype_name(operand.dtype), kind, name, argument)
            stack = (
                record.stack
                if record is not None
                else self.host.made.get(storage_id(operand), 0)
                if self.host is not None
                else 0
            )
            device.tensor_note(record.allocation if record is not None else 0, number, stack)
        device.op_end(str(problem), True, here)

    # --- pinned host memory

    def pinned(self, tensor: torch.Tensor) -> torch.Tensor:
        size_bytes = tensor.untyped_storage().nbytes()
        if size_bytes == 0 or storage_id(tensor) in self._pins:
            return tensor
        device = self._memory.device
        key = storage_id(tensor)
        allocation = device.pin(
            size_bytes,
            self._memory.stacks.here(),
            device.tensor(tuple(tensor.size()), dtype_name(tensor.dtype), "pin_memory"),
        )

        def unpin(_, key=key, allocation=allocation):
            self._pins.pop(key, None)
            if not self._memory.closed:
                device.unpin(allocation, self._memory.stacks.here())

        self._pins[key] = StorageRef(tensor.untyped_storage(), unpin)
        return tensor

    def is_pinned(self, tensor: torch.Tensor) -> bool:
        return storage_id(tensor) in self._pins
