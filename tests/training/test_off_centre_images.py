"""Own images whose objects lie anywhere in their frames: nothing of them may be lost in training."""

from pathlib import Path

import pytest
import torch
from helpers.on_ground import square
from helpers.own_folder import chosen
from PIL import Image

from scalechannels.data.arrays import ImageArrays
from scalechannels.data.pictures import as_shown
from scalechannels.data.strokes import strokes
from scalechannels.data.survey import survey
from scalechannels.report.candidates import CENTRE, EVERYWHERE, candidates, with_epochs, with_recipe
from scalechannels.report.conditions import Condition, picture
from scalechannels.report.trial import answered
from scalechannels.saving.saved_network import load
from scalechannels.training.config import DataConfig, NetworkConfig, RunConfig, TrainingConfig
from scalechannels.training.datasets import open_data
from scalechannels.training.fit import fit

SLIDING = NetworkConfig(look="everywhere")


def frames(root: Path, corner: tuple[int, int], large: int = 120) -> Path:
    """Squares of 12 pixels in frames of 100 x `large`, each a little elsewhere."""
    for index in range(12):
        image = square(12, (100, large), corner[0] + index % 3, corner[1] + index % 2)
        path = root / "ab"[index % 2] / f"{index}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray((image[0] * 255).byte().numpy()).save(path)
    return root


def shown(images: torch.Tensor) -> list[int]:
    """How many pixels of the object each image shows."""
    return (images > 0.6).flatten(1).sum(1).tolist()


def test_far_off_the_centre_whole_frames_are_trained_on(tmp_path: Path) -> None:
    """Cropped to four objects about the centre, they would show nothing but ground."""
    centred = open_data(chosen(frames(tmp_path / "centred", (44, 53))).data)
    assert centred.config.places == "centre"
    assert centred.training().images.shape[2:] == (48, 48)
    config = chosen(frames(tmp_path / "corner", (5, 9)))
    assert (config.data.images, config.data.places) == ("frames", "anywhere")
    data = open_data(config.data)
    learnt = data.training().images
    assert learnt.shape[2:] == (120, 120)
    assert shown(learnt) == [144] * len(learnt)
    assert shown(data.testing(1.0, "test").images) == [144] * len(data.kept)
    larger = data.testing(4.0, "test").images  # at its place, as far as it is inside there
    assert min(shown(larger)) > 0.9 * 48**2


def test_who_looks_everywhere_has_whole_frames(tmp_path: Path) -> None:
    root = frames(tmp_path, (44, 53))
    assert chosen(root, SLIDING).data.places == "anywhere"
    assert chosen(root, SLIDING, images="crops").data.places == "centre"


def test_no_picture_is_made_to_end_about_its_centre(tmp_path: Path) -> None:
    """Objects off it would vanish from every second training image."""
    said = TrainingConfig()
    centred = candidates(chosen(frames(tmp_path / "centred", (44, 53))), said)[0]
    assert centred[EVERYWHERE].training.visible == 0.5
    off = chosen(frames(tmp_path / "corner", (5, 9)))
    found = candidates(off, said)[0]
    assert [config.training.visible for config in found.values()] == [1.0] * 3
    for config in found.values():
        assert config.resolve() == config
    alone = chosen(tmp_path / "corner", SLIDING)
    assert with_recipe(alone, said).training.visible == 1.0


def test_a_seventh_of_the_object_off_the_centre_costs_little(tmp_path: Path) -> None:
    """Trained on centred objects of 28 pixels, 99 % became 28 % where they were 4 pixels off it."""
    parts = {split: strokes(count, seed=0, split=split) for split, count in (("train", 200), ("test", 300))}
    few = {split: digits.labels < 5 for split, digits in parts.items()}
    values = {split: as_shown(digits.render(1.0, 56)).clamp(0, 1) for split, digits in parts.items()}
    pixels, labels = (list(values["train"][few["train"]]), parts["train"].labels[few["train"]].tolist())
    images = ImageArrays.of(pixels, labels, list("01234"), 0.1)
    own = DataConfig("folder", folder="arrays", images="frames", object_size=28.0, range=(1.0, 1.0))
    base = RunConfig(own, NetworkConfig(ratio=2.0)).resolve("cpu", (images, survey(images)))
    config = with_epochs(candidates(base, TrainingConfig())[0][CENTRE], 24, len(pixels), TrainingConfig())
    (run,) = fit([config], tmp_path, device="cpu", sizes=[], images=images, quiet=True)
    network, shown = load(run.folder), values["test"][few["test"]]
    right = []
    for condition in (Condition("size", 1.0), Condition("offset", 1 / 7)):
        pictures = [picture(one, condition, "frames", 28.0, number) for number, one in enumerate(shown)]
        said = answered(network.eval(), pictures, "cpu").logits.argmax(1)
        right.append(float((said == parts["test"].labels[few["test"]]).double().mean()))
    assert right[0] > 0.6
    assert right[1] > right[0] - 0.1


def test_a_finished_run_says_itself_where_objects_are(tmp_path: Path) -> None:
    config = chosen(frames(tmp_path, (5, 9)))
    again = RunConfig.from_dict(config.as_dict()).resolve()
    assert again.data.places == "anywhere"
    earlier = config.as_dict()
    earlier["data"]["places"] = "centre"  # as a run of an earlier version has it
    earlier["network"]["window"] = None
    assert RunConfig.from_dict(earlier).resolve().data.places == "centre"


def test_what_cannot_be_anywhere_is_refused(tmp_path: Path) -> None:
    root = str(frames(tmp_path, (5, 9)))
    for options, message in (
        ({"images": "crops", "places": "anywhere"}, "data.places anywhere is for frames"),
        ({"side": 64}, "data.side does not apply to your own images"),
        ({"places": "anywhere", "redraw": True}, "needs two or more data.sizes"),
    ):
        with pytest.raises(ValueError, match=message):
            RunConfig(DataConfig("folder", folder=root, **options)).resolve()
    with pytest.raises(ValueError, match=r"training\.visible crops .* objects are anywhere"):
        RunConfig(DataConfig("folder", folder=root), training=TrainingConfig(visible=0.5)).resolve()
