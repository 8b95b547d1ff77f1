"""What lies behind an object: plain colours, or textures with the statistics of photographs.

A texture is made of leaves: ellipses and rectangles that hide one another, where a radius r is as likely as
1/r³, and a grain of the power spectrum 1/f². Edges, occlusion and this spectrum are what photographs
have in common, and like them such an image looks the same at every size: it does not tell the object's size.
The limit: it shows no things, so it is easier to look past than a real photograph.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
import torch
from torch import Tensor

from scalechannels.data.image_set import require_one_of

Behind = Literal["plain", "textured"]
BANK, BANK_SIDE = 16, 768
LEAVES = 1000
GRAIN = 0.04


class Backgrounds:
    """Backgrounds (N, 3, side, side) with values from 0 to 1, drawn by a generator.

    Textures are cut from a bank of larger ones at random places, flipped and turned, since they take time to
    make. Banks of different seeds have nothing in common.
    """

    def __init__(self, seed: int, device: torch.device | str = "cpu", bank: int = BANK) -> None:
        self.seed, self.device, self.count = seed, torch.device(device), bank
        self.made: Tensor | None = None

    def draw(self, kind: Behind, count: int, side: int, generator: torch.Generator) -> Tensor:
        require_one_of(Behind, kind=kind)
        if kind == "plain":
            colours = torch.rand(count, 3, 1, 1, generator=generator)
            return colours.to(self.device).expand(-1, -1, side, side)
        if side > BANK_SIDE:
            raise ValueError(f"textures have up to {BANK_SIDE} pixels; got {side}")
        if self.made is None:
            self.made = textures(self.count, self.seed).to(self.device)
        which = torch.randint(self.count, (count,), generator=generator).tolist()
        places = torch.randint(BANK_SIDE - side + 1, (count, 2), generator=generator).tolist()
        turns = torch.randint(8, (count,), generator=generator).tolist()
        cut = []
        for index, (top, left), turn in zip(which, places, turns, strict=True):
            part = self.made[index, :, top : top + side, left : left + side]
            cut.append((part.flip(-1) if turn >= 4 else part).rot90(turn % 4, (-2, -1)))
        return torch.stack(cut).float() / 255


def textures(count: int, seed: int, side: int = BANK_SIDE, leaves: int = LEAVES) -> Tensor:
    """Textures (count, 3, side, side) of bytes, the same ones for the same arguments."""
    random = np.random.default_rng(seed)
    return torch.stack([torch.from_numpy(_texture(random, side, leaves)) for _ in range(count)])


def _texture(random: np.random.Generator, side: int, leaves: int) -> np.ndarray:
    image = np.empty((3, side, side), np.float32)
    mood = _muted(random.random(3))  # photographs have a prevailing colour
    image[:] = mood[:, None, None]
    smallest, largest = side / 50, side / 2
    shares = random.random(leaves)
    radii = (smallest**-2 + shares * (largest**-2 - smallest**-2)) ** -0.5  # density 1/r³
    for radius in radii:
        x, y = random.random(2) * (side + 2 * radius) - radius
        x0, x1 = (int(np.clip(end, 0, side)) for end in (x - radius, x + radius + 1))
        y0, y1 = (int(np.clip(end, 0, side)) for end in (y - radius, y + radius + 1))
        turn, narrow, corners = random.random() * np.pi, 0.3 + 0.7 * random.random(), random.random() < 0.5
        down, across = np.arange(y0, y1)[:, None] - y, np.arange(x0, x1)[None] - x
        along = np.abs(across * np.cos(turn) + down * np.sin(turn))
        beside = np.abs(down * np.cos(turn) - across * np.sin(turn)) / narrow
        away = np.maximum(along, beside) * 2**0.5 if corners else np.hypot(along, beside)
        inside = np.clip(radius - away + 0.5, 0, 1).astype(np.float32)
        colour = (mood + _muted(random.random(3)) * 2) / 3 + random.normal(0, 0.1)
        tilt = random.normal(0, 0.1, 2) / radius  # one side is lit
        shade = colour[:, None, None] + (tilt[0] * down + tilt[1] * across)
        part = image[:, y0:y1, x0:x1]
        part += inside * (shade.astype(np.float32) - part)
    frequency = np.hypot(np.fft.fftfreq(side)[:, None], np.fft.rfftfreq(side)[None])
    frequency[0, 0] = np.inf
    grain = np.fft.irfft2(np.fft.rfft2(random.normal(size=(side, side))) / frequency, (side, side))
    image += (GRAIN * grain / grain.std()).astype(np.float32)
    return (np.clip(image, 0, 1) * 255 + 0.5).astype(np.uint8)


def _muted(colour: np.ndarray) -> np.ndarray:
    """Nearer to grey: few things outdoors have saturated colours."""
    return colour.mean() + 0.4 * (colour - colour.mean())
