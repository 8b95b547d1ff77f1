"""Pictures show what they are given, and refuse what they cannot show."""

import pytest

from scalechannels.report.curves import accuracy_curves, selection_picture


def test_pictures_refuse_what_they_cannot_show() -> None:
    with pytest.raises(ValueError, match="one or two curves"):
        accuracy_curves({}, [1.0])
    with pytest.raises(ValueError, match="2 sizes and 3 channels"):
        selection_picture([1, 2], [1, 2, 4], [[0.1, 0.9], [0.5, 0.5]])


def test_curves_have_their_values_and_names() -> None:
    columns = {"one": {2.0: 80.0, 1.0: 90.0}, "other": {1.0: 70.0, 2.0: 20.0}}
    (axes,) = accuracy_curves(columns, [1.0]).axes
    lines = [line for line in axes.get_lines() if line.get_marker() != "None"]
    assert [(list(line.get_xdata()), list(line.get_ydata())) for line in lines] == [
        ([1.0, 2.0], [90.0, 80.0]),
        ([1.0, 2.0], [70.0, 20.0]),
    ]
    assert {"one", "other", "guessing", "training size"} <= {text.get_text() for text in axes.texts}


def test_names_of_equal_curves_do_not_cover_each_other() -> None:
    column = {0.5: 30.0, 1.0: 50.0, 2.0: 40.0}
    (axes,) = accuracy_curves({"one": column, "other": column}, [1.0]).axes
    heights = {text.get_text(): text.get_position()[1] for text in axes.texts}
    assert heights["one"] - heights["other"] > 10
