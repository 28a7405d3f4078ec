"""Parameters, gradients and the optimizer's state spread over several GPUs, by PyTorch's own fully_shard (FSDP2), which runs here as one rank of them."""

from __future__ import annotations

import torch

from ...remedies.remedy import Offer, Remedy
from .seen import layers_of, tensors_of


def _fully_shard():
    try:
        from torch.distributed.fsdp import fully_shard
    except ImportError:
        try:
            from torch.distributed._composable.fsdp import fully_shard
        except ImportError:
            return None
    return fully_shard


class Fsdp(Remedy):
    name = "fsdp"

    def offers(self):
        seen = self.seen
        if not seen.trains() or len(seen.optimizers) != 1 or len(self.session.gpus) > 1:
            return
        if not torch.distributed.is_available() or torch.distributed.is_initialized() or _fully_shard() is None:
            return
        if not seen.layers() or "scaler" in seen.uses:
            return
        step = seen.without_step()
        for more_cost, count in ((0, 2), (10, 4), (20, 8)):
            yield Offer(
                str(count),
                f"FSDP over {count} GPUs",
                f"Shard the model over {count} such GPUs: torch.distributed.fsdp.fully_shard on each repeated layer and on the model, before the optimizer is made and before the model is on the GPU, started by torchrun --nproc-per-node {count}",
                more_cost,
                {name: 1 / count for name in ("parameters", "gradients", "optimizer")}
                | {"running": step + (1 - step) / count},
            )

    def apply(self, value) -> None:
        count = int(value)
        module = torch.nn.Module
        to, cuda = module.to, module.cuda
        stays: set[int] = set()

        def is_to_be_sharded(this) -> bool:
            return id(this) not in stays and any(True for _ in layers_of(this, set()))

        def faultline_to(this, *args, **kwargs):
            if not is_to_be_sharded(this):
                return to(this, *args, **kwargs)
            device, dtype, *_ = torch._C._nn._parse_to(*args, **kwargs)
            return to(this, dtype) if dtype is not None else this

        def faultline_cuda(this, *args, **kwargs):
            return this if is_to_be_sharded(this) else cuda(this, *args, **kwargs)

        module.to, module.cuda = faultline_to, faultline_cuda

        def change(_optimizer, params):
            given = tensors_of(params)
            root = self._root_of(given)
            if root is None:
                return params
            stays.update(id(m) for m in root.modules())
            places = {id(p): (m, name) for m in root.modules() for name, p in m._parameters.items() if p is not None}
            self._shard(root, count)
            new = {key: m._parameters[name] for key, (m, name) in places.items()}
            self.done(f"the model was sharded over {count} GPUs")

            def swapped(parameter):
                return new.get(id(parameter), parameter)

            return [
                {**group, "params": [swapped(p) for p in tensors_of([group])]}
                if isinstance(group, dict)
                else swapped(group)
                for group in params
            ]

        self.seen.before_optimizer.append(change)

    def _root_of(self, parameters):
        wanted = {id(p) for p in parameters}
        called = [m for m in self.seen.modules if type(m).forward is not torch.nn.Module.forward]  # no ModuleList
        holding = [m for m in called if wanted <= {id(p) for p in m.parameters()}]
        return min(holding, key=lambda m: sum(1 for _ in m.modules()), default=None)

    def _shard(self, root, count: int) -> None:
        import torch.distributed as dist

        fully_shard = _fully_shard()
        dist.init_process_group("nccl", init_method="tcp://127.0.0.1:29500", rank=0, world_size=count)
        mesh = dist.device_mesh.init_device_mesh("cuda", (count,))
        for _root, _path, _container, layers in layers_of(root, set()):
            for layer in layers:
                _shard_one(fully_shard, layer, mesh)
        _shard_one(fully_shard, root, mesh)


def _shard_one(fully_shard, module, mesh) -> None:
    """The whole parameters are let go of, whoever still holds them: a program that shards before it makes its optimizer holds none."""
    whole = list(module.parameters())
    fully_shard(module, mesh=mesh)
    kept = {id(p) for p in module.parameters()}
    for parameter in whole:
        if id(parameter) not in kept:
            parameter.data = parameter.data.new_empty(0)
