"""What the program does by itself: which models and optimizers it has and where, which remedies it uses already, what lasts from step to step."""

from __future__ import annotations

import contextlib
import weakref

import torch

from ....common.stacks import user_line
from ...session.weak_by_id import WeakById
from ...source.edits import Edit, Statement
from ..program.program_names import called_as
from ..program.unharmed import unharmed
from .accumulating import lengths_at

_MOST_PLACES, _MOST_EDITS = 64, 6


class Optimizer:
    """One as it was made."""

    def __init__(self, kind: type, place: str, parameters: list, modules):
        self.kind, self.place = kind, place
        trained = {id(p): p for p in parameters}
        self.elements = sum(p.numel() for p in trained.values())
        self.linears = [in_and_out(layer) for layer in linears_of(modules, trained)]


class Layers:
    """A list of equal layers in a model."""

    def __init__(self, path: str, count: int, kind: str, owner: type):
        self.path, self.count, self.kind, self.owner = path, count, kind, owner


class Model:
    """One as it was when it first ran. It is not kept: the program may let go of it."""

    def __init__(self, root, place: str, moved: str, called: str):
        self.root, self.place, self.moved = weakref.ref(root), place, moved
        self.called = called  # as the line that called it names it: net of self.net(x); empty: not known
        self.elements = sum(p.numel() for p in root.parameters())
        self.has_float32 = any(p.dtype is torch.float32 and p.is_cuda for p in root.parameters())
        self.given: set = set()  # by its calls, see precision.py
        self.is_transformers = hasattr(root, "gradient_checkpointing_enable")
        self.layers = [
            Layers(path, len(layers), type(layers[0]).__name__, type(root.get_submodule(path.rpartition(".")[0])))
            for _root, path, _container, layers in layers_of(root, set())
        ]


class Seen:
    def __init__(self, session):
        self._session = session
        self.applied: dict[str, str] = {}  # what was done, in words
        self.uses: set[str] = set()
        self.optimizers: list[Optimizer] = []
        self.models: list[Model] = []
        self.modules = WeakById()
        self.called_at: dict[tuple[str, str], None] = {}  # lines that call models, and what they call there
        self.moved: dict[int, str] = {}  # where a model was put onto the GPU
        self.lasting: dict[str, int] = {}
        self.numbers: list[dict] = []  # of the source, see numbers.py
        self.step_place = ""  # where the program calls optimizer.step()
        self.have_length: set[str] = set()  # of the loop around it, see accumulating.py
        self.token_lengths: set[int] = set()  # of what is looked up in embeddings, two dimensions each
        self.backwards_in_step = self._backwards = self.passes = 0
        self.zeroed_at: dict[str, None] = {}  # lines that set gradients to zero, and not to None
        self.before_optimizer = []  # asked for other parameters: function(optimizer, parameters) → parameters

    def install(self) -> None:
        self._watch_autocast()
        self._watch_checkpoint()
        self._watch_optimizers()
        self._watch_modules()
        self._watch_clipping()

    def trains(self) -> bool:
        return bool(self._session.progress.steps) or self._session.progress.saw_backward

    def roots(self) -> list:
        return [root for model in self.models if (root := model.root()) is not None]

    # --- models

    def model_found(self, root) -> None:
        with contextlib.suppress(Exception):
            self.models.append(Model(root, user_line(), self.moved.get(id(root), ""), called_as()))
            if not self._session.progress.steps:
                self.lasting["parameters"] = bytes_of(p for one in self.roots() for p in one.parameters())
        if torch.is_grad_enabled():
            self.uses.add("graph")

    def model_called(self, module) -> None:
        if not isinstance(module, torch.nn.modules.loss._Loss) and len(self.called_at) < _MOST_PLACES:
            self.called_at.setdefault((user_line(), called_as()))

    def calls_wrapped(self, header: str) -> list[Edit]:
        """Every call of a model in a block of its own; none of them where one cannot be shown."""
        edits = [Statement(place).call_wrapped(header, called) for place, called in self.called_at]
        whole = len(edits) <= _MOST_EDITS and all(edits)
        edits = [edit for some in edits for edit in some]
        return edits if whole and len({(edit.file, edit.line) for edit in edits}) == len(edits) else []

    def _watch_modules(self) -> None:
        module, seen = torch.nn.Module, self
        made = unharmed(self.modules.add)
        init, to, cuda, load = module.__init__, module.to, module.cuda, module.load_state_dict

        def faultline_init(this, *args, **kwargs):
            init(this, *args, **kwargs)
            made(this)

        def faultline_to(this, *args, **kwargs):
            seen.moved.setdefault(id(this), user_line())
            return to(this, *args, **kwargs)

        def faultline_cuda(this, *args, **kwargs):
            seen.moved.setdefault(id(this), user_line())
            return cuda(this, *args, **kwargs)

        def faultline_load(this, *args, **kwargs):
            seen.uses.add("loaded")
            return load(this, *args, **kwargs)

        module.__init__, module.to, module.cuda, module.load_state_dict = (
            faultline_init,
            faultline_to,
            faultline_cuda,
            faultline_load,
        )
        embedding = torch.nn.functional.embedding

        def faultline_embedding(input, *args, **kwargs):
            if input.dim() == 2:
                seen.token_lengths.add(input.size(1))
            return embedding(input, *args, **kwargs)

        torch.nn.functional.embedding = faultline_embedding

    def layers(self) -> list[tuple[Model, Layers]]:
        return [(model, layers) for model in self.models for layers in model.layers]

    def model(self) -> Model | None:
        """The largest that has run."""
        return max(self.models, key=lambda model: model.elements, default=None)

    def has_float32(self) -> bool:
        return any(model.has_float32 for model in self.models)

    # --- what it does already

    def _watch_autocast(self) -> None:
        enter = torch.amp.autocast_mode.autocast.__enter__

        def faultline(context):
            if context.device == "cuda" and context._enabled and not getattr(context, "_faultline", False):
                self.uses.add("autocast")
            return enter(context)

        torch.amp.autocast_mode.autocast.__enter__ = faultline
        scaler = getattr(torch.amp, "GradScaler", None) or torch.cuda.amp.GradScaler
        scale = scaler.scale

        def faultline_scale(this, outputs):
            if this.is_enabled():
                self.uses.add("scaler")
            return scale(this, outputs)

        scaler.scale = faultline_scale

    def _watch_checkpoint(self) -> None:
        import torch.utils.checkpoint as module

        original = self.checkpoint = module.checkpoint

        def checkpoint(*args, **kwargs):
            self.uses.add("checkpoint")
            return original(*args, **kwargs)

        module.checkpoint = checkpoint

    def _watch_clipping(self) -> None:
        clip = torch.nn.utils.clip_grad_norm_

        def clip_grad_norm_(*args, **kwargs):
            self.uses.add("clipping")
            return clip(*args, **kwargs)

        torch.nn.utils.clip_grad_norm_ = clip_grad_norm_

    def _watch_optimizers(self) -> None:
        optimizer = torch.optim.Optimizer
        zero_grad, init = optimizer.zero_grad, optimizer.__init__

        def faultline_zero_grad(this, set_to_none=True):
            if not set_to_none:
                self.uses.add("set_to_none=False")
                if len(self.zeroed_at) < _MOST_PLACES:
                    self.zeroed_at.setdefault(user_line() or "")
            return zero_grad(this, set_to_none)

        def faultline_init(this, params, defaults):
            if defaults.get("fused"):
                self.uses.add("fused")
            elif "foreach" in defaults and defaults["foreach"] is not False:
                self.uses.add("foreach")
            params = list(params)
            for change in self.before_optimizer:
                params = change(this, params)
            init(this, params, defaults)
            if type(this).__name__ == "ZeroRedundancyOptimizer" and torch.distributed.get_world_size() > 1:
                self.uses.add("sharding")  # of the optimizer's state: it broadcasts, and gathers nothing
            self._session.progress.phases.optimizes(tensors_of(params))
            self._session.progress.optimizes(tensors_of(params))
            with contextlib.suppress(Exception):  # what is looked at for remedies never breaks the program
                self.optimizers.append(Optimizer(type(this), user_line(), tensors_of(params), self.modules))

        optimizer.zero_grad, optimizer.__init__ = faultline_zero_grad, faultline_init

    # --- what lasts

    def without_step(self) -> float:
        """About the share of all that does not last which is there without the temporaries of an optimizer's step with foreach: as much as what is trained."""
        device = self._session.device
        peak = max(device.stats(place).peak_allocated_bytes for place in range(len(self._session.gpus)))
        rest = peak - sum(self.lasting.get(part, 0) for part in ("parameters", "gradients", "optimizer"))
        if "foreach" not in self.uses or rest <= 0:
            return 1.0
        return max(0.05, 1 - self.lasting.get("trained", 0) / rest)

    def backward(self, first: bool) -> None:
        """Before the program's first there are some of the dry run's own."""
        self._backwards = 1 if first else self._backwards + 1
        self.passes += 1

    def stepped(self, optimizer) -> None:
        """At the end of an optimizer's step: parameters, gradients and state are all there."""
        if not self.step_place:
            self.step_place = user_line() or ""
            self.have_length = lengths_at(self.step_place)
        self.backwards_in_step = max(self.backwards_in_step, self._backwards)
        if self._backwards > 1:
            self.uses.add("accumulates")
        self._backwards = 0
        if self._session.progress.steps > 3:
            return
        trained = [p for group in optimizer.param_groups for p in group["params"]]
        all_parameters = {id(p): p for root in self.roots() for p in root.parameters()} | {id(p): p for p in trained}
        now = {
            "parameters": bytes_of(all_parameters.values()),
            "gradients": bytes_of(p.grad for p in trained if p.grad is not None),
            "optimizer": bytes_of(v for p in trained for v in optimizer.state.get(p, {}).values()),
            "trained": bytes_of(trained),
        }
        if sum(now.values()) > sum(self.lasting.values()):
            self.lasting = now


def tensors_of(params) -> list:
    groups = [p["params"] if isinstance(p, dict) else p for p in params]
    return [
        p[1] if isinstance(p, tuple) else p
        for group in groups
        for p in ([group] if isinstance(group, torch.Tensor) or isinstance(group, tuple) else list(group))
    ]


def bytes_of(tensors) -> int:
    """On the GPU, each storage once."""
    sizes = {}
    for tensor in tensors:
        if isinstance(tensor, torch.Tensor) and type(tensor) in (torch.Tensor, torch.nn.Parameter) and tensor.is_cuda:
            storage = tensor.untyped_storage()
            sizes[storage._cdata] = storage.nbytes()
    return sum(sizes.values())


def linears_of(modules, trained: dict) -> list:
    """Linear layers whose weights are trained (of transformers Conv1D, too); not the last one, where it gives a score for each word of an embedding."""
    modules = list(modules)
    words = {m.num_embeddings for m in modules if isinstance(m, torch.nn.Embedding)}
    return [
        m
        for m in modules
        if (isinstance(m, torch.nn.Linear) or type(m).__name__ == "Conv1D")
        and id(m.weight) in trained
        and m.weight.dim() == 2
        and in_and_out(m)[1] not in words
    ]


def in_and_out(layer) -> tuple[int, int]:
    first, second = layer.weight.shape
    return (second, first) if isinstance(layer, torch.nn.Linear) else (first, second)


def layers_of(root, done: set[int]):
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
        if id(container) in done or (
            next(iter(kinds)).__module__.startswith("torch.nn.modules") and not list(layers[0].children())
        ):
            continue
        done.update(id(inner) for inner in container.modules())
        yield root, path, container, layers
