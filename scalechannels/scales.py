"""ScaleGrid: the scales of a network's channels, as one frozen value that every signature shares."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from numbers import Real
from typing import TYPE_CHECKING, Any, Literal, SupportsFloat, overload

if TYPE_CHECKING:
    from torch import Tensor

MOST = 1024
"""Scales of a grid: the paper's have 17, and each costs as much as a network of its own."""
SCALES = (1e-4, 1e4)
"""Between these lie the channels that a config may ask for: what they need of memory has to have a bound."""
QUARTER_OCTAVE = 2**0.25
"""The paper's dense sampling ratio 2^(1/4)."""


@dataclass(frozen=True, init=False, repr=False)
class ScaleGrid(Sequence[float]):
    """The scales σ of the channels, ascending. Channel σ sees σ·n input pixels as a window of n pixels.

        ScaleGrid(0.5, 8, ratio=2 ** 0.25)          # 17 scales from 1/2 to 8, both ends included
        ScaleGrid.of(1, 1.5, 4)                     # explicit factors
        ScaleGrid.from_sizes(training=28, deployment=(14, 112))   # from known object sizes in pixels

    Law: scaling an image by one ratio shifts the channels of an evenly spaced grid by one place.
    Limit: at the ends of the grid a channel moves out and another one in; leave a margin there.

    Example:
        >>> from scalechannels import ScaleGrid
        >>> grid = ScaleGrid(0.5, 8, ratio=2 ** 0.25)           # from 1/2 to 8, both ends included
        >>> len(grid), grid.minimum, grid.maximum
        (17, 0.5, 8.0)
        >>> ScaleGrid(0.5, 2, ratio=2)[1:]
        ScaleGrid.of(1, 2)
    """

    factors: tuple[float, ...]

    def __init__(self, minimum: SupportsFloat, maximum: SupportsFloat, *, ratio: SupportsFloat) -> None:
        if not (_is_scale(minimum) and _is_scale(maximum)):
            raise ValueError(f"scales must be positive and finite; got {minimum} to {maximum}")
        minimum, maximum, step = _number(minimum), _number(maximum), _number(ratio)
        if minimum > maximum:
            raise ValueError(f"minimum must not exceed maximum; got {minimum:g} > {maximum:g}")
        if not 1 < step < math.inf:
            raise ValueError(f"ratio, of neighbouring scales, must exceed 1 and be finite; got {ratio}")
        span = maximum / minimum
        if span == math.inf:
            raise ValueError(f"scales must not lie so far apart; got {minimum:g} to {maximum:g}")
        exact = math.log(span) / math.log(step)
        _require_count(exact + 1)
        steps = round(exact)
        if abs(exact - steps) > 1e-6:
            below, above = (minimum * _power(step, k) for k in (math.floor(exact), math.ceil(exact)))
            raise ValueError(
                f"the largest scale, {maximum:.10g}, is not the smallest, {minimum:g}, times a whole power "
                f"of the ratio {step:g}; take {below:.10g} or {above:.10g} as the largest"
            )
        # A power of the whole span, not a running product: both ends and a 1 in between are exact.
        factors = tuple(minimum * span ** (k / max(steps, 1)) for k in range(steps + 1))
        object.__setattr__(self, "factors", factors)

    @classmethod
    def of(cls, *factors: SupportsFloat) -> ScaleGrid:
        """A grid of explicit scales, strictly ascending: numbers, those of NumPy and torch included.

        Example:
            >>> from scalechannels import ScaleGrid
            >>> list(ScaleGrid.of(1, 1.5, 4))
            [1.0, 1.5, 4.0]
        """
        if not factors:
            raise ValueError("a grid needs at least one scale")
        if not all(_is_scale(factor) for factor in factors):
            raise ValueError(f"scales must be positive and finite; got {factors}")
        _require_count(len(factors))
        numbers = tuple(_number(factor) for factor in factors)
        if any(low >= high for low, high in pairwise(numbers)):
            raise ValueError(f"scales must be strictly ascending; got {factors}")
        grid = cls.__new__(cls)
        object.__setattr__(grid, "factors", numbers)
        return grid

    @classmethod
    def from_sizes(
        cls,
        training: SupportsFloat,
        deployment: tuple[SupportsFloat, SupportsFloat],
        *,
        window: SupportsFloat = 28,
        ratio: SupportsFloat = QUARTER_OCTAVE,
        margin: SupportsFloat = 2,
    ) -> ScaleGrid:
        """The grid for objects of `training` pixels that will appear at `deployment` = (low, high) pixels.

        An object of p pixels fills the window of channel p / window. Following the paper's rule, `margin`
        channels are added below and above, so that responses can fade out inside the grid; the training
        size lies on the grid exactly.

        Example:
            >>> from scalechannels import ScaleGrid
            >>> ScaleGrid.from_sizes(training=28, deployment=(14, 56), ratio=2, margin=1)
            ScaleGrid.of(0.25, 0.5, 1, 2, 4)
        """
        sizes = (training, *deployment)
        if not all(_is_scale(size) for size in sizes):
            raise ValueError(f"sizes must be positive numbers of pixels; got {training} and {deployment}")
        own, low, high = (_number(size) for size in sizes)
        if low > high:
            raise ValueError(f"deployment must go from low to high; got {deployment}")
        side, step, more = _number(window), _number(ratio), _number(margin)
        if not (1 <= side < math.inf and more >= 0 and more.is_integer() and 1 < step < math.inf):
            raise ValueError(
                f"window must be >= 1, margin whole and >= 0, ratio > 1; got {window}, {margin} and {ratio}"
            )
        slack = 1e-9  # a size that lies on the grid must not gain a channel by rounding
        below, above = ((math.log(size) - math.log(own)) / math.log(step) for size in (low, high))
        _require_count(max(above, 0) - min(below, 0) + 2 * more)
        first = min(0, math.floor(below + slack)) - int(more)
        last = max(0, math.ceil(above - slack)) + int(more)
        return cls.of(*(own / side * _power(step, k) for k in range(first, last + 1)))

    @property
    def minimum(self) -> float:
        return self.factors[0]

    @property
    def maximum(self) -> float:
        return self.factors[-1]

    @property
    def scales(self) -> Tensor:
        """The factors as a tensor (S,) of the default type."""
        import torch

        return torch.tensor(self.factors)

    def arguments(self) -> dict[str, Any]:
        return {"factors": list(self.factors)}

    def __len__(self) -> int:
        return len(self.factors)

    @overload
    def __getitem__(self, index: int) -> float: ...
    @overload
    def __getitem__(self, index: slice) -> ScaleGrid: ...
    def __getitem__(self, index: int | slice) -> float | ScaleGrid:
        return ScaleGrid.of(*self.factors[index]) if isinstance(index, slice) else self.factors[index]

    def __iter__(self) -> Iterator[float]:
        return iter(self.factors)  # that of Sequence cannot be compiled

    def __repr__(self) -> str:
        return f"ScaleGrid.of({', '.join(f'{factor:.6g}' for factor in self.factors)})"


def _power(ratio: float, steps: int) -> float:
    try:
        return ratio**steps
    except OverflowError:
        return math.inf


def _require_count(scales: float) -> None:
    if scales > MOST:
        raise ValueError(
            f"a grid may have {MOST} scales; got {scales:.3g}: choose a narrower range or a larger ratio"
        )


def _is_scale(value: object) -> bool:
    return 0 < _number(value) < math.inf


def _number(value: object) -> float:
    """A number as Python's float, also of NumPy or a tensor without dimensions; nan for all else."""
    if getattr(value, "ndim", None) == 0 and hasattr(value, "item"):
        value = value.item()
    if isinstance(value, bool) or not isinstance(value, Real):
        return math.nan  # float() would read strings, and True as 1
    try:
        return float(value)
    except OverflowError:  # whole numbers have no limit in Python
        return math.inf


def octave_beyond(grid: Sequence[float], end: Literal[-1, 1]) -> str:
    """The scale about an octave beyond the first (−1) or last (1) of a grid.

    Whole steps of the grid, and so many digits that a grid of these steps meets it.
    """
    ratio = grid[1] / grid[0]
    steps = max(1, round(math.log(2, ratio)))
    return f"{(grid[0] if end < 0 else grid[-1]) * ratio ** (end * steps):.10g}"
