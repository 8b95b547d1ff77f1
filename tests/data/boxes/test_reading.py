"""Labelled boxes: four kinds of files say the same, and what is wrong with them is named."""

import json
from pathlib import Path

import pytest
import torch
from PIL import Image

from scalechannels.cli import main
from scalechannels.data.boxes.labelled import LabelsError, SkippedLabelsWarning
from scalechannels.data.boxes.reading import holds_boxes, read_boxes
from scalechannels.data.boxes.yolo import text_of

WIDTH, HEIGHT = 40, 30
BOXES = [("cat", (2, 3, 12, 28)), ("dog", (20, 0, 40, 10))]  # from the image's corner


@pytest.fixture
def images(tmp_path: Path) -> Path:
    for name, colour in (("a.png", "red"), ("b.png", "blue")):
        Image.new("RGB", (WIDTH, HEIGHT), colour).save(tmp_path / name)
    return tmp_path


def coco(folder: Path, **changes: object) -> Path:
    annotations = [
        {"id": 5 + number, "image_id": 1, "category_id": 7 + number, "bbox": [x0, y0, x1 - x0, y1 - y0]}
        for number, (_, (x0, y0, x1, y1)) in enumerate(BOXES)
    ]
    content: dict[str, object] = {
        "images": [
            {"id": 1, "file_name": "a.png", "width": WIDTH, "height": HEIGHT},
            {"id": 2, "file_name": "b.png"},
        ],
        "categories": [{"id": 8, "name": "dog"}, {"id": 7, "name": "cat"}],
        "annotations": annotations,
    }
    path = folder / "boxes.json"
    path.write_text(json.dumps({**content, **changes}))
    return path


def table(folder: Path, *more: str) -> Path:
    rows = [f"a.png,{x0},{y0},{x1},{y1},{name}" for name, (x0, y0, x1, y1) in BOXES]
    lines = ["image_path,xmin,ymin,xmax,ymax,label", *rows, "b.png,0,0,0,0,cat", *more]
    path = folder / "boxes.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def voc(folder: Path, head: str = "", extra: str = "") -> Path:
    boxes = "".join(
        f"<object><name>{name}</name><bndbox><xmin>{x0}</xmin><ymin>{y0}</ymin><xmax>{x1}</xmax>"
        f"<ymax>{y1}</ymax></bndbox></object>"
        for name, (x0, y0, x1, y1) in BOXES
    )
    size = f"<size><width>{WIDTH}</width><height>{HEIGHT}</height></size>"
    (folder / "a.xml").write_text(
        f"{head}<annotation><filename>a.png</filename>{size}{boxes}{extra}</annotation>"
    )
    (folder / "b.xml").write_text("<annotation><filename>b.png</filename></annotation>")
    return folder


def yolo(folder: Path, names: str = "names: [cat, dog]") -> Path:
    for inner in ("images", "labels"):
        (folder / "set" / inner).mkdir(parents=True)
    for name in ("a.png", "b.png"):
        (folder / name).rename(folder / "set" / "images" / name)
    lines = [
        f"{number} {(x0 + x1) / 2 / WIDTH} {(y0 + y1) / 2 / HEIGHT} {(x1 - x0) / WIDTH} {(y1 - y0) / HEIGHT}"
        for number, (_, (x0, y0, x1, y1)) in enumerate(BOXES)
    ]
    (folder / "set" / "labels" / "a.txt").write_text("\n".join(lines))
    (folder / "set" / "data.yaml").write_text(names)
    return folder / "set"


@pytest.mark.parametrize("make", [coco, table, voc, yolo])
def test_every_kind_of_file_says_the_same(images: Path, make) -> None:
    path = make(images)
    assert holds_boxes(path)
    boxed = read_boxes(path)
    assert boxed.classes == ["cat", "dog"]
    assert not boxed.grey
    first, second = sorted(boxed.images, key=lambda image: image.path.name)
    expected = torch.tensor([box for _, box in BOXES], dtype=torch.float64) - 0.5  # to pixel centres
    torch.testing.assert_close(first.boxes, expected)
    assert first.labels.tolist() == [0, 1]
    assert len(second.labels) == 0  # a negative
    assert first.read(grey=False).shape == (3, HEIGHT, WIDTH)
    assert boxed.counts() == [1, 1]
    assert boxed.sizes.tolist() == pytest.approx([25, 20])


def annotation(**changes: object) -> dict[str, object]:
    return {"id": 9, "image_id": 1, "category_id": 7, "bbox": [1, 2, 3, 4], **changes}


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"bbox": [30, 2, 15, 4]}, "id 9: the box 30, 2, 45, 6 lies outside its image of 40 x 30"),
        ({"bbox": [5, 2, -3, 4]}, "id 9: the box 5, 2, 2, 6 is swapped"),
        ({"bbox": [5, 2, 0, 4]}, "id 9: the box 5, 2, 5, 6 is empty"),
        ({"bbox": [5, 2, float("nan"), 4]}, "has an edge that is no number"),
        ({"bbox": [5, 2, 4]}, "its bbox must be four numbers"),
        ({"category_id": 3}, "there is no category of id 3"),
        ({"image_id": 3}, "there is no image of id 3"),
    ],
)
def test_impossible_boxes_are_named_or_left_out_with_a_warning(images: Path, changes, says: str) -> None:
    path = coco(images, annotations=[annotation(id=8, bbox=[1, 1, 9, 9]), annotation(**changes)])
    with pytest.raises(LabelsError, match="1 problem: ") as refused:
        read_boxes(path)
    assert says in str(refused.value)
    with pytest.warns(SkippedLabelsWarning, match="left out"):
        boxed = read_boxes(path, skip=True)
    assert boxed.objects == 1


def test_a_box_just_beyond_the_edge_is_cut_there(images: Path) -> None:
    boxed = read_boxes(coco(images, annotations=[annotation(bbox=[-1, 2, 42, 10])]))
    assert boxed.images[0].boxes.tolist() == [[-0.5, 1.5, 39.5, 11.5]]


def test_crowds_and_difficult_objects_are_ignored_regions(images: Path) -> None:
    both = [annotation(), annotation(id=10, bbox=[10, 10, 20, 20], iscrowd=1)]
    boxed = read_boxes(coco(images, annotations=both))
    assert boxed.images[0].ignored.tolist() == [[9.5, 9.5, 29.5, 29.5]]
    assert len(boxed.images[0].labels) == 1
    hard = (
        "<object><name>cow</name><difficult>1</difficult><bndbox><xmin>1</xmin><ymin>1</ymin><xmax>9</xmax>"
        "<ymax>9</ymax></bndbox></object>"
    )
    boxed = read_boxes(voc(images, extra=hard))
    assert boxed.classes == ["cat", "dog"]
    assert len(boxed.images[0].ignored) == 1


@pytest.mark.parametrize(
    ("image", "says"),
    [
        ({"file_name": "c.png"}, "c.png' does not exist"),
        ({"file_name": "a.png", "width": 30, "height": 40}, "has 40 x 30 pixels, its labels say 30 x 40"),
        ({"file_name": "a.png", "width": 50, "height": 40}, "has 40 x 30 pixels, its labels say 50 x 40"),
        ({"file_name": "text.png"}, "text.png' cannot be read"),
    ],
)
def test_missing_and_other_images_are_named(images: Path, image: dict[str, object], says: str) -> None:
    (images / "text.png").write_text("no image")
    with pytest.raises(LabelsError) as refused:
        read_boxes(coco(images, images=[{"id": 1, **image}]))
    assert says in str(refused.value)


def test_entities_are_refused(images: Path) -> None:
    bomb = '<!DOCTYPE a [<!ENTITY x "xxxxxxxxxx"><!ENTITY y "&x;&x;&x;">]>'
    with pytest.raises(LabelsError, match="it has a document type"):
        read_boxes(voc(images, head=bomb))


@pytest.mark.parametrize(
    ("names", "line", "says"),
    [
        ("names: [cat]", "1 0.5 0.5 0.2 0.2", "a.txt, line 1: there is no class 1; 1 have names"),
        ("names: [cat]", "0 0.5 0.5 0.2", "it must be a class and four numbers"),
        ("names: [cat]", "0 20 20 10 10", "must be shares of the image"),
        ("names: 3", "0 0.5 0.5 0.2 0.2", "names must list the classes; got 3"),
    ],
)
def test_wrong_lines_of_yolo_are_named(images: Path, names: str, line: str, says: str) -> None:
    folder = yolo(images, names)
    (folder / "labels" / "a.txt").write_text(line)
    (folder / "labels" / "b.txt").write_text("0 0.5 0.5 0.5 0.5")  # a folder with one right line at least
    with pytest.raises(LabelsError) as refused:
        read_boxes(folder)
    assert says in str(refused.value)


def test_yolos_classes_have_names_of_their_own_or_numbers(images: Path) -> None:
    folder = yolo(images, "names:\n  0: tabby\n  1: poodle\n")
    assert read_boxes(folder).classes == ["tabby", "poodle"]
    (folder / "data.yaml").unlink()
    assert read_boxes(folder).classes == ["0", "1"]
    (folder / "classes.txt").write_text("x\ny\n")
    assert read_boxes(folder).classes == ["x", "y"]
    assert text_of(Path("images/set/images/a.jpg")) == Path("images/set/labels/a.txt")


def test_a_table_with_wrong_columns_or_rows_is_named(images: Path) -> None:
    with pytest.raises(LabelsError, match=r"line 5: xmin, ymin, xmax, ymax must be numbers; got x, 1, 2, 3"):
        read_boxes(table(images, "a.png,x,1,2,3,cat"))
    (images / "boxes.csv").write_text("a,b\n1,2\n")
    with pytest.raises(LabelsError, match="must have the columns image_path, xmin"):
        read_boxes(images / "boxes.csv")


def test_folders_of_classes_are_not_taken_for_boxes(tmp_path: Path) -> None:
    for name in ("cats", "dogs"):
        (tmp_path / name).mkdir()
        Image.new("L", (9, 9)).save(tmp_path / name / "1.png")
        (tmp_path / name / "1.txt").write_text("a caption of 5 words")
    assert not holds_boxes(tmp_path)
    with pytest.raises(LabelsError, match="has no labelled boxes"):
        read_boxes(tmp_path)


def test_the_command_draws_and_counts_them(
    images: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(images)
    main(["data", "show", str(coco(images))])
    said = capsys.readouterr().out.splitlines()
    assert said[1].split() == ["cat", "1", "25", "to", "25,", "median", "25"]
    assert said[3] == "2 images (colour), 1 without objects; 0 ignored regions"
    with Image.open("boxes-boxes.png") as sheet:
        colours = sheet.convert("RGB").getcolors(2**20)
    assert any(colour == (255, 127, 14) for _, colour in colours)  # the first class is orange
