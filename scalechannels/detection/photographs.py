"""Pictures without digits, and what a digit detector learns from them: backgrounds and its own mistakes.

    pictures ──parts, as taken, smaller, mirrored, inverted──▶ behind digits, or looked at as they are
    parts ──the network as it is──▶ windows in which it sees digits ──▶ shown to it again, as background

A quarter of the parts are made-up textures, which have shapes that the pictures may lack. Limit: whatever
looks like a digit in a picture is taught to be none, so none may show digits.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor

from scalechannels.data.image_files import find_images
from scalechannels.data.pictures import read_image, squashed
from scalechannels.data.scenes import darkened
from scalechannels.detection.detector import Detector
from scalechannels.detection.textures import texture
from scalechannels.detection.training_windows import SIDE, cut
from scalechannels.network import ScaleChannelNetwork

PART, LOOKED = 256, 512
"""Pixels along a part of a picture: for windows anywhere, and for mistakes."""
REDUCED = (1, 1, 2, 3, 4)
"""How many times smaller a part is made: large photographs are soft, and small ones are not."""
PARTS, EACH = 4, 24
"""Parts that a batch has windows of, and windows onto each."""
MINED = PARTS * EACH
"""Mistakes in a batch."""
AT_ONCE, BEST = 24, 40
"""Parts in which mistakes are looked for at a time, and mistakes taken from one part at most."""
KEPT = 40_000
"""Mistakes that are remembered, the latest ones."""


class Photographs:
    """Grey pictures without digits, each (H, W) of bytes, from black to white."""

    def __init__(self, pictures: Sequence[Tensor]) -> None:
        if not pictures or min(min(one.shape) for one in pictures) < LOOKED:
            raise ValueError(
                f"pictures without digits need {LOOKED} pixels along each side, and one at least is needed"
            )
        self.pictures = list(pictures)
        self.mined = torch.zeros(0, 1, 28, 28, dtype=torch.float16)

    @classmethod
    def of(cls, folder: Path) -> Photographs:
        """The image files of a folder, each stretched to full contrast; small ones are left out."""
        read = (read_image(path, grey=True)[0] for path in find_images(folder).images)
        return cls([(stretched(one) * 255).round().byte() for one in read if min(one.shape) >= LOOKED])

    def state_dict(self) -> dict[str, Tensor]:
        return {"mined": self.mined}

    def load_state_dict(self, kept: dict[str, Tensor]) -> None:
        self.mined = kept["mined"].cpu()

    def part(self, side: int, generator: torch.Generator) -> Tensor:
        """Some part (side, side) of some picture, from 0 to 1."""

        def below(count: int) -> int:
            return int(torch.randint(count, (), generator=generator))

        if below(4) == 0:
            return texture(1, side, generator)[0]
        picture = self.pictures[below(len(self.pictures))]
        factor = min(REDUCED[below(len(REDUCED))], min(picture.shape) // side)
        top, left = (below(length - side * factor + 1) for length in picture.shape)
        taken = picture[top : top + side * factor, left : left + side * factor].float() / 255
        taken = F.avg_pool2d(taken[None], factor)[0]
        if below(2):
            taken = taken.flip(1)
        if below(4) == 0:
            taken = 1 - taken
        if below(2):  # as if this part were the whole picture
            taken = stretched(taken)
        return taken

    def behind(self, count: int, generator: torch.Generator) -> Tensor:
        """Backgrounds (B, SIDE, SIDE) on which ink can be seen: darker than it, as in scenes."""
        strength = 0.3 + 0.7 * torch.rand(count, 1, 1, generator=generator)
        parts = torch.stack([self.part(SIDE, generator) for _ in range(count)])
        return darkened(strength * parts)

    def windows(self, scales: tuple[float, float], generator: torch.Generator) -> Tensor:
        """Windows (N, 1, 28, 28) without digits: half of them anywhere, half mistakes where there are any."""
        parts = squashed(255 * torch.stack([self.part(PART, generator) for _ in range(PARTS)]))
        centres = PART * torch.rand(PARTS, EACH, 2, generator=generator)
        octaves = torch.tensor(scales).log2()
        sigma = 2 ** (octaves[0] + (octaves[1] - octaves[0]) * torch.rand(PARTS, EACH, generator=generator))
        anywhere = cut(parts[:, None], centres, sigma)
        if len(self.mined) == 0:
            return anywhere
        chosen = torch.randint(len(self.mined), (MINED,), generator=generator)
        return torch.cat((anywhere, self.mined[chosen].float()))

    @torch.no_grad()
    def mine(self, network: ScaleChannelNetwork, background: int, generator: torch.Generator) -> int:
        """Look for digits with the network as it is, and remember the windows; how many were found."""
        detector = Detector(network, background=background, threshold=0.1)
        found = torch.cat(list(self._mistakes(detector, generator)))
        self.mined = torch.cat((self.mined, found))[-KEPT:]
        return len(found)

    def _mistakes(self, detector: Detector, generator: torch.Generator) -> Iterator[Tensor]:
        grid = torch.tensor(detector.network.grid.factors)
        for _ in range(AT_ONCE):
            part = squashed(255 * self.part(LOOKED, generator))[None]
            peaks = detector.peaks(part)
            best = detector.odds_of(peaks.logits).argsort(descending=True)[:BEST]
            sigma, centres = grid[peaks.channels[best]], peaks.windows[best].float()
            near = centres + sigma[:, None] * torch.randn(centres.shape, generator=generator)
            both = torch.cat((centres, near))[None]
            yield cut(part[None], both, sigma.repeat(2)[None]).half()


def stretched(image: Tensor) -> Tensor:
    """The darkest value brought to 0, the brightest to 1."""
    darkest, brightest = image.aminmax()
    return (image - darkest) / (brightest - darkest).clamp_min(1e-6)
