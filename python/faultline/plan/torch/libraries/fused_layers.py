"""Layers and optimizers of apex: fused kernels that take what PyTorch's fused ones take."""

from __future__ import annotations

import torch

F = torch.nn.functional


def normalization(_session) -> dict:
    class FusedLayerNorm(torch.nn.LayerNorm):
        """Keeps its input, a mean and an inverse deviation for each row, as PyTorch's own kernel does."""

        def __init__(self, normalized_shape, eps=1e-5, elementwise_affine=True, memory_efficient=False):
            super().__init__(normalized_shape, eps=eps, elementwise_affine=elementwise_affine)

    class FusedRMSNorm(torch.nn.Module):
        def __init__(self, normalized_shape, eps=1e-5, elementwise_affine=True, memory_efficient=False):
            super().__init__()
            self.normalized_shape = (
                (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
            )
            self.eps = eps
            self.weight = torch.nn.Parameter(torch.ones(self.normalized_shape)) if elementwise_affine else None

        def forward(self, x):
            return F.rms_norm(x, self.normalized_shape, self.weight, self.eps)

    class MixedFusedLayerNorm(FusedLayerNorm):
        pass

    class MixedFusedRMSNorm(FusedRMSNorm):
        pass

    return {kind.__name__: kind for kind in (FusedLayerNorm, FusedRMSNorm, MixedFusedLayerNorm, MixedFusedRMSNorm)}


def optimizers(_session) -> dict:
    class FusedAdam(torch.optim.AdamW):
        """Two buffers for each parameter, and nothing beside them while it steps."""

        def __init__(
            self,
            params,
            lr=1e-3,
            bias_correction=True,
            betas=(0.9, 0.999),
            eps=1e-8,
            adam_w_mode=True,
            weight_decay=0.0,
            amsgrad=False,
            set_grad_none=True,
            **_options,
        ):
            super().__init__(params, lr=lr, betas=betas, eps=eps, weight_decay=weight_decay, fused=True)

        def zero_grad(self, set_to_none=True):
            super().zero_grad(True)

    class FusedSGD(torch.optim.SGD):
        def __init__(self, params, lr, momentum=0.0, dampening=0.0, weight_decay=0.0, nesterov=False, **_options):
            super().__init__(params, lr, momentum, dampening, weight_decay, nesterov, fused=True)

    return {"FusedAdam": FusedAdam, "FusedSGD": FusedSGD}
