"""Predictor: a saved network and all that is needed to ask it about image files, in one call.

predictor = Predictor("runs/photos-1f2e3d4c")
answer = predictor("cat.jpg")
answer.label, answer.probability, answer.size      # "cat", 0.93, 1.9 times the training objects
"""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from scalechannels.data.frames import reduced
from scalechannels.data.image_files import written
from scalechannels.data.pictures import as_taken, is_dark_on_light, read_image
from scalechannels.network import require_finite
from scalechannels.saving.saved_network import SavedNetwork


class Answer(NamedTuple):
    """What a network says about one image."""

    label: str
    probability: float
    """Of that class, calibrated where the network is."""
    probabilities: dict[str, float]
    """Of all classes."""
    size: float | None
    """The object's size in times of the training objects, by the deciding channel: right to about half an
    octave. None for networks without channels, or of which nobody measured it."""
    pixels: float | None
    """The same in pixels of the image."""


class Predictor:
    """A saved network, by its folder or the name of a shipped one, that answers for files and tensors.

    Images are read, reduced and given to the network as `scalechannels predict` does it.

    Example:
        >>> import torch
        >>> from scalechannels import Predictor
        >>> image = torch.zeros(1, 112, 112)                    # or the path of an image file
        >>> image[:, 36:76, 54:58] = 1                          # a bar of 40 pixels: a one
        >>> answer = Predictor("fovlse-mnist")(image)
        >>> answer.label, answer.probability > 0.9
        ('1', True)
    """

    def __init__(self, network: str | os.PathLike[str], device: str = "cpu") -> None:
        self.saved = SavedNetwork.open(network)
        if self.saved.detector is not None:
            raise ValueError(
                f"'{network}' is a detector, which finds objects anywhere: use "
                "scalechannels.Detector.from_pretrained, or the command scalechannels detect"
            )
        self.device = torch.device(device)
        self.saved.network.to(self.device).eval()

    @torch.inference_mode()
    def __call__(self, image: str | os.PathLike[str] | Tensor, *, invert: bool = False) -> Answer:
        """`image` is a file, or a tensor (C, H, W) with values from 0 to 1.

        Networks for digits expect light ink on dark ground; with `invert`, black and white are swapped first.
        """
        saved = self.saved
        read = _checked(image) if isinstance(image, Tensor) else read_image(Path(image), grey=saved.grey)
        if saved.values == "digits" and not invert and is_dark_on_light(read):
            which = "the image" if isinstance(image, Tensor) else f"'{written(os.fspath(image))}'"
            warnings.warn(
                f"{which} looks dark on light, but this network expects light objects on dark; try "
                "invert=True",
                stacklevel=2,
            )
        taken = as_taken(reduced(read, saved.reduce), saved.values, invert)
        said = saved.network.explain(taken[None].to(self.device))
        require_finite(said.logits, () if isinstance(image, Tensor) else (os.fspath(image),))
        shares = (said.logits[0] / saved.temperature).softmax(0).tolist()
        names = saved.names or [str(index) for index in range(len(shares))]
        best = max(range(len(shares)), key=shares.__getitem__)
        size, pixels = (None, None) if said.scales is None else saved.sizes_at(float(said.scales[0]))
        return Answer(names[best], shares[best], dict(zip(names, shares, strict=True)), size, pixels)


def _checked(image: Tensor) -> Tensor:
    """An image (C, H, W) as it is; an error where its values are no shares of white, such as bytes."""
    if image.ndim != 3 or 0 in image.shape:
        raise ValueError(f"the image must have the shape (C, H, W); got {tuple(image.shape)}")
    lowest, highest = (float(one) for one in image.aminmax())
    if not (image.is_floating_point() and lowest >= 0 and highest <= 1):
        raise ValueError(
            f"the image must have floating point values from 0 to 1; got {image.dtype} from {lowest:g} to "
            f"{highest:g}. Of bytes, give image.float() / 255"
        )
    return image
