"""Images brought batch by batch give what resident ones give."""

from __future__ import annotations

import pytest
import torch
from helpers.tiny_runs import SIZES, tiny, weights

from scalechannels.training import group
from scalechannels.training.fit import fit
from scalechannels.training.streaming import StreamTrainer


def test_a_stream_learns_what_resident_data_teaches(tmp_path) -> None:
    """The same order of the same images: the same weights to 1e-5, and the same evaluation."""
    resident = fit([tiny()], tmp_path / "resident", device="cpu", sizes=SIZES)[0]
    streamed = fit([tiny()], tmp_path / "streamed", device="cpu", sizes=SIZES, stream=True)[0]
    ours, theirs = weights(resident), weights(streamed)
    for name, value in ours.items():
        torch.testing.assert_close(theirs[name], value, atol=1e-5, rtol=1e-5)
    accuracies = [
        [size["accuracy"] for size in run.result()["evaluation"]["sizes"]] for run in (resident, streamed)
    ]
    assert accuracies[0] == pytest.approx(accuracies[1], abs=0.2)


def test_images_that_do_not_fit_on_the_device_are_streamed(tmp_path, monkeypatch) -> None:
    """Out of memory while the data is made is no end for a single run."""
    places = []
    original = group.open_data

    def full(data, place, *others):
        places.append(str(place))
        if len(places) == 1:
            raise torch.OutOfMemoryError("full")
        return original(data, place, *others)

    monkeypatch.setattr(group, "open_data", full)
    used = []
    step = StreamTrainer.epoch
    monkeypatch.setattr(StreamTrainer, "epoch", lambda self, *args: used.append(1) or step(self, *args))
    assert fit([tiny()], tmp_path, device="cpu", sizes=SIZES)[0].done
    assert places == ["cpu", "cpu"]
    assert used


def test_an_epoch_of_a_stream_ends_at_a_loss_that_is_no_number(tmp_path, monkeypatch) -> None:
    original = group.Group._streamed

    def spoilt(self, sets):
        sets[0].images[0] = float("nan")
        return original(self, sets)

    monkeypatch.setattr(group.Group, "_streamed", spoilt)
    with pytest.raises(FloatingPointError, match=r"step \d+ of \d+"):
        fit([tiny()], tmp_path, device="cpu", sizes=SIZES, stream=True)
