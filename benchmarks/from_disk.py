"""Images from disk: how many a second our workers bring, beside a plain DataLoader over the same files.

    python -m benchmarks.from_disk [--files 200] [--names 5] [--repeats 3] [--output FILE]

Made here: JPEG files of 500x500 pixels, each linked under several names. All ways have the same workers, the
same order and batches of 16, none reduces the images, and each is timed over all names:

    plain       Pillow decodes a file, it becomes floats (3, 500, 500), and batches of them
    decoding    ours, when nothing is kept decoded, as in a first epoch or with more files than fit
    kept        ours, from the store of decoded images, as in every later epoch
    windows     the same, and the windows of 21 channels are made of each batch on the device

They are measured in turns; the ratios are to the plain loader, above 1 is faster.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from benchmarks.measure import environment, in_turns, options, write
from scalechannels.sampling import Foveate
from scalechannels.scales import ScaleGrid
from scalechannels.training import own_images
from scalechannels.training.config import DataConfig, RunConfig
from scalechannels.training.datasets import open_data
from scalechannels.training.own_images import FolderData
from scalechannels.training.streaming import CONTEXT, WORKERS
from scalechannels.training.streaming.from_disk import FileImages

SIDE, BATCH, CLASSES = 500, 16, 2


class PlainFiles(Dataset[tuple[Tensor, int]]):
    """What a user of PyTorch writes."""

    def __init__(self, paths: list[Path], labels: list[int]) -> None:
        self.paths, self.labels = paths, labels

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        with Image.open(self.paths[index]) as image:
            pixels = torch.from_numpy(np.array(image.convert("RGB")))  # (H, W, 3)
        return pixels.permute(2, 0, 1).contiguous().float().div_(255), self.labels[index]


def make_folder(root: Path, files: int, names: int) -> Path:
    """Blots with some noise, which a camera's files have, too."""
    noise = np.random.default_rng(0)
    for index in range(files):
        blots = noise.integers(0, 256, (8, 8, 3), dtype=np.uint8)
        pixels = np.asarray(Image.fromarray(blots).resize((SIDE, SIDE), Image.Resampling.BICUBIC)).astype(int)
        pixels = (pixels + noise.integers(-10, 10, pixels.shape)).clip(0, 255).astype(np.uint8)
        first = root / f"class{index % CLASSES}" / f"{index:05}-0.jpg"
        first.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels).save(first, quality=90)
        for name in range(1, names):
            os.link(first, first.with_name(f"{index:05}-{name}.jpg"))
    return root


def main() -> None:
    parser = options(__doc__, repeats=3)
    parser.add_argument("--files", type=int, default=200)
    parser.add_argument("--names", type=int, default=5)
    given = parser.parse_args()
    device = torch.device(given.device)
    own_images.fits_in_memory = lambda needed: False  # so that a small folder is read as a large one is
    with tempfile.TemporaryDirectory() as scratch:
        folder = make_folder(Path(scratch), given.files, given.names)
        config = RunConfig(DataConfig("folder", folder=str(folder), reduce=1)).resolve()
        data = open_data(config.data)
        assert isinstance(data, FolderData)
        kept: Any = data.training().dataset()
        decoding = FileImages(data, torch.tensor(kept.sizes), kept.side, None)
        plain = PlainFiles(list(data.learnt.paths), list(data.learnt.labels))
        grid = ScaleGrid(config.network.low, config.network.high, ratio=config.network.ratio)
        foveate = Foveate(grid, config.window, antialias=True).to(device)
        order = torch.randperm(len(plain), generator=torch.Generator().manual_seed(0)).split(BATCH)

        def read(dataset: Dataset[Any], look: bool = False) -> Callable[[], None]:
            def work() -> None:
                loader = DataLoader(
                    dataset,
                    batch_sampler=[one.tolist() for one in order],
                    num_workers=WORKERS,
                    multiprocessing_context=CONTEXT,
                )
                for images, _ in loader:
                    shown = images.to(device)
                    if look:
                        foveate(shown)

            return work

        works = {
            "plain": read(plain),
            "decoding": read(decoding),
            "kept": read(kept),
            "windows": read(kept, look=True),
        }
        found = in_turns(works, device, given.repeats)  # the warm-up fills the store
    for entry in found.values():
        entry["images_per_second"] = round(len(plain) / entry["seconds"], 1)
        entry["ratio"] = round(found["plain"]["seconds"] / entry["seconds"], 3)
    report = {
        "images": len(plain),
        "files": given.files,
        "side": SIDE,
        "workers": WORKERS,
        "ways": found,
        "environment": environment(device),
    }
    write(report, given.output)


if __name__ == "__main__":
    main()
