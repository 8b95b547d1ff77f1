"""What PyTorch can do with the networks: each line of the table in docs/guarantees.md."""

from __future__ import annotations

import copy
import inspect
import io
import pickle
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from helpers.lively import lively
from torch import Tensor, nn
from torch.func import functional_call, stack_module_state, vmap
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from scalechannels import PlainNetwork, ScaleGrid, fovlse, sampling, swmax
from scalechannels.backbones.paper import mnist_backbone
from scalechannels.dense import DenseNetwork
from scalechannels.detection.detector import Detector

GRID = ScaleGrid.of(0.5, 1, 2)
SIDE = 48

NETWORKS: dict[str, Callable[[], nn.Module]] = {
    "centre": lambda: fovlse(GRID),
    "centre, antialias": lambda: fovlse(GRID, antialias=True, outside="reflect"),
    "centre, blur": lambda: fovlse(GRID, blur=0.5),
    "centre, constant, shifts": lambda: fovlse(GRID, outside="constant", shifts=1),
    "everywhere": lambda: swmax(GRID, batch_norm=True),
    "everywhere, each": lambda: swmax(GRID, norm="each"),
    "plain": lambda: PlainNetwork(mnist_backbone(window=SIDE)),
    "dense": lambda: DenseNetwork(fovlse(GRID)),
}
every_network = pytest.mark.parametrize("name", NETWORKS)


def made(name: str) -> nn.Module:
    torch.manual_seed(0)
    return lively(NETWORKS[name]())


def images(count: int = 2, size: tuple[int, int] = (SIDE, SIDE), seed: int = 0) -> Tensor:
    return torch.randn(count, 1, *size, generator=torch.Generator().manual_seed(seed))


def logits(said: Any) -> Tensor:
    return said if isinstance(said, Tensor) else said[0]


def assert_same(one: Any, other: Any, tolerance: float = 1e-5) -> None:
    """Equal up to rounding, beside the largest logit."""
    found, expected = logits(one).detach().double(), logits(other).detach().double()
    assert found.shape == expected.shape
    assert float((found - expected).abs().max()) <= tolerance * max(1.0, float(expected.abs().max()))


ON_THE_HOST = {"discrete_gaussian_kernel"}
"""Computes on the CPU wherever the images are, and gives numbers of their type."""


class NoFloat64(TorchDispatchMode):
    """Stands for a device without float64, such as Apple's GPUs: making such a tensor is an error."""

    def __torch_dispatch__(
        self, function: Any, types: Sequence[type], args: Any = (), kwargs: Any = None
    ) -> Any:
        made = function(*args, **(kwargs or {}))
        if any(isinstance(value, Tensor) and value.dtype == torch.float64 for value in tree_leaves(made)):
            callers = {frame.function for frame in inspect.stack(0)}
            if not callers & ON_THE_HOST:
                raise TypeError("this device has no float64")
        return made


@pytest.fixture
def cpu_without_float64(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    monkeypatch.setattr(sampling, "WITHOUT_FLOAT64", ("cpu",))
    return monkeypatch


@every_network
def test_moves_to_and_computes_on_a_device_without_float64(
    name: str, cpu_without_float64: pytest.MonkeyPatch
) -> None:
    exact = copy.deepcopy(made(name)).double()
    network = made(name).to("meta").to_empty(device="cpu")  # made with float64, it moves to such a device
    network.load_state_dict(made(name).state_dict())
    with NoFloat64():
        network.to("cpu")
        said = network.eval()(images())
    assert_same(said, exact(images().double()), 1e-4)


@pytest.mark.parametrize("sparse", [False, True], ids=["everywhere", "at interest points"])
def test_a_detector_computes_on_a_device_without_float64(
    sparse: bool, cpu_without_float64: pytest.MonkeyPatch
) -> None:
    torch.manual_seed(0)
    network, image = lively(fovlse(GRID)), 3 * images(1)[0]

    def find() -> list[Any]:
        detector = Detector(network, threshold=0.01)
        found = detector.at_interest_points(image) if sparse else detector(image)
        return sorted(found, key=lambda one: one.box)

    with NoFloat64():
        found = find()
    cpu_without_float64.undo()
    expected = find()
    assert found
    assert [one.label for one in found] == [one.label for one in expected]
    for one, other in zip(found, expected, strict=True):
        assert one.box == pytest.approx(other.box, abs=1e-3)


@every_network
def test_all_tensors_move_to_meta_and_back(name: str) -> None:
    network = made(name)
    moved = made(name).to("meta")
    assert all(value.is_meta for value in (*moved.parameters(), *moved.buffers()))
    if name != "dense":  # which looks at positions
        said = moved(images().to("meta"))
        assert said.is_meta
        assert said.shape == network(images()).shape
    moved.to_empty(device="cpu").load_state_dict(network.state_dict())
    assert torch.equal(logits(moved(images())), logits(network(images())))


@every_network
def test_made_on_meta_and_filled(name: str) -> None:
    network = made(name)
    with torch.device("meta"):
        empty = NETWORKS[name]()
    empty.to_empty(device="cpu").load_state_dict(network.state_dict())
    assert torch.equal(logits(empty.eval()(images())), logits(network(images())))


def saved_whole(network: nn.Module) -> nn.Module:
    file = io.BytesIO()
    torch.save(network, file)
    file.seek(0)
    return torch.load(file, weights_only=False)


@every_network
@pytest.mark.parametrize(
    "copied", [copy.deepcopy, lambda network: pickle.loads(pickle.dumps(network)), saved_whole]
)
@torch.no_grad()  # where batch norm is folded, which must not be kept either
def test_a_copy_answers_the_same_and_is_its_own(name: str, copied: Callable[[nn.Module], nn.Module]) -> None:
    network = made(name)
    before = logits(network(images()))
    other = copied(network)
    assert torch.equal(logits(other(images())), before)
    for weight in other.parameters():
        weight.add_(1)
    assert torch.equal(logits(network(images())), before)
    assert not torch.equal(logits(other(images())), before)


@every_network
@pytest.mark.filterwarnings("ignore")  # PyTorch itself says that it is deprecated
def test_a_trace_is_refused(name: str) -> None:
    """It would keep the size of its example: an answer for another size could be wrong."""
    with pytest.raises(TypeError, match=r"torch\.export"):
        torch.jit.trace(made(name), images(), check_trace=False)


@every_network
@pytest.mark.filterwarnings("ignore")
def test_scripting_is_an_error(name: str) -> None:
    with pytest.raises(Exception, match=r"annotation|compile|script"):
        torch.jit.script(made(name))


@every_network
@pytest.mark.parametrize("learning", [False, True])
def test_other_weights_by_functional_call(name: str, learning: bool) -> None:
    network, other = made(name), made(name)
    with torch.no_grad():
        for weight in other.parameters():
            weight.mul_(1.5)
    with torch.set_grad_enabled(learning):
        before = logits(network(images()))
        said = functional_call(network, other.state_dict(), (images(),))
        assert torch.equal(logits(said), logits(other(images())))
        assert torch.equal(logits(network(images())), before)


@every_network
@pytest.mark.parametrize("learning", [False, True])
def test_several_networks_as_one_by_vmap(name: str, learning: bool) -> None:
    networks = [made(name), made(name)]
    with torch.no_grad():
        for weight in networks[1].parameters():
            weight.mul_(1.5)
    given = images()

    def call(weights: dict[str, Tensor], buffers: dict[str, Tensor]) -> Tensor:
        return logits(functional_call(networks[0], (weights, buffers), (given,)))

    with torch.set_grad_enabled(learning):
        together = vmap(call)(*stack_module_state(networks))
        assert_same(together, torch.stack([logits(one(given)) for one in networks]))


@every_network
@pytest.mark.parametrize("kind", [torch.float64, torch.float16, torch.bfloat16], ids=str)
def test_other_types(name: str, kind: torch.dtype) -> None:
    network = made(name)
    said = logits(copy.deepcopy(network).to(kind)(images().to(kind)))
    assert said.dtype == kind
    assert_same(said, network(images()), {torch.float64: 1e-5, torch.float16: 1e-2}.get(kind, 0.1))


@every_network
@pytest.mark.parametrize("learning", [False, True])
def test_autocast(name: str, learning: bool) -> None:
    network = made(name)
    with torch.set_grad_enabled(learning):
        with torch.autocast("cpu", torch.bfloat16):
            said = network(images())
        assert_same(logits(said).float(), network(images()), 0.1)


@pytest.mark.parametrize("name", ["centre", "centre, antialias", "centre, blur", "centre, constant, shifts"])
@pytest.mark.parametrize("kind", [torch.float32, torch.float16, torch.bfloat16], ids=str)
def test_windows_have_their_digits_in_half_precision(name: str, kind: torch.dtype) -> None:
    """A column of 1,003.5 is no number of bfloat16: where a window looks does not depend on the type."""
    foveate, given = NETWORKS[name]().foveate, images(1, (40, 2000)).to(kind)
    centres = torch.tensor([[19.5, 1003.5]])
    expected = foveate(given.double(), centres.double())
    with torch.autocast("cpu", torch.bfloat16, enabled=kind == torch.float32):
        found = foveate(given, centres)
    digits = {torch.float32: 1e-3, torch.float16: 1e-2, torch.bfloat16: 3e-2}[kind]
    torch.testing.assert_close(found.double(), expected, rtol=0, atol=digits)


@pytest.mark.parametrize("kind", [torch.float16, torch.bfloat16, "autocast"], ids=str)
def test_places_have_their_digits_in_half_precision(kind: Any) -> None:
    """A row of 1,003.5 is no number of bfloat16: rows and columns do not depend on the type of the logits."""
    network = lively(swmax(ScaleGrid.of(1)))
    image = torch.zeros(1, 1, 40, 2000)
    image[..., 1830:1850] = images(1, (40, 20))
    expected = network.explain(image).places
    with torch.autocast("cpu", torch.bfloat16, enabled=kind == "autocast"):
        if kind == "autocast":
            found = network.explain(image).places
        else:
            found = network.to(kind).explain(image.to(kind)).places
    assert found.dtype == torch.float32
    steps = (found - expected) / 4  # it may find a neighbour as strong, a whole number of strides away
    assert torch.equal(steps, steps.round())


@every_network
def test_the_layout_in_memory_changes_nothing(name: str) -> None:
    network, given = made(name), images()
    expected = logits(network(given))
    last = given.to(memory_format=torch.channels_last)
    strided = torch.as_strided(
        given, given.shape, (SIDE**2, 1, SIDE, 1)
    )  # as channels_last has it of one channel
    for other in (last, strided, given.transpose(2, 3).contiguous().transpose(2, 3)):
        assert torch.equal(logits(network(other)), expected)


@pytest.mark.parametrize("name", [name for name in NETWORKS if name != "dense"])
def test_weights_of_another_type_are_named(name: str) -> None:
    with pytest.raises(TypeError, match=r"images are torch.float32, the .* weights torch.float64: convert"):
        made(name).double()(images())


@pytest.mark.parametrize("name", [name for name in NETWORKS if name != "dense"])
def test_data_parallel_without_devices_is_the_network(name: str) -> None:
    network = made(name)
    assert torch.equal(nn.DataParallel(network)(images()), network(images()))


@pytest.mark.parametrize("name", [name for name in NETWORKS if name != "dense"])
def test_distributed_data_parallel_learns_the_same(name: str, tmp_path: Path) -> None:
    """In one process: each weight gets the gradient that it has without."""
    network, alone = made(name).train(), made(name).train()
    torch.distributed.init_process_group("gloo", init_method=f"file://{tmp_path}/met", rank=0, world_size=1)
    try:
        torch.manual_seed(0)  # dropout
        nn.parallel.DistributedDataParallel(network)(images()).logsumexp(1).sum().backward()
    finally:
        torch.distributed.destroy_process_group()
    torch.manual_seed(0)
    alone(images()).logsumexp(1).sum().backward()
    for mine, other in zip(network.parameters(), alone.parameters(), strict=True):
        assert torch.equal(mine.grad, other.grad)


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of PyTorch's own code
@pytest.mark.parametrize("name", ["centre", "centre, antialias", "everywhere", "plain", "dense"])
def test_compiled_in_one_graph_by_the_default_backend(name: str) -> None:
    network = made(name)
    torch.compiler.reset()
    with torch.no_grad():
        assert_same(torch.compile(network, fullgraph=True)(images(1)), network(images(1)), 1e-4)


@pytest.mark.slow
@every_network
def test_exported_by_torch(name: str) -> None:
    """With a batch of any size; an image of another size than the graph's is an error, not another answer."""
    network = made(name)
    count = 1 if name == "dense" else 2
    free = {} if name == "dense" else {0: torch.export.Dim("batch", max=64)}
    with torch.no_grad():
        program = torch.export.export(network, (images(count),), dynamic_shapes={"images": free}).module()
        for batch in {count, 1 if name == "dense" else 5}:
            assert_same(program(images(batch)), network(images(batch)), 1e-4)
        if name != "plain":
            with pytest.raises((AssertionError, RuntimeError)):
                program(images(count, (SIDE + 8, SIDE + 4)))


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in NETWORKS if name.startswith("centre")])
def test_exported_by_torch_for_images_of_any_size(name: str) -> None:
    network = made(name)
    free = {0: torch.export.Dim("batch", max=64)}
    free |= {axis: torch.export.Dim(side, min=4, max=4096) for axis, side in ((2, "height"), (3, "width"))}
    program = torch.export.export(network, (images(),), dynamic_shapes={"images": free}).module()
    for batch, size in ((1, (33, 90)), (3, (20, 20)), (2, (150, 64))):
        assert_same(program(images(batch, size)), network(images(batch, size)))
