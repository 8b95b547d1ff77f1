"""Every figure is drawn from whatever results there are: none, some, or all of them; nothing is invented."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from helpers.made_up import made_up, write

from scalechannels.data.sizes import MNIST_SIZES
from scalechannels.paper.experiments import EXPERIMENTS, experiment
from scalechannels.paper.figures import draw as draw_module
from scalechannels.paper.figures.draw import PANELS, draw, draw_panels, save, with_pictures
from scalechannels.paper.figures.images import IMAGES, read_strip
from scalechannels.paper.recipes import few
from scalechannels.paper.results import PICTURES, RUNS, Results

CLONE = Path(__file__).parents[3] / "results"
FIGURES = [one.id for one in with_pictures()]


def texts(figure) -> str:
    """Everything that is written in a figure."""
    from matplotlib.text import Text

    return "\n".join(text.get_text() for text in figure.findobj(Text))


def test_every_experiment_is_a_table_or_a_figure_and_every_image_has_its_file() -> None:
    tables = [one.id for one in EXPERIMENTS if one.is_table]
    assert sorted(tables + FIGURES) == sorted(one.id for one in EXPERIMENTS)
    assert {f"figure{number}" for number in range(2, 16)} <= set(FIGURES)
    for id in FIGURES:
        images = experiment(id).renderer not in PANELS
        assert images == (id in IMAGES)
        assert not images or (CLONE / PICTURES / IMAGES[id][0]).exists()


@pytest.mark.parametrize("id", FIGURES)
def test_without_results_it_says_so(id: str, tmp_path: Path) -> None:
    said = texts(draw(id, Results(tmp_path / RUNS)))
    assert "no results yet" in said or f"not made yet: scalechannels reproduce {id}" in said


@pytest.mark.parametrize("id", ["figure5", "figure9"])
def test_curves_show_the_results_and_name_what_is_missing(id: str, tmp_path: Path) -> None:
    one = experiment(id)
    panel = one.panels[0]
    for curve in panel.curves[1:]:
        write(tmp_path / RUNS, made_up(curve.configs[0], lambda size: 90 - size))
    figure = draw(id, Results(tmp_path / RUNS))
    axes = figure.axes[0]
    assert f"{panel.curves[0].label} (no result)" in texts(figure)
    drawn = {line.get_label(): line for line in axes.get_lines()}
    for curve in panel.curves[1:]:
        line = drawn[curve.label]
        assert list(line.get_xdata()) == pytest.approx(list(MNIST_SIZES))
        assert list(line.get_ydata()) == pytest.approx([90 - size for size in MNIST_SIZES])
    assert axes.get_xscale() == "log"
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["½", "1", "2", "4", "8"]
    assert axes.get_title() == ("(a) Standard CNN" if id == "figure5" else "Standard CNN")


def test_few_samples_have_a_logarithmic_axis_of_samples(tmp_path: Path) -> None:
    write(tmp_path / RUNS, made_up(few("cnn", 1000), lambda size: 80.0, ranges=[(1.0, 4.0)]))
    axes = draw("figure11", Results(tmp_path / RUNS)).axes[0]
    (line,) = (line for line in axes.get_lines() if line.get_label() == "CNN")
    assert (list(line.get_xdata()), list(line.get_ydata())) == ([1000], [80.0])
    assert axes.get_xticklabels()[0].get_text() == "100"


def test_selection_shows_sizes_across_and_channels_upwards(tmp_path: Path) -> None:
    panel = experiment("figure12").panels[0]
    write(tmp_path / RUNS, made_up(panel.curves[0].configs[0]))
    axes = draw("figure12", Results(tmp_path / RUNS)).axes[0]
    (image,) = axes.get_images()
    assert image.get_array().shape == (17, 17)
    assert image.get_array().trace() == pytest.approx(17)  # the diagonal
    assert axes.get_ylim() == (-0.5, 16.5)  # the lowest scale at the bottom
    assert panel.title in axes.get_title()


def test_the_committed_pictures_are_drawn() -> None:
    for id, count in {"figure2": 6, "figure4": 17, "figure14": 18}.items():
        figure = draw(id, Results(CLONE / RUNS))
        assert sum(len(axes.get_images()) for axes in figure.axes) == count
    digit = read_strip(CLONE / PICTURES / "mnist.png", 112)[0]
    inked = (digit > 0.5).float().mean((1, 2, 3))[: MNIST_SIZES.index(4.0) + 1].tolist()
    assert inked == sorted(inked)  # larger and larger, while it is inside the image


def test_the_code_shows_the_winning_class_at_three_sizes(tmp_path: Path) -> None:
    code = {
        "run": "made up",
        "scales": list(MNIST_SIZES),
        "sizes": list(MNIST_SIZES),
        "winner": [2] * 17,
        "logits": [
            [[float(9 if k == 2 and scale == size else 0) for k in range(10)] for scale in MNIST_SIZES]
            for size in MNIST_SIZES
        ],
    }
    (tmp_path / PICTURES).mkdir()
    (tmp_path / PICTURES / IMAGES["figure3"].file).write_text(json.dumps(code))
    figure = draw("figure3", Results(tmp_path / RUNS))
    peaks = []
    for axes in figure.axes:
        x, y = axes.get_lines()[0].get_data()
        peaks.append(float(x[list(y).index(max(y))]))
    assert peaks == [1.0, 2.0, 4.0]


def test_panels_can_stand_alone_and_files_are_png_and_svg(tmp_path: Path) -> None:
    assert len(draw_panels("figure15", Results(tmp_path / RUNS))) == 4
    assert len(draw_panels("figure4", Results(CLONE / RUNS))) == 1
    png, svg = save(draw("figure9", Results(tmp_path / RUNS)), tmp_path / "figure9")
    assert png.read_bytes().startswith(b"\x89PNG")
    assert "<svg" in svg.read_text()


def test_a_table_is_no_figure(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="'table1' is a table, not a figure: scalechannels table 1"):
        draw("table1", tmp_path)


def test_a_kind_of_figure_that_nothing_draws_is_named(monkeypatch) -> None:
    bars = replace(experiment("figure5"), renderer="bars")
    monkeypatch.setattr(draw_module, "experiment", lambda *_: bars)
    with pytest.raises(ValueError, match="nothing draws figure5: 'bars' is neither in PANELS"):
        draw_module.draw("figure5", Results(CLONE / RUNS))
