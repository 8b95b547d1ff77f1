"""A folder of images: every kind of file is read to the right values, and every bad one is named."""

import struct
import warnings
import zlib
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from scalechannels.commands.predict import image_paths
from scalechannels.data import folder
from scalechannels.data.folder import (
    SUFFIXES,
    CorruptImagesError,
    CutColoursWarning,
    UnreadableImageError,
    image_folder,
    read_image,
)


def save(path: Path, image: Image.Image, **options: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    image.save(path, **options)
    return path


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
    with pytest.raises(ValueError, match=r"class 'a' has 1 image"):
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


def test_sixteen_bits_are_kept(tmp_path: Path) -> None:
    values = np.array([[0, 1, 300], [32768, 65534, 65535]], dtype=np.uint16)
    for name in ("deep.png", "deep.tif"):
        path = save(tmp_path / name, Image.fromarray(values))
        for image in (read_image(path, grey=True), read_image(path)):
            assert np.allclose(image.numpy() * 65535, values[None], atol=0.01)


def test_every_kind_of_file_is_found_by_training_and_by_prediction_alike(tmp_path: Path) -> None:
    assert {".bmp", ".gif", ".png", ".jpg", ".jpeg", ".tif", ".tiff", ".webp"} <= set(SUFFIXES)
    for name in ("a", "b"):
        for suffix in (*SUFFIXES, ".BMP"):
            save(tmp_path / name / f"of{suffix[1:]}{suffix}", Image.new("RGB", (4, 5), (0, 255, 0)))
    images = image_folder(tmp_path)
    assert len(images) == 2 * (len(SUFFIXES) + 1)
    assert list(images.paths) == image_paths([tmp_path])
    for index in range(len(images)):
        assert torch.allclose(images[index][0].mean((1, 2)), torch.tensor([0.0, 1.0, 0.0]), atol=0.01)


def test_of_an_animation_the_first_frame_is_read(tmp_path: Path) -> None:
    first, second = Image.new("RGB", (6, 4), (255, 0, 0)), Image.new("RGB", (6, 4), (0, 0, 255))
    for suffix, options in {"gif": {}, "webp": {"lossless": True}, "tif": {}, "png": {}}.items():
        path = save(
            tmp_path / f"moving.{suffix}", first, save_all=True, append_images=[second, first], **options
        )
        assert torch.equal(read_image(path)[:, 2, 3], torch.tensor([1.0, 0.0, 0.0])), suffix


def test_grey_and_clear_gif_and_bmp_are_what_a_viewer_shows(tmp_path: Path) -> None:
    for suffix in ("gif", "bmp"):
        save(tmp_path / suffix / f"grey.{suffix}", Image.new("L", (4, 4), 51))
    images = image_folder(tmp_path)
    assert images.grey
    assert torch.allclose(torch.stack([images[0][0], images[1][0]]), torch.tensor(0.2))
    clear = save(tmp_path / "clear.gif", Image.new("RGBA", (4, 4), (255, 128, 0, 0)))
    assert torch.all(read_image(clear) == 1)


def deep_png(path: Path, values: np.ndarray) -> Path:
    """16 bits (H, W, C) as a PNG, which Pillow cannot write."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        return (
            struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))
        )

    height, width, channels = values.shape
    header = struct.pack(">IIBBBBB", width, height, 16, {1: 0, 2: 4, 3: 2, 4: 6}[channels], 0, 0, 0)
    rows = b"".join(b"\0" + row.astype(">u2").tobytes() for row in values)
    parts = ((b"IHDR", header), (b"IDAT", zlib.compress(rows)), (b"IEND", b""))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + b"".join(chunk(*part) for part in parts))
    return path


def deep_tiff(path: Path, values: np.ndarray) -> Path:
    """16 bits (H, W, 3) as a TIFF without compression."""
    height, width, channels = values.shape
    content, at = values.astype("<u2").tobytes(), 8 + 2 + 12 * 9 + 4
    shape = ((256, width), (257, height), (258, at), (259, 1), (262, 2))
    place = ((273, at + 2 * channels), (277, channels), (278, height), (279, len(content)))
    tags = b"".join(
        struct.pack("<HHII", tag, 4, channels if tag == 258 else 1, value) for tag, value in (*shape, *place)
    ).replace(struct.pack("<HHI", 258, 4, channels), struct.pack("<HHI", 258, 3, channels))
    path.parent.mkdir(parents=True, exist_ok=True)
    bits = struct.pack(f"<{channels}H", *[16] * channels)
    path.write_bytes(b"II*\0" + struct.pack("<IH", 8, 9) + tags + struct.pack("<I", 0) + bits + content)
    return path


def test_colours_of_16_bits_are_read_with_8_and_that_is_said_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = np.arange(4096, dtype=np.uint16).reshape(64, 64, 1)
    for index, channels in enumerate((2, 3, 4)):
        monkeypatch.setattr(folder, "_told_of_cut_colours", False)
        path = deep_png(tmp_path / f"{channels}.png", values.repeat(channels, 2))
        with pytest.warns(
            CutColoursWarning, match=rf"{channels}\.png has 16 bits a colour and is read with 8"
        ):
            image = read_image(path)
        assert index != 1 or len(image.unique()) == 16
        read_image(path)  # says nothing more
    monkeypatch.setattr(folder, "_told_of_cut_colours", False)
    with pytest.warns(CutColoursWarning, match=r"deep\.tif"):
        assert read_image(deep_tiff(tmp_path / "deep.tif", values.repeat(3, 2))).shape == (3, 64, 64)


def test_a_folder_names_its_files_of_deep_colours_once(tmp_path: Path) -> None:
    values = np.full((4, 4, 3), 300, dtype=np.uint16)
    for index in range(7):
        deep_png(tmp_path / "a" / f"{index}.png", values)
    save(tmp_path / "b" / "fine.png", Image.new("RGB", (4, 4)))
    with pytest.warns(CutColoursWarning) as caught:
        images = image_folder(tmp_path)
    assert len(caught) == 1
    said = str(caught[0].message)
    assert said.startswith("7 file(s)")
    assert "read with 8" in said
    assert "0.png" in said
    assert said.endswith("and 2 more")
    assert "fine" not in said
    assert images[0][0].shape == (3, 4, 4)  # says nothing more


def test_16_bits_a_pixel_are_not_16_bits_a_colour(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither deep grey, which is kept, nor a BMP of 5 or 6 bits a colour is warned of."""
    monkeypatch.setattr(folder, "_told_of_cut_colours", False)
    grey = deep_png(tmp_path / "grey.png", np.full((2, 2, 1), 300, dtype=np.uint16))
    assert torch.allclose(read_image(grey, grey=True), torch.tensor(300 / 65535))
    header = struct.pack("<IHHIIiiHHIIiiII", 74, 0, 0, 66, 40, 2, 2, 1, 16, 3, 8, 0, 0, 0, 0)
    masks = struct.pack("<3I", 0xF800, 0x07E0, 0x001F)
    (tmp_path / "small.bmp").write_bytes(b"BM" + header + masks + struct.pack("<4H", *[0xF800] * 4))
    assert torch.equal(read_image(tmp_path / "small.bmp")[:, 0, 0], torch.tensor([1.0, 0.0, 0.0]))


def test_palette_alpha_cmyk_and_bitmaps_give_the_colours_a_viewer_shows(tmp_path: Path) -> None:
    orange = (255, 128, 0)
    palette = Image.new("RGB", (4, 4), orange).quantize(4)
    clear = Image.new("RGBA", (4, 4), (255, 128, 0, 0))
    half = Image.new("RGBA", (4, 4), (0, 0, 0, 51))
    cmyk = Image.new("CMYK", (4, 4), (0, 127, 255, 0))
    expected = {
        save(tmp_path / "palette.png", palette): orange,
        save(tmp_path / "clear.png", clear): (255, 255, 255),
        save(tmp_path / "half.webp", half, lossless=True): (204, 204, 204),
        save(tmp_path / "cmyk.tif", cmyk): orange,
        save(tmp_path / "cmyk.jpg", cmyk, quality=100): orange,
        save(tmp_path / "white.png", Image.new("1", (4, 4), 1)): (255, 255, 255),
        save(tmp_path / "grey_alpha.png", Image.new("LA", (4, 4), (0, 0))): (255, 255, 255),
    }
    for path, colour in expected.items():
        mean = read_image(path).mean((1, 2)) * 255
        assert np.allclose(mean.numpy(), colour, atol=3), path.name


def test_a_photograph_taken_sideways_is_turned_upright(tmp_path: Path) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6  # turn by 90 degrees clockwise to see it upright
    path = save(tmp_path / "turned.jpg", Image.new("L", (30, 20)), exif=exif)
    assert read_image(path).shape == (3, 30, 20)


def damage(photos: Path) -> list[str]:
    whole = (photos / "cat" / "0.png").read_bytes()
    (photos / "cat" / "cut.png").write_bytes(whole[: len(whole) // 2])
    (photos / "cat" / "empty.jpg").write_bytes(b"")
    (photos / "dog" / "text.tif").write_text("no image at all")
    return ["cut.png", "empty.jpg", "text.tif"]


def test_corrupt_files_are_refused_by_name(photos: Path) -> None:
    names = damage(photos)
    with pytest.raises(CorruptImagesError, match=r"3 file\(s\)") as caught:
        image_folder(photos)
    assert all(name in str(caught.value) for name in names)
    assert 'on_corrupt="skip"' in str(caught.value)


def test_corrupt_files_are_skipped_and_reported_by_choice(photos: Path) -> None:
    names = damage(photos)
    with pytest.warns(UserWarning, match="left out") as caught:
        images = image_folder(photos, on_corrupt="skip")
    assert all(name in str(caught[0].message) for name in names)
    assert [path.name for path, _ in images.skipped] == names
    assert len(images) == 17


def test_truncated_photographs_are_found_before_training(tmp_path: Path) -> None:
    noise = Image.fromarray(np.random.default_rng(0).integers(0, 256, (64, 64, 3), dtype=np.uint8))
    for suffix in ("jpg", "webp", "tif", "png", "bmp", "gif"):
        path = save(tmp_path / f"whole.{suffix}", noise)
        read_image(path)
        cut = tmp_path / f"cut.{suffix}"
        cut.write_bytes(path.read_bytes()[: path.stat().st_size * 2 // 3])
        with pytest.raises(UnreadableImageError, match=rf"cut.{suffix}: damaged or no image"):
            read_image(cut)


def test_decompression_bombs_are_refused(tmp_path: Path) -> None:
    save(tmp_path / "a" / "fine.png", Image.new("1", (10, 10)))
    save(tmp_path / "b" / "bomb.png", Image.new("1", (20_000, 12_000)))  # 240 megapixels in few kilobytes
    with pytest.raises(CorruptImagesError, match=r"bomb.png: more than 48,000,000 pixels"):
        image_folder(tmp_path)
    with pytest.raises(UnreadableImageError, match="10 x 10 pixels are more than 99; --max-pixels allows"):
        read_image(tmp_path / "a" / "fine.png", max_pixels=99)


def test_large_images_are_read_by_those_who_allow_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 40)  # refuses 81 and more by itself
    path = save(tmp_path / "large.png", Image.new("1", (10, 10)))
    with pytest.raises(UnreadableImageError, match="a decompression bomb"):
        read_image(path, max_pixels=40)
    assert read_image(path, max_pixels=100).shape == (3, 10, 10)
    assert Image.MAX_IMAGE_PIXELS == 40  # for all others it is what it was


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


def test_floating_point_images_must_be_in_range(tmp_path: Path) -> None:
    fine = save(tmp_path / "fine.tif", Image.new("F", (3, 3), 0.25))
    assert torch.all(read_image(fine, grey=True) == 0.25)
    with pytest.raises(UnreadableImageError, match="outside 0 to 1"):
        read_image(save(tmp_path / "wild.tif", Image.new("F", (3, 3), 7.0)))


def test_folders_without_two_classes_are_refused(tmp_path: Path) -> None:
    with pytest.raises(NotADirectoryError, match="is not a folder"):
        image_folder(tmp_path / "missing")
    with pytest.raises(ValueError, match="two or more classes; it has none"):
        image_folder(tmp_path)
    save(tmp_path / "cat" / "1.png", Image.new("L", (4, 4)))
    with pytest.raises(ValueError, match="two or more classes; it has only 'cat'"):
        image_folder(tmp_path)
    (tmp_path / "dog").mkdir()
    with pytest.raises(ValueError, match=r"no readable images \(.png, .*\) in .* for dog"):
        image_folder(tmp_path)


def test_unknown_choices_are_refused(photos: Path) -> None:
    with pytest.raises(ValueError, match="auto, grey, rgb, got 'gray'"):
        image_folder(photos, colour="gray")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="skip, refuse, got 'ignore'"):
        image_folder(photos, on_corrupt="ignore")  # type: ignore[arg-type]


def test_reading_a_sound_folder_warns_of_nothing(photos: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        images = image_folder(photos)
        assert [images[index][0].shape[0] for index in range(len(images))] == [3] * 17
