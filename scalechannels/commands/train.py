"""`scalechannels train`: one run, from options and a config file to a trained and tested network."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import App, Parameter

from scalechannels.commands.ending import clear_ending
from scalechannels.training.config.run import DataConfig, NetworkConfig, RunConfig, TrainingConfig

Device = Annotated[
    Literal["cpu", "cuda"] | None,
    Parameter(help="Where to compute; by default on the GPU where there is one."),
]
Root = Annotated[
    Path | None,
    Parameter(help="Folder of the raw data; by default $SCALECHANNELS_DATA, else the user's cache."),
]
Split = Annotated[
    Literal["validation", "test"], Parameter(help="What is tested: choose on validation, report on test.")
]
Out = Annotated[Path, Parameter(help="The folder of all runs; each has its own folder in it.")]
Sizes = Annotated[
    tuple[float, ...] | None, Parameter(help="The sizes to test at; by default all that the data has.")
]


SHORT_FORMS = {
    "--data": "--data.folder",
    "--pixel-size": "--data.pixel-size",
    "--deploy-pixel-sizes": "--data.deploy-pixel-sizes",
    "--skip-corrupt": "--data.skip-corrupt",
    "--max-pixels": "--data.max-pixels",
}
"""What can be said shortly of own images; each goes to the field of DataConfig that it stands for."""


def short_forms(app: App, commands: tuple[str, ...], arguments: Any) -> None:
    """Hand the short forms' words to the options that they stand for; a folder is named as such."""
    given = {argument.name: list(argument.tokens) for argument in arguments if argument.tokens}
    for short, long in SHORT_FORMS.items():
        if short in given and long in given:
            with clear_ending():
                raise ValueError(f"{short} is short for {long}: give one of them")
    for argument in arguments:
        for short, long in SHORT_FORMS.items():
            if argument.name == long and short in given:
                argument.tokens.extend(given[short])
        if (
            argument.name == "--data.name"
            and not argument.tokens
            and {"--data", "--data.folder"} & set(given)
        ):
            first = (given.get("--data") or given["--data.folder"])[0]
            argument.tokens.append(first.evolve(value="folder"))


def config_file(app: App, commands: tuple[str, ...], arguments: Any) -> None:
    """Options that are not on the command line are taken from the file that --config names."""
    from cyclopts.config import Dict

    named = [
        token.value for argument in arguments if argument.name == "--config" for token in argument.tokens
    ]
    if not named:
        return
    with clear_ending():
        values = RunConfig.from_toml(named[0]).as_dict()
    given: dict[str, Any] = {
        section: {key: list(value) if isinstance(value, tuple) else value for key, value in fields.items()}
        for section, fields in values.items()
    }
    for section, fields in given.items():
        given[section] = {key: value for key, value in fields.items() if value is not None}
    for command in reversed(commands):
        given = {command: given}
    Dict(data=given, source=named[0])(app, commands, arguments)


app = App(name="train", config=(short_forms, config_file))


@app.default
def train(
    *,
    config: Annotated[
        Path | None, Parameter(help="A TOML file with the tables [data], [network] and [training].")
    ] = None,
    own: Annotated[
        Path | None,
        Parameter(
            name="--data",
            help="Own images: a folder with a subfolder for each class. Short for --data.folder.",
        ),
    ] = None,
    pixel_size: Annotated[
        float | None, Parameter(help="Own images: what a pixel measures, in any unit.")
    ] = None,
    deploy_pixel_sizes: Annotated[
        tuple[float, ...] | None, Parameter(help="What a pixel will measure where the network is used.")
    ] = None,
    skip_corrupt: Annotated[
        bool, Parameter(help="Own images: leave unreadable files out.", negative=())
    ] = False,
    max_pixels: Annotated[
        int | None, Parameter(help="Own images: read files of up to so many pixels.")
    ] = None,
    compare: Annotated[
        bool, Parameter(help="Own images: train a plain CNN of equal cost as well, for the report.")
    ] = True,
    data: Annotated[DataConfig | None, Parameter(name="--data")] = None,
    network: NetworkConfig | None = None,
    training: TrainingConfig | None = None,
    out: Out = Path("runs"),
    device: Device = None,
    root: Root = None,
    split: Split = "test",
    sizes: Sizes = None,
    log: Annotated[
        bool, Parameter(help="Write TensorBoard events beside the checkpoints.", negative=())
    ] = False,
    stream: Annotated[
        bool,
        Parameter(
            help="Keep the images in main memory and bring them in batches: for data larger than the GPU.",
            negative=(),
        ),
    ] = False,
    compiled: Annotated[
        bool | None,
        Parameter(name="--compile", help="torch.compile the step; by default on a GPU, where it can."),
    ] = None,
) -> None:
    """Train a network, test it at many sizes, and keep both. The paper's recipe is the default.

    A run is named by its configuration. Started again, it goes on after its last complete epoch, whether it
    was stopped or killed; a finished run says that it is done, and is only tested anew where another --split
    or other --sizes are given. Options override the config file.

    On own images (--data FOLDER) the network, its channels and the recipe are chosen from the images, a plain
    CNN of equal cost is trained beside it, and a report shows the accuracy of both against simulated size.

    Examples: scalechannels train --data photos;
    scalechannels train --data cells --pixel-size 0.5 --deploy-pixel-sizes 0.25 2.0;
    scalechannels train --data.name mnist --data.sizes 2 --network.name fovavg;
    scalechannels train --config runs/NAME/config.toml --training.seed 1;
    torchrun --nproc-per-node 2 -m scalechannels.cli train --data.samples 2000
    """
    wanted = RunConfig(data or DataConfig(), network or NetworkConfig(), training or TrainingConfig())
    continued = "stopped; the same command goes on after the last complete epoch"
    with clear_ending(continued):
        if wanted.data.name == "folder":
            from scalechannels.report.own_images_run import train_own_images

            train_own_images(
                wanted,
                out,
                device,
                compare=compare,
                sizes=sizes,
                log=log,
                stream=stream,
                compiled=compiled,
            )
            return
        run, before = train_run(
            wanted,
            out,
            device,
            split=split,
            sizes=sizes,
            root=root,
            log=log,
            stream=stream,
            compiled=compiled,
        )
        show(run, before)


def train_run(
    config: RunConfig,
    out: Path,
    device: str | None = None,
    *,
    sizes: Sequence[float] | None = None,
    **options: Any,
) -> tuple[Any, tuple[str, list[Any]] | None]:
    """The run, trained as `fit(…, **options)` does it; where it was done before, what it was tested on."""
    import torch

    from scalechannels.training.fit import fit
    from scalechannels.training.retest import tested_on
    from scalechannels.training.runs import Run

    require_sizes(sizes)
    place = require_device(device)
    resolved = config.resolve(torch.device(place).type)
    known = Run(resolved, out / resolved.name)
    before = tested_on(known) if known.done else None
    (run,) = fit([config], out, device=place, sizes=sizes, **options)
    return run, before


def require_device(device: str | None) -> str:
    """The device to compute on; a clear error where there is none of that kind."""
    import torch

    if device == "cuda" and not torch.cuda.is_available():
        raise ValueError("--device cuda: this machine has no CUDA device that PyTorch can use; take cpu")
    return device or ("cuda" if torch.cuda.is_available() else "cpu")


def require_sizes(sizes: Sequence[float] | None) -> None:
    """A clear error for what is no size, and for a size that is given twice."""
    if sizes is None:
        return
    given = " ".join(f"{size:g}" for size in sizes)
    if not all(0 < size < float("inf") for size in sizes):
        raise ValueError(f"--sizes takes positive sizes, such as 0.5 1 2, got {given}")
    if len(set(sizes)) < len(sizes):
        raise ValueError(f"--sizes takes each size once, got {given}")


def require_max_pixels(max_pixels: int | None) -> None:
    if max_pixels is not None and max_pixels < 1:
        raise ValueError(f"--max-pixels is at least 1, got {max_pixels}")


def show(run: Any, before: tuple[str, list[Any]] | None) -> None:
    """The table of a finished run, and where it is; only the process that writes says it.

    before   what it had been tested on, where it was done before
    """
    import os

    if int(os.environ.get("RANK", 0)) > 0:
        return
    from scalechannels.report.text import accuracies, accuracy_table

    result = run.result()
    evaluation = result["evaluation"]
    columns = {run.config.network.name: accuracies(evaluation["sizes"])}
    print(accuracy_table(columns, run.config.data.sizes))
    images, seconds = evaluation["sizes"][0]["images"], result["seconds"]["training"]
    print(f"\n{images:,} images of each size, {evaluation['split']} split; ", end="")
    print(f"{len(result['history'])} epochs in {seconds:.0f} s")
    print(run.folder)
    if before is not None:
        from scalechannels.training.retest import tested_on

        anew = "it was only tested anew" if tested_on(run) != before else "nothing was trained"
        print(f"This run was done before: {anew}.", file=sys.stderr)
