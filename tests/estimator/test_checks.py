"""scikit-learn's own checks of estimators: as it is, and with rows of numbers drawn as pictures."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

pytest.importorskip("sklearn", reason="the extra scalechannels[sklearn] is not installed")

from sklearn.utils.estimator_checks import check_estimator, parametrize_with_checks

from scalechannels import ScaleInvariantClassifier
from scalechannels.estimator.checks import NOT_FOR_IMAGES

pytestmark = [
    pytest.mark.usefixtures("one_thread"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.DataConversionWarning"),
]
SIDE = 12
QUICK: dict[str, Any] = {
    "sizes": (1.0, 1.0),
    "epochs": 1,
    "options": {
        "network": {"window": SIDE, "ratio": 4.0},
        "training": {"batch": 8},
        "data": {"images": "crops"},
    },
}


class OfRows(ScaleInvariantClassifier):
    """Draws each number of a row as a square of grey, so that what is made for tables can be checked."""

    def _pictures(self, rows: np.ndarray) -> list[np.ndarray]:
        count, features = rows.shape
        across = int(np.ceil(features**0.5))
        squares = np.full((count, across**2), 0.5)
        numbers = rows.astype(np.float64)
        squares[:, :features] = 0.5 + numbers / (1 + abs(numbers)) / 2  # any number to 0 to 1
        cell = np.ones((-(-SIDE // across),) * 2)
        return [np.kron(row.reshape(across, across), cell) for row in squares]


@pytest.mark.slow
@parametrize_with_checks([OfRows(**QUICK, random_state=0)])
def test_every_check_passes_where_rows_are_drawn_as_pictures(
    estimator: Any, check: Callable[[Any], None]
) -> None:
    check(estimator)


def test_what_does_not_pass_is_named_with_its_reason() -> None:
    said: dict[str, str] = {}
    others: dict[str, set[str]] = {"passed": set(), "skipped": set(), "failed": set()}

    def note(*, check_name: str, status: str, exception: Any, **_: Any) -> None:
        if status == "xfail":
            said[check_name] = str(exception)
        else:
            others[status].add(check_name)

    estimator = ScaleInvariantClassifier(**QUICK, random_state=0)
    quiet: dict[str, Any] = {"on_skip": None, "on_fail": None, "callback": note}
    check_estimator(estimator, expected_failed_checks=NOT_FOR_IMAGES, **quiet)
    assert not others["failed"]
    assert not others["passed"] & set(NOT_FOR_IMAGES)
    assert len(others["passed"]) > 25
    assert set(said) == set(NOT_FOR_IMAGES)
    refused = {name for name, error in said.items() if "which is no square grey image" in error}
    (other,) = set(said) - refused
    assert "negative input values" in said[other]  # it tells of the error in words of its own
