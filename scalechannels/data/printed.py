"""Printed digits: the figures of fonts, drawn by Pillow at any size, as `Strokes` and `Pictures` draw theirs.

A digit of size s is 20 s pixels high in a box of 28 s, as MNIST's are, and lies in its middle, across with
the space that the font leaves beside it. Every size is drawn by itself, so none is an enlargement.

Limit: a font without digits, or with old-style figures of several heights, gives what it has; choose fonts
with figures of one height.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import torch
from PIL import Image, ImageDraw, ImageFont
from torch import Tensor

from scalechannels.data.pictures import Values, squashed

HEIGHT = 20
"""Pixels of a digit of size 1."""
PROBE = 200
"""The size at which a font is measured."""


@dataclass(frozen=True)
class Printed:
    """Digits of fonts, each with its font and its class."""

    fonts: tuple[Path, ...]
    which: Tensor  # (N,) int64: of the fonts
    labels: Tensor  # (N,) int64

    @classmethod
    def of(cls, fonts: Sequence[Path]) -> Printed:
        """The ten digits of every font, font by font."""
        which = torch.arange(len(fonts)).repeat_interleave(10)
        return cls(tuple(fonts), which, torch.arange(10).repeat(len(fonts)))

    @property
    def values(self) -> Values:
        return "digits"

    def __getitem__(self, index: slice | Tensor) -> Printed:
        return Printed(self.fonts, self.which[index], self.labels[index])

    def render(self, scale: float, size: int, *, device: torch.device | str = "cpu") -> Tensor:
        """Each at one size, about the centre of an image: (N, 1, size, size)."""
        drawn = [
            _drawn(self.fonts[font], digit, HEIGHT * scale, size)
            for font, digit in zip(self.which.tolist(), self.labels.tolist(), strict=True)
        ]
        return squashed(torch.from_numpy(np.stack(drawn)).to(device).float()[:, None])


def _drawn(font: Path, digit: int, height: float, side: int) -> np.ndarray:
    """A white digit on black, (side, side) uint8."""
    face = _face(font, height * PROBE / _zero(font))
    left, top, right, bottom = face.getbbox(str(digit))
    image = Image.new("L", (side, side))
    at = (round((side - right - left) / 2), round((side - bottom - top) / 2))
    ImageDraw.Draw(image).text(at, str(digit), fill=255, font=face)
    return np.array(image)


@lru_cache(maxsize=1024)
def _zero(font: Path) -> float:
    """The height of a font's zero at the size `PROBE`."""
    _, top, _, bottom = _face(font, PROBE).getbbox("0")
    return bottom - top


@lru_cache(maxsize=1024)
def _face(font: Path, size: float) -> ImageFont.FreeTypeFont:
    return ImageFont.truetype(font, size, layout_engine=ImageFont.Layout.BASIC)
