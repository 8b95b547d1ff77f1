"""Temperatures and calibration errors of logits whose truth is known."""

import pytest
import torch

from scalechannels.report.calibration import calibration_error, fitted_temperature


@pytest.mark.parametrize("factor", [0.3, 1.0, 4.0])
def test_the_temperature_undoes_a_factor_of_honest_logits(factor: float) -> None:
    generator = torch.Generator().manual_seed(0)
    honest = 2 * torch.randn(20_000, 4, generator=generator)
    labels = torch.multinomial(honest.softmax(1), 1, generator=generator)[:, 0]
    fitted = fitted_temperature(factor * honest, labels)
    assert fitted == pytest.approx(factor, rel=0.05)
    assert calibration_error(factor * honest / fitted, labels) < 1.5
    if factor != 1:
        assert calibration_error(factor * honest, labels) > 5


@pytest.mark.parametrize("count", [2, 10, 500])
def test_few_images_without_a_mistake_leave_a_doubt(count: int) -> None:
    """All logits are alike, so that the fitted probability is the share that counts as right."""
    for classes in (2, 5):
        labels = torch.arange(count) % classes
        logits = 3 * torch.nn.functional.one_hot(labels, classes).float()
        fitted = fitted_temperature(logits, labels)
        probability = float((logits / fitted).softmax(1).amax(1).mean())
        assert probability == pytest.approx((count + 1) / (count + 2), abs=1e-4)


def test_an_error_by_hand() -> None:
    """Two images at 0.75, one of them right, and two at 1, both right: |0.5 - 0.75| for a half of them."""
    logits = torch.tensor([[3.0, 1.0], [3.0, 1.0], [1.0, 1e20], [1.0, 1e20]]).log()
    assert calibration_error(logits, torch.tensor([0, 1, 1, 1])) == pytest.approx(100 * 0.25 / 2)
