"""training.detail: objects of fewer pixels than any training image has, made by blurring those with more.

Tested at half of the training size, channel σ/2 sees the object in its window as channel σ saw it in
training, but from half as many pixels. No training image looks like that. So the windows of a training image
are turned into those of the picture that was made smaller by a random share f.

Law: window σ of an image, blurred for f, is close to window σ·f of the image made smaller by f. Along an
axis a window is F x of the image's pixels x, and what is wanted is T A x, where A makes the picture smaller
and T is the window of scale σ·f. So the blurred window is M F x, with the matrix M that brings it closest
to T A x in the mean over images of covariance C:

    M = T A C Fᵀ (F C Fᵀ + NOISE)⁻¹,    its rows then divided by their sums.

That undoes as far as possible what interpolation has done to the window, and guesses what lies beyond it.

Limits: a channel that has a pixel of the smaller picture for each of its own (f·σ >= 1) stays as it is; what
happens to the grey values after rescaling, as in MNIST Large Scale, is left out; pictures have an even number
of pixels, so that their centre lies between two of them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from scalechannels.data.rescale import KERNEL_RADIUS, rescaling_matrices
from scalechannels.sampling import Foveate, blur_margin
from scalechannels.scales import ScaleGrid

RATIO = 2**-0.25
"""Between neighbouring shares: each has its matrices, so they lie on a grid."""
LENGTH = 4.0
"""Pixels at distance d of an image correlate as exp(−(d / LENGTH)^p), a guess that need not be good."""
ROUGH, SMOOTH = 1.0, 1.8
"""The power p of pictures as a camera takes them, and of smoothed ones."""
NOISE = 1e-3
"""The variance of what windows do not show, rounding among it: it keeps the weights of M small."""


class Detail(nn.Module):
    """Takes detail from every second image of windows (R, B, S, n, n, C), each run by its own measure.

    foveates   for each run what made its windows; they differ in how they are sampled, not in their grid
    detail     for each run the smallest share of the picture's pixels, along its side; 1 leaves all of them
    smooth     the images are blurred in proportion to their size, as MNIST Large Scale and the built-in
               digits are: a smaller one is a mere sample of a larger one. Else what falls into one of its
               pixels is averaged, as in rescaled CIFAR-10
    """

    matrices: Tensor
    counts: Tensor

    def __init__(self, foveates: Sequence[Foveate], detail: Sequence[float], *, smooth: bool) -> None:
        super().__init__()
        grid, window = foveates[0].grid, foveates[0].window
        if any(tuple(other.grid) != tuple(grid) or other.window != window for other in foveates):
            raise ValueError("runs that are blurred together have windows of one grid and one size")
        smallest = min(detail)
        if not 0 < smallest <= max(detail) <= 1:
            raise ValueError(f"the smallest share of pixels is in (0, 1], got {list(detail)}")
        shares = [coarser_shares(share) for share in detail]
        # Wider channels stay as they are.
        self.touched = sum(not _has_all(sigma, smallest) for sigma in grid)
        most = max(map(len, shares))
        matrices = torch.eye(window, dtype=torch.float64)
        matrices = matrices.repeat(len(detail), most + 1, self.touched, 1, 1)  # (R, K, S', n, n)
        for run, (foveate, own) in enumerate(zip(foveates, shares, strict=True)):
            if own and self.touched:
                scales = list(grid)[: self.touched]
                matrices[run, 1 : len(own) + 1] = blurring_matrices(foveate, scales, own, smooth)
        self.register_buffer("matrices", matrices.float(), persistent=False)
        counts = torch.tensor([len(own) for own in shares])[:, None]  # (R, 1)
        self.register_buffer("counts", counts, persistent=False)

    def forward(self, windows: Tensor, *_: Tensor) -> Tensor:
        return self.blurred(windows, self.drawn(windows))

    def drawn(self, windows: Tensor) -> Tensor:
        """Which share each image (R, B) keeps: 0, all of it, for every second one, else any of the others."""
        shape = windows.shape[:2]
        whole = torch.rand(shape, device=windows.device) < 0.5
        other = (torch.rand(shape, device=windows.device) * self.counts).long()
        other = torch.minimum(other, self.counts - 1) + 1  # of no other share: 0
        return torch.where(whole, 0, other)

    def blurred(self, windows: Tensor, share: Tensor) -> Tensor:
        """The windows of pictures that keep the share of each number (R, B): 0 for all, then `shares`."""
        run = torch.arange(len(windows), device=windows.device)[:, None]  # (R, 1)
        chosen = self.matrices[run, share]  # (R, B, S', n, n)
        seen = windows[:, :, : chosen.shape[2]]
        # In half precision the weights' errors would be a pattern on what is even.
        kind = windows.dtype if windows.dtype in (torch.float32, torch.float64) else torch.float32
        chosen = chosen.to(kind)
        with torch.autocast(windows.device.type, enabled=False):
            made = torch.einsum("rbsij,rbsjkc,rbslk->rbsilc", chosen, seen.to(kind), chosen)
        return torch.cat([made.to(windows.dtype), windows[:, :, chosen.shape[2] :]], 2)


class ImageDetail(Detail):
    """The same for networks without windows: images (R, B, C, n, n) are windows of scale 1 that show all.

    Law: blurred for f, it is the image made smaller by f and enlarged again.
    """

    def __init__(self, side: int, detail: Sequence[float], *, smooth: bool) -> None:
        super().__init__([Foveate(ScaleGrid.of(1.0), side)] * len(detail), detail, smooth=smooth)

    def forward(self, images: Tensor, *_: Tensor) -> Tensor:
        windows = images[:, :, None].movedim(3, -1)  # (R, B, 1, n, n, C)
        return super().forward(windows).movedim(-1, 3)[:, :, 0]


def coarser_shares(detail: float) -> list[float]:
    """The shares below 1 down to `detail`, in equal ratios but for the last; none at 1."""
    steps = math.ceil(math.log(detail, RATIO) - 1e-6)
    return [RATIO**step for step in range(1, steps)] + [detail] * (steps > 0)


def blurring_matrices(
    foveate: Foveate, scales: Sequence[float], shares: Sequence[float], smooth: bool
) -> Tensor:
    """The matrix M of each share and each scale (see above), float64 (K, S, n, n)."""
    margin = blur_margin(foveate.blur)
    seen = foveate.window / 2 + margin + 2  # window pixels from the centre on
    pixels = 2 * math.ceil(max(scales) * seen + (KERNEL_RADIUS + 1) / min(shares))
    places = torch.arange(pixels, dtype=torch.float64)
    power = SMOOTH if smooth else ROUGH
    covariance = (-(((places[:, None] - places).abs() / LENGTH) ** power)).exp()  # (pixels, pixels)
    window = _axis_weights(foveate, scales, pixels)  # (S, n, pixels)
    known = window @ covariance @ window.mT  # (S, n, n)
    known = known + NOISE * torch.eye(foveate.window, dtype=torch.float64)
    result = torch.empty(len(shares), *known.shape, dtype=torch.float64)
    for made, share in zip(result, shares, strict=True):
        count = 2 * math.ceil(max(scales) * share * seen + 1)
        smaller = rescaling_matrices(
            torch.tensor([share], dtype=torch.float64),
            pixels,
            count,
            continuation="border",
            antialias=not smooth,
        )[0]  # (count, pixels)
        wanted = _axis_weights(foveate, [sigma * share for sigma in scales], count) @ smaller
        made[:] = torch.linalg.solve(known, window @ covariance @ wanted.mT).mT
        for channel, sigma in enumerate(scales):
            if _has_all(sigma, share):
                made[channel] = torch.eye(foveate.window)
    return result / result.sum(3, keepdim=True)


def _axis_weights(foveate: Foveate, scales: Sequence[float], pixels: int) -> Tensor:
    """What each pixel of an axis weighs in the windows of these scales, float64 (S, n, pixels)."""
    grid = ScaleGrid.of(*scales)
    look = Foveate(grid, foveate.window, antialias=foveate.antialias, blur=foveate.blur)
    impulses = torch.eye(pixels, dtype=torch.float64)[:, None, :, None]  # images of one column each
    return look(impulses)[:, :, 0, :, 0].permute(1, 2, 0)


def _has_all(sigma: float, share: float) -> bool:
    """Whether a picture made smaller has a pixel for each one of the channel's window."""
    return sigma * share >= 1 - 1e-9
