"""`reproduce` does what is missing and nothing twice; what is damaged is noticed, named and run again."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from scalechannels.paper import experiments, reproduce
from scalechannels.paper.experiments import Curve, Experiment, Panel
from scalechannels.paper.recipes import seeded
from scalechannels.paper.results import Results
from scalechannels.training import datasets, fit
from scalechannels.training.config import DataConfig, NetworkConfig, RunConfig, TrainingConfig

RUN = RunConfig(
    DataConfig(samples=100),
    NetworkConfig("fovavg", low=1, high=2, ratio=2),
    TrainingConfig(epochs=1, batch=20),
)
OTHER = replace(RUN, network=replace(RUN.network, name="fovmax"))
ONE = Experiment("one", "", "curves", (Panel("", (Curve("a", (RUN,)),)),), tested=((1.0, 2.0),))
BOTH = Experiment("both", "", "curves", (Panel("", (Curve("a", (RUN,)), Curve("b", (OTHER,)))),), seeds=2)

PAPER = experiments.EXPERIMENTS


@pytest.fixture(autouse=True)
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(experiments, "EXPERIMENTS", (ONE, BOTH))
    monkeypatch.setattr(reproduce, "EXPERIMENTS", (ONE, BOTH))
    monkeypatch.setattr(datasets, "STROKES_TEST", 20)
    torch.set_num_threads(1)


@pytest.fixture
def do(tmp_path: Path) -> Callable[..., list[str]]:
    def call(*ids: str, **options: object) -> list[str]:
        said: list[str] = []
        left = reproduce.reproduce(
            ids, tmp_path / "runs", tmp_path / "results", device="cpu", say=said.append, **options
        )
        assert left == [] or options
        return said

    return call


@pytest.fixture
def trained(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the runs that are given to `fit`, filled while a test runs."""
    names: list[str] = []
    real = fit.fit

    def counting(configs, folder, **options):
        names.extend(config.resolve("cpu").name for config in configs if not done(folder, config))
        return real(configs, folder, **options)

    def done(folder, config) -> bool:
        return (folder / config.resolve("cpu").name / "result.json").exists()

    monkeypatch.setattr(fit, "fit", counting)
    return names


def stored(tmp_path: Path, config: RunConfig = RUN) -> Path:
    return tmp_path / "results" / "runs" / f"{config.resolve('cpu').name}.json"


def test_it_does_what_is_missing_and_nothing_twice(tmp_path: Path, do, trained: list[str]) -> None:
    do("one")
    assert trained == [RUN.resolve("cpu").name]
    do("one", "both")  # the first seed of the first curve is there already
    assert sorted(trained) == sorted(
        seeded(config, seed).resolve("cpu").name for config in (RUN, OTHER) for seed in (0, 1)
    )
    count = len(trained)
    do("all")
    assert len(trained) == count
    assert len(list((tmp_path / "results" / "runs").glob("*.json"))) == 4


def test_a_result_holds_every_size_and_the_range_that_was_asked_for(tmp_path: Path, do) -> None:
    do("one")
    result = Results(tmp_path / "results" / "runs").find(RUN)
    assert result is not None
    assert len(result.accuracies) == 17
    assert result.accuracy_over(1.0, 2.0) is not None
    assert result.accuracy_over(1.0, 4.0) is None
    assert result.seconds > 0
    assert {size: 100 * (1 - wrong.mean()) for size, wrong in result.errors.items()} == pytest.approx(
        {**result.accuracies, (1.0, 2.0): result.accuracy_over(1.0, 2.0)}
    )
    own = json.loads((tmp_path / "runs" / RUN.resolve("cpu").name / "result.json").read_text())
    for entry in own["evaluation"]["sizes"]:
        del entry["per_class"], entry["confusion"]
    assert json.loads(stored(tmp_path).read_text()) == own


def test_seeds_and_networks_can_be_chosen(tmp_path: Path, do, trained: list[str]) -> None:
    do("both", seeds=1, only=["fovmax"])
    assert trained == [OTHER.resolve("cpu").name]
    with pytest.raises(ValueError, match="there is no experiment 'table9'; choose from one, both, all"):
        do("table9")
    with pytest.raises(ValueError, match="at least one seed is needed, got 0"):
        do("both", seeds=0)


def test_a_damaged_result_is_named_and_run_again(tmp_path: Path, do, trained: list[str]) -> None:
    do("one")
    path = stored(tmp_path)
    whole = path.read_text()
    path.write_text(whole[:300])
    own = tmp_path / "runs" / RUN.resolve("cpu").name / "result.json"
    said = do("one")
    assert any(str(path) in line and "damaged" in line and "counts as missing" in line for line in said)
    assert len(trained) == 1  # the run's own folder still had it
    assert path.read_text() == whole

    path.write_text(whole[:300])
    own.write_text("{}")
    said = do("one")
    assert any(str(own) in line and "set-aside-1" in line for line in said)
    assert len(trained) == 2
    assert json.loads(path.read_text())["name"] == RUN.resolve("cpu").name


def test_a_result_of_another_configuration_is_named_and_run_again(
    tmp_path: Path, do, trained: list[str]
) -> None:
    do("both", seeds=1)
    one, other = stored(tmp_path), stored(tmp_path, OTHER)
    one.write_text(other.read_text())
    runs = tmp_path / "runs"
    (runs / RUN.resolve("cpu").name / "config.toml").write_text(OTHER.resolve("cpu").to_toml())
    said = do("both", seeds=1)
    assert any(str(one) in line and OTHER.resolve("cpu").name in line for line in said)
    assert any("describes another run" in line for line in said)
    assert trained.count(RUN.resolve("cpu").name) == 2
    assert json.loads(one.read_text())["config"]["network"]["name"] == "fovavg"


def test_interrupted_it_goes_on(
    tmp_path: Path, do, trained: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    real = reproduce.complete

    def interrupted(part, *rest):
        if part[0].network.name == "fovmax":
            raise KeyboardInterrupt
        real(part, *rest)

    monkeypatch.setattr(reproduce, "complete", interrupted)
    with pytest.raises(KeyboardInterrupt):
        do("both")
    assert {name.split("-")[0] for name in trained} == {"fovavg"}
    assert stored(tmp_path).exists()
    assert len(reproduce.missing(["both"], tmp_path / "results")) == 2
    monkeypatch.setattr(reproduce, "complete", real)
    do("both")
    assert len(trained) == 4


def test_runs_of_one_shape_that_are_tested_alike_are_grouped() -> None:
    larger = replace(RUN, data=replace(RUN.data, sizes=(2.0,)))
    mixing = replace(RUN, network=replace(RUN.network, name="fovconc"))
    runs = [seeded(run, seed) for run in (larger, OTHER, mixing, RUN) for seed in range(3)]
    parts = reproduce.groups(runs)  # RUN alone is asked for a test set of many sizes, see ONE
    assert [{run.network.name for run in part} for part in parts] == [
        {"fovavg", "fovmax"},
        {"fovconc"},
        {"fovavg"},
    ]
    assert [len(part) for part in parts] == [6, 3, 3]
    assert [len(part) for part in reproduce.groups(runs, 4)] == [4, 2, 3, 3]


def test_runs_that_learn_the_same_count_as_one_in_a_group() -> None:
    shifted = replace(OTHER, network=replace(OTHER.network, shifts=1))
    runs = [seeded(run, seed) for run in (OTHER, shifted) for seed in range(3)]
    parts = reproduce.groups(runs, 2)
    assert [[(run.training.seed, run.network.shifts) for run in part] for part in parts] == [
        [(0, 0), (0, 1), (1, 0), (1, 1)],
        [(2, 0), (2, 1)],
    ]


def test_every_run_of_every_experiment_is_in_one_group() -> None:
    runs = list(dict.fromkeys(run for one in PAPER for run in one.runs()))
    assert sorted(run.name for part in reproduce.groups(runs) for run in part) == sorted(
        run.name for run in runs
    )
