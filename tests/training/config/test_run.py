import math

import pytest
from helpers.any_run import configs
from hypothesis import given, settings

from scalechannels.training.build import require_network
from scalechannels.training.config import (
    DataConfig,
    NetworkConfig,
    ResolvedRun,
    RunConfig,
    TrainingConfig,
)
from scalechannels.training.config.options import changed

PAPER = {"epochs": 20, "batch": 16, "rate": 3e-3, "floor": 5e-5, "schedule": "step", "period": 2}
CIFAR = {"epochs": 103, "batch": 256, "rate": 1e-3, "floor": 5e-5, "schedule": "cosine", "period": 75}


def run(data: str = "mnist", network: str = "fovavg", **training) -> RunConfig:
    return RunConfig(DataConfig(data), NetworkConfig(network), TrainingConfig(**training))


@pytest.mark.parametrize(
    ("data", "network", "recipe", "dropout", "high"),
    [
        ("mnist", "fovavg", PAPER, 0.15, 8.0),
        ("strokes", "fovlse", PAPER, 0.15, 8.0),
        ("mnist", "cnn", PAPER, 0.15, 8.0),
        ("mnist", "swmax", {**PAPER, "rate": 3e-4}, 0.15, 8.0),
        ("cifar10", "fovavg", CIFAR, 0.0, 2.0),
    ],
)
def test_the_paper_is_the_default(data, network, recipe, dropout, high) -> None:
    resolved = run(data, network).resolve()
    assert {key: getattr(resolved.training, key) for key in recipe} == recipe
    assert resolved.network.dropout == dropout
    assert (resolved.network.low, resolved.network.high) == (0.5, high)
    assert resolved.training.precision == "float32"
    assert run(data, network).resolve("cuda").training.precision == "bfloat16"


def test_given_values_survive_resolving_and_resolving_twice_changes_nothing() -> None:
    config = RunConfig(
        DataConfig(samples=500), NetworkConfig(dropout=0.0, high=4), TrainingConfig(rate=1e-3, epochs=3)
    )
    resolved = config.resolve()
    assert (resolved.data.samples, resolved.network.dropout, resolved.network.high) == (500, 0.0, 4)
    assert (resolved.training.rate, resolved.training.epochs) == (1e-3, 3)
    assert resolved.resolve("cuda") == resolved  # its precision is part of it by now


@settings(max_examples=60, deadline=None)
@given(one=configs, other=configs)
def test_different_runs_have_different_names(one, other) -> None:
    assert (one == other) == (one.name == other.name)


def test_every_field_is_in_the_name() -> None:
    base = run().resolve()
    changes = [
        {"data": {"samples": 100}}, {"data": {"seed": 1}}, {"data": {"sizes": [2.0]}},
        {"network": {"name": "fovmax"}}, {"network": {"low": 1.0}}, {"network": {"high": 4.0}},
        {"network": {"ratio": 2**0.5}}, {"network": {"antialias": True}}, {"network": {"blur": 1.0}},
        {"network": {"dropout": 0.1}}, {"training": {"epochs": 1}}, {"training": {"batch": 1}},
        {"training": {"rate": 1e-3}}, {"training": {"floor": 0.0}}, {"training": {"schedule": "cosine"}},
        {"training": {"period": 1}}, {"training": {"seed": 1}}, {"training": {"precision": "bfloat16"}},
    ]  # fmt: skip
    names = {base.name}
    for change in changes:
        values = base.as_dict()
        for section, fields in change.items():
            values[section] = {**values[section], **fields}
        names.add(RunConfig.from_dict(values).name)
    assert len(names) == len(changes) + 1


def test_a_name_is_readable_and_stays() -> None:
    name = RunConfig(DataConfig("mnist", (1.0, 4.0)), NetworkConfig("fovmax"), TrainingConfig(seed=3)).name
    assert name.startswith("fovmax-mnist-tr1-4-seed3-")
    # Folders of earlier versions must be found again: a change here makes all runs start anew.
    assert run().resolve("cuda").name == "fovavg-mnist-tr1-seed0-8a180ec5"


def test_two_and_two_point_zero_are_one_size(tmp_path) -> None:
    whole = RunConfig(DataConfig(sizes=(2,)), NetworkConfig(low=1, high=4, ratio=2))
    exact = RunConfig(DataConfig(sizes=(2.0,)), NetworkConfig(low=1.0, high=4.0, ratio=2.0))
    assert whole == exact
    assert whole.name == exact.name
    path = tmp_path / "config.toml"
    path.write_text("[data]\nsizes = [2]\n[network]\nlow = 1\nhigh = 4\nratio = 2\n")
    assert RunConfig.from_toml(path) == exact
    assert RunConfig.from_toml(path).name == exact.name


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (
            lambda: DataConfig("mnits"),
            "strokes, mnist, fashion, mnist-scale, cifar10, emoji, folder; got 'mnits'",
        ),
        (lambda: DataConfig(sizes=()), "must be one size or more; got none"),
        (lambda: DataConfig(sizes=(1.0, 4.0, 2.0)), "must go from low to high"),
        (lambda: DataConfig(sizes=(-1.0,)), "data.sizes must be a positive number"),
        (lambda: DataConfig(sizes=(math.inf,)), "data.sizes must be a positive number"),
        (lambda: DataConfig(sizes=(math.nan,)), "data.sizes must be a positive number"),
        (lambda: DataConfig(sizes=(4.0, 1.0)), "from low to high"),
        (lambda: DataConfig(samples=5), "at least 10"),
        (
            lambda: DataConfig("mnist", (1.0, 2.0), samples=20, redraw=True),
            r"data\.redraw cannot be combined with data\.samples for mnist",
        ),
        (
            lambda: NetworkConfig(batch_norm="joint"),
            r"network\.batch_norm works only with swmax, and joint with",
        ),
        (
            lambda: NetworkConfig("swmax", batch_norm="joint", pretrained=1.0),
            r"network\.batch_norm cannot be combined with network\.pretrained",
        ),
        (lambda: DataConfig(seed=-1), r"data\.seed"),
        (lambda: DataConfig("cifar10", (1.0, 4.0)), "sizes from 0.5 to 2; got"),
        (lambda: DataConfig("cifar10", samples=100), "all of its images"),
        (lambda: DataConfig("mnist", hold_out=True), "hold_out works only with cifar10 and emoji; mnist has"),
        (lambda: require_network(NetworkConfig("resnet")), "fovavg, .*got 'resnet'"),
        (lambda: NetworkConfig(dropout=1.0), r"at least 0 and below 1; got 1\.0"),
        (lambda: NetworkConfig(low=0), r"network\.low must be a positive"),
        (lambda: NetworkConfig(ratio=1), r"network\.ratio must be above 1"),
        (lambda: NetworkConfig(blur=0), r"network\.blur must be a positive"),
        (
            lambda: RunConfig(network=NetworkConfig("cnn", antialias=True)).resolve(),
            "only with foveated networks; got cnn",
        ),
        (lambda: TrainingConfig(epochs=0), r"training\.epochs must be at least 1"),
        (lambda: TrainingConfig(batch=-16), r"training\.batch must be at least 1"),
        (lambda: TrainingConfig(rate=math.nan), r"training\.rate must be a positive"),
        (lambda: TrainingConfig(rate=1e-5), r"rate must be at least training\.floor, 5e-05; got 1e-05"),
        (lambda: TrainingConfig(seed=2**30), r"training\.seed"),
        (lambda: TrainingConfig(schedule="linear"), "step, cosine; got 'linear'"),
        (lambda: TrainingConfig(precision="float16"), "float32, bfloat16; got 'float16'"),
        (lambda: TrainingConfig(crops=-1), r"training\.crops must be zero or more"),
        (lambda: NetworkConfig(backbone="resnet"), "paper, residual, efficientnet-lite0; got 'resnet'"),
        (lambda: run("cifar10", "swmax").resolve(), "Choose another network"),
        (lambda: run("mnist", flips=True, jitter=1).resolve(), r"training\.jitter works only with foveated"),
        (
            lambda: RunConfig(network=NetworkConfig(backbone="residual")).resolve(),
            "only with cifar10, emoji and your own images; got strokes",
        ),
        (lambda: RunConfig(DataConfig("cifar10"), NetworkConfig(width=2)).resolve(), r"network\.width"),
        (lambda: RunConfig(DataConfig("cifar10"), NetworkConfig(dropout=0.1)).resolve(), r"network\.dropout"),
        (lambda: RunConfig(training=TrainingConfig(decoys=4.0)).resolve(), r"training\.decoys needs"),
        (
            lambda: RunConfig(network=NetworkConfig(low=16)).resolve(),
            r"low must not exceed network\.high",
        ),
        (
            lambda: RunConfig(network=NetworkConfig(ratio=3)).resolve(),
            r"8, is not .* the ratio 3; take 4\.5 or 13\.5 as the largest",
        ),
    ],
)
def test_values_that_mean_nothing(make, says) -> None:
    with pytest.raises(ValueError, match=says):
        make()


@pytest.mark.parametrize(
    ("section", "option"),
    [
        ("network", {"name": "swmax", "width": 2}),
        ("network", {"width": 0}),
        ("network", {"margin": -1, "name": "swmax"}),
        ("network", {"margin": 4}),
        ("network", {"centred": True}),
        ("network", {"drop_features": True}),
        ("network", {"area_power": 1.0}),
        ("network", {"look": "everywhere", "area_power": -1.0}),
        ("network", {"name": "fovavg", "look": "everywhere", "area_power": 1.0}),
        ("network", {"initialisation": "zero"}),
        ("training", {"decoys": 0.5}),
        ("training", {"smoothing": 1.0}),
        ("training", {"average": -0.1}),
    ],
)
def test_an_option_that_cannot_have_an_effect_is_refused(section, option) -> None:
    with pytest.raises(ValueError, match=rf"{section}\."):
        {"network": NetworkConfig, "training": TrainingConfig}[section](**option)


@pytest.mark.parametrize("name", ["fovlse", "cnn"])
def test_what_is_for_cifar_alone(name) -> None:
    network = NetworkConfig(name, backbone="residual", width=2)
    training = TrainingConfig(flips=True, crops=4, visible=0.5)
    plain = RunConfig(DataConfig("cifar10"), NetworkConfig(name))
    every = RunConfig(DataConfig("cifar10"), network, training).resolve()
    assert every.name != plain.name
    assert changed(every)["network"]["backbone"] == "residual"
    assert "flips" not in changed(plain).get("training", {})


def test_runs_of_earlier_versions_keep_their_names() -> None:
    """They wrote what is a default by now: no margin where there is no sliding window, PyTorch's weights."""
    written = {"margin": 0, "drop_features": False, "initialisation": "torch"}
    for name in ("fovlse", "cnn"):
        assert NetworkConfig(name, **written) == NetworkConfig(name)
    assert NetworkConfig("swmax", **written) != NetworkConfig("swmax")
    assert NetworkConfig("fovconc", initialisation="torch") != NetworkConfig("fovconc")


def test_averages_are_corrected_but_in_runs_of_earlier_versions() -> None:
    new, plain = run(average=0.9).resolve(), run(average=0.9, average_corrected=False).resolve()
    assert new.training.average_corrected
    assert not run().resolve().training.average_corrected  # nothing is averaged
    written = plain.as_dict()
    del written["training"]["average_corrected"]
    assert ResolvedRun.from_dict(written) == plain
    # The name that the run had before there was a choice.
    assert plain.name == "fovavg-mnist-tr1-seed0-091a8a36"
    assert new.name != plain.name
    assert new.shape == plain.shape  # they train as one
    with pytest.raises(ValueError, match=r"average_corrected needs training\.average"):
        run(average_corrected=True)


def test_class_weights_name_a_run_only_where_they_are_used() -> None:
    plain, said, balanced = (
        run(average=0.9, average_corrected=False, class_weights=weights).resolve()
        for weights in (None, "none", "balanced")
    )
    assert plain.name == said.name == "fovavg-mnist-tr1-seed0-091a8a36" != balanced.name
    assert balanced.shape == plain.shape  # they train as one
    written = plain.as_dict()
    del written["training"]["class_weights"]
    assert ResolvedRun.from_dict(written) == plain  # a run of an earlier version
    with pytest.raises(
        ValueError, match=r"training\.class_weights must be one of none, balanced; got 'rare'"
    ):
        run(class_weights="rare")


def test_every_network_loses_detail_on_any_data() -> None:
    for data in ("strokes", "mnist", "cifar10"):
        for name in ("fovavg", "fovmax", "fovlse", "fovconc"):
            whole, less = run(data, name).resolve(), run(data, name, detail=0.5).resolve()
            assert less.training.detail == 0.5
            assert whole.name == run(data, name, detail=1).resolve().name != less.name
            assert whole.shape == less.shape  # they train as one
        for name in ("cnn",) if data == "cifar10" else ("cnn", "swmax"):
            assert run(data, name, detail=0.5).resolve().training.detail == 0.5
    for detail in (0.0, 1.1, math.nan):
        with pytest.raises(ValueError, match=r"training\.detail"):
            TrainingConfig(detail=detail)
