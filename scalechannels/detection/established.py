"""A detector as people would use it otherwise, on the same boxes: torchvision's FCOS or RetinaNet.

    images, boxes ──squares of 512 pixels, rescaled, mirrored──▶ FCOS ──▶ boxes, beside ours

Each square is first enlarged or shrunk by a factor from the range that is asked for: the usual augmentation,
by which such detectors learn other sizes. The layers below begin with ImageNet's weights where these can be
downloaded. Ignored regions, which torchvision knows nothing of, are painted grey. Limit: one recipe, that was
not tuned for the user's images; a GPU is needed to be done in minutes.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from scalechannels.data.boxes.labelled import BoxedImages
from scalechannels.data.decoding import MAX_PIXELS
from scalechannels.data.frames import reduced
from scalechannels.detection.average_precision import Ranked
from scalechannels.detection.boxes import areas
from scalechannels.detection.found import reduced_from
from scalechannels.detection.learning import learn
from scalechannels.detection.measuring import TAIL, Finder
from scalechannels.detection.window_pool import Objects

Name = Literal["fcos", "retinanet"]
BUILT_BY = {"fcos": "fcos_resnet50_fpn", "retinanet": "retinanet_resnet50_fpn"}
SIDE, BATCH, STEPS, RATE = 512, 8, 3000, 3e-4
ABOUT = 0.5
"""The share of squares that are laid about an object; the others lie anywhere."""
LEAST = 0.5
"""An object that is cut by the border of a square counts while so much of its area is left."""
MOST = 1000
"""Objects found in an image at most."""


def require(name: Name, device: str) -> None:
    """Refuse before any work what could not be done."""
    try:
        importlib.import_module("torchvision.models.detection")
    except (ImportError, RuntimeError) as error:  # the second where it does not fit this PyTorch
        raise ImportError(
            f"--against {name} needs torchvision, which cannot be imported ({error}): pip install torchvision"
        ) from None
    if device == "cpu":
        raise ValueError(f"--against {name} needs a GPU: on a CPU it would train for hours")
    if not hasattr(torch.ops.torchvision, "nms"):  # it would fail at its first look, after the training
        raise ImportError(f"--against {name}: torchvision has no compiled part that fits this PyTorch")


class Squares(NamedTuple):
    """A batch as torchvision takes it."""

    images: list[Tensor]  # (3, SIDE, SIDE) each
    targets: list[dict[str, Tensor]]  # boxes (N, 4) between pixel edges, and labels (N,)

    def to(self, device: torch.device) -> Squares:
        moved = [{name: part.to(device) for name, part in target.items()} for target in self.targets]
        return Squares([image.to(device) for image in self.images], moved)


def loss_of(model: Any, batch: Squares) -> Tensor:
    return torch.stack(list(model(batch.images, batch.targets).values())).sum()


class Established:
    """The training of one such detector.

    scales   the factors by which squares are rescaled, from the smallest to the largest
    reduce   how many times smaller images are made first, as for the detector beside it
    """

    def __init__(
        self,
        name: Name,
        boxed: BoxedImages,
        *,
        scales: tuple[float, float],
        reduce: int = 1,
        turns: bool = False,
        seed: int = 0,
        steps: int = STEPS,
        max_pixels: int = MAX_PIXELS,
        device: str = "cuda",
        state: Path | None = None,
        report: Callable[[str], None] | None = None,
    ) -> None:
        self.boxed, self.scales, self.reduce, self.turns = boxed, scales, reduce, turns
        self.seed, self.steps, self.max_pixels = seed, steps, max_pixels
        self.device, self.state, self.report = device, state, report
        torch.manual_seed(seed)
        self.model, self.begins = built(name, len(boxed.classes))
        self.model.to(device)

    def run(self) -> Finder:
        """Train, and how the trained model looks at images."""
        seen = [
            (reduced(one.read(False, self.max_pixels), self.reduce), Objects.of(one, self.reduce))
            for one in self.boxed.images
        ]

        def batch(_: int, generator: torch.Generator) -> Squares:
            made = Squares([], [])
            for one in torch.randint(len(seen), (BATCH,), generator=generator).tolist():
                picture, objects = seen[one]
                image, target = square(picture, objects, self.scales, self.turns, generator)
                made.images.append(image)
                made.targets.append(target)
            return made

        learn(
            self.model,
            batch,
            loss_on=loss_of,
            steps=self.steps,
            rate=RATE,
            seed=self.seed,
            state=self.state,
            report=self.report,
        )
        self.model.eval()
        return self.find

    @torch.no_grad()
    def find(self, picture: Tensor) -> Ranked:
        """The objects in an image (C, H, W) at its own size: torchvision is kept from resizing it."""
        small = reduced(picture, self.reduce)
        sides = small.shape[1:]
        self.model.transform.min_size, self.model.transform.max_size = (min(sides),), max(sides)
        (said,) = self.model([small.expand(3, -1, -1).to(self.device)])
        right, down = reduced_from(self.reduce, small.shape, picture.shape)
        boxes = (said["boxes"].double().cpu() - 0.5) * self.reduce + torch.tensor([right, down] * 2)
        return Ranked(boxes, said["labels"].cpu(), said["scores"].double().cpu())


def built(name: Name, classes: int) -> tuple[Any, str]:
    """The model, and what its layers begin with."""
    make = getattr(importlib.import_module("torchvision.models.detection"), BUILT_BY[name])
    options: dict[str, Any] = {
        "num_classes": classes,
        "min_size": SIDE,
        "max_size": SIDE,
        "score_thresh": TAIL,
        "detections_per_img": MOST,
        "topk_candidates": MOST,
    }
    try:
        return make(weights=None, weights_backbone="DEFAULT", **options), "ImageNet's weights"
    except OSError as error:  # no network
        trained = f"weights drawn by chance, since ImageNet's could not be downloaded ({error})"
        return make(weights=None, weights_backbone=None, **options), trained


def square(
    picture: Tensor, objects: Objects, scales: Sequence[float], turns: bool, generator: torch.Generator
) -> tuple[Tensor, dict[str, Tensor]]:
    """A square (3, SIDE, SIDE) of a picture (3, H, W), rescaled and mirrored, with the objects in it."""

    def chance() -> float:
        return float(torch.rand((), generator=generator))

    factor = scales[0] * (scales[1] / scales[0]) ** chance()
    reach = max(1, round(SIDE / factor))  # pixels of the picture along the square
    begins = [(side - reach) * chance() if side > reach else 0.0 for side in picture.shape[1:]]
    if len(objects.labels) and chance() < ABOUT:
        middle = objects.middles[int(len(objects.labels) * chance())].tolist()
        drawn = [at - reach * chance() for at in middle]
        begins = [
            min(max(at, 0.0), max(side - reach, 0.0))
            for at, side in zip(drawn, picture.shape[1:], strict=True)
        ]
    top, left = (int(at) for at in begins)
    painted = picture[:, top : top + reach, left : left + reach].clone()
    shift = torch.tensor([left, top, left, top]) - 0.5  # from pixel centres to edges
    for x0, y0, x1, y1 in (objects.ignored - shift).clamp_min(0).round().long().tolist():
        painted[:, y0:y1, x0:x1] = 0.5
    shape = [max(1, round(side * factor)) for side in painted.shape[1:]]
    image = F.interpolate(painted[None], shape, mode="bilinear", antialias=factor < 1)[0][:, :SIDE, :SIDE]
    image = F.pad(image, (0, SIDE - image.shape[2], 0, SIDE - image.shape[1]))
    whole = (objects.boxes - shift) * factor
    cut = whole.clamp(0, SIDE)
    there = areas(cut) >= LEAST * areas(whole)
    cut, labels = cut[there], objects.labels[there]
    if chance() < 0.5:
        image, cut = image.flip(2), mirrored(cut)
    if turns and chance() < 0.5:
        image, cut = image.flip(1), mirrored(cut[:, [1, 0, 3, 2]])[:, [1, 0, 3, 2]]
    if turns and chance() < 0.5:  # about the diagonal
        image, cut = image.transpose(1, 2), cut[:, [1, 0, 3, 2]]
    return image.contiguous(), {"boxes": cut.float(), "labels": labels}


def mirrored(boxes: Tensor) -> Tensor:
    """Boxes (N, 4) between pixel edges of a square that is mirrored left to right."""
    return torch.stack((SIDE - boxes[:, 2], boxes[:, 1], SIDE - boxes[:, 0], boxes[:, 3]), 1)
