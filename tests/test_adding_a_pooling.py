"""A pooling is one class and one name in `POOLS`: nothing else has to be told of it."""

from pathlib import Path

import pytest
import torch
from helpers.command_line import run
from helpers.tiny_runs import SIZES, tiny
from torch import Tensor, nn

import scalechannels
from scalechannels.pooling import POOLS, Pooling, _of_winner, _shares
from scalechannels.training.fit import fit


class MidRangeOverScales(Pooling):
    """Half way between the channel that believes in a class most and the one that does least."""

    def forward(self, channels: Tensor) -> Tensor:
        return (channels.amax(1) + channels.amin(1)) / 2

    def contributions(self, channels: Tensor, winner: Tensor) -> Tensor:
        return _shares(_of_winner(channels, winner).abs())


@pytest.fixture(autouse=True)
def _added(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(POOLS, "fovmid", MidRangeOverScales)
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("together", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_it_is_trained_saved_loaded_evaluated_and_exported(together: bool, tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    (done,) = fit([tiny(name="fovmid")], tmp_path, device="cpu", sizes=SIZES, together=together)
    evaluated = done.result()["evaluation"]["sizes"]
    assert [entry["size"] for entry in evaluated] == list(SIZES)
    assert sum(evaluated[0]["selection"]) == pytest.approx(1)
    network = scalechannels.load(done.folder)
    assert type(network.pool) is MidRangeOverScales
    images = torch.randn(2, 1, 112, 112)
    channels = network.channel_logits(images)
    torch.testing.assert_close(network(images), (channels.amax(1) + channels.amin(1)) / 2)
    assert run("evaluate", str(done.folder), "--sizes", "1") == 0
    assert run("export", str(done.folder), "--onnx", "mid.onnx", "--size", "112", "112") == 0
    assert Path("mid.onnx").exists()


class WeightedMax(Pooling):
    """The maximum after a learnt offset for each scale: a pooling with weights."""

    of_fixed_scales = True

    def __init__(self, scales: int) -> None:
        super().__init__()
        self.offsets = nn.Parameter(torch.zeros(scales, 1))

    @classmethod
    def over(cls, scales: int, classes: int) -> "WeightedMax":
        return cls(scales)

    def forward(self, channels: Tensor) -> Tensor:
        return (channels + self.offsets).amax(1)

    def contributions(self, channels: Tensor, winner: Tensor) -> Tensor:
        return _shares(_of_winner(channels, winner).abs())

    def arguments(self) -> dict[str, int]:
        return {"scales": len(self.offsets)}


@pytest.mark.parametrize("together", [False, True])
def test_a_pooling_with_weights_has_its_own_in_every_run(together, monkeypatch, tmp_path: Path) -> None:
    monkeypatch.setitem(POOLS, "fovoff", WeightedMax)
    configs = [tiny(name="fovoff", seed=seed) for seed in (0, 1)]
    runs = fit(configs, tmp_path, device="cpu", sizes=SIZES, together=together)
    offsets = [scalechannels.load(run.folder).pool.offsets for run in runs]
    assert all(offset.abs().sum() > 0 for offset in offsets)
    assert not torch.equal(*offsets)


@pytest.mark.parametrize("option", [{"shifts": 1}, {"pretrained": 1.0}], ids=str)
@pytest.mark.parametrize("name", ["fovoff", "fovconc"])
def test_a_pooling_of_fixed_scales_cannot_pool_others(name, option, monkeypatch, tmp_path: Path) -> None:
    monkeypatch.setitem(POOLS, "fovoff", WeightedMax)
    with pytest.raises(ValueError, match=f"not for {name}, whose pooling is made for its own scales"):
        fit([tiny(name, network=option)], tmp_path / "runs", device="cpu")
    assert not (tmp_path / "runs").exists()


def test_a_name_that_no_network_has_fails_before_any_work(tmp_path: Path) -> None:
    with pytest.raises(
        ValueError, match=r"network.name must be one of fovavg, .*fovmid, swmax, cnn, .*; got 'fovmin'"
    ):
        fit([tiny(name="fovmin")], tmp_path / "runs", device="cpu")
    assert not (tmp_path / "runs").exists()
