"""`scalechannels data fetch | show | scene | generate`: the data sets."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import App, Parameter

from scalechannels.cli import AT_LEAST_ONE, DEVICE, MaxPixels, Root, ending, require_device

BUILT_IN = (
    "strokes",
    "scenes",
    "anywhere",
    "several",
    "mnist-large-scale",
    "mnist-scale",
    "fashion",
    "cifar10",
    "emoji",
)

data = App(name="data", help="Fetch, generate and view data sets.")


@data.command
def fetch(name: Literal["mnist", "fashion", "cifar10"], /, *, root: Root = None) -> None:
    """Download MNIST, Fashion-MNIST or CIFAR-10 and verify its checksum.

    Data that are already in --root or in the cache are not downloaded again. Fashion-MNIST is also found
    where Debian's package dataset-fashion-mnist puts it.

    Example: scalechannels data fetch mnist
    """
    from scalechannels.data import sources

    known = {"mnist": sources.MNIST, "fashion": sources.FASHION, "cifar10": sources.CIFAR10}
    fetched = sources.fetch(known[name], root)
    print(f"{name}: {fetched.path} ({fetched.how})")


@data.command
def show(
    what: Annotated[
        str,
        Parameter(
            help=f"{', '.join(BUILT_IN)}, a folder with a subfolder for each class, or labelled boxes: a "
            "COCO .json, a .csv, or a folder of Pascal VOC .xml or YOLO .txt files."
        ),
    ] = "strokes",
    /,
    *,
    out: Annotated[
        Path | None,
        Parameter(
            help="The PNG to write; by default WHAT.png (of boxes WHAT-boxes.png) in the current folder.",
            validator=ending(".png"),
        ),
    ] = None,
    seed: Annotated[int, Parameter(help="Seed for choosing the examples.")] = 0,
    root: Root = None,
    skip_corrupt: Annotated[
        bool,
        Parameter(
            help="Leave out unreadable files and impossible boxes instead of refusing all.", negative=()
        ),
    ] = False,
    max_pixels: MaxPixels = None,
) -> None:
    """Write a contact sheet of a data set as PNG: one row per class or background, one column per size.

    Of labelled boxes some images are drawn with their boxes, after every box and every image was checked.

    For example:

    - scalechannels data show strokes
    - scalechannels data show photos/ --out photos.png
    - scalechannels data show coins.json
    """
    from scalechannels.data import show as sheets
    from scalechannels.data.boxes.reading import holds_boxes, read_boxes
    from scalechannels.data.decoding import MAX_PIXELS
    from scalechannels.files import require_writable

    what = "mnist-large-scale" if what == "mnist" else what
    boxes = what not in BUILT_IN and holds_boxes(Path(what))
    if what not in BUILT_IN and not boxes and not Path(what).is_dir():
        raise ValueError(
            f"WHAT must be a folder or one of {', '.join(BUILT_IN)}, or a file of labelled boxes; got "
            f"'{what}'"
        )
    name = Path(what).resolve().name or "folder"
    # Labels are often called as their image: its file must not be written over.
    out = out or Path(f"{Path(what).resolve().stem}-boxes.png" if boxes else f"{name}.png")
    require_writable(out)
    own = {
        "strokes": sheets.show_strokes,
        "scenes": sheets.show_scenes,
        "anywhere": sheets.show_anywhere,
        "several": sheets.show_several,
    }
    of_others = {
        "mnist-large-scale": sheets.show_mnist_large_scale,
        "mnist-scale": sheets.show_mnist_scale,
        "fashion": sheets.show_fashion,
        "cifar10": sheets.show_cifar10,
        "emoji": sheets.show_emoji,
    }
    if what in own:
        own[what](out, seed)
    elif what in of_others:
        of_others[what](out, seed, root)
    elif boxes:
        from scalechannels.data.boxes.sheet import show_boxes, summary

        limit = max_pixels or MAX_PIXELS
        boxed = read_boxes(what, skip=skip_corrupt, max_pixels=limit, everything=True)
        show_boxes(out, boxed, seed)
        print(summary(boxed))
    else:
        from scalechannels.data.folder import image_folder

        images = image_folder(what, skip_corrupt=skip_corrupt, max_pixels=max_pixels or MAX_PIXELS)
        sheets.show_folder(out, images, seed)
    print(out)


@data.command
def scene(
    out: Annotated[
        Path,
        Parameter(
            help="The PNG to write; a JSON file beside it lists the objects.", validator=ending(".png")
        ),
    ],
    /,
    *,
    count: Annotated[int, Parameter(help="Number of objects.")] = 12,
    seed: Annotated[int, Parameter(help="Seed for the objects, their sizes and their positions.")] = 0,
    height: Annotated[int, Parameter(help="Height of the image in pixels.")] = 512,
    width: Annotated[int, Parameter(help="Width of the image in pixels.")] = 768,
    sizes: Annotated[
        tuple[float, float],
        Parameter(help="The smallest and the largest object size, in multiples of 28 pixels.", negative=()),
    ] = (0.5, 4.0),
    background: Annotated[
        Literal["plain", "noisy", "textured"], Parameter(help="What lies behind the objects.")
    ] = "plain",
) -> None:
    """Write an image of built-in digits at random sizes and positions, and a list of them.

    Example: scalechannels data scene scene.png --background noisy --seed 3
    """
    from scalechannels.data import scenes
    from scalechannels.files import require_writable

    for path in (out, out.with_suffix(".json")):
        require_writable(path)
    made = scenes.scene(count, seed, height=height, width=width, sizes=sizes, background=background)
    print(scenes.save_scene(made, out))


@data.command
def generate(
    name: Literal["mnist-large-scale", "emoji"],
    /,
    *,
    out: Annotated[
        Path | None, Parameter(help="Folder for the files; by default one in the user's cache.")
    ] = None,
    tests_only: Annotated[bool, Parameter(help="Write only the test sets.", negative=())] = False,
    samples: Annotated[
        int | None, Parameter(help="Number of images in each set; by default all.", validator=AT_LEAST_ONE)
    ] = None,
    classes: Annotated[int | None, Parameter(help="Emoji: how many things; by default 100.")] = None,
    seed: Annotated[int, Parameter(help="Seed for the sizes drawn from a range, and for --samples.")] = 0,
    device: Annotated[
        str, Parameter(help="Where to compute: cpu, cuda, or cuda:1 for the second GPU.", validator=DEVICE)
    ] = "cpu",
    root: Root = None,
) -> None:
    """Write MNIST Large Scale as HDF5 files with the published names, or emoji as one file of drawings.

    Of MNIST Large Scale there are six training sets, each of one size or of a range of sizes, and 17 test
    sets of one size each. Emoji are fetched as five packages of vector drawings and rendered at 11 sizes,
    which takes some minutes; only --out, --classes and --root apply. Training on emoji needs the file alone:
    made with --out FOLDER, it is found with --root FOLDER. Files that are already complete are not written
    again.

    For example:

    - scalechannels data generate mnist-large-scale --tests-only --out mnist-large-scale
    - scalechannels data generate emoji
    """
    if name == "emoji":
        ignored = {
            "--tests-only": tests_only,
            "--samples": samples,
            "--seed": seed,
            "--device cuda": device != "cpu",
        }
        for option in (option for option, given in ignored.items() if given):
            raise ValueError(f"{option} does not apply to emoji; remove it")
        print(_rendered(out, classes, root))
        return
    if classes is not None:
        raise ValueError("--classes is for emoji; MNIST Large Scale has ten")
    from scalechannels.data.hdf5 import make_files
    from scalechannels.data.mnist_large_scale import TRAINING_SCALES, MnistLargeScale
    from scalechannels.data.sizes import MNIST_SIZES
    from scalechannels.files import cache_root, require_writable_folder
    from scalechannels.training.progress import Progress

    folder = out or cache_root() / name
    require_writable_folder(folder)
    digits = MnistLargeScale(root, device=require_device(device))
    training = () if tests_only else TRAINING_SCALES
    count = len(training) + len(MNIST_SIZES)

    def written(path: Path) -> None:
        bar.advance(path.stem[-24:], count)
        if not sys.stderr.isatty():
            print(path.name, file=sys.stderr, flush=True)

    with Progress("MNIST Large Scale", True) as bar:
        make_files(digits, folder, training_scales=training, seed=seed, samples=samples, report=written)
    print(folder)


def _rendered(out: Path | None, classes: int | None, root: Path | None) -> Path:
    """The prepared file of emoji, made where it is missing."""
    from scalechannels.data.emoji_drawings import CLASSES, prepare
    from scalechannels.files import cache_root, require_writable_folder
    from scalechannels.training.progress import Progress

    count = classes or CLASSES
    folder = cache_root(out or root)
    require_writable_folder(folder)
    with Progress("Emoji", True) as bar:
        return prepare(root, count, folder=folder, report=lambda drawn: bar.advance(drawn, count))
