"""Images to windows: the one home of the centre, border, mirror and interpolation conventions.

Convention: output pixel j of channel σ, in a window of n pixels, samples the input at

    c + σ·(j − (n − 1)/2),    c = (H − 1)/2 unless centres are given,

in pixel-centre coordinates (pixel i covers [i − 1/2, i + 1/2]). No size is rounded, so σ = 1 is the plain
central crop where H − n is even, and scaling an image by σ shifts the stack exactly on an ideal signal.

Beyond the image (`inside`): its nearest border pixel, the image mirrored, or a constant. Between the pixels
(`taps`): bilinear, or a triangle as wide as the spacing of the samples, which averages what they skip.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import nullcontext
from functools import reduce
from typing import TYPE_CHECKING, Any, Literal, get_args

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from scalechannels.scales import ScaleGrid

Outside = Literal["border", "reflect", "constant"]
PADDING = {"border": "border", "reflect": "reflection", "constant": "border"}
"""What `grid_sample` calls it, where it knows it; a constant has one ring around the image, which goes on."""
WITHOUT_FLOAT64 = ("mps",)
"""Devices that have no float64: Apple's GPUs."""


class Foveate(nn.Module):
    """Images (B, C, H, W) to a stack of windows (B, S, C, n, n), one for each scale of the grid.

    grid       the scales of the channels
    window     n, the side of every window in pixels
    outside    what is seen beyond the image: its nearest "border" pixel, the image "reflect"ed (the edge
               pixel is not repeated), or a "constant", `fill`
    antialias  False: bilinear, as in the paper. True: triangle of half-width max(1, σ) input pixels, so that
               a coarse channel averages what it skips
    blur       None, or a variance in squared window pixels: every channel is smoothed until its
               interpolation blur and the added one sum to it (channels already beyond it stay as they are).
               Bilinear windows have about 1/(6σ²), anti-aliased ones about 1/6 for σ >= 1, and σ = 1 has 0
               where it is a plain crop: that jump is the bias towards channel 1 that the paper observed

    Law: a signal enlarged by σ about the centre looks in channel σ as the original does in channel 1.
    Limit: up to interpolation error, and only while the window sees no border.

    Example:
        >>> import torch
        >>> from scalechannels import Foveate, ScaleGrid
        >>> images = torch.rand(2, 3, 100, 150)
        >>> windows = Foveate(ScaleGrid.of(1, 2, 4), window=32)(images)
        >>> windows.shape                                       # (B, S, C, n, n)
        torch.Size([2, 3, 3, 32, 32])
        >>> crop = images[:, :, 34:66, 59:91]                   # what channel 1 sees
        >>> bool((windows[:, 0] - crop).abs().max() < 1e-4)
        True
    """

    spacing: Tensor
    """The grid on the images' device: a captured CUDA graph must not copy from the host."""

    def __init__(
        self,
        grid: ScaleGrid,
        window: int = 28,
        *,
        outside: Outside = "border",
        fill: float = 0.0,
        antialias: bool = False,
        blur: float | None = None,
    ) -> None:
        super().__init__()
        if not isinstance(grid, ScaleGrid):
            raise TypeError(
                f"grid must be a ScaleGrid, such as ScaleGrid.of(1, 2, 4); got {type(grid).__name__}"
            )
        if not isinstance(window, int) or window < 1:
            raise ValueError(f"window must be a whole number of at least 1; got {window!r}")
        if outside not in get_args(Outside):
            raise ValueError(f"outside must be one of {get_args(Outside)}; got {outside!r}")
        if blur is not None and not 0 < blur <= window**2:
            raise ValueError(
                f"blur must be None or positive, in squared window pixels, up to {window**2}, the square of "
                f"the window; got {blur!r}"
            )
        self.grid, self.window, self.outside, self.fill = grid, window, outside, fill
        self.antialias, self.blur = antialias, blur
        self.register_buffer("spacing", _spacing(grid, torch.empty(0).device), persistent=False)

    def _apply(self, fn: Any, recurse: bool = True) -> Foveate:
        """Follow the module to another device, but never to fewer digits: coordinates must stay exact."""
        device = fn(self.spacing.new_empty(0, dtype=torch.float32)).device
        self._buffers["spacing"] = None  # made again, not moved: the device may not have its type
        super()._apply(fn, recurse)
        self.spacing = _spacing(self.grid, device)
        return self

    if TYPE_CHECKING:  # torch says that a module gives anything

        def __call__(self, images: Tensor, centres: Tensor | None = None) -> Tensor: ...

    def forward(self, images: Tensor, centres: Tensor | None = None) -> Tensor:
        """Windows (B, S, C, n, n); `centres` (B, 2) are rows and columns, by default the image's centre."""
        require_images(images)
        if centres is not None and (centres.ndim != 2 or tuple(centres.shape) != (images.shape[0], 2)):
            raise ValueError(
                f"centres must be ({images.shape[0]}, 2), a row and a column for each image; "
                f"got {tuple(centres.shape)}"
            )
        return self.sampled(images, (self.window, self.window), centres=centres)

    def sampled(
        self,
        images: Tensor,
        size: tuple[int, int],
        channels: slice = slice(None),
        centres: Tensor | None = None,
    ) -> Tensor:
        """The same of some channels, through windows of another size: (B, S, C, *size)."""
        grid, dtype = self.grid[channels], images.dtype
        # Coordinates need more digits than half precision has: sample in float32, then come back.
        exact = images if dtype in (torch.float32, torch.float64) else images.float()
        if self.outside == "constant":  # one ring of the constant, whose border then goes on for ever
            exact = F.pad(exact, (1, 1, 1, 1), value=self.fill)
            centres = None if centres is None else centres + 1
        weighted = self.antialias or self.blur is not None or self.outside not in PADDING
        if weighted and centres is None and not torch.compiler.is_compiling():  # a graph keeps a free size
            sides = zip(exact.shape[2:], size, strict=True)
            down, across = (_reached(pixels, length, grid.maximum, self.blur) for pixels, length in sides)
            exact = exact[:, :, down, across]  # what windows reach
        spacing = self.spacing[channels]
        axes = [_Axis(exact, spacing, axis, length, centres) for axis, length in enumerate(size)]
        # There is no autocast for meta tensors.
        with nullcontext() if images.is_meta else torch.autocast(images.device.type, enabled=False):
            if weighted:
                return _weighted(exact, axes, grid, self).to(dtype)
            return _bilinear(exact, axes, self.outside).to(dtype)

    def arguments(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ("window", "outside", "fill", "antialias", "blur")}

    def extra_repr(self) -> str:
        return ", ".join(
            f"{name}={value!r}" for name, value in {"grid": self.grid, **self.arguments()}.items()
        )


def resample(
    images: Tensor, grid: ScaleGrid, size: tuple[int, int], *, centres: Tensor | None = None, **options: Any
) -> Tensor:
    """Images sampled at spacing σ about the centre: (B, S, C, *size). For `options` see Foveate."""
    return Foveate(grid, **options).sampled(images, size, centres=centres)


def require_images(images: Tensor, channels: int | None = None) -> None:
    """A clear error unless images are a non-empty floating (B, C, H, W), with C = channels if given."""
    if torch.jit.is_tracing():
        raise TypeError(
            "torch.jit.trace would keep the size of its example: use torch.export, or scalechannels export"
        )
    if not isinstance(images, Tensor):
        raise TypeError(f"images must be a torch.Tensor (B, C, H, W); got {type(images).__name__}")
    if images.ndim != 4:
        raise ValueError(f"images must have the shape (B, C, H, W); got {tuple(images.shape)}")
    if not images.is_floating_point():
        raise TypeError(f"images must be floating; got {images.dtype}. Convert with images.float() / 255")
    if 0 in images.shape:
        raise ValueError(f"images must not be empty; got {tuple(images.shape)}")
    if channels is not None and images.shape[1] != channels:
        takes, got = ({1: "grey", 3: "RGB"}.get(c, f"{c}-colour") for c in (channels, images.shape[1]))
        raise ValueError(f"this network takes {takes} images; got {got} images")


def most_digits(device: torch.device) -> torch.dtype:
    """The type of positions, float64, or float32 on a device that has no other."""
    return torch.float32 if device.type in WITHOUT_FLOAT64 else torch.float64


def _spacing(grid: ScaleGrid, device: torch.device) -> Tensor:
    return torch.tensor(grid.factors, dtype=most_digits(device), device=device)  # (S,)


class _Axis:
    """One axis of the sampling lattice: where each output pixel of each channel looks."""

    def __init__(
        self, images: Tensor, spacing: Tensor, axis: int, length: int, centres: Tensor | None
    ) -> None:
        self.size = images.shape[2 + axis]
        self.length, self.centred = length, centres is None
        self.spacing = spacing.to(images)[:, None]  # (S, 1)
        if centres is None:
            middle = images.new_full((1,), (self.size - 1) / 2)
        else:
            middle = centres[:, axis].to(images)
        self.centre = middle[:, None, None]  # (b, 1, 1), b = 1 or B

    def positions(self, margin: int = 0) -> Tensor:
        """Input coordinates (b, S, length + 2·margin); the margin continues the lattice on both sides."""
        kind: dict[str, Any] = {"dtype": self.spacing.dtype, "device": self.spacing.device}
        steps = torch.arange(-margin, self.length + margin, **kind) - (self.length - 1) / 2
        return self.centre + self.spacing * steps


def _bilinear(images: Tensor, axes: list[_Axis], outside: Outside) -> Tensor:
    B, C = images.shape[:2]
    down, across = axes
    lattice = grid_lattice(down.positions(), across.positions(), (down.size, across.size))
    b, S, h, w = lattice.shape[:4]
    sampled = F.grid_sample(
        images,
        lattice.reshape(b, S * h, w, 2).expand(B, -1, -1, -1),
        mode="bilinear",
        padding_mode=PADDING[outside],
        align_corners=True,
    )  # (B, C, S·h, w)
    return sampled.view(B, C, S, h, w).transpose(1, 2)


def _weighted(images: Tensor, axes: list[_Axis], grid: ScaleGrid, foveate: Foveate) -> Tensor:
    """The same lattice by dense weights, which can hold any kernel; separable, so one matrix an axis."""
    rows, columns = (_weights(axis, grid, foveate) for axis in axes)  # (b, S, h, H) …
    if len(rows) > 1:
        return torch.einsum("bshy,bcyx,bswx->bschw", rows, images, columns)
    parts = []
    for channels, widest in _parts(axes[0], grid.factors):
        down, across = (
            slice(None) if widest is None else _reached(axis.size, axis.length, widest, foveate.blur)
            for axis in axes
        )
        of_rows, of_columns = rows[0, channels, :, down], columns[0, channels, :, across]
        parts.append(torch.einsum("shy,bcyx,swx->bschw", of_rows, images[:, :, down, across], of_columns))
    return parts[0] if len(parts) == 1 else torch.cat(parts, 1)


def _parts(axis: _Axis, factors: Sequence[float]) -> list[tuple[slice, float | None]]:
    """Neighbouring channels that are multiplied together, each part with the largest σ in it.

    A channel of small σ reaches a small part of the image, and dense weights would multiply the rest by zero.
    None: any pixel may be reached, or it is for a graph or a GPU, which has no need.
    """
    on_cpu = axis.spacing.device.type == "cpu" and not torch.compiler.is_compiling()
    if not on_cpu or not axis.centred:
        return [(slice(None), None)]
    octaves: list[list[int]] = []  # the channels of each; alone, more calls would cost what they save
    for channel, sigma in enumerate(factors):
        if octaves and sigma / factors[octaves[-1][0]] < 1.999:
            octaves[-1].append(channel)
        else:
            octaves.append([channel])
    return [(slice(one[0], one[-1] + 1), factors[one[-1]]) for one in octaves]


def _reached(pixels: int, length: int, sigma: float, blur: float | None) -> slice:
    """Which pixels of an axis the window of scale σ about its centre can read.

    As many are left out on both sides, so that the centre stays the centre.
    """
    margin = blur_margin(blur)
    reach = sigma * ((length - 1) / 2 + margin) + max(1.0, sigma) + 1
    spare = max(0, math.floor((pixels - 1) / 2 - reach))
    return slice(spare, pixels - spare)


def _weights(axis: _Axis, grid: ScaleGrid, foveate: Foveate) -> Tensor:
    """Row j of channel s holds the weight of each input pixel in output pixel j: (b, S, length, size)."""
    margin = blur_margin(foveate.blur)
    positions = axis.positions(margin)  # (b, S, m)
    widest = max(1.0, grid.maximum) if foveate.antialias else 1.0
    half_width = axis.spacing.clamp_min(1) if foveate.antialias else 1.0
    pixels, weights = taps(positions, half_width, widest)  # (b, S, m, T)
    matrix = torch.zeros(*weights.shape[:3], axis.size, dtype=weights.dtype, device=weights.device)
    matrix = matrix.scatter_add(3, inside(pixels.long(), axis.size, foveate.outside), weights)
    if foveate.blur is None:
        return matrix
    kernels = equalising(pixels, weights, axis.spacing[..., 0], foveate.blur).to(matrix)
    return torch.einsum("bsjxk,bsk->bsjx", matrix.unfold(2, 2 * margin + 1, 1), kernels)


def equalising(pixels: Tensor, weights: Tensor, spacing: Tensor | float, blur: float) -> Tensor:
    """What smooths samples so far that they are blurred as much as is asked for: (…, 2·margin + 1).

    pixels, weights   what samples a spacing apart read, see `taps`: (…, m, T); their blur is the mean of all
    """
    from scalechannels.scale_space import discrete_gaussian_kernels

    spread = (weights * (pixels - (weights * pixels).sum(-1, keepdim=True)) ** 2).sum(-1)  # (…, m)
    missing = (blur - spread.mean(-1) / spacing**2).clamp_min(0)  # (…)
    missing = missing.to(most_digits(missing.device))
    kernels = discrete_gaussian_kernels(missing.flatten(), blur_margin(blur))
    return kernels.view(*missing.shape, -1)


def blur_margin(blur: float | None) -> int:
    """By how many pixels a window is continued on each side, so that it can be smoothed by this variance."""
    if blur is None:
        return 0
    from scalechannels.scale_space import discrete_gaussian_kernel

    return len(discrete_gaussian_kernel(blur)) // 2


def sample(
    image: Tensor,
    rows: Tensor,
    columns: Tensor,
    half_width: float,
    *,
    outside: Outside,
    fill: float,
    ends: Sequence[tuple[float, float]] | None = None,
) -> Tensor:
    """The image (C, H, W) at the product of two axes of positions (see `most_digits`): (C, h, w).

    ends    the lowest and the highest position of each axis, so that a GPU need not be asked for them

    Gathered pixel by pixel, which is made for many samples of a large image: coordinates keep their digits
    far from the first pixel, and the work grows with the samples, not with the image.
    """
    axes = []
    for dimension, positions, shape in ((1, rows, (-1, 1)), (2, columns, (-1,))):
        pixels, weights = taps(positions, half_width, half_width)  # (m, T)
        size, pixels = image.shape[dimension], pixels.long()
        if outside == "constant":
            weights = weights * ((pixels >= 0) & (pixels < size))
        pixels = inside(pixels, size, outside)
        if not torch.compiler.is_compiling():  # an exported graph knows no pixel numbers
            if ends is None:
                first, last = int(pixels.min()), int(pixels.max())
            else:
                first, last = _touched(*ends[dimension - 1], half_width, size, outside)
            image, pixels = image.narrow(dimension, first, last - first + 1), pixels - first
        axes.append((dimension, pixels, weights.to(image.dtype), shape))
    if outside == "constant":
        image = image - fill  # so that a weight of zero stands for the constant
    for dimension, pixels, weights, shape in axes:
        parts = (
            image.index_select(dimension, at) * weight.view(shape)
            for at, weight in zip(pixels.unbind(1), weights.unbind(1), strict=True)
        )
        image = reduce(Tensor.add_, parts)
    return image + fill if outside == "constant" else image


def _touched(low: float, high: float, half_width: float, size: int, outside: Outside) -> tuple[int, int]:
    """The first and the last pixel that samples between two positions may read; at most two too many."""
    first, last = math.floor(low - half_width) - 1, math.ceil(high + half_width) + 1
    if outside == "reflect":  # what is beyond comes back on the same side
        first, last = min(first, 2 * (size - 1) - last), max(last, -first)
    return min(max(first, 0), size - 1), min(max(last, 0), size - 1)


def taps(positions: Tensor, half_width: Tensor | float, widest: float) -> tuple[Tensor, Tensor]:
    """The pixels that samples at positions (…) read, beyond the image too, and their weights: (…, T) each.

    The weights are a triangle of this half-width, summing to 1; half-width 1 is bilinear.
    """
    wide = widest > 1
    first = (positions - half_width if wide else positions).floor()[..., None]
    count = math.ceil(2 * widest) + 1 if wide else 2
    pixels = first + torch.arange(count, dtype=positions.dtype, device=positions.device)
    half_width = half_width[..., None] if isinstance(half_width, Tensor) else half_width
    weights = (1 - (positions[..., None] - pixels).abs() / half_width).clamp_min(0)
    return pixels, weights / weights.sum(-1, keepdim=True)


def inside(pixels: Tensor, size: int, outside: Outside) -> Tensor:
    """Pixel indices beyond the image brought back into it; of a constant, its ring around the image."""
    return mirrored(pixels, size) if outside == "reflect" else pixels.clamp(0, size - 1)


def mirrored(pixels: Tensor, size: int | Tensor) -> Tensor:
    """Indices brought back into 0 … size − 1 by mirroring; the edge pixel is not repeated."""
    last = size - 1
    period = pixels.new_ones(()) * 2 * last  # a tensor: ONNX export with a free size needs one
    beyond = pixels.remainder(period + (period == 0)) - last  # a single pixel is its own mirror
    return last - torch.maximum(beyond, -beyond)  # with abs it would not compile


def grid_lattice(rows: Tensor, columns: Tensor, size: tuple[int, int]) -> Tensor:
    """Positions (…, h) and (…, w) in images of this size as the lattice (…, h, w, 2) of `grid_sample`."""
    y, x = (at * (2 / max(side - 1, 1)) - 1 for at, side in zip((rows, columns), size, strict=True))
    return torch.stack(torch.broadcast_tensors(x[..., None, :], y[..., :, None]), dim=-1)
