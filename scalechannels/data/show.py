"""Pictures of the data: contact sheets with sizes across and classes down, written as PNG.

One cell is one image, pixel for pixel (or whole multiples), so that what is seen is what a network gets.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import get_args

import numpy as np
import torch
import torch.nn.functional as F
from matplotlib.figure import Figure  # not pyplot: it would keep figures alive and choose a backend
from matplotlib.patches import Rectangle
from torch import Tensor

from scalechannels.data.anywhere import SIDE as SIDE_ANYWHERE
from scalechannels.data.anywhere import Objects, Surroundings, anywhere
from scalechannels.data.folder import ImageFolder
from scalechannels.data.mnist_large_scale import balanced_subset, large_scale
from scalechannels.data.mnist_scale import MnistScale
from scalechannels.data.pictures import BACKGROUND, as_shown, png_path
from scalechannels.data.rescaled_cifar10 import CLASSES as CIFAR_CLASSES
from scalechannels.data.rescaled_cifar10 import rescale_cifar10
from scalechannels.data.rescaled_fashion import CLASSES as CLOTHES
from scalechannels.data.rescaled_fashion import SIDE as CLOTHES_SIDE
from scalechannels.data.rescaled_fashion import Clothes
from scalechannels.data.scenes import Background, Scene, scene
from scalechannels.data.several import several
from scalechannels.data.sizes import CIFAR_SIZES, MNIST_SCALE_SIZES, MNIST_SIZES, size_name
from scalechannels.data.sources import load_cifar10, load_fashion, load_mnist
from scalechannels.data.strokes import CLASSES, strokes
from scalechannels.files import atomic_path

DPI = 100
GAP = 2  # pixels between cells
ACROSS, SIDE = 10, 112  # images of each class of a folder, and the pixels of their cells
WANTED = 3  # among several digits
TEXT = {"fontsize": 9, "color": "0.2"}


def show_strokes(path: Path | str, seed: int = 0) -> Path:
    """One built-in digit of each class at the 17 sizes of MNIST Large Scale's test sets."""
    digits = strokes(CLASSES, seed)
    digits = digits[digits.labels.argsort()]
    columns = torch.stack([digits.render(size) for size in MNIST_SIZES], 1)  # (10, sizes, 1, 112, 112)
    title = f"Built-in digits, 112 x 112 pixels, seed {seed}"
    return contact_sheet(path, as_shown(columns), range(10), [*map(size_name, MNIST_SIZES)], title)


def show_mnist_large_scale(path: Path | str, seed: int = 0, root: Path | str | None = None) -> Path:
    """One test digit of each class at the 17 test sizes."""
    mnist = load_mnist(root)
    chosen = one_of_each(mnist.test_labels, seed)
    columns = torch.stack([large_scale(mnist.test_images[chosen], size) for size in MNIST_SIZES], 1)
    title = f"MNIST Large Scale, test images, 112 x 112 pixels, seed {seed}"
    return contact_sheet(path, as_shown(columns), range(10), [*map(size_name, MNIST_SIZES)], title)


def show_cifar10(path: Path | str, seed: int = 0, root: Path | str | None = None) -> Path:
    """One test image of each class at the nine factors of rescaled CIFAR-10."""
    cifar10 = load_cifar10(root)
    chosen = one_of_each(cifar10.test_labels, seed)
    columns = torch.stack([rescale_cifar10(cifar10.test_images[chosen], f) for f in CIFAR_SIZES], 1)
    names = [*map(size_name, CIFAR_SIZES)]
    title = f"Rescaled CIFAR-10, test images, 32 x 32 pixels (shown 3 times as large), seed {seed}"
    return contact_sheet(path, columns, CIFAR_CLASSES, names, title, zoom=3)


def show_mnist_scale(path: Path | str, seed: int = 0, root: Path | str | None = None) -> Path:
    """One test digit of each class at eight sizes from 0.3 to 1."""
    made = [MnistScale(root).make("test", size, seed) for size in MNIST_SCALE_SIZES]
    chosen = one_of_each(made[0].labels, seed)
    columns = torch.stack([of_size.images[chosen] for of_size in made], 1)
    title = f"MNIST-Scale, test images, 28 x 28 pixels (shown 3 times as large), seed {seed}"
    return contact_sheet(path, columns, range(10), [*map(size_name, MNIST_SCALE_SIZES)], title, zoom=3)


def show_fashion(path: Path | str, seed: int = 0, root: Path | str | None = None) -> Path:
    """One test item of each class at the nine factors, then items anywhere, on each background."""
    fashion = load_fashion(root)
    chosen = one_of_each(fashion.test_labels, seed)
    items = Clothes(fashion.test_images[chosen], fashion.test_labels[chosen])
    at_centre = torch.stack([items.render(factor, CLOTHES_SIDE) for factor in CIFAR_SIZES], 1)
    moved, names = _on_backgrounds(items, CLOTHES_SIDE, seed)
    title = f"Rescaled Fashion-MNIST, test images, {CLOTHES_SIDE} x {CLOTHES_SIDE} pixels, seed {seed}"
    rows, sizes = torch.cat([at_centre, moved]), [*map(size_name, CIFAR_SIZES)]
    return contact_sheet(path, rows, [*CLOTHES, *names], sizes, title)


def show_anywhere(path: Path | str, seed: int = 0) -> Path:
    """Built-in digits anywhere in their images, on each background, at nine sizes."""
    rows, names = _on_backgrounds(strokes(2 * len(CIFAR_SIZES), seed), SIDE_ANYWHERE, seed, rows=2)
    pixels = f"{SIDE_ANYWHERE} x {SIDE_ANYWHERE} pixels (shown twice as large)"
    title = f"Built-in digits anywhere, {pixels}, seed {seed}"
    return contact_sheet(path, as_shown(rows), names, [*map(size_name, CIFAR_SIZES)], title, zoom=2)


def show_several(path: Path | str, seed: int = 0) -> Path:
    """Is there a 3? Images with one and without, on each background; all sizes from 1/2 to 2."""
    digits, rows, names = strokes(200, seed), [], []
    for kind in get_args(Surroundings):
        made = several(digits, WANTED, 12, seed=seed, background=kind)
        for label, said in ((1, "yes"), (0, "no")):
            rows.append(as_shown(made.images[made.labels == label]))
            names.append(f"{said}, {kind}")
    title = (
        f"Several digits: is there a {WANTED}? {rows[0].shape[-1]} x {rows[0].shape[-1]} pixels, seed {seed}"
    )
    return contact_sheet(path, torch.stack(rows), names, range(1, 7), title)


def _on_backgrounds(objects: Objects, side: int, seed: int, rows: int = 1) -> tuple[Tensor, list[str]]:
    """So many rows on each background, a column for each size: (…, 9, 1, side, side), and their names."""
    made, names = [], []
    for kind in get_args(Surroundings):
        sets = [
            anywhere(objects, rows * len(CIFAR_SIZES), size, seed, side=side, background=kind).images
            for size in CIFAR_SIZES
        ]
        for row in range(rows):
            made.append(torch.stack([images[rows * place + row] for place, images in enumerate(sets)]))
            names.append(f"anywhere, {kind}")
    return torch.stack(made), names


def show_emoji(path: Path | str, seed: int = 0, root: Path | str | None = None) -> Path:
    """Some things as each design draws them at the size of training, then as tested at other sizes."""
    from scalechannels.data.emoji import IMAGE, SIDE, Emoji, designs_of, placed
    from scalechannels.data.emoji_drawings import DESIGNS

    emoji = Emoji(root)
    generator = torch.Generator().manual_seed(seed)
    chosen = torch.randperm(len(emoji.classes), generator=generator)[:10].sort().values
    cells, names = [], []
    behind = emoji.backgrounds("test").draw("textured", len(chosen), IMAGE, generator)
    middle = slice((IMAGE - SIDE) // 2 - 16, (IMAGE + SIDE) // 2 + 16)
    for design in DESIGNS:
        images = placed(emoji.drawn((design,), SIDE)[chosen], behind)[..., middle, middle]
        cells.append(images)
        names.append(design.split("-")[0])
    for pixels in (16, 32, 128, 512):
        images = placed(emoji.drawn(designs_of("test"), pixels)[chosen], behind)
        cells.append(torch.stack([thumbnail(image, cells[0].shape[-1]) for image in images]))
        names.append(f"{pixels} of {IMAGE}")
    title = f"Emoji: five designs at {SIDE} pixels, and {designs_of('test')[0]} as it is tested, seed {seed}"
    rows = [emoji.classes[index] for index in chosen.tolist()]
    return contact_sheet(path, torch.stack(cells, 1), rows, names, title)


def show_folder(path: Path | str, images: ImageFolder, seed: int = 0) -> Path:
    """Some images of each class, whole, each fitted into a square."""
    generator = torch.Generator().manual_seed(seed)
    rows = []
    for label in range(len(images.classes)):
        members = [index for index, own in enumerate(images.labels) if own == label]
        order = torch.randperm(len(members), generator=generator)[:ACROSS].tolist()
        rows.append([thumbnail(images[members[i]][0]) for i in order])
    columns = [str(number + 1) for number in range(max(map(len, rows)))]
    title = f"{images.root.name}: {len(images)} images in {len(images.classes)} classes, seed {seed}"
    return contact_sheet(path, rows, images.classes, columns, title, blank=0.9)


def show_scenes(path: Path | str, seed: int = 0) -> Path:
    """One scene on each kind of background, every object with its box, class and size."""
    return scene_sheet(
        path, [(f"{kind} background", scene(seed=seed, background=kind)) for kind in get_args(Background)]
    )


def contact_sheet(
    path: Path | str,
    rows: Tensor | Sequence[Sequence[Tensor]],
    row_names: Sequence[object],
    column_names: Sequence[object],
    title: str,
    *,
    zoom: int = 1,
    blank: float = 1.0,
) -> Path:
    """Write images (C, H, W), 0 to 1, of one size in rows as a labelled PNG; rows may be of unequal length.

    blank: the grey of cells without an image.
    """
    if len(rows) != len(row_names) or len(rows) == 0 or any(len(row) > len(column_names) for row in rows):
        raise ValueError(
            f"{len(row_names)} row names and {len(column_names)} column names do not fit "
            f"{len(rows)} rows of {max(map(len, rows), default=0)} images"
        )
    height, width = (zoom * side + GAP for side in rows[0][0].shape[-2:])
    mosaic = np.ones((len(rows) * height - GAP, len(column_names) * width - GAP, 3), dtype=np.float32)
    for r, row in enumerate(rows):
        for c in range(len(column_names)):
            cell = mosaic[r * height : (r + 1) * height, c * width : (c + 1) * width]
            cell[: height - GAP, : width - GAP] = blank
            if c < len(row):
                image = row[c].clamp(0, 1).expand(3, -1, -1).movedim(0, -1)
                enlarged = image.repeat_interleave(zoom, 0).repeat_interleave(zoom, 1)
                cell[: height - GAP, : width - GAP] = enlarged.cpu().numpy()

    left = 22 + 6.2 * max(len(str(name)) for name in row_names)
    figure, (axes,) = panels([mosaic.shape[:2]], left=left, top=54)
    axes.imshow((mosaic * 255).round().astype(np.uint8), interpolation="nearest")
    axes.set_xticks(
        [c * width + (width - GAP - 1) / 2 for c in range(len(column_names))], column_names, **TEXT
    )
    axes.set_yticks([r * height + (height - GAP - 1) / 2 for r in range(len(rows))], row_names, **TEXT)
    axes.tick_params(length=0, top=False, labeltop=True, labelbottom=False)
    axes.set_frame_on(False)
    figure.text(0.5, 1 - 16 / (figure.get_figheight() * DPI), title, ha="center", va="center", fontsize=11)
    return save(figure, path)


def scene_sheet(path: Path | str, scenes: Sequence[tuple[str, Scene]]) -> Path:
    """Write scenes one below the other, each with a name, and every object with its box, class and size."""
    figure, all_axes = panels([shown.image.shape[-2:] for _, shown in scenes], left=16, top=30)
    for axes, (name, shown) in zip(all_axes, scenes, strict=True):
        axes.imshow(shown.image[0].numpy(), cmap="gray", vmin=BACKGROUND, vmax=-BACKGROUND)
        axes.set_title(f"{name}, {len(shown.labels)} digits: class and size", fontsize=10, pad=4)
        axes.set_axis_off()
        for (x0, y0, x1, y1), label, size in zip(
            shown.boxes.tolist(), shown.labels.tolist(), shown.sizes.tolist(), strict=True
        ):
            axes.add_patch(
                Rectangle((x0, y0), x1 - x0, y1 - y0, fill=False, edgecolor="tab:orange", linewidth=1)
            )
            below = y0 < 14  # a caption above the box would leave the image
            axes.text(
                *(x0, y1 + 2 if below else y0 - 2, f"{label}  {size:.2f}"),
                va="top" if below else "bottom", fontsize=7, color="tab:orange", clip_on=True,
            )  # fmt: skip
    return save(figure, path)


def panels(shapes: Sequence[Sequence[int]], left: float, top: float) -> tuple[Figure, list]:
    """A figure with axes for each (height, width), one below the other, a screen pixel per image pixel."""
    margin = 12.0
    total_width = left + max(width for _, width in shapes) + margin
    total_height = sum(height + top for height, _ in shapes) + margin
    figure = Figure(figsize=(total_width / DPI, total_height / DPI), dpi=DPI, facecolor="white")
    all_axes, used = [], 0.0
    for height, width in shapes:
        used += top + height
        place = (left / total_width, 1 - used / total_height, width / total_width, height / total_height)
        all_axes.append(figure.add_axes(place))
    return figure, all_axes


def save(figure: Figure, path: Path | str) -> Path:
    path = png_path(path)
    with atomic_path(path) as temporary:
        figure.savefig(temporary, format="png", dpi=DPI)
    return path


def one_of_each(labels: Tensor, seed: int) -> Tensor:
    """The index of an image of each of the ten classes, in their order."""
    chosen = balanced_subset(labels, 10, seed)
    return chosen[labels[chosen].argsort()]


def thumbnail(image: Tensor, side: int = SIDE) -> Tensor:
    """An image (C, H, W) with values from 0 to 1 shrunk or enlarged to fit (C, side, side), on light grey."""
    factor = side / max(image.shape[1:])
    height, width = (max(1, round(length * factor)) for length in image.shape[1:])
    small = F.interpolate(image[None], (height, width), mode="bilinear", antialias=True)[0]
    top, left = (side - height) // 2, (side - width) // 2
    padding = (left, side - width - left, top, side - height - top)
    return F.pad(small.clamp(0, 1), padding, value=0.9)
