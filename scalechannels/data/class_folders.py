"""Which subfolders of a folder of images are classes, and which are parts of the data.

    photos/cat  photos/dog                                 classes
    photos/train/cat  photos/train/dog  photos/test/cat    classes in parts

Law: a folder whose name is that of a part is never taken for a class without a word where another one is a
part. Limit: a class may be called "train" or "test", where no part has subfolders.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from scalechannels.data.image_files import find_images, written

Part = Literal["train", "validation", "test"]
PARTS: dict[str, Part] = {
    **dict.fromkeys(("train", "training"), "train"),
    **dict.fromkeys(("val", "valid", "validation", "dev"), "validation"),
    **dict.fromkeys(("test", "testing"), "test"),
}
"""The names of folders that are parts of the data and not classes."""


def class_folders(root: Path) -> list[tuple[Path, Part | None]]:
    """The folder of each class, and the part that it belongs to where the folders above it name parts."""
    folders = _subfolders(root)
    in_parts = [(folder, PARTS.get(folder.name.lower())) for folder in folders]
    # A class may be called "test": parts are folders of folders, and one of them is for training.
    divided = [folder for folder, part in in_parts if part and _subfolders(folder)]
    learnt = [folder for folder in divided if PARTS[folder.name.lower()] == "train"]
    if (learnt and all(part for _, part in in_parts)) or len(divided) > len(learnt) > 0:
        for folder in folders:
            if folder not in divided:
                known = ", ".join(f"'{one.name}'" for one in divided)
                raise ValueError(
                    f"'{root}' is divided into parts ({known}), but '{folder.name}' is none with a subfolder "
                    f"for each class; move it away, or give --data '{learnt[0]}' alone"
                )
        named = [part for _, part in in_parts]
        if len(set(named)) < len(named):
            names = ", ".join(folder.name for folder in folders)
            raise ValueError(
                f"'{root}' has a part of the data twice, in the folders {names}; keep one of them"
            )
        found = [(inner, part) for folder, part in in_parts for inner in _subfolders(folder)]
        trained = {folder.name for folder, part in found if part == "train"}
        for folder, _ in found:
            if folder.name not in trained:
                raise ValueError(f"'{folder}' is a class that no folder has to train on; remove or add it")
    else:
        found, trained = [(folder, None) for folder in folders], {folder.name for folder in folders}
        within = [{PARTS.get(inner.name.lower()) for inner in _subfolders(folder)} for folder in folders]
        if within and all("train" in parts and None not in parts and len(parts) > 1 for parts in within):
            name = folders[0].name
            raise ValueError(
                f"'{root}' has the parts of its data inside the classes, such as '{name}/train': put the "
                f"classes into the parts, as in 'train/{name}'"
            )
    if len(trained) < 2:
        told = f"only {next(iter(trained))!r}" if trained else "images but no subfolders"
        told = told if trained or find_images(root).images else "none"
        raise ValueError(
            f"'{root}' needs a subfolder of images for each of two or more classes; it has {told}"
        )
    for folder, _ in found:
        if written(folder.name) != folder.name:
            raise ValueError(
                f"the name of the class '{written(folder.name)}' in '{root}' is not UTF-8, and a network "
                "cannot be saved with it; rename that folder"
            )
    return found


def _subfolders(root: Path) -> list[Path]:
    return sorted(path for path in root.iterdir() if path.is_dir() and not path.name.startswith("."))
