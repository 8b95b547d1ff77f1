"""Fixtures of several test modules."""

from collections.abc import Iterator

import pytest
import torch
from helpers.invented_emoji import emoji_root, few_textures  # noqa: F401
from helpers.libraries import libraries  # noqa: F401


@pytest.fixture
def one_thread() -> Iterator[None]:
    """Tiny maps: a second thread costs more than it brings, on a busy machine by far."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
