"""The ways of writing each digit: control points, and how they become line segments.

Segments are linear in the control points (a Catmull-Rom curve is), so a whole set of jittered digits of one
way is one matrix product.
"""

import math
from functools import cache

import torch
from torch import Tensor

Curve = tuple[tuple[float, float], ...]

SEGMENTS = 32  # line segments of every digit: at scale 8 the facets stay far below the edge's softness


def oval(x: float, y: float, width: float, height: float, first: float, last: float) -> Curve:
    """Points on an ellipse, from angle `first` to `last` in turns, clockwise on the screen from the right."""
    count = max(4, round(8 * abs(last - first)) + 1)
    angles = [2 * math.pi * (first + (last - first) * k / (count - 1)) for k in range(count)]
    return tuple((x + width * math.cos(a), y + height * math.sin(a)) for a in angles)


# Per class its ways of writing, each a list of curves. A curve is smooth through its points; corners are
# where two curves meet. Written in a box of [-1, 1]^2; the fit into the unit square comes last.
TEMPLATES: tuple[tuple[tuple[Curve, ...], ...], ...] = (
    (  # 0: closed, and closed with an overlap
        (oval(0, 0, 0.62, 1, -0.25, 0.75),),
        (((0.28, -0.86), *oval(0, 0.02, 0.6, 0.98, -0.27, -1.2), (0.02, -0.93)),),
    ),
    (  # 1: bar, with a serif, with serif and foot
        (((0.02, -1), (0, -0.3), (-0.02, 0.35), (0, 1)),),
        (((0, -1), (0.02, -0.3), (0, 0.35), (0, 1)), ((-0.34, -0.62), (-0.15, -0.78), (0, -1))),
        (((0, -1), (0, 0), (0, 1)), ((-0.32, -0.64), (0, -1)), ((-0.36, 1), (0.36, 1))),
    ),
    (  # 2: with a corner, with a loop at the foot
        (
            (
                (-0.52, -0.58),
                (-0.34, -0.9),
                (0.08, -1),
                (0.46, -0.72),
                (0.42, -0.3),
                (0.02, 0.32),
                (-0.55, 0.96),
            ),
            ((-0.55, 0.96), (0, 0.93), (0.58, 0.98)),
        ),
        (
            (
                *((-0.5, -0.66), (-0.22, -0.95), (0.2, -0.95), (0.42, -0.6), (0.3, -0.1), (-0.05, 0.5)),
                *((-0.4, 0.93), (-0.62, 0.86), (-0.5, 0.6), (-0.18, 0.7), (0.2, 0.93), (0.64, 0.84)),
            ),
        ),
    ),
    (  # 3: round, with a flat top
        (
            ((-0.5, -0.74), (-0.14, -1), (0.34, -0.86), (0.4, -0.4), (-0.1, -0.07)),
            ((-0.1, -0.07), (0.36, 0.07), (0.54, 0.48), (0.3, 0.9), (-0.16, 1), (-0.56, 0.74)),
        ),
        (
            ((-0.5, -0.98), (0, -1), (0.46, -0.98)),
            ((0.46, -0.98), (-0.08, -0.2)),
            ((-0.08, -0.2), (0.36, -0.1), (0.54, 0.38), (0.3, 0.87), (-0.16, 1), (-0.56, 0.78)),
        ),
    ),
    (  # 4: open, closed
        (
            ((-0.42, -0.92), (-0.5, -0.4), (-0.52, 0.08)),
            ((-0.52, 0.08), (0, 0.1), (0.6, 0.06)),
            ((0.36, -0.9), (0.32, 0), (0.28, 1)),
        ),
        (
            ((0.22, -1), (-0.2, -0.4), (-0.62, 0.3)),
            ((-0.62, 0.3), (0, 0.28), (0.62, 0.28)),
            ((0.22, -1), (0.23, 0), (0.22, 1)),
        ),
    ),
    (  # 5: with corners, with a rounded shoulder
        (
            ((-0.36, -0.98), (0.05, -0.98), (0.54, -1)),
            ((-0.36, -0.98), (-0.4, -0.6), (-0.44, -0.16)),
            (
                (-0.44, -0.16),
                (-0.06, -0.32),
                (0.36, -0.16),
                (0.52, 0.3),
                (0.3, 0.8),
                (-0.14, 1),
                (-0.56, 0.8),
            ),
        ),
        (
            ((-0.22, -0.88), (0.15, -0.9), (0.6, -1)),
            (
                *((-0.22, -0.88), (-0.36, -0.5), (-0.3, -0.2), (0.1, -0.08)),
                *((0.36, 0.2), (0.34, 0.66), (0.02, 0.96), (-0.52, 0.92)),
            ),
        ),
    ),
    (  # 6: with a curved stem, with a straight one
        (
            (
                *((0.36, -1), (-0.08, -0.72), (-0.42, -0.18), (-0.52, 0.36), (-0.28, 0.86), (0.12, 1)),
                *((0.48, 0.72), (0.44, 0.26), (0.1, 0.06), (-0.28, 0.2), (-0.5, 0.52)),
            ),
        ),
        (
            (
                *((0.04, -1), (-0.22, -0.5), (-0.4, 0), (-0.44, 0.5), (-0.2, 0.92)),
                *((0.22, 0.94), (0.46, 0.58), (0.3, 0.22), (-0.08, 0.2), (-0.4, 0.54)),
            ),
        ),
    ),
    (  # 7: plain, with a bar, with a serif
        (((-0.52, -0.95), (0, -0.98), (0.52, -0.95)), ((0.52, -0.95), (0.16, -0.1), (-0.14, 1))),
        (
            ((-0.52, -0.95), (0, -0.96), (0.52, -0.97)),
            ((0.52, -0.97), (0.16, -0.1), (-0.1, 1)),
            ((-0.2, 0.02), (0.14, 0), (0.46, -0.02)),
        ),
        (
            ((-0.54, -0.62), (-0.52, -0.95)),
            ((-0.52, -0.95), (-0.1, -0.86), (0.5, -0.97)),
            ((0.5, -0.97), (0.1, -0.2), (-0.06, 0.4), (-0.1, 1)),
        ),
    ),
    (  # 8: one crossing line, two loops
        (
            (
                *((0.44, -0.74), (0.1, -1), (-0.34, -0.84), (-0.34, -0.4), (0.04, -0.06), (0.42, 0.34)),
                *(
                    (0.36, 0.84),
                    (-0.06, 1),
                    (-0.44, 0.78),
                    (-0.38, 0.34),
                    (0, -0.04),
                    (0.38, -0.36),
                    (0.4, -0.8),
                ),
            ),
        ),
        (oval(0.02, -0.52, 0.4, 0.46, 0.25, 1.25), oval(0, 0.46, 0.5, 0.52, -0.25, 0.75)),
    ),
    (  # 9: with a straight stem, with a curved tail
        (
            ((0.42, -0.72), *oval(-0.02, -0.5, 0.44, 0.48, -0.15, -0.95)),
            ((0.42, -0.72), (0.4, -0.1), (0.34, 0.5), (0.3, 1)),
        ),
        (
            oval(0, -0.48, 0.46, 0.5, 0, -1),
            ((0.46, -0.48), (0.48, 0.05), (0.34, 0.62), (0, 0.96), (-0.44, 0.9)),
        ),
    ),
)
POINTS = max(sum(map(len, curves)) for ways in TEMPLATES for curves in ways)


def catmull_rom(count: int, positions: Tensor) -> Tensor:
    """Weights of `count` points that give a smooth curve through them at `positions` in [0, count - 1]."""
    start = positions.floor().clamp(max=count - 2)
    t = positions - start
    rows = torch.zeros(len(positions), count + 2, dtype=torch.float64)
    kernel = (-t + 2 * t**2 - t**3, 2 - 5 * t**2 + 3 * t**3, t + 4 * t**2 - 3 * t**3, t**3 - t**2)
    for offset, weight in enumerate(kernel):
        rows.scatter_(1, (start.long() + offset)[:, None], weight[:, None] / 2)
    # The points beyond both ends continue the curve straight on: p[-1] = 2 p[0] - p[1].
    inner = rows[:, 1:-1].clone()
    inner[:, 0] += 2 * rows[:, 0]
    inner[:, 1] -= rows[:, 0]
    inner[:, -1] += 2 * rows[:, -1]
    inner[:, -2] -= rows[:, -1]
    return inner  # (positions, count)


@cache
def template(label: int, way: int) -> tuple[Tensor, Tensor]:
    """Control points (P, 2) of one way to write a class, and the weights (SEGMENTS, 2, P) of its ends."""
    curves = [torch.tensor(curve, dtype=torch.float64) for curve in TEMPLATES[label][way]]
    fine = [
        catmull_rom(len(c), torch.linspace(0, len(c) - 1, 40 * len(c), dtype=torch.float64)) for c in curves
    ]
    lengths = [(w @ c).diff(dim=0).norm(dim=1).cumsum(0) for w, c in zip(fine, curves, strict=True)]
    total = sum(float(length[-1]) for length in lengths)
    shares = [max(1, round(SEGMENTS * float(length[-1]) / total)) for length in lengths]
    shares[shares.index(max(shares))] += SEGMENTS - sum(shares)
    weights = torch.zeros(SEGMENTS, 2, sum(map(len, curves)), dtype=torch.float64)
    segment = point = 0
    for curve, length, share in zip(curves, lengths, shares, strict=True):
        # Segments of equal length, so that none is spent where the points happen to lie close.
        wanted = torch.linspace(0, 1, share + 1, dtype=torch.float64) * length[-1]
        positions = torch.searchsorted(length, wanted).clamp(max=len(length) - 1) / (len(length) - 1)
        ends = catmull_rom(len(curve), positions.double() * (len(curve) - 1))
        weights[segment : segment + share, 0, point : point + len(curve)] = ends[:-1]
        weights[segment : segment + share, 1, point : point + len(curve)] = ends[1:]
        segment, point = segment + share, point + len(curve)
    return torch.cat(curves), weights
