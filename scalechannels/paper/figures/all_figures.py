"""Every figure of the paper that has data, from results alone: `draw(id, results)`.

Law: what is drawn is in the results; what is missing is named in the picture. Limit: the paper's own curves
are not drawn, since it gives no numbers for them.
"""

from __future__ import annotations

import string
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from scalechannels.files import atomic_path
from scalechannels.paper.experiments import EXPERIMENTS, experiment
from scalechannels.paper.figures import drawn_pictures as figure_pictures
from scalechannels.paper.figures.curves import draw_curves
from scalechannels.paper.figures.selection import draw_selection
from scalechannels.paper.recipes import Experiment
from scalechannels.paper.results import PICTURES, RUNS, Results
from scalechannels.report.theme import INK, PANEL, SOFT

if TYPE_CHECKING:
    from matplotlib.figure import Figure

IMAGES: dict[str, Callable[[Path], Figure | None]] = {
    "figure2": figure_pictures.windows_figure,
    "figure3": figure_pictures.code_figure,
    "figure4": figure_pictures.mnist_figure,
    "figure14": figure_pictures.cifar_figure,
}
TABLES = ("table", "ranking")
PANEL_SIZE = (4.6, 3.3)
"""Inches."""


def with_pictures() -> list[Experiment]:
    """The experiments that are figures."""
    return [one for one in EXPERIMENTS if one.renderer not in TABLES]


def draw(id: str, results: Path, known: Results | None = None) -> Figure:
    """The whole figure, from the results in this folder."""
    one = _figure_of(id)
    if one.id in IMAGES:
        return IMAGES[one.id](results / PICTURES) or _nothing(one)
    from matplotlib.figure import Figure

    known = known or Results(results / RUNS)
    across = 3 if len(one.panels) == 3 else min(2, len(one.panels))
    down = -(-len(one.panels) // across)
    width, height = PANEL_SIZE
    figure = Figure(figsize=(width * across, height * down), facecolor=PANEL, layout="constrained")
    plots = figure.subplots(down, across, squeeze=False).flat
    for place, (panel, axes) in enumerate(zip(one.panels, plots, strict=False)):
        (draw_selection if one.renderer == "selection" else draw_curves)(axes, known, one, panel)
        letter = f"({string.ascii_lowercase[place]}) " if len(one.panels) > 1 else ""
        axes.set_title(letter + panel.title, color=INK, fontsize=10.5)
    return figure


def draw_panels(id: str, results: Path, known: Results) -> list[Figure]:
    """The panels as figures of their own, for pages that arrange them; images stay whole."""
    one = _figure_of(id)
    if one.id in IMAGES:
        return [draw(id, results)]
    from matplotlib.figure import Figure

    figures = []
    for place, panel in enumerate(one.panels):
        figure = Figure(figsize=PANEL_SIZE, facecolor=PANEL, layout="constrained")
        axes = figure.add_subplot()
        (draw_selection if one.renderer == "selection" else draw_curves)(axes, known, one, panel)
        letter = f"({string.ascii_lowercase[place]}) " if len(one.panels) > 1 else ""
        axes.set_title(letter + panel.title, color=INK, fontsize=10.5)
        figures.append(figure)
    return figures


def save(figure: Figure, path: Path) -> list[Path]:
    """As PNG and as SVG, beside each other."""
    written = []
    for kind in ("png", "svg"):
        target = path.with_name(f"{path.name}.{kind}")
        with atomic_path(target) as temporary:
            metadata = {"Date": None} if kind == "svg" else None
            figure.savefig(temporary, format=kind, dpi=160, metadata=metadata)
        written.append(target)
    return written


def _figure_of(id: str) -> Experiment:
    one = experiment(id)
    if one.renderer in TABLES:
        raise ValueError(f"{id} is a table: scalechannels table {id}")
    return one


def _nothing(one: Experiment) -> Figure:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.0, 1.5), facecolor=PANEL)
    figure.text(0.5, 0.5, f"not made yet: scalechannels reproduce {one.id}", color=SOFT, ha="center")
    return figure
