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
from scalechannels.paper.experiments import EXPERIMENTS, Experiment, experiment
from scalechannels.paper.figures.image_files import FILES
from scalechannels.paper.figures.images import cifar_figure, code_figure, mnist_figure, windows_figure
from scalechannels.paper.figures.panels import draw_curves, draw_selection
from scalechannels.paper.results import PICTURES, Results
from scalechannels.report.theme import INK, PANEL, SOFT

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

IMAGES: dict[str, Callable[[Path], Figure]] = {
    "figure2": windows_figure,
    "figure3": code_figure,
    "figure4": mnist_figure,
    "figure14": cifar_figure,
}
PANELS = {"curves": draw_curves, "samples": draw_curves, "selection": draw_selection}
"""What draws a panel of each kind of figure (`Renderer`)."""
PANEL_SIZE = (4.6, 3.3)
"""Inches."""


def with_pictures() -> list[Experiment]:
    """The experiments that are figures."""
    return [one for one in EXPERIMENTS if not one.is_table]


def draw(id: str, results: Results) -> Figure:
    """The whole figure."""
    one = _figure_of(id)
    if id in IMAGES:
        return _image(one, results)
    across = 3 if len(one.panels) == 3 else min(2, len(one.panels))
    figure, plots = _panels(-(-len(one.panels) // across), across)
    for place, axes in enumerate(plots[: len(one.panels)]):
        _draw_panel(axes, results, one, place)
    return figure


def draw_panels(id: str, results: Results) -> list[Figure]:
    """The panels as figures of their own, for pages that arrange them; images stay whole."""
    one = _figure_of(id)
    if id in IMAGES:
        return [_image(one, results)]
    figures = []
    for place in range(len(one.panels)):
        figure, (axes,) = _panels(1, 1)
        _draw_panel(axes, results, one, place)
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
    one = experiment(id, "figure")
    if one.is_table:
        raise ValueError(f"{id} is a table: scalechannels table {id}")
    if id not in IMAGES and one.renderer not in PANELS:
        raise ValueError(f"nothing draws {id}: {one.renderer!r} is neither in PANELS nor is {id} in IMAGES")
    return one


def _panels(down: int, across: int) -> tuple[Figure, list[Axes]]:
    from matplotlib.figure import Figure

    width, height = PANEL_SIZE
    figure = Figure(figsize=(width * across, height * down), facecolor=PANEL, layout="constrained")
    return figure, list(figure.subplots(down, across, squeeze=False).flat)


def _draw_panel(axes: Axes, results: Results, one: Experiment, place: int) -> None:
    PANELS[one.renderer](axes, results, one, one.panels[place])
    letter = f"({string.ascii_lowercase[place]}) " if len(one.panels) > 1 else ""
    axes.set_title(letter + one.panels[place].title, color=INK, fontsize=10.5)


def _image(one: Experiment, results: Results) -> Figure:
    from matplotlib.figure import Figure

    path = results.folder.parent / PICTURES / FILES[one.id]
    if path.exists():
        return IMAGES[one.id](path)
    figure = Figure(figsize=(6.0, 1.5), facecolor=PANEL)
    figure.text(0.5, 0.5, f"not made yet: scalechannels reproduce {one.id}", color=SOFT, ha="center")
    return figure
