"""A trained candidate under all conditions: what it gets right, how sure it is, and what it costs."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode

from scalechannels.backbones.inference import evaluating, stated
from scalechannels.backbones.paper import ConvBackbone
from scalechannels.backbones.sized import multiplications
from scalechannels.data.survey import Images
from scalechannels.network import Explanation, require_finite
from scalechannels.report.calibration import calibration_error, fitted_temperature
from scalechannels.report.conditions import Condition, picture
from scalechannels.training.config.data import DataConfig
from scalechannels.training.own_images import FolderData
from scalechannels.training.progress import Progress

MOST_TESTED = {"validation": 400, "test": 1_000}
"""Images of a part under each condition; more are thinned out evenly. To choose, fewer suffice: candidates
are compared on the same images. What the report says is to hold for new ones: of 1,000 images at 85 %, chance
is worth 2 points on either side."""
AT_ONCE = 2**21
"""Pixels that go through a network together."""
HELD = 8 * AT_ONCE
"""Pixels of pictures that wait for others of their size."""


@dataclass(frozen=True)
class Tested:
    """One candidate on one part under one condition; accuracies in per cent."""

    group: str
    value: float
    images: int
    accuracy: float
    balanced: float
    """The mean of the classes' accuracies."""
    margin: float
    """The balanced accuracy is uncertain by so much on either side, at the level of 95 %."""
    calibration: float
    """The expected calibration error in per cent, at the fitted temperature."""
    sure: float
    """The mean probability of the answers in per cent."""
    per_class: list[float]
    confusion: list[list[int]]
    selection: list[float] | None
    """The mean contribution of each scale channel; None without channels."""


def tried(network: Any, data: FolderData, wanted: Sequence[Condition], progress: Progress) -> dict[str, Any]:
    """All that the report says of a candidate; the temperature is fitted on the validation part."""
    said: dict[str, list[Explanation]] = {}
    labels: dict[str, Tensor] = {}
    started = time.perf_counter()
    for split in ("validation", "test"):
        told = partial(progress.advance, count=2 * len(wanted))
        said[split], labels[split] = _asked(network, data, split, wanted, told)
    seconds = time.perf_counter() - started
    sizes = [place for place, condition in enumerate(wanted) if condition.group == "size"]
    fitted_on = torch.cat([said["validation"][place].logits for place in sizes])
    temperature = fitted_temperature(fitted_on, labels["validation"].repeat(len(sizes)))
    own = [place for place, condition in enumerate(wanted) if condition == Condition("size", 1.0)]
    scales = said["validation"][own[0]].scales if own else None
    asked = len(wanted) * sum(map(len, labels.values()))
    return {
        "temperature": temperature,
        "own_scale": None if scales is None else float(scales.median()),
        "cost": cost(network),
        "seconds_an_image": seconds / asked,
        **{
            split: _summaries(wanted, said[split], labels[split], len(data.classes), temperature)
            for split in ("validation", "test")
        },
        **{
            f"{split}_images": right_shares(wanted, said[split], labels[split], data.config.images or "crops")
            for split in ("validation", "test")
        },
    }


def tested(
    network: Any, data: FolderData, wanted: Sequence[Condition], temperature: float, progress: Progress
) -> list[dict[str, Any]]:
    """What the report says of a network that learnt from the validation images as well."""
    told = partial(progress.advance, count=len(wanted))
    said, labels = _asked(network, data, "test", wanted, told)
    return _summaries(wanted, said, labels, len(data.classes), temperature)


def _asked(
    network: Any,
    data: FolderData,
    split: str,
    wanted: Sequence[Condition],
    told: Callable[[str], None],
) -> tuple[list[Explanation], Tensor]:
    """What a network says of a part under each condition, and what is right."""
    network.eval()
    chosen = thinned(len(data.part(split)), MOST_TESTED[split])
    said = []
    for condition in wanted:
        answers = answered(network, _pictures(data, split, chosen, condition), data.device)
        require_finite(answers.logits)
        said.append(answers)
        told(f"{condition.group} {condition.value:.3g}")
    return said, torch.tensor([data.part(split).labels[index] for index in chosen])


def _summaries(
    wanted: Sequence[Condition], said: Sequence[Explanation], labels: Tensor, classes: int, temperature: float
) -> list[dict[str, Any]]:
    return [
        asdict(summary(condition, answers, labels, classes, temperature))
        for condition, answers in zip(wanted, said, strict=True)
    ]


def summary(
    condition: Condition, answers: Explanation, labels: Tensor, classes: int, temperature: float
) -> Tested:
    """The numbers of one condition."""
    said = answers.logits.argmax(1)
    confusion = torch.bincount(labels * classes + said, minlength=classes**2).view(classes, classes)
    counts, right = confusion.sum(1), confusion.diagonal()
    there = counts > 0
    shares = right[there] / counts[there]
    hedged = (right[there] + 1) / (counts[there] + 2)  # so that one class without a mistake is not certain
    variance = (hedged * (1 - hedged) / counts[there]).sum() / int(there.sum()) ** 2
    logits = answers.logits / temperature
    return Tested(
        condition.group,
        condition.value,
        len(labels),
        100 * float((said == labels).double().mean()),
        100 * float(shares.double().mean()),
        196 * math.sqrt(float(variance)),
        calibration_error(logits, labels),
        100 * float(logits.softmax(1).amax(1).mean()),
        (100 * right.double() / counts.clamp_min(1)).tolist(),
        confusion.tolist(),
        None if answers.contributions is None else answers.contributions.double().mean(0).tolist(),
    )


def right_shares(
    wanted: Sequence[Condition], said: Sequence[Explanation], labels: Tensor, images: Images
) -> list[float]:
    """For each image, under what share of the scored conditions it was classified correctly."""
    right = [
        (answers.logits.argmax(1) == labels).double()
        for condition, answers in zip(wanted, said, strict=True)
        if condition.scored(images)
    ]
    return torch.stack(right).mean(0).tolist()


@torch.inference_mode()
def answered(network: Any, pictures: Iterable[Tensor], device: torch.device | str) -> Explanation:
    """What a network says about pictures (C, H, W) of any sizes; those of one size go through together.

    They may be made one by one: no more than a few batches of them are held at a time.
    """
    waiting: dict[tuple[int, ...], list[tuple[int, Tensor]]] = {}
    parts: list[Explanation] = []
    order: list[int] = []
    held = 0

    def ask(shape: tuple[int, ...]) -> None:
        nonlocal held
        numbers, together = zip(*waiting.pop(shape), strict=True)
        parts.append(network.explain(torch.stack(together).to(device)))
        order.extend(numbers)
        held -= len(numbers) * math.prod(shape)

    for number, one in enumerate(pictures):
        shape = tuple(one.shape)
        waiting.setdefault(shape, []).append((number, one))
        held += one.numel()
        if len(waiting[shape]) == max(1, AT_ONCE // one.numel()):
            ask(shape)
        while held > HELD:
            ask(max(waiting, key=lambda size: len(waiting[size]) * math.prod(size)))
    for shape in list(waiting):
        ask(shape)
    back = torch.tensor(order).argsort()

    def joined(name: str) -> Any:
        values = [getattr(part, name) for part in parts]
        return None if values[0] is None else torch.cat(values).float().cpu()[back]

    names = ("contributions", "scales", "places")
    return Explanation(joined("logits"), **{name: joined(name) for name in names})


def _pictures(data: FolderData, split: str, chosen: Sequence[int], condition: Condition) -> Iterator[Tensor]:
    config: DataConfig = data.config
    kind, pixels = config.images or "crops", config.own.object_pixels
    return (picture(data.image(split, index), condition, kind, pixels, index) for index in chosen)


def thinned(count: int, most: int) -> list[int]:
    """Which of so many images are tested: all, or `most` of them, spread evenly."""
    kept = min(count, most)
    return [place * count // kept for place in range(kept)]


def cost(network: Any) -> dict[str, float]:
    """Parameters, and the backbone's multiplications for an image where windows do not depend on its size.

    Those of making the windows come on top; all candidates have some, since all windows are anti-aliased.
    """
    parameters = sum(parameter.numel() for parameter in network.parameters())
    if network.look == "everywhere":
        return {"parameters": parameters}
    looks = len(getattr(network, "grid", (1,))) * (5 if getattr(network, "shifts", 0) else 1)
    return {"parameters": parameters, "multiplications": looks * _of_a_window(network)}


def _of_a_window(network: Any) -> int:
    """The multiplications of one window; of other backbones than the paper's as PyTorch counts them."""
    backbone = network.backbone
    if isinstance(backbone, ConvBackbone):
        return multiplications(backbone)
    side = network.window if network.look == "whole" else network.foveate.window
    weight = next(backbone.parameters())
    with evaluating(backbone), torch.no_grad(), FlopCounterMode(display=False) as counted:
        backbone(weight.new_zeros(1, stated(backbone, "channels") or 3, side, side))
    return counted.get_total_flops() // 2
