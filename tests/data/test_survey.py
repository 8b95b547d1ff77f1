"""What a survey sees in folders whose images are known."""

from pathlib import Path

import pytest
import torch
from helpers.on_ground import square
from helpers.pictures import save
from PIL import Image

from scalechannels.data.folder import image_folder
from scalechannels.data.standing_out import standing_out
from scalechannels.data.survey import survey


def folder(root: Path, images: dict[str, list[torch.Tensor]]) -> Path:
    for place, made in images.items():
        for index, image in enumerate(made):
            pixels = (image[0] * 255).byte().numpy()
            save(root / place / f"{index}.png", Image.fromarray(pixels))
    return root


def test_frames_crops_balance_and_mixed_sizes(tmp_path: Path) -> None:
    frames = [square(12, 60, 20 + k, 24) for k in range(4)]
    seen = survey(image_folder(folder(tmp_path / "frames", {"a": frames * 3, "b": frames[:3]})))
    assert (seen.images, seen.grey, seen.classes) == ("frames", True, {"a": 12, "b": 3})
    assert seen.object_size == pytest.approx(12, abs=1.5)
    said = "\n".join(seen.lines())
    assert "2 classes: a 12, b 3" in said
    assert "objects of about 12 pixels, 20 % of the longer side: frames" in said
    assert "note: 12 images of a, but 3 of b: accuracies below are balanced" in said
    assert "note: 11 files are copies of others" in said
    assert "note: 3 files" not in said
    assert "note: 15 files have copies in another class" not in said

    crops = [square(side - 4, side, 2, 2) for side in (20, 24, 30, 40)]
    seen = survey(image_folder(folder(tmp_path / "crops", {"a": crops, "b": [1 - one for one in crops]})))
    assert (seen.images, seen.object_size, seen.balanced) == ("crops", 27, True)
    said = "\n".join(seen.lines())
    assert "20 to 40 pixels, median 27" in said
    assert "note: crop sizes differ" in said
    assert "copies" not in said


def test_large_images_are_measured_small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two hundred photographs of twelve million pixels, the survey took minutes."""
    images = [square(300, (1100, 1400), 400, 500 + place) for place in range(3)]
    root = folder(tmp_path, {"a": images[:2], "b": images[2:]})
    shapes, told = [], []

    def seen_as(image: torch.Tensor) -> object:
        shapes.append(tuple(image.shape))
        return standing_out(image)

    monkeypatch.setattr("scalechannels.data.survey.standing_out", seen_as)
    seen = survey(image_folder(root), watch=lambda *one: told.append(one))
    assert shapes == [(1, 550, 700)] * 3
    assert [count for _, count in told] == [3] * 3
    assert seen.object_size == pytest.approx(300, abs=6)
    assert seen.sides == (1400, 1400, 1400)


def test_parts_are_not_classes_and_what_leaks_between_them_is_told(tmp_path: Path) -> None:
    made = [square(20, 28, 4, 4) for _ in range(8)]
    root = folder(
        tmp_path,
        {
            **{f"train/{name}": made[:4] if name == "a" else made[4:] for name in "ab"},
            **{f"val/{name}": [square(20, 28, 4, 4)] for name in "ab"},
            "test/a": [made[0], square(20, 28, 4, 4)],
            "test/b": [square(20, 28, 4, 4)],
        },
    )
    images = image_folder(root)
    assert images.classes == ("a", "b")
    seen = survey(images)
    assert seen.given == {"test": 3, "train": 8, "validation": 2}
    assert (seen.leaked, seen.copies, seen.contradicting) == (1, 1, 0)
    assert "note: 1 held-out images are copies of training images: left out" in seen.lines()
    parts = images.parts(0.2, 0.2)
    assert [len(part) for part in parts] == [8, 2, 2]
    assert all("test" in path.parts for path in parts.test.paths)
