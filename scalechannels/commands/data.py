"""The command line of the data: `scalechannels data fetch | show | scene | generate`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import App, Parameter

Fetchable = Literal["mnist", "cifar10"]
Generable = Literal["mnist-large-scale", "cifar10"]
BUILT_IN = ("strokes", "scenes", "mnist-large-scale", "cifar10")

Root = Annotated[
    Path | None,
    Parameter(help="Folder of the raw data; by default $SCALECHANNELS_DATA, else the user's cache."),
]

app = App(name="data", help="Fetch, make and look at the data sets.")


@app.command
def fetch(name: Fetchable, *, root: Root = None) -> None:
    """Fetch MNIST or CIFAR-10, verify it by checksum, and keep it. A second call is instant.

    Example: scalechannels data fetch mnist
    """
    with expected_errors():
        from scalechannels.data.sources import fetch_cifar10, fetch_mnist

        fetched = fetch_mnist(root) if name == "mnist" else fetch_cifar10(root)
        print(f"{name}: {fetched.path} ({fetched.how})")


@app.command
def show(
    what: Annotated[
        str, Parameter(help=f"{', '.join(BUILT_IN)}, or a folder with a subfolder per class.")
    ] = "strokes",
    *,
    out: Annotated[
        Path | None, Parameter(help="The PNG to write; by default the data's name in this folder.")
    ] = None,
    seed: Annotated[int, Parameter(help="Which examples are shown.")] = 0,
    root: Root = None,
    skip_corrupt: Annotated[
        bool, Parameter(help="Leave unreadable files of a folder out.", negative=())
    ] = False,
) -> None:
    """Write a contact sheet of a data set as PNG: sizes across, classes down.

    Examples: scalechannels data show strokes; scalechannels data show photos/ --out photos.png
    """
    with expected_errors():
        from scalechannels.data import show as sheets

        if what not in BUILT_IN and not Path(what).is_dir():
            raise ValueError(f"{what!r} is neither a folder nor one of {', '.join(BUILT_IN)}")
        out = out or Path(f"{Path(what).resolve().name or 'folder'}.png")
        sheets.png_path(out)
        if what == "strokes":
            sheets.show_strokes(out, seed)
        elif what == "scenes":
            sheets.show_scenes(out, seed)
        elif what == "mnist-large-scale":
            sheets.show_mnist_large_scale(out, seed, root)
        elif what == "cifar10":
            sheets.show_cifar10(out, seed, root)
        else:
            from scalechannels.data.folder import image_folder

            images = image_folder(what, on_corrupt="skip" if skip_corrupt else "refuse")
            sheets.show_folder(out, images, seed)
        print(out)


@app.command
def scene(
    out: Annotated[Path, Parameter(help="The PNG to write; what it holds goes beside it as JSON.")],
    /,
    *,
    count: Annotated[int, Parameter(help="Objects in the scene.")] = 12,
    seed: Annotated[int, Parameter(help="Draws the objects, their sizes and places.")] = 0,
    height: int = 512,
    width: int = 768,
    sizes: Annotated[
        tuple[float, float], Parameter(help="The smallest and the largest object, in boxes of 28 pixels.")
    ] = (0.5, 4.0),
    background: Literal["plain", "noisy", "textured"] = "plain",
) -> None:
    """Write an image with many built-in digits of random sizes at random places, and where they are.

    Example: scalechannels data scene scene.png --background noisy --seed 3
    """
    with expected_errors():
        from scalechannels.data.scenes import save_scene
        from scalechannels.data.scenes import scene as make

        made = make(count, seed, height=height, width=width, sizes=sizes, background=background)
        print(save_scene(made, out))


@app.command
def generate(
    name: Generable,
    *,
    out: Annotated[Path | None, Parameter(help="Folder for the files; by default one in the cache.")] = None,
    tests_only: Annotated[bool, Parameter(help="Leave the training sets out.", negative=())] = False,
    samples: Annotated[int | None, Parameter(help="Images of each set; by default all of them.")] = None,
    seed: Annotated[int, Parameter(help="Draws the sizes of the multi-scale sets, and the samples.")] = 0,
    device: Annotated[Literal["cpu", "cuda"], Parameter(help="Where to compute.")] = "cpu",
    root: Root = None,
) -> None:
    """Write MNIST Large Scale or rescaled CIFAR-10 as HDF5 files; complete ones are kept.

    MNIST Large Scale has the published names: six training sets (one size or a range) and 17 test sizes.
    Rescaled CIFAR-10 has nine test factors; its training set is the original one.

    Example: scalechannels data generate mnist-large-scale --tests-only --out mnist-large-scale
    """
    with expected_errors():
        import torch

        from scalechannels.files import cache_root

        if device == "cuda" and not torch.cuda.is_available():
            raise ValueError("--device cuda: this machine has no CUDA device that PyTorch can use; take cpu")
        folder = out or cache_root() / name
        if name == "cifar10":
            if samples is not None or seed != 0:
                raise ValueError(
                    "rescaled CIFAR-10 has no random sizes: --samples and --seed do not apply to it"
                )
            from scalechannels.data.cifar10_files import make_cifar10_files
            from scalechannels.data.rescaled_cifar10 import RescaledCifar10
            from scalechannels.data.sizes import CIFAR_SIZES

            with progress("Rescaled CIFAR-10", len(CIFAR_SIZES)) as report:
                make_cifar10_files(RescaledCifar10(root, device=device), folder, report=report)
        else:
            from scalechannels.data.hdf5 import make_files
            from scalechannels.data.mnist_large_scale import TRAINING_SCALES, MnistLargeScale
            from scalechannels.data.sizes import MNIST_SIZES

            training = () if tests_only else TRAINING_SCALES
            with progress("MNIST Large Scale", len(training) + len(MNIST_SIZES)) as report:
                make_files(
                    *(MnistLargeScale(root, device=device), folder),
                    training_scales=training, seed=seed, samples=samples, report=report,
                )  # fmt: skip
        print(folder)


@contextmanager
def expected_errors() -> Iterator[None]:
    """What a user can mend ends with its message and exit code 1; all else is a fault and shows its trace."""
    import warnings

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("always", UserWarning)
            warnings.showwarning = lambda message, *_, **__: print(f"warning: {message}", file=sys.stderr)
            yield
    except (OSError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(1)


@contextmanager
def progress(label: str, total: int) -> Iterator[Callable[[Path], None]]:
    """Yields a function to call with each finished file: a bar on a terminal, else one line for each."""
    if not sys.stderr.isatty():
        yield lambda path: print(path.name, file=sys.stderr, flush=True)
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task(label, total=total)
        yield lambda path: bar.update(task, advance=1, description=path.stem[-24:])
