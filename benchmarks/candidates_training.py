"""How a candidate for the shipped detector learns on a GPU: everything is drawn there, in larger batches.

The digits, canvases, windows and targets are those of `scalechannels.detection`; what differs is how many
there are in a batch, that digits may be turned and stretched without changing size, and that photographs are
cut from a store of parts, drawn again in pieces, where the shipped detector's training cuts each part anew.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from benchmarks.candidates_data import of_jpeg, unsqueezed
from scalechannels.backbones.paper import ConvBackbone
from scalechannels.data.pictures import squashed
from scalechannels.data.scenes import darkened
from scalechannels.detection.detector import Detector
from scalechannels.detection.learning import Batch, learn, to_stderr
from scalechannels.detection.photographs import REDUCED, stretched
from scalechannels.detection.training import CLASSES, EACH, GRID
from scalechannels.detection.training_windows import SIDE, Digits, canvases, cut, windows
from scalechannels.network import ScaleChannelNetwork
from scalechannels.pooling import MaxOverScales
from scalechannels.training.augment.rotation import Rotation

LOOKED, PART = 512, 256
"""Pixels along a part in the store, and along one of which windows are taken anywhere."""
TURNED_AGAIN, MINING = 25, 250
"""Steps between two turns of all digits, and between two searches for digits in photographs."""
MOST, REMEMBERED = 960, 40_000
"""Mistakes that a search adds at most, and those that are remembered."""
ACROSS, DOWN = 6, 4
"""Parts of the picture in which mistakes are looked for at a time."""


@dataclass(frozen=True)
class Candidate:
    """What is tried."""

    features: tuple[int, ...] = (16, 16, 32, 32)
    hidden: int = 100
    dropout: float = 0.15
    degrees: float = 0.0
    stretch: float = 0.0
    smoothing: float = 0.0
    """The largest share that windows' neighbours have in a pixel, each of two times, for half of them."""
    steps: int = 8000
    rate: float = 4e-3
    canvases: int = 64
    printed: int = 20_000
    quiet: float = 1 / 4
    """Parts of photographs for each canvas: of each, windows are taken where nothing is a digit."""

    def told(self) -> dict[str, Any]:
        return asdict(self)


@dataclass
class Store:
    """What all candidates learn from, on one device."""

    cover: Tensor  # (N, 28, 28) of bytes
    labels: Tensor
    printed: int
    """How many of them, the last ones, are of fonts."""
    pictures: list[Tensor]  # photographs without digits, (H, W) of bytes
    made_up: Tensor  # (N, LOOKED, LOOKED) textures, of bytes
    parts: Tensor = field(default_factory=lambda: torch.zeros(0))  # (N, LOOKED, LOOKED) of bytes

    @classmethod
    def of(cls, kept: dict[str, Any], made_up: Tensor, device: torch.device) -> Store:
        pictures = [of_jpeg(one).to(device) for one in kept["photographs"]]
        cover, labels = unsqueezed(kept["cover"]).to(device), kept["labels"].to(device)
        return cls(cover, labels, kept["printed"], pictures, made_up.to(device))

    def digits(self, printed: int) -> Digits:
        """Printed digits are repeated until there are about so many."""
        again = max(1, printed // self.printed) - 1
        cover = torch.cat((self.cover, self.cover[-self.printed :].repeat(again, 1, 1)))
        labels = torch.cat((self.labels, self.labels[-self.printed :].repeat(again)))
        return Digits(cover.float() / 255, labels)

    def refill(self, count: int, first: int, generator: torch.Generator) -> None:
        """Draw `count` parts again, from the first one on. The generator is the CPU's."""
        for place in range(first, first + count):
            self.parts[place % len(self.parts)] = (self._part(generator) * 255).round().byte()

    def _part(self, generator: torch.Generator) -> Tensor:
        def below(count: int) -> int:
            return int(torch.randint(count, (), generator=generator, device="cpu"))

        if below(4) == 0:
            return self.made_up[below(len(self.made_up))].float() / 255
        picture = self.pictures[below(len(self.pictures))]
        # Most are kept at half their size: a factor of 2 stands for 4.
        factor = min(REDUCED[below(len(REDUCED))], min(picture.shape) // LOOKED)
        top, left = (below(length - LOOKED * factor + 1) for length in picture.shape)
        taken = picture[top : top + LOOKED * factor, left : left + LOOKED * factor].float() / 255
        taken = F.avg_pool2d(taken[None], factor)[0]
        taken = taken.flip(1) if below(2) else taken
        taken = 1 - taken if below(4) == 0 else taken
        return stretched(taken) if below(2) else taken


class Learning:
    """The batches of one training; all tensors are on the default device, the generator too."""

    def __init__(
        self, store: Store, candidate: Candidate, network: ScaleChannelNetwork, seed: int, parts: int
    ) -> None:
        self.store, self.candidate, self.network = store, candidate, network
        self.choices = torch.Generator("cpu").manual_seed(seed)
        self.whole = store.digits(candidate.printed)
        self.shown = Digits(self.whole.cover.clone(), self.whole.labels)
        self.turning = Rotation(candidate.degrees, candidate.stretch)
        self.mined = torch.zeros(0, 1, 28, 28, dtype=torch.float16)
        store.parts = torch.zeros(parts, LOOKED, LOOKED, dtype=torch.uint8)
        store.refill(parts, 0, self.choices)

    def batch(self, step: int, generator: torch.Generator) -> Batch:
        one = self.candidate
        if one.degrees and step % TURNED_AGAIN == 0:
            self.shown.cover.copy_(self.turning(self.whole.cover[None, :, None])[0, :, 0])
        if step and step % MINING == 0:
            count = len(self.store.parts) // 8
            self.store.refill(count, step // MINING * count, self.choices)
            to_stderr(f"looked for digits where there are none: {self.mine(generator)} windows are added")
        made = canvases(self.shown, one.canvases, generator, self.behind)
        seen, targets = windows(made, EACH, CLASSES, generator)
        quiet = self.quiet(generator)
        nothing = torch.eye(CLASSES + 1)[-1].expand(len(quiet), -1)
        seen = self.smoothed(torch.cat((seen, quiet)), generator)
        return Batch(seen, torch.cat((targets, nothing)))

    def smoothed(self, seen: Tensor, generator: torch.Generator) -> Tensor:
        if not self.candidate.smoothing:
            return seen
        for _ in range(2):
            share = self.candidate.smoothing * torch.rand(len(seen), 1, 1, 1, generator=generator)
            share = share * (torch.rand(len(seen), 1, 1, 1, generator=generator) < 0.5)
            for sides in ((1, 1, 0, 0), (0, 0, 1, 1)):
                wide = F.pad(seen, sides, mode="replicate")
                axis, length = (3, seen.shape[3]) if sides[0] else (2, seen.shape[2])
                around = wide.narrow(axis, 0, length) + wide.narrow(axis, 2, length)
                seen = seen * (1 - 2 * share) + share * around
        return seen

    def cropped(self, count: int, side: int, generator: torch.Generator) -> Tensor:
        """Squares (B, side, side) of the store's parts, from 0 to 1; half of them at full contrast."""
        which = torch.randint(len(self.store.parts), (count,), generator=generator)
        corners = torch.randint(LOOKED - side + 1, (2, count, 1), generator=generator)
        rows, columns = corners + torch.arange(side)  # (B, side) each
        taken = self.store.parts[which[:, None, None], rows[:, :, None], columns[:, None]].float() / 255
        low, high = taken.amin((1, 2), keepdim=True), taken.amax((1, 2), keepdim=True)
        full = torch.rand(count, 1, 1, generator=generator) < 0.5
        return torch.where(full, (taken - low) / (high - low).clamp_min(1e-6), taken)

    def behind(self, count: int, generator: torch.Generator) -> Tensor:
        """Backgrounds (B, SIDE, SIDE), see `Photographs.behind`."""
        strength = 0.3 + 0.7 * torch.rand(count, 1, 1, generator=generator)
        return darkened(strength * self.cropped(count, SIDE, generator))

    def quiet(self, generator: torch.Generator) -> Tensor:
        """Windows (N, 1, 28, 28) without digits: half of them anywhere, half mistakes where there are any."""
        count, each = round(self.candidate.canvases * self.candidate.quiet), 24
        seen = squashed(255 * self.cropped(count, PART, generator))
        centres = PART * torch.rand(count, each, 2, generator=generator)
        low, high = torch.tensor([GRID.minimum, GRID.maximum]).log2()
        sigma = 2 ** (low + (high - low) * torch.rand(count, each, generator=generator))
        anywhere = cut(seen[:, None], centres, sigma)
        if len(self.mined) == 0:
            return anywhere
        chosen = torch.randint(len(self.mined), (len(anywhere),), generator=generator)
        return torch.cat((anywhere, self.mined[chosen].float()))

    @torch.no_grad()
    def mine(self, generator: torch.Generator) -> int:
        """Look for digits in several parts side by side, with the network as it is; how many were added."""
        parts = self.cropped(ACROSS * DOWN, LOOKED, generator)
        picture = parts.view(DOWN, ACROSS, LOOKED, LOOKED).transpose(1, 2)
        picture = squashed(255 * picture.reshape(1, DOWN * LOOKED, ACROSS * LOOKED))
        self.network.eval()
        with torch.device("cpu"):  # as it is used: what it makes follows the picture
            detector = Detector(self.network, background=CLASSES, threshold=0.1)
            peaks = detector.peaks(picture)
            best = detector.odds_of(peaks.logits).argsort(descending=True)[: MOST // 2]
        self.network.train()
        sigma = torch.tensor(GRID.factors)[peaks.channels[best]]
        centres = peaks.windows[best].float()
        near = centres + sigma[:, None] * torch.randn(centres.shape, generator=generator)
        found = cut(picture[None], torch.cat((centres, near))[None], sigma.repeat(2)[None])
        self.mined = torch.cat((self.mined, found.half()))[-REMEMBERED:]
        return len(found)


def trained(
    candidate: Candidate, seed: int, store: Store, device: torch.device, parts: int = 2048
) -> tuple[ScaleChannelNetwork, list[float]]:
    """The network, on the device, and the mean losses as it learnt."""
    torch.manual_seed(seed)
    backbone = ConvBackbone(
        candidate.features, classes=CLASSES + 1, hidden=candidate.hidden, dropout=candidate.dropout
    )
    backbone = backbone.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    network = ScaleChannelNetwork(backbone, GRID, MaxOverScales()).to(device)
    with torch.device(device):
        learning = Learning(store, candidate, network, seed, parts)
        losses = learn(
            network.backbone,
            learning.batch,
            steps=candidate.steps,
            rate=candidate.rate,
            seed=seed,
            report=to_stderr,
            generator=torch.Generator(device).manual_seed(seed),
        )
    return network.eval(), losses
