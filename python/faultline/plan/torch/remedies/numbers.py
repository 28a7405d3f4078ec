"""Numbers of the program: a smaller batch, accumulated to the same one; shorter sequences."""

from __future__ import annotations

import torch

from ...remedies.remedy import Offer, Remedy
from ...session.weak_by_id import WeakById
from ...source import names
from ...source.changed_source import MANY
from ...source.edits import all_or_none, number_edits
from .accumulating import accumulation_edits
from .switches import switch


def _everywhere(number: dict, numbers: list[dict], new) -> list:
    """The edits of all of its name that are larger than the new one: none is made larger (src/plan/dry_run.h, ProgramNumber)."""
    same = [n for n in numbers if n["name"] == number["name"] and n["value"] > new]
    return all_or_none([number_edits(n, new) for n in same])


def _first(numbers: list[dict], wanted: tuple) -> dict | None:
    for name in wanted:
        found = [n for n in numbers if n["name"] == name]
        if found:
            return max(found, key=lambda n: n["value"])
    return None


class _Number(Remedy):
    """value: "batch_size=4"; the source is changed before the program begins (await_torch.py)."""

    def _smaller(self, number: dict, most: int, divides: bool = False):
        value = number["value"] // 2
        while value >= 1 and most:
            while divides and number["value"] % value:
                value -= 1
            yield value, 1 - value / number["value"]
            value, most = value // 2, most - 1

    def _where(self, number: dict) -> str:
        from os.path import basename

        return f"{basename(number['file'])}:{number['line']}"


class Batch(_Number):
    """Where it trains, one that divides what the program has: several make the same batch."""

    name = "batch"

    def offers(self):
        number = _first(self.seen.numbers, names.BATCH)
        if number is None:
            return
        trained = self.session.beyond.training_batch
        number = next(
            (n for n in self.seen.numbers if n["name"] == number["name"] and n["value"] == trained), number
        )  # of several of the name the one that trains: what is accumulated makes that one
        for step, (value, dose) in enumerate(self._smaller(number, 8, divides=self.seen.trains())):
            many = number["value"] // value
            with_same = f", with gradients accumulated over {many} batches for the same {number['value']}"
            yield Offer(
                f"{number['name']}={value}",
                f"{number['name']} = {value}" + (f" accumulated {many} times" if self.seen.trains() else ""),
                f"Use {number['name']} = {value} ({self._where(number)}, now {number['value']})"
                + (with_same if self.seen.trains() else ""),
                step,
                {"running": 0.0},
                dose=dose,
                edits=self._edits(number, value),
                many=many if self.seen.trains() else 0,
            )

    def _edits(self, number: dict, value: int) -> list:
        """A smaller batch without the loop that accumulates it is another change."""
        edits = _everywhere(number, self.seen.numbers, value)
        if not self.seen.trains() or not edits:
            return edits
        place = self.seen.step_place
        loop = switch("accumulate", MANY, place)[1] or accumulation_edits(place, MANY, self.seen.have_length)
        return edits + loop if loop else []

    def apply(self, value) -> None:
        self.done(str(value))
        accumulate(self.seen)


class Accumulate(Remedy):
    """Gradients live on while the next batch is computed: every second time they are not cleared. What a step needs does not depend on how many batches
    come before it, from two on."""

    name = "accumulate"

    def apply(self, value) -> None:
        accumulate(self.seen)


class Sequence(_Number):
    name = "sequence"

    def _length(self) -> dict | None:
        """Of what is looked up; where nothing trains the largest of what a cache of keys and values grows with, or is made for."""
        if not self.seen.trains():
            told = [n for n in self.seen.numbers if n["name"] in (*names.GENERATED, *names.LENGTH)]
            if told:
                return max(told, key=lambda n: n["value"])
        lengths = (*names.LENGTH, *names.PERHAPS_LENGTH)
        numbers = [
            n
            for n in self.seen.numbers
            if n["name"] in lengths and any(abs(n["value"] - length) <= 1 for length in self.seen.token_lengths)
        ]
        return _first(numbers, lengths)

    def offers(self):
        number = self._length()
        if number is None or number["value"] < 32:
            return
        shorter = "fewer tokens" if number["name"] in names.GENERATED else "shorter sequences"
        for step, (value, dose) in enumerate(self._smaller(number, 3)):
            yield Offer(
                f"{number['name']}={value}",
                f"{number['name']} = {value}",
                f"Use {number['name']} = {value} ({self._where(number)}, now {number['value']}): {shorter}",
                10 * step,
                {"running": 0.0},
                dose=dose,
                edits=_everywhere(number, self.seen.numbers, value),
            )

    def apply(self, value) -> None:
        self.done(str(value))


def accumulate(seen) -> None:
    """Each optimizer and module for itself: of its calls that would clear gradients, those after every second batch do. A call with nothing to clear begins anew, so that two
    that clear the same (model.zero_grad() beside optimizer.zero_grad()) keep and clear together."""
    kept = WeakById()  # each with the number of backward passes when it first kept its gradients

    def around(zero_grad, parameters):
        def faultline(this, *args, **kwargs):
            if all(p.grad is None for p in parameters(this)):
                kept.pop(this)
            elif kept.setdefault(this, seen.passes) == seen.passes:
                seen.applied["accumulate"] = "gradients were kept for two batches"
                return None
            else:
                kept.pop(this)
            return zero_grad(this, *args, **kwargs)

        return faultline

    def of_optimizer(this):
        return (p for group in this.param_groups for p in group["params"])

    torch.optim.Optimizer.zero_grad = around(torch.optim.Optimizer.zero_grad, of_optimizer)
    torch.nn.Module.zero_grad = around(torch.nn.Module.zero_grad, torch.nn.Module.parameters)
