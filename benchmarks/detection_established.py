"""An established detector on the same scenes: torchvision's FCOS with a ResNet-50 and a feature pyramid.

    python -m benchmarks.detection_established [--jitter] [--seeds 0 1 2] [--split test] [--out FILE]

Trained from scratch on the canvases of digits that our detector learns from, in as many steps on as many.
With --jitter the canvases are enlarged or shrunk by a factor from 1/2 to 4 first, the range of the test: the
usual scale augmentation, which our rows do without. Needs torchvision and a GPU.
"""

from __future__ import annotations

import argparse
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from benchmarks.detection_scenes import (
    CANVASES,
    MOST,
    SIDE,
    SIZES,
    STEPS,
    TAIL,
    Found,
    Method,
    as_found,
    canvas_boxes,
    look,
    training_told,
)
from scalechannels.detection.training import CLASSES, digits_of_one_size
from scalechannels.detection.training_windows import Digits, canvases

LEAST = 0.5
"""A digit that is cut by the border of a crop counts while so much of its area is left."""
Targets = list[dict[str, Tensor]]


def fcos(side: int) -> Any:
    """The network for images of this side; grey values need no normalisation."""
    from torchvision.models.detection import fcos_resnet50_fpn

    return fcos_resnet50_fpn(
        weights=None,
        weights_backbone=None,
        num_classes=CLASSES,
        min_size=side,
        max_size=side,
        image_mean=[0.0] * 3,
        image_std=[1.0] * 3,
        score_thresh=TAIL,
        detections_per_img=MOST,
    )


def jittered(images: Tensor, targets: Targets, generator: torch.Generator) -> tuple[Tensor, Targets]:
    """Canvases (B, 1, H, H) rescaled by one factor; enlarged ones are cut to their former size."""
    low, high = SIZES
    factor = low * (high / low) ** float(torch.rand((), generator=generator))
    side = images.shape[-1]
    size = max(32, round(side * factor))
    images = F.interpolate(images, size=(size, size), mode="bilinear", antialias=True)
    kept = min(side, size)
    left, top = (int(torch.randint(size - kept + 1, (), generator=generator)) for _ in range(2))
    images = images[..., top : top + kept, left : left + kept]
    moved = []
    for one in targets:
        boxes = one["boxes"] * (size / side) - torch.tensor([left, top, left, top])
        cut = boxes.clamp(0, kept)
        area, whole = ((part[:, 2:] - part[:, :2]).clamp_min(0).prod(1) for part in (cut, boxes))
        there = area >= LEAST * whole
        moved.append({"boxes": cut[there], "labels": one["labels"][there]})
    return images, moved


def train(digits: Digits, *, jitter: bool, steps: int, rate: float, seed: int, device: torch.device) -> Any:
    torch.manual_seed(seed)
    generator = torch.Generator().manual_seed(seed)
    model = fcos(side=180).to(device).train()
    optimiser = torch.optim.SGD(model.parameters(), lr=rate, momentum=0.9, weight_decay=1e-4)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, rate, total_steps=steps, pct_start=0.1)

    def batch() -> tuple[Tensor, Targets]:
        made = canvases(digits, CANVASES, generator)
        images, targets = made.images, canvas_boxes(made.middles, made.labels)
        return jittered(images, targets, generator) if jitter else (images, targets)

    # One thread draws the next canvases while the GPU learns from these.
    drawing = ThreadPoolExecutor(1)
    upcoming = drawing.submit(batch)
    for step in range(1, steps + 1):
        (images, targets), upcoming = upcoming.result(), drawing.submit(batch)
        model.transform.min_size = (images.shape[-1],)
        model.transform.max_size = images.shape[-1]
        there = [{name: value.to(device) for name, value in one.items()} for one in targets]
        with torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda"):
            losses = model(list(images.expand(-1, 3, -1, -1).to(device)), there)
        loss = sum(losses.values())
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 10.0)
        optimiser.step()
        schedule.step()
        if step % 200 == 0:
            print(f"step {step} of {steps}: loss {float(loss.detach()):.4f}", flush=True)
    drawing.shutdown(cancel_futures=True)
    return model.eval()


def method(model: Any, device: torch.device) -> Method:
    model.transform.min_size, model.transform.max_size = (SIDE,), SIDE

    @torch.no_grad()
    def found(image: Tensor) -> Found:
        (said,) = model([image.expand(3, -1, -1).to(device)])
        boxes = said["boxes"].double().cpu() - 0.5  # from edges to pixel centres
        return as_found(boxes, said["labels"].cpu(), said["scores"].double().cpu())

    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--jitter", action="store_true")
    parser.add_argument("--scenes", type=int, default=24, help="scenes of each background")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--split", choices=("test", "validation"), default="test")
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--rate", type=float, default=0.02, help="chosen on validation scenes")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/detection.jsonl"))
    chosen = parser.parse_args()
    device, row = torch.device(chosen.device), "fcos, jitter" if chosen.jitter else "fcos"
    digits = digits_of_one_size()
    for seed in chosen.seeds:
        start = time.perf_counter()
        model = train(
            digits, jitter=chosen.jitter, steps=chosen.steps, rate=chosen.rate, seed=seed, device=device
        )
        about = training_told(chosen.steps, {"images": CANVASES}, start, device) | {"rate": chosen.rate}
        look({row: method(model, device)}, {row: about}, chosen.split, chosen.scenes, chosen.out, seed)


if __name__ == "__main__":
    main()
