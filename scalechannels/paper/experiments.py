"""Every table and figure of the paper, from `experiments.toml`: which runs it needs, how they are shown.

An experiment has panels, a panel has curves, and a curve is one configuration (or several, along an axis)
that is trained with several seeds. A run that several experiments need is the same configuration, so it has
the same name and exists once. Numbers of tables and figures are the paper's.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

from scalechannels.paper.recipes import RECIPES, SAMPLES, WRITTEN, seeded
from scalechannels.training.config import RunConfig
from scalechannels.training.config.options import read_toml, refuse

Renderer = Literal[
    "table", "ranking", "factorial", "curves", "samples", "placed", "selection", "pictures", "windows", "code"
]
GROUPS = ("evidence", "recommended", "anywhere")
"""Ids that stand for all experiments whose ids begin with them."""
OURS = "not in the paper"
"""Where our own experiments stand."""


@dataclass(frozen=True)
class Curve:
    """What one line shows: a configuration of seed 0, or several along an axis."""

    label: str
    configs: tuple[RunConfig, ...]
    reference: bool = False
    """Drawn dashed and grey, to compare with."""
    colour: int | None = None
    """Its place among the colours; by default its place in the panel."""
    dashed: bool = False


@dataclass(frozen=True)
class Panel:
    """Curves that share axes."""

    title: str
    curves: tuple[Curve, ...]
    shown: tuple[float, float] = (0.0, 100.0)
    """The accuracies that the vertical axis spans."""
    across: Literal["size", "offset"] = "size"
    """Of objects anywhere: what the horizontal axis is, their size or how far they are off the centre."""


@dataclass(frozen=True)
class Experiment:
    """A table, a figure, or a statement of the text."""

    id: str
    title: str
    renderer: Renderer
    panels: tuple[Panel, ...] = ()
    caption: str = ""
    seeds: int = 1
    tested: tuple[tuple[float, float], ...] = ()
    """Test sets with all sizes of a range, beside those at every single size."""
    over: str = ""
    """The range of test sizes that a ranking is about."""
    where: str = ""
    """Its section, where it has no number of its own."""
    pairs: Mapping[str, Sequence[str]] = field(default_factory=dict, hash=False)
    """Which rows each row is compared with. A row is a panel: the mean over its curves."""
    rows: Mapping[str, RunConfig] = field(default_factory=dict, hash=False)
    """The rows of a figure, whose panels are none."""
    heading: str = ""
    """What stands above the table of its comparisons."""
    columns: tuple[str, ...] = ()
    """What rows are compared over: a range of test sizes such as [1,4], or one: size 1/2."""

    @property
    def place(self) -> str:
        """Where it stands in the paper: Figure 5."""
        return self.where or self.id.capitalize().replace("Table", "Table ").replace("Figure", "Figure ")

    @property
    def is_table(self) -> bool:
        return self.renderer in ("table", "ranking", "factorial")

    def runs(self, seeds: int | None = None) -> tuple[RunConfig, ...]:
        """Its runs, each once, by default with its own number of seeds."""
        count = self.seeds if seeds is None else seeds
        if count < 1:
            raise ValueError(f"at least one seed is needed, got {count}")
        configs = (config for panel in self.panels for curve in panel.curves for config in curve.configs)
        return tuple(dict.fromkeys(seeded(config, seed) for config in configs for seed in range(count)))


def _each(entries: Iterable[dict[str, Any]], name: Literal["title", "label"]) -> Iterator[dict[str, Any]]:
    """The panels or curves of entries, one for each place of an entry's lists, with their names filled in."""
    for entry in entries:
        lists = {
            key: value
            for key, value in entry.items()
            if isinstance(value, list) and key not in ("curves", "shown")
        }
        for values in zip(*lists.values(), strict=True) if lists else [()]:
            one = entry | dict(zip(lists, values, strict=True))
            train = str(one.get("train"))
            network = WRITTEN.get(one.get("network", ""), one.get("network", ""))
            said = {"network": network, "train": train, "size": train[2:]}
            yield one | {name: one[name].format(**said)}


def _read(id: str, entry: dict[str, Any]) -> Experiment:
    """The experiment of an entry in `experiments.toml`, which says what an entry is."""
    kind, kinds = entry["renderer"], get_args(Renderer)
    refuse(kind not in kinds, f"{id}: renderer must be one of {', '.join(kinds)}; got {kind!r}")
    unknown = [key for key in entry if key not in Experiment.__dataclass_fields__]
    refuse(bool(unknown), f"{id}: unknown {', '.join(unknown)}; an entry holds what `Experiment` does")
    one_table = kind != "table" or id in ("table1", "beyond")
    refuse(not one_table, f"{id}: a table of its own needs code; take the renderer factorial")
    placed = entry.get("where") or re.fullmatch(r"(table|figure)\d+", id)
    refuse(not placed, f"{id} needs `where`, its place: only an id such as table1 or figure5 says it")
    points = [{"samples": count} for count in SAMPLES] if kind == "samples" else [{}]
    panels = []
    for panel in _each(entry.pop("panels", ()), "title"):
        title, shown = panel.pop("title"), tuple(panel.pop("shown", Panel.shown))
        across = panel.pop("across", Panel.across)
        curves = []
        for curve in _each([panel | own for own in panel.pop("curves")], "label"):
            label, named = curve.pop("label"), curve.pop("recipe")
            refuse(named not in RECIPES, f"{id}: there is no recipe {named!r} in `RECIPES`")
            recipe = RECIPES[named]
            drawn = {key: curve.pop(key) for key in ("reference", "colour", "dashed") if key in curve}
            curves.append(Curve(label, tuple(recipe(**curve, **point) for point in points), **drawn))
        panels.append(Panel(title, tuple(curves), shown, across))
    tested, shown = tuple(map(tuple, entry.pop("tested", ()))), tuple(entry.pop("columns", ()))
    rows = {row: RECIPES[run.pop("recipe")](**run) for row, run in entry.pop("rows", {}).items()}
    return Experiment(id, panels=tuple(panels), tested=tested, columns=shown, rows=rows, **entry)


EXPERIMENTS = tuple(_read(id, entry) for id, entry in read_toml(Path(__file__).with_suffix(".toml")).items())


def experiment(id: str, kind: Literal["experiment", "table", "figure"] = "experiment") -> Experiment:
    """The experiment of this id, of any kind; the error for an unknown id offers those of `kind` alone."""
    for known in EXPERIMENTS:
        if known.id == id:
            return known
    offered = [one.id for one in EXPERIMENTS if kind == "experiment" or one.is_table == (kind == "table")]
    if kind != "table":  # which prints one at a time
        offered.append("all")
    if near := [one for one in offered if one in (f"table{id}", f"figure{id}")]:
        raise ValueError(f"there is no {kind} '{id}'; did you mean {' or '.join(near)}?")
    names = ", ".join(one.removeprefix(kind) for one in offered)
    groups = ", ".join(GROUPS)
    names += f", outside, {groups} or a figure such as figure5" if kind == "table" else ""
    raise ValueError(f"there is no {kind} '{id.removeprefix(kind)}'; choose from {names}")


def expanded(ids: Iterable[str]) -> list[str]:
    """The ids, those of a whole group in place of its name."""
    groups = {id: [one.id for one in EXPERIMENTS if one.id.startswith(f"{id}-")] for id in GROUPS}
    return [one for id in ids for one in groups.get(id, [id])]


def chosen(ids: Iterable[str]) -> list[Experiment]:
    """The experiments of these ids; "all" is all of them, and one of `GROUPS` all whose ids begin with it."""
    wanted = list(ids)
    if "all" in wanted:
        return list(EXPERIMENTS)
    return [experiment(id) for id in expanded(wanted)]
