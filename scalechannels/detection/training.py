"""Train a detector of digits: ten classes and the background, from digits of one size.

    python -m scalechannels.detection.training --out digit-detector

The digits are MNIST's first 50,000 and 20,000 built-in ones, all of size 1; `training_windows` says what is
made of them. --kind trains the baselines that the detection benchmark measures beside it, on the same digits:
"pyramid", a plain CNN that sees windows of scale 1 alone, to be slid over an image pyramid; and "swmax",
which learns from whole images with one digit or none, by the maximum over space and scale.

The shipped detector went on from such a one (--start), with printed digits beside the others (--fonts, a
folder of font files) and photographs without digits (--photographs), on which it learnt to stay quiet:

    python -m scalechannels.detection.training --out digit-detector --start plain-detector
        --photographs .data/photographs/train --fonts .data/fonts/train --steps 1500 --rate 1.5e-3
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, get_args

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from scalechannels.backbones.paper import ConvBackbone
from scalechannels.data.image_set import require_one_of
from scalechannels.data.mnist_large_scale import large_scale
from scalechannels.data.pictures import as_shown
from scalechannels.data.printed import Printed
from scalechannels.data.sources import load_mnist
from scalechannels.data.strokes import BOX, strokes
from scalechannels.detection.learning import Batch, learn, to_stderr
from scalechannels.detection.photographs import Photographs
from scalechannels.detection.training_windows import PITCH, Digits, canvases, windows
from scalechannels.files import write_text
from scalechannels.network import ScaleChannelNetwork
from scalechannels.pooling import MaxOverScales
from scalechannels.scales import QUARTER_OCTAVE, ScaleGrid

Kind = Literal["detector", "pyramid", "swmax"]
Data = Literal["both", "mnist", "strokes"]

CLASSES = 10
GRID = ScaleGrid(2**-1.25, 2**2.25, ratio=QUARTER_OCTAVE)
"""Objects from 1/2 to 4, and one channel more at each end, so that peaks in the range have two neighbours."""
CANVASES, EACH = 16, 32
"""Canvases in a batch, and windows onto each of them."""
MINING = 250
"""Steps between two searches for digits in pictures without."""
WHOLE = 56
"""Pixels along the images that SWMax learns from."""
COARSE = ScaleGrid(0.5, 2, ratio=2.0)
"""The scales at which SWMax looks at them: few, because every whole image goes through each of them."""


def digits_of_one_size(
    data: Data = "both",
    root: Path | None = None,
    count: int = 50_000,
    fonts: Sequence[Path] = (),
    printed: int = 20_000,
) -> Digits:
    """Digits of size 1 from the training splits.

    fonts     their ten digits each are there too, repeated until they are about `printed`
    """
    require_one_of(Data, data=data)
    images, labels = [], []
    if data != "mnist":
        drawn = strokes(min(count, 20_000), 0, "train")
        images.append(drawn.render(1.0, BOX))
        labels.append(drawn.labels)
    if data != "strokes":
        mnist = load_mnist(root)
        first = min(count, len(mnist.train_images) * 5 // 6)
        images.append(large_scale(mnist.train_images[:first], 1.0, BOX))
        labels.append(mnist.train_labels[:first])
    if fonts:
        drawn_by = Printed.of(fonts)
        again = max(1, printed // len(drawn_by.labels))
        images.append(drawn_by.render(1.0, BOX).repeat(again, 1, 1, 1))
        labels.append(drawn_by.labels.repeat(again))
    return Digits(as_shown(torch.cat(images)[:, 0]), torch.cat(labels))


def train(
    kind: Kind,
    digits: Digits,
    *,
    steps: int = 3000,
    rate: float = 3e-3,
    seed: int = 0,
    features: Sequence[int] = (16, 16, 32, 32),
    hidden: int = 100,
    photographs: Photographs | None = None,
    start: ScaleChannelNetwork | None = None,
    state: Path | None = None,
) -> ScaleChannelNetwork:
    """A network of 11 classes, the background last, whose backbone learnt from `digits`.

    photographs   pictures without digits, for the detector: backgrounds and negatives, mined every 250 steps
    start         the network whose weights it begins with, of the same layers
    state         a file to resume from, see `learn`
    """
    require_one_of(Kind, kind=kind)
    torch.manual_seed(seed)
    backbone = ConvBackbone(tuple(features), classes=CLASSES + 1, hidden=hidden, batch_norm=kind != "swmax")
    backbone = backbone.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    if start is not None:
        backbone.load_state_dict(start.backbone.state_dict())
    model: nn.Module = backbone
    network = ScaleChannelNetwork(backbone, GRID, MaxOverScales())
    if kind == "swmax":  # without batch norm it takes smaller steps
        rate, backbone.drop.p = rate / 3, 0.0
        model = ScaleChannelNetwork(backbone, COARSE, MaxOverScales(), look="everywhere")

    def batch(step: int, generator: torch.Generator) -> Batch:
        if kind == "swmax":
            return Batch(*whole_images(digits, generator))
        made = canvases(digits, CANVASES, generator, None if photographs is None else photographs.behind)
        seen, targets = windows(made, EACH, CLASSES, generator, one_scale=kind == "pyramid")
        if photographs is None:
            return Batch(seen, targets)
        if step % MINING == 0 and (step or start):
            found = photographs.mine(network.eval(), CLASSES, generator)
            network.train()
            to_stderr(f"looked for digits where there are none: {found} windows are added")
        quiet = photographs.windows((GRID.minimum, GRID.maximum), generator)
        nothing = torch.eye(CLASSES + 1)[-1].expand(len(quiet), -1)
        return Batch(torch.cat((seen, quiet)), torch.cat((targets, nothing)))

    more = None if photographs is None else {"mined": photographs}
    learn(model, batch, steps=steps, rate=rate, seed=seed, state=state, report=to_stderr, more=more)
    return network.eval()


def whole_images(digits: Digits, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Images (B, 1, 56, 56) with at most one digit, and what they hold: the class, or background."""
    made = canvases(digits, CANVASES, generator)
    # The first place of a canvas, and around it the last one where that is empty, else the darkest value.
    empty = (made.labels[:, -1] < 0)[:, None, None, None]
    images = torch.where(empty, made.images[..., -WHOLE:, -WHOLE:], made.images.amin((2, 3), keepdim=True))
    images[..., : WHOLE - PITCH, :] = images[..., -1:, -1:]
    images[..., : WHOLE - PITCH] = images[..., -1:, -1:]
    margin = (WHOLE - PITCH) // 2
    images[..., margin : margin + PITCH, margin : margin + PITCH] = made.images[..., :PITCH, :PITCH]
    labels = torch.where(made.labels[:, 0] < 0, CLASSES, made.labels[:, 0])
    return images, F.one_hot(labels, CLASSES + 1).float()


def save(network: ScaleChannelNetwork, folder: Path) -> None:
    """The network, and beside it what a detector has to know: detector.json."""
    network.save_pretrained(folder)
    about = {"classes": [str(digit) for digit in range(CLASSES)], "background": CLASSES, "values": "digits"}
    write_text(folder / "detector.json", json.dumps(about, indent=1) + "\n")


def main() -> None:
    how = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=how)
    parser.add_argument("--out", type=Path, required=True, help="the folder for the network")
    parser.add_argument("--kind", choices=get_args(Kind), default="detector")
    parser.add_argument("--data", choices=get_args(Data), default="both")
    parser.add_argument("--steps", type=int, default=3000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--features", type=int, nargs="+", default=[16, 16, 32, 32])
    parser.add_argument("--hidden", type=int, default=100)
    parser.add_argument("--rate", type=float, default=3e-3)
    parser.add_argument("--root", type=Path, help="folder of MNIST")
    parser.add_argument("--fonts", type=Path, help="folder of fonts, whose digits are learnt too")
    parser.add_argument("--printed", type=int, default=20_000, help="digits of these fonts, with repetition")
    parser.add_argument("--photographs", type=Path, help="folder of pictures without digits")
    parser.add_argument("--start", help="folder of the network to begin with")
    parser.add_argument("--state", type=Path, help="file to resume from")
    chosen = vars(parser.parse_args())
    folder, fonts = chosen.pop("out"), chosen.pop("fonts")
    files = sorted(fonts.iterdir()) if fonts else []
    digits = digits_of_one_size(
        chosen.pop("data"), chosen.pop("root"), fonts=files, printed=chosen.pop("printed")
    )
    if chosen["photographs"] is not None:
        chosen["photographs"] = Photographs.of(chosen["photographs"])
    if chosen["start"] is not None:
        chosen["start"] = ScaleChannelNetwork.from_pretrained(chosen["start"])
    save(train(digits=digits, **chosen), folder)
    print(folder)


if __name__ == "__main__":
    main()
