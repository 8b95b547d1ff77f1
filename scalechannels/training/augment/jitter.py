"""training.jitter: every window of every image is shifted by a few of its pixels.

Objects are never exactly at the centre, and a shift of one window pixel is one of σ image pixels: coarse
channels meet it in every image that is not centred to the pixel.

Law: the window of channel σ is that about a centre which is σ · shift image pixels away. Limit: whole pixels
of the window. It is augmentation, which the paper does not use.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from scalechannels.training.augment.visible import picked


class Jitter(nn.Module):
    """Windows (R, B, S, n + 2 m, n + 2 m, C) to shifted ones (R, B, S, n, n, C), m the largest shift.

    shifts     for each run by how many pixels at most, in each direction; 0 leaves its windows in the middle
    """

    shifts: Tensor

    def __init__(self, shifts: Sequence[int]) -> None:
        super().__init__()
        if not shifts or min(shifts) < 0:
            raise ValueError(f"shifts are zero or more pixels, one for each run, got {list(shifts)}")
        self.margin = max(shifts)
        self.register_buffer("shifts", torch.tensor(list(shifts)).view(-1, 1, 1, 1), persistent=False)

    def forward(self, windows: Tensor, *_: Tensor) -> Tensor:
        return self.shifted(windows, self.drawn(windows))

    def drawn(self, windows: Tensor) -> Tensor:
        """A row's and a column's shift for every window: (R, B, S, 2)."""
        draws = torch.rand(*windows.shape[:3], 2, device=windows.device)
        return (draws * (2 * self.shifts + 1)).long() - self.shifts

    def shifted(self, windows: Tensor, shift: Tensor) -> Tensor:
        """The windows that lie so many rows and columns (R, B, S, 2) off the middle."""
        n = windows.shape[3] - 2 * self.margin
        places = self.margin + shift[..., None] + torch.arange(n, device=windows.device)  # (R, B, S, 2, n)
        return picked(windows, *places.unbind(3))
