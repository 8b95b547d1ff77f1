"""A saved network on a user's labelled images: a subfolder for each class, tested as `predict` sees them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from scalechannels.data.folder import image_folder
from scalechannels.data.frames import reduced
from scalechannels.data.image_files import written
from scalechannels.data.pictures import as_taken
from scalechannels.data.survey import Images
from scalechannels.network import require_finite
from scalechannels.report.conditions import Condition, picture
from scalechannels.report.trial import answered, summary
from scalechannels.saving.saved_network import SavedNetwork
from scalechannels.training.progress import Progress


def labelled(
    saved: SavedNetwork,
    folder: Path,
    device: torch.device,
    sizes: Sequence[float] = (1.0,),
    images: Images = "crops",
) -> dict[str, Any]:
    """The evaluation of all images of a folder: at size 1 as they are, at others rescaled by that factor.

    The names of its class folders must be among the network's classes; it need not have all of them.
    """
    found = image_folder(folder, colour="grey" if saved.grey else "rgb")
    names = saved.names or [str(index) for index in range(len(found.classes))]
    if unknown := [name for name in found.classes if name not in names]:
        raise ValueError(
            f"the network knows the classes {', '.join(names)}, but '{folder}' has {', '.join(unknown)}"
        )
    labels = torch.tensor([names.index(found.classes[label]) for label in found.labels])
    shown = [
        reduced(as_taken(found[index][0], saved.values, False), saved.reduce) for index in range(len(found))
    ]
    network = saved.network.to(device).eval()
    entries = []
    with Progress(f"testing {saved.folder.name}", True) as progress:
        for size in sizes:
            condition = Condition("size", size)
            # The object's size matters only off the centre.
            pictures = [picture(one, condition, images, 1.0, number) for number, one in enumerate(shown)]
            answers = answered(network, pictures, device)
            require_finite(answers.logits, [written(path) for path in found.paths])
            entry = asdict(summary(condition, answers, labels, len(names), saved.temperature))
            entries.append({"size": size, **entry})
            progress.advance(f"size {size:.3g}: {entry['accuracy']:.1f} %", len(sizes))
    return {"split": "all", "sizes": entries}
