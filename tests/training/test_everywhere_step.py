"""Training a network that looks everywhere as a captured graph: a step asks the host nothing.

There is no GPU here, so what a graph must not contain is looked for among the operations of a step.
"""

import copy

import pytest
import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from scalechannels import LogMeanExpOverScales, ScaleChannelNetwork, ScaleGrid
from scalechannels.backbones.paper import mnist_backbone
from scalechannels.training.augment.decoys import Decoys
from scalechannels.training.augment.flips_and_crops import FlipsAndCrops
from scalechannels.training.build import build_network
from scalechannels.training.config import DataConfig, NetworkConfig, RunConfig, TrainingConfig
from scalechannels.training.inputs import Alone
from scalechannels.training.stacking import can_stack
from scalechannels.training.trainer import Trainer

ASKING = ("_local_scalar_dense", "nonzero", "item", "masked_select", "unique", "equal")
"""Operations whose result, or its shape, the host has to wait for."""


class Shapes(TorchDispatchMode):
    """The shapes of all that a step computes; an error for what asks the host."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[object] = []

    def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
        name = operation.overloadpacket.__name__
        assert name not in ASKING, f"a captured graph cannot hold {name}"
        result = operation(*args, **(kwargs or {}))
        self.seen.append((name, getattr(result, "shape", None)))
        return result


def network(**options) -> ScaleChannelNetwork:
    torch.manual_seed(0)
    grid = ScaleGrid.of(0.7, 1, 2)
    backbone = mnist_backbone(window=13, classes=3)
    return ScaleChannelNetwork(backbone, grid, LogMeanExpOverScales(), 13, look="everywhere", **options)


@pytest.mark.parametrize("factor", [None, 4.0])
@pytest.mark.parametrize("options", [{}, {"antialias": True, "places": "logmeanexp"}], ids=str)
def test_every_step_is_the_same_operations_and_asks_nothing(options, factor):
    images, labels = torch.randn(1, 12, 1, 33, 33), torch.randint(3, (1, 12))
    shifted = FlipsAndCrops(None, outside="border", crops=3)
    net = network(**options)
    trainer = Trainer(
        Alone(net, windows=False, decoys=None if factor is None else Decoys(net, factor)),
        images,
        labels,
        [0],
        precision="float32",
        augmentations=[shifted],
    )
    trainer.rates[1.0].fill_(1e-3)
    trainer.order = torch.randperm(12).view(1, 3, 4)
    steps = []
    for _ in range(3):
        with Shapes() as shapes:
            trainer._step()
        steps.append(shapes.seen)
    assert steps[0] == steps[1] == steps[2]
    assert len(steps[0]) > 100


def test_on_a_gpu_it_is_captured_and_compiled_but_not_stacked():
    """Batch norm needs every place, so that its strongest places alone do not do."""
    assert not can_stack(network())
    data = DataConfig("mnist", places="anywhere")
    config = RunConfig(data, NetworkConfig(look="everywhere", high=4.0), TrainingConfig(crops=3))
    made = build_network(config.resolve("cuda"))
    assert made.look == "everywhere"  # for which `Group` compiles the step
    assert made.backbone.batch_norm


@pytest.mark.slow
@pytest.mark.filterwarnings(
    "ignore:.*should not be instantiated:DeprecationWarning"
)  # by the compiler itself
def test_the_step_is_one_graph_and_computes_the_same():
    net = network()
    for module in net.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.0
    other, images = copy.deepcopy(net), torch.randn(4, 1, 33, 33)
    torch.compiler.reset()
    graph = torch.compile(
        lambda one: net(one).logsumexp(1).sum(), backend="aot_eager", fullgraph=True, dynamic=False
    )
    results = []
    for model, loss in ((net, graph(images)), (other, other(images).logsumexp(1).sum())):
        loss.backward()
        state = [*model.state_dict().values(), *(weight.grad for weight in model.parameters())]
        results.append([loss.detach(), *state])
    torch.testing.assert_close(*results)
