"""Probabilities that mean what they say: one temperature for all logits, and how far they are still off."""

from __future__ import annotations

import torch
from torch import Tensor

BINS = 10


def fitted_temperature(logits: Tensor, labels: Tensor) -> float:
    """T for which softmax(logits / T) explains the labels best: (N, K) logits of images not trained on.

    N images without a mistake do not make the next answer certain: each label counts as right with
    (N + 1) / (N + 2), as in Platt's scaling.

    Law: classes stay as they are, only probabilities change. Limit: T lies between 1/20 and 20.
    """
    logits, doubt = logits.double(), 1 / (len(labels) + 2)
    spread = doubt * logits.shape[1] / (logits.shape[1] - 1)  # of which the right class takes its share, too

    def surprise(log_temperature: float) -> float:
        scaled = logits / 2.0**log_temperature
        return float(torch.nn.functional.cross_entropy(scaled, labels, label_smoothing=spread))

    low, high = -4.33, 4.33  # the surprise is convex in 1/T, so it has one minimum in between
    for _ in range(40):
        first, second = low + (high - low) / 3, high - (high - low) / 3
        if surprise(first) < surprise(second):
            high = second
        else:
            low = first
    return 2.0 ** ((low + high) / 2)


def calibration_error(logits: Tensor, labels: Tensor) -> float:
    """The expected calibration error in per cent, 0 to 100.

    Images are put into ten bins by the probability of their class; the mean over all images of how far the
    mean probability of a bin is off its accuracy.
    """
    probability, said = logits.double().softmax(1).max(1)
    right = (said == labels).double()
    place = (probability * BINS).long().clamp(max=BINS - 1)
    off = torch.zeros(BINS, dtype=torch.float64).index_add(0, place, right - probability)
    return 100 * float(off.abs().sum() / len(labels))
