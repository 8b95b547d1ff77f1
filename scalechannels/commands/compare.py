"""`scalechannels compare`: other methods beside ours, on the same data, in one table."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from scalechannels.cli import AT_LEAST_ONE, Device, Out, ResultsFolder, Root, ending, must, require_device

if TYPE_CHECKING:
    from collections.abc import Sequence

    from scalechannels.compare.missing import Present
    from scalechannels.compare.protocols import Protocol


def compare(
    ids: Annotated[
        tuple[str, ...],
        Parameter(
            help="Protocols: strokes, mnist, fashion, fashion-translated, cifar10, cifar10-translated, "
            "mnist-scale, anywhere. Default: all."
        ),
    ] = (),
    /,
    *,
    method: Annotated[
        tuple[str, ...],
        Parameter(help="Add your own method: path/to/file.py:Class or package.module:Class."),
    ] = (),
    rate: Annotated[
        float | None,
        Parameter(
            help="The learning rate of your own methods. Default: that of the data's recipe.",
            validator=must(lambda rate: 0 < rate < float("inf"), "be a positive number"),
        ),
    ] = None,
    only: Annotated[
        tuple[str, ...], Parameter(help="Train only these methods, such as fovlse riesz or your own.")
    ] = (),
    seeds: Annotated[
        int | None, Parameter(help="Number of seeds; by default each protocol's, 3.", validator=AT_LEAST_ONE)
    ] = None,
    show: Annotated[
        bool,
        Parameter(
            name="--list",
            help="List protocols and methods with the runs they have and lack; train nothing.",
            negative=(),
        ),
    ] = False,
    train: Annotated[bool, Parameter(help="Train what is missing, or only print what there is.")] = True,
    tune: Annotated[
        bool,
        Parameter(
            help="Instead try the same learning rates for every method on the validation images.", negative=()
        ),
    ] = False,
    form: Annotated[
        Literal["text", "markdown", "json"], Parameter(name="--format", help="The output format.")
    ] = "text",
    plot: Annotated[
        Path | None,
        Parameter(
            help="Draw accuracy against cost to this PNG; of several protocols one each, NAME-PROTOCOL.png. "
            "Default: compare.png in the folder of the runs.",
            validator=ending(".png"),
        ),
    ] = None,
    file: Annotated[
        Path | None, Parameter(help="A TOML file with protocols and methods in place of the package's own.")
    ] = None,
    out: Out = Path("runs"),
    results: ResultsFolder = None,
    device: Device = None,
    root: Root = None,
) -> None:
    """Train and test other methods beside ours, and print accuracy and cost in one table.

    Runs that have results are not repeated. If the command is stopped or killed, run it again to resume. A
    run that fails is reported, and the others go on.

    For example:

    - scalechannels compare --list
    - scalechannels compare strokes
    - scalechannels compare mnist --only riesz --seeds 1
    - scalechannels compare strokes --method my_method.py:MyMethod
    - scalechannels compare mnist --no-train --format markdown
    """
    from scalechannels.compare import missing
    from scalechannels.compare.protocols import chosen, own_method, read_protocols
    from scalechannels.files import require_writable, require_writable_folder
    from scalechannels.paper.results import results_folder

    if plot is not None:
        require_writable(plot)
    protocols, tuning = read_protocols(file)
    added = [own_method(name, rate) for name in method]
    if rate is not None and not added:
        raise ValueError(f"--rate is for your own methods: add --method; got {rate:g}")
    wanted = chosen(protocols, ids)
    for one in added:
        wanted = [protocol.with_method(one) for protocol in wanted]
    known = {one.id for protocol in wanted for one in protocol.methods}
    for id in only:
        if id not in known:
            raise ValueError(f"--only must name methods, among {', '.join(sorted(known))}; got '{id}'")
    place = results_folder(results)
    if show:
        listed(missing.present(wanted, place, seeds, only), wanted)
        return
    failed: list[str] = []
    if train or tune:
        on = require_device(device)
        for folder in (out, place):
            require_writable_folder(folder)
        if tune:
            for line in missing.tune(wanted, tuning, out, place, only=only, device=on, root=root):
                print(
                    f"{line['protocol']:<20}{line['method']:<24}rate {line['rate']:<8g}{line['mean']:.2f} %"
                )
            return
        failed = missing.complete(wanted, out, place, seeds=seeds, only=only, device=on, root=root)
    printed(wanted, place, seeds, form, plot or (out / "compare.png" if train else None))
    if failed:
        print(f"error: {len(failed)} failed:\n" + "\n".join(f"  {line}" for line in failed), file=sys.stderr)
        sys.exit(1)


def listed(found: Sequence[Present], protocols: Sequence[Protocol]) -> None:
    """Runs that are there and that are missing, one line for each method of a protocol."""
    lacking = 0
    for protocol in protocols:
        print(f"{protocol.id}: {protocol.title}")
        if protocol.fault:
            print(f"    cannot be run here: {protocol.fault}")
        for one in (entry for entry in found if entry.protocol.id == protocol.id):
            lacking += len(one.lacking)
            note = f", {len(one.lacking)} missing" if one.lacking else ""
            runs = "run" if one.found == 1 else "runs"
            print(f"    {one.method.id:<16}{one.method.title:<40}{one.found} {runs}{note}")
    print(f"missing runs: {lacking}", file=sys.stderr)


def printed(
    protocols: Sequence[Protocol], results: Path, seeds: int | None, form: str, plot: Path | None
) -> None:
    """The tables and the pictures of the protocols that can be run here."""
    from scalechannels.compare.table import rows, table_json, table_text
    from scalechannels.files import atomic_path

    able = [protocol for protocol in protocols if not protocol.fault]
    found = [(protocol, rows(protocol, results, seeds)) for protocol in able]
    if form == "json":
        print(json.dumps([table_json(*one) for one in found], indent=1))
    else:
        print("\n\n".join(table_text(*one, markdown=form == "markdown") for one in found))
    for protocol, made in found if plot is not None else ():
        from scalechannels.compare.plot import draw

        assert plot is not None
        path = plot if len(found) == 1 else plot.with_name(f"{plot.stem}-{protocol.id}.png")
        with atomic_path(path) as temporary:
            draw(protocol, made).savefig(temporary, format="png", dpi=160)
        print(path, file=sys.stderr)
