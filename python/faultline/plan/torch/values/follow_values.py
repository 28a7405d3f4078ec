"""What becomes of values when an operation has run: computed on the host where all operands are known and small, else a number that stands for them."""

from __future__ import annotations

import torch

from ...session.unplannable import Unplannable
from ..operations.operations import LIKES, only_written, overloads
from ..operations.outcome import replace_tensors
from ..program.unharmed import tell_left_out
from ..release.older_torch import OutOfMemoryError
from ..tensors.memory import Memory
from . import chosen, ranges, shares, stand_ins
from .values import Values

Tensor = torch.Tensor
_MOST_STAND_INS = 64
_EMPTY = set(overloads("empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided", "empty_permuted"))


class ValueFollower:
    def __init__(self, memory: Memory, values: Values):
        self.memory, self.values = memory, values

    def follow(self, func, args, kwargs, operands, outcome, fresh) -> None:
        try:
            self._all(func, args, kwargs, operands, outcome, fresh)
        except (OutOfMemoryError, Unplannable):
            raise
        except Exception as problem:  # the operation itself is done: only its values are not known then
            self._unknown(operands, outcome, fresh)
            tell_left_out(f"the values of {outcome.op}", problem)

    def _all(self, func, args, kwargs, operands, outcome, fresh) -> None:
        self._follow(func, args, kwargs, operands, outcome, fresh)
        if not self.values.everything and (fresh or outcome.mutated):
            ranges.follow(self.memory, self.values, func, args, operands, outcome, fresh)

    def _follow(self, func, args, kwargs, operands, outcome, fresh) -> None:
        values = self.values
        if not fresh and not outcome.mutated:
            return
        if not values.everything:
            self._choose_stand_ins(func, args, operands, outcome, fresh)
            shares.follow(self.memory, func, args, operands, fresh)
            chosen.follow(self.memory, func, args, operands, outcome, fresh)
            if (
                fresh
                and not any(t.numel() <= 1024 or values.worth_knowing(t.numel(), t.dtype) for t in fresh)
                and not outcome.mutated
            ):
                return
            if outcome.op.startswith("aten::_foreach") or outcome.op.startswith("aten::_fused"):
                self._unknown(operands, outcome, fresh)
                return
        self.compute(func, args, kwargs, operands, outcome, fresh)

    def _choose_stand_ins(self, func, args, operands, outcome, fresh) -> None:
        """For results whose values may turn out not to be known."""
        values = self.values
        given = tuple(
            values.stand_in(t) if t.is_cuda else t.item() if t.dim() == 0 else stand_ins.default(t.dtype)
            for t in operands
        )
        key = given if len(operands) != 2 or operands[0] is not operands[1] else (*given, "same")
        if key in outcome.stand_ins:
            value = outcome.stand_ins[key]
        elif len(outcome.stand_ins) < _MOST_STAND_INS:
            value = outcome.stand_ins[key] = stand_ins.of_result(func, args, given)
        else:  # a number that changes with every step: it is not followed for ever
            value = None
        for tensor in (*fresh, *(operands[index] for index in outcome.mutated)):
            record = self.memory.find(tensor)
            if record is None or tensor.numel() * tensor.dtype.itemsize < record.size_bytes:
                continue  # a part of something: what stands for the whole stays
            record.stand_in = (
                value
                if value is None or tensor.dtype.is_floating_point or isinstance(value, int) and abs(value) < 100
                else None
            )

    def compute(self, func, args, kwargs, operands, outcome, fresh) -> None:
        """The operation on the shadows, where all inputs have one."""
        values = self.values
        written_only = only_written(func)
        unknown = set()  # ids of hosts whose values are stand-ins
        unset = func in _EMPTY
        hosts = {}
        for index, operand in enumerate(operands):
            if not operand.is_cuda:
                hosts[index] = operand
                continue
            if func in LIKES:
                hosts[index] = torch.empty((), dtype=operand.dtype).expand(operand.size())
                continue
            host = values.view(operand)
            if host is None:
                if (
                    index in written_only
                    and self.values.worth_knowing(operand.numel(), operand.dtype)
                    and outcome.mutated
                ):
                    values.assume(operand)
                    host = values.view(operand)
                if host is None:
                    self._unknown(operands, outcome, fresh)
                    return
            elif index not in written_only:
                if values.is_assumed(operand):
                    unknown.add(id(host))
                record = self.memory.find(operand)
                unset = unset or index not in outcome.mutated and record is not None and record.unset
            hosts[index] = host
        if not values.everything and not all(values.worth_knowing(t.numel(), t.dtype) for t in fresh):
            self._unknown(operands, outcome, fresh)
            return
        order = iter(range(len(operands)))
        host_args, host_kwargs = replace_tensors(args, kwargs, lambda _t: hosts[next(order)])
        if "device" in host_kwargs:
            host_kwargs["device"] = torch.device("cpu")
        try:
            assumed = bool(unknown) and not stand_ins.is_decided(func, host_args, host_kwargs, unknown)
            result = func(*host_args, **host_kwargs)
        except Exception:
            if values.everything:
                raise
            self._unknown(operands, outcome, fresh)
            return
        if assumed and (func in stand_ins.EQUAL and args[0] is not args[1] or func in stand_ins.AMONG):
            result = torch.zeros_like(result)  # stand-ins are alike; that values are is not to be taken for granted
        elif assumed and func in stand_ins.NOT_EQUAL and args[0] is not args[1] and ranges.is_whole(args[0]):
            result = torch.ones_like(result)
        elif assumed and func in stand_ins.CHECKED:
            result = torch.ones_like(result)
        leaves = list(result) if isinstance(result, (list, tuple)) else [result]
        made = [leaf for leaf, look in zip(leaves, outcome.leaves) if look[0] == "new"]
        for tensor, host in zip(fresh, made):
            if isinstance(host, Tensor) and host.size() == tensor.size():
                values.know(tensor, host, assumed)
                if unset and (record := self.memory.find(tensor)) is not None:
                    record.unset = True
        for index in outcome.mutated:
            record = self.memory.find(operands[index])
            if record is not None:
                record.unset = unset
                whole = (
                    operands[index].numel() * operands[index].dtype.itemsize >= record.size_bytes
                )  # else the rest is as it was
                record.assumed = assumed or record.assumed and not (whole and (index in written_only or unknown))

    def _unknown(self, operands, outcome, fresh) -> None:
        for tensor in fresh:
            if tensor.numel() == 1 or (tensor.numel() <= 1024 and not outcome.op.startswith("aten::_foreach")):
                self.values.assume(tensor)
        for index in outcome.mutated:
            operand = operands[index]
            if operand.is_cuda:
                record = self.memory.find(operand)
                if record is not None and record.shadow is not None:
                    self.values.assume(operand)
