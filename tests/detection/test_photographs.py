"""What a digit detector learns from pictures without digits: backgrounds, windows, and its own mistakes."""

from pathlib import Path

import pytest
import torch
from PIL import Image

from scalechannels import ScaleChannelNetwork
from scalechannels.data.pictures import BACKGROUND
from scalechannels.data.scenes import BRIGHTEST, INK
from scalechannels.detection import learning, training
from scalechannels.detection.photographs import LOOKED, Photographs, stretched
from scalechannels.detection.training import GRID, digits_of_one_size, train
from scalechannels.detection.training_windows import SIDE


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.fixture
def photographs() -> Photographs:
    return Photographs([torch.randint(256, (LOOKED, LOOKED + 9), generator=seeded(), dtype=torch.uint8)])


def test_parts_have_all_values_and_backgrounds_are_darker_than_ink(photographs: Photographs) -> None:
    parts = torch.stack([photographs.part(64, seeded(seed)) for seed in range(20)])
    assert parts.shape == (20, 64, 64)
    assert 0 <= parts.min() < 0.05
    assert 0.95 < parts.max() <= 1
    behind = photographs.behind(12, seeded())
    assert behind.shape == (12, SIDE, SIDE)
    assert behind.min() >= BACKGROUND - 1e-6
    assert 0 < behind.max() <= BRIGHTEST + 1e-6


def test_mistakes_are_remembered_as_the_network_saw_them(
    photographs: Photographs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("scalechannels.detection.photographs.AT_ONCE", 2)
    network = ScaleChannelNetwork.from_pretrained("digit-detector")
    scales = (GRID.minimum, GRID.maximum)
    before = photographs.windows(scales, seeded())
    assert before.shape[1:] == (1, 28, 28)
    assert before.min() >= BACKGROUND - 1e-6
    assert before.max() <= INK + 1e-6
    found = photographs.mine(network, 10, seeded())
    assert found == len(photographs.mined) > 0
    assert len(photographs.windows(scales, seeded())) == 2 * len(before)
    with torch.no_grad():  # the first half are the very windows in which it sees an object
        logits = network.backbone(photographs.mined.float())
    odds = logits[:, :10].logsumexp(1) - logits[:, 10]
    assert (odds > torch.tensor(0.1).logit() - 0.05).float().mean() >= 0.5


def test_a_training_with_photographs_resumes(
    photographs: Photographs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A killed training ends as one that was not, with what was mined before."""
    digits = digits_of_one_size("strokes", count=20)
    monkeypatch.setattr("scalechannels.detection.photographs.AT_ONCE", 1)
    monkeypatch.setattr(training, "MINING", 2)
    monkeypatch.setattr(learning, "KEPT", 1)
    start = ScaleChannelNetwork.from_pretrained("digit-detector")
    whole = train("detector", digits, photographs=Photographs(photographs.pictures), start=start, steps=6)
    asked = []

    def killed(*given: object) -> int:
        asked.append(given)
        if len(asked) == 3:
            raise KeyboardInterrupt
        return Photographs.mine(photographs, *given)  # type: ignore[arg-type]

    monkeypatch.setattr(photographs, "mine", killed)
    state = tmp_path / "state.pt"
    with pytest.raises(KeyboardInterrupt):
        train("detector", digits, photographs=photographs, start=start, state=state, steps=6)
    again = Photographs(photographs.pictures)
    resumed = train("detector", digits, photographs=again, start=start, state=state, steps=6)
    assert len(again.mined) > 0
    for name, value in whole.state_dict().items():
        assert torch.equal(value, resumed.state_dict()[name]), name


def test_a_folder_is_read_at_full_contrast_and_small_images_are_left_out(tmp_path: Path) -> None:
    grey = (60 + torch.arange(LOOKED)[:, None].expand(LOOKED, LOOKED) * 100 // LOOKED).byte()
    Image.fromarray(grey.numpy()).save(tmp_path / "large.png")
    Image.fromarray(grey[:100].numpy()).save(tmp_path / "small.png")
    (picture,) = Photographs.of(tmp_path).pictures
    assert picture.aminmax() == (0, 255)
    (tmp_path / "large.png").unlink()
    with pytest.raises(ValueError, match="need 512 pixels along each side, and one at least is needed"):
        Photographs.of(tmp_path)


def test_one_grey_stays_dark() -> None:
    assert torch.equal(stretched(torch.full((2, 2), 0.4)), torch.zeros(2, 2))
