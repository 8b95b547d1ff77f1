"""The benchmarks that run on a rented GPU need neither Pillow nor safetensors."""

import pytest
from helpers.bare_python import run_bare


@pytest.mark.parametrize("module", ["detection_speed", "detection_candidates"])
def test_the_shipped_detector_looks_without_the_packages_that_are_missing(module: str) -> None:
    said = run_bare(f"""
import benchmarks.{module}
import torch
from scalechannels import Detector

image = torch.full((1, 64, 64), -0.76)
image[:, 17:47, 30:34] = 0.76
print([one.label for one in Detector.from_pretrained("digit-detector")(image)])
""")
    assert said == "[1]\n"
