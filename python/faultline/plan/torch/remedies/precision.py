"""Fewer bits: autocast, and the weights themselves."""

from __future__ import annotations

import torch

from ...remedies.remedy import Offer, Remedy
from ...source.edits import Statement
from ..release.older_torch import autocast_dtype
from ..tensors.kv_cache import short
from .switches import switch


class Autocast(Remedy):
    name = "autocast"

    def offers(self):
        if not self.seen.trains() or "autocast" in self.seen.uses or not self.seen.has_float32():
            return
        half = self.half_type()
        caution = (
            "; float16 also wants a GradScaler in training, which the dry run did not have" if half == "float16" else ""
        )
        words, edits = switch(f"autocast {half}")
        yield Offer(
            half,
            f"autocast in {half}",
            words
            or f'Call the model under torch.autocast("cuda", dtype=torch.{half}) (the model only, the loss outside{caution})',
            keeps={"running": 0.6},
            edits=edits or self.seen.calls_wrapped(f'with torch.autocast("cuda", dtype=torch.{half}):'),
            compute=8 if half == "bfloat16" else 0,
        )

    def apply(self, value) -> None:
        dtype = getattr(torch, value)
        progress = self.session.progress
        call = torch.nn.Module.__call__
        self.done(f"the model was called under torch.autocast('cuda', dtype={dtype})")

        def faultline(module, *args, **kwargs):
            if progress.depth or autocast_dtype() is not None or isinstance(module, torch.nn.modules.loss._Loss):
                return call(module, *args, **kwargs)
            context = torch.autocast("cuda", dtype=dtype)
            context._faultline = True
            with context:
                return call(module, *args, **kwargs)

        torch.nn.Module.__call__ = faultline


class HalfWeights(Remedy):
    """Parameters, and with them gradients, the optimizer's state, what is computed and what is cached, in 16 bits. Training wants bfloat16 for it; in float16
    only weights that are frozen."""

    name = "half"

    def offers(self):
        if not self.seen.has_float32():
            return
        half, trains = self.half_type(), self.seen.trains()
        frozen_only = trains and half == "float16"
        several = len(self.seen.models) > 1
        beside = "" if trains else ", what is computed and what is cached between calls"
        yield Offer(
            half,
            f"{'frozen ' if frozen_only else ''}weights in {half}",
            f"Make {'every model' if several else 'the model'} in {half}: "
            f"{'.to' if several else 'model.to'}(torch.{half}){' of each' if several else ''}, "
            f"{'their' if several else 'its'} floating-point inputs too"
            + (
                " (only with frozen weights, as adapters have them: training weights in float16 loses small updates)"
                if frozen_only
                else f" (parameters, gradients and the optimizer's state are then in {half}, which can cost accuracy)"
                if trains
                else f" (weights{beside} are then in {half})"
            ),
            60 if trains else 0,
            {"parameters": 0.5, "gradients": 0.5, "optimizer": 0.5, "running": 0.55},
            edits=[] if several or frozen_only else self._edits(half),
            wants="lora" if frozen_only else "",
            compute=8 if half == "bfloat16" else 0,
        )

    def install(self) -> None:
        """Of each model's calls: which positions are float32, and whether it is given plain tensors and numbers and gives one tensor."""
        seen = self.seen

        def after_call(module, inputs, output):
            model = next((model for model in seen.models if model.root() is module), None)
            if model is None:
                return
            floats = tuple(isinstance(one, torch.Tensor) and one.dtype is torch.float32 for one in inputs)
            plain = all(isinstance(one, (torch.Tensor, int, float, str, type(None))) for one in inputs)
            one = isinstance(output, torch.Tensor) and output.dtype is torch.float32
            model.given.add((floats, plain and one))

        torch.nn.modules.module.register_module_forward_hook(after_call)

    def _edits(self, half: str) -> list:
        """As the run with it has it: the model where it is put onto the GPU, and where it is called its input and, back in float32, its result. Only where that is one line."""
        model = self.seen.model()
        statement = Statement(model.moved)
        name = statement.moved_name()
        if not name or len(model.given) != 1:
            return []
        floats, is_plain = next(iter(model.given))
        call = statement.only_call_of(name) if is_plain else None
        called = call and call.as_edit([f".to(torch.{half})" if one else "" for one in floats], ".float()")
        return statement.after(f"{name} = {name}.to(torch.{half})") + called if called else []

    def apply(self, value) -> None:
        self._dtype = getattr(torch, value)
        module, remedy, progress = torch.nn.Module, self, self.session.progress
        to, cuda, call = module.to, module.cuda, module.__call__

        def faultline_to(this, *args, **kwargs):
            remedy._halve(this)
            return to(this, *args, **kwargs)

        def faultline_cuda(this, *args, **kwargs):
            remedy._halve(this)
            return cuda(this, *args, **kwargs)

        def faultline_call(this, *args, **kwargs):
            if progress.depth or progress.in_backward or not any(p.dtype is remedy._dtype for p in this.parameters()):
                return call(this, *args, **kwargs)
            out = call(this, *_cast(args, torch.float32, remedy._dtype), **_cast(kwargs, torch.float32, remedy._dtype))
            return _cast(out, remedy._dtype, torch.float32)

        def before_optimizer(_optimizer, params):
            for root in list(remedy.seen.modules):
                remedy._halve(root)
            return params

        module.to, module.cuda, module.__call__ = faultline_to, faultline_cuda, faultline_call
        self.seen.before_optimizer.insert(0, before_optimizer)

    def model_found(self, root) -> None:
        self._halve(root)

    def _halve(self, module) -> None:
        """Parameters stay the same objects: an optimizer may hold them."""
        with torch.no_grad():
            for tensor in (*module.parameters(), *module.buffers()):
                if tensor.dtype is torch.float32 and tensor.numel() and not getattr(tensor, "_faultline_own", False):
                    tensor.data = tensor.data.to(self._dtype)
                    self.done(f"parameters and buffers were made {self._dtype}")


class CacheInHalf(Remedy):
    """The cache of keys and values alone. What attention makes of it is counted as it was: computed in 16 bits it takes no more."""

    name = "kv_cache"

    def offers(self):
        found = self.session.mode.kv_cache.found
        if not found or self.seen.trains():
            return
        half = self.half_type()
        lines = sorted({short(place) for place in found})
        yield Offer(
            f"{half}@" + "|".join(sorted(found)),
            f"KV cache in {half}",
            f"Keep the KV cache in {half} (now float32, made at {', '.join(lines[:3])}): keys and values are cast where they "
            "are kept, and the queries where attention reads them",
            keeps={"running": 0.6},
            compute=8 if half == "bfloat16" else 0,
        )

    def apply(self, value) -> None:
        half, _, places = value.partition("@")
        self.session.mode.kv_cache.halve(set(places.split("|")), lambda: self.done(f"the KV cache was kept in {half}"))


def _cast(value, old: torch.dtype, new: torch.dtype):
    if isinstance(value, torch.Tensor):
        return value.to(new) if value.dtype is old and value.is_cuda else value
    if type(value) in (tuple, list):
        return type(value)(_cast(v, old, new) for v in value)
    if type(value) is dict:
        return {k: _cast(v, old, new) for k, v in value.items()}
    return value
