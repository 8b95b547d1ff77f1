"""Large batches in pieces: at inference memory stays bounded and activations stay in the cache."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn.modules import module as torch_module
from torch.nn.modules.batchnorm import _BatchNorm

from scalechannels.backbones.paper import Backbone, untouched

CPU_PIXELS = 107_000
"""Window pixels in one piece on the CPU: about what keeps the widest activations inside the cache."""
DEVICE_PIXELS = 50_000_000
"""The same on a GPU, where the kernel launches decide, not the cache."""


def for_inference(module: nn.Module) -> Callable[[Tensor], Tensor]:
    """The module, or its faster form (`Backbone.folded`) where it has one and nothing is learnt.

    Law: the same function with gradients and without, hooks included, whatever was changed in the module.
    """
    if _learning(module) or not isinstance(module, Backbone) or "folded" not in vars(type(module)):
        return module
    watched = torch_module._global_forward_hooks or torch_module._global_forward_pre_hooks
    return module.folded() if untouched(module) and not watched else module


def binds_images(module: nn.Module) -> bool:
    """Whether its batches have to stay whole: it learns, or one of its batch norms looks at the batch."""
    return _learning(module) or any(
        isinstance(layer, _BatchNorm) and (layer.training or layer.running_mean is None)
        for layer in module.modules()
    )


def _learning(module: nn.Module) -> bool:
    return module.training or torch.is_grad_enabled() or torch.compiler.is_compiling()


def require_logits(outputs: Tensor, windows: Tensor) -> Tensor:
    """What a backbone gave for windows (N, C, n, n), or a clear error unless it is (N, K)."""
    if not isinstance(outputs, Tensor):
        raise ValueError(
            f"a backbone gives one tensor (N, K), this one gave a {type(outputs).__name__}: wrap it in a "
            "module that returns the logits alone"
        )
    if outputs.ndim != 2 or outputs.shape[0] != windows.shape[0]:
        raise ValueError(
            f"a backbone gives (N, K), this one gave {tuple(outputs.shape)} for {windows.shape[0]} windows"
        )
    return outputs


def in_pieces(
    function: Callable[[Tensor, Tensor | None], Tensor],
    images: Tensor,
    centres: Tensor | None,
    pixels_per_image: int,
    *,
    training: bool = False,
) -> Tensor:
    """function(images, centres), piece by piece where no gradient is wanted and images are many.

    Law: the images are independent in eval mode, so the result does not depend on the pieces. While
    `training`, batch norm binds them together, so they stay in one piece (see `binds_images`).
    """
    budget = CPU_PIXELS if images.device.type == "cpu" else DEVICE_PIXELS
    piece = max(1, budget // pixels_per_image)
    # A compiled or exported graph has one batch, whatever its size; gradients need all activations anyway.
    whole = training or torch.is_grad_enabled() or torch.compiler.is_compiling()
    if whole or len(images) <= piece:
        return function(images, centres)
    return torch.cat(
        [
            function(part, None if centres is None else centres[start : start + piece])
            for start, part in zip(range(0, len(images), piece), images.split(piece), strict=True)
        ]
    )
