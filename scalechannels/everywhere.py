"""Looking everywhere: each channel slides over the whole rescaled image, and its places are pooled.

    image (B,C,H,W) → sampled at spacing σ → backbone.logit_map → (B,K,h,w) → over places → (B,K), for each σ

Channel σ samples the image at spacing exactly σ about the centre, ceil(H/σ) samples, or as many as the window
needs where that is more. Place i along an axis is the window whose first sample is stride·i.

Where nothing is learnt, a large image is looked at in tiles: memory is bounded by a tile, not by the image.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import reduce
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from scalechannels.backbones.inference import changed, learning, untouched
from scalechannels.backbones.joint_norm import jointly_normed
from scalechannels.backbones.paper import ConvBackbone
from scalechannels.backbones.sliding import as_built, convolutional, require_as_seen
from scalechannels.pooling import log_mean_exp, maximum
from scalechannels.sampling import Foveate, blur_margin, equalising, most_digits, sample, taps

if TYPE_CHECKING:
    from scalechannels.network import Norm, Places

OVER_PLACES: dict[str, Callable[[Tensor, int], Tensor]] = {
    "max": maximum,
    "mean": lambda values, dim: values.mean(dim),
    "logmeanexp": log_mean_exp,
}
OVER_TILES: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "max": lambda values, shares: maximum(values, 0),
    "mean": lambda values, shares: torch.tensordot(shares, values, 1),
    "logmeanexp": lambda values, shares: torch.logsumexp(values + shares.log()[:, None, None], 0),
}
"""The same of what was pooled in tiles (T, B, K), each with its share (T,) of the places."""
MOST_POWER = 8
TILE_ON_CPU, TILE = 96, 1024
"""Places along a tile at most, on a CPU so that it fits the cache."""


class Part(NamedTuple):
    """What a channel says at some of its places."""

    logits: Tensor  # (B, K, h, w)
    rows: range
    """Which places of the channel these are, down the image."""
    columns: range


class Everywhere:
    """What each channel of a network says, over all places of an image: (B, C, H, W) to (B, S, K).

    foveate    the channels' grid, window and conventions
    backbone   with a method logit_map
    places     what pools the places of a channel
    margin     by how many pixels every rescaled image is extended on each side
    centred    extend every rescaled image by up to 7 pixels in all, so that one window lies at its centre.
               Else the windows next to the centre are off it by 0 to 2 pixels, depending on the channel
    area_power   how a window counts: as its area to this power, so that 2·area_power·log σ is added to the
               logits of channel σ. At 0 each window counts as much as any other, and the fine channels, which
               have most, often find parts of large objects that look like something. At 1 the maximum is
               taken per area of the image: a window has to be as much more likely as it is smaller
    drop_features   dropout drops a feature at all places of an image at once. At each place by itself, the
               maximum goes to places whose draw was lucky
    norm       in training, batch norm sees the maps of all channels as one batch; "joint" says that the
               backbone must have it. Channel by channel it would learn statistics that none of them has: such
               a network does not recognise what it learnt. (A backbone of your own is called channel by
               channel; give it another norm.) "each" takes a backbone without and has `norms` of its own for
               each channel, which is not scale invariant. The paper tried both and found them to impair SWMax

    Law: in tiles an image gets the answer that it gets whole. Limit: up to rounding; tiles overlap by less
    than a window, which is computed again.
    """

    def __init__(
        self,
        foveate: Foveate,
        backbone: Any,
        places: Places = "max",
        *,
        margin: int = 0,
        centred: bool = False,
        area_power: float = 0.0,
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
        if not 0 <= margin <= foveate.window:
            raise ValueError(
                f"margin must be zero or more pixels, up to the window's {foveate.window}; got {margin}"
            )
        if not 0 <= area_power <= MOST_POWER:
            raise ValueError(f"area_power must be from 0 to {MOST_POWER}; got {area_power}")
        self.foveate, self.places, self.margin, self.area_power = foveate, places, margin, area_power
        self.centred, self.drop_features, self.norm = centred, drop_features, norm
        self.stride = int(backbone.stride)
        self.norms = nn.ModuleList(
            nn.ModuleList(nn.BatchNorm2d(features) for features in backbone.features)
            for _ in (foveate.grid if norm == "each" else ())
        )

    def __call__(self, images: Tensor, backbone: Any) -> Tensor:
        seen = self._seen(images, backbone)
        return torch.stack([self._over_tiles(list(map(self._tile, parts))) for parts in seen], 1)  # (B, S, K)

    def found(self, images: Tensor, backbone: Any) -> tuple[Tensor, Tensor]:
        """The same, and where each class is strongest in each channel: (B, S, K) and (B, S, K, 2).

        Rows and columns are in float32 at least: half precision cannot tell those of a large image apart.
        """
        said, where = [], []
        for sigma, parts in zip(self.foveate.grid, self._seen(images, backbone), strict=True):
            tiles, strongest, at = [], [], []
            for part in parts:
                tiles.append(self._tile(part))
                values, place = part.logits.flatten(2).max(2)  # (B, K) each
                rows, columns = (
                    self._centres(sigma, side, places, images)
                    for side, places in zip(images.shape[2:], part[1:], strict=True)
                )
                width = part.logits.shape[3]
                strongest.append(values)
                at.append(torch.stack((rows[place // width], columns[place % width]), -1))  # (B, K, 2)
            said.append(self._over_tiles(tiles))
            where.append(at[0] if len(at) == 1 else _of_strongest(torch.stack(strongest), torch.stack(at)))
        return torch.stack(said, 1), torch.stack(where, 1)

    def logit_maps(self, images: Tensor, backbone: Any, *beside: Tensor) -> Iterator[Tensor]:
        """The logits of each channel at all its places: S maps (B, K, h, w).

        beside     what else is slid over, and normalised with the channels in training: a map more for each
        """
        if not torch.compiler.is_compiling():
            require_as_seen(backbone, self.stride, self.foveate.window)
        kept = []
        if backbone.training and self.drop_features:
            kept.append(backbone.drop(images.new_ones(len(images), backbone.hidden, 1, 1)))
        rescaled = chain((self._rescaled(images, sigma) for sigma in self.foveate.grid), beside)
        shared = self.norm != "each" and isinstance(backbone, ConvBackbone)
        if shared and any(isinstance(one, _BatchNorm) and one.training for one in backbone.modules()):
            said = (backbone.slid(maps, *kept) for maps in self._jointly_normed(list(rescaled), backbone))
        else:  # channel by channel, which takes less memory
            sliding = self._sliding(backbone) + [backbone.logit_map] * len(beside)
            said = (slide(channel, *kept) for slide, channel in zip(sliding, rescaled, strict=True))
        counted = self.foveate.grid.factors + (1.0,) * len(beside)  # PyTorch 2.11 compiles no unpacked grid
        return (self.counted(maps, sigma) for maps, sigma in zip(said, counted, strict=True))

    def over_places(self, maps: Tensor) -> Tensor:
        """What a channel says (B, K) by its logits (B, K, h, w) at all places."""
        return OVER_PLACES[self.places](maps.flatten(2), 2)

    def centres(self, sigma: float, images: Tensor, places: Sequence[int]) -> list[Tensor]:
        """The rows (h,) and columns (w,) of an image at which the windows of so many places (h, w) lie."""
        sides = zip(images.shape[2:], places, strict=True)
        return [self._centres(sigma, side, range(count), images) for side, count in sides]

    def sampled_size(self, size: Sequence[int], sigma: float) -> tuple[int, int]:
        """How many rows and columns channel σ has of an image of this size (H, W)."""
        return self._sampled(size[0] / sigma), self._sampled(size[1] / sigma)

    def pixels(self, images: Tensor) -> int:
        """The pixels of an image in all channels."""
        sizes = [self.sampled_size(images.shape[2:], sigma) for sigma in self.foveate.grid]
        return images.shape[1] * sum(height * width for height, width in sizes)

    def arguments(self) -> dict[str, Any]:
        names = ("places", "margin", "centred", "area_power", "drop_features", "norm")
        return {name: getattr(self, name) for name in names if getattr(self, name)}

    def _seen(self, images: Tensor, backbone: Any) -> Iterator[Iterator[Part]]:
        """What each channel says, in one part, or in tiles where it is large and nothing is learnt."""
        tile = TILE_ON_CPU if images.device.type == "cpu" else TILE
        finest = self.sampled_size(images.shape[2:], self.foveate.grid.minimum)
        if learning(backbone) or max(finest) <= self._reach(tile):
            for maps in self.logit_maps(images, backbone):
                yield iter([Part(maps, range(maps.shape[2]), range(maps.shape[3]))])
            return
        require_as_seen(backbone, self.stride, self.foveate.window)
        places = getattr(backbone, "places", self._places)
        for sigma, slide in zip(self.foveate.grid, self._sliding(backbone), strict=True):
            yield self._tiles(images, sigma, slide, places, tile)

    def _tiles(
        self,
        images: Tensor,
        sigma: float,
        slide: Callable[[Tensor], Tensor],
        places: Callable[[int], int],
        tile: int,
    ) -> Iterator[Part]:
        """A channel piece by piece: sample what the windows of some places see, and slide over that."""
        foveate, shape, dtype, device = self.foveate, images.shape, images.dtype, images.device
        exact = images if dtype in (torch.float32, torch.float64) else images.float()
        planes = exact.flatten(0, 1)  # (B·C, H, W)
        half_width = max(1.0, sigma) if foveate.antialias else 1.0
        margin = blur_margin(foveate.blur)
        kernels = [self._smoothing(sigma, side, half_width, planes) for side in shape[2:]]
        down, across = (_spans(places(samples), tile) for samples in self.sampled_size(shape[2:], sigma))
        for rows in down:
            for columns in across:
                y, x = (
                    self._positions(sigma, side, self._seen_by(part, margin), device)
                    for side, part in zip(shape[2:], (rows, columns), strict=True)
                )
                sampled = sample(planes, y, x, half_width, outside=foveate.outside, fill=foveate.fill)
                sampled = _smoothed(sampled, kernels)
                sampled = sampled.unflatten(0, shape[:2]).to(dtype)
                logits = self.counted(slide(sampled.contiguous(memory_format=torch.channels_last)), sigma)
                yield Part(logits[:, :, : len(rows), : len(columns)], rows, columns)

    def counted(self, logits: Tensor, sigma: float) -> Tensor:
        """The logits of windows of scale σ, as much as each of them counts."""
        return logits + 2 * self.area_power * math.log(sigma) if self.area_power else logits

    def _tile(self, part: Part) -> tuple[Tensor, int]:
        """What pools the places of a part, and how many they are."""
        return self.over_places(part.logits), part.logits.shape[2] * part.logits.shape[3]

    def _over_tiles(self, tiles: Sequence[tuple[Tensor, int]]) -> Tensor:
        values, counts = zip(*tiles, strict=True)
        if len(values) == 1:
            return values[0]  # (B, K)
        shares = torch.tensor(counts, dtype=values[0].dtype, device=values[0].device) / sum(counts)
        return OVER_TILES[self.places](torch.stack(values), shares)

    def _sampled(self, side: float) -> int:
        slack = 1e-9  # a side that is whole but for rounding must not gain a sample
        window = self.foveate.window
        samples = max(window, math.ceil(side - slack) + 2 * self.margin)
        if self.centred:  # an even number of steps of the backbone's stride from the first window to the last
            steps = 2 * self.stride
            samples = window + -(-(samples - window) // steps) * steps
        return samples

    def _reach(self, places: int) -> int:
        """The samples that the windows of so many neighbouring places see along an axis."""
        return self.stride * (places - 1) + self.foveate.window

    def _places(self, samples: int) -> int:
        """The places whose windows lie inside so many samples; a backbone of ours knows of more."""
        return (samples - self.foveate.window) // self.stride + 1

    def _seen_by(self, places: range, margin: int) -> range:
        """The samples of an axis that the windows of these places see, and some more on each side."""
        first = self.stride * places.start
        return range(first - margin, first + self._reach(len(places)) + margin)

    def _positions(self, sigma: float, side: int, samples: range, device: torch.device) -> Tensor:
        """Where these samples of a channel lie on an axis of the image."""
        steps = torch.arange(samples.start, samples.stop, dtype=most_digits(device), device=device)
        return (side - 1) / 2 + sigma * (steps - (self._sampled(side / sigma) - 1) / 2)

    def _smoothing(self, sigma: float, side: int, half_width: float, like: Tensor) -> Tensor | None:
        """What equalises the blur of a channel along an axis of the image, as in an image in one piece."""
        blur = self.foveate.blur
        if blur is None:
            return None
        margin = blur_margin(blur)
        samples = range(-margin, self._sampled(side / sigma) + margin)
        read = taps(self._positions(sigma, side, samples, like.device), half_width, half_width)
        return equalising(*read, sigma, blur).to(like)

    def _centres(self, sigma: float, side: int, places: range, like: Tensor) -> Tensor:
        """The centres of the windows of these places along an axis of the image."""
        first = (self.foveate.window - 1) / 2 - (self._sampled(side / sigma) - 1) / 2
        kind = torch.promote_types(like.dtype, torch.float32)
        steps = torch.arange(places.start, places.stop, dtype=kind, device=like.device) * self.stride
        return (side - 1) / 2 + sigma * (first + steps)

    def _rescaled(self, images: Tensor, sigma: float) -> Tensor:
        channel = self.foveate.grid.factors.index(sigma)
        size = self.sampled_size(images.shape[2:], sigma)
        return self.foveate.sampled(images, size, slice(channel, channel + 1))[:, 0]

    def _sliding(self, backbone: Any) -> list[Callable[..., Tensor]]:
        """What slides in each channel: the backbone, folded where it can be, with the channel's own norms."""
        if self.norm == "each":
            return [
                lambda channel, *kept, norms=norms: backbone.slid(_normed(channel, backbone, norms), *kept)
                for norms in self.norms
            ]
        slide = backbone.logit_map
        if not learning(backbone) and isinstance(backbone, ConvBackbone) and as_built(backbone):
            slide = convolutional(backbone, self.foveate.window, check=False).logit_map
        return [slide] * len(self.foveate.grid)

    def _jointly_normed(self, channels: Sequence[Tensor], backbone: Any) -> list[Tensor]:
        """All channels through the convolutions layer by layer, normalised as if they were one image."""
        maps = list(channels)
        for block in backbone.convolutions:
            for layer in block if type(block) is nn.Sequential and not changed(block) else (block,):
                if isinstance(layer, _BatchNorm):
                    maps = jointly_normed(maps, layer)  # type: ignore[arg-type]
                else:
                    maps = [_applied(layer, channel) for channel in maps]
        return maps


def _normed(channel: Tensor, backbone: Any, norms: nn.Module) -> Tensor:
    """One channel through the convolutions, with batch norms of its own."""
    for block, norm in zip(backbone.convolutions, norms, strict=True):  # type: ignore[call-overload]
        convolution, activation = block
        channel = _applied(activation, norm(convolution(channel)))
    return channel


def _applied(layer: nn.Module, channel: Tensor) -> Tensor:
    """A layer as it is now; a plain ReLU not in place, since maps may be views of one another."""
    return F.relu(channel) if type(layer) is nn.ReLU and untouched(layer) else layer(channel)


def _smoothed(planes: Tensor, kernels: Sequence[Tensor | None]) -> Tensor:
    """Planes (N, h, w) by a kernel along each axis, without what the kernels reach beyond: sums, since a
    convolution may round to ten bits on a GPU."""
    for axis, kernel in enumerate(kernels, start=1):
        if kernel is not None:
            length = planes.shape[axis] - len(kernel) + 1
            shifted = (planes.narrow(axis, first, length) * share for first, share in enumerate(kernel))
            planes = reduce(Tensor.add_, shifted)
    return planes


def _of_strongest(values: Tensor, places: Tensor) -> Tensor:
    """Of tiles' maxima (T, B, K) and their places (T, B, K, 2) the places of the largest (B, K, 2)."""
    return places.take_along_dim(values.argmax(0, keepdim=True)[..., None], 0)[0]


def _spans(count: int, most: int) -> list[range]:
    """Ranges of nearly equal length, at most `most` each, that make up range(count)."""
    pieces = -(-count // most)
    return [range(count * piece // pieces, count * (piece + 1) // pieces) for piece in range(pieces)]
