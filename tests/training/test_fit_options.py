"""Options of training: each does what it says, and runs that differ in them are trained as one."""

import dataclasses

import pytest
import torch
from helpers.tiny_runs import SIZES, tiny, trained, weights

import scalechannels
from scalechannels.training import datasets, group, inputs
from scalechannels.training.fit import fit
from scalechannels.training.trainer import Trainer


def test_runs_of_other_samples_and_options_are_trained_as_one(tmp_path, double) -> None:
    configs = [
        tiny(samples=100, dropout=0, images=60),
        tiny("fovmax", samples=40, dropout=0, images=60, smoothing=0.1),
        tiny("fovlse", samples=100, dropout=0, images=60, average=0.5, network={"antialias": True}),
    ]
    together = fit(configs, tmp_path / "together", device="cpu", sizes=SIZES, together=True)
    for config, run in zip(configs, together, strict=True):
        assert run.result()["seconds"]["runs_together"] == 3
        alone = trained(config, tmp_path / "alone")
        for name, value in weights(alone).items():
            if not name.endswith("num_batches_tracked"):
                torch.testing.assert_close(weights(run)[name], value, rtol=1e-6, atol=1e-6)


def test_cut_images_change_what_is_learnt(tmp_path) -> None:
    plain, cut = (weights(trained(tiny("fovlse", visible=share), tmp_path)) for share in (1.0, 0.3))
    assert any(not torch.equal(plain[name], cut[name]) for name in plain)
    both = fit([tiny("fovlse"), tiny("fovlse", visible=0.3)], tmp_path / "two", device="cpu", together=True)
    assert both[0].result()["seconds"]["runs_together"] == 2
    with pytest.raises(ValueError, match=r"training\.visible is for foveated networks, not cnn"):
        tiny("cnn", visible=0.5).resolve()


def test_initialisations_differ_and_have_their_spread() -> None:
    def first(how: str) -> torch.nn.Module:
        network = group.build_network(tiny("fovlse", network={"initialisation": how}).resolve())
        return network.backbone.dense.requires_grad_(False)

    inputs, outputs = 512, 100
    assert float(first("he").weight.std()) == pytest.approx((2 / inputs) ** 0.5, rel=0.02)
    glorot = (6 / (inputs + outputs)) ** 0.5
    assert float(first("glorot").weight.abs().max()) == pytest.approx(glorot, rel=0.02)
    assert float(first("torch").weight.abs().max()) == pytest.approx(inputs**-0.5, rel=0.02)
    assert not first("he").bias.any()
    assert not first("glorot").bias.any()


def test_sizes_are_drawn_anew_in_every_epoch(tmp_path, monkeypatch) -> None:
    config = tiny("cnn", samples=40)
    config = dataclasses.replace(config, data=dataclasses.replace(config.data, sizes=(1.0, 2.0), redraw=True))
    seen, train = [], Trainer.epoch

    def epoch(self, order, rate, *report):
        seen.append(self.inputs.clone())
        return train(self, order, rate, *report)

    monkeypatch.setattr(Trainer, "epoch", epoch)
    trained(config, tmp_path)
    assert len(seen) == 2
    assert not torch.equal(*seen)
    fresh = datasets.open_data(config.data).training(draw=1)
    torch.testing.assert_close(seen[1].flatten(), fresh.images.flatten())
    again = datasets.open_data(config.data).training(draw=0)
    torch.testing.assert_close(seen[0].flatten(), again.images.flatten())
    assert torch.equal(fresh.labels, again.labels)
    with pytest.raises(MemoryError, match=r"data\.redraw is for images that lie in memory"):
        trained(config, tmp_path / "streamed", stream=True)
    with pytest.raises(ValueError, match=r"data\.redraw draws sizes"):
        dataclasses.replace(config.data, sizes=(1.0,))


@pytest.mark.parametrize("together", [True, False])
def test_windows_that_are_drawn_anew_take_the_place_of_the_first(together, tmp_path, monkeypatch) -> None:
    """Even where less memory is free by then than all of them need: it is theirs that is taken."""
    config = tiny("fovlse", samples=40)
    config = dataclasses.replace(config, data=dataclasses.replace(config.data, sizes=(1.0, 2.0), redraw=True))
    seen, train = [], Trainer.epoch

    def epoch(self, order, rate, *report):
        seen.append(self.inputs.clone())
        monkeypatch.setattr(inputs, "free_memory", lambda device: 0)
        return train(self, order, rate, *report)

    monkeypatch.setattr(Trainer, "epoch", epoch)
    run = trained(config, tmp_path, together=together)
    fresh = datasets.open_data(config.data).training(draw=1)
    windows = scalechannels.load(run.folder).foveate(fresh.images)  # (N, S, 1, n, n)
    assert len(seen) == 2
    torch.testing.assert_close(seen[1].flatten(), windows.flatten())


def test_a_cnn_is_tested_as_an_average_over_scales(tmp_path) -> None:
    plain, averaged = (
        trained(tiny("cnn", samples=40, network={"average_scales": on}), tmp_path) for on in (False, True)
    )
    network = scalechannels.load(averaged.folder)
    assert isinstance(network.pool, scalechannels.MeanProbabilityOverScales)
    assert len(network.grid) == 3
    images = torch.rand(2, 1, 112, 112)
    cnn = scalechannels.load(plain.folder)
    expected = scalechannels.averaged_over_scales(cnn, network.grid, 1.0)
    torch.testing.assert_close(network.eval()(images), expected.eval()(images))
    config = tiny("cnn", network={"average_scales": True})
    config = dataclasses.replace(config, data=dataclasses.replace(config.data, sizes=(1.0, 2.0)))
    with pytest.raises(ValueError, match="digits of one size"):
        config.resolve()
