"""training.flips and training.crops, and training.visible of whole images: images seen through an index map.

Each image of a step becomes a canvas that is large enough for the widest window; where an image's border goes
on for ever, one that holds the shifted image is enough, as the canvas has the same border. Where a canvas
pixel lies decides which pixel of the image it shows, along the rows and along the columns by themselves, so
that all of it is one gather. Canvas and image have the same centre; beyond the image the canvas continues it.

Law: a network sees in the canvas what it would see in the image that was shifted and flipped and then cropped
to its visible part; without any of these, in the image itself. Limits: what lies outside an image is its
border or its reflection, not a constant; the visible part has an even number of pixels less than the image
along each side, so that its edge lies on a pixel.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from scalechannels.sampling import Foveate, Outside, blur_margin, inside, mirrored
from scalechannels.training.augment.visible import drawn_shares


class FlipsAndCrops(nn.Module):
    """Images (R, B, C, H, W) to canvases (R, B, C, H', W'), other ones each time.

    foveate    what will look at the canvas; None for a network that looks at the whole image, whose canvas
               has the image's size
    outside    what continues an image and its visible part: its "border", or the image "reflect"ed
    flips      flip every second image left to right
    crops      shift by whole pixels, at most so many in each direction
    visible    crop every second image to a random share of its object's frame, at least this; 1 for none
    frames     (D, N): the side of the square that holds each image's object; by default the image's own sides
    """

    visible: Tensor
    frames: Tensor | None

    def __init__(
        self,
        foveate: Foveate | None,
        *,
        outside: Outside = "reflect",
        flips: bool = False,
        crops: int = 0,
        visible: float = 1.0,
        frames: Tensor | None = None,
    ) -> None:
        super().__init__()
        if outside not in ("border", "reflect") or (foveate is not None and foveate.outside != outside):
            raise ValueError(
                f"canvases continue the image as windows do, by its border or its reflection; got "
                f"outside={outside!r}" + (f" for windows with {foveate.outside!r}" if foveate else "")
            )
        self.needed = 0 if foveate is None else _side_seen(foveate)
        self.outside, self.flips, self.crops, self.hides = outside, flips, crops, visible < 1
        self.register_buffer("frames", frames, persistent=False)  # not a copy, see `Visible`
        self.register_buffer("visible", torch.tensor(visible), persistent=False)

    def forward(self, images: Tensor, *which: Tensor) -> Tensor:
        """`which` data sets (R, 1) the images are of, and which images of these (R, B)."""
        flat = images.flatten(0, 1)  # (N, C, H, W), N = R·B
        N, C, height, width = flat.shape
        share = drawn_shares(self.visible, (N,)) if self.hides else None
        if share is not None and self.frames is not None:
            share = share * self.frames[which].flatten()  # in pixels
        rows = self._seen(height, share, N, images.device)  # (N, H')
        columns = self._seen(width, share, N, images.device)  # (N, W')
        if self.flips:
            flipped = torch.rand(N, 1, device=images.device) < 0.5
            columns = torch.where(flipped, width - 1 - columns, columns)
        number, channel = (torch.arange(count, device=images.device) for count in (N, C))
        canvas = flat[
            number[:, None, None, None],
            channel[:, None, None],
            rows[:, None, :, None],
            columns[:, None, None],
        ]  # (N, C, H', W')
        return canvas.unflatten(0, images.shape[:2])

    def _seen(self, size: int, share: Tensor | None, count: int, device: torch.device) -> Tensor:
        """For each image the pixels (count, canvas) that its canvas shows along an axis of `size` pixels."""
        needed = self.needed
        if self.outside == "border":  # beyond these all pixels are alike, and windows repeat the last one
            needed = min(needed, size + 2 * self.crops)
        canvas = canvas_side(size, needed)
        place = torch.arange(canvas, device=device).expand(count, -1) - (canvas - size) // 2
        if share is not None:
            side = share * size if self.frames is None else share  # of what is shown; ∞: all
            lost = ((1 - side / size) * size / 2).round().clamp(min=(size - canvas) // 2, max=size // 2 - 1)
            lost = lost.long()[:, None]  # pixels on each side; below 0 beyond all of the canvas
            if self.outside == "reflect":
                place = mirrored(place - lost, size - 2 * lost) + lost
            else:
                place = torch.minimum(torch.maximum(place, lost), size - 1 - lost)
        if self.crops:
            place = place + torch.randint(-self.crops, self.crops + 1, (count, 1), device=device)
        return inside(place, size, self.outside)


def canvas_side(size: int, needed: int) -> int:
    """The smallest side that holds the image and what is needed, and has the image's centre."""
    return size + 2 * max(0, -(-(needed - size) // 2))


def _side_seen(foveate: Foveate) -> int:
    """How many pixels of a large image have a weight in any window, along its side."""
    margin = blur_margin(foveate.blur)
    widest = foveate.grid.maximum
    reach = widest * ((foveate.window - 1) / 2 + margin) + (max(1.0, widest) if foveate.antialias else 1.0)
    return math.ceil(2 * reach - 1 - 1e-9)  # rounding of the grid must not add a pixel
