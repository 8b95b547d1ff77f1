"""Errors as text: what is read is what was written, and nothing else is read."""

import base64
import subprocess
import sys
import tracemalloc
import zlib

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from scalechannels.training.errors import pack_errors, unpack_errors

SOME = torch.tensor([True, False, False, True, True, False, False, False, True, False])


def text_of(packed: bytes) -> str:
    return base64.b64encode(zlib.compress(packed)).decode()


@given(st.lists(st.booleans(), max_size=70))
def test_what_is_read_is_what_was_written(wrong: list[bool]) -> None:
    text = pack_errors(torch.tensor(wrong, dtype=torch.bool))
    found = unpack_errors(text, len(wrong))
    assert found.dtype == np.bool_
    assert found.tolist() == wrong
    assert pack_errors(torch.tensor(wrong, dtype=torch.bool)) == text


def test_the_first_image_is_the_highest_bit_of_the_first_byte() -> None:
    assert unpack_errors(text_of(bytes([0b10011000, 0b10000000])), 10).tolist() == SOME.tolist()


@pytest.mark.parametrize(("rate", "most"), [(0.01, 300), (0.1, 1_100), (0.5, 1_700)])
def test_it_is_short(rate: float, most: int) -> None:
    wrong = torch.rand(10_000, generator=torch.Generator().manual_seed(0)) < rate
    text = pack_errors(wrong)
    assert len(text) < most
    assert text.isascii()
    assert '"' not in text
    assert "\\" not in text  # as long in JSON


@given(place=st.integers(0, 10_000), change=st.integers(1, 255))
def test_no_changed_byte_is_read_as_other_errors(place: int, change: int) -> None:
    stored = bytearray(base64.b64decode(pack_errors(SOME)))
    stored[place % len(stored)] ^= change
    try:
        found = unpack_errors(base64.b64encode(bytes(stored)).decode(), len(SOME))
    except ValueError:
        return
    assert found.tolist() == SOME.tolist()  # some bits of zlib's header say nothing about the content


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "damaged"),
        ("not base64!", "damaged"),
        ("é", "damaged"),
        (f"{pack_errors(SOME)[:8]}!{pack_errors(SOME)[8:]}", "damaged"),
        (None, "damaged"),
        (7, "damaged"),
        (base64.b64encode(b"not compressed").decode(), "damaged"),
        (base64.b64encode(base64.b64decode(pack_errors(SOME))[:-1]).decode(), "cut off"),
        (base64.b64encode(base64.b64decode(pack_errors(SOME)) + b"ab").decode(), "2 bytes follow"),
        (text_of(bytes(1)), "not for 10 images"),
        (text_of(bytes(3)), "not for 10 images"),
        (text_of(bytes(10**6)), "not for 10 images"),
        (text_of(bytes([0, 1])), "not for 10 images"),  # the last bits have no image
    ],
)
def test_what_is_no_errors_of_ten_images_is_told(text, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        unpack_errors(text, 10)


def test_text_that_grows_does_not_fill_the_memory() -> None:
    text = text_of(bytes(10**7))
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match=r"these errors are not for \d+ images"):
            unpack_errors(text, 10)
        assert tracemalloc.get_traced_memory()[1] < 10**6
    finally:
        tracemalloc.stop()


def test_a_number_of_images_that_cannot_be() -> None:
    with pytest.raises(ValueError, match="got -1"):
        unpack_errors(pack_errors(SOME), -1)


@pytest.mark.parametrize("wrong", [torch.zeros(3), torch.zeros(3, 2, dtype=torch.bool), torch.ones(3).long()])
def test_other_than_one_bool_for_each_image_is_told(wrong: torch.Tensor) -> None:
    with pytest.raises(ValueError, match="one bool for each image"):
        pack_errors(wrong)


def test_reading_needs_no_torch() -> None:
    code = (
        "import sys; from scalechannels.training.errors import unpack_errors; print('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() == "False", done.stderr
