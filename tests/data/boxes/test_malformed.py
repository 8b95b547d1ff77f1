"""Labels that are wrong in every way that we know: named, and never a fault of the program."""

import contextlib
import copy
import json
import warnings
from pathlib import Path

import pytest
import torch
from helpers.command_line import run
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image

from scalechannels.data.boxes.labelled import LabelsError, LabelsWarning, SkippedLabelsWarning
from scalechannels.data.boxes.reading import read_boxes

VALID = {
    "images": [{"id": 1, "file_name": "a.png", "width": 40, "height": 30}, {"id": 2, "file_name": "b.png"}],
    "categories": [{"id": 1, "name": "cat"}, {"id": 2, "name": "dog"}],
    "annotations": [
        {"id": 1, "image_id": 1, "category_id": 1, "bbox": [1, 2, 9, 9]},
        {"id": 2, "image_id": 1, "category_id": 2, "bbox": [11, 12, 9, 9], "iscrowd": 0},
        {"id": 3, "image_id": 2, "category_id": 2, "bbox": [1, 2, 9, 9]},
    ],
}


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("a.png", "b.png"):
        Image.new("RGB", (40, 30)).save(tmp_path / name)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def coco(folder: Path, *path: object, value: object) -> Path:
    """The valid file with one value exchanged, or at the end of a list one added."""
    content = copy.deepcopy(VALID)
    place = content
    for step in path[:-1]:
        place = place[step]
    if path[-1] == "more":
        place.append(value)
    else:
        place[path[-1]] = value
    written = folder / "boxes.json"
    written.write_text(json.dumps(content))
    return written


@pytest.mark.parametrize(
    ("path", "value", "says"),
    [
        (("images", 0, "id"), [1], "image 1 has no id or no file_name"),
        (("images", 0, "id"), 2, "image 2: its id 2 is used twice"),
        (("images", 0, "file_name"), "x" * 300 + ".png", "does not exist"),
        (("images", 0, "file_name"), "a\0.png", "does not exist"),
        (("images", 1, "file_name"), "./a.png", "image 2: the image 'a.png' has labels already, by"),
        (("images", "more"), 7, "image 3 has no id or no file_name"),
        (("categories", 0, "id"), {}, "category 1 has no id or no name"),
        (("categories", 0, "name"), " ", "category 1 has no id or no name"),
        (("categories", 1, "name"), "cat", "its id or its name 'cat' is used twice"),
        (("annotations", "more"), None, "annotation 4 must have an image_id, a category_id and a bbox"),
        (("annotations", 0, "image_id"), [1], "id 1: there is no image of id [1]"),
        (("annotations", 0, "category_id"), None, "id 1: there is no category of id None"),
        (("annotations", 0, "bbox"), [1, 2, 10**400, 4], "id 1: its bbox must be four numbers"),
        (("annotations", 0, "bbox"), ["1", "2", "3", "4"], "id 1: its bbox must be four numbers"),
        (("annotations", 0, "bbox"), [1, 2, 1e999, 4], "the box 1, 2, inf, 6 has an edge that is no number"),
        (("annotations", 0, "bbox"), [11, 12, 9, 9], "'dog' has the box of 'cat' (boxes.json, annotation"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_coco_is_named(here: Path, path, value, says: str) -> None:
    labels = Path(coco(here, *path, value=value).name)
    with pytest.raises(LabelsError) as refused:
        read_boxes(labels)
    assert says in str(refused.value)
    with pytest.warns(SkippedLabelsWarning):
        assert read_boxes(labels, skip=True).objects >= 1  # the rest can be used


@pytest.mark.parametrize(("crowd", "objects"), [("0", 3), (0.0, 3), ("1", 2), (True, 2), (1, 2)])
def test_crowds_are_those_that_say_so(here: Path, crowd: object, objects: int) -> None:
    assert read_boxes(coco(here, "annotations", 1, "iscrowd", value=crowd)).objects == objects


def test_ids_of_annotations_that_are_used_twice_are_told_and_all_are_read(here: Path) -> None:
    with pytest.warns(LabelsWarning, match=r"uses ids of annotations more than once \(1\); every one"):
        assert read_boxes(coco(here, "annotations", 1, "id", value=1)).objects == 3


def test_a_box_that_is_stated_twice_counts_once(here: Path) -> None:
    again = {"id": 4, "image_id": 1, "category_id": 1, "bbox": [1, 2, 9, 9]}
    with pytest.warns(
        LabelsWarning, match="counted once: boxes.json, annotation of id 4, the box of boxes.json, ann"
    ):
        assert read_boxes(coco(here, "annotations", "more", value=again)).objects == 3


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("0.5 0.5 0.5 0.2 0.2", "its class must be a whole number from 0; got '0.5'"),
        ("-1 0.5 0.5 0.2 0.2", "its class must be a whole number from 0; got '-1'"),
        ("nan 0.5 0.5 0.2 0.2", "its class must be a whole number from 0; got 'nan'"),
        ("cat 0.5 0.5 0.2 0.2", "it must be a class and four numbers; got 'cat 0.5 0.5 0.2 0.2'"),
        ("0 0.5 0.5 0.2 0.2 0.9", "with a probability, as what was detected has"),
        ("0 0.5 0.5 nan 0.2", "must be shares of the image"),
        ("0 1.4 0.5 0.2 0.2", "lies outside its image of 40 x 30"),
        ("0 0.5 0.5 -0.2 0.2", "is swapped"),
        ("0 0.5 0.5 0 0", "is empty"),
        ("0 0.1 0.1 0.2", "it must be a class and four numbers"),
        ("9 0.5 0.5 0.2 0.2", "there is no class 9; 2 have names, from 0"),
    ],
)
def test_what_is_wrong_with_a_line_of_yolo_is_named(here: Path, line: str, says: str) -> None:
    (here / "classes.txt").write_text("cat\ndog\n")
    (here / "a.txt").write_text(f"{line}\n1.0 0.5 0.5 0.2 0.2\n")
    with pytest.raises(LabelsError) as refused:
        read_boxes(here)
    assert "a.txt, line 1: " in str(refused.value)
    assert says in str(refused.value)
    with pytest.warns(SkippedLabelsWarning):
        assert read_boxes(here, skip=True).counts() == [0, 1]


def test_what_is_wrong_with_files_of_yolo_is_named(here: Path) -> None:
    (here / "a.txt").write_text("0 0.5 0.5 0.2 0.2\n")
    (here / "lost.txt").write_text("0 0.5 0.5 0.2 0.2\n")
    (here / "notes.txt").write_text("12 garden gnomes\n")
    with pytest.raises(
        LabelsError, match=r"1 problem: 'lost.txt' has boxes, but there is no image of that name"
    ):
        read_boxes(here)
    (here / "lost.txt").unlink()
    Image.new("L", (40, 30)).save(here / "a.bmp")
    with pytest.raises(LabelsError, match=r"1 problem: 'a.txt' could be of 'a.bmp' and of 'a.png'"):
        read_boxes(here)
    (here / "a.bmp").unlink()
    for text, says in (("cat\n\ndog\n", "line 2 is empty"), ("cat\ncat\n", "has the class 'cat' twice")):
        (here / "classes.txt").write_text(text)
        with pytest.raises(LabelsError, match=says):
            read_boxes(here)


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ("a.png,1,2,nan,9,cat", "line 3: the box 1, 2, nan, 9 has an edge that is no number"),
        ("a.png,1,2,,9,cat", "line 3: xmin, ymin, xmax, ymax must be numbers; got 1, 2, , 9"),
        ("a.png,9,2,1,9,cat", "line 3: the box 9, 2, 1, 9 is swapped"),
        ("a.png,1,2,9,9,", "line 3 has no label"),
        (",1,2,9,9,cat", "line 3 names no image"),
        ("a.png,1", "line 3: xmin, ymin, xmax, ymax must be numbers"),
        ("none.png,1,2,9,9,cat", "the image 'none.png' does not exist"),
        ("./a.png,1,2,9,9,dog", "'dog' has the box of 'cat' (boxes.csv, line 2)"),
    ],
)
def test_what_is_wrong_with_a_row_is_named(here: Path, row: str, says: str) -> None:
    Path("boxes.csv").write_text(f"image_path,xmin,ymin,xmax,ymax,label\na.png,1,2,9,9,cat\n{row}\n")
    with pytest.raises(LabelsError) as refused:
        read_boxes("boxes.csv")
    assert says in str(refused.value)


@pytest.mark.parametrize(
    "content", [b"", b"\xff\xfe\0", "image_path,xmin,ymin,xmax,ymax\n\xe9.png,1,2,3,4".encode("latin-1")]
)
def test_a_file_that_is_no_table_is_named(here: Path, content: bytes) -> None:
    Path("boxes.csv").write_bytes(content)
    with pytest.raises(LabelsError, match=r"'boxes.csv' (must have the columns|cannot be read as CSV)"):
        read_boxes("boxes.csv")


def test_two_xml_files_of_one_image_are_named(here: Path) -> None:
    text = (
        "<annotation><filename>a.png</filename><object><name>cat</name><bndbox><xmin>1</xmin><ymin>1</ymin>"
        "<xmax>9</xmax><ymax>9</ymax></bndbox></object></annotation>"
    )
    for name in ("a.xml", "b.xml"):
        Path(name).write_text(text)
    with pytest.raises(LabelsError, match=r"b.xml: the image 'a.png' has labels already, by a.xml"):
        read_boxes(Path())


def test_every_problem_is_named_by_data_show(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [f"a.png,{x},2,1,9,cat" for x in range(10, 18)]
    Path("boxes.csv").write_text(
        "\n".join(["image_path,xmin,ymin,xmax,ymax,label", "a.png,1,2,9,9,cat", *rows])
    )
    assert run("data", "show", "boxes.csv") == 1
    said = capsys.readouterr().err
    assert said.startswith(
        "error: 'boxes.csv' has 8 problems:\n- boxes.csv, line 3: the box 10, 2, 1, 9 is swapped"
    )
    assert said.count("\n- boxes.csv, line ") == 8
    assert run("train", "--data", "boxes.csv") == 1
    said = capsys.readouterr().err
    assert said.count("boxes.csv, line ") == 5
    assert "; and 3 more. Mend them, or give --skip-corrupt; `scalechannels data show` names them all" in said
    assert run("data", "show", "boxes.csv", "--skip-corrupt") == 0
    assert capsys.readouterr().err.count("\n- boxes.csv, line ") == 8


ANYTHING = st.sampled_from(
    [
        None,
        True,
        -1,
        0,
        1,
        2,
        10**400,
        1e308,
        float("nan"),
        "",
        "a.png",
        "\0",
        "1",
        [],
        [1],
        {},
        {"id": 1},
        [[1]],
    ]
)
PLACES = [
    (part, number, key)
    for part, items in VALID.items()
    for number, item in enumerate(items)
    for key in (*item, "ignore", "height")
]


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(changes=st.dictionaries(st.sampled_from(PLACES), ANYTHING, min_size=1, max_size=4))
def test_any_values_in_coco_are_read_or_named(here: Path, changes: dict) -> None:
    content = copy.deepcopy(VALID)
    for (part, number, key), value in changes.items():
        content[part][number][key] = value
    Path("boxes.json").write_text(json.dumps(content))
    for skip in (False, True):
        with warnings.catch_warnings(), contextlib.suppress(LabelsError):
            warnings.simplefilter("ignore")
            boxed = read_boxes("boxes.json", skip=skip)
            for image in boxed.images:
                ends = torch.tensor([image.width, image.height] * 2) - 0.5
                assert bool(((image.boxes >= -0.5) & (image.boxes <= ends)).all())
