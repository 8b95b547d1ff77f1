"""MNIST Large Scale as files with the published names, keys and shapes, in both directions.

A file holds /x_train /x_val /x_test, images (n, 112, 112, 1) with values from −0.76 to 0.76, and /y_train
/y_val /y_test, classes (n,). Test-only files still hold one training and one validation image, and those lack
the sample axis: (112, 112, 1). `write` does the same, and `read` takes either form.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import torch

from scalechannels.data.image_set import ImageSet, Scale, Split
from scalechannels.data.mnist_large_scale import SIZE, TRAINING_SCALES, MnistLargeScale
from scalechannels.data.sizes import MNIST_SIZES
from scalechannels.files import atomic_path, locked

KEYS: Mapping[Split, str] = {"train": "train", "validation": "val", "test": "test"}


def file_name(scale: Scale, counts: Mapping[Split, int], size: int = SIZE) -> str:
    """The published name of the file with so many images of each split, or of the test split alone."""
    short = {"train": "tr", "validation": "vl", "test": "te"}
    images = "".join(f"_{short[split]}{count}" for split, count in counts.items())
    ends = scale if isinstance(scale, tuple) else (scale,)
    at = "-".join(f"{end:.3f}".replace(".", "p") for end in ends)
    trained = f"_sctr{at}" if "train" in counts else ""
    return f"mnist_large_scale{images}_outsize{size}-{size}{trained}_scte{at}.h5"


def write(path: Path, sets: Mapping[Split, ImageSet], recipe: str | None = None) -> None:
    """Writes the three sets into a compressed file, whole or not at all; a set of one loses its sample axis.

    An older file of the same name is replaced. `recipe` is kept in it, for `make_files`.
    """
    if missing := [split for split in KEYS if split not in sets]:
        raise ValueError(f"a file holds {', '.join(KEYS)}; {', '.join(missing)} is missing")
    with atomic_path(path) as temporary, h5py.File(temporary, "w") as file:
        if recipe is not None:
            file.attrs["recipe"] = recipe
        for split, key in KEYS.items():
            images = sets[split].images.cpu().movedim(1, -1).numpy()  # (n, 112, 112, 1)
            # Chunks of one image: a reader in random order unpacks what it asks for and no more.
            chunk: tuple[int, ...] = (1, *images.shape[1:])
            if len(images) == 1:
                images, chunk = images[0], images.shape[1:]
            file.create_dataset(f"x_{key}", data=images, chunks=chunk, compression="gzip", shuffle=True)
            file.create_dataset(f"y_{key}", data=sets[split].labels.cpu().numpy())


def read(path: Path | str, splits: Iterable[Split] = tuple(KEYS)) -> dict[Split, ImageSet]:
    """The sets of a file, published or written here; `splits` says which, so that others cost nothing."""
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"there is no file '{path}'")
    try:
        with h5py.File(path, "r") as file:
            return {split: _read_set(file, path, split) for split in splits}
    except OSError as error:
        raise OSError(
            f"'{path}' is truncated, damaged or not an HDF5 file ({error}); fetch or make it again"
        ) from None


def make_files(
    generator: MnistLargeScale,
    folder: Path | str,
    *,
    training_scales: Iterable[Scale] = TRAINING_SCALES,
    test_scales: Iterable[Scale] = MNIST_SIZES,
    seed: int = 0,
    samples: int | None = None,
    size: int = SIZE,
    report: Callable[[Path], None] = lambda _: None,
) -> list[Path]:
    """Makes the files of these training and test scales in `folder`, and calls `report` after each.

    A readable file of the same recipe is kept, so an interrupted call resumes where it was, and two processes
    wait for each other and share the work. `samples` limits each split to a balanced subset; names say so.
    """
    counts = {split: generator.count(split) if samples is None else samples for split in KEYS}
    jobs = [(file_name(scale, counts, size), scale, samples) for scale in training_scales]
    tested: dict[Split, int] = {"test": counts["test"]}
    jobs += [(file_name(scale, tested, size), scale, 1) for scale in test_scales]
    paths = []
    for name, scale, limit in jobs:
        path = Path(folder) / name
        recipe = f"scale {scale}, seed {seed}"
        with locked(path):
            if not _is_made(path, recipe):
                sets = {
                    split: generator.make(split, scale, seed, samples if split == "test" else limit, size)
                    for split in KEYS
                }
                write(path, sets, recipe)
        paths.append(path)
        report(path)
    return paths


def _is_made(path: Path, recipe: str) -> bool:
    """Whether the file is there and readable. Its name has no seed and a rounded scale, so it keeps both."""
    if not path.exists():
        return False
    try:
        with h5py.File(path, "r") as file:
            found = file.attrs.get("recipe", recipe)  # a published file has none and is welcome
    except OSError:
        return False  # truncated by others: made again
    if found != recipe:
        raise ValueError(f"'{path}' was made by {found}, not by {recipe}; give another folder or remove it")
    return True


def _read_set(file: Any, path: Path, split: Split) -> ImageSet:
    arrays = []
    for key in (f"x_{KEYS[split]}", f"y_{KEYS[split]}"):
        if key not in file:
            raise ValueError(f"'{path}' has no /{key}; it has {', '.join(sorted(file)) or 'nothing'}")
        arrays.append(np.asarray(file[key][()]))
    images, labels = arrays[0].astype(np.float32, copy=False), arrays[1].reshape(-1)
    if images.ndim == 3 and images.shape[-1] == 1:
        images = images[None]  # the one sample that was stored without its axis
    if images.ndim != 4 or images.shape[-1] != 1:
        raise ValueError(f"'{path}': /x_{KEYS[split]} must be (n, H, W, 1); got {arrays[0].shape}")
    if len(labels) != len(images):
        raise ValueError(f"'{path}': {len(images)} images of {split} have {len(labels)} labels")
    return ImageSet(
        torch.from_numpy(images).movedim(-1, 1).contiguous(),
        torch.from_numpy(labels.astype(np.int64)),
        torch.full((len(images),), math.nan, dtype=torch.float64),  # the published format does not keep them
    )
