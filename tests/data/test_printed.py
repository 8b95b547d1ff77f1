"""Printed digits: of the height they say, in the middle, and each drawn for its own size."""

from pathlib import Path

import matplotlib
import pytest
import torch

from scalechannels.data.pictures import BACKGROUND, as_shown
from scalechannels.data.printed import Printed
from scalechannels.data.scenes import INK, scene

FONTS = [
    Path(matplotlib.get_data_path(), "fonts/ttf", f"{name}.ttf")
    for name in ("DejaVuSans", "DejaVuSerif-Bold")
]


@pytest.mark.parametrize("size", [0.5, 1.0, 3.3])
def test_digits_have_twenty_pixels_times_the_size_and_lie_in_the_middle(size: float) -> None:
    printed = Printed.of(FONTS)
    side = round(28 * size)
    drawn = printed.render(size, side)
    assert drawn.shape == (20, 1, side, side)
    assert float(drawn.min()) == pytest.approx(BACKGROUND)
    assert float(drawn.max()) == pytest.approx(INK, abs=0.01)
    for image in as_shown(drawn[:, 0]):
        rows, columns = (image > 0.3).nonzero().unbind(1)
        assert int(rows.max() - rows.min() + 1) == pytest.approx(20 * size, rel=0.06, abs=1.5)
        for inked in (rows, columns):
            assert float(inked.min() + inked.max()) / 2 == pytest.approx((side - 1) / 2, rel=0.05, abs=1.1)


def test_fonts_and_classes_differ() -> None:
    printed = Printed.of(FONTS)
    assert printed.labels.tolist() == [*range(10)] * 2
    drawn = printed.render(1.0, 28)
    assert len({image.numpy().tobytes() for image in drawn}) == 20
    assert torch.equal(printed[torch.tensor([13])].render(1.0, 28), drawn[13:14])


def test_scenes_take_them() -> None:
    made = scene(6, 1, height=200, width=300, sizes=(0.5, 2.0), objects=Printed.of(FONTS))
    assert len(made.labels) == 6
    assert float(made.image.max()) > 0.7
