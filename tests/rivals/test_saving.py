"""A rival in a folder: saved and loaded like our networks, without any code from the folder."""

import copy

import pytest
import torch

from scalechannels.plain import PlainNetwork
from scalechannels.rivals.gaussian_derivatives import GaussianDerivativeNetwork
from scalechannels.rivals.riesz import RieszNetwork
from scalechannels.rivals.rival import SIZES
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


@pytest.mark.parametrize("module", SMALL, ids=lambda module: type(module).__name__)
def test_what_was_used_first_can_be_learnt_later(module) -> None:
    """Filters that were made while it was used must not stand in the way."""
    network, images = PlainNetwork(copy.deepcopy(module)), torch.randn(2, module.channels, 24, 24)
    with torch.inference_mode():
        network.eval()(images)
    network.train()(images).sum().backward()
    assert all(weight.grad is not None for weight in network.backbone.parameters() if weight.requires_grad)


@pytest.mark.parametrize("rival", [GaussianDerivativeNetwork, RieszNetwork, ScaleSteerableNetwork])
def test_every_layer_has_features(rival) -> None:
    with pytest.raises(ValueError, match="features of layer 1 must be a whole number of at least 1; got 0"):
        rival(features=(0, 3))
    with pytest.raises(ValueError, match="channels must be a whole number of at least 1; got 0"):
        rival(channels=0)


@pytest.mark.parametrize("module", SMALL[:2], ids=lambda module: type(module).__name__)
@torch.no_grad()
def test_images_of_many_sizes_need_no_more_memory_than_some(module) -> None:
    network = PlainNetwork(copy.deepcopy(module)).eval()
    first = torch.randn(1, module.channels, 20, 21)
    said = network(first)
    for side in range(16, 30):
        network(torch.randn(1, module.channels, side, side + 1))
    kept = [part.made for part in network.modules() if hasattr(part, "made")]
    assert kept
    assert all(len(made) <= SIZES for made in kept)
    assert torch.equal(network(first), said)


@pytest.mark.parametrize("kind", [torch.float16, torch.bfloat16, torch.float64], ids=str)
@pytest.mark.parametrize("module", SMALL, ids=lambda module: type(module).__name__)
def test_rivals_compute_in_the_precision_of_their_weights(module, kind: torch.dtype) -> None:
    """Their filters need more digits than half precision has, and then take it up again."""
    network, images = PlainNetwork(copy.deepcopy(module)).eval(), torch.rand(2, module.channels, 24, 24)
    with torch.no_grad():
        expected = network(images)
        said = copy.deepcopy(network).to(kind)(images.to(kind))
    assert said.dtype == kind
    torch.testing.assert_close(said.float(), expected, atol=0.05, rtol=0.05)


@pytest.mark.parametrize("module", SMALL, ids=lambda module: type(module).__name__)
@torch.no_grad()
def test_what_no_weights_say_is_there_wherever_a_rival_moves(module, tmp_path) -> None:
    """Through `to_empty`, and through half precision and back; the filters of a basis are not saved."""
    network, images = PlainNetwork(copy.deepcopy(module)).eval(), torch.rand(2, module.channels, 24, 24)
    expected = network(images)
    emptied = copy.deepcopy(network).to("meta").to_empty(device="cpu")
    for moved in (emptied, copy.deepcopy(network).bfloat16().float()):
        moved.load_state_dict(network.state_dict())
        assert torch.equal(moved(images), expected)
    network.bfloat16().save_pretrained(tmp_path)
    assert torch.equal(load(tmp_path)(images.bfloat16()), network(images.bfloat16()))
