"""How fast the built-in digits are drawn, beside the plain way, in one run.

    python -m benchmarks.strokes_rendering [--device cuda] [--output FILE]

The plain way is the definition in a few lines of torch: for each image all its pixels against all its
segments. It draws some of the images only. Both take turns and the median counts. Figures are images of
112 x 112 per second, at single sizes and log-uniform in [1/2, 8]. Other work on the machine slows two threads
by far more than its share (each small operation waits for both); the load average is part of the output.
"""

from __future__ import annotations

import statistics
from typing import Any

import torch
from torch import Tensor

from benchmarks.measure import environment, options, seconds, write
from scalechannels.data.strokes import BOX, Strokes, intensity, strokes

SIZES = (0.5, 1.0, 2.0, 4.0, 8.0)


def plain_way(digits: Strokes, scales: Tensor, device: torch.device) -> Tensor:
    images = []
    steps = torch.arange(112, device=device) - 55.5
    for segments, half_width, scale in zip(digits.segments, digits.half_widths, scales, strict=True):
        start, end = segments.float().to(device).unbind(1)  # (SEGMENTS, 2)
        points = torch.stack(torch.meshgrid(steps, steps, indexing="xy"), -1)[:, :, None] / (
            BOX * float(scale)
        )
        along = end - start
        t = ((points - start) * along).sum(-1) / along.square().sum(-1)  # (112, 112, SEGMENTS)
        nearest = start + t.clamp(0, 1)[..., None] * along
        distance = (points - nearest).norm(dim=-1).amin(-1)  # (112, 112)
        images.append(intensity(distance, half_width.float().to(device)))
    return torch.stack(images)[:, None]


def measure(device: torch.device, count: int, plain_count: int, repeats: int) -> list[dict[str, Any]]:
    digits, few = strokes(count), strokes(plain_count)
    exponents = torch.rand(count, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    cases = {f"size {size:g}": torch.full((count,), size, dtype=torch.float64) for size in SIZES}
    cases["log-uniform in [1/2, 8]"] = 0.5 * 16**exponents
    digits.render(cases["size 1"], device=device)  # warm-up
    rows = []
    for name, scales in cases.items():
        some = scales[:plain_count]
        ours, plain = [], []
        for _ in range(repeats):
            ours.append(count / seconds(lambda: digits.render(scales, device=device), device))  # noqa: B023
            plain.append(plain_count / seconds(lambda: plain_way(few, some, device), device))  # noqa: B023
        difference = (few.render(some, device=device) - plain_way(few, some, device)).abs().max()
        rows.append(
            {
                "case": name,
                "images_per_second": statistics.median(ours),
                "all_images_per_second": ours,
                "plain_images_per_second": statistics.median(plain),
                "times_faster": statistics.median(ours) / statistics.median(plain),
                "largest_difference": float(difference),
            }
        )
    return rows


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--images", type=int, default=4000)
    parser.add_argument("--plain-images", type=int, default=40, help="how many images the plain way draws")
    chosen = parser.parse_args()
    device = torch.device(chosen.device)
    before = environment(device)
    start = seconds(lambda: strokes(chosen.images), torch.device("cpu"))
    rows = measure(device, chosen.images, chosen.plain_images, chosen.repeats)
    report = {"environment": before, "shapes_per_second": chosen.images / start, "rendering": rows}
    write(report, chosen.output)


if __name__ == "__main__":
    main()
