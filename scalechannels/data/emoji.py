"""Emoji: a hundred things in five designs, with true detail from 16 to 512 pixels.

The unit of the split is the design, since the drawings of one design have much in common: a network has to
recognise things as drawn by people whose drawings it has never seen.

    training     Noto, OpenMoji and Fluent; EmojiOne too, unless it is held out
    validation   EmojiOne, with `hold_out`
    test         Twemoji

This was chosen before any network was trained: EmojiOne and Twemoji are of one kind (flat colours without
outlines), so that what is chosen on the one should hold for the other.

An image has 512 x 512 pixels with the object at its centre. Size 1 is 64 pixels, which is what is trained on.
Every drawing is shown on plain colours and on textures; each split has its own.
"""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor

from scalechannels.data.backgrounds import Backgrounds, Behind
from scalechannels.data.emoji_drawings import CLASSES, DESIGNS, Drawings, open_drawings
from scalechannels.data.image_set import ImageSet, Scale, Split, drawn_scales, require_one_of
from scalechannels.data.sizes import EMOJI_PIXELS as PIXELS
from scalechannels.data.sizes import EMOJI_SIZES as SIZES

SIDE, IMAGE = 64, 512
"""Of an object of size 1 and of an image, in pixels."""
VIEWS: tuple[Behind, ...] = ("plain", "textured")
"""What each drawing is shown on, once each."""
CLOSE = 1.03
"""A size may be given as rounded to the rendered one: 2**-1.5 as 22/64."""


class Emoji:
    """Makes sets of emoji from the prepared drawings, on any device."""

    def __init__(
        self,
        root: Path | str | None = None,
        *,
        classes: int = CLASSES,
        drawings: Drawings | None = None,
        device: torch.device | str = "cpu",
    ) -> None:
        self.drawings = open_drawings(root, classes) if drawings is None else drawings
        self.classes, self.device = self.drawings.classes, torch.device(device)
        self.behind: dict[Split, Backgrounds] = {}

    def make(
        self,
        split: Split,
        size: Scale = 1.0,
        *,
        hold_out: bool = False,
        seed: int = 0,
        views: tuple[Behind, ...] = VIEWS,
    ) -> ImageSet:
        """Every drawing of the split's designs on each kind of background; the seed draws these.

        size   one of SIZES, a range or a choice of them. The seed, and not the size, decides the backgrounds
        """
        generator = torch.Generator().manual_seed(seed)
        chosen = designs_of(split, hold_out)
        labels = torch.arange(len(self.classes)).repeat(len(chosen))
        images, sizes = [], []
        for kind in views:
            count = len(labels)
            behind = self.backgrounds(split).draw(kind, count, IMAGE, generator)
            pixels = nearest_pixels(size, count, generator)
            images.append(self._shown(chosen, pixels, behind))
            sizes.append(pixels.double() / SIDE)
        return ImageSet(
            torch.cat(images),
            labels.repeat(len(views)).to(self.device),
            torch.cat(sizes).to(self.device),
        )

    def backgrounds(self, split: Split) -> Backgrounds:
        """Those of a split, which no other has."""
        splits: tuple[Split, ...] = ("train", "validation", "test")
        return self.behind.setdefault(split, Backgrounds(splits.index(split), self.device))

    def drawn(self, designs: tuple[str, ...], pixels: int) -> Tensor:
        """The drawings of some designs, one design after the other: bytes (N, 4, p, p)."""
        parts = [torch.from_numpy(self.drawings.rendered(design, pixels)) for design in designs]
        return torch.cat(parts).movedim(-1, 1).to(self.device)

    def _shown(self, designs: tuple[str, ...], pixels: Tensor, behind: Tensor) -> Tensor:
        """Each drawing at its own size on its own background, (N, 3, IMAGE, IMAGE)."""
        images = behind.clone(memory_format=torch.contiguous_format)
        for one in pixels.unique().tolist():
            own = (pixels == one).nonzero()[:, 0].to(self.device)
            images[own] = placed(self.drawn(designs, one)[own], images[own])
        return images


def designs_of(split: Split, hold_out: bool = False) -> tuple[str, ...]:
    """The designs of a split; those for validation exist where they are held out."""
    require_one_of(Split, split=split)
    if split == "validation" and not hold_out:
        raise ValueError("validation images exist with hold_out=True only: without, they are training images")
    roles = {"train": ["training"] if hold_out else ["training", "validation"]}.get(split, [split])
    return tuple(design for design, about in DESIGNS.items() if about["role"] in roles)


def nearest_pixels(size: Scale, count: int, generator: torch.Generator) -> Tensor:
    """The rendered size of each of `count` images (N,): the one given, or drawn from a range or a choice."""
    rendered = torch.tensor(SIZES, dtype=torch.float64)
    for one in size if isinstance(size, tuple) else (size,):
        near = ((rendered / one).log().abs().exp() <= CLOSE).any() if one > 0 else False
        if not near:
            raise ValueError(
                f"emoji are rendered at the sizes {', '.join(f'{known:.4g}' for known in SIZES)}, where 1 is "
                f"{SIDE} pixels; got {one:g}"
            )
    wanted = drawn_scales(size, torch.rand(count, generator=generator, dtype=torch.float64))
    return torch.tensor(PIXELS)[(wanted[:, None] / rendered).log().abs().argmin(1)]


def placed(drawings: Tensor, behind: Tensor) -> Tensor:
    """Drawings (N, 4, p, p) of bytes at the centre of backgrounds (N, 3, H, W), 0 to 1, which they cover."""
    pixels, (height, width) = drawings.shape[-1], behind.shape[-2:]
    if pixels > min(height, width) or (height - pixels) % 2 or (width - pixels) % 2:
        raise ValueError(f"a drawing of {pixels} pixels has no centre in an image of {height} x {width}")
    top, left = (height - pixels) // 2, (width - pixels) // 2
    values = drawings.float() / 255
    opaque = values[:, 3:]
    images = behind.clone(memory_format=torch.contiguous_format)
    part = images[..., top : top + pixels, left : left + pixels]
    part += opaque * (values[:, :3] - part)
    return images
