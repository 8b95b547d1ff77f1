"""Every kind of file becomes the values that a viewer shows, or an error that says why not."""

import ast
import io
import struct
import subprocess
from pathlib import Path

import numpy as np
import PIL
import pytest
import torch
from helpers.pictures import png, save, tiff, write
from helpers.profiles import cmyk_profile, grey_profile, near_srgb_profile, rgb_profile
from PIL import EpsImagePlugin, Image, ImageCms

import scalechannels
from scalechannels.data.decoding import UnreadableImageError, decode
from scalechannels.data.pictures import is_grey, read_image, to_tensor


def grey(content: bytes) -> list[float]:
    """The grey values of the first row."""
    image, _ = decode(io.BytesIO(content))
    return [round(value, 5) for value in to_tensor(image, grey=True)[0, 0].tolist()]


def colour(image: Image.Image, kind: str = "PNG", **options: object) -> tuple[int, ...]:
    """The colour of the first pixel once saved and read, from 0 to 255."""
    file = io.BytesIO()
    image.save(file, kind, **options)
    return tuple((to_tensor(decode(file).image, grey=False)[:, 0, 0] * 255).round().int().tolist())


# The range of the values


def test_the_range_is_what_the_file_says() -> None:
    for bits in (1, 2, 4, 8, 16):
        most = 2**bits - 1
        values = np.array([[[0], [1], [most]]])
        assert grey(png(values, bits)) == [0, round(1 / most, 5), 1], bits
    for kind in (np.uint8, np.uint16):
        most = np.iinfo(kind).max
        for order in "<>":
            assert grey(tiff(np.array([[[0], [1], [most]]], dtype=kind), order)) == [0, round(1 / most, 5), 1]
    assert grey(tiff(np.array([[[0], [1], [4095], [2048]]], dtype=np.uint16), bits=12))[1:3] == [0.00024, 1]
    for most in (1, 100, 255, 1000, 65535):
        size = 1 if most < 256 else 2
        pixels = b"".join(value.to_bytes(size, "big") for value in (0, 1, most))
        assert grey(b"P5 3 1 %d\n" % most + pixels) == pytest.approx([0, 1 / most, 1], abs=0.002), most


@pytest.mark.parametrize("kind", [np.int8, np.int16, np.int32, np.uint32])
@pytest.mark.parametrize("most", [100, 127])
def test_integers_of_which_nobody_knows_what_is_white_are_refused(kind: type, most: int) -> None:
    """A file of 0 to 255 in 32 bits was read as 0 to 0.004."""
    with pytest.raises(UnreadableImageError, match=r"nobody knows what is .*; save it with"):
        grey(tiff(np.array([[[0], [1], [most]]], dtype=kind)))


def test_where_zero_is_white_it_is_white_at_every_depth() -> None:
    for kind in (np.uint8, np.uint16, np.float32):
        most = 1 if kind is np.float32 else np.iinfo(kind).max
        values = np.array([[[0], [most]]], dtype=kind)
        assert grey(tiff(values, photometric=0)) == [1, 0]
        assert grey(tiff(values, photometric=1)) == [0, 1]


# Transparency


def test_grey_with_transparency_is_laid_over_white_at_every_depth() -> None:
    for bits in (1, 2, 4, 8, 16):
        most = 2**bits - 1
        clear = (b"tRNS", struct.pack(">H", 0))
        assert grey(png(np.array([[[0], [most], [0]]]), bits, clear)) == [1, 1, 1], bits
        if bits > 1:
            next_to_black = round(1 / most, 5)
            assert grey(png(np.array([[[0], [1]]]), bits, clear)) == [1, next_to_black], bits
            assert grey(png(np.array([[[0], [1]]]), bits, (b"tRNS", struct.pack(">H", 1)))) == [0, 1], bits
    for bits in (8, 16):
        most = 2**bits - 1
        content = png(np.array([[[0, 0], [0, most], [most, most], [0, most // 5]]]), bits)
        assert grey(content) == pytest.approx([1, 0, 1, 0.8], abs=0.004), bits
        assert is_grey(decode(io.BytesIO(content)).image)


def test_a_transparent_colour_of_16_bits_is_white() -> None:
    content = png(np.full((1, 1, 3), 300), 16, (b"tRNS", struct.pack(">HHH", 300, 300, 300)))
    assert torch.all(to_tensor(decode(io.BytesIO(content)).image, grey=False) == 1)


# Every mode of Pillow


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (tiff(np.array([[[136, 80, 67]]], dtype=np.uint8), photometric=8), (250, 4, 12)),  # LAB
        (tiff(np.array([[[76, 85, 255]]], dtype=np.uint8), photometric=6), (254, 0, 0)),  # YCbCr
        (tiff(np.array([[[0, 255, 255, 0]]], dtype=np.uint8), photometric=5), (255, 0, 0)),  # CMYK
        (tiff(np.array([[[0, 65535, 65535, 0]]], dtype=np.uint16), photometric=5), (255, 0, 0)),
        (tiff(np.array([[[255, 0, 0, 51]]], dtype=np.uint8)), (255, 204, 204)),  # RGBA
        (tiff(np.array([[[0, 51]]], dtype=np.uint8)), (204, 204, 204)),  # LA
        (
            tiff(np.array([[[0, 51]]], dtype=np.uint8)).replace(
                struct.pack("<HHIHH", 338, 3, 1, 2, 0), struct.pack("<HHIHH", 338, 3, 1, 1, 0)
            ),
            (204, 204, 204),  # La: alpha multiplied in
        ),
        (tiff(np.array([[[13107]]], dtype=np.uint16), ">"), (51, 51, 51)),  # I;16B
    ],
)
def test_every_mode_is_read_in_grey_and_in_colour(content: bytes, expected: tuple[int, ...]) -> None:
    try:
        image, _ = decode(io.BytesIO(content))
    except UnreadableImageError:
        if int(PIL.__version__.split(".")[0]) >= 13:
            raise
        pytest.skip("an older Pillow refuses it")
    found = (to_tensor(image, grey=False)[:, 0, 0] * 255).tolist()
    assert found == pytest.approx(expected, abs=3)
    weights = np.array([0.299, 0.587, 0.114])
    assert to_tensor(image, grey=True).item() * 255 == pytest.approx(weights @ found, abs=1)


def test_a_sideways_tiff_is_upright_whether_read_from_a_path_or_from_memory(tmp_path: Path) -> None:
    """Pillow scrambles the pixels of some if it is given their path."""
    values = np.arange(6).reshape(3, 2, 1) * 40
    for kind in (np.uint8, np.uint16):
        content = tiff(values.astype(kind), orientation=6)
        path = write(tmp_path / "sideways.tif", content)
        upright = torch.from_numpy(values[::-1, :, 0].T / np.iinfo(kind).max)
        for image in (read_image(path, grey=True), to_tensor(decode(io.BytesIO(content)).image, grey=True)):
            assert torch.allclose(image[0].double(), upright, atol=1e-6)


# Profiles


def test_colours_of_a_profile_become_those_of_srgb() -> None:
    sage = Image.new("RGB", (2, 2), (100, 150, 100))
    assert colour(sage) == (100, 150, 100)
    # 150 of Adobe's green is beyond what sRGB's reaches with as little red.
    assert colour(sage, icc_profile=rgb_profile()) == pytest.approx((64, 151, 97), abs=3)
    clear = Image.new("RGBA", (2, 2), (100, 150, 100, 51))
    assert colour(clear, icc_profile=rgb_profile()) == pytest.approx((217, 234, 223), abs=2)
    palette = sage.quantize(4)
    assert colour(palette, icc_profile=rgb_profile()) == pytest.approx((64, 151, 97), abs=3)
    cyan = Image.new("CMYK", (2, 2), (255, 0, 0, 0))
    assert colour(cyan, "TIFF") == (0, 255, 255)
    assert colour(cyan, "TIFF", icc_profile=cmyk_profile()) == pytest.approx((118, 118, 118), abs=2)


def test_srgb_and_profiles_that_cannot_be_used_change_nothing() -> None:
    srgb = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    noise = np.random.default_rng(0).integers(0, 256, (9, 9, 3), dtype=np.uint8)
    unfit = (b"no profile", rgb_profile()[:200], grey_profile(), cmyk_profile())
    for profile in (srgb, near_srgb_profile(), *unfit):
        file = io.BytesIO()
        Image.fromarray(noise).save(file, "PNG", icc_profile=profile)
        assert np.array_equal(np.asarray(decode(file).image), noise)


@pytest.mark.parametrize("kind", [np.uint8, np.uint16])
def test_grey_values_stay_as_they_are_stored_whatever_their_profile(kind: type) -> None:
    file = io.BytesIO()
    Image.fromarray(np.full((2, 2), np.iinfo(kind).max // 5, dtype=kind)).save(
        file, "PNG", icc_profile=grey_profile()
    )
    assert grey(file.getvalue()) == [0.2, 0.2]


# What is opened


def test_no_program_is_started_for_postscript_that_is_named_as_an_image(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started = []
    monkeypatch.setattr(subprocess, "Popen", lambda *words, **_: started.append(words) or 1 / 0)
    monkeypatch.setattr(EpsImagePlugin, "gs_binary", "gs")
    path = save(tmp_path / "drawing.eps", Image.new("RGB", (8, 8)))
    for name in ("drawing.png", "drawing.eps"):
        write(tmp_path / name, path.read_bytes())
        with pytest.raises(UnreadableImageError, match="damaged, or not an image"):
            read_image(tmp_path / name)
        with pytest.raises(UnreadableImageError, match="damaged, or not an image"):
            decode(io.BytesIO(path.read_bytes()))
    assert started == []


def test_one_place_opens_images_and_says_which_formats() -> None:
    package = Path(scalechannels.__file__).parent
    found = [
        (path.relative_to(package).as_posix(), [keyword.arg for keyword in node.keywords])
        for path in package.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("Image.open", "PIL.Image.open")
    ]
    drawn = ("data/emoji_drawings.py", ["formats"])  # what was rendered just before, no file of a user
    assert sorted(found) == [("data/decoding.py", ["formats"]), drawn]
