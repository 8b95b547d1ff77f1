"""All that candidates for the shipped detector learn from, in one file, for a machine without its sources.

    python -m benchmarks.candidates_data --out .data/candidates.pt [--photographs .data/photographs]
        [--fonts .data/fonts]

Both folders are filled by `benchmarks.collecting`. The file holds digits of size 1 (those of MNIST's for
training, drawn ones, and printed ones of the fonts for training), MNIST's digits for validation, and
photographs, as JPEG of grey values, so that it is small: those for training at half their size, and of each
a part at its own size; those for validation as they are. Nothing of a test split is in it.
"""

from __future__ import annotations

import argparse
import io
import lzma
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from PIL import Image
from torch import Tensor

from benchmarks.collecting import collected
from scalechannels.data.pictures import read_image
from scalechannels.data.sources import load_mnist
from scalechannels.detection.training import digits_of_one_size

WHOLE, PART = 2, 1024
"""How many times smaller a photograph for training is kept, and pixels along a part at its own size."""
QUALITY = 88
"""Of JPEG."""


def held(content: bytes) -> Tensor:
    """As a tensor: `torch.save` writes bytes half as long again."""
    return torch.frombuffer(bytearray(content), dtype=torch.uint8)


def jpeg(grey: Tensor) -> Tensor:
    """A picture (H, W) from 0 to 1."""
    file = io.BytesIO()
    Image.fromarray((grey * 255).round().byte().numpy()).save(file, "JPEG", quality=QUALITY)
    return held(file.getvalue())


def of_jpeg(content: Tensor) -> Tensor:
    """(H, W) of bytes, by torchvision, which brings its own decoder, or by Pillow where that is missing."""
    try:
        from torchvision.io import ImageReadMode, decode_jpeg
    except (ImportError, RuntimeError):  # RuntimeError: of another version of PyTorch
        with Image.open(io.BytesIO(content.numpy().tobytes())) as image:
            return torch.from_numpy(np.array(image))
    return decode_jpeg(content, mode=ImageReadMode.GRAY)[0]


def squeezed(values: Tensor) -> dict[str, Any]:
    """Bytes of any shape, compressed."""
    return {"shape": list(values.shape), "bytes": held(lzma.compress(values.numpy().tobytes(), preset=4))}


def unsqueezed(kept: dict[str, Any]) -> Tensor:
    return held(lzma.decompress(kept["bytes"].numpy().tobytes())).view(kept["shape"])


def parts(path: Path, generator: torch.Generator) -> list[Tensor]:
    """A photograph at half its size, and a part of it, if it is large enough for that."""
    picture = read_image(path, grey=True)[0]
    kept = [F.avg_pool2d(picture[None], WHOLE)[0]]
    if min(picture.shape) >= PART:
        top, left = (int(torch.randint(side - PART + 1, (), generator=generator)) for side in picture.shape)
        kept.append(picture[top : top + PART, left : left + PART])
    return [jpeg(one) for one in kept if min(one.shape) >= 512]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, default=Path(".data/candidates.pt"))
    parser.add_argument("--photographs", type=Path, default=Path(".data/photographs"))
    parser.add_argument("--fonts", type=Path, default=Path(".data/fonts"))
    chosen = parser.parse_args()
    generator = torch.Generator().manual_seed(0)
    fonts = collected("fonts", chosen.fonts, "train")
    learnt = digits_of_one_size(fonts=fonts, printed=0)  # printed ones once; they are repeated later
    mnist = load_mnist()
    kept = {
        "cover": squeezed((learnt.cover * 255).round().byte()),
        "labels": learnt.labels,
        "printed": 10 * len(fonts),  # the last ones
        "validation": squeezed(mnist.train_images[50_000:]),
        "validation_labels": mnist.train_labels[50_000:].clone(),
        "photographs": [
            one
            for path in collected("photographs", chosen.photographs, "train")
            for one in parts(path, generator)
        ],
        "quiet": [
            jpeg(read_image(path, grey=True)[0])
            for path in collected("photographs", chosen.photographs, "validation")
        ],
    }
    torch.save(kept, chosen.out)
    sizes = {name: sum(map(len, kept[name])) / 1e6 for name in ("photographs", "quiet")}
    print(
        f"{chosen.out}: {chosen.out.stat().st_size / 1e6:.1f} MB", {k: round(v, 1) for k, v in sizes.items()}
    )
    print({name: round(len(kept[name]["bytes"]) / 1e6, 1) for name in ("cover", "validation")})


if __name__ == "__main__":
    main()
