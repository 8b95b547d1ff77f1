"""Labels as labelling tools write them, with their habits: all of them say one box in one image."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from PIL import Image

from scalechannels.data.boxes.labelled import LabelsError, LabelsWarning
from scalechannels.data.boxes.reading import holds_boxes, read_boxes

SIZE = 40, 30
BOX = (4, 6, 24, 16)  # x0, y0, x1, y1 from the image's corner
NAME = "my photo.png"
CLASS = "garden gnome"
LINE = f"0 {14 / 40} {11 / 30} {20 / 40} {10 / 30}"


def image(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", SIZE, "teal").save(path)
    return path


def write(path: Path, text: str, encoding: str = "utf-8") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode(encoding))
    return path


def coco(name: str, **more: object) -> str:
    annotation = {
        "id": 1,
        "image_id": 1,
        "category_id": 1,
        "bbox": [4.0, 6.0, 20.0, 10.0],
        "area": 200.0,
        **more,
    }
    categories = [{"id": 1, "name": CLASS, "supercategory": ""}]
    images = [{"id": 1, "file_name": name, "width": 40, "height": 30, "license": 0, "flickr_url": ""}]
    return json.dumps({"info": {}, "images": images, "categories": categories, "annotations": [annotation]})


def voc(name: str, path: str = "") -> str:
    edges = "".join(
        f"<{key}>{at}</{key}>" for key, at in zip(("xmin", "ymin", "xmax", "ymax"), BOX, strict=True)
    )
    return (
        f"<annotation><folder>photos</folder><filename>{name}</filename><path>{path}</path><source>"
        "<database>Unknown</database></source><size><width>40</width><height>30</height><depth>3</depth></size>"
        f"<segmented>0</segmented><object><name>{CLASS}</name><pose>Unspecified</pose><truncated>0</truncated>"
        f"<difficult>0</difficult><bndbox>{edges}</bndbox></object></annotation>"
    ).replace("><", ">\r\n\t<")


def cvat_coco(root: Path) -> Path:
    image(root / "images" / "default" / NAME)
    crowd = {"counts": [10, 20, 1170], "size": [30, 40]}
    content = json.loads(coco(f"default/{NAME}", segmentation=[], iscrowd=0, attributes={"occluded": False}))
    content["images"][0] |= {"width": 40.0, "height": 30.0}
    content["annotations"].append(
        {"id": 2, "image_id": 1, "category_id": 1, "bbox": [30, 1, 9, 9], "segmentation": crowd, "iscrowd": 1}
    )
    write(root / "annotations" / "instances_default.json", json.dumps(content))
    return root


def cvat_yolo(root: Path) -> Path:
    image(root / "obj_train_data" / NAME)
    write(root / "obj_train_data" / "my photo.txt", LINE + "\n")
    write(root / "obj.names", CLASS + "\n")
    write(root / "obj.data", "classes = 1\ntrain = data/train.txt\nnames = data/obj.names\n")
    write(root / "train.txt", f"data/obj_train_data/{NAME}\n")
    return root


def cvat_voc(root: Path) -> Path:
    image(root / "JPEGImages" / NAME)
    write(root / "ImageSets" / "Main" / "default.txt", "my photo\n")
    write(root / "Annotations" / "my photo.xml", voc(NAME))
    write(root / "labelmap.txt", "# label:color_rgb:parts:actions\n")
    return root


def label_studio_coco(root: Path) -> Path:
    image(root / "images" / NAME)
    return write(root / "result.json", coco(f"images\\{NAME}", segmentation=[], ignore=0, iscrowd=0))


def label_studio_local(root: Path) -> Path:
    image(root / NAME)
    return write(root / "result.json", coco("/data/local-files/?d=photos/my%20photo.png"))


def label_studio_yolo(root: Path) -> Path:
    image(root / "images" / NAME)
    write(root / "labels" / "my photo.txt", LINE)
    write(root / "classes.txt", CLASS + "\n")
    write(root / "notes.json", json.dumps({"categories": [{"id": 0, "name": CLASS}], "info": {}}))
    return root


def labelimg_voc(root: Path) -> Path:
    """It drops the suffix of some names, and writes the folder of the machine."""
    image(root / NAME)
    write(root / "my photo.xml", "\ufeff" + voc("my photo", "C:\\Users\\me\\photos\\my photo.png"))
    return root


def renamed_voc(root: Path) -> Path:
    image(root / NAME)
    write(root / "my photo.xml", voc("IMG_0001.JPG"))
    return root


def labelimg_yolo(root: Path) -> Path:
    image(root / NAME)
    write(root / "my photo.txt", f"\ufeff{LINE}\r\n")
    write(root / "classes.txt", f"\ufeff{CLASS}\r\n")
    return root


def roboflow_coco(root: Path) -> Path:
    image(root / "train" / NAME)
    write(root / "train" / "_annotations.coco.json", coco(NAME))
    write(root / "README.roboflow.txt", "garden gnomes\n")
    return root / "train"


def roboflow_yolo(root: Path) -> Path:
    """Outlines among the boxes, and the names one folder above."""
    image(root / "train" / "images" / NAME)
    corners = [(4, 6), (24, 6), (20, 16), (5, 12)]
    outline = " ".join(f"{x / 40} {y / 30}" for x, y in corners)
    write(root / "train" / "labels" / "my photo.txt", f"0 {outline}\n")
    write(root / "data.yaml", f"train: ../train/images\nnc: 1\nnames: ['{CLASS}']\n")
    return root / "train"


def roboflow_csv(root: Path) -> Path:
    image(root / NAME)
    head = "filename,width,height,class,xmin,ymin,xmax,ymax"
    return write(root / "_annotations.csv", f"{head}\n{NAME},40,30,{CLASS},{','.join(map(str, BOX))}\n")


def excel(root: Path) -> Path:
    image(root / NAME)
    head = "Image_Path;Xmin;Ymin;Xmax;Ymax;Label"
    return write(root / "boxes.csv", f"\ufeff{head}\r\n{NAME};{';'.join(map(str, BOX))};{CLASS}\r\n")


TOOLS = [
    *(cvat_coco, cvat_yolo, cvat_voc, label_studio_coco, label_studio_local, label_studio_yolo, labelimg_voc),
    *(renamed_voc, labelimg_yolo, roboflow_coco, roboflow_yolo, roboflow_csv, excel),
]


@pytest.mark.parametrize("tool", TOOLS)
def test_every_tool_says_one_box(tool: Callable[[Path], Path], tmp_path: Path) -> None:
    path = tool(tmp_path)
    assert holds_boxes(path)
    boxed = read_boxes(path)
    assert boxed.classes == [CLASS]
    (only,) = boxed.images
    assert only.path.name == NAME
    torch.testing.assert_close(only.boxes, torch.tensor([BOX], dtype=torch.float64) - 0.5)
    assert len(only.ignored) == (tool is cvat_coco)  # its crowd has an outline in run lengths, and a box


def test_a_data_set_in_parts_says_so(tmp_path: Path) -> None:
    roboflow_coco(tmp_path)
    assert holds_boxes(tmp_path)  # else its parts would be taken for classes
    with pytest.raises(LabelsError, match=r"has labelled boxes in parts, train: give one of them, such as"):
        read_boxes(tmp_path)


def test_of_several_files_of_labels_one_has_to_be_given(tmp_path: Path) -> None:
    roboflow_csv(tmp_path)
    write(tmp_path / "boxes.json", coco(NAME))
    assert holds_boxes(tmp_path)
    with pytest.raises(
        LabelsError, match=r"several files of labels: give one of _annotations.csv, boxes.json"
    ):
        read_boxes(tmp_path)


def test_a_form_that_is_not_read_has_advice(tmp_path: Path) -> None:
    write(tmp_path / "annotations.xml", "<annotations><version>1.1</version></annotations>")
    with pytest.raises(LabelsError, match="export from CVAT as Pascal VOC, YOLO or COCO"):
        read_boxes(tmp_path / "annotations.xml")


def test_an_image_without_an_xml_file_is_no_negative(tmp_path: Path) -> None:
    labelimg_voc(tmp_path)
    image(tmp_path / "not yet.png")
    with pytest.warns(LabelsWarning, match="1 image in .* without an XML file: not yet.png; left out"):
        boxed = read_boxes(tmp_path)
    assert len(boxed.images) == 1


def test_a_row_with_a_name_alone_is_a_negative(tmp_path: Path) -> None:
    table = roboflow_csv(tmp_path)
    image(tmp_path / "garden.png")
    table.write_text(table.read_text() + "garden.png,,,,,,,\n")
    assert [len(one.labels) for one in read_boxes(table).images] == [1, 0]


def test_a_class_called_no_keeps_its_name(tmp_path: Path) -> None:
    folder = label_studio_yolo(tmp_path)
    (folder / "classes.txt").unlink()
    write(folder / "data.yaml", "names: [no, yes, 3]\n")
    assert read_boxes(folder).classes == ["no", "yes", "3"]
