"""What the two networks say of one digit at a size and a place, and at all sizes: the numbers of the page.

No request changes anything here, so any number of threads may ask at once.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from scalechannels.data.anywhere import moved
from scalechannels.data.mnist_large_scale import SIZE, large_scale
from scalechannels.data.pictures import BACKGROUND, as_shown
from scalechannels.data.sizes import MNIST_SIZES
from scalechannels.data.strokes import CLASSES, strokes
from scalechannels.network import Explanation, ScaleChannelNetwork, require_finite
from scalechannels.plain import PlainNetwork
from scalechannels.saving.saved_network import SavedNetwork

SMALLEST, LARGEST = 0.5, 8.0
FURTHEST = SIZE // 2
"""Pixels by which a digit can be dragged off the centre."""
EXAMPLES = 2**20
PLAIN = "whole"
"""What a plain CNN looks at."""


@dataclass(frozen=True)
class Looks:
    """The scale-channel network and the plain CNN beside it."""

    network: ScaleChannelNetwork
    plain: PlainNetwork
    trained: tuple[float, ...] = ()
    """The sizes that the scale-channel network was trained on, where they are known."""

    def __post_init__(self) -> None:
        for given in (self.network, self.plain):
            require_digits(given, CLASSES, "the network", f"this {type(given).__name__}")
        if getattr(self.plain.backbone, "window", SIZE) != SIZE:
            raise ValueError(f"the demo's images have {SIZE}x{SIZE} pixels, this plain CNN takes others")
        if self.network.head is not None:
            raise ValueError("the demo shows the logits of scale channels; this network pools features")
        self.network.eval()
        self.plain.eval()

    def settings(self) -> dict[str, Any]:
        """What the page needs to know once."""
        return {
            "scales": list(self.network.grid),
            "window": self.network.foveate.window,
            "everywhere": self.network.look == "everywhere",
            "side": SIZE,
            "furthest": FURTHEST,
            "smallest": SMALLEST,
            "largest": LARGEST,
            "sizes": list(MNIST_SIZES),
            "trained": list(self.trained),
        }

    @torch.inference_mode()
    def at(self, digit: Tensor, size: float, off: tuple[int, int] = (0, 0)) -> dict[str, Any]:
        """What both networks see and say of a digit (28, 28) uint8 at a size from 1/2 to 8.

        off   by how many rows and columns it is off the centre
        """
        images = placed(large_scale(digit[None], size), off)  # (1, 1, 112, 112)
        said, where = self._explained(images)
        assert said.channels is not None
        assert said.contributions is not None
        shares = said.contributions[0]  # (S,)
        selected = int(shares.argmax())
        return {
            "size": size,
            "off": list(off),
            "picture": pixels(images[0, 0]),
            "windows": pixels(self._windows(images, where)),
            "place": _rounded(where[selected]),
            "logits": _rounded(said.channels[0]),
            "contributions": _rounded(shares),
            "selected": selected,
            "at_edge": selected in (0, len(self.network.grid) - 1),
            "verdict": _verdict(said.logits[0]),
            "plain": _verdict(self.plain(images)[0]),
        }

    @torch.inference_mode()
    def at_all_sizes(self, digit: Tensor, off: tuple[int, int] = (0, 0)) -> dict[str, Any]:
        """The verdicts of both networks at the seventeen sizes of MNIST Large Scale, at one place."""
        sizes = torch.tensor(MNIST_SIZES, dtype=torch.float64)
        images = placed(large_scale(digit.expand(len(sizes), -1, -1), sizes), off)  # (17, 1, 112, 112)
        return {
            "sizes": list(MNIST_SIZES),
            "scale_channels": _classes(self.network(images)),
            "plain": _classes(self.plain(images)),
        }

    def _explained(self, images: Tensor) -> tuple[Explanation, Tensor]:
        """What the network says of one image, and where each channel looked: rows and columns (S, 2).

        A network that looks everywhere has the winning class at its strongest place in each channel.
        """
        everywhere = self.network.everywhere
        if everywhere is None:
            centre = images.new_full((len(self.network.grid), 2), (SIZE - 1) / 2)
            return self.network.explain(images), centre
        channels, places = everywhere.found(images, self.network.backbone)  # (1, S, K) and (1, S, K, 2)
        said = self.network.explain_channels(channels)
        return said, places[0, :, int(said.logits[0].argmax())]

    def _windows(self, images: Tensor, where: Tensor) -> Tensor:
        """The windows (S, n, n) of the channels about these places of one image."""
        each = (self.network.foveate(images, place[None]) for place in where)  # (1, S, 1, n, n)
        return torch.stack([stack[0, channel, 0] for channel, stack in enumerate(each)])


def placed(images: Tensor, off: tuple[int, int]) -> Tensor:
    """Digits (N, 1, H, H) moved by so many rows and columns over the empty ground."""
    return moved(images[:, 0] - BACKGROUND, torch.tensor([off]).expand(len(images), 2))[:, None] + BACKGROUND


def open_looks(network: Path, plain: Path) -> Looks:
    """Both networks from their folders, checked to be what the demo shows."""
    shown, beside = SavedNetwork.open(network), SavedNetwork.open(plain)
    kinds = {True: "a plain CNN", False: "a scale-channel network"}
    given = (("--network", network, shown, False), ("--plain", plain, beside, True))
    for option, place, saved, plain_one in given:
        is_plain = saved.network.look == PLAIN
        if is_plain != plain_one:
            raise ValueError(f"{option} must be {kinds[plain_one]}; '{place}' is {kinds[is_plain]}")
        require_digits(saved.network, CLASSES, option, f"'{place}'")
        if (saved.values, saved.reduce) != ("digits", 1):
            raise ValueError(
                f"{option} must be a network for digits as MNIST has them; '{place}' was trained on other "
                "images"
            )
    return Looks(shown.network, beside.network, shown.sizes or ())


def require_digits(network: nn.Module, classes: int, wanted: str, name: str) -> None:
    """A clear error unless a network takes grey images and has this many classes."""
    takes, has = (getattr(network.backbone, fact, None) for fact in ("channels", "classes"))
    if (takes, has) != (1, classes):
        raise ValueError(
            f"{wanted} must be a network for grey images with {classes} classes; "
            f"{name} has {has} classes and takes {'grey' if takes == 1 else 'coloured'} images"
        )


def example(number: int, label: int | None = None) -> dict[str, Any]:
    """A built-in digit of the test split as pen strokes in a unit square: any, or one of a class."""
    if not 0 <= number < EXAMPLES:
        raise ValueError(f"number must be from 0 to {EXAMPLES - 1}; got {number}")
    if label is not None and not 0 <= label < CLASSES:
        raise ValueError(f"digit must be from 0 to {CLASSES - 1}; got {label}")
    digits = strokes(CLASSES, number, "test")  # ten consecutive digits hold each class once
    index = number % CLASSES if label is None else int((digits.labels == label).nonzero()[0, 0])
    lines: list[list[list[float]]] = []
    # Digits are drawn about 0 and fill 20/28 of their box; on a pad one draws larger.
    for start, end in digits.segments[index].mul(1.15).add(0.5).tolist():
        if lines and lines[-1][-1] == start:
            lines[-1].append(end)
        else:
            lines.append([start, end])
    return {"strokes": [_rounded(torch.tensor(line)) for line in lines], "label": int(digits.labels[index])}


def pixels(images: Tensor) -> str:
    """Values from −0.76 to 0.76 as bytes from black to white, in base64."""
    return in_base64((as_shown(images) * 255).round().clamp(0, 255).byte())


def in_base64(pixels: Tensor) -> str:
    return base64.b64encode(pixels.contiguous().numpy().tobytes()).decode("ascii")


def _classes(logits: Tensor) -> list[int]:
    """The most likely classes of answers (B, K)."""
    require_finite(logits)
    return logits.argmax(1).tolist()


def _verdict(logits: Tensor) -> dict[str, Any]:
    return {"digit": _classes(logits[None])[0], "probabilities": _rounded(logits.softmax(0))}


def _rounded(values: Tensor) -> Any:
    """As lists with four digits after the point: what a page shows, at a third of the bytes."""
    return (values.double() * 1e4).round().div(1e4).tolist()
