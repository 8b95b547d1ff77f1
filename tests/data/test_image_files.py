"""Which files of a folder are read, and that the others are named."""

import os
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
from helpers.pictures import save, write
from PIL import Image, PngImagePlugin

from scalechannels.data.folder import image_folder
from scalechannels.data.image_files import (
    LeftOutWarning,
    find_images,
    left_out,
    readable,
    suffixes,
    warn_of_left_out,
    written,
)
from scalechannels.data.pictures import UnreadableImageError, read_image


def picture(path: Path) -> Path:
    return save(path, Image.new("L", (4, 4), 51))


@pytest.fixture
def heif(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """A plugin as pillow-heif is one: it registers itself with Pillow when it is asked to."""
    module = ModuleType("pillow_heif")
    kinds = (Image.OPEN.copy(), Image.ID[:])

    def register_heif_opener() -> None:
        Image.register_open("HEIF", PngImagePlugin.PngImageFile, lambda start: start[:4] == b"\x89PNG")

    module.register_heif_opener = register_heif_opener  # type: ignore[attr-defined]
    yield module
    Image.OPEN.clear()
    Image.OPEN.update(kinds[0])
    Image.ID[:] = kinds[1]
    readable.cache_clear()


def test_what_may_be_an_image_and_is_not_read_is_named(tmp_path: Path) -> None:
    for name in ("1.png", "deeper/2.JFIF", "3.jp2"):
        picture(tmp_path / name)
    left = ["broken.png", "deeper/photo.cr2", "no_suffix", "page.pdf"]
    for name in left[1:]:
        write(tmp_path / name, b"")
    (tmp_path / "broken.png").symlink_to(tmp_path / "nowhere.png")
    for name in ("notes.txt", "labels.CSV", "Thumbs.db", ".DS_Store", "._1.png", ".thumbnails/1.png"):
        write(tmp_path / name, b"")
    found = find_images(tmp_path)
    assert [path.name for path in found.images] == ["1.png", "3.jp2", "2.JFIF"]
    assert [path.relative_to(tmp_path).as_posix() for path in found.left_out] == left
    assert left_out(tmp_path, found.left_out).startswith(f"4 files in '{tmp_path}' left out, not read as ")
    with pytest.warns(LeftOutWarning, match=r"a0, a1, a2, a3, a4 and 3 more$"):
        warn_of_left_out(tmp_path, [tmp_path / f"a{number}" for number in range(8)])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_of_left_out(tmp_path, [])


def test_links_to_folders_are_followed_and_none_is_searched_twice(tmp_path: Path) -> None:
    inside, outside = tmp_path / "class", tmp_path / "elsewhere"
    picture(inside / "1.png")
    picture(inside / "real" / "2.png")
    picture(outside / "3.png")
    (inside / "linked").symlink_to(outside)
    (inside / "again").symlink_to(outside)
    (inside / "a_link_before_its_folder").symlink_to(inside / "real")
    (inside / "circle").symlink_to(inside)
    (outside / "back").symlink_to(inside)
    names = [path.relative_to(inside).as_posix() for path in find_images(inside).images]
    assert names == ["1.png", "again/3.png", "real/2.png"]


def test_a_folder_that_may_not_be_read_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    picture(tmp_path / "closed" / "1.png")
    read = os.scandir

    def scandir(path: str) -> object:
        if str(path).endswith("closed"):
            raise PermissionError(13, "Permission denied", str(path))
        return read(path)

    monkeypatch.setattr(os, "scandir", scandir)
    assert find_images(tmp_path) == ([], [tmp_path / "closed"])


def test_of_heic_it_is_said_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pillow_heif", None)  # as if it were not installed
    readable.cache_clear()
    path = write(tmp_path / "a" / "IMG_1.HEIC", b"")
    assert ".heic" not in suffixes()
    assert left_out(tmp_path, [path]).endswith("a/IMG_1.HEIC; to read .heic, install pillow-heif")
    with pytest.raises(UnreadableImageError, match=r"to read \.heic, install pillow-heif"):
        read_image(path)
    readable.cache_clear()


def test_with_the_plugin_heic_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, heif: ModuleType
) -> None:
    monkeypatch.setitem(sys.modules, "pillow_heif", heif)
    readable.cache_clear()
    path = save(tmp_path / "IMG_1.HEIC", Image.new("L", (4, 4), 51), format="PNG")
    assert find_images(tmp_path) == ([path], [])
    assert read_image(path).shape == (3, 4, 4)


def test_a_training_folder_names_what_it_leaves_out_in_one_warning(tmp_path: Path) -> None:
    for name in ("cat/1.png", "dog/1.png", "of_no_class.png"):
        picture(tmp_path / name)
    for name in ("cat/2.cr2", "dog/3.psd", "dog/notes.txt"):
        write(tmp_path / name, b"")
    with pytest.warns(LeftOutWarning) as caught:
        images = image_folder(tmp_path)
    assert len(images) == 2
    (said,) = caught
    assert str(said.message).startswith("3 files in ")
    assert str(said.message).endswith(": of_no_class.png, cat/2.cr2, dog/3.psd")


@pytest.mark.skipif(os.name == "nt", reason="names are Unicode there")
def test_a_name_that_is_not_utf8_is_readable_text_and_a_class_of_that_name_is_refused(tmp_path: Path) -> None:
    odd = os.fsdecode(b"caf\xe9")
    assert written(tmp_path / odd) == f"{tmp_path}/caf\\xe9"
    assert written("caf\u00e9 \U0001f600") == "caf\u00e9 \U0001f600"
    for name in ("cat", "dog"):
        picture(tmp_path / name / "1.png")
    plain = image_folder(tmp_path).checksum()
    picture(tmp_path / "cat" / f"{odd}.png")
    images = image_folder(tmp_path)
    assert images.checksum() != plain
    assert images[1][0].shape == (1, 4, 4)
    (tmp_path / "cat" / f"{odd}.png").write_bytes(b"")
    with pytest.raises(ValueError, match=r"cat/caf\\xe9.png: it is damaged"):
        image_folder(tmp_path)
    picture(tmp_path / odd / "1.png")
    with pytest.raises(ValueError, match=r"the name of the class 'caf\\xe9' in .* rename that folder"):
        image_folder(tmp_path)
