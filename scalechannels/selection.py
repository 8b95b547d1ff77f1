"""Which scale channel decided, and where? `pooling` defines what a channel contributes."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

from scalechannels.backbones.inference import evaluating
from scalechannels.network import ScaleChannelNetwork


@torch.no_grad()
def scale_contributions(network: ScaleChannelNetwork, images: Tensor) -> Tensor:
    """The contribution of every channel to each image's winning class: (B, S), rows sum to 1.

    In eval mode, whatever mode the network is in.

    Example:
        >>> import torch, scalechannels
        >>> network = scalechannels.load("fovlse-mnist")
        >>> images = torch.full((1, 1, 112, 112), -0.76)        # black, (B, C, H, W)
        >>> images[:, :, 36:76, 54:58] = 0.76                   # a bar of 40 pixels: a one
        >>> shares = scalechannels.scale_contributions(network, images)
        >>> shares.shape, bool((shares.sum(1) - 1).abs() < 1e-5)
        (torch.Size([1, 17]), True)
    """
    if not hasattr(network, "grid"):
        raise TypeError(
            f"a {type(network).__name__} has no scale channels; "
            "use a ScaleChannelNetwork such as fovlse(grid)"
        )
    if network.head is not None:
        raise ValueError("contributions are defined where logits are pooled; this network pools features")
    contributions = network.explain(images).contributions
    if contributions is None:
        raise TypeError(
            f"no definition of a channel's contribution is known for {type(network.pool).__name__}: make it "
            "have a method contributions, as those of scalechannels.pooling do"
        )
    return contributions


def selected_scale(network: ScaleChannelNetwork, images: Tensor) -> Tensor:
    """The scale σ of the channel that contributes most: (B,).

    Example:
        >>> import torch, scalechannels
        >>> network = scalechannels.load("fovlse-mnist")
        >>> images = torch.full((1, 1, 112, 112), -0.76)        # black, (B, C, H, W)
        >>> images[:, :, 36:76, 54:58] = 0.76                   # a bar of 40 pixels: a one
        >>> scalechannels.selected_scale(network, images)
        tensor([0.8409])
    """
    strongest = scale_contributions(network, images).argmax(1)
    return network.grid.scales.to(strongest.device)[strongest]


def evidence_centres(network: nn.Module, images: Tensor) -> Tensor:
    """Where in the images (B, C, H, W) the evidence for the winning class lies: rows and columns (B, 2).

    The centroid of how much each pixel matters: of the gradient of the winning logit against the mean of the
    others, times how far the pixel is from the image's median, which stands for the background. In eval mode,
    for any network from images to logits.

    Law: it moves with the object, finer than the lattice of windows, since it is made of pixels. Limits: what
    counts against other classes draws it, too; on a background that is not even, so does the background.

    Example:
        >>> import torch, scalechannels
        >>> network = scalechannels.load("fovlse-mnist")
        >>> images = torch.full((1, 1, 112, 112), -0.76)        # black, (B, C, H, W)
        >>> images[:, :, 36:76, 54:58] = 0.76                   # a bar of 40 pixels: a one
        >>> centres = scalechannels.evidence_centres(network, images)       # the bar's are 55.5 and 55.5
        >>> centres.shape, bool((centres - 55.5).abs().max() < 1)
        (torch.Size([1, 2]), True)
    """
    with evaluating(network), torch.inference_mode(False), torch.enable_grad():
        seen = images.detach().clone().requires_grad_()
        logits = network(seen)  # (B, K)
        others = (logits.sum(1) - logits.amax(1)) / max(logits.shape[1] - 1, 1)
        (slope,) = torch.autograd.grad((logits.amax(1) - others).sum(), seen)
    background = images.flatten(2).median(2).values[..., None, None]
    matter = (slope * (images - background)).abs().sum(1).double()  # (B, H, W)
    matter = matter / matter.sum((1, 2), keepdim=True).clamp_min(torch.finfo(matter.dtype).tiny)
    rows, columns = (torch.arange(side, device=images.device).to(matter) for side in images.shape[2:])
    return torch.stack((matter.sum(2) @ rows, matter.sum(1) @ columns), 1)


class ExpectedWindow(NamedTuple):
    """Where a network looks, as a mean over all of its windows."""

    places: Tensor  # (B, 2): row and column
    octaves: Tensor  # (B,): log2 of σ


def expected_window(
    network: ScaleChannelNetwork, images: Tensor, *, temperature: float = 1.0
) -> ExpectedWindow:
    """The place and the scale of the winning class, differentiable in the images and in the weights.

    A channel's place is the mean of its places, weighted by the softmax of their logits over the temperature;
    the channels are weighted in the same way by their largest logits.

    Law: as the temperature falls, the window of the largest logit. Moved by whole steps of every channel, an
    object moves the place with it. Limit: two objects, or at a high temperature the background, draw the
    place between them; `network.explain` gives the one window that decided, without a gradient.

    Example:
        >>> import torch
        >>> from scalechannels import ScaleGrid, expected_window, swmax
        >>> images = torch.rand(2, 1, 64, 96).requires_grad_()
        >>> window = expected_window(swmax(ScaleGrid(1, 4, ratio=2)), images)
        >>> window.places.shape, window.octaves.shape           # row and column, log2 of the scale
        (torch.Size([2, 2]), torch.Size([2]))
        >>> window.places.sum().backward()                      # a loss on places learns
    """
    if getattr(network, "everywhere", None) is None:
        raise TypeError('only a network that looks everywhere has a place: look="everywhere"')
    if not temperature > 0:
        raise ValueError(f"temperature must be above 0; got {temperature}")
    with evaluating(network):
        maps = list(network.everywhere.logit_maps(images, network.backbone))  # S of (B, K, h, w)
    channels = torch.stack([network.everywhere.over_places(one) for one in maps], 1)  # (B, S, K)
    winner = network.pool_channels(channels).argmax(1)  # (B,)
    image = torch.arange(len(images), device=images.device)
    places, largest = [], []
    for sigma, one in zip(network.grid, maps, strict=True):
        logits = one[image, winner].flatten(1)  # (B, h·w)
        weights = (logits / temperature).softmax(1).unflatten(1, one.shape[2:])
        rows, columns = network.everywhere.centres(sigma, images, one.shape[2:])
        places.append(torch.stack((weights.sum(2) @ rows, weights.sum(1) @ columns), 1))  # (B, 2)
        largest.append(logits.amax(1))
    shares = (torch.stack(largest, 1) / temperature).softmax(1)  # (B, S)
    octaves = network.grid.scales.to(shares).log2()
    return ExpectedWindow((shares[..., None] * torch.stack(places, 1)).sum(1), shares @ octaves)
