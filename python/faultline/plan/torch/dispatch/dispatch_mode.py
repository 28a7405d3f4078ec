"""The dispatch mode of a dry run: answers every operation on the planned GPU without running a kernel.

For each ATen operation below autograd it asks PyTorch's meta kernels what the result looks like (and remembers the answer for the next time), makes
the result's tensors without bytes, and tells the device which blocks a GPU would take and return, in the order in which the real kernel does.
Operations on the host run as they are, except that large tensors of random numbers are never filled (host_tensors.py).
"""

from __future__ import annotations

import functools
import time

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_unflatten

from ...session.notes import Notes
from ...session.unplannable import Unplannable
from ...source.loop_ends import LoopEnds
from ..cuda.random_state import check_generator
from ..hooks.legacy_tensor_types import moves_what_it_makes
from ..kernels import temporaries
from ..operations import missing_shapes, operations
from ..operations.outcome import Outcome, flatten, replace_tensors
from ..program.program_names import argument_names
from ..ranks import functional_collectives
from ..release import releases
from ..release.older_torch import OutOfMemoryError, fake_mode
from ..tensors import kv_cache, layouts, loose_sizes, places, tensors
from ..tensors.memory import Memory
from ..tensors.naming import dtype_name, op_name, operands_text
from ..tensors.tensors import META
from ..values import indices
from ..values.follow_values import ValueFollower
from ..values.values import Values
from . import (
    custom_operations,
    sparse_tensors,
    special_operations,  # noqa: F401 (its handlers, and those of the next two)
    transfers,  # noqa: F401
    value_sized_results,  # noqa: F401
)
from .host_tensors import HostTensors

Tensor = torch.Tensor
_CUDNN_CHOOSES = ("aten::convolution", "aten::convolution_backward", "aten::_cudnn_rnn")
_NESTED = (torch.strided, getattr(torch, "jagged", None))
_MOVES = torch.ops.aten._to_copy.default
_ALIKE = (int, float, complex)  # 1, 1.0 and True are equal but mean different operations


def _check_layouts(func, args, kwargs, operands, on_gpu: bool) -> None:
    """Sparse and nested tensors have no one storage whose size could be followed."""
    if func in sparse_tensors.MAKES or func is _MOVES:
        return
    other = next((t for t in operands if t.layout is not torch.strided or t.is_nested), None)
    layout = kwargs.get("layout") if other is None else other.layout
    place = kwargs.get("device")
    to_gpu = place is not None and place.type == "cuda"
    if other is not None and (on_gpu or to_gpu) or on_gpu and layout not in (None, torch.strided):
        raise Unplannable(
            f"{'nested' if layout in _NESTED else 'sparse'} tensors on the GPU are not known to a dry run ({op_name(func)})"
        )


def _key_of(value):
    if isinstance(value, Tensor):
        return value.size(), value.stride(), value.storage_offset(), value.dtype, value.get_device()
    if isinstance(value, _ALIKE):
        return type(value), value
    if isinstance(value, (list, tuple)):
        return tuple(_key_of(v) for v in value)
    return value


@functools.lru_cache(maxsize=None)
def is_made_of_others(func) -> bool:
    """Has it only an implementation through other operations, for every device? (Some have that beside kernels of their own.)"""
    has = functools.partial(torch._C._dispatch_has_kernel_for_dispatch_key, func.name())
    return has("CompositeImplicitAutograd") and not has("Meta") and not has("CPU") and not has("CUDA")


@functools.lru_cache(maxsize=None)
def _is_wrapper(kind: type) -> bool:
    """Does it answer operations itself? (DTensor, jagged nested tensors, sparse ones here, subclasses of quantisation libraries.)"""
    own = next((base for base in kind.__mro__ if "__torch_dispatch__" in vars(base)), None)
    return (
        own not in (None, Tensor, Tensor.__base__, tensors.Maker)
        and vars(own)["__torch_dispatch__"] is not torch._C._disabled_torch_dispatch_impl
    )


@functools.lru_cache(maxsize=None)
def _handler(func):
    return operations.HANDLERS.get(func) or functional_collectives.handler(func)


class DryRunMode(TorchDispatchMode):
    def __init__(self, memory: Memory, values: Values, notes: Notes, gpus, progress, told_operations=None):
        super().__init__()
        self.told_operations = told_operations or {}
        self.memory, self.values, self.notes, self.gpus, self.progress = memory, values, notes, gpus, progress
        self.follower = ValueFollower(memory, values)
        self.loop_ends = LoopEnds(notes, self.looks)
        self.host = HostTensors(self)
        sparse_tensors.install(self)
        self.kv_cache = kv_cache.KvCache(memory, progress)
        self._outcomes: dict = {}
        self.made_by: tuple[str, str] | None = (
            None  # what PyTorch makes of several operations: its name, and what it was given
        )
        self.operations = self.operations_on_gpu = 0
        self.deadline: float | None = None
        self.on_deadline = None
        self.on_gpu_after_fork = None

    @classmethod
    def _should_skip_dynamo(cls):
        return False

    @property
    def gpu(self):
        """The one on which the operation runs."""
        return self.gpus[places.here()]

    def looks(self) -> int:
        """How many kinds of results were seen: one more is an operation on other sizes, or another operation."""
        return len(self._outcomes)

    # --- the way of one operation

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if fake_mode() is not None:  # PyTorch looks at the program by itself (torch.export, masks of flex_attention)
            return func(*args, **kwargs)
        if types and any(map(_is_wrapper, types)):  # made of others (DTensor): they come here by themselves
            return NotImplemented
        self.operations += 1
        moves_what_it_makes()  # autograd's threads come here, too
        if self.deadline is not None and not self.operations & 255 and time.monotonic() > self.deadline:
            self.deadline = None
            self.on_deadline()
        operands = flatten(args, kwargs)
        place = kwargs.get("device")
        on_gpu = place is not None and place.type == "cuda"
        for operand in operands:
            if operand.is_cuda:
                on_gpu = True
                break
        self.operations_on_gpu += on_gpu
        if on_gpu and self.on_gpu_after_fork is not None:
            self.on_gpu_after_fork()
        if on_gpu and places.count > 1:
            with places.running(places.of_operation(place, operands)):
                return self._answer(func, args, kwargs, operands, on_gpu)
        if on_gpu and place is not None and place.index:
            places.check(place.index)
        return self._answer(func, args, kwargs, operands, on_gpu)

    def _answer(self, func, args, kwargs, operands, on_gpu: bool):
        try:
            _check_layouts(func, args, kwargs, operands, on_gpu)
            if not on_gpu:
                check_generator(kwargs, "cpu", operands)
                return self.host.run(func, args, kwargs, operands)
            place = kwargs.get("device")
            if place is not None and place.type != "cuda" and func in operations.LIKES:
                args, _ = replace_tensors(args, {}, lambda t: tensors.on_meta(t) if t.is_cuda else t)
                return self.host.run(func, args, kwargs, flatten(args, kwargs))
            if func in kv_cache.WRITES:
                self.kv_cache.wrote(operands[0], func is kv_cache.COPIES)
            handler = _handler(func)
            if handler is not None:
                result = handler(self, func, args, kwargs)
                if result is not NotImplemented:
                    return result
            if is_made_of_others(func):  # seen whole only in inference mode; its parts come back here one by one
                with self:
                    # PyTorch's own code: what it has in Python for some may copy where that does not (dropout of an evaluation)
                    return func._op_dk(torch._C.DispatchKey.CompositeImplicitAutograd, *args, **kwargs)
            if custom_operations.is_foreign(func):
                result = custom_operations.answer(self, func, args, kwargs, operands)
                if result is not NotImplemented:
                    return result
            return self.run(func, args, kwargs, operands)
        except (OutOfMemoryError, Unplannable):
            raise
        except NotImplementedError as problem:
            if "backend" not in str(problem):
                raise
            raise Unplannable(f"{op_name(func)} on the GPU is not known to a dry run") from None
        except (RuntimeError, IndexError, TypeError, ValueError) as problem:
            operations.check_blame(func, args, kwargs, problem)
            loose_sizes.check(self.memory, op_name(func), operands, problem)
            self.progress.failed_operation(op_name(func), operands, problem, argument_names(func, args, kwargs))
            raise

    def run(self, func, args, kwargs, operands=None, values=True):
        operands = flatten(args, kwargs) if operands is None else operands
        self._check_devices(func, operands)
        check_generator(kwargs, "cuda")
        self._check_operands(func, args)
        outcome = self.outcome(func, args, kwargs, operands)
        if func in indices.CHECKED:
            indices.check(self, func, args, kwargs)
        self.memory.loose = loose_sizes.of(self.memory, func, args, operands)
        try:
            result, fresh = self._realize(func, outcome, operands)
        finally:
            self.memory.loose = None
        for index, size, stride, offset, grows in outcome.changed:
            self._change(operands[index], size, stride, offset, grows)
        if outcome.mutated:
            written = [operands[index] for index in outcome.mutated]
            if outcome.op.startswith("aten::_foreach_"):
                tensors.count_as_changed(written)
            if self.progress.updates.watches:
                self.progress.updates.wrote(written)
        if func is kv_cache.GROWS:
            self.kv_cache.grew(operands, fresh)
        if values:
            self.follower.follow(func, args, kwargs, operands, outcome, fresh)
        return result

    def _check_devices(self, func, operands) -> None:
        if func in operations.MIXES_DEVICES or custom_operations.is_foreign(func):
            return
        if places.count > 1 and len(found := {operand.get_device() for operand in operands if operand.is_cuda}) > 1:
            raise RuntimeError(
                f"Expected all tensors to be on the same device, but found at least two devices, {' and '.join(f'cuda:{index}' for index in sorted(found)[:2])}! "
                f"(operands of {op_name(func)}: {operands_text(operands)})"
            )
        for operand in operands:
            if not operand.is_cuda and operand.dim() > 0 and operand.device.type != "meta" and not operand.is_sparse:
                raise RuntimeError(
                    f"Expected all tensors to be on the same device, but found at least two devices, {places.device()} and cpu! "
                    f"(operands of {op_name(func)}: {operands_text(operands)})"
                )

    def _check_operands(self, func, args) -> None:
        """Kernels refuse operands of different types where meta kernels do not look."""
        positions = operations.SAME_TYPE.get(func)
        if positions is None:
            return
        given = [args[p] for p in positions if p < len(args) and isinstance(args[p], Tensor)]
        if any(t.dtype is not given[0].dtype for t in given):
            raise RuntimeError(operations.type_problem(func, given))

    # --- what comes out

    def outcome(self, func, args, kwargs, operands) -> Outcome:
        try:
            key = (
                func,
                places.here(),
                _key_of(args),
                tuple((k, _key_of(v)) for k, v in kwargs.items()) if kwargs else (),
            )
            known = self._outcomes.get(key)
        except TypeError:  # something unhashable, a generator
            key, known = None, None
        if known is not None:
            return known
        outcome = self._ask(func, args, kwargs, operands)
        outcome.op = op_name(func)
        outcome.operands = operands_text(operands)
        self._add_memory(func, args, kwargs, outcome)
        if key is not None:
            self._outcomes[key] = outcome
        return outcome

    def _ask(self, func, args, kwargs, operands) -> Outcome:
        metas: list[Tensor] = []

        def swap(tensor):
            metas.append(
                tensors.on_meta(tensor, func in operations.REACHES_BEYOND)
                if tensor.is_cuda or tensor.dim() > 0
                else tensor
            )
            return metas[-1]

        meta_args, meta_kwargs = replace_tensors(args, kwargs, swap)
        if "device" in meta_kwargs:
            meta_kwargs["device"] = META
        for name in ("generator", "pin_memory"):
            if meta_kwargs.get(name) is not None:
                meta_kwargs[name] = None
        try:
            result = missing_shapes.RULES.get(func, func)(*meta_args, **meta_kwargs)
        except NotImplementedError as problem:
            result = self._decomposed(func, meta_args, meta_kwargs, problem)
        except (RuntimeError, IndexError, ValueError) as problem:
            raise operations.refusal(func, args, kwargs, problem) from None
        outcome = self._describe(func, result, metas, operands, operations.written(func, args, kwargs))
        layouts.keep_format(func, args, outcome.leaves)
        outcome.order = layouts.allocation_order(func, len(outcome.leaves))
        return outcome

    def _decomposed(self, func, args, kwargs, problem):
        """The look of a result where an operation has no meta kernel: from PyTorch's own decompositions, or from the host's kernel."""
        from torch._decomp import decomposition_table

        rule = (
            decomposition_table.get(func)
            or missing_shapes.returns_what_it_writes(func)
            or missing_shapes.of_each(func)
            or missing_shapes.from_host(func, args, kwargs)
        )
        if rule is None:
            raise custom_operations.unknown(func) from problem
        return rule(*args, **kwargs)

    def _describe(self, func, result, metas, operands, writes) -> Outcome:
        storages = {}
        for index, meta in enumerate(metas):
            if meta.device.type == "meta":
                storages.setdefault(meta.untyped_storage()._cdata, index)
        leaves = []

        def leaf(value):
            if not isinstance(value, Tensor):
                leaves.append(("value", value))
                return
            if value.layout is not torch.strided:
                raise Unplannable(f"sparse tensors on the GPU are not known to a dry run ({op_name(func)})")
            for index, meta in enumerate(metas):
                if meta is value:
                    leaves.append(("same", index))
                    return
            index = storages.get(value.untyped_storage()._cdata) if value.device.type == "meta" else None
            if index is not None and operands[index].is_cuda:
                leaves.append(("view", index, value.size(), value.stride(), value.storage_offset(), value.dtype))
            else:
                leaves.append(("new", value.size(), value.stride(), value.dtype, value.untyped_storage().nbytes()))

        parts, shape = tree_flatten(result) if isinstance(result, (list, tuple)) else ([result], None)
        for part in parts:
            leaf(part)
        changed, mutated = [], []
        if writes:
            mutated = [index for index in writes if operands[index].is_cuda]
            for index in mutated:
                meta, operand = metas[index], operands[index]
                if (
                    meta.size() != operand.size()
                    or meta.stride() != operand.stride()
                    or meta.storage_offset() != operand.storage_offset()
                ):
                    grows = (
                        meta.untyped_storage().nbytes()
                        if meta.untyped_storage().nbytes() > operand.untyped_storage().nbytes()
                        else 0
                    )
                    changed.append((index, meta.size(), meta.stride(), meta.storage_offset(), grows))
        return Outcome(leaves, shape, changed, mutated)

    def _add_memory(self, func, args, kwargs, outcome: Outcome) -> None:
        """What the real kernel takes beside the result. A mistake in these models must not end the program."""
        args, kwargs = replace_tensors(args, kwargs, lambda t: tensors.on_meta(t) if t.is_cuda else t)
        try:
            for index, size_bytes in (temporaries.extra_outputs(func, args, kwargs, self.gpu) or {}).items():
                leaf = outcome.leaves[index]
                if leaf[0] == "new" and size_bytes == 0:  # not on the GPU after all
                    outcome.leaves[index] = ("unseen", *leaf[1:])
                elif leaf[0] == "new":
                    outcome.leaves[index] = (
                        "new",
                        torch.Size((size_bytes // leaf[3].itemsize,)),
                        (1,),
                        leaf[3],
                        size_bytes,
                    )
            for index, size_bytes in (temporaries.kept_storage(func, args, kwargs, self.gpu) or {}).items():
                leaf = outcome.leaves[index]
                if leaf[0] == "new":
                    outcome.leaves[index] = (*leaf[:4], size_bytes)
            looks = [
                torch.empty_strided(leaf[1], leaf[2], dtype=leaf[3], device=META)
                for leaf in outcome.leaves
                if leaf[0] == "new"
            ]
            outcome.steps = temporaries.steps(func, args, kwargs, looks, self.gpu)
            outcome.workspaces = temporaries.persistent(func, args, kwargs, self.gpu)
            if func._schema.name in _CUDNN_CHOOSES and releases.now().cudnn < 90000:
                self.notes.add(
                    "kernel",
                    "what cuDNN 8 takes for convolutions and recurrent layers was not measured: as much as cuDNN 9",
                    line="",
                )
        except Exception as problem:
            self.notes.add(
                "kernel",
                f"what {op_name(func)} takes beside its result is not known here ({type(problem).__name__}: {problem})",
                group=op_name(func),
            )

    # --- making it

    def _realize(self, func, outcome: Outcome, operands):
        fresh: list[Tensor] = []
        result: list = []
        if outcome.steps is None and not outcome.workspaces:
            self._make_leaves(outcome, operands, result, fresh, -1)
        else:
            stack = self.memory.stacks.here()

            def make():
                self._make_leaves(outcome, operands, result, fresh, stack)

            self.take_steps(outcome.steps or [temporaries.OUT], make, stack, outcome)
        if outcome.shape is None:
            return result[0], fresh
        return tree_unflatten(result, outcome.shape), fresh

    def take_steps(self, steps, make, stack: int, outcome: Outcome) -> None:
        """The blocks that a kernel takes and returns, in its order; make() is called where it allocates its results."""
        memory = self.memory
        note = memory.device.tensor((), "uint8", op=outcome.op, name=self.progress.module, operands=outcome.operands)
        taken: list[int] = []
        try:
            for step in steps:
                if step == temporaries.OUT:
                    make()
                elif step > 0:
                    taken.append(memory.take(step, stack, note)[0])
                elif step == 0:
                    memory.may_take(step, stack)
                else:
                    memory.device.free(taken[-step - 1], stack)
                    taken[-step - 1] = 0
            for key, size_bytes in (
                outcome.workspaces or ()
            ):  # with the library's handle, which is asked for when the operands lie as it reads them
                memory.workspace(key, size_bytes, stack, memory.device.tensor((size_bytes,), "uint8", op=str(key)))
        finally:
            for allocation in reversed(taken):
                if allocation:
                    memory.device.free(allocation, stack)

    def _make_leaves(self, outcome, operands, result, fresh, stack) -> None:
        made: dict[int, Tensor] = {}
        for index in outcome.order or range(len(outcome.leaves)):
            leaf = outcome.leaves[index]
            if leaf[0] == "new":
                made[index] = tensors.make(*leaf[1:5])
                stack = self._born(made[index], outcome, stack)
        for index, leaf in enumerate(outcome.leaves):
            kind = leaf[0]
            if kind == "new":
                fresh.append(made[index])
                result.append(made[index])
            elif kind == "view":
                base = operands[leaf[1]]
                result.append(
                    tensors.alias(base, leaf[2], leaf[3], leaf[4])
                    if leaf[5] is base.dtype
                    else self._reinterpreted(base, leaf)
                )
            elif kind == "same":
                result.append(operands[leaf[1]])
            elif kind == "unseen":
                result.append(tensors.make(*leaf[1:5]))
            else:
                result.append(leaf[1])

    def _born(self, tensor, outcome: Outcome, stack: int) -> int:
        memory, progress = self.memory, self.progress
        if stack < 0:
            stack = memory.stacks.here()
        forward = progress.forward_of_current()
        module = forward[1] if forward else progress.module
        op, operands = self.made_by or (outcome.op, outcome.operands)
        number = memory.device.tensor(tuple(tensor.size()), dtype_name(tensor.dtype), op, module, operands)
        try:
            record = memory.born(tensor, stack, number)
        except OutOfMemoryError:
            memory.device.tensor_note(0, number, forward[0] if forward else 0)
            raise
        if forward:
            memory.device.tensor_note(record.allocation, number, forward[0])
        else:
            progress.note_forward(stack)
        return stack

    def _reinterpreted(self, base, leaf):
        """The same bytes as another type (view_as_real, view(dtype)): a storage of its own for PyTorch, none for the GPU."""
        whole = tensors.make(leaf[2], leaf[3], leaf[5])
        self.memory.born(whole, 0, 0, keep=base.untyped_storage())
        return whole

    def _change(self, tensor, size, stride, offset, grows) -> None:
        if not grows:
            tensors.reshape_in_place(tensor, size, stride, offset)
            return
        other = tensors.make(size, stride, tensor.dtype, grows)
        self._born(other, Outcome((), None, (), ()), -1)
        tensors.replace(tensor, other)
