"""How many images a second are made of objects anywhere and for protocols, beside MNIST Large Scale.

    python -m benchmarks.placed_data [--device cuda] [--images 4000] [--output FILE]

All of them make as many images, of sizes from 1/2 to 2 (MNIST-Scale: 0.3 to 1), and take turns; the medians
count. `ratio` is their speed over that of MNIST Large Scale, whose images have 112 x 112 pixels, and
`pixel_ratio` the same in pixels. The objects are synthetic: no value changes the amount of work.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from benchmarks.data_generation import digits
from benchmarks.measure import environment, in_turns, options, write
from scalechannels.data.anywhere import Pictures, anywhere
from scalechannels.data.image_set import ImageSet
from scalechannels.data.mnist_large_scale import MnistLargeScale
from scalechannels.data.mnist_scale import MnistScale
from scalechannels.data.rescaled_cifar10 import RescaledCifar10
from scalechannels.data.rescaled_fashion import SIDE, Clothes
from scalechannels.data.several import several
from scalechannels.data.sources import TrainAndTest

FIRST = "MNIST Large Scale"


def makers(count: int, device: torch.device) -> dict[str, Callable[[], ImageSet]]:
    """What makes each set of `count` images."""
    images, labels = digits(count), torch.arange(count) % 10
    photos = torch.randint(0, 256, (count, 3, 32, 32), dtype=torch.uint8)
    numbers, clothes = Pictures(images, labels), Clothes(images, labels)
    none = images[:0], labels[:0]
    large = MnistLargeScale(mnist=TrainAndTest(*none, images, labels), device=device)
    small = MnistScale(mnist=TrainAndTest(images, labels, *none), device=device)
    small.images, small.labels = (part.repeat(7, *(1,) * (part.ndim - 1)) for part in (images, labels))
    cifar10 = RescaledCifar10(cifar10=TrainAndTest(*none, photos, labels), device=device)
    sizes = (0.5, 2.0)
    return {
        FIRST: lambda: large.make("test", sizes),
        "digits anywhere": lambda: anywhere(numbers, count, device=device),
        "digits anywhere, noisy": lambda: anywhere(numbers, count, background="noisy", device=device),
        "digits anywhere, cluttered": lambda: anywhere(numbers, count, background="cluttered", device=device),
        "one of three digits": lambda: several(numbers, 3, count, device=device),
        "clothes at the centre": lambda: anywhere(clothes, count, side=SIDE, places="centre", device=device),
        "clothes anywhere": lambda: anywhere(clothes, count, side=SIDE, device=device),
        "MNIST-Scale": lambda: small.make("train"),
        "photos at the centre": lambda: cifar10.make("test", sizes),
        "photos anywhere": lambda: cifar10.make("test", sizes, side=64, places="anywhere"),
    }


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--images", type=int, default=4_000)
    chosen = parser.parse_args()
    device = torch.device(chosen.device)
    before, made = environment(device), makers(chosen.images, device)
    shapes = {name: make().images.shape for name, make in made.items()}
    taken = in_turns(made, device, chosen.repeats)
    report: dict[str, Any] = {"environment": before, "images": chosen.images, "sets": []}
    for name, measured in taken.items():
        speed = shapes[name][0] / measured["seconds"]
        first = shapes[FIRST][0] / taken[FIRST]["seconds"]
        pixels = shapes[name][2] ** 2 / shapes[FIRST][2] ** 2
        row = {"data": name, "side": shapes[name][2], "images_per_second": speed}
        report["sets"].append(
            row | {"ratio": speed / first, "pixel_ratio": pixels * speed / first, **measured}
        )
    write(report, chosen.output)


if __name__ == "__main__":
    main()
