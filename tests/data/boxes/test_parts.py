"""Which labelled images are kept for the test: a quarter of each kind, and no class loses its last one."""

from collections import Counter
from pathlib import Path

import pytest
import torch
from PIL import Image

from scalechannels.data.boxes.labelled import BoxedImages, LabelledImage, LabelsError, SkippedLabelsWarning
from scalechannels.data.boxes.parts import new_ones, parts, without_objects

CLASSES = ["cat", "dog", "rare"]
NONE = torch.zeros(0, 4, dtype=torch.float64)


def image(name: str, *labels: int) -> LabelledImage:
    boxes = torch.tensor([[0.0, 0, 9, 9]] * len(labels), dtype=torch.float64).view(-1, 4)
    return LabelledImage(Path(name), 30, 40, True, boxes, torch.tensor(labels, dtype=torch.int64), NONE)


def boxed(shown: int, empty: int) -> BoxedImages:
    images = [image(f"{number}", number % 2) for number in range(shown)]
    return BoxedImages(Path("boxes.csv"), CLASSES, [*images, *(image(f"e{n}") for n in range(empty))])


@pytest.mark.parametrize(
    ("shown", "empty", "more", "held", "quiet"),
    [(3, 0, 0, 0, 0), (4, 3, 0, 1, 0), (4, 2, 2, 1, 1), (12, 8, 0, 3, 2), (4, 0, 10, 1, 2)],
)
def test_a_quarter_of_each_kind_is_kept(shown: int, empty: int, more: int, held: int, quiet: int) -> None:
    others = [image(f"n{number}") for number in range(more)]
    for seed in range(3):
        divided = parts(boxed(shown, empty), others, seed)
        assert [len(divided.held), len(divided.quiet)] == [held, quiet]
        assert all(len(one.labels) for one in divided.held)
        assert not any(len(one.labels) for one in divided.quiet)
        names = [one.path.name for one in (*divided.learnt.images, *divided.held, *divided.quiet)]
        assert Counter(names) == Counter(one.path.name for one in (*boxed(shown, empty).images, *others))
    drawn = {parts(boxed(12, 8), others, seed).held[0].path.name for seed in range(9)}
    assert len(drawn) > 2


@pytest.mark.parametrize("seed", range(8))
def test_the_last_image_of_a_class_is_learnt_from(seed: int) -> None:
    some = boxed(7, 0)
    with_rare = some.only([*some.images, image("only rare", 2, 0)])
    divided = parts(with_rare, [], seed)
    assert len(divided.held) == 2
    assert min(divided.learnt.counts()) >= 1
    # Where every image is the last one of some class, none can be kept.
    alone = some.only([image("a", 0), image("b", 1), image("c", 2), image("d", 2)])
    assert {one.path.name for one in parts(alone, [], seed).held} < {"c", "d"}


def test_classes_without_objects_go_and_the_others_keep_their_names() -> None:
    some = BoxedImages(Path("boxes.csv"), CLASSES, [image("a", 2, 0, 2), image("b")])
    left = some.with_objects()
    assert left.classes == ["cat", "rare"]
    assert [left.classes[label] for label in left.images[0].labels.tolist()] == ["rare", "cat", "rare"]
    assert left.counts() == [1, 2]


def test_damaged_negatives_are_named_or_left_out(tmp_path: Path) -> None:
    Image.new("RGB", (40, 30)).save(tmp_path / "a.png")
    (tmp_path / "b.png").write_bytes(b"no image")
    with pytest.raises(
        LabelsError, match=r"b.png', of --negatives, cannot be read: .*; remove it, or give --skip-c"
    ):
        without_objects(tmp_path, 10**6)
    with pytest.warns(SkippedLabelsWarning, match=r"left out: .*b.png', of --negatives"):
        (only,) = without_objects(tmp_path, 10**6, skip=True)
    assert (only.width, only.height, only.grey, len(only.boxes)) == (40, 30, False, 0)


def test_a_labelled_image_is_no_negative(tmp_path: Path) -> None:
    """Its objects would be learnt as background; one without objects would be learnt from and tested on."""
    for name, grey in (("shown", 9), ("empty", 99), ("new", 200)):
        Image.new("L", (40, 30), grey).save(tmp_path / f"{name}.png")
    shown, empty = image(f"{tmp_path}/shown.png", 0), image(f"{tmp_path}/empty.png")
    labelled = BoxedImages(Path("boxes.csv"), CLASSES, [shown, empty])
    with pytest.raises(
        LabelsError, match=r"/shown.png', of --negatives, is a copy of '.*shown.png', which has"
    ):
        new_ones(labelled, without_objects(tmp_path, 10**6))
    (tmp_path / "shown.png").rename(tmp_path / "copy.txt")
    labelled = labelled.only([image(f"{tmp_path}/copy.txt", 0), empty])
    (new,) = new_ones(labelled, without_objects(tmp_path, 10**6))
    assert new.path.name == "new.png"
