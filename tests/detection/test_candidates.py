"""Candidates for the shipped detector: their batches, the choice between them, the network that is kept."""

from pathlib import Path
from typing import Any

import pytest
import torch

from benchmarks import candidates_training, detection_candidates
from benchmarks.candidates_data import jpeg, of_jpeg, squeezed, unsqueezed
from benchmarks.candidates_training import LOOKED, Candidate, Learning, Store
from scalechannels import ScaleChannelNetwork
from scalechannels.backbones.paper import ConvBackbone
from scalechannels.detection.training import CLASSES, EACH, GRID
from scalechannels.pooling import MaxOverScales


def learning(**options: Any) -> Learning:
    """Twelve ramps as digits, the last two printed; photographs of one bright grey, textures black."""
    cover = torch.arange(28 * 28).view(1, 28, 28).expand(12, -1, -1) % 200
    bright = torch.full((1100, 1300), 200, dtype=torch.uint8)
    made_up = torch.zeros(2, LOOKED, LOOKED, dtype=torch.uint8)
    store = Store(cover.byte(), torch.arange(12) % 10, 2, [bright], made_up)
    network = ScaleChannelNetwork(ConvBackbone(classes=CLASSES + 1), GRID, MaxOverScales())
    return Learning(store, Candidate(canvases=8, printed=6, **options), network, 0, 16)


def test_a_batch_has_windows_of_digits_and_of_photographs() -> None:
    one = learning()
    assert len(one.whole.labels) == 16  # printed ones are there three times
    generator = torch.Generator().manual_seed(0)
    batch = one.batch(0, generator)
    quiet = 2 * 24
    assert batch.images.shape == (8 * EACH + quiet, 1, 28, 28)
    assert torch.allclose(batch.targets.sum(1), torch.ones(len(batch.targets)))
    assert (batch.targets[-quiet:, CLASSES] == 1).all()
    assert (batch.targets[:-quiet, :CLASSES].sum(1) > 0.5).float().mean() > 0.2
    # Mistakes are shown beside windows anywhere.
    one.mined = torch.full((3, 1, 28, 28), 0.125, dtype=torch.float16)
    assert (one.batch(1, generator).images[-quiet:] == 0.125).all()


def test_digits_are_turned_and_keep_their_ink() -> None:
    still, turned = learning(), learning(degrees=10.0, stretch=0.1)
    generator = torch.Generator().manual_seed(0)
    for one in (still, turned):
        one.whole.cover.zero_()[:, 8:20, 12:16] = 1
        one.shown.cover.copy_(one.whole.cover)
        one.batch(0, generator)
    assert torch.equal(still.shown.cover, still.whole.cover)
    assert not torch.allclose(turned.shown.cover, turned.whole.cover, atol=0.1)
    ink = turned.shown.cover.sum((1, 2))
    assert torch.allclose(ink, torch.full_like(ink, 48.0), rtol=0.06)


def test_smoothing_keeps_the_mean_and_lowers_contrast() -> None:
    one, generator = learning(smoothing=0.2), torch.Generator().manual_seed(0)
    windows = 1 + torch.randn(64, 1, 28, 28, generator=generator)
    soft = one.smoothed(windows, generator)
    assert torch.allclose(soft.mean((1, 2, 3)), windows.mean((1, 2, 3)), atol=0.05)
    changed = soft.std((1, 2, 3)) < 0.95 * windows.std((1, 2, 3))
    assert 0.5 < changed.float().mean() < 0.95  # three of four


@pytest.mark.filterwarnings("ignore:.* places may hold an object")
def test_mistakes_are_looked_for_and_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(candidates_training, "ACROSS", 1)
    monkeypatch.setattr(candidates_training, "DOWN", 1)
    monkeypatch.setattr(candidates_training, "REMEMBERED", 30)
    one, generator = learning(), torch.Generator().manual_seed(0)
    torch.nn.init.zeros_(one.network.backbone.classifier.weight)
    torch.nn.init.zeros_(one.network.backbone.classifier.bias)  # digits are as likely as none, everywhere
    assert one.mine(generator) == 960
    assert one.mined.shape == (30, 1, 28, 28)
    assert one.network.training
    assert one.mined.float().std((1, 2, 3)).amax() < 1e-3  # the pictures are of one grey


def line(name: str, seed: int, plain: float, noisy: float, alarms: float) -> dict[str, Any]:
    scores = {"plain": {"average_precision": plain}, "noisy": {"average_precision": noisy}}
    return {"candidate": name, "seed": seed, **scores, "alarms": {"each": alarms}}


def test_the_best_candidate_is_quiet_and_is_not_the_shipped_one() -> None:
    lines = [
        line("longer", 0, 0.97, 0.98, 0.01),
        line("turned", 0, 0.99, 0.98, 0.02),
        line("loud", 0, 1.0, 1.0, 0.2),
        line("longer", 1, 1.0, 1.0, 0.0),  # only seed 0 is compared
        line("shipped", 0, 1.0, 1.0, 0.0),
    ]
    assert detection_candidates.best(lines) == "turned"
    assert detection_candidates.best([one | {"alarms": {"each": 0.5}} for one in lines[:2]]) == "longer"


def test_kept_weights_become_the_same_network(tmp_path: Path) -> None:
    about = Candidate(features=(4, 4, 8, 8), hidden=12)
    backbone = ConvBackbone(about.features, classes=CLASSES + 1, hidden=12).eval()
    kept = {"candidate": about.told(), "seed": 0, "state": backbone.state_dict()}
    torch.save(kept, tmp_path / "weights.pt")
    detection_candidates.ship(tmp_path / "weights.pt", tmp_path / "network")
    again = ScaleChannelNetwork.from_pretrained(tmp_path / "network")
    windows = torch.randn(3, 1, 28, 28)
    assert torch.allclose(again.backbone.eval()(windows), backbone(windows), atol=1e-5)


def test_what_is_packed_comes_back() -> None:
    values = torch.randint(256, (5, 28, 28), dtype=torch.uint8)
    assert torch.equal(unsqueezed(squeezed(values)), values)
    ramp = torch.linspace(0, 1, 64).expand(48, 64)
    assert ((of_jpeg(jpeg(ramp)).float() / 255 - ramp).abs() < 0.03).all()
