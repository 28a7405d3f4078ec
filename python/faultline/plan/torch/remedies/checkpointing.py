"""Activation checkpointing of repeated layers: all of them, or every nth."""

from __future__ import annotations

import ast
import inspect

import torch

from ...remedies.remedy import Offer, Remedy
from ...source.edits import Statement, name_called
from .seen import layers_of
from .switches import switch


class Checkpoint(Remedy):
    name = "checkpoint"

    def __init__(self, session, seen):
        super().__init__(session, seen)
        self._share = 0.0
        self._wrapped: set[int] = set()
        self._words: list[str] = []

    def offers(self):
        if not self.seen.trains() or "checkpoint" in self.seen.uses:
            return
        lists = self.seen.layers()
        if not lists:
            return
        model, largest = max(lists, key=lambda one: one[1].count)
        count = largest.count
        for more_cost, part in enumerate((4, 2, 1)):
            if count < 2 * part:
                continue
            chosen = "all" if part == 1 else f"every {'second' if part == 2 else '4th'}"
            words, edits = self._what(model, chosen)
            if words and part != 1:
                continue  # a switch is for all
            yield Offer(
                f"1/{part}",
                f"checkpointing of {chosen} of the repeated layers" if part > 1 else "checkpointing of all layers",
                words or "Wrap the repeated layers in torch.utils.checkpoint.checkpoint(…, use_reentrant=False)"
                if part == 1
                else f"Wrap {chosen} of the repeated layers in torch.utils.checkpoint.checkpoint(…, use_reentrant=False)",
                more_cost,
                {"running": 0.3},
                dose=1 / part,
                edits=edits or self._edits(model, largest) if part == 1 else [],
            )

    def _what(self, model, chosen: str) -> tuple[str, list]:
        """As its user would do it: by the switch of the library that trains, by the method of a model of transformers, or by hand."""
        words, edits = switch("checkpoint")
        if words and model.is_transformers:
            return words, edits
        if model.is_transformers:
            return (
                'Turn on checkpointing and turn off the cache: model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False}); model.config.use_cache = False',
                self._method(model),
            )
        return "", []

    def _method(self, model) -> list:
        statement = Statement(model.moved)
        moves = any(name_called(call) in ("to", "cuda", "from_pretrained") for call in statement.calls())
        name = statement.moved_name() if moves else ""
        return (
            statement.after(
                f'{name}.gradient_checkpointing_enable(gradient_checkpointing_kwargs={{"use_reentrant": False}})',
                f"{name}.config.use_cache = False",
            )
            if name
            else []
        )

    def _edits(self, model, layers):
        """In a forward of the program's own the call of the layer is said anew."""
        statement = Statement(_loop_call(layers.owner, layers.path.rpartition(".")[2]))
        calls = [call for call in statement.calls() if call.args and isinstance(call.func, ast.Name)]
        if len(calls) != 1:
            return []
        return statement.with_call(
            calls[0], "torch.utils.checkpoint.checkpoint", first=calls[0].func.id, more="use_reentrant=False"
        )

    def apply(self, value) -> None:
        self._share = 1.0 if value is True else 1 / int(str(value).partition("/")[2] or 1)

    def model_found(self, root) -> None:
        _without_cache(root)
        for root, path, _container, layers in layers_of(root, self._wrapped):
            chosen = [
                layer
                for index, layer in enumerate(layers)
                if int((index + 1) * self._share + 1e-9) > int(index * self._share + 1e-9)
            ]
            for layer in chosen:
                self._recompute(layer)
            if chosen:
                many = f"{len(chosen)} of {len(layers)}" if len(chosen) < len(layers) else str(len(layers))
                self._words.append(
                    f"{many} × {type(layers[0]).__name__} in {type(root).__name__}{'.' + path if path else ''}"
                )
        if self._words:
            self.done("; ".join(self._words))

    def _recompute(self, layer) -> None:
        forward, checkpoint = layer.forward, self.seen.checkpoint

        def faultline(*args, **kwargs):
            if not torch.is_grad_enabled() or not layer.training:
                return forward(*args, **kwargs)
            return checkpoint(forward, *args, use_reentrant=False, **kwargs)

        layer.forward = faultline


def _without_cache(root) -> None:
    """A cache of keys and values of each layer is kept through the forward pass, and is of no use in training. Those of transformers switch it off with their own switch, too."""
    for module in root.modules():
        config = getattr(module, "config", None)
        if hasattr(module, "gradient_checkpointing_enable") and getattr(config, "use_cache", False):
            config.use_cache = False


def _loop_call(owner: type, attribute: str) -> str:
    """The line in a class's forward where a loop over self.attribute calls what it goes over."""
    try:
        lines, first = inspect.getsourcelines(owner.forward)
        tree = ast.parse(inspect.cleandoc("\n" + "".join(lines)))
        file = owner.forward.__code__.co_filename
    except (OSError, TypeError, SyntaxError, AttributeError):
        return ""
    for loop in ast.walk(tree):
        if not isinstance(loop, ast.For) or not any(
            isinstance(node, ast.Attribute) and node.attr == attribute for node in ast.walk(loop.iter)
        ):
            continue
        names = {node.id for node in ast.walk(loop.target) if isinstance(node, ast.Name)}
        for node in ast.walk(loop):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in names:
                return f"{file}:{first + node.lineno - 1}"
    return ""
