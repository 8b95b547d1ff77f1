"""Looking everywhere: each channel slides over the whole rescaled image, and its places are pooled.

    image (B,C,H,W) → sampled at spacing σ → backbone.logit_map → (B,K,h,w) → over places → (B,K), for each σ

Channel σ samples the image at spacing exactly σ about the centre, ceil(H/σ) samples, or as many as the window
needs where that is more. Place i along an axis is the window whose first sample is stride·i.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from scalechannels.pooling import log_mean_exp, maximum
from scalechannels.sampling import Foveate

if TYPE_CHECKING:
    from scalechannels.network import Norm, Places

OVER_PLACES: dict[str, Callable[[Tensor, int], Tensor]] = {
    "max": maximum,
    "mean": lambda values, dim: values.mean(dim),
    "logmeanexp": log_mean_exp,
}


class Everywhere:
    """What each channel of a network says, over all places of an image: (B, C, H, W) to (B, S, K).

    foveate    the channels' grid, window and conventions
    backbone   with a method logit_map
    places     what pools the places of a channel
    margin     by how many pixels every rescaled image is extended on each side
    centred    extend every rescaled image by up to 7 pixels in all, so that one window lies at its centre.
               Else the windows next to the centre are off it by 0 to 2 pixels, depending on the channel
    drop_features   dropout drops a feature at all places of an image at once. At each place by itself, the
               maximum goes to places whose draw was lucky
    norm       None: the backbone as it is, channel by channel. "joint" and "each" are the batch norms that
               the paper tried and found to impair SWMax, over the maps of all channels or of each by itself;
               neither is scale invariant. "each" takes a backbone without and has `norms` of its own
    """

    def __init__(
        self,
        foveate: Foveate,
        backbone: Any,
        places: Places = "max",
        *,
        margin: int = 0,
        centred: bool = False,
        drop_features: bool = False,
        norm: Norm | None = None,
    ) -> None:
        if not hasattr(backbone, "logit_map"):
            raise TypeError(
                f"a backbone that looks everywhere needs a method logit_map, (N,C,H,W) to (N,K,h,w); "
                f"{type(backbone).__name__} has none"
            )
        if norm not in (None, "joint", "each"):
            raise ValueError(f"norm must be None, 'joint' or 'each'; got {norm!r}")
        if norm is not None and backbone.batch_norm != (norm == "joint"):
            raise ValueError('"joint" needs a backbone with batch norm, "each" one without')
        if margin < 0:
            raise ValueError(f"margin must be zero or more pixels; got {margin}")
        self.foveate, self.places, self.margin = foveate, places, margin
        self.centred, self.drop_features, self.norm = centred, drop_features, norm
        self.stride = int(backbone.stride)
        self.norms = nn.ModuleList(
            nn.ModuleList(nn.BatchNorm2d(features) for features in backbone.features)
            for _ in (foveate.grid if norm == "each" else ())
        )

    def __call__(self, images: Tensor, backbone: Any) -> Tensor:
        over = OVER_PLACES[self.places]
        maps = self.logit_maps(images, backbone)
        return torch.stack([over(channel.flatten(2), 2) for channel in maps], 1)  # (B, S, K)

    def found(self, images: Tensor, backbone: Any) -> tuple[Tensor, Tensor]:
        """The same, and where each class is strongest in each channel: (B, S, K) and (B, S, K, 2).

        Rows and columns are in float32 at least: half precision cannot tell those of a large image apart.
        """
        said, where = [], []
        for sigma, maps in zip(self.foveate.grid, self.logit_maps(images, backbone), strict=True):
            strongest = maps.flatten(2).argmax(2)  # (B, K)
            rows, columns = (
                self._positions(sigma, side, places, images)
                for side, places in zip(images.shape[2:], maps.shape[2:], strict=True)
            )
            at = rows[strongest // maps.shape[3]], columns[strongest % maps.shape[3]]
            said.append(OVER_PLACES[self.places](maps.flatten(2), 2))
            where.append(torch.stack(at, -1))
        return torch.stack(said, 1), torch.stack(where, 1)

    def logit_maps(self, images: Tensor, backbone: Any) -> Iterator[Tensor]:
        """The logits of each channel at its places: S maps (B, K, h, w)."""
        kept = []
        if backbone.training and self.drop_features:
            kept.append(backbone.drop(images.new_ones(len(images), backbone.hidden, 1, 1)))
        rescaled = (self._rescaled(images, sigma) for sigma in self.foveate.grid)
        if self.norm is None:  # channel by channel, which takes less memory
            return (backbone.logit_map(channel, *kept) for channel in rescaled)
        return (backbone.slid(channel, *kept) for channel in self._normed_maps(list(rescaled), backbone))

    def sampled_size(self, size: Sequence[int], sigma: float) -> tuple[int, int]:
        """How many rows and columns channel σ has of an image of this size (H, W)."""
        return self._sampled(size[0] / sigma), self._sampled(size[1] / sigma)

    def pixels(self, images: Tensor) -> int:
        """The pixels of an image in all channels."""
        sizes = [self.sampled_size(images.shape[2:], sigma) for sigma in self.foveate.grid]
        return images.shape[1] * sum(height * width for height, width in sizes)

    def arguments(self) -> dict[str, Any]:
        names = ("places", "margin", "centred", "drop_features", "norm")
        return {name: getattr(self, name) for name in names if getattr(self, name)}

    def _sampled(self, side: float) -> int:
        slack = 1e-9  # a side that is whole but for rounding must not gain a sample
        window = self.foveate.window
        samples = max(window, math.ceil(side - slack) + 2 * self.margin)
        if self.centred:  # an even number of steps of the backbone's stride from the first window to the last
            steps = 2 * self.stride
            samples = window + -(-(samples - window) // steps) * steps
        return samples

    def _positions(self, sigma: float, side: int, places: int, like: Tensor) -> Tensor:
        """The centres (places,) of the windows along an axis of the image."""
        first = (self.foveate.window - 1) / 2 - (self._sampled(side / sigma) - 1) / 2
        kind = torch.promote_types(like.dtype, torch.float32)
        steps = torch.arange(places, dtype=kind, device=like.device) * self.stride
        return (side - 1) / 2 + sigma * (first + steps)

    def _rescaled(self, images: Tensor, sigma: float) -> Tensor:
        channel = self.foveate.grid.factors.index(sigma)
        size = self.sampled_size(images.shape[2:], sigma)
        return self.foveate.sampled(images, size, slice(channel, channel + 1))[:, 0]

    def _normed_maps(self, channels: Sequence[Tensor], backbone: Any) -> list[Tensor]:
        """All channels through the convolutions layer by layer, normalised across them or each by itself."""
        maps = list(channels)
        for layer, block in enumerate(backbone.convolutions):
            maps = [block[0](channel) for channel in maps]
            if self.norm == "joint":
                places = [channel.shape[2] * channel.shape[3] for channel in maps]
                together = torch.cat([channel.flatten(2) for channel in maps], dim=2)  # (B, F, all places)
                parts = block[1](together[..., None])[..., 0].split(places, dim=2)
                maps = [part.unflatten(2, old.shape[2:]) for part, old in zip(parts, maps, strict=True)]
            else:
                maps = [norms[layer](old) for norms, old in zip(self.norms, maps, strict=True)]  # type: ignore
            maps = [F.relu(channel) for channel in maps]
        return maps
