"""training.visible: objects that reach beyond the picture, made from those that do not.

An object that is larger than the picture is seen in part, and what a window has beyond the picture repeats
the border (or reflects the picture). A network that is trained on whole objects has never seen that. Here the
picture of a training image is taken to end at a random distance from its centre.

Law: the windows are those of the image cropped there. Limit: the edge lies on a pixel of each channel's
window, so it is off by up to half of one.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from scalechannels.sampling import Foveate


def drawn_shares(visible: Tensor, shape: Sequence[int]) -> Tensor:
    """What share of its object each image shows, of any shape: ∞, all that there is, for every second one.

    The others are log-uniform from the smallest share, `visible`, which 1 leaves whole.
    """
    share = visible ** torch.rand(shape, device=visible.device)
    whole = (torch.rand(shape, device=visible.device) < 0.5) | (share >= 1)
    return torch.where(whole, torch.inf, share)


class Visible(nn.Module):
    """Crops every second image of windows (R, B, S, n, n, C), each run by its own measure.

    foveate    what made the windows
    frames     (D, N): the side of the square that holds each image's object, in image pixels
    visible    for each run the smallest share of that side that stays in the picture; 1 leaves it whole
    """

    scales: Tensor
    frames: Tensor
    visible: Tensor

    def __init__(self, foveate: Foveate, frames: Tensor, visible: Sequence[float]) -> None:
        super().__init__()
        if frames.isnan().any():
            raise ValueError("training.visible needs images whose object size is known")
        if foveate.outside not in ("border", "reflect"):
            raise ValueError(f'training.visible needs outside="border" or "reflect", not "{foveate.outside}"')
        self.reflects = foveate.outside == "reflect"
        self.register_buffer("scales", torch.tensor(list(foveate.grid), device=frames.device))
        # Not a copy: where sizes are drawn again, it is given new ones.
        self.register_buffer("frames", frames, persistent=False)
        self.register_buffer("visible", torch.tensor(list(visible), device=frames.device)[:, None])  # (R, 1)

    def forward(self, windows: Tensor, data: Tensor, images: Tensor) -> Tensor:
        """`data` (R, 1) and `images` (R, B) say of which images the windows are."""
        side = drawn_shares(self.visible, images.shape) * self.frames[data, images]  # (R, B)
        return self.cropped(windows, side)

    def cropped(self, windows: Tensor, side: Tensor) -> Tensor:
        """The windows of images (R, B) whose picture has this many pixels along its side."""
        n = windows.shape[3]
        centre = (n - 1) / 2
        reach = ((side[..., None] - 1) / 2 / self.scales).clamp(min=0.5, max=n)[..., None]  # (R, B, S, 1)
        place = torch.arange(n, device=windows.device) - centre
        if self.reflects:  # back and forth between the two edges
            beyond = (place + reach) % (4 * reach)
            place = torch.minimum(beyond, 4 * reach - beyond) - reach
        else:
            place = torch.maximum(torch.minimum(place, reach), -reach)
        index = (place + centre).round().long().clamp(0, n - 1)  # (R, B, S, n)
        return picked(windows, index, index)


def picked(windows: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
    """Of windows (R, B, S, N, N, C) these rows and columns (R, B, S, n) of each: (R, B, S, n, n, C)."""
    runs, images, channels = (
        torch.arange(count, device=windows.device).view(-1, *[1] * after)
        for count, after in zip(windows.shape, (4, 3, 2), strict=False)
    )
    return windows[runs, images, channels, rows[..., :, None], columns[..., None, :]]
