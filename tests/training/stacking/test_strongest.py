"""Both passes of a sliding-window stack drop the same and find the same; the kernels equal the plain code."""

import os
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from helpers.tiny_runs import tiny

from scalechannels.training import stacking
from scalechannels.training.build import build_network
from scalechannels.training.stacking.strongest import kept, plain_strongest_places

TESTS = Path(__file__).parents[2]
PATHS = os.pathsep.join(map(str, (TESTS, TESTS.parent)))  # this package, not an installed one
DROPOUT = 0.4


def test_dropout_keeps_its_share_of_every_feature_image_and_place() -> None:
    axes = torch.arange(64)
    mask = kept(torch.tensor([7]), axes[:, None, None], axes[:, None], axes, DROPOUT).float()  # (64, 64, 64)
    for dims in ((0, 1), (0, 2), (1, 2)):
        deviation = (mask.mean(dims) - (1 - DROPOUT)).abs().max()
        assert deviation < 5 * (DROPOUT * (1 - DROPOUT) / 64**2) ** 0.5
    # Neighbours along every axis are independent.
    for axis in range(3):
        both = mask.narrow(axis, 0, 63) * mask.narrow(axis, 1, 63)
        assert abs(float(both.mean()) - (1 - DROPOUT) ** 2) < 0.005


def test_another_seed_drops_others_and_zero_drops_nothing() -> None:
    axes = torch.arange(64)
    first, second = (
        kept(torch.tensor([seed]), axes[:, None], torch.tensor(3), axes, DROPOUT) for seed in (1, 2)
    )
    assert 0.3 < float((first != second).float().mean()) < 0.7
    assert kept(torch.tensor([1]), axes, axes, axes, 0.0).all()


@pytest.mark.parametrize("drop_features", [False, True])
def test_with_dropout_the_logits_are_the_maximum_over_all_places(drop_features, monkeypatch) -> None:
    """The oracle drops in the whole map of codes what `kept` says, at each place or at all of them."""
    config = tiny("swmax", dropout=DROPOUT, network={"drop_features": drop_features})
    network = build_network(config.resolve()).double()
    stack = stacking.stack([network], 44, 44).double().train()
    images = F.interpolate(torch.randn(1, 3, 14, 14).double(), (44, 44), mode="bilinear")
    images = images.movedim(1, 0)[None]  # (1, 3, 1, 44, 44)
    monkeypatch.setattr(torch.Tensor, "float", torch.Tensor.double)
    monkeypatch.setattr(torch, "randint", lambda *_, **__: torch.tensor([99]))

    canvases = stack.canvas(images[0])
    backbone = network.backbone
    codes = F.relu(
        F.conv2d(
            backbone.convolutions(canvases), backbone.dense.weight.view(100, 32, 4, 4), backbone.dense.bias
        )
    )
    codes = codes.flatten(2).mT[:, stack.canvas.places]  # (B, P, hidden)
    mask = kept(
        torch.tensor([99]),
        torch.arange(3)[:, None, None],
        stack.canvas.places[:, None] * (not drop_features),
        torch.arange(100),
        DROPOUT,
    )
    logits = backbone.classifier(codes * mask / (1 - DROPOUT))
    torch.testing.assert_close(stack(images)[0], logits.amax(1))


def problem(device: str = "cpu", dtype: torch.dtype = torch.float32) -> tuple:
    """The paper's layers with random weights, two runs of three canvases, two thirds of the places."""
    draw = torch.Generator().manual_seed(0)
    features = (1, 16, 16, 32, 32)
    shapes = [(9 * a, b) for a, b in pairwise(features)] + [(512, 100), (100, 10)]
    weights = [torch.randn(2, rows, out, generator=draw) * (2 / rows) ** 0.5 for rows, out in shapes]
    biases = [torch.randn(2, 1, out, generator=draw) * 0.1 for _, out in shapes]
    canvases = torch.randn(2, 3, 44, 100, 1, generator=draw).to(dtype)
    places = torch.randperm(5 * 19, generator=draw)[:64].sort().values
    return (
        canvases.to(device),
        [weight.to(device) for weight in weights],
        [bias.to(device) for bias in biases],
        [1, 2, 1, 2],
        places.to(device),
        torch.tensor([12345], device=device),
    )


def compare_kernels(device: str) -> None:
    from scalechannels.training.stacking import strongest_kernels

    strongest_kernels.BLOCK = 32  # several blocks, the last one not full
    for dropout, per_place in ((0.0, True), (DROPOUT, True), (DROPOUT, False)):
        arguments = (*problem(device), dropout, per_place)
        places, mask = plain_strongest_places(*arguments)
        assert len(places.unique()) > 10
        found = strongest_kernels.strongest_places(*arguments)
        assert torch.equal(found[0], places)
        assert torch.equal(found[1], mask)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_the_kernels_find_the_same_places_on_a_gpu() -> None:
    compare_kernels("cuda")


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="Triton is for Linux")
def test_the_kernels_find_the_same_places_when_interpreted() -> None:
    """Without a GPU Triton runs its kernels in NumPy, if it is told so before it is imported."""
    done = subprocess.run(
        [sys.executable, "-c", "from test_strongest import compare_kernels; compare_kernels('cpu')"],
        cwd=os.path.dirname(__file__),
        env={**os.environ, "TRITON_INTERPRET": "1", "PYTHONPATH": PATHS},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
