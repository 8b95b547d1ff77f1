"""A network whose answers are known: it finds what is bright."""

from typing import Any

import torch

from scalechannels import LogMeanExpOverScales, ScaleChannelNetwork, ScaleGrid
from scalechannels.backbones.paper import ConvBackbone


def looking_everywhere(reduce: int = 1, look: Any = "everywhere") -> ScaleChannelNetwork:
    """A network whose only answer is where the image is brightest: a mean over its window."""
    backbone = ConvBackbone((1, 1), window=7, classes=2, hidden=1, batch_norm=False)
    with torch.no_grad():
        for parameter in backbone.parameters():
            parameter.fill_(0.1 if parameter.ndim > 1 else 0.0)
        backbone.classifier.weight[1] = -1.0
    grid = ScaleGrid.of(1.0, 2.0)
    made = ScaleChannelNetwork(backbone, grid, LogMeanExpOverScales(), 7, look=look)
    made.usage = {"classes": ["bright", "dark"], "background": None, "values": "unit", "reduce": reduce}
    return made
