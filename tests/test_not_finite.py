"""A network that is not finite, or whose answer is not, gives no class, no object and no accuracy."""

import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from helpers.command_line import run
from PIL import Image
from torch import Tensor, nn

from scalechannels import Detector, Predictor, ScaleGrid, cnn, fovlse
from scalechannels.data.image_set import ImageSet
from scalechannels.demo.answers import BadRequestError, Body, Demo
from scalechannels.demo.looks import Looks, in_base64
from scalechannels.demo.scene import Finder, dropped_picture
from scalechannels.detection.exported import export_detector
from scalechannels.detection.learning import Batch, learn
from scalechannels.network import NotFiniteError, require_finite
from scalechannels.report.conditions import Condition
from scalechannels.report.trial import tried
from scalechannels.training import datasets
from scalechannels.training.evaluate import evaluate_set

SAID = "the network's answer is not finite"
BLOB = torch.exp(-((torch.arange(60.0) - 29.5) ** 2) / 50)
IMAGE = BLOB[:, None] * BLOB  # (60, 60), with a point of interest


def huge(network: nn.Module) -> nn.Module:
    """All weights are finite, but not what they make."""
    with torch.no_grad():
        network.backbone.classifier.weight.fill_(3e38)  # type: ignore[union-attr,operator]
    return network.eval()


def made() -> nn.Module:
    torch.manual_seed(0)
    return fovlse(ScaleGrid.of(1, 2))


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with one blob, on its own and as labelled images."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(datasets, "STROKES_TEST", 20)
    for name in ("a.png", "labelled/0/a.png", "labelled/1/b.png"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray((255 * IMAGE.numpy()).astype(np.uint8)).save(tmp_path / name)
    return tmp_path


COMMANDS = {
    "predict": ("predict", "net", "a.png"),
    "detect": ("detect", "a.png", "--network", "net"),
    "detect --look interest": ("detect", "a.png", "--network", "net", "--look", "interest"),
    "evaluate": ("evaluate", "net", "--data.name", "strokes", "--sizes", 1),
    "evaluate --data": ("evaluate", "net", "--data", "labelled"),
    "export": ("export", "net", "--onnx", "net.onnx"),
    "demo": ("demo", "--network", "net", "--port", 0),
}


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_network_that_is_not_finite_is_an_error_that_names_it(
    here: Path, value: float, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its most likely class would be the first one, with exit code 0."""
    network = made()
    with torch.no_grad():
        network.backbone.convolutions[1][0].weight[0, 0, 0, 0] = value
    with pytest.warns(UserWarning, match=r"backbone\.convolutions\.1\.0\.weight is not finite"):
        network.save_pretrained("net")
    for command in COMMANDS.values():
        assert run(*command) == 1
        assert capsys.readouterr().err.startswith("error: 'net/model.safetensors' cannot be used: backbone.")
    with pytest.raises(ValueError, match=r"'net/model\.safetensors' cannot be used"):
        Predictor("net")


@pytest.mark.parametrize(
    ("command", "named"),
    [
        ("predict", "'a.png': "),
        ("detect", "'a.png': "),
        ("detect --look interest", "'a.png': "),
        ("evaluate", "net cannot be tested: "),
        ("evaluate --data", "'labelled/0/a.png': "),
    ],
)
def test_an_answer_that_is_not_finite_is_an_error_that_names_the_image(
    command: str, named: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    huge(made()).save_pretrained("net")
    before = {path.name for path in here.iterdir()}
    assert run(*COMMANDS[command]) == 1
    said = capsys.readouterr()
    assert said.err.splitlines()[-1] == f"error: {named}{SAID}"
    assert said.out == ""
    assert {path.name for path in here.iterdir()} == before  # nothing was written


@pytest.mark.slow
def test_such_a_network_is_not_exported(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    huge(cnn()).save_pretrained("net")
    assert run(*COMMANDS["export"]) == 1
    assert "nothing was written" in capsys.readouterr().err
    assert not (here / "net.onnx").exists()


@pytest.mark.slow
def test_such_a_detector_is_not_exported(tmp_path: Path) -> None:
    """Its boxes are squares of the lattice, and finite: only probabilities are not."""
    detector = Detector(huge(made()).train(), background=3)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="differ by nan; nothing was written"):
        export_detector(detector, tmp_path / "net.onnx", (40, 40))
    assert all(part.training for part in detector.network.modules())  # as they were
    assert not (tmp_path / "net.onnx").exists()


def test_the_predictor_and_the_detector_refuse_it_too(here: Path) -> None:
    network = huge(made())
    network.save_pretrained("net")
    with pytest.raises(NotFiniteError, match=f"^'a.png': {SAID}"):
        Predictor("net")("a.png")
    with pytest.raises(NotFiniteError, match=f"^{SAID}"):
        Predictor("net")(IMAGE[None])
    detector = Detector(network, background=3)  # type: ignore[arg-type]
    for find in (detector, detector.at_interest_points):
        with pytest.raises(NotFiniteError, match=SAID):
            find(IMAGE[None])


@pytest.mark.parametrize("which", ["scale channels", "plain"])
def test_the_demo_answers_with_what_is_wrong(which: str, here: Path) -> None:
    networks = {"scale channels": made(), "plain": cnn()}
    huge(networks[which])
    detector = Detector(huge(made()), background=3)  # type: ignore[arg-type]
    demo = Demo(Looks(networks["scale channels"], networks["plain"]), Finder(detector))
    digit = in_base64((255 * IMAGE[16:44, 16:44]).byte())
    look = f'{{"digit": "{digit}", "size": 1}}'.encode()
    picture = (here / "a.png").read_bytes()
    try:
        for path, body in (
            ("/api/look", Body(look, is_file=False)),
            ("/api/sizes", Body(look, is_file=False)),
            ("/api/scene", Body(picture, is_file=True)),
        ):
            with pytest.raises(BadRequestError, match=SAID):
                demo.answer(path, body)
    finally:
        demo.close()
    with pytest.raises(NotFiniteError):
        dropped_picture(Finder(detector), picture)


class Saying(nn.Module):
    """Answers so, whatever the image."""

    def __init__(self, logits: Tensor) -> None:
        super().__init__()
        self.logits = logits

    def forward(self, images: Tensor) -> Tensor:
        return self.logits.expand(len(images), -1)


@pytest.mark.parametrize(
    "logits", [[math.nan, 1.0], [1.0, math.nan], [math.inf, 0.0], [-math.inf, -math.inf]]
)
def test_where_no_class_is_the_most_likely_there_is_no_accuracy(logits: list[float]) -> None:
    data = ImageSet(torch.zeros(2, 1, 4, 4), torch.tensor([0, 1]), torch.ones(2))
    with pytest.raises(NotFiniteError, match=SAID):
        evaluate_set(Saying(torch.tensor([logits])), data, 1.0, 2)


def test_no_candidate_is_tried_on_such_answers() -> None:
    part, own = [0, 1], SimpleNamespace(images="frames", own=SimpleNamespace(object_pixels=20.0))
    data: Any = SimpleNamespace(
        part=lambda split: ImageSet(torch.zeros(2, 1, 30, 30), torch.tensor(part), torch.ones(2)),
        image=lambda split, index: torch.rand(1, 30, 30),
        config=own,
        device="cpu",
        classes=part,
    )
    quiet: Any = SimpleNamespace(advance=lambda *_: None)
    with pytest.raises(NotFiniteError, match=SAID):
        tried(huge(made()), data, [Condition("size", 1.0)], quiet)


def test_the_first_image_without_an_answer_is_named() -> None:
    logits = torch.tensor([[0.0, 1.0], [-math.inf, 2.0], [math.nan, 0.0], [math.nan, 0.0]])
    require_finite(logits[:2], "ab")  # a class that is ruled out is an answer
    with pytest.raises(NotFiniteError, match=f"^'c': {SAID}$"):
        require_finite(logits, "abcd")


def test_a_detectors_training_ends_where_its_loss_is_lost(tmp_path: Path) -> None:
    """Its weights would be kept, and every later step would be lost as well."""
    model = nn.Sequential(nn.Flatten(), nn.Linear(4, 2))

    def batch(step: int, _: torch.Generator) -> Batch:
        return Batch(torch.full((2, 1, 2, 2), math.nan if step == 3 else 1.0), torch.eye(2))

    with pytest.raises(FloatingPointError, match="the loss was not a number before step 6 of 6"):
        learn(model, batch, steps=6, rate=0.1, state=tmp_path / "state.pt")
    assert not (tmp_path / "state.pt").exists()
