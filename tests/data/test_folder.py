"""A folder of images: classes and splits are right, and every bad file is named."""

import warnings
from pathlib import Path

import numpy as np
import pytest
import torch
from helpers.pictures import deep_png, save
from PIL import Image

from scalechannels.commands.predict import image_paths
from scalechannels.data.folder import CorruptImagesError, image_folder
from scalechannels.data.image_files import suffixes
from scalechannels.data.pictures import CutColoursWarning, UnreadableImageError, read_image


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    """Two classes, three formats, sizes that vary."""
    for index in range(10):
        save(tmp_path / "cat" / f"{index}.png", Image.new("RGB", (20 + index, 30), (255, 0, 0)))
    for index in range(6):
        save(
            tmp_path / "dog" / "deeper" / f"{index}.webp",
            Image.new("RGB", (16, 16), (0, 0, 255)),
            lossless=True,
        )
    save(tmp_path / "dog" / "a.JPG", Image.new("RGB", (16, 16), (0, 0, 255)))
    (tmp_path / "cat" / "notes.txt").write_text("not an image")
    (tmp_path / ".hidden").mkdir()
    return tmp_path


def test_classes_paths_labels_and_pixels(photos: Path) -> None:
    images = image_folder(photos)
    assert images.classes == ("cat", "dog")
    assert len(images) == 17
    assert images.labels == (0,) * 10 + (1,) * 7
    assert list(images.paths) == sorted(images.paths)
    assert not images.grey
    assert images.skipped == ()
    image, label = images[3]
    assert (image.shape, image.dtype, label) == ((3, 30, 23), torch.float32, 0)
    assert torch.equal(image.amax((1, 2)), torch.tensor([1.0, 0.0, 0.0]))


def test_split_is_stratified_disjoint_complete_and_by_seed(photos: Path) -> None:
    images = image_folder(photos)
    first, second = images.split(0.7, seed=1)
    assert [first.labels.count(k) for k in (0, 1)] == [7, 5]
    assert [second.labels.count(k) for k in (0, 1)] == [3, 2]
    assert set(first.paths).isdisjoint(second.paths)
    assert set(first.paths) | set(second.paths) == set(images.paths)
    assert images.split(0.7, seed=1) == (first, second)
    assert images.split(0.7, seed=2)[0].paths != first.paths
    for path, label in zip(first.paths, first.labels, strict=True):
        assert path.relative_to(photos).parts[0] == first.classes[label]
    assert [images.split(0.001)[0].labels.count(k) for k in (0, 1)] == [1, 1]
    assert [images.split(0.999)[1].labels.count(k) for k in (0, 1)] == [1, 1]


@pytest.mark.parametrize("fraction", [0.0, 1.0, -1.0, 2.0])
def test_split_refuses_fractions_that_leave_a_side_empty(photos: Path, fraction: float) -> None:
    with pytest.raises(ValueError, match="fraction must lie between 0 and 1"):
        image_folder(photos).split(fraction)


def test_split_names_a_class_with_one_image(tmp_path: Path) -> None:
    save(tmp_path / "a" / "1.png", Image.new("L", (4, 4)))
    save(tmp_path / "b" / "1.png", Image.new("L", (4, 4)))
    with pytest.raises(ValueError, match=r"class 'a' has 1 image; each class needs at least 2, one to train"):
        image_folder(tmp_path).split(0.5)


def test_grey_only_if_all_are_grey_or_by_choice(tmp_path: Path) -> None:
    save(tmp_path / "a" / "1.png", Image.new("L", (4, 5), 51))
    save(tmp_path / "b" / "1.tif", Image.new("I;16", (4, 5), 13107))
    images = image_folder(tmp_path)
    assert images.grey
    assert images[0][0].shape == (1, 5, 4)
    assert image_folder(tmp_path, colour="rgb")[0][0].shape == (3, 5, 4)
    save(tmp_path / "b" / "2.png", Image.new("RGB", (4, 5), (51, 51, 51)))
    assert not image_folder(tmp_path).grey
    assert image_folder(tmp_path, colour="grey")[2][0].shape == (1, 5, 4)


def test_every_kind_of_file_is_found_by_training_and_by_prediction_alike(tmp_path: Path) -> None:
    assert {".bmp", ".gif", ".png", ".jpg", ".jpeg", ".tif", ".tiff", ".webp"} <= set(suffixes())
    assert {".jp2", ".jfif", ".ppm"} <= set(suffixes())
    Image.init()
    assert (".avif" in suffixes()) == ("AVIF" in Image.SAVE)  # older ones and some builds do not have it
    for name in ("a", "b"):
        for suffix in (*suffixes(), ".BMP"):
            kind = {".pgm": "PPM", ".pbm": "PPM", ".pnm": "PPM"}.get(suffix)  # Pillow would write grey
            green = Image.new("RGB", (4, 5), (0, 255, 0))
            save(tmp_path / name / f"of{suffix[1:]}{suffix}", green, **({"format": kind} if kind else {}))
    images = image_folder(tmp_path)
    assert len(images) == 2 * (len(suffixes()) + 1)
    assert list(images.paths) == image_paths([tmp_path])
    for index in range(len(images)):
        assert torch.allclose(images[index][0].mean((1, 2)), torch.tensor([0.0, 1.0, 0.0]), atol=0.01)


def test_grey_and_clear_gif_and_bmp_are_what_a_viewer_shows(tmp_path: Path) -> None:
    for suffix in ("gif", "bmp"):
        save(tmp_path / suffix / f"grey.{suffix}", Image.new("L", (4, 4), 51))
    images = image_folder(tmp_path)
    assert images.grey
    assert torch.allclose(torch.stack([images[0][0], images[1][0]]), torch.tensor(0.2))
    clear = save(tmp_path / "clear.gif", Image.new("RGBA", (4, 4), (255, 128, 0, 0)))
    assert torch.all(read_image(clear) == 1)


def test_a_folder_names_its_files_of_deep_colours_once(tmp_path: Path) -> None:
    values = np.full((4, 4, 3), 300, dtype=np.uint16)
    for index in range(7):
        deep_png(tmp_path / "a" / f"{index}.png", values)
    save(tmp_path / "b" / "fine.png", Image.new("RGB", (4, 4)))
    with pytest.warns(CutColoursWarning) as caught:
        images = image_folder(tmp_path)
    assert len(caught) == 1
    said = str(caught[0].message)
    assert said.startswith("7 files ")
    assert "read with 8" in said
    assert "0.png" in said
    assert said.endswith("and 2 more")
    assert "fine" not in said
    assert images[0][0].shape == (3, 4, 4)  # says nothing more


def damage(photos: Path) -> list[str]:
    whole = (photos / "cat" / "0.png").read_bytes()
    (photos / "cat" / "cut.png").write_bytes(whole[: len(whole) // 2])
    (photos / "cat" / "empty.jpg").write_bytes(b"")
    (photos / "dog" / "text.tif").write_text("no image at all")
    return ["cut.png", "empty.jpg", "text.tif"]


def test_corrupt_files_are_refused_by_name(photos: Path) -> None:
    names = damage(photos)
    with pytest.raises(CorruptImagesError, match="3 files in") as caught:
        image_folder(photos)
    assert all(name in str(caught.value) for name in names)
    assert "skip_corrupt=True" in str(caught.value)


def test_corrupt_files_are_skipped_and_reported_by_choice(photos: Path) -> None:
    names = damage(photos)
    with pytest.warns(UserWarning, match="3 files in .* left out:") as caught:
        images = image_folder(photos, skip_corrupt=True)
    assert all(name in str(caught[0].message) for name in names)
    assert [path.name for path, _ in images.skipped] == names
    assert len(images) == 17


def test_decompression_bombs_are_refused(tmp_path: Path) -> None:
    save(tmp_path / "a" / "fine.png", Image.new("1", (10, 10)))
    save(tmp_path / "b" / "bomb.png", Image.new("1", (20_000, 12_000)))  # 240 megapixels in few kilobytes
    with pytest.raises(CorruptImagesError, match=r"bomb.png: it has more than 48,000,000 pixels"):
        image_folder(tmp_path)
    with pytest.raises(
        UnreadableImageError, match="it has 10 x 10 pixels, more than the limit of 99; raise --max-pixels"
    ):
        read_image(tmp_path / "a" / "fine.png", max_pixels=99)


def test_the_checksum_is_of_names_and_contents_and_not_of_the_place(photos: Path, tmp_path: Path) -> None:
    import shutil

    first = image_folder(photos).checksum()
    assert len(first) == 16
    moved = tmp_path / "elsewhere"
    shutil.copytree(photos, moved, ignore=shutil.ignore_patterns("elsewhere"))
    assert image_folder(moved).checksum() == first
    (moved / "cat" / "0.png").rename(moved / "cat" / "00.png")
    renamed = image_folder(moved).checksum()
    save(moved / "cat" / "1.png", Image.new("RGB", (21, 30), (254, 0, 0)))
    changed = image_folder(moved).checksum()
    (moved / "cat" / "2.png").unlink()
    assert len({first, renamed, changed, image_folder(moved).checksum()}) == 4


def test_sizes_are_told_and_a_list_needs_no_decoding(photos: Path) -> None:
    images = image_folder(photos)
    assert images.sizes[:2] == ((30, 20), (30, 21))
    first, _ = images.split(0.5)
    assert [images.sizes[images.paths.index(path)] for path in first.paths] == list(first.sizes)
    (photos / "cat" / "3.png").write_text("no image")
    listed = image_folder(photos, colour="rgb", decode=False)
    assert (listed.paths, listed.labels, listed.grey) == (images.paths, images.labels, False)
    with pytest.raises(ValueError, match="decode=False needs colour"):
        image_folder(photos, decode=False)


def test_folders_without_two_classes_are_refused(tmp_path: Path) -> None:
    with pytest.raises(NotADirectoryError, match="is not a folder"):
        image_folder(tmp_path / "missing")
    with pytest.raises(ValueError, match="two or more classes; it has none"):
        image_folder(tmp_path)
    save(tmp_path / "cat" / "1.png", Image.new("L", (4, 4)))
    with pytest.raises(ValueError, match="two or more classes; it has only 'cat'"):
        image_folder(tmp_path)
    (tmp_path / "dog").mkdir()
    with pytest.raises(ValueError, match=r"holds no readable images of class 'dog'; accepted are .png, "):
        image_folder(tmp_path)


def test_unknown_choices_are_refused(photos: Path) -> None:
    with pytest.raises(ValueError, match="auto, grey, rgb; got 'gray'"):
        image_folder(photos, colour="gray")  # type: ignore[arg-type]


def test_reading_a_sound_folder_warns_of_nothing(photos: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        images = image_folder(photos)
        assert [images[index][0].shape[0] for index in range(len(images))] == [3] * 17


def test_three_parts_are_disjoint_complete_stratified_and_keep_copies_together(photos: Path) -> None:
    images = image_folder(photos)  # cats of ten sizes, dogs that are copies of one another but for one
    for path in (photos / "dog" / "deeper").iterdir():
        path.unlink()
    for index in range(12):  # each twice
        save(photos / "dog" / f"{index}.png", Image.new("L", (16, 16), index // 2))
    images = image_folder(photos)
    parts = images.parts(0.2, 0.3, seed=1)
    assert [part.labels.count(0) for part in parts] == [5, 2, 3]
    assert sorted(path for part in parts for path in part.paths) == sorted(images.paths)
    for one, other in ((0, 1), (0, 2), (1, 2)):
        assert set(parts[one].contents).isdisjoint(parts[other].contents)
    assert all(set(part.labels) == {0, 1} for part in parts)
    assert images.parts(0.2, 0.3, seed=1) == parts
    assert images.parts(0.2, 0.3, seed=2).test.paths != parts.test.paths


def test_three_parts_name_a_class_with_too_few_images(tmp_path: Path) -> None:
    for name in "ab":
        for index in range(2):
            save(tmp_path / name / f"{index}.png", Image.new("L", (4, 4), index))
    with pytest.raises(ValueError, match=r"class 'a' has 2 different images to train on; .* at least 3, one"):
        image_folder(tmp_path).parts(0.2, 0.2)


def test_folders_of_parts(tmp_path: Path) -> None:
    for part in ("Train", "validation"):
        for name in ("cat", "dog"):
            for index in range(4):
                image = Image.new("L", (4, 4), 10 * index + (part == "Train") + 100 * (name == "cat"))
                save(tmp_path / part / name / f"{index}.png", image)
    images = image_folder(tmp_path)
    assert images.classes == ("cat", "dog")
    parts = images.parts(0.25, 0.25)
    assert [len(part) for part in parts] == [6, 8, 2]  # the test part is taken from those to train on
    assert all("validation" in path.parts for path in parts.validation.paths)
    save(tmp_path / "val" / "cat" / "0.png", Image.new("L", (4, 4)))
    with pytest.raises(
        ValueError, match="has a part of the data twice, in the folders Train, val, validation"
    ):
        image_folder(tmp_path)
    (tmp_path / "val").rename(tmp_path / "test")
    save(tmp_path / "test" / "bird" / "0.png", Image.new("L", (4, 4)))
    with pytest.raises(ValueError, match=r"test/bird' is a class that no folder has to train on"):
        image_folder(tmp_path)


@pytest.mark.parametrize(
    ("others", "wrong"),
    [(["test"], "test"), (["Test", "val"], "Test"), (["val/cat", "val/dog", "unlabelled"], "unlabelled")],
)
def test_images_without_classes_beside_parts_are_no_class(
    tmp_path: Path, others: list[str], wrong: str
) -> None:
    """As competitions have it: what is to be submitted lies beside the labelled images."""
    for place in ("train/cat", "train/dog", *others):
        for index in range(3):
            save(tmp_path / place / f"{index}.png", Image.new("L", (4, 4), index))
    with pytest.raises(
        ValueError, match=rf"into parts \('train'.*\), but '{wrong}' is none with a subfolder"
    ):
        image_folder(tmp_path)
    assert image_folder(tmp_path / "train").classes == ("cat", "dog")


def test_parts_inside_the_classes_are_not_mixed(tmp_path: Path) -> None:
    for place in ("cat/train", "cat/test", "dog/train", "dog/test"):
        save(tmp_path / place / "0.png", Image.new("L", (4, 4)))
    with pytest.raises(ValueError, match=r"inside the classes, such as 'cat/train': .* 'train/cat'"):
        image_folder(tmp_path)


def test_a_class_may_be_called_train_and_have_subfolders(tmp_path: Path) -> None:
    for place in ("bus", "train/steam", "train/electric"):
        save(tmp_path / place / "0.png", Image.new("L", (4, 4)))
    assert image_folder(tmp_path).classes == ("bus", "train")


def test_a_class_may_be_called_test(tmp_path: Path) -> None:
    for name in ("test", "train"):
        for index in range(3):
            save(tmp_path / name / f"{index}.png", Image.new("L", (4, 4), index))
    assert image_folder(tmp_path).classes == ("test", "train")
