"""Large batches in pieces: at inference memory stays bounded and activations stay in the cache."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

CPU_PIXELS = 107_000
"""Window pixels in one piece on the CPU: about what keeps the widest activations inside the cache."""
DEVICE_PIXELS = 50_000_000
"""The same on a GPU, where the kernel launches decide, not the cache."""


def for_inference(module: nn.Module) -> Callable[[Tensor], Tensor]:
    """The module, or its faster form for inference where it has one (`folded`) and nothing is learnt."""
    learning = module.training or torch.is_grad_enabled() or torch.compiler.is_compiling()
    folded = getattr(module, "folded", None)
    return module if learning or folded is None else folded()


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
    `training`, batch norm binds them together, so they stay in one piece.
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
