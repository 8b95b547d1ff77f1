"""The files that figures of images are drawn from come back as they were, and are made once."""

from pathlib import Path

import torch

from scalechannels.paper.experiments import experiment
from scalechannels.paper.figures import images
from scalechannels.paper.figures.images import make_pictures, read_strip, write_strip


def test_a_strip_of_images_comes_back(tmp_path: Path) -> None:
    made = (torch.arange(2 * 3 * 3 * 8 * 8) % 256).view(2, 3, 3, 8, 8) / 255
    write_strip(tmp_path / "strip.png", made)
    assert torch.allclose(read_strip(tmp_path / "strip.png", 8), made)
    write_strip(tmp_path / "grey.png", made[:, :, :1])
    assert torch.allclose(read_strip(tmp_path / "grey.png", 8), made[:, :, :1])


def test_pictures_that_are_there_are_not_made_again(tmp_path: Path) -> None:
    (tmp_path / "mnist.png").write_bytes(b"")
    said: list[str] = []
    make_pictures([experiment("figure4"), experiment("table1")], tmp_path, tmp_path, "cpu", {}, said.append)
    assert said == []


def test_what_makes_the_file_of_a_figure_stands_in_its_entry(tmp_path: Path, monkeypatch) -> None:
    def make(path: Path, *_: object) -> None:
        path.write_bytes(b"made")

    monkeypatch.setitem(images.IMAGES, "figure5", images.Image("new.png", make, lambda path: None))
    make_pictures([experiment("figure5")], tmp_path, tmp_path, "cpu", {}, lambda line: None)
    assert (tmp_path / "new.png").read_bytes() == b"made"
