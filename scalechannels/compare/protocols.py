"""Protocols and methods from `protocols.toml`, and the runs that they are made of.

A protocol is data, a training budget and a list of methods; a method is options of a run. A run is a
`RunConfig` as everywhere, so that it is trained, resumed, tested and found in the results like any other.

Law: two methods of one protocol see as many training images, as often, and are tested on the same images.
Limit: a method may say that it trains on other sizes (the CNN that sees all of them), and its batch and rate.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from scalechannels.paper.recipes import seeded
from scalechannels.training.config import RunConfig
from scalechannels.training.config.options import read_toml, refuse

PACKAGED = Path(__file__).with_suffix(".toml")
SECTIONS = ("data", "network", "training")
TOLERANCE = 1e-3


@dataclass(frozen=True)
class Method:
    """A way to recognise objects: options of a run."""

    id: str
    title: str
    ours: bool = False
    options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict, hash=False)
    """By section; they go before those of the protocol."""
    on: Mapping[str, Mapping[str, Mapping[str, Any]]] = field(default_factory=dict, hash=False)
    """The same for single protocols."""


@dataclass(frozen=True)
class Published:
    """What a paper states for a protocol, where it is known for certain."""

    method: str
    sizes: Mapping[float, float] = field(hash=False)
    """Test size to accuracy in per cent."""
    note: str


@dataclass(frozen=True)
class Protocol:
    """Data, a training budget, methods."""

    id: str
    title: str
    options: Mapping[str, Mapping[str, Any]] = field(hash=False)
    methods: tuple[Method, ...]
    reference: Method
    """What the others are compared with."""
    seeds: int = 3
    published: tuple[Published, ...] = ()
    fault: str = ""
    """Why it cannot be run here, such as data that this version does not have; empty where it can."""

    def run(self, method: Method, seed: int = 0) -> RunConfig:
        """The run of a method and a seed; what is open is the recipe of its data."""
        values: dict[str, dict[str, Any]] = {}
        for options in (self.options, method.options, method.on.get(self.id, {})):
            for section, given in options.items():
                values[section] = {**values.get(section, {}), **given}
        values.setdefault("training", {})["seed"] = seed
        return RunConfig.from_dict(values)

    def runs(self, method: Method, seeds: int | None = None) -> list[RunConfig]:
        """One for each seed."""
        first = self.run(method)
        return [seeded(first, seed) for seed in range(self.seeds if seeds is None else seeds)]

    @property
    def trained(self) -> tuple[float, float]:
        """The smallest and the largest size that its training images have."""
        sizes = self.options["data"].get("sizes", [1.0])
        return min(sizes), max(sizes)

    def same_sizes(self, method: Method) -> bool:
        """Whether a method trains on the protocol's sizes; one that sees others is no match for the rest."""
        return self.run(method).data.sizes == self.run(self.reference).data.sizes

    def inside(self, size: float) -> bool:
        low, high = self.trained
        return low * (1 - TOLERANCE) <= size <= high * (1 + TOLERANCE)

    def with_method(self, method: Method) -> Protocol:
        return replace(self, methods=(*self.methods, method))


@dataclass(frozen=True)
class Tuning:
    """The tries that every method gets on the validation set."""

    rates: tuple[float, ...] = ()
    tuned: tuple[str, ...] = ()
    """The protocols whose rates are what won."""


def read_protocols(path: Path | None = None) -> tuple[list[Protocol], Tuning]:
    """Those of a file, by default the package's own, which says what a file holds."""
    file = path or PACKAGED
    values = read_toml(file)
    _require(file, "tables", values, ("protocols", "methods", "tuning"))
    methods = {id: _method(file, id, entry) for id, entry in values.get("methods", {}).items()}
    protocols = [_protocol(file, id, entry, methods) for id, entry in values.get("protocols", {}).items()]
    refuse(not protocols, f"'{file}' has no protocol: add a table [protocols.NAME]")
    tuning = values.get("tuning", {})
    _require(file, "tuning", tuning, ("rate", "tuned"))
    return protocols, Tuning(tuple(tuning.get("rate", ())), tuple(tuning.get("tuned", ())))


def own_method(name: str, rate: float | None = None) -> Method:
    """A user's own module as a method, by its path: see `rivals.named`."""
    refuse(":" not in name, f"--method must be path/to/file.py:Class or package.module:Class; got '{name}'")
    training = {} if rate is None else {"training": {"rate": rate}}
    return Method(name, name.rpartition(":")[2], options={"network": {"name": name}, **training})


def chosen(protocols: Sequence[Protocol], ids: Sequence[str]) -> list[Protocol]:
    """Those of these ids, all of them where none is given."""
    known = {one.id: one for one in protocols}
    for id in ids:
        refuse(id not in known, f"there is no protocol '{id}'; choose from {', '.join(known)}")
    return [known[id] for id in ids] if ids else list(protocols)


def _method(file: Path, id: str, entry: dict[str, Any]) -> Method:
    _require(file, f"methods.{id}", entry, ("title", "ours", "on", *SECTIONS))
    options = {section: entry[section] for section in SECTIONS if section in entry}
    refuse("name" not in options.get("network", {}), f"'{file}': methods.{id} needs network.name")
    return Method(id, entry.get("title", id), entry.get("ours", False), options, entry.get("on", {}))


def _protocol(file: Path, id: str, entry: dict[str, Any], methods: Mapping[str, Method]) -> Protocol:
    keys = ("title", "methods", "reference", "seeds", "published", "data", "training")
    _require(file, f"protocols.{id}", entry, keys)
    names = entry.get("methods", [])
    reference = entry.get("reference", names[0] if names else "")
    for name in (*names, reference):
        known = ", ".join(methods) or "none"
        refuse(name not in methods, f"'{file}': protocols.{id}: no method '{name}'; there are {known}")
    published = tuple(
        Published(
            one["method"], {float(size): value for size, value in one["sizes"].items()}, one.get("note", "")
        )
        for one in entry.get("published", ())
    )
    made = Protocol(
        id,
        entry.get("title", id),
        {section: entry[section] for section in ("data", "training") if section in entry},
        tuple(methods[name] for name in names),
        methods[reference],
        entry.get("seeds", 3),
        published,
    )
    try:
        for method in made.methods:
            made.run(method).resolve()
    except ValueError as error:
        return replace(made, fault=str(error))
    return made


def _require(file: Path, place: str, entry: Mapping[str, Any], known: Sequence[str]) -> None:
    for key in entry:
        refuse(key not in known, f"'{file}': {place} has no {key}; it may have {', '.join(known)}")
