"""Rescaled CIFAR-10 as files: one compressed HDF5 file for each factor.

Named and laid out after the files of MNIST Large Scale: /x_test, images (n, 32, 32, 3) with values from 0
to 1, and /y_test, classes (n,). The training set is the original CIFAR-10 and needs no file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from scalechannels.data.rescaled_cifar10 import RescaledCifar10, RescaledCifar10Spec
from scalechannels.data.sizes import CIFAR_SIZES
from scalechannels.files import atomic_path, locked


def name_of_file(factor: float, count: int = 10_000) -> str:
    return f"rescaled_cifar10_te{count}_outsize32-32_scte{factor:.3f}".replace(".", "p") + ".h5"


def make_cifar10_files(
    generator: RescaledCifar10,
    folder: Path | str,
    *,
    factors: Iterable[float] = CIFAR_SIZES,
    report: Callable[[Path], None] = lambda _: None,
) -> list[Path]:
    """Make the test images at these factors in `folder`, and call `report` after each file.

    A readable file is kept, so an interrupted call goes on where it was; two processes share the work.
    """
    paths = []
    for factor in factors:
        path = Path(folder) / name_of_file(factor, len(generator.cifar10.test_labels))
        with locked(path):
            if not is_made(path, len(generator.cifar10.test_labels)):
                write(path, generator, factor)
        paths.append(path)
        report(path)
    return paths


def write(path: Path, generator: RescaledCifar10, factor: float) -> None:
    import h5py

    made = generator.make(RescaledCifar10Spec("test", factor))
    images = made.images.cpu().movedim(1, -1).numpy()  # (n, 32, 32, 3)
    with atomic_path(path) as temporary, h5py.File(temporary, "w") as file:
        # Chunks of one image: a reader in random order unpacks what it asks for and no more.
        file.create_dataset(
            "x_test", data=images, chunks=(1, *images.shape[1:]), compression="gzip", shuffle=True
        )
        file.create_dataset("y_test", data=made.labels.cpu().numpy())


def is_made(path: Path, count: int) -> bool:
    """Whether the file is there, readable and whole; one damaged by others is made again."""
    import h5py

    if not path.exists():
        return False
    try:
        with h5py.File(path, "r") as file:
            return len(file["x_test"]) == len(file["y_test"]) == count
    except (OSError, KeyError):
        return False
