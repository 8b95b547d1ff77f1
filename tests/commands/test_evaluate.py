"""`scalechannels evaluate`: a table and a JSON of any saved network."""

import csv
import hashlib
import json
import shutil
import sys
from io import BytesIO, TextIOWrapper
from pathlib import Path

import pytest
from helpers.command_line import only, run
from helpers.own_folder import write

from scalechannels import ScaleGrid, fovlse


def test_evaluate_writes_one_json_and_a_table(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("train", "--config", "run.toml", "--sizes", 1) == 0
    capsys.readouterr()
    folder = only(here)
    assert run("evaluate", folder, "--sizes", 0.5, 2, "--split", "validation", "--out", "new/r.json") == 0
    said = capsys.readouterr().out
    result = json.loads((here / "new" / "r.json").read_text())
    sizes = result["evaluation"]["sizes"]
    assert [entry["size"] for entry in sizes] == [0.5, 2.0]
    assert result["evaluation"]["split"] == "validation"
    assert result["channels"] == pytest.approx([1, 2**0.5, 2])
    assert result["trained"] == [1.0, 2.0]
    for entry in sizes:
        right = sum(entry["confusion"][k][k] for k in range(10))
        assert entry["accuracy"] == pytest.approx(100 * right / 40)
        assert len(entry["per_class"]) == 10
        assert sum(entry["selection"]) == pytest.approx(1)
        assert f"{entry['accuracy']:.2f} %" in said
    assert "σ = " in said
    assert said.splitlines()[-1] == "new/r.json"
    assert run("evaluate", folder, "--sizes", 2, "--out", "test.json") == 0
    other = json.loads((here / "test.json").read_text())["evaluation"]
    assert other["split"] == "test"
    assert other["sizes"][0]["selection"] != sizes[1]["selection"]


def test_evaluate_needs_to_know_the_data_of_a_network_without_a_run(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from scalechannels import cnn

    cnn().save_pretrained("net")
    assert run("evaluate", "net", "--sizes", 1) == 1
    assert capsys.readouterr().err == "error: 'net' does not say what it was trained on; give --data.name\n"
    assert run("evaluate", "net", "--sizes", 1, "--data.name", "strokes") == 0
    assert "channel" not in capsys.readouterr().out


def test_a_pipe_that_lacks_letters_gets_the_table_and_the_file_is_written(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fovlse(ScaleGrid.of(1, 2)).save_pretrained("net")
    pipe = TextIOWrapper(BytesIO(), "ascii")
    monkeypatch.setattr(sys, "stdout", pipe)
    assert run("evaluate", "net", "--data.name", "strokes", "--sizes", 1, "--out", "r.json") == 0
    pipe.flush()
    assert r"\u03c3 = " in pipe.buffer.getvalue().decode("ascii")
    assert json.loads((here / "r.json").read_text())["channels"] == [1, 2]


def test_a_detector_and_your_own_images_by_name_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    for words, says in (
        (("digit-detector",), "'digit-detector' is a detector, not a classifier; test it with scalechannels"),
        (("digit-detector", "--data.name", "mnist"), "'digit-detector' is a detector"),
        (
            ("cnn-mnist", "--data.name", "folder"),
            "--data.name must be strokes, mnist, fashion, mnist-scale, cifar10 or emoji; got 'folder",
        ),
        (("cnn-mnist", "--data", "photos"), "'photos' is not a folder; give one"),
    ):
        assert run("evaluate", *words) == 1
        assert capsys.readouterr().err.startswith(f"error: {says}")


def test_own_images_are_tested_where_they_are_now(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(here / "photos", [(16, 16)] * 8)
    words = ("--training.epochs", 1, "--network.low", 0.5, "--network.high", 2, "--network.ratio", 2)
    assert run("train", "--data", "photos", *words, "--no-compare", "--sizes", 1) == 0
    folder = only(here)
    assert folder.name.startswith("photos-")
    assert run("evaluate", folder, "--sizes", 1, "--out", "first.json") == 0
    said = capsys.readouterr()
    assert said.out.endswith("4 held-out images of each size\nfirst.json\n")
    (here / "photos").rename(here / "moved")
    assert run("evaluate", folder, "--sizes", 1) == 1
    assert "photos' is not a folder; give one with" in (error := capsys.readouterr().err)
    assert "(--data FOLDER)" in error
    assert run("evaluate", folder, "--sizes", 1, "--data", "moved", "--out", "second.json") == 0
    assert capsys.readouterr().err == ""
    first, second = (json.loads((here / f"{name}.json").read_text()) for name in ("first", "second"))
    assert first["evaluation"] == second["evaluation"]


def test_labelled_images_are_tested_as_predict_sees_them(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(here / "photos", [(16, 16)] * 8)
    words = ("--training.epochs", 1, "--network.low", 0.5, "--network.high", 2, "--network.ratio", 2)
    assert run("train", "--data", "photos", *words, "--no-compare", "--sizes", 1) == 0
    folder = only(here)
    write(here / "new", [(20, 20), (24, 30)] * 2)
    capsys.readouterr()
    assert run("evaluate", folder, "--data", "new", "--out", "new.json") == 0
    said = capsys.readouterr()
    assert said.err == ""
    assert "8 labelled images of each size: new" in said.out
    (entry,) = json.loads((here / "new.json").read_text())["evaluation"]["sizes"]
    assert run("predict", folder, "new", "--out", "new.csv") == 0
    rows = list(csv.DictReader((here / "new.csv").read_text().splitlines()))
    right = [row["class"] == Path(row["path"]).parent.name for row in rows]
    assert entry["accuracy"] == 100 * sum(right) / len(right)
    sure = sum(float(row["probability"]) for row in rows) / len(rows)
    assert entry["sure"] == pytest.approx(100 * sure, abs=0.01)
    write(here / "more", [(20, 20)] * 4, classes=3)
    assert run("evaluate", folder, "--data", "more") == 1
    assert (
        "error: the network knows the classes class0, class1, but 'more' has class2"
        in capsys.readouterr().err
    )


def test_evaluate_does_not_overwrite_the_run_and_knows_one_that_is_not_done(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("train", "--config", "run.toml", "--sizes", 1) == 0
    folder = only(here)
    before = (folder / "result.json").read_text()
    other = Path(shutil.copytree(folder, here / "others" / folder.name))
    capsys.readouterr()
    for place in (folder, other):  # its own result, and that of another run
        assert run("evaluate", folder, "--sizes", 1, "--out", place / "result.json") == 1
        assert "result.json' is a file of the network in" in capsys.readouterr().err
        assert json.loads((place / "result.json").read_text())["history"]
    assert run("evaluate", folder, "--sizes", 1, "--out", folder / "more.json") == 0
    assert run("evaluate", folder, "--sizes", 1, "--out", "result.json") == 0  # in no run's folder
    assert run("evaluate", folder, "--out", "x.txt") == 1
    assert (folder / "result.json").read_text() == before
    (folder / "config.json").unlink()
    capsys.readouterr()
    assert run("evaluate", folder) == 1
    assert "is not finished; resume it with scalechannels train --config" in capsys.readouterr().err
    assert run("evaluate", "nowhere", "--data.name", "strokes") == 1
    assert "'nowhere' is neither a folder nor a shipped network" in capsys.readouterr().err


def test_data_of_another_range_of_values_is_refused(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A network that learnt grey images from 0 to 1 would be shown digits from −0.76 to 0.76, and be poor."""
    network = fovlse(ScaleGrid.of(1, 2))
    network.usage = {"classes": None, "background": None, "values": "unit", "reduce": 1}
    network.save_pretrained("own")
    assert run("evaluate", "own", "--data.name", "strokes", "--sizes", 1) == 1
    assert capsys.readouterr().err == (
        "error: 'own' takes values from 0 to 1, but the images of strokes have −0.76 to 0.76; choose other "
        "data with --data.name, or give labelled image files with --data\n"
    )
    network.usage = None  # of one of which nobody said it, the data say it
    network.save_pretrained("own")
    assert run("evaluate", "own", "--data.name", "strokes", "--sizes", 1) == 0


def test_a_split_of_images_that_have_none_is_refused(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = write(here / "photos", [(28, 28)] * 2)
    for name, digit in (("class0", "3"), ("class1", "7")):
        (root / name).rename(root / digit)
    assert run("evaluate", "fovlse-mnist", "--data", "photos", "--split", "validation") == 1
    assert capsys.readouterr().err.endswith("are those of the run: remove --split validation\n")
    assert run("evaluate", "fovlse-mnist", "--data", "photos") == 0


def test_images_that_were_learnt_from_are_no_new_ones(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One image more in the folder, and all were tested as if the network had never seen them."""
    write(here / "photos", [(16, 16)] * 8)
    words = ("--training.epochs", 1, "--network.low", 0.5, "--network.high", 2, "--network.ratio", 2)
    assert run("train", "--data", "photos", *words, "--no-compare", "--sizes", 1) == 0
    folder = only(here)
    write(here / "new", [(20, 20)])
    for label in ("class0", "class1"):
        shutil.copyfile(here / "new" / label / "0.png", here / "photos" / label / "new.png")
    capsys.readouterr()
    assert run("evaluate", folder, "--data", "photos") == 0
    said = capsys.readouterr()
    assert "warning: 12 of 18 images in 'photos' were trained on, or chosen by: left out" in said.err
    assert "6 labelled images of each size" in said.out
    result = json.loads((folder / "result.json").read_text())
    (folder / "result.json").write_text(json.dumps({**result, "learnt_from": [3]}))
    assert run("evaluate", folder, "--data", "photos") == 1
    assert "result.json' is damaged: its learnt_from must list checksums" in capsys.readouterr().err
    del result["learnt_from"]  # as earlier versions wrote it
    (folder / "result.json").write_text(json.dumps(result))
    assert run("evaluate", folder, "--data", "photos") == 0
    assert "warning: 'photos' has other images than when" in capsys.readouterr().err
    assert run("evaluate", folder, "--data", "new") == 0
    assert capsys.readouterr().err == ""


def test_images_that_were_all_learnt_from_are_refused(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(here / "photos", [(16, 16)] * 8)
    words = ("--training.epochs", 1, "--network.low", 0.5, "--network.high", 2, "--network.ratio", 2)
    assert run("train", "--data", "photos", *words, "--no-compare", "--sizes", 1) == 0
    folder = only(here)
    known = json.loads((folder / "result.json").read_text())["learnt_from"]
    for path in (here / "photos").glob("*/*.png"):
        if hashlib.sha256(path.read_bytes()).hexdigest()[:16] not in known:
            path.unlink()
    assert len(list((here / "photos").glob("*/*.png"))) == len(known) == 12
    capsys.readouterr()
    assert run("evaluate", folder, "--data", "photos") == 1
    assert "12 of 12 images in 'photos' were trained on, or chosen by: there is nothing to test" in (
        capsys.readouterr().err
    )
