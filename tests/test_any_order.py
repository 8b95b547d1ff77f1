"""Whatever is done to a network, in whatever order: it answers as a fresh one with the same weights.

SEQUENCES=1000 pytest tests/test_any_order.py tries more than the few of an ordinary run.
"""

import copy
import os
import tempfile
import warnings
from typing import Any

import torch
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from torch import Tensor, nn

import scalechannels
from scalechannels import (
    DenseNetwork,
    Detector,
    LogMeanExpOverScales,
    MaxOverScales,
    MeanOverScales,
    PlainNetwork,
    Predictor,
    ScaleChannelNetwork,
    ScaleGrid,
    averaged_over_scales,
    evidence_centres,
    expected_window,
    scale_contributions,
    scale_invariance_error,
    selected_scale,
)
from scalechannels.backbones.paper import ConvBackbone
from scalechannels.data.frames import reduced
from scalechannels.rivals.gaussian_derivatives import GaussianDerivativeNetwork

GRID = ScaleGrid(0.5, 2, ratio=2.0)
POOLINGS = (MaxOverScales, MeanOverScales, LogMeanExpOverScales)
WITH_CHANNELS = ("centre", "everywhere")
KINDS = (*WITH_CHANNELS, "whole, resized", "a rival")
IMAGES = torch.rand(3, 1, 33, 41, generator=torch.Generator().manual_seed(0))
BACKGROUND = 3
USAGE = {"classes": ["a", "b", "c"], "background": BACKGROUND, "values": "unit", "detector": None}

has_channels = precondition(lambda self: self.kind in WITH_CHANNELS)
has_blocks = precondition(lambda self: self.kind != "a rival")


def made(kind: str, pool: type[nn.Module]) -> Any:
    if kind == "a rival":
        return PlainNetwork(GaussianDerivativeNetwork(scales=(1.0, 2.0), features=(3, 4), classes=4))
    backbone = ConvBackbone((3, 3, 4, 4), classes=4, hidden=5)
    if kind == "whole, resized":
        return PlainNetwork(backbone, resize=True)
    return ScaleChannelNetwork(backbone, GRID, pool(), look=kind)  # type: ignore[arg-type]


def answers(network: Any, learning: bool = False) -> Tensor:
    """Of a network that is left in the mode it is in: as it would answer when used, batch norm folded."""
    with torch.set_grad_enabled(learning):
        said = network.explain(IMAGES)
    assert said.logits.isfinite().all()
    return said.logits


def same(one: Tensor, other: Tensor) -> None:
    torch.testing.assert_close(one, other, atol=1e-4, rtol=1e-4)


class AnyOrder(RuleBasedStateMachine):
    """One network to which everything happens. What only looks must leave no trace."""

    @initialize(
        kind=st.sampled_from(KINDS),
        pool=st.sampled_from(POOLINGS),
        reduce=st.integers(1, 2),
        seed=st.integers(0, 99),
    )
    def begin(self, kind: str, pool: type[nn.Module], reduce: int, seed: int) -> None:
        torch.manual_seed(seed)
        self.kind, self.pool = kind, pool
        self.usage: dict[str, Any] = {**USAGE, "reduce": reduce}
        self.slopes: dict[int, float] = {}
        """Of the blocks whose activation was replaced."""
        self.network = made(kind, pool)
        self.network.usage = dict(self.usage)
        self.dense: DenseNetwork | None = None
        self.detector: Detector | None = None

    # What changes the network

    @rule(learning=st.booleans())
    def mode(self, learning: bool) -> None:
        self.network.train(learning)

    @rule(number=st.integers(0, 99))
    def mode_of_a_part(self, number: int) -> None:
        parts = list(self.network.modules())
        parts[number % len(parts)].train()

    @rule()
    def step(self) -> None:
        self.network.train()
        optimiser = torch.optim.SGD(self.network.parameters(), lr=0.01)
        self.network(IMAGES).square().mean().backward()
        optimiser.step()
        optimiser.zero_grad()

    @rule(number=st.integers(0, 99), factor=st.floats(0.5, 1.5))
    @torch.no_grad()
    def weights_in_place(self, number: int, factor: float) -> None:
        layers = [layer for layer in self.network.modules() if isinstance(layer, nn.Conv2d)]
        layers[number % len(layers)].weight.mul_(factor)

    @rule()
    @torch.no_grad()
    def statistics_in_place(self) -> None:
        next(one for one in self.network.modules() if isinstance(one, nn.BatchNorm2d)).running_mean.add_(0.1)

    @rule()
    def new_layer(self) -> None:
        place, index = (
            (self.network.backbone.combined, 1)
            if self.kind == "a rival"
            else (self.network.backbone.convolutions[3], 0)
        )
        old = place[index]
        place[index] = nn.Conv2d(
            old.in_channels, old.out_channels, old.kernel_size, old.stride, bias=old.bias is not None
        )

    @has_blocks
    @rule(block=st.integers(0, 3), slope=st.floats(0.1, 0.9))
    def new_activation(self, block: int, slope: float) -> None:
        self.slopes[block] = slope
        self.network.backbone.convolutions[block][2] = nn.LeakyReLU(slope)

    @rule()
    def other_weights(self) -> None:
        torch.manual_seed(7)
        self.network.load_state_dict(made(self.kind, self.pool).state_dict())

    @rule(temperature=st.floats(0.5, 2))
    def calibrated(self, temperature: float) -> None:
        self.usage["temperature"] = temperature
        self.network.usage = dict(self.usage)

    @rule()
    def saved_and_loaded(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            self.saved(self.network, folder)
            self.network = scalechannels.load(folder, **self.parts())
        assert self.network.usage == self.usage
        self.dense, self.detector = None, None

    @rule(kind=st.sampled_from((torch.float64, torch.float32)))
    def precision(self, kind: torch.dtype) -> None:
        self.network.to(kind).float()

    # What only looks

    @rule()
    def forward_without_gradients(self) -> None:
        if not any(part.training for part in self.network.modules()):
            with torch.inference_mode():
                self.network(IMAGES)

    @rule()
    def explained(self) -> None:
        def look() -> None:
            evidence_centres(self.network, IMAGES)
            scale_invariance_error(self.network, IMAGES, [0.7])
            if self.kind in WITH_CHANNELS:
                scale_contributions(self.network, IMAGES)
                selected_scale(self.network, IMAGES)
            if self.kind == "everywhere":
                expected_window(self.network, IMAGES)

        self.unchanged(look)

    @has_channels
    @rule()
    def dense_map(self) -> None:
        def look() -> None:
            self.dense = self.dense or DenseNetwork(self.network, step=8)
            same(self.dense(IMAGES[:1]).logits, DenseNetwork(self.fresh(), step=8)(IMAGES[:1]).logits)

        self.unchanged(look)

    @has_channels
    @rule()
    def detected(self) -> None:
        def look() -> None:
            self.detector = self.detector or Detector(self.network, threshold=0.2)
            fresh = Detector(self.fresh(), threshold=0.2)(IMAGES[0])
            assert len(self.detector(IMAGES[0])) == len(fresh)

        self.unchanged(look)

    @has_channels
    @rule(threshold=st.floats(0.2, 0.4))
    def detector_saved_and_loaded(self, threshold: float) -> None:
        def look() -> None:
            own = Detector(self.network, threshold=threshold)
            with tempfile.TemporaryDirectory() as folder:
                self.saved(own, folder)
                again = scalechannels.load(folder, **self.parts())
            assert (type(again), again.background, again.rules) == (Detector, BACKGROUND, own.rules)
            assert again.network.usage == {**self.usage, "detector": again.network.usage["detector"]}
            assert again(IMAGES[0]) == own(IMAGES[0])

        self.unchanged(look)

    @rule(kind=st.sampled_from((torch.float32, torch.float64, torch.bfloat16)))
    def predicted(self, kind: torch.dtype) -> None:
        """From a folder, as the command line does it: reduced first, and calibrated."""
        if self.slopes:
            return  # only whoever has the changed layers can load it

        def look() -> None:
            whole = copy.deepcopy(self.network).to(kind)
            fresh = self.fresh().to(kind).float()
            self.answers_from_a_folder(whole, fresh, self.usage.get("temperature", 1.0))

        self.unchanged(look)

    @precondition(lambda self: self.kind == "whole, resized")
    @rule()
    def averaged(self) -> None:
        """A network that is made of this one is used like it."""
        if self.slopes:
            return

        def look() -> None:
            whole, fresh = (averaged_over_scales(one, GRID, 1) for one in (self.network, self.fresh()))
            self.answers_from_a_folder(whole, fresh.eval(), 1.0)  # whose logits nobody has calibrated

        self.unchanged(look)

    def answers_from_a_folder(self, whole: Any, fresh: Any, temperature: float) -> None:
        """A network that is saved and asked, and what a fresh one says."""
        with tempfile.TemporaryDirectory() as folder:
            self.saved(whole, folder)
            said = Predictor(folder)(IMAGES[0])
        with torch.no_grad():
            logits = fresh(reduced(IMAGES[0], self.usage["reduce"])[None])
        same(torch.tensor(list(said.probabilities.values())), (logits / temperature).softmax(1)[0])
        assert list(said.probabilities) == ["a", "b", "c", "background"]

    def unchanged(self, look: Any) -> None:
        modes = [part.training for part in self.network.modules()]
        before = {name: value.clone() for name, value in self.network.state_dict().items()}
        look()
        assert [part.training for part in self.network.modules()] == modes
        assert all(torch.equal(value, before[name]) for name, value in self.network.state_dict().items())
        assert self.network.usage == self.usage

    def saved(self, whole: Any, folder: str) -> None:
        with warnings.catch_warnings():
            if self.slopes:
                warnings.filterwarnings("ignore", "layers of the backbone were changed")
            whole.save_pretrained(folder)

    def parts(self) -> dict[str, nn.Module]:
        """What only the user has who changed layers."""
        return {"backbone": self.fresh().backbone} if self.slopes else {}

    def fresh(self) -> Any:
        network = made(self.kind, self.pool)
        for block, slope in self.slopes.items():
            network.backbone.convolutions[block][2] = nn.LeakyReLU(slope)
        network.load_state_dict(self.network.state_dict())
        network.usage = dict(self.usage)
        return network.eval()

    @invariant()
    def answers_as_a_fresh_one(self) -> None:
        if hasattr(self, "network"):
            expected = answers(self.fresh(), learning=True)  # nothing is folded
            self.unchanged(lambda: same(answers(self.network), expected))


AnyOrder.TestCase.settings = settings(
    max_examples=int(os.environ.get("SEQUENCES", 15)),
    stateful_step_count=12,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
test_in_any_order = AnyOrder.TestCase
