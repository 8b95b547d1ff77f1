"""Networks whose every answer is known: a pixel of the image says what they answer."""

import json
from dataclasses import replace

import pytest
import torch
from torch import nn

from scalechannels import ScaleChannelNetwork, ScaleGrid
from scalechannels.data.anywhere import anywhere
from scalechannels.data.image_set import ImageSet
from scalechannels.data.sizes import MNIST_SIZES, OWN_SIZES, accuracy_table, range_means
from scalechannels.data.strokes import strokes
from scalechannels.network import Explanation
from scalechannels.pooling import LogMeanExpOverScales, MaxOverScales, MeanOverScales
from scalechannels.selection import evidence_centres
from scalechannels.training import evaluate as evaluate_module
from scalechannels.training.errors import unpack_errors
from scalechannels.training.evaluate import as_json, evaluate, evaluate_set

LABELS = torch.tensor([0, 0, 0, 1, 1, 2])
ANSWERS = torch.tensor([0, 0, 1, 1, 2, 2])


def images_of(values) -> torch.Tensor:
    return torch.as_tensor(values, dtype=torch.float32)[:, None, None, None].expand(-1, 1, 4, 4).contiguous()


def images_set(answers=ANSWERS, labels=LABELS) -> ImageSet:
    return ImageSet(images_of(answers), labels, torch.ones(len(labels), dtype=torch.float64))


class Reader(nn.Module):
    """Answers the class that the pixels hold, at any window size."""

    def __init__(self, classes: int = 3) -> None:
        super().__init__()
        self.classes = classes

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        value = images.mean((1, 2, 3)).round().long()
        return nn.functional.one_hot(value, self.classes).float()


def test_known_answers_give_exact_figures() -> None:
    result = evaluate_set(Reader(), images_set(), 2.0, 3)
    assert (result.size, result.images, result.selection) == (2.0, 6, None)
    assert result.accuracy == pytest.approx(100 * 4 / 6, abs=1e-12)
    assert result.per_class == pytest.approx([100 * 2 / 3, 50, 100], abs=1e-12)
    assert result.confusion == [[2, 1, 0], [0, 1, 1], [0, 0, 1]]
    assert unpack_errors(result.errors, 6).tolist() == [False, False, True, False, True, False]


def test_a_class_without_images_counts_nothing() -> None:
    result = evaluate_set(Reader(4), images_set(), 1.0, 4)
    assert result.per_class[3] == 0
    assert result.confusion[3] == [0, 0, 0, 0]
    assert result.accuracy == pytest.approx(100 * 4 / 6)


class OneChannelKnows(nn.Module):
    """The brighter a window, the surer of class 1: a bright square fills the window of small scales alone."""

    def forward(self, windows: torch.Tensor) -> torch.Tensor:
        bright = windows.mean((1, 2, 3))
        return torch.stack([torch.zeros_like(bright), bright], 1)


@pytest.mark.parametrize(
    ("pool", "expected"),
    [
        (MaxOverScales(), [1.0, 0.0]),
        (MeanOverScales(), [0.8, 0.2]),  # shares of 1 and 1/4
        (LogMeanExpOverScales(), torch.tensor([1.0, 0.25]).softmax(0).tolist()),
    ],
)
def test_selection_is_the_mean_contribution_of_each_channel(pool, expected) -> None:
    image = torch.zeros(1, 1, 16, 16)
    image[:, :, 4:12, 4:12] = 1  # fills the window of scale 1, and a quarter of that of scale 2
    network = ScaleChannelNetwork(OneChannelKnows(), ScaleGrid.of(1, 2), pool, window=8)
    data = ImageSet(image.repeat(5, 1, 1, 1), torch.ones(5, dtype=torch.long), torch.ones(5).double())
    result = evaluate_set(network, data, 1.0, 2)
    assert result.accuracy == 100
    assert result.selection == pytest.approx(expected, abs=1e-6)


def test_the_network_answers_in_eval_mode_and_keeps_its_own() -> None:
    network = nn.Sequential(nn.Dropout(0.999), Reader()).train()
    assert evaluate_set(network, images_set(LABELS), 1.0, 3).accuracy == 100
    assert all(part.training for part in network.modules())


def test_all_sizes_are_tested_and_reported_and_fit_into_json() -> None:
    asked, reported = [], []

    def testing(size: float) -> ImageSet:
        asked.append(size)
        return images_set(LABELS if size == 1 else ANSWERS)

    results = evaluate(Reader(), testing, (1.0, 2.0), 3, reported.append)
    assert asked == [1.0, 2.0]
    assert reported == results
    found = json.loads(json.dumps(as_json(results, "validation")))
    assert found["split"] == "validation"
    assert [entry["accuracy"] for entry in found["sizes"]] == [100, pytest.approx(100 * 4 / 6)]
    assert [unpack_errors(entry["errors"], 6).sum() for entry in found["sizes"]] == [0, 2]


def test_labels_outside_the_classes_and_a_network_of_other_classes() -> None:
    with pytest.raises(ValueError, match=r"labels lie in 0 to 2, .*got 0 to 7"):
        evaluate_set(Reader(), images_set(labels=torch.tensor([0, 0, 0, 1, 1, 7])), 1.0, 3)
    with pytest.raises(ValueError, match="has 4 classes, but the data has 3"):
        evaluate_set(Reader(4), images_set(), 1.0, 3)


def test_range_means_have_the_counts_of_the_table() -> None:
    names = {"[1/2,1]": 5, "[1,4]": 9, "[4,8]": 5, "[1/2,4]": 13, "[1/2,8]": 17}
    for name, count in names.items():  # the mean of an indicator is a share
        place = dict.fromkeys(MNIST_SIZES, 0.0)
        inside = [size for size in MNIST_SIZES if range_means({**place, size: 1.0})[name] > 0]
        assert len(inside) == count
        assert range_means({**place, inside[0]: 1.0})[name] == pytest.approx(1 / count)
    assert (min(MNIST_SIZES), max(MNIST_SIZES)) == (0.5, 8)


def test_range_means_take_both_ends_as_files_round_them() -> None:
    assert range_means({0.5: 10.0, 1.0: 30.0, 2.0: 50.0, 4.0: 70.0}) == {
        "[1/2,1]": 20.0, "[1,4]": 50.0, "[1/2,4]": 40.0,
    }  # fmt: skip
    assert "[4,8]" not in range_means({1.0: 30.0})
    assert range_means({1.0: 10.0, 4 * (1 + 1e-12): 10.0})["[1,4]"] == 10.0


def test_a_range_has_a_mean_only_where_both_of_its_ends_were_tested() -> None:
    assert range_means({1.0: 30.0, 2.0: 50.0}) == {}
    assert range_means({4.0: 30.0, 5.0: 50.0}) == {}
    assert set(range_means(dict.fromkeys(OWN_SIZES, 50.0))) == {"[1/2,1]", "[1,4]", "[1/2,4]"}
    assert "mean" not in accuracy_table({"fovlse": {1.0: 30.0, 2.0: 50.0}})


def test_objects_anywhere_are_told_by_place_and_scale(monkeypatch: pytest.MonkeyPatch) -> None:
    """A network whose answers are known: always 3 rows off, two octaves above the object's size or three."""
    data = anywhere(strokes(6), 6, (0.5, 2.0), seed=1)
    assert data.places is not None

    class Known(torch.nn.Module):
        def forward(self, images: torch.Tensor) -> torch.Tensor:
            ink = (images - images.amin()).square().sum((1, 2, 3))
            return torch.eye(10)[data.labels[: len(images)]] * ink[:, None]

        def explain(self, images: torch.Tensor) -> Explanation:
            scales = data.scales * torch.tensor([4.0, 4, 4, 4, 8, 8])
            places = data.places + torch.tensor([3.0, 0.0])
            return Explanation(torch.eye(10)[data.labels], scales=scales, places=places)

    result = evaluate_set(Known(), data, (0.5, 2.0), 10)
    assert result.accuracy == 100
    assert result.place_error == pytest.approx(3)
    assert 0 < result.evidence_error < 2.5  # the ink's own centre is so far off that of its box
    assert (result.scale_offset, result.scale_error) == (pytest.approx(2), pytest.approx(0))
    (entry,) = as_json([result], "test")["sizes"]
    assert entry["place_error"] == pytest.approx(3)
    monkeypatch.setattr(evaluate_module, "LOOKED_INTO", 1)  # of the first image alone
    (first,) = evidence_centres(Known(), data.images)[:1] - data.places[:1]
    assert evaluate_set(Known(), data, (0.5, 2.0), 10).evidence_error == pytest.approx(float(first.norm()))
    centred = evaluate_set(Known(), replace(data, places=None), 1.0, 10)
    assert "place_error" not in as_json([centred], "test")["sizes"][0]
