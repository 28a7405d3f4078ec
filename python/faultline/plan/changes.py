"""Changes to the program that a plan can try, as the user would make them: autocast around the model, checkpointing of its repeated layers, gradients set
to None, an optimizer without foreach. Each applies to the program as it runs; its files are not touched."""

from __future__ import annotations

import torch

from .older_torch import autocast_dtype


class Changes:
    def __init__(self, session):
        self._session = session
        self._wanted = session.options.get("changes") or {}
        self.applied: dict[str, str] = {}  # what was done, in words
        self.uses: set[str] = set()  # what the program does by itself
        self._checkpointed: set[int] = set()

    def install(self) -> None:
        self._watch_autocast()
        self._watch_checkpoint()
        self._around_optimizers()
        if self._wanted.get("no_grad"):
            self._no_grad()
        if self._wanted.get("autocast"):
            self._autocast(getattr(torch, self._wanted["autocast"]))

    # --- what the program does already

    def _watch_autocast(self) -> None:
        enter = torch.amp.autocast_mode.autocast.__enter__

        def faultline(context):
            if context.device == "cuda" and context._enabled and not getattr(context, "_faultline", False):
                self.uses.add("autocast")
            return enter(context)

        torch.amp.autocast_mode.autocast.__enter__ = faultline

    def _watch_checkpoint(self) -> None:
        import torch.utils.checkpoint as module

        original = self._checkpoint = module.checkpoint

        def checkpoint(*args, **kwargs):
            self.uses.add("checkpoint")
            return original(*args, **kwargs)

        module.checkpoint = checkpoint

    # --- what a plan may change

    def _autocast(self, dtype) -> None:
        progress = self._session.progress
        call = torch.nn.Module.__call__
        self.applied["autocast"] = f"the model was called under torch.autocast('cuda', dtype={dtype})"

        def faultline(module, *args, **kwargs):
            if progress.depth or autocast_dtype() is not None or isinstance(module, torch.nn.modules.loss._Loss):
                return call(module, *args, **kwargs)
            context = torch.autocast("cuda", dtype=dtype)
            context._faultline = True
            with context:
                return call(module, *args, **kwargs)

        torch.nn.Module.__call__ = faultline

    def _no_grad(self) -> None:
        progress = self._session.progress
        call = torch.nn.Module.__call__

        def faultline(module, *args, **kwargs):
            if progress.depth or not torch.is_grad_enabled():
                return call(module, *args, **kwargs)
            self.applied["no_grad"] = "the model was called under torch.no_grad()"
            with torch.no_grad():
                return call(module, *args, **kwargs)

        torch.nn.Module.__call__ = faultline

    def model_found(self, root) -> None:
        """Called once for each model, before it first runs."""
        if torch.is_grad_enabled():
            self.uses.add("graph")
        if not self._wanted.get("checkpoint"):
            return
        words = []
        for path, container in root.named_modules():
            layers = list(container.children())
            kinds = {type(layer) for layer in layers}
            if (
                not isinstance(container, (torch.nn.ModuleList, torch.nn.Sequential))
                or len(layers) < 2
                or len(kinds) != 1
                or not any(True for _ in layers[0].parameters())
            ):
                continue
            if (
                id(container) in self._checkpointed
                or next(iter(kinds)).__module__.startswith("torch.nn.modules")
                and not list(layers[0].children())
            ):
                continue
            self._checkpointed.update(id(inner) for inner in container.modules())
            for layer in layers:
                self._recompute(layer)
            words.append(
                f"{len(layers)} × {type(layers[0]).__name__} in {type(root).__name__}{'.' + path if path else ''}"
            )
        if words:
            self.applied["checkpoint"] = "; ".join(words)

    def _recompute(self, layer) -> None:
        forward, checkpoint = layer.forward, self._checkpoint

        def faultline(*args, **kwargs):
            if not torch.is_grad_enabled() or not layer.training:
                return forward(*args, **kwargs)
            return checkpoint(forward, *args, use_reentrant=False, **kwargs)

        layer.forward = faultline

    def _around_optimizers(self) -> None:
        optimizer = torch.optim.Optimizer
        zero_grad, init = optimizer.zero_grad, optimizer.__init__
        wanted = self._wanted

        def faultline_zero_grad(this, set_to_none=True):
            if not set_to_none:
                self.uses.add("set_to_none=False")
                if wanted.get("set_to_none"):
                    self.applied["set_to_none"] = "zero_grad() set gradients to None"
                    set_to_none = True
            return zero_grad(this, set_to_none)

        def faultline_init(this, params, defaults):
            if defaults.get("fused"):
                self.uses.add("fused")
            elif "foreach" in defaults and defaults["foreach"] is not False:
                self.uses.add("foreach")
                if wanted.get("foreach") is False:
                    defaults["foreach"] = False
                    self.applied["foreach"] = f"{type(this).__name__}(foreach=False)"
            init(this, params, defaults)

        optimizer.zero_grad, optimizer.__init__ = faultline_zero_grad, faultline_init
