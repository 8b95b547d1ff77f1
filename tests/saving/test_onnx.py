"""ONNX files give what PyTorch gives, for every network; a wrong one is never left behind."""

import builtins
import json
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from helpers.command_line import run as run_command
from helpers.lively import lively
from PIL import Image
from torch import Tensor, nn

import scalechannels
from scalechannels import (
    LogMeanExpOverScales,
    MaxOverScales,
    PlainNetwork,
    ScaleChannelNetwork,
    ScaleGrid,
    averaged_over_scales,
    cnn,
    fovavg,
    fovconc,
    fovlse,
    fovmax,
    swmax,
)
from scalechannels.backbones.inference import Backbone
from scalechannels.backbones.paper import ConvBackbone, mnist_backbone
from scalechannels.data.frames import reduced
from scalechannels.data.pictures import BACKGROUND, read_image
from scalechannels.dense import DenseNetwork
from scalechannels.saving.onnx import ExportError, export_onnx
from scalechannels.training.config import DataConfig, RunConfig

pytestmark = pytest.mark.usefixtures("one_thread")

GRID = ScaleGrid.of(0.7, 1, 2)


class OwnBackbone(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Conv2d(2, 3, 3, stride=2), nn.ReLU(), nn.Flatten(), nn.Linear(48, 4))

    def forward(self, windows: Tensor) -> Tensor:
        return self.layers(windows)


BUILDS = {
    "fovmax": lambda: fovmax(GRID),
    "fovavg": lambda: fovavg(GRID),
    "fovlse": lambda: fovlse(GRID),
    "fovconc": lambda: fovconc(GRID),
    "fovmax-cifar10": lambda: fovmax(GRID, data="cifar10"),
    "fovconc-cifar10": lambda: fovconc(GRID, data="cifar10"),
    "swmax": lambda: swmax(GRID),
    "anywhere": lambda: ScaleChannelNetwork(
        mnist_backbone(window=13),
        GRID,
        LogMeanExpOverScales(),
        13,
        look="everywhere",
        antialias=True,
        area_power=1.0,
    ),
    "cnn": lambda: cnn(),
    "cnn-cifar10": lambda: cnn(data="cifar10"),
    "averaged": lambda: averaged_over_scales(cnn(), GRID, 1.0),
    "antialias": lambda: fovlse(GRID, antialias=True),
    "blur": lambda: fovlse(GRID, blur=0.4),
    "antialias, blur, reflect": lambda: fovavg(GRID, data="cifar10", antialias=True, blur=0.4),
    "own": lambda: ScaleChannelNetwork(OwnBackbone(), GRID, MaxOverScales(), window=9),
    "own head": lambda: ScaleChannelNetwork(
        OwnBackbone(), GRID, MaxOverScales(), window=9, head=nn.Linear(4, 2), outside="constant", fill=0.3
    ),
}
FAST = (
    "fovmax",
    "fovlse",
    "anywhere",
    "cnn",
    "antialias, blur, reflect",
)
CHANNELS = {name: 3 for name in BUILDS if "cifar10" in name or "reflect" in name} | {"own": 2, "own head": 2}


def run(path: Path, images: Tensor) -> list[np.ndarray]:
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    return session.run(None, {"images": images.numpy()})


def check(name: str, folder: Path) -> None:
    """A network's file gives what PyTorch gives, on other images than it was compared on."""
    network = lively(BUILDS[name]())
    done = export_onnx(network, folder / "net.onnx")
    assert done.error < 2e-5
    height, width = done.size or (71, 90)
    images = torch.randn(4, CHANNELS.get(name, 1), height, width, generator=torch.Generator().manual_seed(9))
    with torch.no_grad():
        expected = [network(images)]
        if hasattr(network, "channel_logits") and name != "own head":
            said = network.explain(images)
            expected += [network.channel_logits(images), said.contributions, said.scales]
            assert said.contributions.std() > 0.01
            if network.look == "everywhere":
                expected.append(said.places)
                assert len(said.places.unique(dim=0)) > 1
    got = run(folder / "net.onnx", images)
    assert len(got) == len(expected) == len(done.outputs)
    assert expected[0].std() > 0.02
    for ours, theirs in zip(expected, got, strict=True):
        assert theirs.shape == tuple(ours.shape)
        assert np.abs(theirs - ours.numpy()).max() < 1e-4
    assert [path.name for path in folder.iterdir()] == ["net.onnx"]  # no weights beside it, nothing half done


@pytest.mark.parametrize("name", FAST)
def test_onnxruntime_gives_what_pytorch_gives(name: str, tmp_path: Path):
    check(name, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(set(BUILDS) - set(FAST)))
def test_onnxruntime_gives_what_pytorch_gives_with_more_options(name: str, tmp_path: Path):
    check(name, tmp_path)


def test_the_metadata_say_what_a_user_needs_and_the_network_stays_as_it_is(tmp_path: Path):
    network = fovlse(GRID, classes=2).double().train()
    before = {name: value.clone() for name, value in network.state_dict().items()}
    options = {"classes": ["cat", "dög"], "values": (-1, 1), "reduce": 3, "temperature": 1.5}
    export_onnx(network, tmp_path / "a.onnx", size=(40, 50), **options)
    assert network.training
    assert all(torch.equal(value, before[name]) for name, value in network.state_dict().items())
    model = onnx.load(tmp_path / "a.onnx")
    told = {entry.key: json.loads(entry.value) for entry in model.metadata_props}
    assert told["classes"] == ["cat", "dög"]
    assert told["scales"] == list(GRID)
    assert told["input_size"] == [40, 50]
    assert told["values"] == [-1, 1]
    assert told["reduce"] == 3
    assert told["temperature"] == 1.5
    assert told["window"] == 28
    assert told["resize"] is False
    assert told["network"] == "ScaleChannelNetwork"
    (taken,) = model.graph.input
    dimensions = [axis.dim_param or axis.dim_value for axis in taken.type.tensor_type.shape.dim]
    assert dimensions == ["batch", 1, 40, 50]
    assert model.opset_import[0].version == 20


@pytest.mark.parametrize("values", ["digits", "unit"])
def test_the_metadata_are_those_of_the_network_where_nothing_else_is_said(values: str, tmp_path: Path):
    backbone = ConvBackbone((4, 4), window=13, channels=1, classes=3, hidden=8)
    network = ScaleChannelNetwork(backbone, GRID, MaxOverScales(), 13)
    said = {"classes": ["a", "b"], "background": 2, "reduce": 3, "temperature": 1.5}
    network.usage = {**said, "values": values, "detector": None}
    for name, exported, more in (
        ("whole", network, {}),
        ("dense", DenseNetwork(network), {}),
        ("other", network, {"reduce": 2}),
    ):
        export_onnx(exported, tmp_path / f"{name}.onnx", size=(20, 20), **more)
        props = onnx.load(tmp_path / f"{name}.onnx").metadata_props
        told = {entry.key: json.loads(entry.value) for entry in props}
        assert {key: told[key] for key in said} == {**said, **more}
        assert told["values"] == ([0, 1] if values == "unit" else [BACKGROUND, -BACKGROUND])


def test_the_file_of_a_network_that_resizes_says_so(tmp_path: Path):
    network = PlainNetwork(ConvBackbone((4, 4), window=13, channels=1, classes=3, hidden=8), resize=True)
    assert export_onnx(network, tmp_path / "a.onnx").size == (13, 13)
    told = {entry.key: json.loads(entry.value) for entry in onnx.load(tmp_path / "a.onnx").metadata_props}
    assert (told["resize"], told["window"], told["input_size"]) == (True, None, [13, 13])


@pytest.mark.parametrize("options", [{}, {"antialias": True, "shifts": 1}], ids=["plain", "shifts"])
def test_a_file_can_give_what_each_channel_sees(options: dict, tmp_path: Path):
    backbone = ConvBackbone((4, 4), window=13, channels=1, classes=3, hidden=8)
    network = lively(ScaleChannelNetwork(backbone, GRID, MaxOverScales(), 13, **options))
    done = export_onnx(network, tmp_path / "a.onnx", windows=True)
    assert done.outputs[-1] == "windows"
    images = torch.rand(2, 1, 40, 51, generator=torch.Generator().manual_seed(3))
    seen = run(tmp_path / "a.onnx", images)[-1]
    assert seen.shape == (2, 3, 1, 13, 13)
    assert np.abs(seen - network.foveate(images).numpy()).max() < 1e-5


def dense(network: ScaleChannelNetwork, folder: Path) -> None:
    """The file of a dense network gives what PyTorch gives, on images of two sizes that are new to it."""
    done = export_onnx(DenseNetwork(lively(network), 3), folder / "dense.onnx", background=1)
    assert done.outputs == ("logits", "scales")
    assert done.size is None
    assert done.error < 2e-5
    for height, width in ((80, 93), (131, 40)):
        images = torch.randn(1, 1, height, width, generator=torch.Generator().manual_seed(height))
        expected = DenseNetwork(network, 3)(images)
        logits, scales = run(folder / "dense.onnx", images)
        assert logits.shape == (1, expected.logits.shape[1], -(-height // 3), -(-width // 3))
        assert np.abs(logits - expected.logits.numpy()).max() < 1e-4
        assert (scales == expected.scales.numpy()).mean() > 0.99
        assert len(np.unique(scales)) == len(network.grid)
    told = {entry.key: json.loads(entry.value) for entry in onnx.load(folder / "dense.onnx").metadata_props}
    assert (told["step"], told["background"], told["network"]) == (3, 1, "DenseNetwork")


def test_a_dense_network_takes_images_of_any_size(tmp_path: Path):
    """One channel, since each costs seconds; the slow tests have more."""
    backbone = ConvBackbone((4, 4), window=11, classes=3, hidden=8)
    dense(ScaleChannelNetwork(backbone, ScaleGrid.of(1.5), LogMeanExpOverScales(), 11), tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("options", [{"antialias": True}, {"window": 31, "classes": 4}], ids=str)
def test_the_papers_networks_have_a_dense_form(options: dict, tmp_path: Path):
    dense(fovmax(GRID, **options), tmp_path)


# What goes wrong leaves nothing behind


class Substitute:
    """Stands for the exporter's result: saves a small graph that adds to the images' mean."""

    def __init__(self, shift: float, outputs: int = 10) -> None:
        self.model = SimpleNamespace(metadata_props={})
        self.shift, self.outputs = shift, outputs

    def save(self, path: str, **options: object) -> None:
        helper, kind = onnx.helper, onnx.TensorProto.FLOAT
        images = helper.make_tensor_value_info("images", kind, ["batch", 1, 112, 112])
        logits = helper.make_tensor_value_info("logits", kind, ["batch", self.outputs])
        shift = helper.make_tensor("shift", kind, [self.outputs], [self.shift] * self.outputs)
        nodes = [
            helper.make_node("ReduceMean", ["images", "axes"], ["mean"], keepdims=0),
            helper.make_node("Add", ["mean", "shift"], ["logits"]),
        ]
        axes = helper.make_tensor("axes", onnx.TensorProto.INT64, [2], [2, 3])
        graph = helper.make_graph(nodes, "mean", [images], [logits], [axes, shift])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
        onnx.save(model, path)


class Mean(Backbone):
    """What the substitute's graph computes, for ten classes, without a shift."""

    channels, window = 1, 112

    def forward(self, images: Tensor) -> Tensor:
        return images.mean((2, 3)).expand(-1, 10)


@pytest.mark.parametrize(
    ("program", "message"),
    [
        (Substitute(0), None),
        (Substitute(5e-5), None),
        (Substitute(2e-4), "differ by 2.0e-04 in logits for images"),
        (Substitute(float("nan")), "differ by nan"),
        (Substitute(0, outputs=1), r"logits of the shape \(1, 1\), PyTorch \(1, 10\)"),
    ],
    ids=["equal", "close", "different", "nan", "shape"],
)
def test_a_file_that_differs_from_pytorch_is_never_left_behind(
    program: Substitute, message: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(torch.onnx, "export", lambda *rest, **more: program)
    network = PlainNetwork(Mean())
    if message is None:
        assert export_onnx(network, tmp_path / "a.onnx").error == pytest.approx(program.shift, abs=1e-6)
        return
    (tmp_path / "old.onnx").write_text("old")
    for name in ("new.onnx", "old.onnx"):
        with pytest.raises(ExportError, match=message) as caught:
            export_onnx(network, tmp_path / name)
        assert "\n" not in str(caught.value)
    assert [path.name for path in tmp_path.iterdir()] == ["old.onnx"]
    assert (tmp_path / "old.onnx").read_text() == "old"


def test_what_the_exporter_refuses_is_said_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def refuse(*rest: object, **more: object) -> None:
        try:
            raise TypeError("a branch on values\nwith a page of text")
        except TypeError as error:
            raise RuntimeError("page\nupon\npage") from error

    monkeypatch.setattr(torch.onnx, "export", refuse)
    with pytest.raises(
        ExportError, match=r"this PlainNetwork cannot be written as ONNX: a branch on values$"
    ):
        export_onnx(cnn(), tmp_path / "a.onnx")
    assert not list(tmp_path.iterdir())


class Stubborn(nn.Module):
    """A pooling that looks at values, which a graph cannot."""

    def forward(self, channels: Tensor) -> Tensor:
        return channels.mean(1) if float(channels.sum()) > 0 else channels.amax(1)


@pytest.mark.slow
def test_a_network_that_branches_on_values_is_refused(tmp_path: Path):
    with pytest.raises(ExportError, match="cannot be written as ONNX"):
        export_onnx(ScaleChannelNetwork(fovavg(GRID).backbone, GRID, Stubborn()), tmp_path / "a.onnx")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"size": (100, 112)}, "images of 112x112 pixels; got"),
        ({"size": (0, 5)}, "whole pixels; got"),
        ({"values": (1, 1)}, "least, greatest"),
        ({"reduce": 0}, "whole number of at least 1; got 0"),
        ({"reduce": 2.5}, "whole number of at least 1; got 2.5"),
    ],
)
def test_bad_options_are_named(options: dict, message: str, tmp_path: Path):
    with pytest.raises(ValueError, match=message):
        export_onnx(cnn(), tmp_path / "a.onnx", **options)
    with pytest.raises(ValueError, match=r"must end in \.onnx"):
        export_onnx(cnn(), tmp_path / "a.pt")
    with pytest.raises(ValueError, match="sees about the centre; this PlainNetwork looks elsewhere"):
        export_onnx(cnn(), tmp_path / "a.onnx", windows=True)


# The command


command = partial(run_command, "export")


def test_the_command_exports_a_saved_network(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.chdir(tmp_path)
    fovlse(GRID).save_pretrained("net")
    assert command("net", "--onnx", "out/digits.onnx") == 0
    said = capsys.readouterr()
    assert said.err == ""
    outputs = "logits, channel_logits, contributions and scales"
    assert f"images (batch, channels, height, width) to {outputs}\n" in said.out
    assert "agrees with PyTorch" in said.out
    told = {entry.key: json.loads(entry.value) for entry in onnx.load("out/digits.onnx").metadata_props}
    assert told["values"] == pytest.approx([-0.763, 0.763], abs=1e-3)
    assert told["input_size"] is None
    assert told["reduce"] == 1
    assert "smaller" not in said.out


def test_the_file_of_a_network_that_was_saved_again_says_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    lively(fovlse(ScaleGrid.of(1.0, 2.0), classes=2)).save_pretrained("run")
    config = RunConfig(DataConfig("folder", folder="photos", reduce=2))
    Path("run/config.toml").write_text(config.to_toml(), encoding="utf-8")
    Path("run/result.json").write_text('{"classes": ["cat", "dog"]}', encoding="utf-8")
    scalechannels.load("run").save_pretrained("again")
    assert command("again", "--onnx", "again.onnx") == 0
    told = {entry.key: json.loads(entry.value) for entry in onnx.load("again.onnx").metadata_props}
    assert told["classes"] == ["cat", "dog"]
    assert told["reduce"] == 2
    assert told["values"] == [0, 1]


def test_the_file_of_a_run_on_reduced_images_says_so_and_then_gives_what_predict_gives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.chdir(tmp_path)
    network = fovlse(GRID, classes=2)
    lively(network).save_pretrained("run")
    config = RunConfig(DataConfig("folder", folder="photos", reduce=2))
    Path("run/config.toml").write_text(config.to_toml(), encoding="utf-8")
    noise = np.random.default_rng(0).integers(0, 256, (100, 81), dtype=np.uint8)
    Image.fromarray(noise).save("noise.png")
    assert run_command("predict", "run", "noise.png", "--out", "noise.json") == 0
    (expected,) = json.loads(Path("noise.json").read_text(encoding="utf-8"))
    capsys.readouterr()

    assert command("run", "--onnx", "run.onnx") == 0
    assert "Shrink each image by a factor of 2 along each side" in capsys.readouterr().out
    told = {entry.key: json.loads(entry.value) for entry in onnx.load("run.onnx").metadata_props}
    assert told["reduce"] == 2
    image = reduced(read_image("noise.png", grey=True), told["reduce"])
    logits, _, _, scales = (torch.from_numpy(part) for part in run(Path("run.onnx"), image[None]))
    probability, label = logits.softmax(1).max(1)
    assert str(int(label)) == expected["class"]
    assert float(probability) == pytest.approx(expected["probability"], abs=1e-4)
    assert float(scales) * told["reduce"] == pytest.approx(expected["scale"], rel=1e-3)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("net", "--onnx", "digits.pt"), "--onnx must end in .onnx; got"),
        (("net", "--onnx", "folder.onnx"), "--onnx must be a file, not a folder; got 'folder.onnx'"),
        (("nowhere", "--onnx", "digits.onnx"), "'nowhere' is neither a folder nor a shipped network"),
        (("plain", "--dense", "--onnx", "digits.onnx"), "'plain' has no dense form"),
    ],
)
def test_what_a_user_can_mend_is_one_line(
    words: tuple[str, ...],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
):
    monkeypatch.chdir(tmp_path)
    fovlse(GRID).save_pretrained("net")
    cnn().save_pretrained("plain")
    (tmp_path / "folder.onnx").mkdir()
    assert command(*words) == 1
    said = capsys.readouterr()
    assert said.err.startswith("error: ")
    assert message in said.err
    assert said.err.count("\n") == 1


def test_missing_packages_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    fovlse(GRID).save_pretrained(tmp_path / "net")
    imported = builtins.__import__

    def without_onnx(name: str, *rest: object, **more: object):
        if name.split(".")[0] == "onnxruntime":
            raise ImportError("No module named 'onnxruntime'")
        return imported(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", without_onnx)
    assert command(tmp_path / "net", "--onnx", tmp_path / "a.onnx") == 1
    assert 'pip install "scalechannels[onnx]"' in capsys.readouterr().err
    assert not (tmp_path / "a.onnx").exists()
