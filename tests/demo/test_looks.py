"""What the page shows is what the networks see and say."""

import base64
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import torch
from helpers.lively import lively

from scalechannels import ScaleChannelNetwork, ScaleGrid, cnn, fovlse, selected_scale, swmax
from scalechannels.backbones.paper import ConvBackbone
from scalechannels.data.mnist_large_scale import large_scale
from scalechannels.data.pictures import as_shown
from scalechannels.data.sizes import MNIST_SIZES
from scalechannels.demo.digit import digit_from_strokes
from scalechannels.demo.looks import Looks, example, open_looks, placed
from scalechannels.pooling import MaxOverScales


@pytest.fixture
def digit() -> torch.Tensor:
    return digit_from_strokes(example(1, 4)["strokes"])


def decoded(text: str, *shape: int) -> np.ndarray:
    return np.frombuffer(base64.b64decode(text), np.uint8).reshape(shape)


def test_a_look_is_that_of_the_networks(looks: Looks, digit: torch.Tensor):
    seen = looks.at(digit, 2.5)
    images = large_scale(digit[None], 2.5)
    with torch.inference_mode():
        channels = looks.network.channel_logits(images)[0]
        probabilities = looks.network(images).softmax(1)[0]
        plain = looks.plain(images).softmax(1)[0]
    assert np.allclose(seen["logits"], channels, atol=1e-4)
    assert channels.std(0).max() > 0.5
    assert np.allclose(seen["verdict"]["probabilities"], probabilities, atol=1e-4)
    assert np.allclose(seen["plain"]["probabilities"], plain, atol=1e-4)
    assert seen["verdict"]["digit"] == int(probabilities.argmax())
    assert seen["plain"]["digit"] == int(plain.argmax())
    assert looks.network.grid[seen["selected"]] == float(selected_scale(looks.network, images)[0])
    assert sum(seen["contributions"]) == pytest.approx(1, abs=1e-3)
    assert seen["at_edge"] == (seen["selected"] in (0, 4))


def test_pictures_run_from_black_to_white(looks: Looks, digit: torch.Tensor):
    seen = looks.at(digit, 2.0)
    picture = decoded(seen["picture"], 112, 112)
    assert (picture.min(), picture.max()) == (0, 255)
    windows = decoded(seen["windows"], 5, 28, 28)
    crop = picture[42:70, 42:70].astype(int)  # channel 1 is the plain central crop
    assert np.abs(windows[1] - crop).max() <= 1
    assert np.abs(windows[0].astype(int) - crop).max() > 50


def test_all_sizes_are_those_of_single_looks(looks: Looks, digit: torch.Tensor):
    said = looks.at_all_sizes(digit)
    assert said["sizes"] == list(MNIST_SIZES)
    assert len(set(said["plain"])) > 1
    assert said["plain"] != said["plain"][::-1]
    for index in range(0, 17, 4):
        single = looks.at(digit, MNIST_SIZES[index])
        assert said["scale_channels"][index] == single["verdict"]["digit"]
        assert said["plain"][index] == single["plain"]["digit"]


def test_a_digit_off_the_centre_is_that_digit_moved(looks: Looks, digit: torch.Tensor):
    """By whole pixels over the empty ground; what leaves the image does not come in on the other side."""
    centred, dragged = (decoded(looks.at(digit, 1.0, off)["picture"], 112, 112) for off in ((0, 0), (-30, 7)))
    assert np.array_equal(dragged[:70, 7:], centred[30:100, :-7])
    assert dragged[82:].max() == 0
    beyond = decoded(looks.at(digit, 1.0, (56, 0))["picture"], 112, 112)
    assert beyond[:50].max() == 0
    assert beyond[100:].max() == 255
    seen, still = looks.at(digit, 1.0, (-30, 7)), looks.at(digit, 1.0)
    assert seen["place"] == still["place"] == [55.5, 55.5]  # it looks at the centre
    assert seen["plain"] != still["plain"]
    assert looks.at_all_sizes(digit, (-30, 7)) != looks.at_all_sizes(digit)


def test_a_network_that_looks_everywhere_follows_the_digit(looks: Looks, digit: torch.Tensor):
    """Moved by whole steps of its lattices, here 16 pixels, all that it says and sees moves along."""
    torch.manual_seed(0)
    backbone = ConvBackbone((4, 4, 8, 8), hidden=8)
    network = lively(ScaleChannelNetwork(backbone, ScaleGrid.of(1, 2), MaxOverScales(), look="everywhere"))
    both = Looks(network, looks.plain)
    still, seen = both.at(digit, 1.0), both.at(digit, 1.0, (-16, 16))
    assert np.allclose(seen["logits"], still["logits"], atol=1e-3)
    assert seen["selected"] == still["selected"]
    windows = [decoded(one["windows"], 2, 28, 28).astype(int) for one in (still, seen)]
    assert np.abs(windows[0] - windows[1]).max() <= 1
    assert seen["place"] == [still["place"][0] - 16, still["place"][1] + 16]
    images = placed(large_scale(digit[None], 1.0), (-16, 16))
    said = network.explain(images)
    assert seen["place"] == pytest.approx(said.places[0].tolist())
    there = network.foveate(images, said.places)[0, seen["selected"], 0]
    window = decoded(seen["windows"], 2, 28, 28)[seen["selected"]]
    assert np.abs(window - 255 * as_shown(there).numpy()).max() <= 1


def test_many_threads_get_what_one_gets(looks: Looks):
    """No state is shared: answers to other digits and sizes at the same time change nothing."""
    asked = [(digit_from_strokes(example(number)["strokes"]), 2 ** (number % 5 - 1)) for number in range(24)]
    alone = [looks.at(*one) for one in asked]
    with ThreadPoolExecutor(6) as pool:
        together = list(pool.map(lambda one: looks.at(*one), asked))
    assert together == alone
    assert not looks.network.training


def test_networks_that_cannot_be_shown_are_named(looks: Looks):
    grid = ScaleGrid.of(1, 2)
    features = ScaleChannelNetwork(fovlse(grid).backbone, grid, MaxOverScales(), head=torch.nn.Linear(10, 10))
    for network, plain, message in (
        (fovlse(grid, data="cifar10"), looks.plain, "takes coloured images"),
        (fovlse(grid, classes=4), looks.plain, "has 4 classes"),
        (looks.network, cnn(image_size=128), "112x112"),
        (features, looks.plain, "pools features"),
    ):
        with pytest.raises(ValueError, match=message):
            Looks(network, plain)


def test_folders_are_opened_and_checked(tmp_path: Path):
    fovlse(ScaleGrid.of(1, 2)).save_pretrained(tmp_path / "net")
    cnn().save_pretrained(tmp_path / "plain")
    swmax(ScaleGrid.of(1, 4)).save_pretrained(tmp_path / "sliding")
    looks = open_looks(tmp_path / "net", tmp_path / "plain")
    assert looks.trained == ()
    assert looks.settings()["scales"] == [1, 2]
    assert not looks.settings()["everywhere"]
    assert open_looks(tmp_path / "sliding", tmp_path / "plain").settings()["everywhere"]
    with pytest.raises(
        ValueError, match=r"--network must be a scale-channel network; '.*plain' is a plain CNN"
    ):
        open_looks(tmp_path / "plain", tmp_path / "plain")
    with pytest.raises(ValueError, match=r"--plain must be a plain CNN; '.*net' is a scale-channel network"):
        open_looks(tmp_path / "net", tmp_path / "net")
    with pytest.raises(ValueError, match=r"--plain must be a plain CNN; 'fovlse-mnist' is a scale-channel"):
        open_looks(tmp_path / "net", Path("fovlse-mnist"))  # as it was given, not where it lies
    fovlse(ScaleGrid.of(1, 2), classes=2).save_pretrained(tmp_path / "two")
    with pytest.raises(ValueError, match=r"--network must be a network .* 10 classes; '.*two' has 2 classes"):
        open_looks(tmp_path / "two", tmp_path / "plain")


@pytest.mark.parametrize("own", [{"values": "unit", "reduce": 1}, {"values": "digits", "reduce": 2}])
def test_networks_that_take_other_images_than_digits_are_named(tmp_path: Path, own: dict):
    """They would be shown values that they never saw, and answer all the same."""
    for name, network in (("net", fovlse(ScaleGrid.of(1, 2))), ("plain", cnn())):
        network.save_pretrained(tmp_path / f"{name}-digits")
        network.usage = {"classes": None, "background": None, **own}
        network.save_pretrained(tmp_path / name)
    digits = tmp_path / "net-digits", tmp_path / "plain-digits"
    with pytest.raises(ValueError, match=r"--network must .* as MNIST has them; '.*net' was trained on oth"):
        open_looks(tmp_path / "net", digits[1])
    with pytest.raises(ValueError, match=r"--plain must be a network for digits as MNIST has them; '.*plain"):
        open_looks(digits[0], tmp_path / "plain")
