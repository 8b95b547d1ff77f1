"""Folders of images as users have them, from Fashion-MNIST and CIFAR-10.

    python -m benchmarks.own_image_folders OUT [--root DATA] [--train 225] [--test 50]

    OUT/fashion-crops, fashion-frames, off-centre, cifar3     to train on: a subfolder for each class
    OUT/KIND@S                                                new images, S times as large: 0.5, 1, 2, 3
    OUT/fashion-frames+D                                      new images, D pixels off the centre: 2, 4

    crops      the image is as large as the object: 28 pixels, or 28·S
    frames     84x84 pixels, whatever the object's size; it is at the centre
    off-centre the same, the object anywhere in the frame
    cifar3     photographs of cats, dogs and ships, 32 pixels

Fashion-MNIST and CIFAR-10 are looked for in DATA, then where `scalechannels data fetch` puts them.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

import torch
from PIL import Image
from torch import Tensor

from scalechannels.data.rescale import rescale
from scalechannels.data.sources import TrainAndTest, load_cifar10, load_fashion

CLOTHES = ("shirt", "trousers", "pullover", "dress", "coat", "sandal", "blouse", "sneaker", "bag", "boot")
CIFAR = {3: "cat", 5: "dog", 8: "ship"}
FRAME = 84
SIZES = (0.5, 1, 2, 3)
OFFSETS = (2, 4)


def fashion(root: Path | None, split: str) -> tuple[Tensor, list[str]]:
    """Images (N, 1, 28, 28) from 0 to 1 and their classes."""
    images, labels = of_split(load_fashion(root), split)
    return images[:, None] / 255, [CLOTHES[label] for label in labels.tolist()]


def cifar(root: Path | None, split: str) -> tuple[Tensor, list[str]]:
    """Images (N, 3, 32, 32) of three classes."""
    images, labels = of_split(load_cifar10(root), split)
    kept = torch.isin(labels, torch.tensor(list(CIFAR)))
    return images[kept] / 255, [CIFAR[label] for label in labels[kept].tolist()]


def of_split(read: TrainAndTest, split: str) -> tuple[Tensor, Tensor]:
    return read[:2] if split == "train" else read[2:]


def chosen(labels: list[str], count: int) -> list[int]:
    """The first so many of each class."""
    seen: dict[str, int] = {}
    kept = []
    for index, label in enumerate(labels):
        if seen.get(label, 0) < count:
            seen[label] = seen.get(label, 0) + 1
            kept.append(index)
    return kept


def write(folder: Path, images: Tensor, labels: list[str]) -> None:
    """8-bit PNG files, a subfolder for each class."""
    for index, (pixels, label) in enumerate(zip(as_bytes(images), labels, strict=True)):
        path = folder / label / f"{index:05}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        as_file = pixels[0] if len(pixels) == 1 else pixels.movedim(0, 2)
        Image.fromarray(as_file.numpy()).save(path)


def as_bytes(images: Tensor) -> Tensor:
    """What a file of 8 bits keeps of values from 0 to 1."""
    return (images.clamp(0, 1) * 255).round().byte()


def crops(images: Tensor, size: float) -> Tensor:
    return rescale(images, size, round(size * images.shape[-1]), continuation="border")


def frames(images: Tensor, size: float, side: int = FRAME) -> Tensor:
    return rescale(images, size, side)


def off_centre(images: Tensor, seed: int = 0) -> Tensor:
    """Each object anywhere inside its frame."""
    side = images.shape[-1]
    made = torch.zeros(len(images), images.shape[1], FRAME, FRAME)
    places = torch.randint(FRAME - side + 1, (len(images), 2), generator=torch.Generator().manual_seed(seed))
    for image, target, (row, column) in zip(images, made, places.tolist(), strict=True):
        target[:, row : row + side, column : column + side] = image
    return made


def kinds(images: Tensor, kind: str, training: bool) -> Iterator[tuple[str, Tensor]]:
    """The suffix of each folder of a kind, and its images."""
    if training:
        made = {"fashion-frames": lambda: frames(images, 1), "off-centre": lambda: off_centre(images)}
        yield "", made.get(kind, lambda: images)()
        return
    if kind == "off-centre":
        yield "@1", off_centre(images, seed=1)
        return
    for size in SIZES:
        yield f"@{size:g}", (frames if kind == "fashion-frames" else crops)(images, size)
    for offset in OFFSETS if kind == "fashion-frames" else ():
        yield f"+{offset}", frames(images, 1).roll((offset, -offset), (2, 3))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--root", type=Path)
    parser.add_argument("--train", type=int, default=225, help="images of each class to train on")
    parser.add_argument("--test", type=int, default=50, help="new images of each class")
    given = parser.parse_args()
    for kind in ("fashion-crops", "fashion-frames", "off-centre", "cifar3"):
        for split, count in (("train", given.train), ("test", given.test)):
            images, labels = (cifar if kind == "cifar3" else fashion)(given.root, split)
            kept = chosen(labels, count)
            for suffix, made in kinds(images[kept], kind, split == "train"):
                write(given.out / f"{kind}{suffix}", made, [labels[index] for index in kept])
                print(given.out / f"{kind}{suffix}", tuple(made.shape))


if __name__ == "__main__":
    main()
