"""`scalechannels train`: one run, from options and a config file to a trained and tested network."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import App, Parameter, Token, default_name_transform

from scalechannels.cli import AT_LEAST_ONE, FOLDER, Device, Out, Root, Sizes, Split, require_device
from scalechannels.training.config import DataConfig, NetworkConfig, RunConfig, TrainingConfig
from scalechannels.training.config.network import Look
from scalechannels.training.config.options import UNPREFIXED


def option_name(field: str) -> str:
    """`--data.FIELD` for most of [data]; what is said of one's own images needs no prefix."""
    if field == "folder":
        return "--data"
    name = default_name_transform(field)
    return f"--{name}" if field in UNPREFIXED else name


def own_images(app: App, commands: tuple[str, ...], arguments: Any) -> None:
    """`--data FOLDER` is the field `folder` of [data], and makes its name "folder"."""
    fields = {argument.keys: argument for argument in arguments if argument.name.startswith("--data")}
    whole, folder, name = fields[()], fields["folder",], fields["name",]
    folder.tokens, whole.tokens = whole.tokens, []
    if folder.tokens and not name.tokens:
        name.tokens.append(folder.tokens[0].evolve(value="folder"))


def short(app: App, commands: tuple[str, ...], arguments: Any) -> None:
    """`--look` is `--network.look`."""
    named = {argument.name: argument for argument in arguments}
    given, meant = named["--look"], named["--network.look"]
    meant.tokens, given.tokens = [*meant.tokens, *given.tokens], []


def config_file(app: App, commands: tuple[str, ...], arguments: Any) -> None:
    """Options that are not on the command line come from the file that --config names."""
    named = {argument.name: argument.tokens for argument in arguments if not argument.keys}
    files = [token.value for token in named["--config"]]
    if not files:
        return
    values = RunConfig.from_toml(files[0]).as_dict()
    for argument in arguments:
        if argument.keys and not argument.tokens:
            section = argument.name.split(".")[0].removeprefix("--")
            value = values[section if section in values else "data"][argument.keys[0]]
            if value is not None:
                as_typed = {"value": value} if isinstance(value, str) else {"implicit_value": value}
                argument.tokens.append(Token(source=files[0], **as_typed))


def alone(app: App, commands: tuple[str, ...], arguments: Any) -> None:
    """Who names a network, on the command line or in a file, wants this one and no other candidates."""
    named = {argument.name: argument for argument in arguments}
    if named["--network.name"].tokens or named["--network.look"].tokens:
        compare = named["--compare"]
        if not compare.tokens:
            compare.tokens.append(Token(keyword="--no-compare", implicit_value=False))


train = App(name="train", config=(own_images, short, config_file, alone))


@train.default
def train_network(
    *,
    config: Annotated[
        Path | None,
        Parameter(help="A TOML file with the tables [data], [network] and [training]; options override it."),
    ] = None,
    data: Annotated[DataConfig | None, Parameter(name="--data", name_transform=option_name)] = None,
    budget: Annotated[
        str | None,
        Parameter(
            help="Your own images: how long to train all candidates together, such as 90s, 10m or 1h. It "
            "becomes epochs before the training begins. Default: 7m."
        ),
    ] = None,
    compare: Annotated[
        bool,
        Parameter(
            help="Your own images: train all candidates and keep the best one. With --no-compare, or with "
            "--network.name or --look, only that network is trained."
        ),
    ] = True,
    negatives: Annotated[
        Path | None,
        Parameter(help="Labelled boxes: a folder of more images, all without objects.", validator=FOLDER),
    ] = None,
    turns: Annotated[
        bool,
        Parameter(
            help="Labelled boxes: objects have no upright side, as from the air or under a microscope; they "
            "are learnt turned by quarters and mirrored.",
            negative=(),
        ),
    ] = False,
    against: Annotated[
        Literal["fcos", "retinanet"] | None,
        Parameter(
            help="Labelled boxes: also train torchvision's detector of this name on the same images, and "
            "put both into the report. Needs torchvision and a GPU."
        ),
    ] = None,
    look: Annotated[Look | None, Parameter(help="Short for --network.look.")] = None,  # see `short`
    network: NetworkConfig | None = None,
    training: TrainingConfig | None = None,
    recipe: Annotated[
        Literal["recommended", "paper"],
        Parameter(
            help="How to fill in what you leave out. recommended: smoothed targets, averaged weights and the "
            "like; for CIFAR-10 also the residual backbone, flips and crops: a row of docs/evidence.md. "
            "paper: none of these."
        ),
    ] = "recommended",
    out: Out = Path("runs"),
    device: Device = None,
    threads: Annotated[
        int | None,
        Parameter(
            help="Processor cores to compute on. Default: all, as PyTorch finds them.", validator=AT_LEAST_ONE
        ),
    ] = None,
    root: Root = None,
    split: Split = "test",
    sizes: Sizes = None,
    log: Annotated[
        bool, Parameter(help="Write TensorBoard events beside the checkpoints.", negative=())
    ] = False,
    stream: Annotated[
        bool,
        Parameter(
            help="Keep the images in main memory, not on the GPU: for data larger than GPU memory.",
            negative=(),
        ),
    ] = False,
    compiled: Annotated[
        bool | None,
        Parameter(name="--compile", help="Use torch.compile; by default only on a GPU that supports it."),
    ] = None,
) -> None:
    """Train a network, test it at many sizes, and save the weights and the results.

    The default network, fovlse, is ours. With digits and with CIFAR-10 the default training is one that was
    measured (see --recipe, docs/training.md); all else that you leave out follows the paper's recipe.

    A run is named after its configuration. If it is stopped or killed, run the same command again to resume
    after the last complete epoch. A finished run is not trained again, and is tested again only if you give
    another --split or other --sizes.

    For your own images (--data FOLDER), the folder is looked at first. Then several candidates are trained
    within a budget of time: a plain CNN on resized crops, a plain CNN on rescaled images, and scale channels
    at the centre and everywhere. The best one on validation images is kept, calibrated, and a report shows
    all of them on test images: at other sizes, off the centre and in other surroundings.

    For labelled boxes (--data boxes.json: a COCO .json, a .csv, or a folder of Pascal VOC .xml or YOLO .txt
    files), a detector is trained for objects of many sizes; of the other options, --range, --negatives,
    --turns, --against, --training.seed, --skip-corrupt, --max-pixels, --out, --device and --threads
    apply.

    For example:

    - scalechannels train --data photos
    - scalechannels train --data photos --range 0.5 2 --budget 20m
    - scalechannels train --data photos --look everywhere
    - scalechannels train --data boxes.json --range 0.25 4
    - scalechannels train --data cells --pixel-size 0.5 --deploy-pixel-sizes 0.25 2.0
    - scalechannels train --data.name mnist --data.sizes 2 --network.name fovavg
    - scalechannels train --config runs/NAME/config.toml --training.seed 1
    - torchrun --nproc-per-node 2 -m scalechannels.cli train --data.samples 2000  (two GPUs, one process each)
    """
    from scalechannels.files import require_writable_folder

    if threads is not None:
        import torch

        torch.set_num_threads(threads)
    if data is not None and data.folder and _holds_boxes(data.folder):
        said = data, network or NetworkConfig(), training or TrainingConfig()
        train_detector(*said, budget, negatives, turns, against, out, require_device(device))
        return
    if negatives is not None:
        raise ValueError("--negatives is for labelled boxes: give them as --data boxes.json")
    if against is not None:
        raise ValueError("--against is for labelled boxes: give them as --data boxes.json")
    if turns:
        raise ValueError(
            "--turns is for labelled boxes, given as --data boxes.json; for other images there are "
            "--training.rotation and --training.flips"
        )
    wanted = RunConfig(data or DataConfig(), network or NetworkConfig(), training or TrainingConfig())
    if recipe == "recommended":
        from scalechannels.training.config.recommended import recommended

        wanted = recommended(wanted)
    place = require_device(device)
    if int(os.environ.get("RANK", 0)) == 0:  # of several processes, one writes
        require_writable_folder(out)
    options: dict[str, Any] = {"sizes": sizes, "log": log, "stream": stream, "compiled": compiled}
    if wanted.data.about.of_user:
        from scalechannels.report.own_images_run import Asked, train_own_images

        more = {"root": root, **{name: value for name, value in options.items() if name != "sizes"}}
        train_own_images(wanted, Asked(out, place, compare, budget, recipe == "recommended", sizes, more))
    elif budget is not None:
        raise ValueError("--budget is only for your own images; give --training.epochs")
    else:
        train_run(wanted, out, place, split=split, root=root, **options)


def _holds_boxes(place: str) -> bool:
    from scalechannels.data.boxes.reading import holds_boxes

    return holds_boxes(Path(place))


def train_detector(
    data: DataConfig,
    network: NetworkConfig,
    training: TrainingConfig,
    budget: str | None,
    negatives: Path | None,
    turns: bool,
    against: Literal["fcos", "retinanet"] | None,
    out: Path,
    device: str,
) -> None:
    """Train on labelled boxes; options that would have no effect are refused."""
    from scalechannels.files import require_writable_folder
    from scalechannels.report.boxes_run import train_on_boxes

    names = ("name", "folder", "range", "skip_corrupt", "max_pixels")
    apply = DataConfig(**{name: getattr(data, name) for name in names})
    if budget or (data, network, training) != (apply, NetworkConfig(), TrainingConfig(seed=training.seed)):
        raise ValueError("labelled boxes take none of these options but --training.seed; see train --help")
    require_writable_folder(out)
    low, high = data.range or (0.25, 4.0)
    train_on_boxes(
        Path(data.folder or ""),
        out,
        device,
        low=low,
        high=high,
        seed=training.seed,
        negatives=negatives,
        turns=turns,
        against=against,
        skip=data.skip_corrupt,
        max_pixels=data.max_pixels,
    )


def train_run(config: RunConfig, out: Path, device: str, **options: Any) -> None:
    """Train and test as `fit(…, **options)` does it, and print the result."""
    import torch

    from scalechannels.data.sizes import accuracies, accuracy_table
    from scalechannels.training.fit import fit
    from scalechannels.training.runs import Run

    resolved = config.resolve(torch.device(device).type)
    known = Run(resolved, out / resolved.name)
    before = known.tested_on if known.done else None
    (run,) = fit([config], out, device=device, **options)
    if int(os.environ.get("RANK", 0)) > 0:
        return  # only the process that writes says it
    result = run.result()
    evaluation = result["evaluation"]
    columns = {run.config.network.name: accuracies(evaluation["sizes"])}
    print(accuracy_table(columns, run.config.data.sizes))
    images, seconds = evaluation["sizes"][0]["images"], result["seconds"]["training"]
    epochs = len(result["history"])
    print(f"\n{images:,} images of each size, {evaluation['split']} split; ", end="")
    print(f"{epochs} {'epoch' if epochs == 1 else 'epochs'} in {seconds:.0f} s")
    print(run.folder)
    if before is not None:
        again = "it was only tested again" if run.tested_on != before else "nothing was trained"
        print(f"This run was finished before: {again}.", file=sys.stderr)
