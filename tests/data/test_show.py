"""Contact sheets: cells hold the images' own pixels, boxes are drawn where the ground truth says."""

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from scalechannels.data import rescaled_cifar10, show
from scalechannels.data.folder import image_folder
from scalechannels.data.scenes import Scene, scene
from scalechannels.data.sources import TrainAndTest


def pixels(path: Path) -> np.ndarray:
    with Image.open(path) as image:
        assert image.format == "PNG"
        return np.asarray(image.convert("RGB")).astype(int)


def occurs(cell: np.ndarray, sheet: np.ndarray) -> bool:
    """Whether a picture holds a smaller one, to one grey level."""
    windows = np.lib.stride_tricks.sliding_window_view(sheet, cell.shape)[:, :, 0]
    corners = (np.abs(windows[:, :, 0, 0] - cell[0, 0]) <= 1).all(-1)
    return any((np.abs(windows[y, x] - cell) <= 1).all() for y, x in np.argwhere(corners))


def test_cells_are_the_images_pixel_for_pixel_and_in_their_place(tmp_path: Path) -> None:
    values = torch.linspace(0, 1, 6).view(2, 3)  # the cell (r, c) is all of one grey
    ramp = torch.linspace(0, 1, 20 * 20).view(1, 20, 20)
    rows = [
        [ramp if (r, c) == (1, 2) else values[r, c].expand(1, 20, 20) for c in range(3)] for r in range(2)
    ]
    sheet = pixels(show.contact_sheet(tmp_path / "s.png", rows, ["a", "b"], ["1", "2", "3"], "Title"))
    expected = (ramp[0] * 255).round().int().numpy()
    assert occurs(np.repeat(expected[..., None], 3, 2), sheet)
    mosaic = sheet[54:, 28:]  # left margin: 22 and 6.2 pixels for one letter
    for r in range(2):
        for c in range(3):
            if (r, c) != (1, 2):
                assert mosaic[r * 22 + 10, c * 22 + 10, 0] == pytest.approx(51 * (3 * r + c), abs=1.1)
    assert (sheet[:54] < 200).any()  # names and title
    assert (sheet[54:, :28] < 200).any()


def test_zoom_repeats_pixels_and_short_rows_end_blank(tmp_path: Path) -> None:
    image = torch.tensor([[[0.0, 1.0], [1.0, 0.0]]] * 3)
    rows = [[image, image], [image]]
    path = show.contact_sheet(tmp_path / "z.png", rows, ["a", "b"], ["1", "2"], "", zoom=10, blank=0.5)
    mosaic = pixels(path)[54:, 28:]
    assert (mosaic[2:8, 2:8] == 0).all()
    assert (mosaic[2:8, 12:18] == 255).all()
    assert (np.abs(mosaic[24:40, 24:40] - 127) <= 1).all()


def test_names_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    rows = torch.zeros(2, 3, 1, 4, 4)
    with pytest.raises(ValueError, match="1 row names and 3 column names do not fit 2 rows of 3 images"):
        show.contact_sheet(tmp_path / "s.png", rows, ["a"], ["1", "2", "3"], "")
    with pytest.raises(ValueError, match="2 row names and 2 column names"):
        show.contact_sheet(tmp_path / "s.png", rows, ["a", "b"], ["1", "2"], "")
    assert list(tmp_path.iterdir()) == []


def test_strokes_and_the_seed_that_chooses_them(tmp_path: Path) -> None:
    first = pixels(show.show_strokes(tmp_path / "a.png"))
    assert first.shape[0] > 10 * 112
    assert first.shape[1] > 17 * 112
    assert (first == pixels(show.show_strokes(tmp_path / "b.png"))).all()
    assert (first != pixels(show.show_strokes(tmp_path / "c.png", seed=1))).any()


def test_scenes_have_their_boxes_drawn(tmp_path: Path) -> None:
    box = torch.tensor([[20.0, 30.0, 76.0, 86.0]])
    empty = torch.full((1, 120, 160), -0.763)
    path = show.scene_sheet(
        tmp_path / "s.png", [("one", Scene(empty, box, torch.tensor([3]), torch.tensor([2.0])))]
    )
    panel = pixels(path)[30:150, 16:176]
    orange = (panel[..., 0] > 150) & (panel[..., 2] < 100)
    for x in (20, 76):
        assert orange[40:80, x - 1 : x + 2].any(1).all()
    for y in (30, 86):
        assert orange[y - 1 : y + 2, 30:70].any(0).all()
    assert not orange[35:80, 25:70].any()


def test_the_sheet_of_scenes_shows_three_backgrounds(tmp_path: Path) -> None:
    made = scene()
    assert pixels(show.show_scenes(tmp_path / "s.png")).shape[0] > 3 * made.image.shape[1]


def test_mnist_large_scale_in_the_order_of_classes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    labels = torch.arange(20).flip(0) % 10
    images = torch.zeros(20, 28, 28, dtype=torch.uint8)
    for index, label in enumerate(labels.tolist()):
        images[index, 4 : 6 + 2 * label, 4:24] = 255  # the larger the class the higher the block
    monkeypatch.setattr(show, "load_mnist", lambda root: TrainAndTest(images, labels, images, labels))
    sheet = pixels(show.show_mnist_large_scale(tmp_path / "m.png"))
    column = sheet[54:, 28:, 0][:, 12 * 114 + 56]  # size 4, the middle of each image
    inked = [int((column[row * 114 : row * 114 + 112] > 128).sum()) for row in range(10)]
    assert inked == sorted(inked)
    assert inked[-1] > 3 * inked[0] > 0


def test_cifar10_in_colour_and_in_the_order_of_classes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    labels = torch.arange(10).flip(0)
    images = torch.zeros(10, 3, 32, 32, dtype=torch.uint8)
    images[:, 0] = (labels * 25).view(10, 1, 1)
    monkeypatch.setattr(show, "load_cifar10", lambda root: TrainAndTest(images, labels, images, labels))
    sheet = pixels(show.show_cifar10(tmp_path / "c.png"))
    left = round(22 + 6.2 * max(map(len, rescaled_cifar10.CLASSES)))
    for label in range(10):
        red, green, blue = sheet[54 + label * 98 + 48, left + 4 * 98 + 48]  # factor 1
        assert (abs(red - 25 * label) <= 1, green, blue) == (True, 0, 0)


def test_folder_of_images_of_varying_size(tmp_path: Path) -> None:
    for name, colour, shape in (("blue", (0, 0, 255), (50, 10)), ("red", (255, 0, 0), (300, 300))):
        (tmp_path / "photos" / name).mkdir(parents=True)
        for index in range(2):
            Image.new("RGB", shape, colour).save(tmp_path / "photos" / name / f"{index}.png")
    sheet = pixels(show.show_folder(tmp_path / "f.png", image_folder(tmp_path / "photos")))
    left = round(22 + 6.2 * 4)
    first, second = sheet[54 : 54 + 112, left : left + 112], sheet[54 + 114 : 54 + 226, left : left + 112]
    assert first[56, 56].tolist() == [0, 0, 255]
    assert first[5, 56].tolist() == [230, 230, 230]  # a wide image: blank above it
    assert second[5, 5].tolist() == [255, 0, 0]
