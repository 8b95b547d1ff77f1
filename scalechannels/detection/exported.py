"""A detector as one ONNX file: an image in, for every place and scale a box and how probable an object is.

    images (1, C, H, W) ──▶ boxes (P, 4), odds (P,), probabilities (P, K)

P counts the lattice points of all channels. `odds` are log-odds of an object where they peak in place and
scale, and `NONE` elsewhere. What remains to do is small: take the points above the threshold and, of boxes of
one object, the best; `decoded` does it in NumPy, and may be copied into a program without this library.

Law: decoded, the file gives the boxes of the Detector. Limit: images of one size; float32; boxes without
regression are squares about the lattice points, where the Detector interpolates between them.
"""

from __future__ import annotations

import json
import logging
import warnings
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from scalechannels.backbones.inference import colours, evaluating
from scalechannels.detection.detector import Detector
from scalechannels.detection.peaks import Peaks, at_points
from scalechannels.files import atomic_path, require_writable
from scalechannels.saving.usage import used

NONE = -1e4
"""Log-odds of points that are no peaks: no threshold lets them through."""
OUTPUTS = ("boxes", "odds", "probabilities")
OPSET, TOLERANCE = 20, 1e-3


class BoxMap(nn.Module):
    """What a detector says at every lattice point of every channel, as one graph."""

    def __init__(self, detector: Detector) -> None:
        super().__init__()
        self.network = detector.network  # so that its weights are the module's
        self.detector = detector

    def forward(self, images: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        detector, grid = self.detector, self.network.grid
        maps = detector.dense.channel_maps(images[0])
        scores = [one._replace(logits=detector.odds_of(one.logits)[..., None]) for one in maps]
        boxes, odds, probabilities = [], [], []
        for index, own in enumerate(maps):
            score = scores[index].logits[..., 0]  # (h, w)
            rows, columns = own.rows.positions(), own.columns.positions()
            row, column = rows.repeat_interleave(len(columns)), columns.repeat(len(rows))
            here, logits = score.flatten(), own.logits.flatten(0, 1)
            peak = here >= F.max_pool2d(score[None], 3, stride=1, padding=1)[0].flatten()
            for k in (index - 1, index + 1):
                if 0 <= k < len(maps):
                    peak = peak & (here >= at_points(scores[k], row, column)[1])
            at = torch.stack((row, column), 1)
            sigmas = torch.full_like(row, grid[index])
            peaks = Peaks(at, sigmas, torch.full_like(row, index, dtype=torch.int64), logits, at)
            boxes.append(detector.boxes_of(peaks, images.shape[1:]).float())
            odds.append(torch.where(peak, here, NONE))
            probabilities.append(detector.probabilities(logits))
        return torch.cat(boxes), torch.cat(odds), torch.cat(probabilities)


def export_detector(detector: Detector, path: Path, size: tuple[int, int]) -> float:
    """Write a detector for images of one height and width; how far onnxruntime is from PyTorch.

    Law: a file that differs by more than 1e-3 of a pixel or of a logit is not written.
    """
    import onnx
    import onnxruntime

    require_writable(path)
    module = BoxMap(detector)
    channels = colours(detector.network.backbone, otherwise=3)
    generator = torch.Generator().manual_seed(0)
    images = torch.rand(1, channels, *size, generator=generator)
    logger = logging.getLogger("torch.onnx")
    level = logger.level
    logger.setLevel(logging.ERROR)
    usage = used(detector.network)
    try:
        with warnings.catch_warnings(), evaluating(module), torch.no_grad(), atomic_path(path) as temporary:
            warnings.simplefilter("ignore")  # the exporter's remarks on its own future
            program: Any = torch.onnx.export(
                module,
                (images,),
                dynamo=True,
                opset_version=OPSET,
                input_names=["images"],
                output_names=list(OUTPUTS),
                verbose=False,
            )
            about = {
                "classes": detector.classes,
                "reduce": usage["reduce"],
                "values": usage["values"],
                "input_size": list(size),
                **asdict(detector.rules),
            }
            for name, value in about.items():
                program.model.metadata_props[name] = json.dumps(value)
            program.save(str(temporary), external_data=False)
            onnx.checker.check_model(str(temporary))
            session = onnxruntime.InferenceSession(str(temporary), providers=["CPUExecutionProvider"])
            got = session.run(list(OUTPUTS), {"images": images.numpy()})
            expected = module(images)
            error = float(
                np.max([np.abs(one - ours.numpy()).max() for one, ours in zip(got, expected, strict=True)])
            )
            if not error <= TOLERANCE:  # so put that not-a-number fails too
                raise ValueError(f"onnxruntime and PyTorch differ by {error:.1e}; nothing was written")
    finally:
        logger.setLevel(level)
    return error


def decoded(
    boxes: Any, odds: Any, probabilities: Any, *, threshold: float, iou: float, inside: float
) -> list[tuple[list[float], int, float]]:
    """Boxes x0, y0, x1, y1, their classes and probabilities, the most probable first. NumPy alone."""
    order = np.argsort(-odds, kind="stable")
    least = np.log(threshold / (1 - threshold)) if threshold > 0 else -9_999  # above that of no peak
    order = order[odds[order] > least]
    kept: list[int] = []
    for index in order:
        low = np.maximum(boxes[index, :2], boxes[kept, :2])
        high = np.minimum(boxes[index, 2:], boxes[kept, 2:])
        shared = np.clip(high - low, 0, None).prod(-1)
        own, others = ((one[..., 2:] - one[..., :2]).prod(-1) for one in (boxes[index], boxes[kept]))
        same = (shared > iou * (own + others - shared)) | (shared > inside * np.minimum(own, others))
        if not same.any():
            kept.append(int(index))
    kept.sort(key=lambda index: -probabilities[index].max())
    return [(boxes[i].tolist(), int(probabilities[i].argmax()), float(probabilities[i].max())) for i in kept]
