"""Every run that the comparison of methods lacks, one after the other, without the command line's libraries.

    python -m benchmarks.compare --estimate                       what is missing, and about how long it takes
    python -m benchmarks.compare --device cuda                    trains it; results/ grows run by run
    python -m benchmarks.compare mnist --only riesz sesn --seeds 1 --device cuda --minutes 9
    python -m benchmarks.compare mnist --tune --device cuda       the tries of every method, on validation

It does what `scalechannels compare` does before it prints, for machines with PyTorch and little else. Stopped
at any moment, or after --minutes, it goes on where it was when it is called again. The table is printed by
`scalechannels compare --no-train` wherever results/ lies.

An estimate counts products: three times those of a test for each training image, and those of all test sets,
at --products a second (in thousands of millions). Small networks are slower than that: the launches decide.
"""

from __future__ import annotations

import argparse
import json
import sys
import threading
import time
from pathlib import Path

import torch

from benchmarks.measure import usable_device
from scalechannels.compare.missing import complete, present, tune
from scalechannels.compare.protocols import Protocol, chosen, own_method, read_protocols
from scalechannels.training.build import build_network
from scalechannels.training.config import RunConfig

TESTED = 10_000
TRAINED = {"mnist": 50_000, "fashion": 50_000, "cifar10": 50_000, "mnist-scale": 10_000}
"""Images of data sets that are trained on as a whole."""


def products_of_run(run: RunConfig) -> int:
    """Of training and testing, as they are carried out: products with 0 are not taken off."""
    from torch.utils.flop_counter import FlopCounterMode

    resolved = run.resolve("cuda")
    colours = 3 if run.data.name == "cifar10" else 1
    side, training = resolved.data.about.image, resolved.training
    network = build_network(resolved, colours, 10).eval()
    with torch.no_grad(), FlopCounterMode(display=False) as counter:
        network(torch.zeros(1, colours, side, side))
    seen = training.images or resolved.data.samples or TRAINED[run.data.name]
    shown = 3 * training.epochs * seen + TESTED * len(resolved.data.about.test_sizes)
    return counter.get_total_flops() // 2 * shown


def estimate(
    protocols: list[Protocol], results: Path, seeds: int | None, only: list[str], speed: float
) -> None:
    total = 0.0
    for one in present(protocols, results, seeds, only):
        if one.lacking:
            seconds = products_of_run(one.lacking[0]) / (speed * 1e9)
            total += seconds * len(one.lacking)
            print(
                f"{one.protocol.id:<20}{one.method.id:<16}{len(one.lacking)} runs of {seconds:8.0f} s",
                flush=True,
            )
    print(f"{total / 3600:.1f} hours in all")


def main(words: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("ids", nargs="*", help="protocols, by default all")
    parser.add_argument("--only", nargs="*", default=[], help="methods, by default all of a protocol")
    parser.add_argument("--method", action="append", default=[], help="your own: path/to/file.py:Class")
    parser.add_argument("--seeds", type=int)
    parser.add_argument(
        "--device", default="cuda" if torch.cuda.is_available() else "cpu", type=usable_device
    )
    parser.add_argument("--root", type=Path, help="where downloaded data is")
    parser.add_argument("--out", type=Path, default=Path("runs"))
    parser.add_argument("--results", type=Path, default=Path("results"))
    parser.add_argument("--file", type=Path, help="protocols in place of the package's own")
    parser.add_argument("--tune", action="store_true")
    parser.add_argument("--estimate", action="store_true")
    parser.add_argument("--products", type=float, default=10_000, help="thousands of millions a second")
    parser.add_argument("--minutes", type=float, help="stop after so many, to be called again")
    given = parser.parse_args(words)
    protocols, tuning = read_protocols(given.file)
    wanted = chosen(protocols, given.ids)
    for name in given.method:
        wanted = [protocol.with_method(own_method(name)) for protocol in wanted]
    if given.estimate:
        estimate(wanted, given.results, given.seeds, given.only, given.products)
        return 0
    if given.minutes is not None:
        # Main thread alone sees an interrupt, between two steps: what is written is written whole.
        threading.Thread(target=_interrupt_after, args=(given.minutes * 60,), daemon=True).start()
    options = {"only": given.only, "device": given.device, "root": given.root}
    try:
        if given.tune:
            for line in tune(wanted, tuning, given.out, given.results, **options):
                print(json.dumps(line))
            return 0
        failed = complete(wanted, given.out, given.results, seeds=given.seeds, **options)
    except KeyboardInterrupt:
        print("stopped; call it again to go on", file=sys.stderr)
        return 130
    for line in failed:
        print(f"failed: {line}", file=sys.stderr)
    return 1 if failed else 0


def _interrupt_after(seconds: float) -> None:
    import _thread

    time.sleep(seconds)
    _thread.interrupt_main()


if __name__ == "__main__":
    sys.exit(main())
