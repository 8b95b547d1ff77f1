"""Tables are arithmetic on results: exact on made-up ones, whole on the committed ones."""

import dataclasses
import json
from pathlib import Path
from statistics import fmean

import pytest
from helpers.made_up import made_up, write

from scalechannels.data.sizes import MNIST_SIZES, RANGES, mean_inside
from scalechannels.paper.experiments import experiment
from scalechannels.paper.published import TABLE1
from scalechannels.paper.recipes import SINGLE, better, few, main, mnist, seeded
from scalechannels.paper.results import Results
from scalechannels.paper.table_text import curve_text, main_text, ranking_text
from scalechannels.paper.tables import apart, as_json, below, curve_tables, main_table, ranking

COMMITTED = Path(__file__).parents[2] / "results" / "runs"


def test_a_range_has_the_sizes_at_both_of_its_ends() -> None:
    at = {"[1/2,1]": 5, "[1,4]": 9, "[4,8]": 5, "[1/2,4]": 13, "[1/2,8]": 17}
    for column, count in at.items():
        low, high = RANGES[column]
        inside = [size for size in MNIST_SIZES if low - 1e-6 < size < high + 1e-6]
        assert len(inside) == count
        ends = (inside[0], inside[-1])
        result = made_up(main("cnn", "tr1"), lambda size, ends=ends: 50.0 if size in ends else 0.0)
        assert mean_inside(result.accuracies, *RANGES[column]) == pytest.approx(100 / count)


def test_without_results_all_rows_are_there_and_nothing_is_invented(tmp_path: Path) -> None:
    rows = main_table(Results(tmp_path))
    assert len(rows) == 25
    assert [row.label for row in rows[:5]] == [
        f"FovAvg 17ch {t}" for t in ("tr1", "tr2", "tr4", "mean", "tr14")
    ]
    assert all(row.ours == {} and row.seeds == 0 and row.missing == 3 for row in rows)
    text = main_text(rows)
    assert "60 runs have no result: scalechannels reproduce table1" in text
    for entry in as_json(rows):
        assert entry["[1,4]"] is None
        assert entry["paper"]["[1,4]"] > 40


def test_mean_and_standard_deviation_over_seeds(tmp_path: Path) -> None:
    for seed, accuracy in enumerate((98.0, 99.0, 100.0)):
        run = seeded(main("fovavg", "tr2"), seed)
        write(tmp_path, made_up(run, lambda size, a=accuracy: a))
    row = main_table(Results(tmp_path))[1]
    assert (row.seeds, row.missing) == (3, 0)
    assert row.ours["[1,4]"].mean == pytest.approx(99.0)
    assert row.ours["[1,4]"].std == pytest.approx(1.0)  # n − 1
    assert row.difference("[1,4]") == pytest.approx(99.0 - 99.36)


def test_the_row_of_means_takes_seeds_that_all_three_sizes_have(tmp_path: Path) -> None:
    for train, accuracy in zip(SINGLE, (90.0, 93.0, 96.0), strict=True):
        for seed in range(2 if train == "tr4" else 3):
            run = seeded(main("swmax", train), seed)
            write(tmp_path, made_up(run, lambda size, a=accuracy + seed: a))
    row = next(row for row in main_table(Results(tmp_path)) if row.network == "swmax" and row.train == "mean")
    assert row.seeds == 2
    assert row.ours["[1/2,8]"].mean == pytest.approx(93.5)
    assert row.ours["[1/2,8]"].std == pytest.approx(0.5**0.5)
    assert row.paper is not None
    assert row.paper["[1/2,8]"] == 89.75


def test_rows_of_ours_have_names_of_their_own_and_none_of_the_papers_values(tmp_path: Path) -> None:
    averaged = [mnist("cnn", train, average_scales=True) for train in SINGLE]
    write(
        tmp_path,
        made_up(better("tr2")),
        made_up(mnist("cnn", (0.5, 8.0), redraw=True)),
        *(made_up(run) for run in averaged),
    )
    rows = [row for row in as_json(main_table(Results(tmp_path))) if row["source"] == "ours"]
    assert [(row["network"], row["train"]) for row in rows] == [
        ("fovlse+", "tr2"),
        ("cnn, all sizes", "tr[1/2,8]"),
        *(("cnn, averaged", train) for train in (*SINGLE, "mean")),
    ]
    assert all(row["paper"] is None for row in rows)
    assert [row["network"] for row in as_json(main_table(Results(tmp_path)))].count("cnn") == 5


def test_json_has_the_agreed_form(tmp_path: Path) -> None:
    write(
        tmp_path,
        made_up(main("fovconc", "tr14")),
        made_up(main("cnn", "tr1")),
        made_up(main("fovlse", "tr1")),
    )
    rows = json.loads(json.dumps(as_json(main_table(Results(tmp_path)))))
    assert len(rows) == 26  # one of ours
    assert [row["source"] for row in rows] == ["paper"] * 25 + ["ours"]
    for row in rows:
        assert list(row) == ["network", "train", "channels", "seeds", *RANGES, "std", "paper", "source"]
        assert list(row["std"]) == list(RANGES)
    by = {(row["network"], row["train"]): row for row in rows}
    assert by["cnn", "tr1"]["channels"] == 1
    assert by["fovconc", "tr14"]["channels"] == 17
    assert by["fovconc", "tr1"]["channels"] == 3
    assert by["fovlse", "tr1"]["paper"] is None
    assert by["cnn", "tr1"]["[1,4]"] == 99.0
    assert by["cnn", "tr1"]["std"]["[1,4]"] is None  # one seed
    assert by["cnn", "tr1"]["paper"]["[1,4]"] == TABLE1["cnn", "tr1"]["[1,4]"] == 50.78


def test_rankings_show_both_places(tmp_path: Path) -> None:
    for place, name in enumerate(("cnn", "fovmax", "fovavg", "swmax")):
        write(tmp_path, made_up(main(name, "tr14"), lambda size, p=place: 99.0 - p))
    rows = ranking(Results(tmp_path), "table3")
    assert [(row.network, row.paper_place, row.place) for row in rows] == [
        ("fovavg", 1, 3),
        ("fovconc", 2, None),
        ("fovmax", 3, 2),
        ("cnn", 4, 1),
        ("swmax", 5, 4),
    ]
    assert "99.33" in ranking_text(rows)
    assert ranking_text(rows, "markdown").startswith("| place | network |")


def test_curves_say_what_is_missing(tmp_path: Path) -> None:
    one = experiment("figure9")
    write(tmp_path, made_up(one.panels[0].curves[3].configs[0], lambda size: 50 + size))
    (table,) = curve_tables(Results(tmp_path), one)
    assert list(table.columns["trained on [1, 2]"]) == pytest.approx(list(MNIST_SIZES))
    assert table.columns["trained on [1, 2]"][8.0].mean == 58.0
    assert table.missing == {"tr1": 1, "tr2": 1, "tr4": 1, "trained on [2, 4]": 1}
    assert "missing: tr1 (1)" in curve_text(Results(tmp_path), one)


def test_few_samples_are_tested_on_the_whole_range(tmp_path: Path) -> None:
    run = few("fovavg", 300)
    write(tmp_path, made_up(run, lambda size: 90 + size, ranges=[(1.0, 4.0)]))
    (table,) = curve_tables(Results(tmp_path), experiment("figure11"))
    assert table.columns["FovAvg"] == {300: table.columns["FovAvg"][300]}
    assert table.columns["FovAvg"][300].mean == 92.0
    assert table.missing["FovAvg"] == 4


def test_the_committed_results_are_whole() -> None:
    """Each file is the run that its name promises, and belongs to an experiment."""
    from scalechannels.paper.experiments import EXPERIMENTS

    wanted = {run.resolve("cuda").name: run for one in EXPERIMENTS for run in one.runs()}
    results = Results(COMMITTED)
    files = list(COMMITTED.glob("*.json"))
    assert len(files) >= 24
    for path in files:
        assert path.stem in wanted, f"{path.name} belongs to no experiment"
        assert results.find(wanted[path.stem]) is not None, results.faults
    assert results.faults == {}


def test_cells_are_apart_where_their_standard_error_does_not_explain_them(
    tmp_path: Path,
) -> None:
    paper = TABLE1["fovavg", "tr1"]["[1,4]"]
    for seed, scatter in enumerate((-0.1, 0.0, 0.1)):  # a standard error of 0.08, a t of 4.3 at 5 %
        run = seeded(main("fovavg", "tr1"), seed)
        write(tmp_path, made_up(run, lambda size, scatter=scatter: paper - 0.4 + scatter))
    far, by_chance = apart(main_table(Results(tmp_path)))
    found = {one.column: one.p for one in far}
    assert 0.01 < found["[1,4]"] < 0.05
    assert by_chance == pytest.approx(5 * 0.1835, rel=0.01)  # beyond 2 of Student's t with two degrees
    beside = below(main_table(Results(tmp_path)))["FovAvg"]
    published = TABLE1["fovavg", "tr1"].values()
    assert beside.lower == sum(paper - 0.4 < value for value in published)
    assert beside.cells == 5
    assert beside.mean == pytest.approx(paper - 0.4 - fmean(published))
    for scatter, inside in ((1.0, True), (0.2, False)):
        for seed, sign in enumerate((-1, 0, 1)):
            run = seeded(main("fovmax", "tr1"), seed)
            write(tmp_path, made_up(run, lambda size, off=sign * scatter: 98.9 + off))
        far, _ = apart(main_table(Results(tmp_path)))
        of_max = {one.column: one.p for one in far if one.row.network == "fovmax"}
        assert ("[1,4]" not in of_max) is inside  # 0.45 below the paper
    assert 0.05 < of_max["[1,4]"] < 0.2  # 2.8 standard errors: three seeds do not make it sure


def test_a_cell_that_the_papers_rounding_hides_is_not_below_it(tmp_path: Path) -> None:
    paper = TABLE1["fovavg", "tr1"]["[1,4]"]
    for off, lower in ((0.003, 0), (0.007, 1)):
        write(tmp_path, made_up(main("fovavg", "tr1"), lambda size, off=off: paper - off))
        row = next(one for one in main_table(Results(tmp_path)) if one.ours)
        only = dataclasses.replace(row, ours={"[1,4]": row.ours["[1,4]"]})
        assert below([only])["FovAvg"].lower == lower
