"""The paper's own numbers, once. Accuracies in per cent on the test set, means of three seeds.

Jansson & Lindeberg, "Scale-invariant scale-channel networks", JMIV 64 (2022).
"""

from __future__ import annotations

from scalechannels.paper.recipes import Train
from scalechannels.training.config import NetworkName

COLUMNS = ("[1/2,1]", "[1,4]", "[4,8]", "[1/2,4]", "[1/2,8]")
"""The ranges of test sizes of table 1."""

Row = tuple[float, float, float, float, float]

TABLE1: dict[tuple[NetworkName, Train], Row] = {
    ("fovavg", "tr1"): (99.15, 99.27, 90.82, 99.22, 96.76),
    ("fovavg", "tr2"): (99.14, 99.36, 96.55, 99.27, 98.47),
    ("fovavg", "tr4"): (98.78, 99.31, 96.61, 99.11, 98.36),
    ("fovavg", "tr14"): (99.20, 99.40, 96.50, 99.32, 98.49),
    ("fovmax", "tr1"): (99.15, 99.35, 93.70, 99.27, 97.63),
    ("fovmax", "tr2"): (99.15, 99.31, 92.72, 99.25, 97.32),
    ("fovmax", "tr4"): (99.03, 99.30, 93.26, 99.20, 97.45),
    ("fovmax", "tr14"): (99.16, 99.32, 94.37, 99.26, 97.82),
    ("fovconc", "tr1"): (80.76, 48.64, 4.61, 57.10, 44.68),
    ("fovconc", "tr2"): (22.35, 78.17, 22.71, 59.12, 49.55),
    ("fovconc", "tr4"): (2.57, 50.20, 82.36, 35.64, 45.63),
    ("fovconc", "tr14"): (89.70, 99.33, 89.54, 95.63, 93.63),
    ("swmax", "tr1"): (95.06, 97.60, 69.52, 96.53, 88.77),
    ("swmax", "tr2"): (96.87, 97.96, 69.28, 97.48, 89.44),
    ("swmax", "tr4"): (91.40, 97.23, 82.21, 95.02, 91.04),
    ("swmax", "tr14"): (97.05, 98.82, 79.40, 98.13, 92.60),
    ("cnn", "tr1"): (88.26, 50.78, 11.85, 61.46, 49.64),
    ("cnn", "tr2"): (27.87, 79.88, 26.08, 61.90, 52.60),
    ("cnn", "tr4"): (11.45, 54.35, 82.59, 40.99, 49.79),
    ("cnn", "tr14"): (88.23, 99.09, 73.98, 94.94, 88.57),
}
"""Table 1, without its rows of means."""

TABLE1_MEANS: dict[NetworkName, Row] = {
    "fovavg": (99.02, 99.32, 94.66, 99.20, 97.86),
    "fovmax": (99.11, 99.32, 93.23, 99.24, 97.47),
    "fovconc": (35.23, 59.00, 36.56, 50.62, 46.62),
    "swmax": (94.44, 97.60, 73.67, 96.34, 89.75),
    "cnn": (42.53, 61.67, 40.17, 54.78, 50.68),
}
"""Its rows "mean(tr1, tr2, tr4)"."""

CHANNELS: dict[NetworkName, tuple[int, int]] = {
    "fovavg": (17, 17),
    "fovmax": (17, 17),
    "fovconc": (3, 17),
    "swmax": (17, 17),
    "cnn": (1, 1),
}
"""How many channels for single sizes, and for tr14."""

RANKINGS: dict[str, tuple[tuple[NetworkName, float], ...]] = {
    "table2": (("fovavg", 99.32), ("fovmax", 99.32), ("swmax", 97.60), ("cnn", 61.67), ("fovconc", 59.00)),
    "table3": (("fovavg", 99.40), ("fovconc", 99.33), ("fovmax", 99.32), ("cnn", 99.09), ("swmax", 98.82)),
    "table4": (("fovmax", 99.24), ("fovavg", 99.20), ("swmax", 96.34), ("cnn", 54.78), ("fovconc", 50.62)),
    "table5": (("fovavg", 99.32), ("fovmax", 99.26), ("swmax", 98.13), ("fovconc", 95.63), ("cnn", 94.94)),
}
"""The four ranking tables, best first. Table 5 lists FovConc twice, 95.63 and 96.32; table 1 has 95.63."""

CIFAR = {"cnn at 1/2": 40.0, "cnn at 2": 30.0, "fov at 1/2": 70.0, "fov at 2": 50.0}
"""Rescaled CIFAR-10 has curves, and in the text (Section 7.3), at factors 1/2 and 2: the CNN about 40 and 30,
FovAvg and FovMax above 70 and about 50."""
DIFFERENCE_BETWEEN_SIZES = 0.2
"""FovAvg and FovMax, [1,4]: the largest difference between training on size 1, 2 or 4 (Section 6.3)."""
DIFFERENCE_TO_MULTI_SCALE = 0.1
"""FovAvg and FovMax: between training on one size and on sizes in [1,4] (Section 6.6)."""
