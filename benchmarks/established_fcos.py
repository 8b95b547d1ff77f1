"""torchvision's FCOS, and its training loss for a whole batch at once.

The formulas are those of torchvision's `FCOS.compute_loss` and `FCOSHead.compute_loss`, which go through the
images one by one and wait for the GPU to count. Here boxes are filled up to a constant number, and nothing
waits, so that a CUDA graph can hold a whole step. `python -m benchmarks.established_fcos` compares both.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

EPSILON = 1e-7
"""Of torchvision's GIoU."""


def fcos(classes: int, side: int, least: float, most: int) -> Any:
    """FCOS with a ResNet-50 and a feature pyramid, not trained yet; grey values need no normalisation.

    side     of the images that it will find objects in, which are not resized
    least    the score from which a detection counts
    most     detections of an image
    """
    from torchvision.models.detection import fcos_resnet50_fpn

    return fcos_resnet50_fpn(
        weights=None,
        weights_backbone=None,
        num_classes=classes,
        min_size=side,
        max_size=side,
        image_mean=[0.0] * 3,
        image_std=[1.0] * 3,
        score_thresh=least,
        detections_per_img=most,
    )


class Anchors(NamedTuple):
    """The points at which FCOS answers, and the distances to a box's edges that each is responsible for."""

    boxes: Tensor  # (A, 4)
    lower: Tensor  # (A,)
    upper: Tensor  # (A,)
    radius: float  # how far from a box's centre a point may be, in strides


@torch.no_grad()
def anchors(model: Any, images: Tensor) -> Anchors:
    """The anchors of a model for images of this size."""
    from torchvision.models.detection.image_list import ImageList

    learning = model.training
    maps = list(model.eval().backbone(images[:1]).values())
    model.train(learning)
    (boxes,) = model.anchor_generator(ImageList(images[:1], [images.shape[-2:]]), maps)
    sizes = boxes[:, 2] - boxes[:, 0]
    lower, upper = sizes * 4, sizes * 8
    lower[: maps[0][0, 0].numel()] = 0
    upper[-maps[-1][0, 0].numel() :] = torch.inf
    return Anchors(boxes, lower, upper, model.center_sampling_radius)


def outputs(model: Any, images: Tensor) -> dict[str, Tensor]:
    """For images (B, 3, H, W) logits (B, A, K), distances to edges (B, A, 4), and centreness (B, A, 1)."""
    return model.head(list(model.backbone(images).values()))


@torch.no_grad()
def matched(boxes: Tensor, labels: Tensor, at: Anchors) -> Tensor:
    """For every anchor the box (B, M, 4) that it shall find, the smallest one, or -1: (B, A)."""
    middles = (at.boxes[:, :2] + at.boxes[:, 2:]) / 2  # (A, 2)
    sizes = at.boxes[:, 2] - at.boxes[:, 0]
    centres = (boxes[..., :2] + boxes[..., 2:]) / 2  # (B, M, 2)
    away = (middles[:, None] - centres[:, None]).abs().amax(3)  # (B, A, M)
    before, after = middles[:, None] - boxes[:, None, :, :2], boxes[:, None, :, 2:] - middles[:, None]
    distances = torch.cat([before, after], 3)  # (B, A, M, 4)
    farthest = distances.amax(3)
    fits = (away < at.radius * sizes[:, None]) & (distances.amin(3) > 0) & (labels >= 0)[:, None]
    fits = fits & (farthest > at.lower[:, None]) & (farthest < at.upper[:, None])
    areas = (boxes[..., 2:] - boxes[..., :2]).prod(2)  # (B, M)
    best, which = (fits.float() * (1e8 - areas[:, None])).max(2)
    return torch.where(best < 1e-5, -1, which)


def losses(said: dict[str, Tensor], boxes: Tensor, labels: Tensor, at: Anchors) -> dict[str, Tensor]:
    """The three losses of FCOS, by torchvision's names; boxes whose label is -1 are none."""
    from torchvision.ops import sigmoid_focal_loss

    logits, codes, centreness = (
        said[name].float() for name in ("cls_logits", "bbox_regression", "bbox_ctrness")
    )
    which = matched(boxes, labels, at)
    found, which = which >= 0, which.clamp_min(0)  # (B, A)
    count = found.sum().clamp_min(1)
    right = torch.where(found, labels.gather(1, which), -1)
    classes = right[..., None] == torch.arange(logits.shape[2], device=logits.device)  # (B, A, K)
    loss_classes = sigmoid_focal_loss(logits, classes.float(), reduction="sum")

    # An anchor without a box has itself as its box: it counts nothing, and nothing is divided by zero.
    truth = boxes.gather(1, which[..., None].expand(-1, -1, 4))
    truth = torch.where(found[..., None], truth, at.boxes)  # (B, A, 4)
    middles = (at.boxes[:, :2] + at.boxes[:, 2:]) / 2
    codes = codes * (at.boxes[:, 2] - at.boxes[:, 0])[:, None]
    boxed = torch.cat([middles - codes[..., :2], middles + codes[..., 2:]], 2)
    loss_boxes = torch.where(found, 1 - generalised_iou(boxed, truth), 0.0).sum()

    before, after = middles - truth[..., :2], truth[..., 2:] - middles  # (B, A, 2)
    wanted = (torch.minimum(before, after) / torch.maximum(before, after)).prod(2).sqrt()
    missed = F.binary_cross_entropy_with_logits(centreness[..., 0], wanted, reduction="none")
    loss_centreness = torch.where(found, missed, 0.0).sum()
    return {
        "classification": loss_classes / count,
        "bbox_regression": loss_boxes / count,
        "bbox_ctrness": loss_centreness / count,
    }


def generalised_iou(one: Tensor, other: Tensor) -> Tensor:
    """Generalised IoU of boxes (..., 4), pair by pair."""
    low, high = torch.maximum(one[..., :2], other[..., :2]), torch.minimum(one[..., 2:], other[..., 2:])
    shared = _area((high - low).clamp_min(0))
    areas = [_area(box[..., 2:] - box[..., :2]) for box in (one, other)]
    union = areas[0] + areas[1] - shared
    low, high = torch.minimum(one[..., :2], other[..., :2]), torch.maximum(one[..., 2:], other[..., 2:])
    hull = _area(high - low)
    return shared / (union + EPSILON) - (hull - union) / (hull + EPSILON)


def _area(sides: Tensor) -> Tensor:
    """Sides (..., 2) multiplied. The gradient of `prod` asks the GPU for zeros, which ends a capture."""
    return sides[..., 0] * sides[..., 1]


def compared(seed: int, images: int = 6, side: int = 192, most: int = 25, classes: int = 10) -> list[float]:
    """The largest relative differences from torchvision: of the three losses, and of their gradients.

    Boxes of all sizes, some inside others; the first image has none, the second as many as there can be.
    """
    torch.manual_seed(seed)
    model = fcos(classes, side, 0.02, 100).train()
    at = anchors(model, torch.zeros(1, 3, side, side))
    counts = torch.tensor([0, most, *torch.randint(most + 1, (images - 2,)).tolist()])
    there = torch.arange(most) < counts[:, None]  # (B, M)
    corners = torch.rand(images, most, 2) * (side - 8)
    boxes = torch.cat([corners, corners + 4 + torch.rand(images, most, 2) ** 2 * side], 2)
    boxes = boxes.clamp(0, side) * there[..., None]
    labels = torch.where(there, torch.randint(classes, (images, most)), -1)
    points = len(at.boxes)
    said = {"cls_logits": torch.randn(images, points, classes)}
    said |= {
        "bbox_regression": 3 * torch.rand(images, points, 4),
        "bbox_ctrness": torch.randn(images, points, 1),
    }
    for value in said.values():
        value.requires_grad_()
    targets = [
        {"boxes": box[real], "labels": label[real]}
        for box, label, real in zip(boxes, labels, there, strict=True)
    ]
    levels = [int((at.boxes[:, 2] - at.boxes[:, 0] == size).sum()) for size in (8, 16, 32, 64, 128)]
    theirs = model.compute_loss(targets, said, [at.boxes] * images, levels)
    ours = losses(said, boxes, labels, at)
    differences = [float(((ours[name] - value) / value).detach().abs()) for name, value in theirs.items()]
    slopes = [torch.autograd.grad(sum(one.values()), list(said.values())) for one in (ours, theirs)]
    return differences + [float((a - b).abs().max() / b.abs().max()) for a, b in zip(*slopes, strict=True)]


def main() -> None:
    """Compare our losses with torchvision's, on random boxes."""
    for seed in range(5):
        differences = compared(seed)
        print(f"seed {seed}: " + ", ".join(f"{one:.1e}" for one in differences))
        assert max(differences) < 1e-5, "our losses differ from torchvision's"


if __name__ == "__main__":
    main()
