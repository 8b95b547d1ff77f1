"""Whatever the bytes of a file are: an image of known range, or an error that says so.

EXAMPLES=10000 pytest tests/data/test_any_image.py tries more than the few of an ordinary run.
"""

import tempfile
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch
from helpers.fuzzing import examples
from helpers.image_files import KnownFile, any_files, known_files
from hypothesis import given
from torch import Tensor

from scalechannels.data.pictures import (
    Checked,
    CutColoursWarning,
    UnreadableImageError,
    check_image,
    read_image,
)

MOST_PIXELS = 1_000_000  # a damaged header may ask for more
many = examples(300)


def read(path: Path, grey: bool) -> Tensor | None:
    """None where it cannot be read. Nothing else may escape, no warning either."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", CutColoursWarning)
        try:
            return read_image(path, grey=grey, max_pixels=MOST_PIXELS)
        except UnreadableImageError as error:
            if str(path) not in str(error):
                raise
            return None


def checked(path: Path) -> Checked | None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            return check_image(path, MOST_PIXELS)
        except UnreadableImageError:
            return None


@pytest.mark.slow
@pytest.mark.timeout(3600)  # for those who ask for many
@many
@given(any_files)
def test_any_bytes_are_an_image_or_an_error_that_names_the_file(named: tuple[str, bytes]) -> None:
    name, content = named
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_bytes(content)
        found, grey, colour = checked(path), read(path, True), read(path, False)
    assert (found is None) == (grey is None) == (colour is None)
    if found is None or grey is None or colour is None:
        return
    assert grey.shape == (1, found.height, found.width)
    assert colour.shape == (3, found.height, found.width)
    for image in (grey, colour):
        assert image.dtype == torch.float32
        assert image.isfinite().all()
        assert image.min() >= 0
        assert image.max() <= 1
    if found.grey:
        assert torch.equal(colour, grey.expand(3, -1, -1))


@pytest.mark.slow
@pytest.mark.timeout(3600)  # for those who ask for many
@many
@given(known_files)
def test_grey_values_are_those_that_the_file_was_made_from(file: KnownFile) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "image"
        path.write_bytes(file.content)
        grey, colour = read(path, True), read(path, False)
    assert grey is not None
    assert colour is not None
    assert grey.shape[1:] == file.values.shape
    for image in (grey, colour):
        assert np.abs(image.numpy() - file.values).max() <= file.step
