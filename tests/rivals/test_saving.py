"""A rival in a folder: saved and loaded like our networks, without any code from the folder."""

import pytest
import torch

from scalechannels.plain import PlainNetwork
from scalechannels.rivals.gaussian_derivatives import GaussianDerivativeNetwork
from scalechannels.rivals.riesz import RieszNetwork
from scalechannels.rivals.steerable import ScaleSteerableNetwork
from scalechannels.rivals.transformer import SpatialTransformer
from scalechannels.saving.saved_network import load

SMALL = [
    GaussianDerivativeNetwork(
        scales=(1.0, 2.0), features=(3, 4), classes=3, pool="max", order=1, residual=True
    ),
    RieszNetwork(features=(3, 4), classes=3, channels=3, reading="max"),
    ScaleSteerableNetwork(features=(3, 4), classes=3, scales=(1.0, 2.0), size=5, hidden=6, dropout=0.2),
    SpatialTransformer(image=24, classes=3, windows="affine"),
]


@pytest.mark.parametrize("module", SMALL, ids=lambda module: type(module).__name__)
def test_a_loaded_rival_is_the_one_that_was_saved(module, tmp_path) -> None:
    PlainNetwork(module).save_pretrained(tmp_path)
    network = load(tmp_path)
    assert type(network.backbone) is type(module)
    assert network.backbone.arguments() == module.arguments()
    images = torch.randn(2, module.channels, 24, 24)
    with torch.no_grad():
        assert torch.equal(network(images), PlainNetwork(module).eval()(images))
