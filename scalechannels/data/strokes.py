"""Built-in digits: handwritten-like, drawn from parametric strokes and rendered analytically at any size.

No download, and the only data of the library whose rescaling is exact: a digit is geometry, and its image at
scale s is f((p - centre) / (28 s)) at the pixel centres p, with one f for all scales. So the image at scale
2s has exactly the values of the image at scale s at corresponding points, and true detail in between. The
limit: point sampling of f resolves its soft edge (standard deviation 7/8 pixel at scale 1) down to about
scale 1/2, as in MNIST Large Scale; below that, thin strokes begin to alias.

Units: the digit's box (28 pixels at scale 1) is the unit square, centred at 0; x to the right, y downwards.
Outside its box a digit is exactly background.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal, get_args

import torch
from torch import Tensor

from scalechannels.data.image_set import Split, require_one_of
from scalechannels.data.pictures import BACKGROUND, GAIN, MIDDLE

BOX = 28  # pixels of the unit square's side at scale 1
# The edge is a smoothstep with the standard deviation of MNIST Large Scale's blur (7/8 pixel at scale 1).
# Unlike a Gaussian it ends, so that whole tiles of an image can be skipped without changing a value.
EDGE = 7 / 8 / BOX * math.sqrt(28)  # full width; a smoothstep of width 1 has variance 1/28
EXTENT = 20 / BOX  # MNIST fits its digits into 20 of the 28 pixels
TILE = 8  # pixels; images are rendered in tiles of this side
SEGMENTS = 32  # line segments of every digit: at scale 8 the facets stay far below the edge's softness
# For each class its ways of writing, each a list of curves. A curve is smooth through its points (x, y);
# corners are where two curves meet. Written in a box of [-1, 1]²; the fit into the unit square comes last.
TEMPLATES: list[list[list[list[list[float]]]]] = [
    list(ways.values())
    for ways in json.loads(Path(__file__).with_name("stroke_templates.json").read_text("utf-8")).values()
]
POINTS = max(sum(map(len, curves)) for ways in TEMPLATES for curves in ways)
CLASSES = len(TEMPLATES)


@dataclass(frozen=True)
class Strokes:
    """A set of digits as geometry: line segments in digit units, half the pen's width, and the class."""

    segments: Tensor  # (N, SEGMENTS, 2, 2): start and end, x and y
    half_widths: Tensor  # (N,)
    labels: Tensor  # (N,) int64

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def values(self) -> Literal["digits"]:
        return "digits"

    def __getitem__(self, index: slice | Tensor) -> Strokes:
        if not isinstance(index, slice | Tensor):
            raise TypeError(f"a set of strokes is indexed by a slice or a tensor, not by {index!r}")
        return Strokes(self.segments[index], self.half_widths[index], self.labels[index])

    def render(
        self,
        scale: float | Tensor = 1.0,
        size: int = 112,
        centre: Tensor | None = None,
        device: torch.device | str | None = None,
    ) -> Tensor:
        """Images (N, 1, size, size) of the digits at `scale` (one, or one each), about the image's centre or
        about `centre` (N, 2), x and y in pixel-centre coordinates. Background -0.76, ink 0.76.

        Values depend only on (pixel - centre) / (28 scale), up to rounding (1e-5). Extra memory is bounded.
        """
        count = len(self)
        scales = torch.as_tensor(scale, dtype=torch.float64).cpu().expand(count)  # (N,)
        if not bool((scales.isfinite() & (scales > 0)).all()):
            raise ValueError(f"scale must be positive and finite; got {scale}")
        if size < 1:
            raise ValueError(f"size must be at least 1 pixel; got {size}")
        if centre is None:
            centre = torch.full((count, 2), (size - 1) / 2, dtype=torch.float64)
        if centre.shape != (count, 2):
            raise ValueError(
                f"centre must have shape ({count}, 2), x and y for each digit; got {tuple(centre.shape)}"
            )
        device = torch.device(device or "cpu")
        tiles = math.ceil(size / TILE)
        images = torch.empty(count, 1, size, size, device=device)
        # A chunk's temporaries stay in a CPU's cache: about as many tiles at every scale.
        touched = min(tiles, BOX * float(scales.mean()) / TILE + 1) ** 2
        chunk = max(8, int((8192 if device.type == "cpu" else 2**18) / touched))
        for first in range(0, count, chunk):
            part = slice(first, first + chunk)
            drawn = draw(self[part], scales[part], centre[part].double().cpu(), tiles, device)
            images[part, 0] = drawn[:, :size, :size]
        return images


def draw(digits: Strokes, scales: Tensor, centre: Tensor, tiles: int, device: torch.device) -> Tensor:
    """Images (N, tiles * TILE, tiles * TILE), drawn tile by tile.

    A tile far from the ink stays as it is; elsewhere a pixel needs only segments that can be nearest to it.
    """
    images = torch.full((len(digits) * tiles * tiles, TILE * TILE), BACKGROUND, device=device)
    unit = (BOX * scales).float().to(device)  # (N,) pixels per digit unit
    grid = torch.arange(tiles, dtype=torch.float64) * TILE + (TILE - 1) / 2
    middles = (grid[:, None] - centre[:, None, :]) / (BOX * scales)[:, None, None]
    middles_x, middles_y = middles.float().to(device).unbind(2)  # (N, tiles) of the tiles, in digit units
    radius = (TILE - 1) / 2 * math.sqrt(2) / unit  # (N,) from a tile's middle to its outermost pixel centre
    near_x, near_y = (middle.abs() < (0.5 + radius)[:, None] for middle in (middles_x, middles_y))
    image, row, column = torch.nonzero(near_y[:, :, None] & near_x[:, None, :], as_tuple=True)  # (M,) each
    place = (image * tiles + row) * tiles + column  # (M,)
    x, y = middles_x[image, column][:, None], middles_y[image, row][:, None]  # (M, 1)

    half_widths = digits.half_widths.float().to(device)
    starts, ends = digits.segments.float().to(device).unbind(2)  # (N, SEGMENTS, 2)
    halves, middle = (ends - starts) / 2, (starts + ends) / 2
    half_lengths = halves.norm(dim=2).clamp_min(1e-6)  # (N, SEGMENTS)
    cosines, sines = (halves / half_lengths[:, :, None]).unbind(2)
    middle_along = middle[:, :, 0] * cosines + middle[:, :, 1] * sines
    middle_across = middle[:, :, 1] * cosines - middle[:, :, 0] * sines
    # Position of each tile's middle along and across each segment, seen from the segment's own middle.
    cosine, sine, half_length, shift_along, shift_across = (
        part[image] for part in (cosines, sines, half_lengths, middle_along, middle_across)
    )  # (M, SEGMENTS)
    along = (x * cosine).addcmul_(y, sine).sub_(shift_along)
    across = (y * cosine).addcmul_(x, sine, value=-1).sub_(shift_across)
    distance = torch.hypot(along.abs().sub_(half_length).relu_(), across)  # (M, SEGMENTS)

    nearest = distance.amin(1)  # (M,)
    reach, margin = (half_widths + EDGE / 2)[image], radius[image]
    limit = torch.minimum(nearest + 2 * margin, reach + margin)
    # How many segments some pixel of the tile can be nearest to; none where the tile is background.
    needed = (distance <= limit[:, None]).sum(1)  # (M,)
    offsets = torch.arange(TILE, device=device) - (TILE - 1) / 2
    steps_x, steps_y = offsets.repeat(TILE), offsets.repeat_interleave(TILE)  # (TILE²,)
    fewest = 0
    for most in (2, 4, 6, 8, 12, 16, 24, SEGMENTS):
        chosen = torch.nonzero((needed > fewest) & (needed <= most))[:, 0]  # (m,)
        fewest = most
        if not len(chosen):
            continue
        nearby = distance[chosen].topk(most, dim=1, largest=False, sorted=False).indices
        which = (nearby + chosen[:, None] * SEGMENTS)[:, :, None]  # (m, most, 1)
        pixel = 1 / unit[image[chosen]][:, None, None]
        c, s = torch.take(cosine, which) * pixel, torch.take(sine, which) * pixel
        t = (torch.take(along, which) + c * steps_x).add_(s * steps_y)  # (m, most, TILE²)
        t = t.abs_().sub_(torch.take(half_length, which)).relu_()  # how far beyond the segment's ends
        d = (torch.take(across, which) + c * steps_y).sub_(s * steps_x)  # and beside it
        squared = d.square_().addcmul_(t, t).amin(1)  # (m, TILE²)
        images[place[chosen]] = intensity(squared.sqrt_(), half_widths[image[chosen]][:, None])
    side = tiles * TILE
    return images.view(-1, tiles, tiles, TILE, TILE).transpose(2, 3).reshape(-1, side, side)


def step(t: Tensor) -> Tensor:
    """-1/2 for t <= -1/2, 1/2 for t >= 1/2, between them a smooth quintic; odd, so rounding is small."""
    t = t.clamp(-0.5, 0.5)
    squared = t * t
    return t.mul_((6 * squared).sub_(5).mul_(squared).add_(15 / 8))


def intensity(distance: Tensor, half_width: Tensor) -> Tensor:
    """Grey value at a distance from the pen's path: a blurred line, stretched to [0, 255], then the arctan of
    MNIST Large Scale. Both edges of the line count, so thin strokes have no crease along their middle."""
    ink = step((half_width - distance) / EDGE).add_(step((half_width + distance) / EDGE))
    peak = 2 * step(half_width / EDGE)
    return ink.mul_(GAIN * 255 / peak).sub_(GAIN * MIDDLE).atan_().mul_(2 / math.pi)


def strokes(count: int, seed: int = 0, split: Split = "train", variation: float = 1.0) -> Strokes:
    """`count` digits of random shape, slant, aspect, rotation, pen width and place, the same ones everywhere.

    Every ten consecutive digits hold each class once, and a smaller set is the beginning of a larger one with
    the same seed (up to rounding, 1e-12). The splits of one seed, and all splits of different seeds, are
    drawn from different random streams: stream number 3 seed + (0 train, 1 validation, 2 test).

    variation: 1 is handwriting, 0 the bare templates (in their several ways of writing).
    """
    if count < 1:
        raise ValueError(f"count must be at least 1; got {count}")
    require_one_of(Split, split=split)
    # The CPU generator takes 32 bits, and streams must not wrap around into each other.
    if not 0 <= seed < 2**30:
        raise ValueError(f"seed must be at least 0 and below 2^30; got {seed}")
    if not 0 <= variation <= 1:
        raise ValueError(f"variation must be in [0, 1]; got {variation}")
    generator = torch.Generator().manual_seed(3 * seed + get_args(Split).index(split))
    blocks = math.ceil(count / CLASSES)
    draws = torch.rand(blocks * CLASSES, 24 + 2 * POINTS, generator=generator, dtype=torch.float64)
    labels = draws[:, 0].view(blocks, CLASSES).argsort(1).flatten()[:count]
    draws = draws[:count]
    # Uniform numbers only: they are the same on every platform, which normal ones are not.
    signed = (2 * draws - 1) * variation
    segments = torch.empty(count, SEGMENTS, 2, 2, dtype=torch.float64)
    for label, ways in enumerate(TEMPLATES):
        way = (draws[:, 1] * len(ways)).long()
        for index in range(len(ways)):
            chosen = torch.nonzero((labels == label) & (way == index))[:, 0]  # (n,)
            points, weights = template(label, index)
            jitter = signed[chosen, 24 : 24 + 2 * len(points)].view(-1, len(points), 2)
            segments[chosen] = torch.einsum("sep,npx->nsex", weights, points + 0.08 * jitter)
    half_widths = 0.054 + 0.025 * signed[:, 2]
    return Strokes(fit(deform(segments, signed[:, 3:16]), half_widths, signed[:, 16:24]), half_widths, labels)


def catmull_rom(count: int, positions: Tensor) -> Tensor:
    """Weights of `count` points that give a smooth curve through them at `positions` in [0, count - 1]."""
    start = positions.floor().clamp(max=count - 2)
    t = positions - start
    rows = torch.zeros(len(positions), count + 2, dtype=torch.float64)
    kernel = (-t + 2 * t**2 - t**3, 2 - 5 * t**2 + 3 * t**3, t + 4 * t**2 - 3 * t**3, t**3 - t**2)
    for offset, weight in enumerate(kernel):
        rows.scatter_(1, (start.long() + offset)[:, None], weight[:, None] / 2)
    # The points beyond both ends continue the curve straight on: p[-1] = 2 p[0] - p[1].
    inner = rows[:, 1:-1].clone()
    inner[:, 0] += 2 * rows[:, 0]
    inner[:, 1] -= rows[:, 0]
    inner[:, -1] += 2 * rows[:, -1]
    inner[:, -2] -= rows[:, -1]
    return inner  # (positions, count)


@cache
def template(label: int, way: int) -> tuple[Tensor, Tensor]:
    """Control points (P, 2) of one way to write a class, and the weights (SEGMENTS, 2, P) of segments' ends.

    A Catmull-Rom curve is linear in its control points, so many jittered digits are one matrix product.
    """
    curves = [torch.tensor(curve, dtype=torch.float64) for curve in TEMPLATES[label][way]]
    fine = [
        catmull_rom(len(c), torch.linspace(0, len(c) - 1, 40 * len(c), dtype=torch.float64)) for c in curves
    ]
    lengths = [(w @ c).diff(dim=0).norm(dim=1).cumsum(0) for w, c in zip(fine, curves, strict=True)]
    total = sum(float(length[-1]) for length in lengths)
    shares = [max(1, round(SEGMENTS * float(length[-1]) / total)) for length in lengths]
    shares[shares.index(max(shares))] += SEGMENTS - sum(shares)
    weights = torch.zeros(SEGMENTS, 2, sum(map(len, curves)), dtype=torch.float64)
    segment = point = 0
    for curve, length, share in zip(curves, lengths, shares, strict=True):
        # Segments of equal length, so that none is spent where the points happen to lie close.
        wanted = torch.linspace(0, 1, share + 1, dtype=torch.float64) * length[-1]
        positions = torch.searchsorted(length, wanted).clamp(max=len(length) - 1) / (len(length) - 1)
        ends = catmull_rom(len(curve), positions.double() * (len(curve) - 1))
        weights[segment : segment + share, 0, point : point + len(curve)] = ends[:-1]
        weights[segment : segment + share, 1, point : point + len(curve)] = ends[1:]
        segment, point = segment + share, point + len(curve)
    return torch.cat(curves), weights


def deform(segments: Tensor, amounts: Tensor) -> Tensor:
    """Bend, slant, stretch and rotate: smooth maps of the plane, so strokes that touch stay together."""
    a = amounts[:, :, None, None]  # (N, amounts, 1, 1)
    x, y = segments.unbind(3)  # (N, SEGMENTS, 2)
    bent_x = x + 0.17 * a[:, 0] * torch.sin(2.5 * y + 2 * a[:, 1]) + 0.18 * a[:, 2] * x * y
    bent_y = y + 0.17 * a[:, 3] * torch.sin(2.5 * x + 2 * a[:, 4]) + 0.18 * a[:, 5] * y * y
    slanted = bent_x * torch.exp(0.34 * a[:, 6]) - (0.1 + 0.34 * a[:, 7]) * bent_y
    angle = 0.13 * (a[:, 8] + a[:, 9])
    cosine, sine = torch.cos(angle), torch.sin(angle)
    return torch.stack((cosine * slanted - sine * bent_y, sine * slanted + cosine * bent_y), 3)


def fit(segments: Tensor, half_widths: Tensor, amounts: Tensor) -> Tensor:
    """Centre the digits and bring their longer side, pen included, to 0.8 to 1 times MNIST's 20 pixels."""
    low, high = segments.amin((1, 2)), segments.amax((1, 2))  # (N, 2)
    longest = (high - low).amax(1)  # (N,)
    wanted = EXTENT * (0.9 + 0.1 * amounts[:, 0]) - 2 * half_widths
    shift = amounts[:, 1:3] / BOX  # up to one pixel
    place = (segments - ((low + high) / 2)[:, None, None]) * (wanted / longest)[:, None, None, None]
    return place + shift[:, None, None]
