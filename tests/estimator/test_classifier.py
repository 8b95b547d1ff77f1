"""ScaleInvariantClassifier: what it learns is what the command learns, and arrays mean what they say."""

import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from helpers.bars import bars
from helpers.command_line import run
from PIL import Image

import scalechannels
from scalechannels import Predictor

IMAGES, LABELS = bars()
ROOT = Path(__file__).parents[2]
Quick = Callable[..., Any]


def weights(network: torch.nn.Module) -> torch.Tensor:
    return torch.cat([value.double().flatten() for value in network.state_dict().values()])


def test_a_folder_of_the_same_pixels_trains_the_same_weights(
    quick: Quick, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bit for bit: candidate, recipe, epochs and order are those of the command."""
    monkeypatch.chdir(tmp_path)
    order = np.argsort(LABELS, kind="stable")  # that of a folder: class after class
    for part, seed in (("train", 0), ("val", 1), ("test", 2)):
        for index, (image, label) in enumerate(zip(*bars(seed=seed), strict=True)):
            path = Path("photos", part, label, f"{index:02}.png")
            path.parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray(image).save(path)
    words = ["--training.epochs", "2", "--training.seed", "3", "--data.seed", "3", "--range", "1", "1"]
    words += ["--network.window", "12", "--network.ratio", "4", "--data.images", "crops"]
    assert run("train", "--data", "photos", "--no-compare", "--device", "cpu", *words) == 0
    (folder,) = Path("runs").glob("photos-*/config.json")
    classifier = quick(validation_fraction=0, random_state=3).fit(IMAGES[order], LABELS[order])
    network = scalechannels.load(folder.parent)
    assert torch.equal(weights(classifier.network_), weights(network))
    assert not torch.equal(weights(quick(random_state=4).fit(IMAGES, LABELS).network_), weights(network))


@pytest.mark.parametrize("name", ["scale channels everywhere", "resized CNN", "augmented CNN"])
def test_the_other_candidates_of_the_command(quick: Quick, name: str) -> None:
    classifier = quick(network=name, sizes=(1, 2), epochs=1).fit(IMAGES, LABELS)
    looks = {"scale channels everywhere": "everywhere", "resized CNN": "whole", "augmented CNN": "centre"}
    assert classifier.network_.look == looks[name]
    assert classifier.predict_proba(IMAGES).shape == (16, 2)


@pytest.mark.slow
def test_objects_are_recognised_at_twice_their_size() -> None:
    from scalechannels.data.strokes import strokes

    def digits(count: int, split: Any, scale: float, pixels: int) -> tuple[np.ndarray, np.ndarray]:
        made = strokes(count, 0, split)
        kept = made.labels < 3
        shown = (made.render(scale, pixels)[kept, 0] + 0.763) / 1.526
        return (shown.clamp(0, 1) * 255).byte().numpy(), made.labels[kept].numpy()

    options = {"network": {"ratio": 2**0.5}}
    classifier = scalechannels.ScaleInvariantClassifier(
        sizes=(1, 2), epochs=12, random_state=0, options=options
    )
    classifier.fit(*digits(700, "train", 1.0, 28))
    assert classifier.score(*digits(200, "test", 1.0, 28)) > 0.9
    assert classifier.score(*digits(200, "test", 2.0, 56)) > 0.85


def shapes() -> dict[str, Any]:
    listed, ragged = list(IMAGES), np.empty(len(IMAGES), dtype=object)
    for index, image in enumerate(IMAGES):
        ragged[index] = image
    return {
        "one colour axis": IMAGES[..., None],
        "flat rows": IMAGES.reshape(len(IMAGES), -1),
        "a list": listed,
        "nested lists": IMAGES.tolist(),
        "an object array": ragged,
        "pictures of Pillow": [Image.fromarray(image) for image in IMAGES],
        "a tensor": torch.from_numpy(IMAGES),
        "another layout": np.asfortranarray(IMAGES),
    }


@pytest.mark.parametrize("name", shapes())
def test_every_form_of_the_same_images_is_learnt_alike(quick: Quick, name: str) -> None:
    given = shapes()[name]
    value_range = (0, 255) if name == "nested lists" else None  # whose numbers have lost their type
    expected = quick(value_range=value_range).fit(IMAGES, LABELS)
    classifier = quick(value_range=value_range).fit(given, LABELS)
    assert (classifier.predict_proba(given) == expected.predict_proba(IMAGES)).all()
    assert hasattr(classifier, "n_features_in_") == (name == "flat rows")


def test_flat_rows_of_another_shape_are_said(quick: Quick) -> None:
    colour = np.repeat(IMAGES[:, :, 3:13, None], 3, axis=3)
    rows = colour.reshape(len(colour), -1)
    expected = quick().fit(colour, LABELS).predict_proba(colour)
    assert (quick(image_shape=(16, 10, 3)).fit(rows, LABELS).predict_proba(rows) == expected).all()
    for shape, says in (
        (None, r"n_features=480, which is no square grey image .* give image_shape=\(H, W\)"),
        ((16, 16), r"image_shape \(16, 16\) has 256 values, but the rows of X have 480"),
        ((480,), r"image_shape must be \(H, W\) or \(H, W, 3\); got \(480,\)"),
    ):
        with pytest.raises(ValueError, match=says):
            quick(image_shape=shape).fit(rows, LABELS)


def test_images_of_several_sizes(quick: Quick) -> None:
    small, _ = bars(8, 12)
    mixed = [*IMAGES[:8], *small]
    classifier = quick().fit(mixed, [*LABELS[:8], *LABELS[:8]])
    ragged = np.empty(16, dtype=object)
    for index, image in enumerate(mixed):
        ragged[index] = image
    one_by_one = np.concatenate([classifier.predict_proba(image[None]) for image in mixed])
    assert np.allclose(classifier.predict_proba(mixed), one_by_one, atol=1e-6)
    assert (classifier.predict_proba(ragged) == classifier.predict_proba(mixed)).all()
    assert classifier.predict_proba(np.kron(IMAGES, np.ones((3, 3), np.uint8))).shape == (16, 2)


def test_answers_are_those_of_the_saved_network_on_files(quick: Quick, tmp_path: Path) -> None:
    classifier = quick(epochs=4).fit(IMAGES, LABELS)
    classifier.network_.save_pretrained(tmp_path)
    predictor = Predictor(tmp_path)
    for image, said in zip(IMAGES, classifier.predict_proba(IMAGES), strict=True):
        Image.fromarray(image).save(tmp_path / "one.png")
        told = predictor(tmp_path / "one.png").probabilities
        assert [told[name] for name in classifier.classes_] == pytest.approx(said.tolist(), abs=1e-5)
    assert predictor.saved.temperature != 1  # calibrated on what was held out
    assert predictor.saved.object_size == 16
    grid, own_scale = classifier.network_.grid, classifier.network_.usage["own_scale"]
    assert any(own_scale == pytest.approx(scale) for scale in grid)
    assert "temperature" not in quick(validation_fraction=0).fit(IMAGES, LABELS).network_.usage


def test_large_images_are_reduced_in_training_testing_and_use(
    quick: Quick, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from scalechannels.estimator import learning

    asked: list[tuple[int, ...]] = []

    def noted(network: Any, pictures: Any, device: Any) -> Any:
        shown = list(pictures)
        asked.append(tuple(shown[0].shape))
        return answered(network, shown, device)

    answered = learning.answered
    monkeypatch.setattr(learning, "answered", noted)
    large = np.kron(IMAGES[:8], np.ones((15, 15), np.uint8))  # 240 pixels, which are halved
    classifier = quick(epochs=1).fit(large, LABELS[:8])
    said = classifier.predict_proba(large)
    assert asked == [(1, 120, 120)] * 2
    classifier.network_.save_pretrained(tmp_path)
    told = Predictor(tmp_path)(torch.from_numpy(large[0])[None] / 255)
    assert said[0].tolist() == pytest.approx([told.probabilities[name] for name in classifier.classes_])


@pytest.mark.parametrize(
    ("labels", "classes"),
    [
        (np.array([7, -2] * 8), [-2, 7]),
        (["b", "a"] * 8, ["a", "b"]),
        ([True, False] * 8, [False, True]),
        (np.array([0.0, 3.0] * 8, np.float32), [0, 3]),
        (np.array(["x", 1] * 8, dtype=object).astype(str), ["1", "x"]),
    ],
)
def test_labels_of_any_type(quick: Quick, labels: Any, classes: list[Any]) -> None:
    classifier = quick(epochs=20).fit(IMAGES, labels)
    assert classifier.classes_.tolist() == classes
    assert (classifier.predict(IMAGES) == np.asarray(labels)).all()
    assert classifier.score(IMAGES, labels) == 1
    shares = classifier.predict_proba(IMAGES)
    assert shares.sum(1) == pytest.approx(np.ones(16))
    assert (classifier.classes_[shares.argmax(1)] == np.asarray(labels)).all()


def test_the_same_seed_learns_the_same_and_nobody_elses_numbers_are_taken(quick: Quick) -> None:
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    first, again, other = (weights(quick(random_state=s).fit(IMAGES, LABELS).network_) for s in (1, 1, 2))
    assert torch.equal(torch.rand(3), expected)
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    drawn = [np.random.RandomState(0) for _ in range(2)]
    one, same = (weights(quick(random_state=state).fit(IMAGES, LABELS).network_) for state in drawn)
    assert torch.equal(one, same)
    np.random.seed(0)
    state = np.random.get_state()[1].copy()  # type: ignore[index, union-attr]
    quick(random_state=0).fit(IMAGES, LABELS)
    assert (np.random.get_state()[1] == state).all()  # type: ignore[index]


def test_a_pickle_a_clone_and_the_parameters(quick: Quick) -> None:
    from sklearn.base import clone
    from sklearn.exceptions import NotFittedError

    classifier = quick().fit(IMAGES, LABELS)
    again = pickle.loads(pickle.dumps(classifier))
    assert (again.predict_proba(IMAGES) == classifier.predict_proba(IMAGES)).all()
    fresh = clone(classifier)
    assert fresh.get_params() == classifier.get_params()
    with pytest.raises(NotFittedError):
        fresh.predict(IMAGES)
    assert fresh.set_params(epochs=3).fit(IMAGES, LABELS).n_iter_ == len(fresh.loss_curve_) == 3
    assert classifier.n_iter_ == 2


def test_cross_validation_and_a_grid_of_candidates(quick: Quick) -> None:
    from sklearn.model_selection import GridSearchCV, cross_val_score

    scores = cross_val_score(quick(epochs=40), list(IMAGES), LABELS, cv=2)
    assert scores.tolist() == [1, 1]
    choices = {"network": ["scale channels", "resized CNN"]}
    search = GridSearchCV(quick(epochs=1), choices, cv=2).fit(IMAGES, LABELS)
    assert search.best_params_["network"] in choices["network"]


def test_rare_classes_and_the_seed_are_as_in_the_command(
    quick: Quick, monkeypatch: pytest.MonkeyPatch
) -> None:
    from scalechannels.estimator import learning

    seen = []

    def noted(configs: Any, *given: Any, **options: Any) -> Any:
        (run,) = configs
        seen.append((run.training.class_weights, run.data.seed, run.training.seed))
        return fit(configs, *given, **options)

    fit = learning.fit
    monkeypatch.setattr(learning, "fit", noted)
    rare = np.where(np.arange(16) < 3, LABELS[0], LABELS[1])
    quick().fit(IMAGES, LABELS)
    quick(random_state=7).fit(IMAGES, rare)
    assert seen == [("none", 0, 0), ("balanced", 7, 7)]


def test_of_many_images_that_are_held_out_some_are_asked(
    quick: Quick, monkeypatch: pytest.MonkeyPatch
) -> None:
    from scalechannels.estimator import learning

    asked: list[int] = []

    def counted(network: Any, pictures: Any, device: Any) -> Any:
        shown = list(pictures)
        asked.append(len(shown))
        return answered(network, shown, device)

    answered = learning.answered
    monkeypatch.setattr(learning, "answered", counted)
    quick(validation_fraction=0.5).fit(IMAGES, LABELS)
    monkeypatch.setattr(learning, "MEASURED", 3)
    quick(validation_fraction=0.5).fit(IMAGES, LABELS)
    assert asked == [8, 3]


def test_options_are_those_of_the_command(quick: Quick) -> None:
    options = {"network": {"window": 16, "name": "fovavg", "ratio": 2.0}, "training": {"flips": True}}
    classifier = quick(options=options).fit(IMAGES, LABELS)
    assert classifier.network_.foveate.window == 16
    assert type(classifier.network_.pool).__name__ == "MeanOverScales"
    stopped = {**options, "training": {"patience": 1}}
    assert quick(options=stopped, epochs=60).fit(IMAGES, LABELS).n_iter_ < 60
    for wrong, given, says in (
        ({"training": {"flip": True}}, {}, "flip"),
        ({"training": {"epochs": 2}}, {}, "must not have training.epochs: the classifier's parameters"),
        ({"data": {"test": 0.2}}, {}, "options must not have data.test"),
        ({"network": {"name": "cnn"}}, {}, "must not have network.name cnn: say network='resized CNN'"),
        (stopped, {"validation_fraction": 0}, "patience needs images to judge by: give validation_fraction"),
        (
            None,
            {"network": "cnn"},
            "network must be one of 'scale channels', 'scale channels everywhere', 'resi",
        ),
        ({"data": {"images": "frames"}}, {"network": "resized CNN"}, "resized CNN is not for these images"),
        (None, {"sizes": (2, 1)}, "--range must be two sizes from low to high"),
    ):
        with pytest.raises(ValueError, match=says):
            quick(options=wrong, **given).fit(IMAGES, LABELS)


def test_without_scikit_learn_an_estimator_says_what_to_install() -> None:
    """And everything else can be imported, also by a star."""
    code = """
import sys
sys.modules["sklearn"] = sys.modules["sklearn.base"] = None
from scalechannels import *
try:
    ScaleInvariantClassifier(epochs=3)
except ImportError as error:
    print(error)
print(ScaleGrid.of(1, 2))
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=os.environ, cwd=ROOT
    )
    assert done.stdout.splitlines() == [
        'scikit-learn is not installed: pip install "scalechannels[sklearn]"',
        "ScaleGrid.of(1, 2)",
    ]


def test_an_answer_leaves_the_network_in_its_mode(quick: Quick) -> None:
    classifier = quick(epochs=1).fit(IMAGES, LABELS)
    expected = classifier.predict_proba(IMAGES)
    classifier.network_.train()
    assert np.array_equal(classifier.predict_proba(IMAGES), expected)
    assert all(part.training for part in classifier.network_.modules())
