"""What an optimizer keeps and takes: steps without foreach, gradients set to None, states in 8 bits, paged, or on the CPU with the gradients."""

from __future__ import annotations

import ast

import torch

from ...remedies.remedy import Offer, Remedy
from ...source.edits import Edit, Span, Statement, all_or_none, name_called, spans_edit
from .switches import switch

_SMALLEST_IN_8_BITS = 4096  # elements; bitsandbytes keeps smaller states in 32 bits
_SMALLEST_PAGED = 100_000
_BLOCK = 256  # elements with one scale


class SetToNone(Remedy):
    name = "set_to_none"

    def offers(self):
        if "set_to_none=False" in self.seen.uses:
            yield Offer(
                "true",
                "zero_grad(set_to_none=True)",
                "Call optimizer.zero_grad(set_to_none=True)",
                keeps={"running": 0.95},
                edits=all_or_none([_to_none(place) for place in self.seen.zeroed_at]),
            )

    def apply(self, value) -> None:
        zero_grad = torch.optim.Optimizer.zero_grad

        def faultline(this, set_to_none=True):
            if not set_to_none:
                self.done("zero_grad() set gradients to None")
            return zero_grad(this, True)

        torch.optim.Optimizer.zero_grad = faultline


class Foreach(Remedy):
    name = "foreach"

    def offers(self):
        if "foreach" not in self.seen.uses or not self.seen.trains():
            return
        yield Offer(
            "false",
            "foreach=False",
            "Make the optimizer with foreach=False",
            keeps={"running": self.seen.without_step()},
            edits=_constructor(self.seen, more="foreach=False"),
        )

    def apply(self, value) -> None:
        init = torch.optim.Optimizer.__init__

        def faultline(this, params, defaults):
            if not defaults.get("fused") and "foreach" in defaults and defaults["foreach"] is not False:
                defaults["foreach"] = False
                self.done(f"{type(this).__name__}(foreach=False)")
            init(this, params, defaults)

        torch.optim.Optimizer.__init__ = faultline


class States(Remedy):
    """The states of Adam and AdamW elsewhere. The step is one kernel for each parameter in bitsandbytes, without temporaries."""

    name = "states"

    def offers(self):
        seen = self.seen
        if not seen.trains() or not seen.optimizers or not all(_is_adam(o.kind) for o in seen.optimizers):
            return
        kind = seen.optimizers[-1].kind.__name__
        state, gradients = seen.lasting.get("optimizer", 0), seen.lasting.get("gradients", 0)
        if not state:
            return
        running = seen.without_step()
        words, edits = switch("8bit")
        yield Offer(
            "8bit",
            "8-bit optimizer states",
            words or f"Make the optimizer bitsandbytes.optim.{kind}8bit: its states in 8 bits",
            keeps={"optimizer": 0.25, "running": running},
            edits=edits or _constructor(seen, f"bitsandbytes.optim.{kind}8bit"),
        )
        yield Offer(
            "paged",
            "paged 8-bit optimizer states",
            f"Make the optimizer bitsandbytes.optim.Paged{kind}8bit: its states in 8 bits, in host memory (about {_gib(state / 4)}) where the GPU has no room",
            15,
            {"optimizer": 0.0, "running": running},
            edits=_constructor(seen, f"bitsandbytes.optim.Paged{kind}8bit"),
        )
        if seen.uses & {"clipping", "scaler"} or seen.backwards_in_step > 1:
            return  # gradients leave the GPU as soon as they are made
        yield Offer(
            "cpu",
            "optimizer and gradients on the CPU",
            f"Make the optimizer torchao.optim.CPUOffloadOptimizer(model.parameters(), torch.optim.{kind}, offload_gradients=True): states and gradients in host memory (about {_gib(state + gradients)}); steps take longer",
            40,
            {"optimizer": 0.0, "gradients": 0.0, "running": running},
            edits=_constructor(
                seen,
                "torchao.optim.CPUOffloadOptimizer",
                more=f"optimizer_class=torch.optim.{kind}, offload_gradients=True",
            ),
            excludes=("batch",),
        )

    def apply(self, value) -> None:
        for kind in (torch.optim.Adam, torch.optim.AdamW):
            if "step" in vars(kind):
                kind.step = self._step(value)
        if value == "cpu":
            init = torch.optim.Optimizer.__init__

            def faultline(this, params, defaults):
                init(this, params, defaults)
                if _is_adam(type(this)):
                    for group in this.param_groups:
                        for parameter in group["params"]:
                            if parameter.requires_grad:
                                parameter.register_post_accumulate_grad_hook(_drop_gradient)

            torch.optim.Optimizer.__init__ = faultline

    def _step(self, value: str):
        @torch.no_grad()
        def step(this, closure=None):
            loss = None
            if closure is not None:
                with torch.enable_grad():
                    loss = closure()
            self.done(
                {
                    "8bit": "states were kept in 8 bits",
                    "paged": "states were kept in 8 bits, off the GPU",
                    "cpu": "states and gradients were kept off the GPU",
                }[value]
            )
            for group in this.param_groups:
                for parameter in group["params"]:
                    if value == "cpu" or parameter.grad is None:
                        continue
                    if not this.state[parameter]:
                        this.state[parameter] = _states(parameter, value)
                    parameter.add_(parameter.grad, alpha=0.0)
            return loss

        return step


def _drop_gradient(parameter) -> None:
    parameter.grad = None


def _states(parameter, value: str) -> dict:
    """As bitsandbytes makes them."""
    if parameter.numel() < _SMALLEST_IN_8_BITS:
        return {
            name: torch.zeros_like(parameter, dtype=torch.float32, memory_format=torch.preserve_format)
            for name in ("state1", "state2")
        }
    blocks = -(-parameter.numel() // _BLOCK)
    state = {f"absmax{n}": torch.zeros(blocks, dtype=torch.float32, device=parameter.device) for n in (1, 2)}
    if value == "8bit" or parameter.numel() < _SMALLEST_PAGED:
        state |= {f"state{n}": torch.zeros_like(parameter, dtype=torch.uint8) for n in (1, 2)}
    return state


def _is_adam(kind: type) -> bool:
    return kind in (torch.optim.Adam, torch.optim.AdamW)


def _constructor(seen, function: str | None = None, more: str = ""):
    """The line that makes the optimizer, with another class or one more argument."""
    if len(seen.optimizers) != 1:
        return []
    statement = Statement(seen.optimizers[0].place)
    name = seen.optimizers[0].kind.__name__
    calls = [
        call
        for call in statement.calls()
        if (getattr(call.func, "attr", None) or getattr(call.func, "id", None)) == name
    ]
    return statement.with_call(calls[0], function, more) if len(calls) == 1 else []


def _to_none(place: str) -> list[Edit]:
    """zero_grad(set_to_none=False) with True."""
    statement = Statement(place)
    spans = [
        Span.of(word.value, "True")
        for call in statement.calls()
        for word in call.keywords
        if name_called(call) == "zero_grad" and word.arg == "set_to_none" and isinstance(word.value, ast.Constant)
    ]
    return (
        spans_edit(statement.file, statement.node.lineno, statement.node.end_lineno, spans) if len(spans) == 1 else []
    )


def _gib(size_bytes: float) -> str:
    from ..tensors.memory import gib

    return gib(int(size_bytes))
