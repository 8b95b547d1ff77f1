"""A user's own boxes: what is chosen, which windows say what, and the whole round to the same boxes again."""

import inspect
import itertools
import json
import re
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from helpers.command_line import only, run
from PIL import Image, ImageDraw

import scalechannels
from scalechannels import Detector
from scalechannels.data.boxes.labelled import BoxedImages
from scalechannels.data.boxes.reading import read_boxes
from scalechannels.data.frames import reduced
from scalechannels.data.pictures import as_picture
from scalechannels.detection import learning, own_boxes
from scalechannels.detection.boxes import overlap
from scalechannels.detection.exported import NONE, OUTPUTS, decoded
from scalechannels.detection.found import Detection
from scalechannels.detection.own_boxes import PIXELS, Choices, Training, steps_for, unseen
from scalechannels.detection.window_pool import Looks, Objects, looks, pooled, told, varied
from scalechannels.report import boxes_measured
from scalechannels.report.boxes_run import identity

PAGE = Path(__file__).parents[2] / "docs/detection.md"
COLOURS = {"brick": (210, 60, 40), "leaf": (50, 170, 60), "coin": (60, 80, 220)}


def drawn(folder: Path, images: int = 3, seed: int = 0, scale: float = 1.0) -> Path:
    """Pictures of wide bricks, high leaves and round coins, and their boxes as CSV."""
    random = np.random.default_rng(seed)
    lines = ["image_path,xmin,ymin,xmax,ymax,label"]
    side = round(200 * scale)
    for number in range(images):
        ground = random.integers(90, 160, (side // 10, side // 10, 3), dtype=np.uint8)
        picture = Image.fromarray(ground).resize((side, side), Image.Resampling.BICUBIC)
        pen = ImageDraw.Draw(picture)
        for place in range(9):
            name = list(COLOURS)[place % 3]
            width, height = {"brick": (36, 16), "leaf": (18, 34), "coin": (28, 28)}[name]
            x, y = ((60 * part + random.uniform(8, 18)) * scale for part in (place % 3, place // 3))
            box = [x, y, x + width * scale, y + height * scale]
            shape = pen.rectangle if name == "brick" else pen.ellipse
            shape([round(edge) for edge in box], fill=COLOURS[name], outline=(240, 240, 240))
            lines.append(f"{number}.png,{','.join(f'{round(edge)}' for edge in box)},{name}")
        picture.save(folder / f"{number}.png")
    path = folder / "things.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture
def boxed(tmp_path: Path) -> BoxedImages:
    return read_boxes(drawn(tmp_path))


def test_channels_follow_the_sizes_of_the_boxes_and_the_range(boxed: BoxedImages) -> None:
    grid = Choices.of(boxed, 0.5, 2).grid
    # Longer sides from 28 to 36 pixels; one channel more at each end.
    assert grid[1] * PIXELS == pytest.approx(14, rel=0.01)
    assert grid[-2] * PIXELS >= 72
    assert grid[-3] * PIXELS < 72
    assert Choices.of(boxed, 0.01, 1).grid[1] * PIXELS == pytest.approx(own_boxes.SMALLEST)
    with pytest.raises(ValueError, match=r"--range must hold 1, the size in your images; got 2 4"):
        Choices.of(boxed, 2, 4)


def test_large_objects_are_reduced_first_and_boxes_follow(tmp_path: Path) -> None:
    large = read_boxes(drawn(tmp_path, images=1, scale=3))
    choices = Choices.of(large, 1, 2)
    assert choices.reduce == 3
    image = large.images[0]
    small = Objects.of(image, 3)
    centre = (image.width - 1) / 2, (-(-image.width // 3) - 1) / 2
    torch.testing.assert_close((image.boxes - centre[0]) / 3, small.boxes - centre[1])


def test_more_objects_take_more_steps_up_to_a_limit(boxed: BoxedImages) -> None:
    assert steps_for(boxed) == 1200 + 4 * 27
    assert steps_for(boxed.only(boxed.images * 100)) == 5000


def test_what_was_not_seen_is_told(boxed: BoxedImages) -> None:
    said = list(unseen(boxed, Choices.of(boxed), 0.25))
    assert "class 'brick' has 9 objects" in said[0]
    assert any("pixels, as --range asks, are too small" in line for line in said)
    one = boxed.only(boxed.images[:1])
    assert any("--negatives" in line for line in unseen(one, Choices.of(one), 1))


def objects(*boxes: tuple[float, ...], ignored: tuple[float, ...] | None = None) -> Objects:
    regions = torch.tensor([ignored] if ignored else [], dtype=torch.float64).view(-1, 4)
    return Objects(torch.tensor(boxes, dtype=torch.float64), torch.arange(len(boxes)), regions)


def test_targets_and_boxes_by_hand() -> None:
    wide = objects((80.0, 95.0, 120.0, 105.0))  # 40 x 10 about (100, 100): σ = 2
    at = torch.tensor([[100.0, 100.0], [110.0, 100.0], [100.0, 100.0], [100.0, 160.0]]).double()
    where = Looks(at, torch.tensor([2.0, 2.0, 4.0, 2.0]).double())
    targets, boxes, fits, counts = told(where, wide, PIXELS, 1)
    assert targets[:, 0].tolist() == pytest.approx([1, (0.6 - 0.45) / 0.27, 0, 0], abs=1e-6)
    assert targets.sum(1).tolist() == pytest.approx([1] * 4)
    assert boxes[0].tolist() == pytest.approx([0, 0, 0, np.log(10 / 40)])
    assert boxes[1].tolist() == pytest.approx([0, -10 / 40, 0, np.log(10 / 40)])  # up by a quarter
    assert fits.tolist() == [1, 1, 0, 0]
    assert counts.all()


def test_nothing_is_learnt_from_ignored_regions() -> None:
    crowd = objects((80.0, 80.0, 120.0, 120.0), ignored=(0.0, 0.0, 50.0, 50.0))
    where = Looks(torch.tensor([[25.0, 25.0], [100.0, 100.0]]).double(), torch.tensor([2.0, 2.0]).double())
    made = pooled(torch.rand(3, 200, 200), where, crowd, 28, PIXELS, 1)
    assert len(made.seen) == 1
    assert made.targets[0, 0] == 1


def test_windows_are_those_of_the_network_and_have_all_kinds(boxed: BoxedImages) -> None:
    picture, things = boxed.images[0].read(grey=False), Objects.of(boxed.images[0])
    generator = torch.Generator().manual_seed(0)
    where = looks(things, picture.shape[1:], 300, PIXELS, (0.4, 4), generator)
    made = pooled(picture, where, things, 28, PIXELS, 3)
    network = Training(boxed, Choices.of(boxed)).network
    foveate = network.foveate
    for index in (0, 7):
        grid = scalechannels.ScaleGrid.of(float(where.sigmas[index]))
        same = scalechannels.Foveate(grid, 28, antialias=foveate.antialias)
        expected = same(picture[None], where.centres[index][None])[0, 0]
        assert (made.seen[index].float() / 255 - expected).abs().max() < 0.01
    shares = made.targets.sum(0) / 300
    assert shares[3] > 0.3
    assert (shares[:3] > 0.05).all()


def test_mirrored_windows_have_mirrored_boxes() -> None:
    windows, boxes = torch.rand(64, 1, 28, 28), torch.tensor([[0.2, 0.1, -0.3, -0.4]]).repeat(64, 1)
    seen, moved = varied(windows, boxes, True, torch.Generator().manual_seed(0))
    turned = moved[:, 0] < 0
    assert 10 < turned.sum() < 54
    assert torch.equal(moved[:, 1:], boxes[:, 1:])
    # Other lights keep the order of the values in a window: brightest stays brightest.
    for index in range(8):
        original = windows[index].flip(2) if turned[index] else windows[index]
        assert seen[index].argmax() == original.argmax()


def test_turned_windows_have_turned_boxes() -> None:
    """A bright rectangle in each window: where it lies afterwards is what its box says."""
    x0, y0, x1, y1 = 4, 10, 12, 25  # of 28 pixels; the window's square has all of them
    windows = torch.zeros(200, 1, 28, 28)
    windows[..., y0:y1, x0:x1] = 1
    box = [(x0 + x1) / 56 - 0.5, (y0 + y1) / 56 - 0.5, np.log((x1 - x0) / 28), np.log((y1 - y0) / 28)]
    seen, moved = varied(windows, torch.tensor([box]).repeat(200, 1), True, torch.Generator(), turns=True)
    for picture, (right, down, width, height) in zip(seen[:, 0], moved, strict=True):
        rows, columns = (picture > picture.mean()).nonzero(as_tuple=True)
        for at, middle, side in ((columns, right, width.exp()), (rows, down, height.exp())):
            assert float(at.min()) == pytest.approx(28 * float(middle - side / 2 + 0.5), abs=1e-3)
            assert float(at.max()) + 1 == pytest.approx(28 * float(middle + side / 2 + 0.5), abs=1e-3)
    assert len(moved.unique(dim=0)) == 8  # all positions of a square


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Trainings that learn next to nothing, in a second."""
    small = {
        "FOR_EACH": 1,
        "ABOUT": 300,
        "ELSEWHERE": 60,
        "MINING": 1e4,
        "TEXTURE": 64,
        "BATCH": 32,
        "HIDDEN": 8,
    }
    for name, value in {**small, "FEATURES": (4, 4, 8, 8)}.items():
        monkeypatch.setattr(own_boxes, name, value)
    monkeypatch.setattr(learning, "KEPT", 3)


@pytest.mark.usefixtures("quick")
def test_a_killed_training_ends_as_one_that_was_not(boxed: BoxedImages, tmp_path: Path) -> None:
    choices, state = Choices.of(boxed, 1, 1), tmp_path / "state.pt"
    boxed = boxed.only(boxed.images[:1])
    whole = Training(boxed, choices, steps=8).run()

    class KilledError(Exception):
        pass

    def stop(line: str) -> None:
        if "looked for false alarms" in line and state.exists():
            raise KilledError

    with pytest.raises(KilledError):
        Training(boxed, choices, steps=8, state=state, report=stop).run()
    again = Training(boxed, choices, steps=8, state=state)
    resumed = again.run()
    assert again.mined is not None
    for name, value in whole.network.state_dict().items():
        assert torch.equal(value, resumed.network.state_dict()[name]), name


@pytest.mark.usefixtures("quick")
def test_a_damaged_state_is_named(boxed: BoxedImages, tmp_path: Path) -> None:
    state = tmp_path / "state.pt"
    state.write_bytes(b"cut short")
    with pytest.raises(ValueError, match=r"state\.pt' is damaged; delete it, and the training begins again"):
        Training(boxed, Choices.of(boxed, 1, 1), steps=8, state=state).run()


def same(one: list, other: list, tolerance: float = 1e-3) -> None:
    assert len(one) == len(other) > 0
    for first, second in zip(one, other, strict=True):
        assert first.label == second.label
        assert first.box == pytest.approx(second.box, abs=tolerance)
        assert first.probability == pytest.approx(second.probability, abs=1e-4)


@pytest.mark.usefixtures("quick")
def test_saved_and_loaded_detectors_give_the_same_boxes(boxed: BoxedImages, tmp_path: Path) -> None:
    trained = Training(boxed, Choices.of(boxed, 0.5, 2), steps=40).run()
    detector = Detector(trained.network, threshold=0.2)
    detector.save_pretrained(tmp_path / "saved")
    image = boxed.images[0].read(grey=False)
    expected = detector(image)
    for again in (Detector.from_pretrained(tmp_path / "saved"), scalechannels.load(tmp_path / "saved")):
        assert isinstance(again, Detector)
        assert again.classes == ["brick", "coin", "leaf"]
        assert (again.background, again.rules) == (3, detector.rules)
        same(expected, again(image))
    widths = [(one.box[2] - one.box[0]) / (one.box[3] - one.box[1]) for one in expected]
    assert max(abs(np.log(widths))) > 0.05  # the boxes are no squares
    for one in expected:
        assert one.probability <= one.object_probability + 1e-6


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("things.csv", "--network.name", "fovavg"), "labelled boxes take none of these options but"),
        (("things.csv", "--training.epochs", 3), "labelled boxes take none of these options but"),
        (("things.csv", "--data.validation", 0.5), "labelled boxes take none of these options but"),
        (("things.csv", "--range", 2, 4), "--range must hold 1, the size in your images; got 2 4"),
        (("things.csv", "--negatives", "empty"), "'empty' has no images to use as --negatives"),
        (("things.csv", "--budget", "9m"), "labelled boxes take none of these options but"),
        (("empty", "--negatives", "empty"), "--negatives is for labelled boxes"),
        (("empty", "--turns"), "--turns is for labelled boxes"),
        (("empty", "--against", "fcos"), "--against is for labelled boxes"),
        (("things.csv", "--against", "fcos", "--device", "cpu"), "--against fcos needs"),
    ],
)
def test_options_that_do_not_apply_are_refused(
    words: tuple,
    says: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    drawn(tmp_path, images=1)
    Path("empty").mkdir()
    assert run("train", "--data", *words) == 1
    assert says in capsys.readouterr().err
    assert not Path("runs").exists()


def run_the_page_s_program(folder: Path) -> None:
    """The program of docs/detection.md, which has a copy of one function, and nothing else of ours."""
    (code,) = re.findall(r"```py\n(.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL)
    head = "from __future__ import annotations\nfrom typing import Any\nimport numpy as np\n"
    (folder / "decoded.py").write_text(head + inspect.getsource(decoded))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.syspath_prepend(folder)
        patch.delitem(sys.modules, "decoded", raising=False)
        exec(code, {})
        patch.delitem(sys.modules, "decoded")


def clear_threshold(found: list[Detection]) -> float:
    """In the widest gap between probabilities: 8 bits a value, or another machine, move none across it."""
    sure = sorted((one.object_probability for one in found), reverse=True)
    above, below = max(itertools.pairwise(sure), key=lambda pair: pair[0] - pair[1])
    return (above + below) / 2


@pytest.mark.slow
@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("reduce", [1, 2])
def test_a_trained_saved_loaded_and_exported_detector_gives_the_same_boxes(
    reduce: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The whole round: colour, three classes, boxes that are no squares; also where images are shrunk."""
    import onnxruntime

    things = read_boxes(drawn(tmp_path, images=1, scale=reduce))
    choices = Choices.of(things, 1, 1)
    assert choices.reduce == reduce
    trained = Training(things, choices, steps=60).run()
    image = reduced(things.images[0].read(grey=False), reduce)[:, :90, :120].contiguous()
    threshold = clear_threshold(Detector(trained.network, threshold=0.2)(image))
    Detector(trained.network, threshold=threshold).save_pretrained(tmp_path / "saved")
    loaded = Detector.from_pretrained(tmp_path / "saved")
    assert run("export", tmp_path / "saved", "--size", 90, 120, "--onnx", tmp_path / "found.onnx") == 0
    assert (f"Shrink each image by a factor of {reduce}" in capsys.readouterr().out) == (reduce > 1)
    session = onnxruntime.InferenceSession(tmp_path / "found.onnx", providers=["CPUExecutionProvider"])
    about = {name: json.loads(text) for name, text in session.get_modelmeta().custom_metadata_map.items()}
    assert about["classes"] == ["brick", "coin", "leaf"]
    assert (about["reduce"], about["input_size"]) == (reduce, [90, 120])

    expected = Detector(trained.network, threshold=threshold)(image)
    same(expected, loaded(image))
    rules = {name: about[name] for name in ("threshold", "iou", "inside")}
    found = decoded(*session.run(list(OUTPUTS), {"images": image[None].numpy()}), **rules)
    same(expected, [Detection(tuple(box), label, p, 0, False, 0) for box, label, p in found], 0.01)
    as_picture(image).save(tmp_path / "photo.png")
    capsys.readouterr()
    run_the_page_s_program(tmp_path)
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == [things.classes[one.label] for one in expected]
    for line, one in zip(lines, expected, strict=True):  # the picture has 8 bits a value
        assert json.loads(line[line.index("[") :]) == pytest.approx(one.box, abs=1)
    sides = torch.tensor([one.box for one in expected]).view(-1, 2, 2).diff(dim=1)[:, 0]  # (N, 2)
    assert (sides[:, 0] / sides[:, 1]).log().abs().max() > 0.05


@pytest.mark.slow
def test_the_commands_of_the_page_find_three_classes_at_other_sizes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Colour, three classes, boxes that are no squares: look, train, detect."""
    for name, value in {"STEPS": 220, "MORE": 0, "ABOUT": 3000, "ELSEWHERE": 600, "MINING": 4e6}.items():
        monkeypatch.setattr(own_boxes, name, value)
    monkeypatch.setattr(boxes_measured, "QUIET_PICTURES", 3)
    monkeypatch.chdir(tmp_path)
    drawn(tmp_path)
    assert run("data", "show", "things.csv") == 0
    assert run("train", "--data", "things.csv", "--range", 0.5, 2, "--out", "runs") == 0
    folder = only(Path()).resolve()
    assert (folder / "report.html").stat().st_size > 10_000
    Path("new").mkdir()
    truth = read_boxes(drawn(Path("new"), images=2, seed=9, scale=1.7))
    capsys.readouterr()
    assert run("detect", "new", "--network", folder, "--coco", "found.json", "--csv", "found.csv") == 0
    found = json.loads(Path("detections.json").read_text())
    right = 0
    for result in found:
        (image,) = [one for one in truth.images if one.path.name == Path(result["image"]).name]
        for box, label in zip(image.boxes, image.labels, strict=True):
            for one in result["objects"]:
                shared = overlap(box[None], torch.tensor([one["box"]]).double())
                right += float(shared) > 0.6 and one["class"] == truth.classes[label]
    assert right >= 16
    assert sum(len(result["objects"]) for result in found) <= 20
    # What it writes can be read as labels again.
    for name in ("found.json", "found.csv"):
        assert read_boxes(name).objects == sum(len(result["objects"]) for result in found)
    assert run("train", "--data", "things.csv", "--range", 0.5, 2, "--out", "runs") == 0
    assert "nothing was trained" in capsys.readouterr().err


def test_other_pictures_of_the_same_names_and_lengths_are_another_training(tmp_path: Path) -> None:
    """Nothing was trained on them: a detector of the old ones was there already."""
    boxed = read_boxes(drawn(tmp_path, images=1))
    (image,) = boxed.images
    path = image.path.with_suffix(".bmp")  # a format in which all pictures of a size have one length
    Image.open(image.path).save(path)
    named = identity(boxed.only([replace(image, path=path)]), [], {})
    length = path.stat().st_size
    Image.open(image.path).transpose(Image.Transpose.ROTATE_180).save(path)
    assert path.stat().st_size == length
    assert identity(boxed.only([replace(image, path=path)]), [], {}) != named
    ignored = replace(image, ignored=torch.tensor([[0.0, 0, 9, 9]], dtype=torch.float64))
    assert identity(boxed.only([ignored]), [], {}) != identity(boxed, [], {})


def test_the_random_numbers_of_a_gpu_go_on_where_they_were(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Dropout draws them there; begun again they would be others. The GPU is made up."""
    begun: list[torch.Tensor] = []
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_rng_state", lambda: torch.tensor([7], dtype=torch.uint8))
    monkeypatch.setattr(torch.cuda, "set_rng_state", begun.append)
    monkeypatch.setattr(learning, "KEPT", 1)
    model = torch.nn.Linear(2, 2)

    def batch(step: int, generator: torch.Generator) -> learning.Batch:
        return learning.Batch(torch.rand(3, 2, generator=generator), torch.full((3, 2), 0.5))

    learning.learn(model, batch, steps=2, rate=0.1, state=tmp_path / "state.pt")
    assert begun == []
    learning.learn(model, batch, steps=2, rate=0.1, state=tmp_path / "state.pt")
    assert [one.tolist() for one in begun] == [[7]]


def test_without_a_threshold_only_peaks_are_objects() -> None:
    boxes = np.array([[0.0, 0, 9, 9], [20, 20, 29, 29], [50, 50, 59, 59]])
    rules = {"iou": 0.3, "inside": 0.6}
    odds, probabilities = np.array([-5.0, NONE, -7.0]), np.array([[0.1, 0.2], [0.9, 0.1], [0.3, 0.1]])
    found = decoded(boxes, odds, probabilities, threshold=0.0, **rules)
    assert [(label, probability) for _, label, probability in found] == [(0, 0.3), (1, 0.2)]
