"""A plain detector on the trees of `benchmarks.detection_trees`: torchvision's FCOS, from scratch.

    python -m benchmarks.detection_trees_established --data FOLDER [--jitter] [--steps 3000] [--device cuda]

It learns from the same strip of one image: squares of 256 pixels at random places, mirrored and turned, in
batches of 8. With --jitter each is first enlarged or shrunk by a factor from 1/2 to 2, the range of the test:
the usual scale augmentation. Needs torchvision, and a GPU to be done in minutes.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from benchmarks.detection_trees import SIZES, parts, precisions
from benchmarks.established_canvases import LEAST
from scalechannels.data.boxes.labelled import LabelledImage
from scalechannels.data.decoding import MAX_PIXELS
from scalechannels.detection.average_precision import Ranked
from scalechannels.detection.measuring import TAIL, Measured
from scalechannels.files import json_text, write_text
from scalechannels.training.runs import environment

CROP, BATCH, RATE = 256, 8, 0.01
MOST = 1000
"""Trees found in an image at most."""
Target = dict[str, Tensor]


def fcos() -> Any:
    from torchvision.models.detection import fcos_resnet50_fpn

    return fcos_resnet50_fpn(
        weights=None,
        weights_backbone=None,
        num_classes=1,
        min_size=CROP,
        max_size=CROP,
        score_thresh=TAIL,
        detections_per_img=MOST,
        topk_candidates=MOST,
    )


def rescaled(picture: Tensor, factor: float) -> Tensor:
    """A picture (3, H, W) at another size."""
    if factor == 1:
        return picture
    shape = [round(side * factor) for side in picture.shape[1:]]
    return F.interpolate(picture[None], shape, mode="bicubic", antialias=factor < 1)[0].clamp(0, 1)


def crop(picture: Tensor, boxes: Tensor, jitter: bool, generator: torch.Generator) -> tuple[Tensor, Target]:
    """A random square, mirrored and turned, and the trees of which half is in it, between pixel edges."""
    factor = 2 ** float(2 * torch.rand((), generator=generator) - 1) if jitter else 1.0
    picture = rescaled(picture, factor)
    top, left = (
        int(torch.randint(max(side - CROP, 0) + 1, (), generator=generator)) for side in picture.shape[1:]
    )
    picture = picture[:, top : top + CROP, left : left + CROP]
    height, width = picture.shape[1:]
    picture = F.pad(picture, (0, CROP - width, 0, CROP - height))
    moved = (boxes + 0.5) * factor - torch.tensor([left, top, left, top])
    cut = moved.clamp(0, CROP)
    area, whole = ((part[:, 2:] - part[:, :2]).clamp_min(0).prod(1) for part in (cut, moved))
    cut = cut[area >= LEAST * whole]
    if torch.rand((), generator=generator) < 0.5:
        picture, cut = (
            picture.flip(2),
            torch.stack((CROP - cut[:, 2], cut[:, 1], CROP - cut[:, 0], cut[:, 3]), 1),
        )
    if torch.rand((), generator=generator) < 0.5:  # about the diagonal
        picture, cut = picture.transpose(1, 2), cut[:, [1, 0, 3, 2]]
    return picture, {"boxes": cut.float(), "labels": torch.zeros(len(cut), dtype=torch.int64)}


def train(learnt: LabelledImage, *, jitter: bool, steps: int, seed: int, device: torch.device) -> Any:
    torch.manual_seed(seed)
    generator = torch.Generator().manual_seed(seed)
    picture = learnt.read(False, MAX_PIXELS)
    model = fcos().to(device).train()
    optimiser = torch.optim.SGD(model.parameters(), lr=RATE, momentum=0.9, weight_decay=1e-4)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, RATE, total_steps=steps, pct_start=0.1)
    for step in range(1, steps + 1):
        made = [crop(picture, learnt.boxes, jitter, generator) for _ in range(BATCH)]
        images = [image.to(device) for image, _ in made]
        targets = [{name: part.to(device) for name, part in target.items()} for _, target in made]
        loss = sum(model(images, targets).values())
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 10.0)
        optimiser.step()
        schedule.step()
        if step % 100 == 0 or step == steps:
            print(f"step {step} of {steps}: loss {float(loss.detach()):.4f}", flush=True)
    return model.eval()


@torch.no_grad()
def tested(model: Any, image: LabelledImage, size: float, device: torch.device) -> Measured:
    picture = rescaled(image.read(False, MAX_PIXELS), size)
    model.transform.min_size, model.transform.max_size = (min(picture.shape[1:]),), max(picture.shape[1:])
    (said,) = model([picture.to(device)])
    found = Ranked(said["boxes"].double().cpu() - 0.5, said["labels"].cpu(), said["scores"].double().cpu())
    factors = torch.tensor([picture.shape[2] / image.width, picture.shape[1] / image.height] * 2)
    boxes = (image.boxes + 0.5) * factors - 0.5
    truth = Ranked(boxes, torch.zeros(len(boxes), dtype=torch.int64), torch.ones(len(boxes)))
    return Measured(size, [found], [truth])


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--jitter", action="store_true")
    parser.add_argument("--steps", type=int, default=3000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--out", type=Path, required=True)
    chosen = parser.parse_args()
    device, start = torch.device(chosen.device), time.perf_counter()
    learnt, images = parts(chosen.data, Path(tempfile.mkdtemp()))
    model = train(learnt.images[0], jitter=chosen.jitter, steps=chosen.steps, seed=chosen.seed, device=device)
    seconds, rows = round(time.perf_counter() - start), []
    for name, boxed in images.items():
        for size in SIZES:
            rows.append({"image": name, **precisions(tested(model, boxed.images[0], size, device))})
            print(json.dumps(rows[-1]), flush=True)
    where = {name: environment(device)[name] for name in ("device", "commit", "torch")}
    about = {"trees": learnt.objects, "steps": chosen.steps, "jitter": chosen.jitter, "seconds": seconds}
    write_text(chosen.out, json_text({"learnt": about, "rows": rows, "environment": where}) + "\n")


if __name__ == "__main__":
    main()
