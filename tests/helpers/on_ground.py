"""Images of an object that stands out from its ground."""

import torch
from torch import Tensor


def square(side: int, frame: int | tuple[int, int], row: int, column: int, ground: float = 0.2) -> Tensor:
    """A square in an image (1, H, W), its upper left pixel at this place; the ground varies a little."""
    height, width = (frame, frame) if isinstance(frame, int) else frame
    image = torch.full((1, height, width), ground) + 0.02 * torch.rand(1, height, width)
    image[:, row : row + side, column : column + side] = 0.9
    return image
