"""Whatever is done to a network, in whatever order: it answers as a fresh one with the same weights.

SEQUENCES=1000 pytest tests/test_any_order.py tries more than the few of an ordinary run.
"""

import os
import tempfile
from typing import Any

import torch
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from torch import Tensor, nn

import scalechannels
from scalechannels import (
    DenseNetwork,
    Detector,
    LogMeanExpOverScales,
    MaxOverScales,
    MeanOverScales,
    ScaleChannelNetwork,
    ScaleGrid,
    scale_contributions,
    selected_scale,
)
from scalechannels.backbones.paper import ConvBackbone

GRID = ScaleGrid(0.5, 2, ratio=2.0)
POOLINGS = (MaxOverScales, MeanOverScales, LogMeanExpOverScales)
IMAGES = torch.randn(3, 1, 33, 41, generator=torch.Generator().manual_seed(0))


def made(pool: type[nn.Module], look: str) -> ScaleChannelNetwork:
    backbone = ConvBackbone((3, 3, 4, 4), classes=4, hidden=5)
    return ScaleChannelNetwork(backbone, GRID, pool(), look=look)  # type: ignore[arg-type]


def answers(network: ScaleChannelNetwork, learning: bool = False) -> Tensor:
    """Of a network that is left in the mode it is in: as it would answer when used, batch norm folded."""
    with torch.set_grad_enabled(learning):
        said = network.explain(IMAGES)
    assert said.logits.isfinite().all()
    return said.logits


class AnyOrder(RuleBasedStateMachine):
    """One network to which everything happens. What only looks must leave no trace."""

    @initialize(
        pool=st.sampled_from(POOLINGS),
        look=st.sampled_from(("centre", "everywhere")),
        seed=st.integers(0, 99),
    )
    def begin(self, pool: type[nn.Module], look: str, seed: int) -> None:
        torch.manual_seed(seed)
        self.pool, self.look = pool, look
        self.network = made(pool, look)
        self.dense: DenseNetwork | None = None
        self.detector: Detector | None = None

    # What changes the network

    @rule(learning=st.booleans())
    def mode(self, learning: bool) -> None:
        self.network.train(learning)

    @rule(part=st.sampled_from(("backbone", "backbone.convolutions", "backbone.convolutions.1.1")))
    def mode_of_a_part(self, part: str) -> None:
        self.network.get_submodule(part).train()

    @rule()
    def step(self) -> None:
        self.network.train()
        optimiser = torch.optim.SGD(self.network.parameters(), lr=0.01)
        self.network(IMAGES).square().mean().backward()
        optimiser.step()
        optimiser.zero_grad()

    @rule(factor=st.floats(0.5, 1.5))
    @torch.no_grad()
    def weights_in_place(self, factor: float) -> None:
        self.network.backbone.convolutions[2][0].weight.mul_(factor)

    @rule()
    @torch.no_grad()
    def statistics_in_place(self) -> None:
        self.network.backbone.convolutions[0][1].running_mean.add_(0.1)

    @rule()
    def new_layer(self) -> None:
        block = self.network.backbone.convolutions[3]
        block[0] = nn.Conv2d(4, 4, 3, stride=block[0].stride, bias=block[0].bias is not None)

    @rule()
    def other_weights(self) -> None:
        torch.manual_seed(7)
        self.network.load_state_dict(made(self.pool, self.look).state_dict())

    @rule()
    def saved_and_loaded(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            self.network.save_pretrained(folder)
            loaded: Any = scalechannels.load(folder)
        self.network, self.dense, self.detector = loaded, None, None

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
        self.unchanged(
            lambda: (scale_contributions(self.network, IMAGES), selected_scale(self.network, IMAGES))
        )

    @rule()
    def dense_map(self) -> None:
        def look() -> None:
            self.dense = self.dense or DenseNetwork(self.network, step=8)
            fresh = DenseNetwork(self.fresh(), step=8)(IMAGES[:1])
            torch.testing.assert_close(self.dense(IMAGES[:1]).logits, fresh.logits, atol=1e-4, rtol=1e-4)

        self.unchanged(look)

    @rule()
    def detected(self) -> None:
        def look() -> None:
            self.detector = self.detector or Detector(self.network, background=3, threshold=0.2)
            fresh = Detector(self.fresh(), background=3, threshold=0.2)(IMAGES[0])
            assert len(self.detector(IMAGES[0])) == len(fresh)

        self.unchanged(look)

    def unchanged(self, look: Any) -> None:
        modes = [part.training for part in self.network.modules()]
        before = {name: value.clone() for name, value in self.network.state_dict().items()}
        look()
        assert [part.training for part in self.network.modules()] == modes
        assert all(torch.equal(value, before[name]) for name, value in self.network.state_dict().items())

    def fresh(self) -> ScaleChannelNetwork:
        network = made(self.pool, self.look)
        network.load_state_dict(self.network.state_dict())
        return network.eval()

    @invariant()
    def answers_as_a_fresh_one(self) -> None:
        if hasattr(self, "network"):
            expected = answers(self.fresh(), learning=True)  # nothing is folded
            torch.testing.assert_close(answers(self.network), expected, atol=1e-4, rtol=1e-4)


AnyOrder.TestCase.settings = settings(
    max_examples=int(os.environ.get("SEQUENCES", 15)),
    stateful_step_count=12,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
test_in_any_order = AnyOrder.TestCase
