"""Trains an established detector on canvases, and looks into scenes with it.

On a GPU the forward pass, the loss and the backward pass are captured once as a CUDA graph and replayed at
every step: launched one by one, their kernels would take several times as long as they compute.
"""

from __future__ import annotations

import os
import time
from typing import Any

import torch
from torch import Tensor

from benchmarks.detection_scenes import MOST, SIDE, TAIL, Found, Method, as_found
from benchmarks.established_canvases import Drawn, Frames
from benchmarks.established_fcos import anchors, fcos, losses, outputs
from scalechannels.detection.training import CLASSES
from scalechannels.detection.training_windows import Digits

STEEPEST = 10.0
"""Gradients are cut to this norm."""
OPTIMISERS = ("adamw", "sgd")
WARM_UP = 3
"""Passes before a graph is captured, in which libraries choose their kernels."""


class Pass:
    """Forward, loss and backward of a model for frames of one shape; the gradients are in its parameters."""

    def __init__(self, model: Any, example: Frames, device: torch.device) -> None:
        self.model, self.device = model, device
        self.frames = Frames(*(part.to(device) for part in example))
        self.at = anchors(model, self._colours())
        self.graph: torch.cuda.CUDAGraph | None = None
        if device.type == "cuda":
            self._capture()

    @property
    def how(self) -> str:
        return "eager" if self.graph is None else "CUDA graph"

    def __call__(self, frames: Frames) -> Tensor:
        for here, new in zip(self.frames, frames, strict=True):
            here.copy_(new, non_blocking=True)
        if self.graph is None:
            return self._computed()
        self.graph.replay()
        return self.loss

    def _colours(self) -> Tensor:
        images = self.frames.images.float().expand(-1, 3, -1, -1)
        return images.contiguous(memory_format=torch.channels_last)

    def _computed(self) -> Tensor:
        self.model.zero_grad(set_to_none=True)
        on_gpu = self.device.type == "cuda"
        with torch.autocast(self.device.type, torch.bfloat16, enabled=on_gpu, cache_enabled=False):
            said = outputs(self.model, self._colours())
        loss = torch.stack(list(losses(said, self.frames.boxes, self.frames.labels, self.at).values())).sum()
        loss.backward()
        return loss.detach()

    def _capture(self) -> None:
        """Warming up changes the statistics of batch norm: they are put back."""
        before = {name: value.clone() for name, value in self.model.state_dict().items()}
        try:
            side = torch.cuda.Stream()
            side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side):
                for _ in range(WARM_UP):
                    self._computed()
            torch.cuda.current_stream().wait_stream(side)
            self.model.zero_grad(set_to_none=True)
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                self.loss = self._computed()
            self.graph = graph
        except RuntimeError as error:
            print(f"no CUDA graph, every kernel is launched by itself: {error}", flush=True)
            torch.cuda.synchronize()
        self.model.load_state_dict(before)


def optimiser(name: str, rate: float, model: Any, device: torch.device) -> torch.optim.Optimizer:
    parameters, fused = list(model.parameters()), device.type == "cuda"
    if name == "adamw":
        return torch.optim.AdamW(parameters, lr=rate, fused=fused)
    return torch.optim.SGD(parameters, lr=rate, momentum=0.9, weight_decay=1e-4, fused=fused)


def train(
    digits: Digits, *, by: str, rate: float, jitter: bool, steps: int, seed: int, device: torch.device
) -> tuple[Any, dict[str, Any]]:
    """The trained model, and how it was trained."""
    torch.manual_seed(seed)
    torch.backends.cudnn.benchmark = True  # of all shapes there are two: frames and scenes
    model = fcos(CLASSES, SIDE, TAIL, MOST).to(device, memory_format=torch.channels_last).train()
    drawn = Drawn(digits, seed, steps, jitter)
    one_pass = Pass(model, drawn[0], device)
    moved = optimiser(by, rate, model, device)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        moved, rate, total_steps=steps, pct_start=0.1, cycle_momentum=False
    )
    workers = max(1, (os.cpu_count() or 2) - 2) if device.type == "cuda" else 0
    start, parameters = time.perf_counter(), list(model.parameters())
    for step, frames in enumerate(drawn.ahead(workers, pinned=device.type == "cuda"), start=1):
        loss = one_pass(frames)
        torch.nn.utils.clip_grad_norm_(parameters, STEEPEST)
        moved.step()
        schedule.step()
        if step % 500 == 0 or step == steps:
            passed = (time.perf_counter() - start) / step
            print(f"  step {step}: loss {float(loss):.3f}, {1000 * passed:.1f} ms a step", flush=True)
    told = {"optimiser": by, "rate": rate, "how": one_pass.how}
    return model.eval(), told


def method(model: Any, device: torch.device) -> Method:
    """Whole scenes at their own size, through torchvision's own way from outputs to detections."""

    @torch.no_grad()
    def found(image: Tensor) -> Found:
        (said,) = model([image.expand(3, -1, -1).to(device)])
        boxes = said["boxes"].double().cpu() - 0.5  # from edges to pixel centres
        return as_found(boxes, said["labels"].cpu(), said["scores"].double().cpu())

    found(torch.zeros(1, SIDE, SIDE))  # libraries choose their kernels before it is timed
    return found
