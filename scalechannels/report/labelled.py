"""A saved network on a user's labelled images: a subfolder for each class, tested as `predict` sees them."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from scalechannels.backbones.inference import stated
from scalechannels.data.folder import ImageFolder, image_folder
from scalechannels.data.frames import reduced
from scalechannels.data.image_files import written
from scalechannels.data.pictures import as_taken
from scalechannels.data.survey import Images
from scalechannels.network import require_finite
from scalechannels.report.conditions import Condition, picture
from scalechannels.report.trial import answered, summary
from scalechannels.saving.saved_network import SavedNetwork
from scalechannels.saving.usage import RESULT, data_of, read_table
from scalechannels.training.progress import Progress


def labelled(
    saved: SavedNetwork,
    folder: Path,
    device: torch.device,
    sizes: Sequence[float] = (1.0,),
    images: Images = "crops",
) -> dict[str, Any]:
    """The evaluation of all images of a folder: at size 1 as they are, at others rescaled by that factor.

    The names of its class folders must be among the network's classes; it need not have all of them. Files
    are read one by one, for each size again: no more of them are in memory than a few batches.
    """
    found = image_folder(folder, colour="grey" if saved.grey else "rgb")
    count = stated(saved.network.backbone, "classes") or len(found.classes)
    names = saved.names or [str(index) for index in range(count)]
    if unknown := [name for name in found.classes if name not in names]:
        raise ValueError(
            f"the network knows the classes {', '.join(names)}, but '{folder}' has {', '.join(unknown)}"
        )
    found = unknown_to(saved, found)
    labels = torch.tensor([names.index(found.classes[label]) for label in found.labels])
    network = saved.network.to(device).eval()
    entries = []
    with Progress(f"testing {saved.folder.name}", True) as progress:
        for size in sizes:
            condition = Condition("size", size)
            answers = answered(network, _pictures(found, saved, condition, images), device)
            require_finite(answers.logits, [written(path) for path in found.paths])
            entry = asdict(summary(condition, answers, labels, len(names), saved.temperature))
            entries.append({"size": size, **entry})
            progress.advance(f"size {size:.3g}: {entry['accuracy']:.1f} %", len(sizes))
    return {"split": "all", "sizes": entries}


def unknown_to(saved: SavedNetwork, found: ImageFolder) -> ImageFolder:
    """The images of a folder that a run has not learnt from; a warning says how many are left out.

    Limit: runs of earlier versions do not say which these are, nor do networks without a run. A copy is a
    file with the same bytes.
    """
    known = read_table(saved.folder / RESULT).get("learnt_from")
    if known is None:
        if Path(data_of(saved.folder).get("folder") or "") == found.root.resolve():
            warnings.warn(
                f"'{written(found.root)}' has other images than when '{saved.folder}' was trained on it: "
                "some of those that are tested may have been learnt from",
                stacklevel=3,
            )
        return found
    if not (isinstance(known, list) and all(isinstance(one, str) for one in known)):
        raise ValueError(f"'{saved.folder / RESULT}' is damaged: its learnt_from must list checksums")
    new = found.without(known)
    if left_out := len(found) - len(new):
        said = f"{left_out} of {len(found)} images in '{written(found.root)}' were trained on, or chosen by"
        if not len(new):
            raise ValueError(f"{said}: there is nothing to test on")
        warnings.warn(f"{said}: left out", stacklevel=3)
    return new


def _pictures(
    found: ImageFolder, saved: SavedNetwork, condition: Condition, images: Images
) -> Iterator[Tensor]:
    """What the network takes of each image under a condition, which is about values from 0 to 1."""
    for index in range(len(found)):
        # The object's size matters only off the centre.
        shown = picture(reduced(found[index][0], saved.reduce), condition, images, 1.0, index)
        yield as_taken(shown, saved.values, False)
