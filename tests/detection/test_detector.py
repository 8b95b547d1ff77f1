"""Detection: peaks, boxes, suppression, average precision on known truth; the shipped detector on scenes."""

import math
from pathlib import Path
from typing import Any

import matplotlib
import pytest
import torch
from helpers.signals import blob
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

import scalechannels
from scalechannels import MaxOverScales, ScaleChannelNetwork, ScaleGrid, fovavg
from scalechannels.data.pictures import squashed
from scalechannels.data.printed import Printed
from scalechannels.data.scenes import scene
from scalechannels.detection import detector as detection
from scalechannels.detection import following
from scalechannels.detection.average_precision import Ranked, average_precision, right
from scalechannels.detection.boxes import overlap, suppress
from scalechannels.detection.detector import Detector, Rules
from scalechannels.detection.found import Detection
from scalechannels.detection.interest_points import interest_points
from scalechannels.detection.textures import texture
from scalechannels.saving.saved_network import SavedNetwork

N = 16


class Blobs(nn.Module):
    """Classes: bright blob of standard deviation 2 window pixels, dark one, background. Slides by 2."""

    stride, channels = 2, 1

    def __init__(self) -> None:
        super().__init__()
        x = torch.arange(N, dtype=torch.float64) - (N - 1) / 2
        radius = (x[:, None] ** 2 + x**2) / 4
        template = (2 - radius) * torch.exp(-radius / 2)
        template = template - template.mean()
        self.register_buffer("template", (template / template.abs().sum())[None, None])

    def forward(self, windows: Tensor) -> Tensor:
        return self.logit_map(windows)[:, :, 0, 0]

    def logit_map(self, images: Tensor) -> Tensor:
        response = nn.functional.conv2d(images, self.template, stride=2)
        return torch.cat((20 * response, -20 * response, torch.full_like(response, 3.0)), 1)


def blobs(**options) -> Detector:
    grid = ScaleGrid(1, 8, ratio=2**0.5)
    network = ScaleChannelNetwork(Blobs(), grid, MaxOverScales(), window=N).double()
    return Detector(network, background=2, **options)


def blob_image(*parts: tuple[float, float, float, float]) -> Tensor:
    """Blobs (size, height, row, column from the middle of 161 x 201 pixels)."""
    return sum(blob(*part).image(161, 201) for part in parts)[0]


PARTS = ((3.0, 1.0, -40.0, -60.0), (6.0, -1.0, 30.0, 50.0), (11.0, 1.0, 20.0, -40.0))


def check_blobs(found: list[Detection]) -> None:
    assert len(found) == 3
    for size, height, row, column in PARTS:
        (one,) = [each for each in found if abs((each.box[1] + each.box[3]) / 2 - 80 - row) < 6]
        assert (one.box[0] + one.box[2]) / 2 - 100 == pytest.approx(column, abs=0.15 * size + 0.3)
        assert (one.box[1] + one.box[3]) / 2 - 80 == pytest.approx(row, abs=0.15 * size + 0.3)
        assert one.scale == pytest.approx(size / 2, rel=0.1)
        assert one.box[2] - one.box[0] == pytest.approx(N * one.scale)
        assert one.label == (0 if height > 0 else 1)
        assert not one.at_edge
        assert 0.5 < one.probability < 1


def test_blobs_are_found_at_their_places_with_their_sizes() -> None:
    found = blobs()(blob_image(*PARTS))
    check_blobs(found)
    assert [one.probability for one in found] == sorted((one.probability for one in found), reverse=True)


def test_tiles_do_not_change_what_is_found() -> None:
    image = blob_image(*PARTS)
    whole = blobs(tile=1000)(image)
    for tile in (40, 97):
        tiled = blobs(tile=tile)(image)
        assert len(tiled) == len(whole)
        for one, other in zip(whole, tiled, strict=True):
            assert one.label == other.label
            assert torch.allclose(torch.tensor(one.box), torch.tensor(other.box), atol=1e-6)


@pytest.mark.parametrize("tile", [16, 45])
def test_tiles_have_every_peak_once(tile: int) -> None:
    """On noise, which has peaks everywhere: across the tiles' borders too."""
    image = torch.randn(1, 70, 90, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    whole, tiled = (blobs(tile=side, threshold=0.01).peaks(image) for side in (1000, tile))
    assert len(whole.sigmas) > 30
    assert len(tiled.sigmas) == len(whole.sigmas)
    first, second = (
        torch.cat((peaks.centres, peaks.sigmas[:, None], peaks.logits), 1)[
            (peaks.centres @ torch.tensor([1.0, 1000.0]).double() + 1e6 * peaks.channels).argsort()
        ]
        for peaks in (whole, tiled)
    )
    assert torch.allclose(first, second, atol=1e-9)


def test_one_blob_is_one_peak_over_position_and_scale() -> None:
    assert len(blobs().peaks(blob_image((6.0, 1.0, 3.0, -7.0))).sigmas) == 1


def test_an_object_at_the_end_of_the_grid_says_so() -> None:
    for size, scale in ((1.5, 1.0), (18.0, 8.0)):
        (one,) = blobs(threshold=0.3)(blob_image((size, 1.5, 0.0, 0.0)))
        assert one.at_edge
        assert one.scale == pytest.approx(scale)


@pytest.mark.parametrize("shape", [(1, 1), (3, 40), (90, 90)])
def test_an_image_without_objects_gives_nothing(shape: tuple[int, int]) -> None:
    image = torch.zeros(1, *shape, dtype=torch.float64)
    assert blobs()(image) == []
    assert blobs().at_interest_points(image) == []


def test_points_of_interest_find_bright_blobs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(following, "BLOB", 2 / N)  # what this detector's objects are
    bright = [part for part in PARTS if part[1] > 0]
    found = blobs().at_interest_points(blob_image(*bright))
    assert len(found) == 2
    for one, (size, _, row, column) in zip(sorted(found, key=lambda one: one.scale), bright, strict=True):
        assert one.scale == pytest.approx(size / 2, rel=0.2)
        assert (one.box[0] + one.box[2]) / 2 - 100 == pytest.approx(column, abs=0.3 * size)
        assert (one.box[1] + one.box[3]) / 2 - 80 == pytest.approx(row, abs=0.3 * size)


@pytest.mark.parametrize("look", ["everywhere", "interest"])
def test_what_is_made_lies_where_the_image_lies(look: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a GPU: a tensor that is made without saying where would be on another device than the image."""
    image, detector = blob_image(PARTS[0], PARTS[2]), blobs()
    points = interest_points(image, smallest=1, largest=40, threshold=0.2)
    monkeypatch.setattr(following, "interest_points", lambda *_, **__: points)
    find = detector if look == "everywhere" else detector.at_interest_points
    expected = find(image)
    with torch.device("meta"):
        found = find(image)
    assert found == expected
    assert len(found) == 2


def test_a_network_without_background_answers_by_its_best_class() -> None:
    network = fovavg(ScaleGrid.of(1, 2)).eval()
    detector = Detector(network, threshold=0.0)
    logits = torch.tensor([[2.0, 0.0, -1.0]])
    expected = 2 - math.log(1 + math.exp(-1))
    assert detector.odds_of(logits)[0] == pytest.approx(expected)
    assert len(detector(torch.randn(1, 40, 40))) > 0


@pytest.mark.parametrize("threshold", [-0.1, 1.0])
def test_a_threshold_that_is_no_probability_is_refused(threshold: float) -> None:
    with pytest.raises(ValueError, match="threshold must be a probability"):
        blobs(threshold=threshold)


@pytest.mark.parametrize("shape", [(1, 1, 40, 40), (40, 40), (40,), (), (1, 0, 40), (1, 40, 0), (0, 40, 40)])
def test_an_image_of_another_shape_is_refused(shape: tuple[int, ...]) -> None:
    detector = blobs()
    for look in (detector, detector.peaks, detector.at_interest_points):
        with pytest.raises(ValueError, match=r"one image \(C, H, W\).*got the shape \(") as caught:
            look(torch.zeros(shape, dtype=torch.float64))
        assert str(caught.value).endswith(str(shape))


def test_an_image_of_another_kind_is_refused() -> None:
    detector = Detector(fovavg(ScaleGrid.of(1, 2)).eval())
    for look in (detector, detector.at_interest_points):
        with pytest.raises(ValueError, match="this network takes grey images; got RGB images"):
            look(torch.zeros(3, 40, 40))
        with pytest.raises(TypeError, match=r"must be floating; got torch.uint8"):
            look(torch.zeros(1, 40, 40, dtype=torch.uint8))
        with pytest.raises(TypeError, match=r"torch.Tensor \(C, H, W\); got ndarray"):
            look(torch.zeros(1, 40, 40).numpy())  # type: ignore[operator]


def test_a_background_that_is_no_class_is_refused() -> None:
    known = fovavg(ScaleGrid.of(1, 2), classes=11).eval()
    assert Detector(known, background=10).background == 10
    assert Detector(known, background=torch.tensor(10)).background == 10  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"one of the network's 11 classes, 0 to 10, or None .*got 11"):
        Detector(known, background=11)
    for wrong in (-1, 1.0, True, "10", torch.tensor(1.5)):
        with pytest.raises(ValueError, match="a class, counted from 0"):
            Detector(known, background=wrong)  # type: ignore[arg-type]
    unknown = Detector(blobs().network, background=3)  # its backbone does not say how many classes it has
    for look in (unknown, lambda image: unknown.at_interest_points(image, threshold=0.01)):
        with pytest.raises(ValueError, match=r"one of the network's 3 classes, 0 to 2, or None .*got 3"):
            look(blob_image(*PARTS))


# Boxes


@pytest.mark.parametrize("threshold", [0, 1e-9])
def test_a_flat_image_has_a_bounded_number_of_objects(
    threshold: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(detection, "MOST", 50, raising=False)
    find = blobs(threshold=threshold, tile=40)
    with pytest.warns(UserWarning, match=r"places may hold an object at .*; only the best 50 are looked at"):
        found = find(torch.zeros(1, 100, 100, dtype=torch.float64))
    assert 0 < len(found) <= 50


def test_a_noisy_image_has_a_bounded_number_of_points_of_interest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(detection, "MOST", 2)
    noise = torch.randn(1, 161, 201, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    with pytest.warns(UserWarning, match=r"has [\d,]+ points of interest; only the strongest 2 are looked"):
        found = blobs().at_interest_points(blob_image(PARTS[0], PARTS[2]) + 0.01 * noise, threshold=1e-4)
    assert sorted(one.scale for one in found) == pytest.approx([1.5, 5.5], rel=0.2)
    with pytest.warns(UserWarning, match="only the strongest 2"):
        found = blobs(threshold=0).at_interest_points(noise, threshold=1e-4)  # nothing else keeps them few
    assert 1 <= len(found) <= 2


def test_the_best_peaks_are_kept_whatever_the_tiles(monkeypatch: pytest.MonkeyPatch) -> None:
    image = blob_image(*PARTS)
    monkeypatch.setattr(detection, "MOST", 20, raising=False)
    for tile in (60, 1000):
        with pytest.warns(UserWarning, match="only the best 20"):
            check_blobs(blobs(threshold=0, tile=tile)(image)[:3])


@pytest.mark.parametrize("look", ["everywhere", "interest"])
@pytest.mark.parametrize("kind", [torch.float64, torch.bfloat16, torch.float16])
def test_a_network_of_another_precision_finds_the_same(kind: torch.dtype, look: str) -> None:
    shown = scene(2, 0, height=60, width=70, sizes=(0.5, 1.0), background="plain").image
    found = []
    for precision in (torch.float32, kind):
        network: ScaleChannelNetwork = scalechannels.load("digit-detector").to(precision)  # type: ignore
        finder = Detector(network, background=10)
        find = finder if look == "everywhere" else finder.at_interest_points
        found += [find(shown), find(shown.to(precision))]
    assert len(found[0]) == 2
    assert [[one.label for one in each] for each in found] == [[one.label for one in found[0]]] * 4


@pytest.mark.parametrize("background", [0, 4, 10])
@torch.no_grad()
def test_objects_have_their_names_wherever_the_background_is_among_the_logits(background: int) -> None:
    """Other libraries have it first; the names are those of the objects alone."""
    shown = scene(2, 0, height=60, width=70, sizes=(0.5, 1.0), background="plain").image
    expected = Detector.from_pretrained("digit-detector")(shown)
    network: ScaleChannelNetwork = scalechannels.load("digit-detector")
    order = [*range(background), 10, *range(background, 10)]
    last: Any = network.backbone.classifier
    last.weight.copy_(last.weight[order])
    last.bias.copy_(last.bias[order])
    network.usage = {**(network.usage or {}), "background": background}
    detector = Detector(network)
    assert detector.classes == list("0123456789")
    for found in (detector(shown), detector.at_interest_points(shown)):
        named = {detector.classes[one.label] for one in found}
        assert named == {str(one.label) for one in expected}
    logits = torch.eye(11)[order].T  # of which the k-th says class k, and the last the background
    assert detector.probabilities(logits).argmax(1)[:10].tolist() == list(range(10))


def boxes(*rows: tuple[float, ...]) -> Tensor:
    return torch.tensor(rows, dtype=torch.float64).view(-1, 4)


def test_overlap_by_hand() -> None:
    first = boxes((0, 0, 2, 2))
    second = boxes((1, 0, 3, 2), (0, 0, 2, 2), (5, 5, 6, 6), (0.5, 0.5, 1.5, 1.5))
    assert overlap(first, second)[0].tolist() == pytest.approx([1 / 3, 1, 0, 0.25])


def test_suppression_keeps_the_best_of_each_object() -> None:
    given = boxes((0, 0, 10, 10), (1, 1, 11, 11), (20, 20, 30, 30), (22, 22, 26, 26), (9, 9, 19, 19))
    scores = torch.tensor([0.5, 0.9, 0.8, 0.85, 0.1])
    # The best one beats its neighbour; the small one inside beats the large one; a touching one stays.
    assert suppress(given, scores).tolist() == [1, 3, 4]
    assert suppress(given, scores, inside=1.1).tolist() == [1, 3, 2, 4]
    assert suppress(boxes(), torch.empty(0)).tolist() == []


def ranked(rows: list[tuple[float, ...]], labels: list[int], scores: list[float]) -> Ranked:
    return Ranked(boxes(*rows), torch.tensor(labels), torch.tensor(scores).double())


def test_average_precision_by_hand() -> None:
    a, b, c, nowhere = (0, 0, 10, 10), (20, 0, 30, 10), (40, 0, 50, 10), (70, 70, 80, 80)
    truth = [ranked([a, b], [1, 2], [1, 1]), ranked([c], [3], [1])]
    perfect = [ranked([a, b], [1, 2], [0.9, 0.8]), ranked([c], [3], [0.7])]
    assert average_precision(perfect, truth) == pytest.approx(1)
    # Ranking: right, wrong, right; the third object is missed: 1/3·1 + 1/3·2/3.
    some = [ranked([a, nowhere], [1, 1], [0.9, 0.8]), ranked([c], [3], [0.7])]
    assert average_precision(some, truth) == pytest.approx(1 / 3 + 2 / 9)
    # A second detection of one object is wrong, and a wrong class is wrong unless classes do not count.
    twice = [ranked([a, (0, 0, 10, 9)], [1, 1], [0.9, 0.8]), ranked([c], [2], [0.7])]
    assert right(twice[0], truth[0]).tolist() == [True, False]
    assert average_precision(twice, truth) == pytest.approx(1 / 3)
    assert average_precision(twice, truth, classes=False) == pytest.approx(1 / 3 + 2 / 9)
    nothing = [ranked([], [], []), ranked([], [], [])]
    assert average_precision(nothing, truth) == 0
    with pytest.raises(ValueError, match="needs at least one object"):
        average_precision(nothing, nothing)
    with pytest.raises(ValueError, match="got 1 for 2 images"):
        average_precision(nothing[:1], truth)


def test_half_an_overlap_is_enough_and_less_is_not() -> None:
    truth = ranked([(0, 0, 10, 10)], [0], [1])
    assert right(ranked([(0, 0, 10, 5)], [0], [1]), truth).tolist() == [True]
    assert right(ranked([(0, 0, 10, 4.9)], [0], [1]), truth).tolist() == [False]


# The shipped detector


def as_ranked(found: list[Detection]) -> Ranked:
    return Ranked(
        torch.tensor([one.box for one in found], dtype=torch.float64).view(-1, 4),
        torch.tensor([one.label for one in found], dtype=torch.int64),
        torch.tensor([one.probability for one in found], dtype=torch.float64),
    )


@pytest.fixture(scope="module")
def detector() -> Detector:
    network = scalechannels.load("digit-detector")
    assert isinstance(network, ScaleChannelNetwork)
    return Detector(network, background=10)


def test_the_shipped_detector_finds_digits_of_every_size_on_held_out_scenes(detector: Detector) -> None:
    """Learnt at size 1, found from 1/2 to 4. The built-in test digits were not in training."""
    scenes = [
        scene(5, 100 + seed, height=300, width=400, background=background)
        for seed, background in enumerate(("plain", "noisy", "plain", "noisy"))
    ]
    truth = [Ranked(one.boxes, one.labels, torch.ones(len(one.labels))) for one in scenes]
    sizes = torch.cat([one.sizes for one in scenes])
    assert sizes.min() < 0.7
    assert sizes.max() > 2.8
    found = [as_ranked(detector(one.image)) for one in scenes]
    assert average_precision(found, truth) >= 0.9
    looked = [as_ranked(detector.at_interest_points(one.image)) for one in scenes]
    recall = sum(int(right(a, b).sum()) for a, b in zip(looked, truth, strict=True)) / len(sizes)
    assert recall >= 0.5


def test_the_shipped_detector_finds_nothing_where_nothing_is(detector: Detector) -> None:
    for background in ("plain", "noisy"):
        assert detector(scene(0, 7, height=200, width=300, background=background).image) == []


def test_the_shipped_detector_stays_quiet_on_textures_it_never_saw(detector: Detector) -> None:
    """Photographs are not in the repository; `benchmarks.detection_photographs` counts on them."""
    generator = torch.Generator().manual_seed(12345)
    found = [
        one.probability
        for _ in range(12)
        for one in detector(squashed(255 * texture(1, 256, generator)))
        if one.probability >= 0.9
    ]
    assert len(found) <= 1


def test_the_shipped_detector_reads_printed_digits(detector: Detector) -> None:
    folder = Path(matplotlib.get_data_path(), "fonts/ttf")
    fonts = [folder / f"{name}.ttf" for name in ("DejaVuSans", "DejaVuSerif", "DejaVuSansMono")]
    scenes = [scene(8, seed, height=400, width=500, objects=Printed.of(fonts)) for seed in range(4)]
    hits = [
        int(right(as_ranked(detector(one.image)), Ranked(one.boxes, one.labels, torch.ones(8))).sum())
        for one in scenes
    ]
    assert sum(hits) >= 0.9 * 32


@pytest.mark.parametrize("look", ["everywhere", "interest"])
def test_the_mode_of_the_network_does_not_matter(look: str) -> None:
    """A training loop that goes on with the network neither changes what is found nor loses statistics."""
    network = scalechannels.load("digit-detector")
    detector = Detector(network, background=10)
    image = scene(3, 1, height=160, width=160, sizes=(0.6, 2.0)).image
    find = detector if look == "everywhere" else detector.at_interest_points
    before = {name: value.clone() for name, value in network.state_dict().items()}
    expected = find(image)
    network.train()
    assert expected
    assert find(image) == expected
    assert all(part.training for part in network.modules())  # as they were
    for name, value in network.state_dict().items():
        assert torch.equal(value, before[name]), name


class Largest(TorchDispatchMode):
    """Remembers how many numbers the largest tensor has that was computed."""

    count = 0

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = function(*args, **(kwargs or {}))
        if not function.is_view:
            computed = (value for value in tree_leaves(made) if isinstance(value, Tensor))
            self.count = max(self.count, *(value.numel() for value in computed), 0)
        return made


def test_no_tensor_grows_with_the_image() -> None:
    """Five tiles along a side need what three need, where the one in the middle has neighbours all around."""
    largest = []
    for tiles in (3, 5):
        image, detector = torch.zeros(1, tiles * 128, tiles * 128, dtype=torch.float64), blobs(tile=128)
        with Largest() as seen:
            assert detector(image) == []
        largest.append(seen.count)
    assert largest[0] == largest[1]


def test_saving_a_detector_leaves_its_network_as_it_was(tmp_path: Path) -> None:
    """Nothing is known of how it is used: a grey one is one of digits, whichever way it is saved."""
    network = fovavg(ScaleGrid.of(1, 2)).eval()
    Detector(network, background=3, threshold=0.7).save_pretrained(tmp_path / "detector")
    assert network.usage is None
    assert (Detector(network).threshold, Detector(network).background) == (0.5, None)
    network.save_pretrained(tmp_path / "network")
    found, plain = (SavedNetwork.open(tmp_path / name) for name in ("detector", "network"))
    assert (found.values, found.reduce) == (plain.values, plain.reduce) == ("digits", 1)
    assert (found.background, found.threshold, plain.background) == (3, 0.7, None)


def test_another_threshold_keeps_what_the_detector_was_told() -> None:
    network = fovavg(ScaleGrid.of(1, 2)).eval()
    one = Detector(network, background=3, rules=Rules(0.7, iou=0.4), tile=300).with_threshold(0.1)
    assert (one.network, one.background, one.rules) == (network, 3, Rules(0.1, iou=0.4))
    assert one.dense.tile == 300
