"""Tests that the augmentation was not made for: what survives outside the range that recipes were tuned on.

    python -m benchmarks.outside RUN [RUN …] [--out results/outside.jsonl] [--images 10000]

`visible = 0.5` and `detail = 0.5` are just what the test range of the tables asks for. So finished runs are
tested once more, on what no choice was made by (test images):

    wide      digits of sizes 1/4 to 16 in images of 224 pixels; a plain CNN sees the middle of them, which
              is all that it takes. CIFAR-10 by factors from 1/4 to 4
    black     what lies outside the picture is black instead of repeated or mirrored: for digits as the
              windows see it, for CIFAR-10 in the test images themselves
    aliased   CIFAR-10, shrunk without anti-aliasing: perhaps what the paper did
    strokes   the built-in digits, whose rescaling is true at every size; digits only

Each run adds one line for each test. A run that the file has already is left out.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from scalechannels import ScaleChannelNetwork
from scalechannels.data.image_set import ImageSet
from scalechannels.data.mnist_large_scale import MnistLargeScale
from scalechannels.data.pictures import BACKGROUND
from scalechannels.data.rescale import Continuation, rescale
from scalechannels.data.sizes import MNIST_SIZES
from scalechannels.data.sources import load_cifar10
from scalechannels.files import append_line, json_lines
from scalechannels.plain import PlainNetwork
from scalechannels.training.config import DataConfig, ResolvedRun
from scalechannels.training.datasets import open_data
from scalechannels.training.errors import pack_errors
from scalechannels.training.runs import environment

IMAGES = 10_000
WIDE = 224
MNIST_WIDE = tuple(2 ** (k / 4) for k in range(-8, 17))  # 1/4 to 16
CIFAR_WIDE = tuple(2 ** (k / 4) for k in range(-8, 9))  # 1/4 to 4
Test = tuple[float, Callable[[], tuple[Tensor, Tensor]]]


def tests(
    config: ResolvedRun, device: torch.device, images: int, root: Path | None
) -> Iterator[tuple[str, list[Test]]]:
    """The name of each test and, for each of its sizes, what makes images and labels."""
    if config.data.name == "mnist":
        maker = MnistLargeScale(root, device=device)
        strokes = open_data(DataConfig("strokes"), device)
        yield "wide", [(s, lambda s=s: _part(maker.make("test", s, size=WIDE), images)) for s in MNIST_WIDE]
        yield "black", [(s, lambda s=s: _part(maker.make("test", s), images)) for s in MNIST_SIZES]
        yield "strokes", [(s, lambda s=s: _part(strokes.testing(s, "test"), images)) for s in MNIST_SIZES]
    else:
        data = load_cifar10(root)
        pictures, labels = (part[:images].to(device) for part in (data.test_images, data.test_labels))

        def cifar(size: float, continuation: Continuation, antialias: bool = True) -> tuple[Tensor, Tensor]:
            how: Any = {"continuation": continuation, "antialias": antialias}
            parts = [rescale(part, size, **how) for part in pictures.split(1000)]
            return torch.cat(parts).clamp(0, 255) / 255, labels

        yield "wide", [(s, lambda s=s: cifar(s, "reflect")) for s in CIFAR_WIDE]
        yield "black", [(s, lambda s=s: cifar(s, "zero")) for s in CIFAR_WIDE if s <= 1]
        yield "aliased", [(s, lambda s=s: cifar(s, "reflect", False)) for s in CIFAR_WIDE if 0.49 < s <= 1]


def _part(made: ImageSet, images: int) -> tuple[Tensor, Tensor]:
    return made.images[:images], made.labels[:images]


def as_tested(network: Any, test: str, of_digits: bool) -> Any:
    """The network as this test sees it: beyond a digit's image its windows find black."""
    if test == "black" and of_digits and isinstance(network, ScaleChannelNetwork):
        arguments = {**network.arguments(), "outside": "constant", "fill": BACKGROUND}
        return ScaleChannelNetwork(**arguments).to(next(network.parameters()).device).eval()
    return network


@torch.inference_mode()
def measure(
    configs: Sequence[ResolvedRun],
    networks: Sequence[Any],
    images: int,
    device: torch.device,
    root: Path | None = None,
) -> Iterator[dict[str, Any]]:
    """A line for each test of each run; all have the same data, so that images are made once for all."""
    of_digits = configs[0].data.name == "mnist"
    for test, sizes in tests(configs[0], device, images, root):
        asked = [as_tested(network, test, of_digits).eval() for network in networks]
        entries: list[list[dict[str, Any]]] = [[] for _ in networks]
        for size, make in sizes:
            pictures, labels = make()
            for network, told in zip(asked, entries, strict=True):
                parts = _seen(network, pictures).split(1000)
                wrong = torch.cat([network.explain(part).logits for part in parts]).argmax(1) != labels
                told.append(
                    {
                        "size": size,
                        "images": len(labels),
                        "accuracy": 100 * float((~wrong).double().mean()),
                        "errors": pack_errors(wrong),
                    }
                )
        for config, told in zip(configs, entries, strict=True):
            yield {
                "name": config.name,
                "test": test,
                "config": config.as_dict(),
                "environment": environment(device),
                "evaluation": {"split": "test", "sizes": told},
            }


def _seen(network: Any, pictures: Tensor) -> Tensor:
    """What a network takes of the images: a plain CNN for digits the middle, 112 pixels wide."""
    if isinstance(network, PlainNetwork) and pictures.shape[-1] == WIDE:
        margin = (WIDE - 112) // 2
        return pictures[..., margin:-margin, margin:-margin]
    return pictures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("runs", nargs="+", type=Path)
    parser.add_argument("--out", type=Path, default=Path("results/outside.jsonl"))
    parser.add_argument("--images", type=int, default=IMAGES)
    given = parser.parse_args()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    from scalechannels.saving.saved_network import SavedNetwork  # not where packages are missing

    known = {line["name"] for line in json_lines(given.out)}
    kinds: dict[str, list[tuple[ResolvedRun, Any]]] = {}
    for folder in given.runs:
        config = ResolvedRun.from_toml(folder / "config.toml")
        if config.name not in known:
            network = SavedNetwork.open(folder).network.to(device)
            kinds.setdefault(config.data.name, []).append((config, network))
    for of_one_kind in kinds.values():
        configs, networks = zip(*of_one_kind, strict=True)
        keep(measure(configs, networks, given.images, device), given.out)


def keep(lines: Iterable[dict[str, Any]], out: Path) -> None:
    """Adds the lines to a file, each as soon as it is there."""
    for line in lines:
        append_line(out, line)
        means = [entry["accuracy"] for entry in line["evaluation"]["sizes"]]
        print(f"{line['name']} {line['test']}: {' '.join(f'{mean:.1f}' for mean in means)}", flush=True)


if __name__ == "__main__":
    main()
