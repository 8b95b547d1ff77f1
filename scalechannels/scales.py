"""ScaleGrid: the scales of a network's channels, as one frozen value that every signature shares."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, overload

if TYPE_CHECKING:
    from torch import Tensor

QUARTER_OCTAVE = 2**0.25
"""The paper's dense sampling ratio 2^(1/4)."""


class ScaleGrid(Sequence[float]):
    """The scales σ of the channels, ascending. Channel σ sees σ·n input pixels as a window of n pixels.

        ScaleGrid(0.5, 8, ratio=2 ** 0.25)          # 17 scales from 1/2 to 8, both ends included
        ScaleGrid.of(1, 1.5, 4)                     # explicit factors
        ScaleGrid.from_sizes(training=28, deployment=(14, 112))   # from known object sizes in pixels

    Law: scaling an image by one ratio shifts the channels of an evenly spaced grid by one place.
    Limit: at the ends of the grid a channel moves out and another one in; leave a margin there.
    """

    __slots__ = ("factors",)
    factors: tuple[float, ...]

    def __init__(self, minimum: float, maximum: float, *, ratio: float) -> None:
        if not (_is_scale(minimum) and _is_scale(maximum)):
            raise ValueError(f"scales are positive and finite, got minimum {minimum} and maximum {maximum}")
        if minimum > maximum:
            raise ValueError(f"the minimum must not exceed the maximum, got {minimum} > {maximum}")
        if not 1 < ratio < math.inf:
            raise ValueError(
                f"the ratio between neighbouring scales must exceed 1 and be finite, got {ratio}"
            )
        exact = math.log(maximum / minimum) / math.log(ratio)
        steps = round(exact)
        if abs(exact - steps) > 1e-6:
            below, above = (minimum * ratio**k for k in (math.floor(exact), math.ceil(exact)))
            raise ValueError(
                f"steps of {ratio:g} from {minimum:g} do not meet {maximum:g}; "
                f"the nearest maxima are {below:g} and {above:g}"
            )
        # A power of the whole span, not a running product: both ends and a 1 in between are exact.
        span = maximum / minimum
        self._set(
            tuple(minimum * span ** (k / steps) for k in range(steps + 1)) if steps else (float(minimum),)
        )

    @classmethod
    def of(cls, *factors: float) -> ScaleGrid:
        """A grid of explicit scales, strictly ascending."""
        if not factors:
            raise ValueError("a grid needs at least one scale")
        if not all(_is_scale(factor) for factor in factors):
            raise ValueError(f"scales are positive and finite, got {factors}")
        if any(low >= high for low, high in pairwise(factors)):
            raise ValueError(f"scales must be strictly ascending, got {factors}")
        grid = cls.__new__(cls)
        grid._set(tuple(float(factor) for factor in factors))
        return grid

    @classmethod
    def from_sizes(
        cls,
        training: float,
        deployment: tuple[float, float],
        *,
        window: int = 28,
        ratio: float = QUARTER_OCTAVE,
        margin: int = 2,
    ) -> ScaleGrid:
        """The grid for objects of `training` pixels that will appear at `deployment` = (low, high) pixels.

        An object of p pixels fills the window of channel p / window. Following the paper's rule, `margin`
        channels are added below and above, so that responses can fade out inside the grid; the training
        size lies on the grid exactly.
        """
        low, high = deployment
        if not all(_is_scale(size) for size in (training, low, high)):
            raise ValueError(f"sizes are positive numbers of pixels, got {training} and {deployment}")
        if low > high:
            raise ValueError(f"deployment sizes go from low to high, got {deployment}")
        if window < 1 or margin < 0 or not ratio > 1:
            raise ValueError(
                f"need window >= 1, margin >= 0 and ratio > 1, got {window}, {margin} and {ratio}"
            )
        slack = 1e-9  # a size that lies on the grid must not gain a channel by rounding
        first = min(0, math.floor(math.log(low / training, ratio) + slack)) - margin
        last = max(0, math.ceil(math.log(high / training, ratio) - slack)) + margin
        return cls.of(*(training / window * ratio**k for k in range(first, last + 1)))

    def _set(self, factors: tuple[float, ...]) -> None:
        object.__setattr__(self, "factors", factors)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError("a ScaleGrid is frozen; make a new one")

    def __reduce__(self) -> tuple[Any, ...]:
        return (ScaleGrid.of, self.factors)

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
        return iter(self.factors)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ScaleGrid) and self.factors == other.factors

    def __hash__(self) -> int:
        return hash(self.factors)

    def __repr__(self) -> str:
        return f"ScaleGrid.of({', '.join(f'{factor:.6g}' for factor in self.factors)})"


def _is_scale(value: float) -> bool:
    return isinstance(value, (int, float)) and math.isfinite(value) and value > 0
