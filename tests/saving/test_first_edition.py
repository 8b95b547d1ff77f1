"""What the first edition saved still loads and says the same.

`first_edition/` was written by commit 19eb71c: a small network of every kind by `save_pretrained`, an ONNX
file, and in `said.json` what each of them said about the pictures below. The weights of `TELLING` were drawn
again, since they had answered the same for every image and in every channel.
"""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import scalechannels
from scalechannels import DenseNetwork, selected_scale

FOLDER = Path(__file__).parent / "first_edition"
SAID = json.loads((FOLDER / "said.json").read_text(encoding="utf-8"))
TELLING = ("fovmax", "fovlse-shifts", "mean-probability", "swmax-each", "swmax-plain", "own-images")


def pictures(channels: int, height: int, width: int) -> Tensor:
    y, x = torch.meshgrid(torch.arange(height), torch.arange(width), indexing="ij")
    waves = [
        torch.stack([0.7 * torch.sin((b + 1) * 0.11 * x + 0.07 * (c + 1) * y) for c in range(channels)])
        for b in range(2)
    ]
    return torch.stack(waves).float()


def load(name: str) -> Any:
    given = {"head": nn.Linear(5, 4)} if name == "features" else {}  # a user's own part
    return scalechannels.load(FOLDER / name, **given).float()


@pytest.mark.parametrize("name", TELLING)
def test_what_was_said_depends_on_the_image_and_the_channel(name: str) -> None:
    """Else nothing here could notice another sampling or pooling."""
    (one, other), channels = torch.tensor(SAID[name]["logits"]), torch.tensor(SAID[name]["channel_logits"])
    assert (one - other).abs().max() > 0.1
    assert (channels[:, 1:] - channels[:, :-1]).abs().amax(2).min() > 0.1


@pytest.mark.parametrize("name", SAID)
def test_a_saved_network_says_what_it_said(name: str) -> None:
    said, network = SAID[name], load(name)
    images = pictures(*said["shape"])
    within = 1e-5 if name in TELLING else 1e-6  # larger logits, of which the order of summation shows
    near = {"rtol": within, "atol": within}
    for grad in (True, False):
        with torch.set_grad_enabled(grad):
            torch.testing.assert_close(network(images), torch.tensor(said["logits"]), **near)
    if "channel_logits" in said:
        channels = network.channel_logits(images)
        torch.testing.assert_close(channels, torch.tensor(said["channel_logits"]), **near)
        assert selected_scale(network, images).tolist() == said["scales"]
    if "dense" in said:
        made = DenseNetwork(network, 8)(images)
        torch.testing.assert_close(made.logits, torch.tensor(said["dense"]["logits"]), **near)
        assert made.scales.tolist() == said["dense"]["scales"]


def test_the_saved_onnx_file_says_what_its_network_says() -> None:
    onnxruntime = pytest.importorskip("onnxruntime")
    session = onnxruntime.InferenceSession(FOLDER / "fovmax.onnx", providers=["CPUExecutionProvider"])
    images = pictures(*SAID["fovmax"]["shape"])
    logits, channels = session.run(["logits", "channel_logits"], {"images": images.numpy()})
    network = load("fovmax")
    torch.testing.assert_close(torch.from_numpy(logits), network(images), rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(
        torch.from_numpy(channels), network.channel_logits(images), rtol=1e-5, atol=1e-5
    )
