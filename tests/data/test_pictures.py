"""One picture: every kind of file is read to the right values, and grey values are those of digits."""

import struct
from pathlib import Path

import numpy as np
import pytest
import torch
from helpers.pictures import deep_png, deep_tiff, save
from PIL import Image

from scalechannels.data import pictures
from scalechannels.data.pictures import (
    BACKGROUND,
    CutColoursWarning,
    UnreadableImageError,
    as_digits,
    as_shown,
    as_taken,
    is_dark_on_light,
    png_path,
    read_image,
)
from scalechannels.data.strokes import strokes


def test_sixteen_bits_are_kept(tmp_path: Path) -> None:
    values = np.array([[0, 1, 300], [32768, 65534, 65535]], dtype=np.uint16)
    for name in ("deep.png", "deep.tif"):
        path = save(tmp_path / name, Image.fromarray(values))
        for image in (read_image(path, grey=True), read_image(path)):
            assert np.allclose(image.numpy() * 65535, values[None], atol=0.01)


def test_of_an_animation_the_first_frame_is_read(tmp_path: Path) -> None:
    first, second = Image.new("RGB", (6, 4), (255, 0, 0)), Image.new("RGB", (6, 4), (0, 0, 255))
    for suffix, options in {"gif": {}, "webp": {"lossless": True}, "tif": {}, "png": {}}.items():
        path = save(
            tmp_path / f"moving.{suffix}", first, save_all=True, append_images=[second, first], **options
        )
        assert torch.equal(read_image(path)[:, 2, 3], torch.tensor([1.0, 0.0, 0.0])), suffix


def test_colours_of_16_bits_are_read_with_8_and_that_is_said_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = np.arange(4096, dtype=np.uint16).reshape(64, 64, 1)
    for index, channels in enumerate((2, 3, 4)):
        monkeypatch.setattr(pictures, "_warned_of_cut_colours", False)
        path = deep_png(tmp_path / f"{channels}.png", values.repeat(channels, 2))
        with pytest.warns(
            CutColoursWarning, match=rf"{channels}\.png' has 16 bits a colour and is read with 8"
        ):
            image = read_image(path)
        assert index != 1 or len(image.unique()) == 16
        read_image(path)  # says nothing more
    monkeypatch.setattr(pictures, "_warned_of_cut_colours", False)
    with pytest.warns(CutColoursWarning, match=r"deep\.tif"):
        assert read_image(deep_tiff(tmp_path / "deep.tif", values.repeat(3, 2))).shape == (3, 64, 64)


def test_16_bits_a_pixel_are_not_16_bits_a_colour(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither deep grey, which is kept, nor a BMP of 5 or 6 bits a colour is warned of."""
    monkeypatch.setattr(pictures, "_warned_of_cut_colours", False)
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


def test_truncated_photographs_are_found_before_training(tmp_path: Path) -> None:
    noise = Image.fromarray(np.random.default_rng(0).integers(0, 256, (64, 64, 3), dtype=np.uint8))
    for suffix in ("jpg", "webp", "tif", "png", "bmp", "gif"):
        path = save(tmp_path / f"whole.{suffix}", noise)
        read_image(path)
        cut = tmp_path / f"cut.{suffix}"
        cut.write_bytes(path.read_bytes()[: path.stat().st_size * 2 // 3])
        with pytest.raises(
            UnreadableImageError, match=rf"cut.{suffix}' cannot be read: it is damaged, or not an image"
        ):
            read_image(cut)


def test_large_images_are_read_by_those_who_allow_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 40)  # refuses 81 and more by itself
    path = save(tmp_path / "large.png", Image.new("1", (10, 10)))
    with pytest.raises(UnreadableImageError, match="a decompression bomb"):
        read_image(path, max_pixels=40)
    assert read_image(path, max_pixels=100).shape == (3, 10, 10)
    assert Image.MAX_IMAGE_PIXELS == 40  # for all others it is what it was


def test_floating_point_images_must_be_in_range(tmp_path: Path) -> None:
    fine = save(tmp_path / "fine.tif", Image.new("F", (3, 3), 0.25))
    assert torch.all(read_image(fine, grey=True) == 0.25)
    with pytest.raises(UnreadableImageError, match=r"must lie in 0 to 1; they reach from 7 to 7"):
        read_image(save(tmp_path / "wild.tif", Image.new("F", (3, 3), 7.0)))


def test_files_become_the_values_of_training() -> None:
    digits = strokes(3, 0).render(1.0)[:, 0]  # −0.76 to 0.76
    files = ((torch.tan(digits * torch.pi / 2) / 0.02 + 128) / 255).clamp(0, 1)
    for made, digit in zip(files, digits, strict=True):
        assert (as_digits(made) - digit).abs().max() < 0.01
        faint = 0.3 + 0.4 * made  # a picture of little contrast is stretched, as the recipe does
        assert (as_digits(faint) - digit).abs().max() < 0.01
    assert torch.allclose(as_digits(torch.full((1, 5, 5), 0.7)), torch.tensor(BACKGROUND).float())


def test_a_network_takes_one_range_or_the_other_and_the_picture_stays_as_it_is() -> None:
    picture = torch.rand(1, 9, 11, generator=torch.Generator().manual_seed(0)) * 0.6 + 0.2
    before = picture.clone()
    assert torch.equal(as_taken(picture, "digits"), as_digits(picture))
    assert torch.equal(as_taken(picture, "digits", invert=True), as_digits(1 - picture))
    assert torch.equal(as_taken(picture, "unit", invert=True), 1 - picture)
    assert torch.equal(picture, before)


def test_digits_are_shown_from_black_to_white() -> None:
    shown = as_shown(torch.tensor([BACKGROUND, 0.0, -BACKGROUND]))
    assert torch.allclose(shown, torch.tensor([0.0, 0.5, 1.0]))


def test_ink_on_paper_is_known_by_its_border() -> None:
    chalk = torch.zeros(1, 9, 9)
    chalk[0, 3:6, 3:6] = 1
    assert not is_dark_on_light(chalk)
    assert is_dark_on_light(1 - chalk)
    assert not is_dark_on_light(torch.full((1, 9, 9), 0.7))  # an even one is neither


def test_only_png_and_no_folders(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"must end in .png; got '.*x.jpg'"):
        png_path(tmp_path / "x.jpg")
    (tmp_path / "x.png").mkdir()
    with pytest.raises(IsADirectoryError, match="is a folder"):
        png_path(tmp_path / "x.png")
