"""How long MNIST Large Scale takes to make, beside a plain loop over images, in one run.

    python -m benchmarks.data_generation [--device cuda] [--output FILE]

The loop is what one would write first: Pillow's bicubic resize, clip, pad or crop, two passes of a scipy
convolution with the Bessel kernel, stretch and arctan. Both make all 10,000 images and take turns; the median
counts. (For a few images the loop would use its memory again and be faster.) The generator shares its work
between the cores, so another program on one of them slows it more than the loop: `load_average` says whether
the machine was busy. The digits are synthetic: no value changes the amount of work. Without Pillow and scipy
the loop is left out.
"""

from __future__ import annotations

import math
import statistics
from typing import Any

import numpy as np
import torch

from benchmarks.measure import environment, options, seconds, write
from scalechannels.data.mnist_large_scale import TRAINING_SCALES, large_scale
from scalechannels.data.sizes import MNIST_SIZES

IMAGES = 10_000
SIZES = (1.0, 2.0, 4.0, 8.0)


def digits(count: int) -> torch.Tensor:
    images = torch.zeros(count, 28, 28, dtype=torch.uint8)
    random = torch.Generator().manual_seed(0)
    images[:, 4:24, 4:24] = torch.randint(0, 256, (count, 20, 20), generator=random, dtype=torch.uint8)
    return images


def one_image(digit: np.ndarray, scale: float) -> np.ndarray:
    """The recipe for one image as one would write it first."""
    from PIL import Image
    from scipy.ndimage import convolve1d
    from scipy.special import ive

    size = round(28 * scale)
    resized = Image.fromarray(digit.astype(np.float32)).resize((size, size), Image.Resampling.BICUBIC)
    clipped = np.clip(np.asarray(resized), 0, 256)
    inside = min(size, 112)
    crop, margin = (size - inside) // 2, (112 - inside) // 2
    frame = np.zeros((112, 112))
    frame[margin : margin + inside, margin : margin + inside] = clipped[crop:, crop:][:inside, :inside]
    variance = (7 / 8 * scale) ** 2
    radius = math.ceil(5 * math.sqrt(variance)) + 2  # the generator leaves out as much
    kernel = ive(np.abs(np.arange(-radius, radius + 1)), variance)
    kernel = kernel / kernel.sum()
    smoothed = convolve1d(convolve1d(frame, kernel, axis=0, mode="mirror"), kernel, axis=1, mode="mirror")
    stretched = 255 * (smoothed - smoothed.min()) / (smoothed.max() - smoothed.min())
    return (2 / np.pi * np.arctan(0.02 * (stretched - 128))).astype(np.float32)


def plain_loop(images: np.ndarray, scale: float) -> np.ndarray:
    return np.stack([one_image(digit, scale) for digit in images])


def measure(device: torch.device, loop_images: int, repeats: int) -> dict[str, Any]:
    images = digits(IMAGES).to(device)
    few = images[:loop_images].cpu().numpy()
    large_scale(images[:256], 1.0)  # warm-up
    sizes = []
    for scale in SIZES:
        ours, theirs = [], []
        for _ in range(repeats):
            ours.append(seconds(lambda: large_scale(images, scale), device))  # noqa: B023
            if loop_images:
                time_of_few = seconds(lambda: plain_loop(few, scale), device)  # noqa: B023
                theirs.append(time_of_few * IMAGES / loop_images)
        row: dict[str, Any] = {"scale": scale, "seconds": statistics.median(ours), "all_seconds": ours}
        if theirs:
            row["loop_seconds"] = statistics.median(theirs)
            row["all_loop_seconds"] = theirs
            row["times_faster"] = row["loop_seconds"] / row["seconds"]
            # The same images but for rounding: at whole sizes Pillow's kernel and centre are ours.
            made = large_scale(images[:loop_images], scale)[:, 0].cpu().numpy()
            row["largest_difference"] = float(np.abs(made - plain_loop(few, scale)).max())
        sizes.append(row)
    tests = seconds(lambda: all_tests(images), device)
    training = training_sets(device) if device.type == "cuda" else None
    return {"one_test_set": sizes, "all_17_test_sets_seconds": tests, "six_training_sets_seconds": training}


def all_tests(images: torch.Tensor) -> None:
    for scale in MNIST_SIZES:
        large_scale(images, scale)  # dropped before the next one: together they have 8.5 GB


def training_sets(device: torch.device) -> float:
    images = digits(50_000).to(device)
    uniform = torch.rand(50_000, dtype=torch.float64, device=device)

    def make() -> None:
        for scale in TRAINING_SCALES:
            low, high = scale if isinstance(scale, tuple) else (scale, scale)
            large_scale(images, low if low == high else low * (high / low) ** uniform)

    return seconds(make, device)


def main() -> None:
    parser = options(__doc__)
    parser.add_argument(
        "--loop-images", type=int, default=IMAGES, help="how many images the plain loop makes"
    )
    chosen = parser.parse_args()
    device = torch.device(chosen.device)
    try:
        import PIL  # noqa: F401
        import scipy  # noqa: F401
    except ImportError:
        chosen.loop_images = 0
    before = environment(device)
    write({"environment": before} | measure(device, chosen.loop_images, chosen.repeats), chosen.output)


if __name__ == "__main__":
    main()
