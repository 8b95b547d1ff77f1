"""How a network calls its backbone: what a backbone says of itself, and what makes it fast at inference.

Where nothing is learnt, batch norm is folded into the convolutions, and large batches go through in pieces:
memory stays bounded and activations stay in the cache.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import reduce
from typing import Any, Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.modules import module as torch_module
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.utils.fusion import fuse_conv_bn_weights

CPU_PIXELS = 107_000
"""Window pixels in one piece on the CPU: about what keeps the widest activations inside the cache."""
DEVICE_PIXELS = 50_000_000
"""The same on a GPU, where the kernel launches decide, not the cache."""


class Backbone(nn.Module):
    """What the backbones of this library have in common. A user's own module need not be one.

    channels   C, of the windows that it takes
    window     their side, where it takes one alone; other backbones have no such attribute
    """

    channels: int
    convolutions: nn.Sequential

    def parts(self) -> Sequence[nn.Sequential]:
        """The sequences of blocks that `through` goes through, and that can be folded."""
        return [self.convolutions]

    def through(self, windows: Tensor, parts: Sequence[Callable[[Tensor], Tensor]]) -> Tensor:
        """Windows (N, C, n, n) to logits (N, K), by these parts, folded or as they are."""
        raise NotImplementedError

    def forward(self, windows: Tensor) -> Tensor:
        return self.through(windows, self.parts())

    def folded(self) -> Callable[[Tensor], Tensor]:
        """The same function of windows in eval mode, as the weights are now; see `fold`."""
        parts = [fold(part) for part in self.parts()]
        return lambda windows: self.through(windows, parts)

    def arguments(self) -> dict[str, Any]:
        """What rebuilds it: each argument of the constructor is an attribute."""
        return {name: getattr(self, name) for name in inspect.signature(type(self)).parameters}


def stated(backbone: nn.Module, name: Literal["channels", "classes", "window"]) -> int | None:
    """What a backbone of this library says of itself, where it does.

    Of a user's own nothing is believed: there `channels` may be a hidden width, `window` one of attention.
    """
    return getattr(backbone, name, None) if isinstance(backbone, Backbone) else None


def colours(backbone: nn.Module, otherwise: int) -> int:
    """C of the images: what a backbone of ours says, else what the first convolution of a user's own takes.

    Where it has none, its attribute `channels` is a hint.
    """
    known = stated(backbone, "channels")
    taken = (layer.in_channels for layer in backbone.modules() if isinstance(layer, nn.Conv2d))
    hint = getattr(backbone, "channels", None)
    return known or next(taken, hint if isinstance(hint, int) else otherwise)


def for_inference(module: nn.Module) -> Callable[[Tensor], Tensor]:
    """The module, or its faster form (`Backbone.folded`) where it has one and nothing is learnt.

    Law: the same function with gradients and without, hooks included, whatever was changed in the module.
    """
    if learning(module) or not isinstance(module, Backbone) or type(module).forward is not FORWARD:
        return module
    return module.folded() if untouched(module) else module


@contextmanager
def evaluating(module: nn.Module) -> Iterator[None]:
    """Eval mode for all parts of a module, whatever mode each is in; afterwards they are as before."""
    learning = [part for part in module.modules() if part.training]
    for part in learning:
        part.training = False
    try:
        yield
    finally:
        for part in learning:
            part.training = True


def binds_images(module: nn.Module) -> bool:
    """Whether its batches have to stay whole: it learns, or one of its batch norms looks at the batch."""
    return learning(module) or any(
        isinstance(layer, _BatchNorm) and (layer.training or layer.running_mean is None)
        for layer in module.modules()
    )


def learning(module: nn.Module) -> bool:
    """Whether it is called to learn, or inside a graph: then nothing about the call may be changed."""
    return module.training or torch.is_grad_enabled() or torch.compiler.is_compiling()


def logits_of(module: nn.Module, windows: Tensor) -> Tensor:
    """What a backbone makes of windows (N, C, n, n), the fastest way that is allowed now: (N, K)."""
    backbone = for_inference(module)

    def checked(part: Tensor, _: Tensor | None) -> Tensor:
        logits = backbone(part)
        if not isinstance(logits, Tensor):
            raise ValueError(
                f"a backbone must give one tensor (N, K); got {type(logits).__name__}. Wrap it in a module "
                "that returns only the logits"
            )
        if logits.ndim != 2 or logits.shape[0] != part.shape[0]:
            raise ValueError(
                f"a backbone must give (N, K); got {tuple(logits.shape)} for {part.shape[0]} windows"
            )
        return logits

    try:
        return in_pieces(checked, windows, None, windows[0].numel(), training=binds_images(module))
    except RuntimeError as error:
        require_same_type(module, windows, error)
        raise


def require_same_type(backbone: nn.Module, images: Tensor, error: RuntimeError) -> None:
    """A clear error in place of this one where images and weights are of different types.

    Only where it failed: autocast, or a backbone of a user's own, may well take both.
    """
    weights = next(backbone.parameters(), images)
    if weights.dtype != images.dtype:
        raise TypeError(
            f"the images are {images.dtype}, the backbone's weights {weights.dtype}: convert with "
            f"images.to({weights.dtype}) or network.to({images.dtype}). It said: {error}"
        ) from error


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
    parts = images.split(piece)
    about = [None] * len(parts) if centres is None else centres.split(piece)
    return torch.cat([function(*one) for one in zip(parts, about, strict=True)])


def fold(blocks: nn.Sequential) -> Callable[[Tensor], Tensor]:
    """Blocks with batch norm folded into the convolutions: a third less time on a CPU.

    In eval mode batch norm is a fixed factor and shift for each feature, which the convolution's weights can
    hold. Law: equal to the blocks as they are, up to rounding: a block that was changed (see `foldable`) is
    called, not folded. Limit: later changes of the weights are not seen.
    """
    compiling = torch.compiler.is_dynamo_compiling()  # which makes no weights, and folds by itself
    if compiling or type(blocks) is not nn.Sequential or not untouched(blocks):
        return blocks
    steps = [_folded(block) if foldable(block) else block for block in blocks]
    return lambda maps: reduce(lambda found, step: step(found), steps, maps)


def foldable(block: nn.Module) -> bool:
    """Whether a block is exactly a convolution, a batch norm with fixed statistics or none, and a ReLU."""
    if type(block) is not nn.Sequential or not all(map(untouched, (block, *block))):
        return False
    convolution, *norms, last = block if len(block) in (2, 3) else (None, None)
    return (
        type(convolution) is nn.Conv2d
        and convolution.padding_mode == "zeros"
        and all(
            type(norm) in (nn.BatchNorm2d, nn.SyncBatchNorm)
            and not norm.training
            and norm.running_mean is not None
            and norm.running_var is not None
            for norm in norms
        )
        and type(last) is nn.ReLU
    )


def untouched(module: nn.Module) -> bool:
    """Whether a call of the module does what its class did when this was imported, and nothing beside."""
    every = torch_module._global_forward_hooks or torch_module._global_forward_pre_hooks
    return not (every or changed(module))


def changed(module: nn.Module) -> bool:
    """Whether a call of this module leads to hooks or methods that its class did not have at first."""
    own, now = vars(module), _called(type(module))
    return bool(
        (module._forward_hooks or module._forward_pre_hooks)
        or any(name in own for name in CALLED)
        or (not torch.compiler.is_compiling() and AS_IMPORTED.get(type(module), now) != now)
    )


def _called(kind: type[nn.Module]) -> list[Any]:
    return [getattr(kind, name, None) for name in CALLED]


CALLED = ("forward", "_conv_forward", "_call_impl", "_wrapped_call_impl", "__call__")
"""What a call of a module leads to. A program may change it, for one module or for all of a class."""
FOLDED = (nn.Sequential, nn.Conv2d, nn.BatchNorm2d, nn.SyncBatchNorm, nn.ReLU, nn.Linear)
AS_IMPORTED: dict[type[nn.Module], list[Any]] = {kind: _called(kind) for kind in FOLDED}
FORWARD = Backbone.forward


def _folded(block: Any) -> Callable[[Tensor], Tensor]:
    convolution, *norms, _ = block
    weight, bias = convolution.weight, convolution.bias
    for norm in norms:
        weight, bias = fuse_conv_bn_weights(
            weight, bias, norm.running_mean, norm.running_var, norm.eps, norm.weight, norm.bias
        )
    options = convolution.stride, convolution.padding, convolution.dilation, convolution.groups
    return lambda maps: F.conv2d(maps, weight, bias, *options).relu_()
