"""What photographs and fonts are collected: enough of them, and no split knows another's."""

import io

import pytest
from PIL import Image

from benchmarks.collecting import What, image_of, listed, thumbnail

SAME = 4
"""Bits of a thumbnail that differ between sizes of one picture."""


@pytest.mark.parametrize("what", ["photographs", "fonts"])
def test_no_package_and_no_file_is_in_two_splits(what: What) -> None:
    files = listed(what)
    assert len({(one.package, one.split) for one in files}) == len({one.package for one in files})
    assert len({one.sha256 for one in files}) == len({(one.split, one.name) for one in files}) == len(files)


def test_there_are_a_hundred_megapixels_to_learn_from_and_to_test() -> None:
    for split in ("train", "test"):
        assert sum(one.megapixels for one in listed("photographs", split)) > 100


def test_no_photograph_is_another_at_another_size() -> None:
    bits = [int(one.thumbnail, 16) for one in listed("photographs")]
    assert min((a ^ b).bit_count() for k, a in enumerate(bits) for b in bits[:k]) > SAME
    picture = Image.radial_gradient("L").rotate(30).crop((40, 70, 240, 200))
    smaller = picture.resize((90, 59), Image.Resampling.LANCZOS)
    assert (int(thumbnail(picture), 16) ^ int(thumbnail(smaller), 16)).bit_count() <= SAME


def test_of_several_sizes_in_a_file_the_widest_that_is_wanted_is_taken() -> None:
    def jpeg(width: int) -> bytes:
        buffer = io.BytesIO()
        Image.new("RGB", (width, 4), (width % 256, 0, 0)).save(buffer, "JPEG")
        return buffer.getvalue()

    content = b"\x1e\xe7 head \xff\xd8\xff no image " + jpeg(640) + b"pad" + jpeg(3840) + jpeg(7680)
    with Image.open(io.BytesIO(image_of(content, "a.edj"))) as image:
        assert image.size == (3840, 4)
    assert image_of(content, "a.jpg") == content
