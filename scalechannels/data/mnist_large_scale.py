"""MNIST Large Scale: MNIST digits at any size in 112 x 112 images, made as the paper's appendix says.

    digit (28, 28) ──rescale by s──▶ clip [0, 256] ──embed──▶ (112, 112) ──discrete Gaussian, σ = 7/8·s──▶
    stretch to [0, 255] ──▶ (2/π)·arctan(0.02·(I − 128)), from −0.76 (background) to 0.76

The published files are restricted, so these images are remade: the same recipe, with these choices taken
where it leaves them open.
- Bicubic kernel, pixel centres, anti-aliasing below 1: see `rescale`. The digit lies on a black background
  without end, so rescaling and embedding in the frame are one step.
- Stretch: for each image, its darkest pixel to 0 and its brightest to 255. A set-wide stretch would leave
  thin digits at small sizes, which smoothing makes faint, near the background.
- Border of the smoothing: the paper embeds (crops) first and smooths then, so what lies outside the frame is
  gone. The frame is mirrored at its border (edge pixel not repeated). Zeros there would draw a dark frame
  some σ = 7/8·s pixels wide across every digit that leaves the image, which happens from about s = 4 on.
  Where the digit ends well inside the frame the border makes no difference.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

import numpy as np
import torch
from torch import Tensor

from scalechannels.data.image_set import ImageSet
from scalechannels.data.rescale import KERNEL_RADIUS, as_scales, full_precision, rescaling_matrices
from scalechannels.data.sources import Mnist, load_mnist

SIZE = 112
TEST_SIZES = tuple(2 ** (k / 4) for k in range(-4, 13))  # 1/2 to 8
TRAINING_SCALES: tuple[float | tuple[float, float], ...] = (1.0, 2.0, 4.0, (1.0, 2.0), (2.0, 4.0), (1.0, 4.0))
SMOOTHING = 7 / 8  # standard deviation over scale factor
GAIN, MIDDLE = 0.02, 128  # a and b of the arctan
BACKGROUND = 2 / math.pi * math.atan(GAIN * (0 - MIDDLE))  # −0.763

Split = Literal["train", "validation", "test"]


@dataclass(frozen=True)
class LargeScaleSpec:
    """Which set: a split of MNIST, at one scale or log-uniform in a range, whole or a balanced subset of it.

    `seed` draws the scales of a range and the subset. Subsets of one seed are nested: a smaller one is the
    beginning of a larger one, image by image and with the same scales.
    """

    split: Split
    scale: float | tuple[float, float] = 1.0
    seed: int = 0
    samples: int | None = None
    size: int = SIZE

    def __post_init__(self) -> None:
        if self.split not in get_args(Split):
            raise ValueError(f"a split among {get_args(Split)} is needed, got {self.split!r}")
        low, high = self.range
        if not 0 < low <= high < math.inf:
            raise ValueError(f"a positive scale, or a range (low, high) of them, is needed, got {self.scale}")
        if self.samples is not None and self.samples < 1:
            raise ValueError(f"one sample or more is needed (or None for all), got {self.samples}")
        if self.size < 1:
            raise ValueError(f"an image size of one pixel or more is needed, got {self.size}")

    @property
    def range(self) -> tuple[float, float]:
        return self.scale if isinstance(self.scale, tuple) else (self.scale, self.scale)


class MnistLargeScale:
    """Makes the sets that a `LargeScaleSpec` names from MNIST, on any device.

    The first 50,000 images of MNIST's training set are for training, its last 10,000 for validation, and its
    test set is for testing. (Of other data in MNIST's form, the first 5/6.)
    """

    def __init__(
        self,
        root: Path | str | None = None,
        *,
        mnist: Mnist | None = None,
        device: torch.device | str = "cpu",
    ) -> None:
        self.mnist = load_mnist(root) if mnist is None else mnist
        self.device = torch.device(device)

    def count(self, split: Split) -> int:
        """How many images a split has."""
        return len(self._split(LargeScaleSpec(split))[1])

    def make(self, spec: LargeScaleSpec) -> ImageSet:
        images, labels, uniform = self._split(spec)
        low, high = spec.range
        scales = low * (high / low) ** uniform  # uniform on a logarithmic scale
        if spec.samples is not None:
            chosen = balanced_subset(labels, spec.samples, spec.seed)
            images, labels, scales = images[chosen], labels[chosen], scales[chosen]
        images = images.to(self.device)
        made = large_scale(images, low if low == high else scales, spec.size)
        return ImageSet(made, labels.to(self.device), scales.to(self.device))

    def _split(self, spec: LargeScaleSpec) -> tuple[Tensor, Tensor, Tensor]:
        """Images, labels, and each image's draw in [0, 1), set by its place in MNIST and by the seed."""
        first, count = len(self.mnist.train_images) * 5 // 6, len(self.mnist.train_images)
        draws = torch.rand(
            count + len(self.mnist.test_images),
            generator=torch.Generator().manual_seed(spec.seed),
            dtype=torch.float64,
        )
        if spec.split == "test":
            return self.mnist.test_images, self.mnist.test_labels, draws[count:]
        part = slice(0, first) if spec.split == "train" else slice(first, count)
        return self.mnist.train_images[part], self.mnist.train_labels[part], draws[part]


def large_scale(
    images: Tensor, scale: float | Tensor, size: int = SIZE, *, chunk: int | None = None
) -> Tensor:
    """Digits (N, n, n), 0 to 255, at one scale or at one each, as (N, 1, size, size) float32 on their device.

    Made `chunk` images at a time: few on a CPU, so that what is in between stays in its cache, many on a GPU.
    """
    if images.ndim != 3 or images.shape[-1] != images.shape[-2]:
        raise ValueError(f"grey square images (N, n, n) are needed, got the shape {tuple(images.shape)}")
    if size < 1:
        raise ValueError(f"an image size of one pixel or more is needed, got {size}")
    scales = as_scales(scale, len(images), images.device)
    on_cpu = images.device.type == "cpu"
    chunk = chunk or (64 if on_cpu else 1024)
    # numpy asks for large pages, which the system hands out several times faster.
    shape = (len(images), 1, size, size)
    result = (
        torch.from_numpy(np.empty(shape, np.float32)) if on_cpu else torch.empty(shape, device=images.device)
    )
    with full_precision():
        if len(scales) == 1:
            maps = _maps(scales, images.shape[-1], size)
            for start in range(0, len(images), chunk):
                part = slice(start, start + chunk)
                _make(images[part], maps, result[part, 0])
        else:
            # Similar scales go together: a chunk is computed in a frame that fits its largest digit.
            for chosen in scales.argsort().split(chunk):
                made = result.new_empty(len(chosen), size, size)
                _make(images[chosen], _maps(scales[chosen], images.shape[-1], size), made)
                result[chosen, 0] = made
    return result


def balanced_subset(labels: Tensor, samples: int, seed: int) -> Tensor:
    """Indices of `samples` images, as even over the classes as can be; a beginning of every larger subset.

    The images of each class are shuffled by the seed and then dealt in turns.
    """
    if samples > len(labels):
        raise ValueError(f"there are {len(labels)} images, {samples} were asked for")
    shuffled = torch.randperm(len(labels), generator=torch.Generator().manual_seed(seed))
    turns = torch.zeros_like(shuffled)
    for label in labels.unique():
        of_class = (labels[shuffled] == label).nonzero()[:, 0]
        turns[of_class] = torch.arange(len(of_class))
    # Within a turn the classes keep the shuffled order, so that no class is always the one left out.
    return shuffled[turns.argsort(stable=True)][:samples]


def smoothing_factors(variances: Tensor, size: int) -> tuple[Tensor, Tensor]:
    """Smoothing of `size` pixels by the discrete Gaussian, mirrored at the border, as two factors in float64:
    image to frequencies, damped (S, frequencies, size), and back (1, size, frequencies).

    Cosines are the eigenvectors of every mirrored convolution, and the discrete Gaussian of variance t has
    the eigenvalue exp(t (cos θ − 1)) at the frequency θ. So the infinite kernel is applied without a cut, at
    a cost that does not depend on t. Equal to `scale_space.discrete_gaussian_kernel`, mirrored.
    """
    if size == 1:  # one pixel and its mirror images: nothing to smooth
        return variances.new_ones(len(variances), 1, 1).double(), variances.new_ones(1, 1, 1).double()
    pixels = torch.arange(size, dtype=torch.float64, device=variances.device)
    theta = math.pi / (size - 1) * pixels
    cosines = torch.cos(theta * pixels[:, None])  # (size, frequencies), symmetric
    ends = torch.ones_like(pixels)
    ends[[0, -1]] = 0.5  # with its mirror image an edge pixel counts once, every other one twice
    eigenvalues = torch.exp(variances.double()[:, None] * (torch.cos(theta) - 1))  # (S, frequencies)
    return (eigenvalues * ends)[..., None] * cosines * (2 / (size - 1) * ends), cosines[None]


def _maps(scales: Tensor, digit: int, size: int) -> tuple[Tensor, ...]:
    """The matrices of each scale, to be applied in turn to rows and columns; the first one rescales.

    They are cut to what is not background: the rescaled digit lies in `support` pixels, the smoothed one in
    `frame` pixels about the centre. Where smoothing leaves few frequencies, its matrix comes in two factors,
    image to frequencies and back, which is less to multiply.
    """
    largest, smallest = float(scales.max()), float(scales.min())
    half = largest * (digit - 1) / 2 + KERNEL_RADIUS * max(1.0, largest)
    support = min(size, 2 * math.ceil(half) + size % 2)
    spread = math.ceil(5 * SMOOTHING * largest) + 2  # what is beyond it weighs less than 1e-6
    frame = min(size, support + 2 * spread)
    rescaling = rescaling_matrices(scales, digit, support)
    analysis, synthesis = smoothing_factors((SMOOTHING * scales) ** 2, frame)
    analysis = analysis[..., (frame - support) // 2 :][..., :support]
    kept = math.ceil(frame * 5.3 / (math.pi * SMOOTHING * smallest))  # eigenvalues beyond are below 1e-6
    if 2 * kept > frame:
        maps = [rescaling, synthesis @ analysis]
    else:
        maps = [rescaling, analysis[:, :kept], synthesis[..., :kept]]
    # A matrix that all images share goes without the axis of images: one large product, not many small ones.
    return tuple(matrix.float()[0] if len(matrix) == 1 else matrix.float() for matrix in maps)


def _make(digits: Tensor, maps: tuple[Tensor, ...], result: Tensor) -> None:
    """Writes the images of a chunk of digits (N, n, n) into `result` (N, size, size)."""
    rescaling, *smoothing = maps
    images = (rescaling @ digits.float() @ rescaling.mT).clamp_(0, 256)  # (N, support, support)
    for matrix in smoothing:
        images = matrix @ images @ matrix.mT  # finally (N, frame, frame)
    darkest = images.amin((1, 2), keepdim=True)
    contrast = images.amax((1, 2), keepdim=True) - darkest
    gain = torch.where(contrast > 1e-3, 255 * GAIN / contrast, 0)  # an empty image stays background
    images.mul_(gain).sub_(darkest * gain + GAIN * MIDDLE)
    if images.device.type == "cpu":
        np.arctan(
            images.numpy(), out=images.numpy()
        )  # uses wider registers than torch's: several times faster
    else:
        images.atan_()
    margin = (result.shape[-1] - images.shape[-1]) // 2
    if margin:
        result.fill_(BACKGROUND)
    inside = slice(margin, result.shape[-1] - margin)
    torch.mul(images, 2 / math.pi, out=result[:, inside, inside])
