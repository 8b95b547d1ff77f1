"""The files that figures of images are drawn from come back as they were, and are made once."""

from pathlib import Path

import torch

from scalechannels.paper.experiments import experiment
from scalechannels.paper.figures.images import make_pictures, read_strip, write_strip


def test_a_strip_of_images_comes_back(tmp_path: Path) -> None:
    images = (torch.arange(2 * 3 * 3 * 8 * 8) % 256).view(2, 3, 3, 8, 8) / 255
    write_strip(tmp_path / "strip.png", images)
    assert torch.allclose(read_strip(tmp_path / "strip.png", 8), images)
    write_strip(tmp_path / "grey.png", images[:, :, :1])
    assert torch.allclose(read_strip(tmp_path / "grey.png", 8), images[:, :, :1])


def test_pictures_that_are_there_are_not_made_again(tmp_path: Path) -> None:
    (tmp_path / "mnist.png").write_bytes(b"")
    said: list[str] = []
    make_pictures([experiment("figure4"), experiment("table1")], tmp_path, tmp_path, "cpu", {}, said.append)
    assert said == []
