"""Saving and loading: every network comes back bit-equal from its folder alone, and damage is named."""

import errno
import json
from pathlib import Path

import pytest
import safetensors.torch
import torch
from torch import Tensor, nn

import scalechannels
from scalechannels import (
    MaxOverScales,
    PlainNetwork,
    ScaleChannelNetwork,
    ScaleGrid,
    cnn,
    fovavg,
    fovconc,
    fovlse,
    fovmax,
    swmax,
)
from scalechannels.saving.saved_network import Network, SavedNetwork, require_free

GRID = ScaleGrid(0.5, 2, ratio=2**0.5)
BUILDS = {
    "fovmax": lambda: fovmax(GRID),
    "fovavg": lambda: fovavg(GRID),
    "fovlse": lambda: fovlse(GRID),
    "fovconc": lambda: fovconc(GRID),
    "fovmax-cifar10": lambda: fovmax(GRID, data="cifar10"),
    "fovavg-cifar10": lambda: fovavg(GRID, data="cifar10"),
    "fovlse-cifar10": lambda: fovlse(GRID, data="cifar10"),
    "fovconc-cifar10": lambda: fovconc(GRID, data="cifar10"),
    "swmax": lambda: swmax(GRID),
    "cnn": lambda: cnn(),
    "cnn-cifar10": lambda: cnn(data="cifar10"),
    "all options": lambda: fovconc(GRID, channels=2, classes=4, window=32, antialias=True, blur=0.4),
    "swmax options": lambda: swmax(GRID, channels=2, classes=3, window=20, batch_norm=True),
}


class OwnBackbone(nn.Module):
    def __init__(self, width: int = 3) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(1, width, 3, stride=2), nn.ReLU(), nn.Flatten(), nn.LazyLinear(4)
        )
        self.layers(torch.zeros(1, 1, 9, 9))

    def forward(self, windows: Tensor) -> Tensor:
        return self.layers(windows)


def with_lively_statistics(net: Network) -> Network:
    """Batch norm away from its initial 0 and 1, so that forgetting a buffer shows."""
    torch.manual_seed(1)
    for module in net.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.running_mean.normal_(std=0.1)
            module.running_var.uniform_(0.5, 1.5)
            module.num_batches_tracked += 7
    return net.eval()


def images_for(net: Network) -> Tensor:
    side = 112 if isinstance(net, PlainNetwork) and getattr(net.backbone, "window", 0) else 40
    return torch.randn(2, getattr(net.backbone, "channels", 1), side, side)


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    torch.manual_seed(0)
    fovavg(GRID).save_pretrained(tmp_path / "net")
    return tmp_path / "net"


@pytest.mark.parametrize("name", BUILDS)
def test_every_network_comes_back_bit_equal(name: str, tmp_path: Path):
    torch.manual_seed(0)
    net = with_lively_statistics(BUILDS[name]())
    images = images_for(net)
    net.save_pretrained(tmp_path)
    for again in (type(net).from_pretrained(tmp_path), scalechannels.load(tmp_path)):
        assert type(again) is type(net)
        assert not again.training
        assert repr(again) == repr(net)
        for key, value in net.state_dict().items():
            assert torch.equal(again.state_dict()[key], value), key
        with torch.no_grad():
            assert torch.equal(again(images), net(images))


def test_the_class_of_each_saved_network(tmp_path: Path):
    for build, expected in ((fovmax, "centre"), (swmax, "everywhere")):
        build(GRID).save_pretrained(tmp_path / build.__name__)
        assert scalechannels.load(tmp_path / build.__name__).look == expected
    cnn().save_pretrained(tmp_path / "cnn")
    assert type(scalechannels.load(tmp_path / "cnn")) is PlainNetwork


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16], ids=str)
def test_another_precision_comes_back_as_it_was(dtype: torch.dtype, tmp_path: Path):
    net = fovavg(GRID).to(dtype).eval()
    net.save_pretrained(tmp_path)
    again = scalechannels.load(tmp_path)
    images = images_for(net).to(dtype)
    with torch.no_grad():
        assert torch.equal(again(images), net(images))


def test_a_folder_holds_safetensors_a_config_and_a_card_and_nothing_else(saved: Path):
    assert sorted(path.name for path in saved.iterdir()) == ["README.md", "config.json", "model.safetensors"]
    assert "scalechannels.load" in (saved / "README.md").read_text()
    config = json.loads((saved / "config.json").read_text())
    assert config["class"] == "ScaleChannelNetwork"
    assert config["arguments"]["grid"]["arguments"]["factors"] == list(GRID)


def test_saving_twice_keeps_the_later_one(saved: Path):
    torch.manual_seed(5)
    later = fovmax(GRID).eval()
    later.save_pretrained(saved)
    images = images_for(later)
    with torch.no_grad():
        assert torch.equal(scalechannels.load(saved)(images), later(images))


# A user's own parts


def test_a_network_around_an_own_backbone_says_what_it_needs(tmp_path: Path):
    net = ScaleChannelNetwork(OwnBackbone(), GRID, MaxOverScales(), window=9).eval()
    net.save_pretrained(tmp_path)
    message = r"saved with your own backbone, .*OwnBackbone, which only you can build.*backbone=OwnBackbone\("
    with pytest.raises(ValueError, match=message):
        scalechannels.load(tmp_path)
    with pytest.raises(ValueError, match=message):
        ScaleChannelNetwork.from_pretrained(tmp_path)
    images = torch.randn(2, 1, 20, 20)
    for again in (
        scalechannels.load(tmp_path, backbone=OwnBackbone()),
        ScaleChannelNetwork.from_pretrained(tmp_path, backbone=OwnBackbone()),
    ):
        with torch.no_grad():
            assert torch.equal(again(images), net(images))


class Tied(nn.Module):
    """Two layers with the same weights."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second, self.last = nn.Linear(81, 81), nn.Linear(81, 81), nn.Linear(81, 4)
        self.second.weight = self.first.weight
        self.register_buffer("view", self.last.weight.detach()[:2])

    def forward(self, windows: Tensor) -> Tensor:
        return self.last(self.second(self.first(windows.flatten(1)).tanh()))


def test_tied_weights_come_back_tied(tmp_path: Path):
    net = ScaleChannelNetwork(Tied(), GRID, MaxOverScales(), window=9).eval()
    net.save_pretrained(tmp_path)
    assert net.backbone.second.weight is net.backbone.first.weight  # saving changes nothing
    again = scalechannels.load(tmp_path, backbone=Tied())
    assert again.backbone.second.weight is again.backbone.first.weight
    images = torch.randn(2, 1, 20, 20)
    with torch.no_grad():
        assert torch.equal(again(images), net(images))


def test_an_own_backbone_of_another_size_is_named(tmp_path: Path):
    ScaleChannelNetwork(OwnBackbone(3), GRID, MaxOverScales(), window=9).save_pretrained(tmp_path)
    with pytest.raises(
        ValueError, match=r"another network.*layers.0.weight \(3, 1, 3, 3\) instead of \(5, 1"
    ):
        scalechannels.load(tmp_path, backbone=OwnBackbone(5))


def test_an_own_head_is_asked_for_too(tmp_path: Path):
    net = ScaleChannelNetwork(fovavg(GRID).backbone, GRID, MaxOverScales(), head=nn.Linear(10, 2)).eval()
    net.save_pretrained(tmp_path)
    with pytest.raises(ValueError, match=r"your own head, .*Linear"):
        scalechannels.load(tmp_path)
    images = images_for(net)
    with torch.no_grad():
        assert torch.equal(scalechannels.load(tmp_path, head=nn.Linear(10, 2))(images), net(images))


def test_an_own_class_named_like_ours_is_still_the_users(tmp_path: Path):
    namesake = type("ConvBackbone", (OwnBackbone,), {})
    ScaleChannelNetwork(namesake(), GRID, MaxOverScales(), window=9).save_pretrained(tmp_path)
    with pytest.raises(ValueError, match="saved with your own backbone"):
        scalechannels.load(tmp_path)


@pytest.mark.parametrize(
    "change",
    [
        lambda backbone: backbone.convolutions[1].__setitem__(2, nn.LeakyReLU(0.3)),
        lambda backbone: backbone.convolutions[0].append(nn.Tanh()),
        lambda backbone: setattr(backbone.convolutions[0][1], "eps", 0.1),
    ],
)
def test_a_part_of_changed_layers_is_the_users_own(tmp_path: Path, change):
    """Its weights would fit the part as it was, which answers otherwise."""
    net = with_lively_statistics(fovavg(GRID))
    images = images_for(net)
    before = net(images)
    change(net.backbone)
    assert not torch.allclose(net(images), before)
    with pytest.warns(UserWarning, match=r"layers of the backbone were changed .*load\(…, backbone=…\)"):
        net.save_pretrained(tmp_path)
    with pytest.raises(ValueError, match=r"with a backbone of changed layers, .*ConvBackbone, which only"):
        scalechannels.load(tmp_path)
    again = fovavg(GRID).backbone
    change(again)
    with torch.no_grad():
        assert torch.equal(scalechannels.load(tmp_path, backbone=again)(images), net(images))


def test_what_changes_no_answer_makes_no_part_the_users_own(tmp_path: Path):
    net = with_lively_statistics(fovavg(GRID))
    images = images_for(net)
    net.backbone.drop.p = 0.7
    net.backbone.convolutions[0][1].momentum = 0.3
    net.backbone = nn.SyncBatchNorm.convert_sync_batchnorm(net.backbone)
    state = torch.random.get_rng_state()
    net.save_pretrained(tmp_path)
    assert torch.equal(torch.random.get_rng_state(), state)  # a training goes on as without
    again = scalechannels.load(tmp_path)
    assert again.backbone.drop.p == 0.7
    with torch.no_grad():
        assert torch.equal(again(images), net(images))


def test_an_unknown_part_is_named(saved: Path):
    with pytest.raises(TypeError, match=r"must be among antialias, .*; got backbones"):
        scalechannels.load(saved, backbones=OwnBackbone())


# Damage


@pytest.mark.parametrize("keep", [0, 7, 100, 5000, -1], ids=str)
def test_a_truncated_file_is_named(saved: Path, keep: int):
    weights = saved / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:keep])
    with pytest.raises(ValueError, match=r"model.safetensors' is damaged or cut short"):
        scalechannels.load(saved)


@pytest.mark.parametrize("kind", [torch.int32, torch.bool, torch.complex64], ids=str)
def test_weights_that_are_no_floating_point_are_named(saved: Path, kind: torch.dtype):
    weights = safetensors.torch.load_file(saved / "model.safetensors")
    weights["backbone.dense.weight"] = weights["backbone.dense.weight"].to(kind)
    safetensors.torch.save_file(weights, saved / "model.safetensors", {"format": "pt"})
    with pytest.raises(
        ValueError, match=r"safetensors' is damaged: backbone\.dense\.weight has values of the"
    ):
        scalechannels.load(saved)


def test_the_weights_of_another_network_are_named(saved: Path, tmp_path: Path):
    for name, other in {"cifar": fovavg(GRID, data="cifar10"), "classes": fovavg(GRID, classes=3)}.items():
        other.save_pretrained(tmp_path / name)
        (saved / "model.safetensors").write_bytes((tmp_path / name / "model.safetensors").read_bytes())
        with pytest.raises(ValueError, match=r"model.safetensors' belongs to another network: missing \["):
            scalechannels.load(saved)


def test_missing_weights_are_named(saved: Path):
    (saved / "model.safetensors").unlink()
    with pytest.raises(FileNotFoundError, match=r"weights .*model.safetensors' are missing"):
        scalechannels.load(saved)


def load_either_way(folder: Path, way: str) -> Network:
    return scalechannels.load(folder) if way == "load" else ScaleChannelNetwork.from_pretrained(folder)


@pytest.mark.parametrize("way", ["load", "from_pretrained"])
def test_a_missing_config_is_named(saved: Path, way: str):
    (saved / "config.json").unlink()
    with pytest.raises(FileNotFoundError, match=r"has no config.json. Give a run's folder, or one that"):
        load_either_way(saved, way)


@pytest.mark.parametrize("way", ["load", "from_pretrained"])
@pytest.mark.parametrize("text", ["", "{", '{"class": "ScaleCh', "\x00\xff"], ids=repr)
def test_damaged_json_is_named(saved: Path, text: str, way: str):
    (saved / "config.json").write_bytes(text.encode("latin-1"))
    with pytest.raises(ValueError, match=r"config.json' is damaged"):
        load_either_way(saved, way)


@pytest.mark.parametrize("way", ["load", "from_pretrained"])
@pytest.mark.parametrize("text", ["[]", "{}", "3", '{"architectures": []}'])
def test_a_config_of_something_else_is_named(saved: Path, text: str, way: str):
    (saved / "config.json").write_text(text)
    with pytest.raises(ValueError, match=r"does not describe a network of scalechannels"):
        load_either_way(saved, way)


def edited(folder: Path, change) -> None:
    config = json.loads((folder / "config.json").read_text())
    change(config)
    (folder / "config.json").write_text(json.dumps(config))


def test_a_config_whose_arguments_are_lost_or_foreign_is_named(saved: Path):
    edited(saved, lambda config: config.pop("arguments"))
    with pytest.raises(ValueError, match=r"config of .* does not fit ScaleChannelNetwork"):
        scalechannels.load(saved)
    edited(saved, lambda config: config.update(arguments={"shape": 3}))
    with pytest.raises(ValueError, match=r"config of .* does not fit ScaleChannelNetwork.*shape"):
        scalechannels.load(saved)


def test_a_part_whose_arguments_do_not_fit_it_is_named(saved: Path):
    edited(saved, lambda config: config["arguments"]["pool"].update(arguments={"shape": 3}))
    with pytest.raises(ValueError, match=r"config of .* does not fit \w+OverScales: .*"):
        scalechannels.load(saved)


def test_an_unknown_part_in_the_config_is_named(saved: Path):
    edited(saved, lambda config: config["arguments"]["pool"].update({"class": "MedianOverScales"}))
    with pytest.raises(ValueError, match=r"must be poolings or among ScaleGrid, .*; got 'MedianOverScales'"):
        scalechannels.load(saved)


def test_the_wrong_class_is_named(saved: Path):
    with pytest.raises(ValueError, match=r"holds a ScaleChannelNetwork, not a PlainNetwork"):
        PlainNetwork.from_pretrained(saved)
    edited(saved, lambda config: config.update({"class": "Transformer"}))
    with pytest.raises(ValueError, match=r"must be ScaleChannelNetwork or PlainNetwork; got 'Transformer'"):
        scalechannels.load(saved)


def test_a_missing_folder_is_named(tmp_path: Path):
    with pytest.raises(FileNotFoundError, match=r"nowhere' is neither a folder nor a shipped network"):
        scalechannels.load(tmp_path / "nowhere")


def test_a_failed_save_leaves_the_old_weights(saved: Path, monkeypatch):
    before = (saved / "model.safetensors").read_bytes()

    def full(path: Path, content: bytes) -> None:
        path.write_text("half")
        raise OSError(errno.ENOSPC, "no space left")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(OSError, match=r"model.safetensors' cannot be written: .*; free some space"):
        fovmax(GRID).save_pretrained(saved)
    assert (saved / "model.safetensors").read_bytes() == before
    assert not [path.name for path in saved.iterdir() if path.name.startswith(".")]


# What is needed to use it

RUN = """[data]
name = "folder"
sizes = [1.0]
reduce = 2
pixel_size = 0.5
deploy_pixel_sizes = [0.25, 2.0]
"""


def test_a_network_alone_is_known_by_its_colour_channels(saved: Path, tmp_path: Path):
    digits = SavedNetwork.open(saved)
    assert (digits.values, digits.grey, digits.reduce) == ("digits", True, 1)
    assert (digits.classes, digits.names, digits.background) == (None, None, None)
    assert (digits.sizes, digits.deployed, digits.threshold) == (None, None, 0.9)
    assert digits.scales == list(GRID)
    assert not digits.network.training
    cnn(data="cifar10", classes=2).save_pretrained(tmp_path / "colour")
    colour = SavedNetwork.open(tmp_path / "colour")
    assert (colour.values, colour.grey, colour.scales) == ("unit", False, [])
    (tmp_path / "colour" / "result.json").write_text('{"classes": ["cat", "dog"]}')
    named = SavedNetwork.open(tmp_path / "colour")
    assert (named.values, named.classes) == ("unit", ["cat", "dog"])


def test_a_run_says_what_its_network_was_trained_on(saved: Path):
    fovavg(GRID, classes=2).save_pretrained(saved)
    (saved / "config.toml").write_text(RUN)
    (saved / "result.json").write_text('{"classes": ["cat", "dog"]}')
    run = SavedNetwork.open(saved)
    assert (run.values, run.grey, run.reduce) == ("unit", True, 2)
    assert run.classes == run.names == ["cat", "dog"]
    assert (run.sizes, run.deployed) == ((1.0,), (0.25, 2.0))
    assert run.scales == [2 * scale for scale in GRID]
    (saved / "config.toml").write_text(RUN.replace("folder", "mnist"))
    assert SavedNetwork.open(saved).values == "digits"


def test_a_detector_names_the_background_among_its_logits(saved: Path):
    fovavg(GRID, classes=3).save_pretrained(saved)
    about = {"classes": ["a", "b"], "background": 1, "values": "unit", "reduce": 3}
    (saved / "detector.json").write_text(json.dumps(about))
    detector = SavedNetwork.open(saved)
    assert (detector.classes, detector.background) == (["a", "b"], 1)
    assert detector.names == ["a", "background", "b"]
    assert (detector.values, detector.reduce, detector.threshold) == ("unit", 3, 0.5)
    shipped = SavedNetwork.open("digit-detector")
    assert shipped.names == [*"0123456789", "background"]


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("detector.json", "{", r"detector.json' is damaged"),
        ("detector.json", '{"classes": []}', r"detector.json' is damaged: it lacks background, values"),
        ("detector.json", '{"classes": null, "background": 10, "values": "unit"}', r"from 0 to 9; got 10"),
        ("result.json", "[", r"result.json' is damaged"),
        ("result.json", '{"classes": ["a"]}', r"result.json' is damaged: it names 1 classes, but .* has 10"),
        ("result.json", r'{"classes": ["\ud800"]}', r"result.json' is damaged: its classes cannot be"),
        ("config.toml", "data = 3", r"config.toml' is damaged: \[data\] must be a table; got 3"),
        ("config.toml", "[data]\nsizes = 3", r"data.sizes must be positive numbers; got 3"),
        ("config.toml", "[data", r"config.toml' is damaged"),
    ],
)
def test_a_damaged_file_beside_the_network_is_named(saved: Path, name: str, text: str, message: str):
    (saved / name).write_text(text)
    with pytest.raises(ValueError, match=message):
        SavedNetwork.open(saved)


def test_a_run_that_is_not_done_is_told_apart_from_a_folder_without_a_network(tmp_path: Path):
    (tmp_path / "config.toml").write_text(RUN)
    with pytest.raises(
        FileNotFoundError, match=r"is not finished; resume it with scalechannels train --config"
    ):
        SavedNetwork.open(tmp_path)
    (tmp_path / "config.toml").unlink()
    with pytest.raises(FileNotFoundError, match=r"is not a saved network: it has no config.json"):
        SavedNetwork.open(tmp_path)


def test_the_files_of_a_network_are_not_written_over(saved: Path, tmp_path: Path):
    for name in ("config.json", "result.json", "detector.json", "report.json"):
        with pytest.raises(ValueError, match=rf"{name}' is a file of the network in"):
            require_free(saved / name)
        require_free(tmp_path / name)
    require_free(saved / "more.json")


def test_a_network_of_the_hub_is_fetched_by_its_name(saved: Path, monkeypatch: pytest.MonkeyPatch):
    asked = []

    def fetched(name: str, **options: object) -> str:
        asked.append((name, options["revision"]))
        return str(saved)

    monkeypatch.setattr("huggingface_hub.snapshot_download", fetched)
    network = ScaleChannelNetwork.from_pretrained("owner/name", revision="main")
    assert network.grid == GRID
    assert asked == [("owner/name", "main")]


def test_a_detector_that_is_loaded_and_saved_again_keeps_its_background(tmp_path: Path):
    scalechannels.load("digit-detector").save_pretrained(tmp_path)
    first, again = SavedNetwork.open("digit-detector"), SavedNetwork.open(tmp_path)
    assert first.background is not None
    assert (again.names, again.background, again.values) == (first.names, first.background, first.values)


def test_a_network_that_nobody_has_trained_says_nothing_of_its_use(saved: Path):
    assert scalechannels.load(saved).usage is None
    assert "usage" not in json.loads((saved / "config.json").read_text())


@pytest.mark.parametrize(
    ("usage", "says"),
    [
        ([], "lacks classes, background, values, reduce"),
        ({"classes": None, "values": "unit", "reduce": 1}, "lacks background"),
        ({"classes": None, "background": None, "values": "grey", "reduce": 1}, "values cannot be 'grey'"),
        ({"classes": "ab", "background": None, "values": "unit", "reduce": 1}, "classes cannot be 'ab'"),
        ({"classes": None, "background": None, "values": "unit", "reduce": 0}, "reduce cannot be 0"),
    ],
)
def test_a_use_that_makes_no_sense_is_named(saved: Path, usage: object, says: str):
    path = saved / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "usage": usage}))
    with pytest.raises(ValueError, match=rf"config\.json' is damaged: .*{says}"):
        scalechannels.load(saved)


# Configs from elsewhere


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda c: c["arguments"]["backbone"]["arguments"].update(classes=10**9), "up to 1048576; got 1000"),
        (
            lambda c: c["arguments"]["backbone"]["arguments"].update(hidden=2**20),
            "belongs to another network",
        ),
        (lambda c: c["arguments"]["backbone"]["arguments"].update(features=[2**20] * 4), "another network"),
        (lambda c: c["arguments"]["backbone"]["arguments"].update(features=[]), "up to 1024 numbers; got"),
        (lambda c: c["arguments"]["backbone"]["arguments"].update(dropout=float("nan")), "a number; got nan"),
        (lambda c: c["arguments"]["grid"]["arguments"].update(factors=[1] * 5000), "up to 1024 numbers; got"),
        (lambda c: c["arguments"]["grid"]["arguments"].update(factors=["1"]), "up to 1024 numbers; got"),
        *(
            (
                lambda c, factor=factor: c["arguments"]["grid"]["arguments"].update(factors=[factor]),
                "factors must be from 0.0001 to 10000; got",
            )
            for factor in (1e-5, 1e5)
        ),
        (lambda c: c["arguments"].update(window=4097), "window must be from 1 to 4096; got 4097"),
        (lambda c: c["arguments"].update(shifts=2**20), "shifts must be .* up to 28; got 1048576"),
        (lambda c: c["arguments"].update(blur=1e9), "blur must be .* up to 784, .*; got 1000000000"),
        (
            lambda c: c["arguments"].update(look="everywhere", margin=2**20),
            "margin must be .* up to the window's 28; got 1048576",
        ),
        (lambda c: c["arguments"]["grid"].pop("arguments"), "does not fit ScaleGrid: it lacks factors"),
        (lambda c: c["arguments"].update(grid=3), "grid must be a part; got 3"),
        (lambda c: c["arguments"].update(pool=[]), r"pool must be a part; got \[\]"),
        (lambda c: c["arguments"].update(window=True), "window must be a whole number .*; got True"),
        (lambda c: c["arguments"].update(outside="beyond"), "outside must be one of 'border', .*'beyond'"),
        (lambda c: c.update(arguments=7), "its arguments must be a table; got 7"),
        (lambda c: c.update({"class": ["a"]}), r"its class must be text; got \['a'\]"),
        (lambda c: c.update({"class": "SlidingWindowNetwork", "arguments": {}}), "it lacks backbone, grid"),
    ],
)
def test_a_config_from_elsewhere_is_checked_before_anything_is_built(saved: Path, change, says: str):
    edited(saved, change)
    with pytest.raises(ValueError, match=says) as caught:
        scalechannels.load(saved)
    assert str(saved) in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("count", ["scales", "inputs", "outputs"])
def test_a_concatenation_of_nothing_is_named(tmp_path: Path, count: str):
    """PyTorch makes a layer without weights, and only warns."""
    fovconc(GRID).save_pretrained(tmp_path)
    edited(tmp_path, lambda config: config["arguments"]["pool"]["arguments"].update({count: 0}))
    with pytest.raises(ValueError, match=rf"does not fit ConcatScales: {count} must be .* at least 1; got 0"):
        scalechannels.load(tmp_path)


def test_a_config_that_is_nested_without_end_is_named(saved: Path):
    (saved / "config.json").write_text("[" * 100_000)
    with pytest.raises(ValueError, match=r"config.json' is damaged: .*nested too deeply"):
        scalechannels.load(saved)


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"weights": "pretrained"}, "does not fit LibraryBackbone: it takes .*; got 'weights'"),
        ({"name": "hf-hub:owner/model"}, "name must be that of a model in the installed timm; got 'hf-hub:"),
        ({"name": "local-dir:/tmp/model"}, "name must be that of a model in the installed timm"),
    ],
)
def test_no_config_makes_loading_contact_a_network(
    saved: Path, more: dict[str, str], says: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(
        "scalechannels.backbones.zoo.import_library", lambda name: pytest.fail("it would be asked")
    )
    backbone = {"library": "timm", "name": "resnet18", "classes": 10, **more}
    part = {"class": "LibraryBackbone", "arguments": backbone}
    edited(saved, lambda config: config["arguments"].update(backbone=part))
    with pytest.raises(ValueError, match=says):
        scalechannels.load(saved)
