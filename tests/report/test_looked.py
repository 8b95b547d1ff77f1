"""What the report says and shows of where a network looked."""

from pathlib import Path

import numpy as np
import pytest
import torch
from helpers.bright import looking_everywhere
from helpers.on_ground import square
from PIL import Image

from scalechannels import cnn
from scalechannels.report import looked as looking
from scalechannels.report.looked import looked
from scalechannels.training.config import DataConfig, RunConfig
from scalechannels.training.datasets import open_data

ORANGE, BLUE = (255, 149, 0), (90, 170, 255)


def spots(root: Path, reduce: int = 1, dark: int = 10) -> DataConfig:
    """Bright squares of 8 pixels, two of five at the centre of their frames; dark images are of one tone."""
    side = 8 * reduce
    for index in range(10):
        row, column = ((18, 20), (18, 20), (2, 30), (30, 3), (6, 6))[index % 5]
        bright = square(side, (44 * reduce, 48 * reduce), row * reduce, column * reduce)
        for label, image in (("bright", bright), ("dark", torch.full_like(bright, 0.02 * index))):
            if label == "bright" or index < dark:
                path = root / label / f"{index}.png"
                path.parent.mkdir(parents=True, exist_ok=True)
                Image.fromarray((image[0] * 255).byte().numpy()).save(path)
    own = DataConfig("folder", folder=str(root), object_size=float(side), reduce=reduce, images="frames")
    return RunConfig(own).resolve().data


@pytest.mark.parametrize("reduce", [1, 3])
def test_it_is_told_how_far_the_windows_are_off_what_stands_out(reduce: int, tmp_path: Path) -> None:
    """In pixels of the files; images in which nothing stands out do not count."""
    data = open_data(spots(tmp_path / "spots", reduce))
    seen = looked(looking_everywhere(), data)
    assert seen is not None
    assert (seen.everywhere, seen.scales, seen.images, seen.standing, seen.found) == (True, 2, 4, 2, 2)
    assert seen.distance < 2 * reduce
    assert set(seen.numbers()) == {"everywhere", "scales", "images", "standing", "found", "distance"}
    centred = looked(looking_everywhere(look="centre"), data)
    off = [
        np.hypot(*(reduce * (at - middle) for at, middle in zip(place, (21.5, 23.5), strict=True)))
        for label, place in truth(data, reduce)
        if label == "bright"
    ]
    assert (centred.everywhere, centred.standing) == (False, 2)
    assert centred.found == sum(one <= 4 * reduce for one in off)
    assert centred.distance == pytest.approx(np.median(off), abs=1.5 * reduce)


def truth(data: object, reduce: int) -> list[tuple[str, tuple[float, float]]]:
    """Of the test images, the class and where the square lies in the reduced image."""
    found = []
    for index, label in enumerate(data.kept.labels):
        bright = (data.kept[index][0][0] > 0.6).nonzero().double()
        row, column = bright.mean(0).tolist() if len(bright) else (0.0, 0.0)
        # A reduction keeps the centre.
        row, column = (
            (side - 1) / 2 + (at - (side * reduce - 1) / 2) / reduce for at, side in ((row, 44), (column, 48))
        )
        found.append((data.classes[label], (row, column)))
    return found


@pytest.mark.parametrize("side", [looking.SIDE, 24])
def test_the_window_is_drawn_and_the_answer_told(
    side: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also in a picture that is smaller than the image, here by a factor of 2."""
    monkeypatch.setattr(looking, "SIDE", side)
    data = open_data(spots(tmp_path / "spots"))
    network = looking_everywhere()
    network.usage |= {"own_scale": 2.0}
    pictures = looked(network, data).pictures
    assert len(pictures) == 4
    said = network.explain(torch.stack(data.images("test")))
    for (picture, text), label, scale, place in zip(
        pictures, data.kept.labels, said.scales.tolist(), said.places.tolist(), strict=True
    ):
        told = ("bright: right", "dark: taken for bright")[label]
        assert text == f"{told}, size {scale / 2:.2g}"
        pixels = (picture * 255).round().int()
        framed = torch.zeros(pixels.shape[1:], dtype=torch.bool)
        for colour in (ORANGE, BLUE):
            framed |= (pixels == torch.tensor(colour)[:, None, None]).all(0)
        zoom = picture.shape[2] / 48
        first, last = ([(at + end * 7 * scale / 2 + 0.5) * zoom for at in place] for end in (-1, 1))
        inner = [
            slice(round(max(low, 0)) + 2, round(high) - 2) for low, high in zip(first, last, strict=True)
        ]
        if first[0] > 1:
            top = framed[round(first[0]) - 1 : round(first[0]) + 2, inner[1]]
            assert top.any(0).all()
        if first[1] > 1:
            left = framed[inner[0], round(first[1]) - 1 : round(first[1]) + 2]
            assert left.any(1).all()


def test_a_network_without_channels_has_no_windows(tmp_path: Path) -> None:
    assert looked(cnn(classes=2), open_data(spots(tmp_path / "spots"))) is None
