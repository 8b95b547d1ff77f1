"""What a training step takes in: this module alone decides what lies in memory and what is done to it.

                             in memory                    in a step
    foveated networks        windows, where they fit      cropped, shifted and blurred, as options ask
                             images, where they do not    foveated on the device, then the same
    … with flips, crops,     images                       changed in colour, turned, flipped and cropped,
      rotation or colour                                  foveated, then blurred
    looking everywhere,      images                       changed in colour, turned, flipped, cropped, blurred
    and the plain CNN

Every way to look at a training set lies in memory once; runs that are trained together share it. Images that
do not fit on the device, or into memory, come batch by batch (`streaming`), and a step does the same to them.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from scalechannels.data.image_set import ImageSet
from scalechannels.sampling import Foveate
from scalechannels.saving.saved_network import Network
from scalechannels.training.config import ResolvedRun

if TYPE_CHECKING:
    from scalechannels.training.augment.decoys import Decoys

MEMORY_SHARE = 0.5
"""Windows may fill this share of the free memory, and so may own images; beyond it, images are foveated in
every step, and own images are read from disk."""


class Inputs:
    """What runs of one shape are trained on.

    configs, networks   one for each run, the networks on the device
    data_of    for each run, which of the training sets it is trained on
    sets       the training sets; those of differing length are filled up with zeros
    stacked    the networks are trained as one, see `stacking`; it becomes False where windows do not fit
    streamed   to this device; the images stay where they are, and nothing is resident. None: they are there

    resident, labels   (D, N, …) and (D, N), one for each way to look at a set
    of_run     for each run, which of the D is its own
    windows    whether a step ends with windows, (D, N, S, n, n, C) or made of images in its beginning
    augmentations   what is done to a batch in a step, in this order
    detail, decoys  what blurs the windows that are made in a step, and what else is looked at, see `Alone`
    """

    def __init__(
        self,
        configs: Sequence[ResolvedRun],
        networks: Sequence[Network],
        data_of: Sequence[int],
        sets: Sequence[ImageSet],
        *,
        stacked: bool,
        streamed: torch.device | None = None,
    ) -> None:
        kinds = [
            (data, config.network.antialias, config.network.blur)
            for data, config in zip(data_of, configs, strict=True)
        ]
        ways = list(dict.fromkeys(kinds))
        self.of_run = [ways.index(kind) for kind in kinds]
        self.set_of = [data for data, _, _ in ways]
        self.configs, self.network = configs, networks[0]
        looking: list[Any] = [networks[kinds.index(way)] for way in ways]
        self.foveates: list[Foveate] = [one.foveate for one in looking if one.look == "centre"]  # or none
        self.margin = max(config.training.jitter for config in configs)
        self.dtype = torch.bfloat16 if configs[0].training.precision == "bfloat16" else torch.float32
        changed = changes_images(configs[0])
        self.windows, self.stacked = bool(self.foveates) and not changed, stacked
        device = streamed or sets[0].labels.device
        ready = self.windows and streamed is None
        needed = math.prod(self._window_shape(sets)) * self.dtype.itemsize if ready else 0
        if needed > MEMORY_SHARE * free_memory(device):
            if len(configs) > 1:
                raise MemoryError(
                    f"the windows of these runs need {needed / 2**30:.1f} GiB; train fewer runs together"
                )
            ready = self.stacked = False
        self.labels = filled_up([made.labels for made in self._seen(sets)]).to(device)  # (D, N)
        self.ready = ready
        if streamed is not None:
            self.resident = torch.empty(1, 0, device=device)
        elif ready:
            self.resident = torch.zeros(self._window_shape(sets), dtype=self.dtype, device=device)
            self._put_windows(sets)
        else:
            self.resident = self._images(sets)
        self.frames = self._frames(sets).to(device)  # (D, N)
        detail = self._detail(sets)
        self.detail = detail if changed and self.foveates else None
        self.decoys = self._decoys()
        # A picture ends somewhere before it is made smaller: what repeats its border loses detail as well.
        on_images = (self._colour, self._rotation, self._flips_and_crops)
        on_windows = (self._visible, self._jitter)
        steps = [make() for make in (on_images if changed else on_windows)]
        steps += [detail] if self.detail is None else []
        if self.windows and not ready:
            steps.insert(0, Looks(self._widened(self.foveates[0]), self.dtype))
        self.augmentations = [step.to(self.labels.device) for step in steps if step is not None]

    def renew(self, sets: Sequence[ImageSet]) -> None:
        """Put the sets, drawn again, where the first ones are: a captured step reads from there."""
        if self.ready:
            self._put_windows(sets)
        elif self.resident.numel():
            self.resident.copy_(self._images(sets))
        self.labels.copy_(filled_up([made.labels for made in self._seen(sets)]))
        self.frames.copy_(self._frames(sets))

    def _window_shape(self, sets: Sequence[ImageSet]) -> tuple[int, ...]:
        side, most = self.foveates[0].window + 2 * self.margin, max(len(made) for made in self._seen(sets))
        return len(self.set_of), most, len(self.foveates[0].grid), side, side, sets[0].images.shape[1]

    @torch.no_grad()
    def _put_windows(self, sets: Sequence[ImageSet]) -> None:
        for foveate, made, windows in zip(self.foveates, self._seen(sets), self.resident, strict=True):
            look = self._widened(foveate).to(windows.device)
            for part, target in zip(made.images.split(256), windows[: len(made)].split(256), strict=True):
                target.copy_(look(part).movedim(2, -1))

    def _widened(self, foveate: Foveate) -> Foveate:
        """With so many pixels more on each side as windows are shifted by."""
        return widened(foveate, self.margin) if self.margin else foveate

    def _images(self, sets: Sequence[ImageSet]) -> Tensor:
        """The images (D, N, C, H, W) in the form that the networks are trained on."""
        seen = self._seen(sets)
        images = filled_up([made.images.to(self.dtype) if self.stacked else made.images for made in seen])
        if self.stacked and self.network.look == "whole":
            return images[:, :, None].movedim(3, -1)  # a stack of one window: (D, N, 1, H, W, C)
        return images

    def _seen(self, sets: Sequence[ImageSet]) -> list[ImageSet]:
        return [sets[data] for data in self.set_of]

    def _frames(self, sets: Sequence[ImageSet]) -> Tensor:
        """The side of the square that holds each image's object, in pixels (D, N)."""
        data = self.configs[0].data
        scales = filled_up([made.scales for made in self._seen(sets)])  # (D, N)
        return ((data.about.side or data.own.object_pixels) * scales).float()

    def _visible(self) -> nn.Module | None:
        visible = [config.training.visible for config in self.configs]
        if min(visible) == 1:
            return None
        from scalechannels.training.augment.visible import Visible

        return Visible(self.foveates[0], self.frames, visible)

    def _jitter(self) -> nn.Module | None:
        if not self.margin:
            return None
        from scalechannels.training.augment.jitter import Jitter

        return Jitter([config.training.jitter for config in self.configs])

    def _detail(self, sets: Sequence[ImageSet]) -> nn.Module | None:
        detail = [config.training.detail for config in self.configs]
        if min(detail) == 1:
            return None
        from scalechannels.training.augment.detail import Detail, ImageDetail

        smooth = self.configs[0].data.about.smooth
        if not self.foveates:
            return ImageDetail(sets[0].images.shape[2], detail, smooth=smooth)
        foveates = [self.foveates[way] for way in self.of_run]
        return Detail(foveates, detail, smooth=smooth).to(self.labels.device)

    def _decoys(self) -> Decoys | None:
        factor = self.configs[0].training.decoys
        if factor == 1:
            return None
        from scalechannels.training.augment.decoys import Decoys

        return Decoys(self.network, factor).to(self.labels.device)

    def _colour(self) -> nn.Module | None:
        strength = self.configs[0].training.colour
        if not strength:
            return None
        from scalechannels.training.augment.colour import Colour

        return Colour(strength)

    def _rotation(self) -> nn.Module | None:
        training = self.configs[0].training
        if not (training.rotation or training.stretch):
            return None
        from scalechannels.training.augment.rotation import Rotation

        return Rotation(training.rotation, training.stretch, outside=self.configs[0].data.about.outside)

    def _flips_and_crops(self) -> nn.Module:
        from scalechannels.training.augment.flips_and_crops import FlipsAndCrops

        training, foveate = self.configs[0].training, self.foveates[0] if self.foveates else None
        return FlipsAndCrops(
            foveate,
            outside=self.configs[0].data.about.outside,
            flips=training.flips,
            crops=training.crops,
            visible=training.visible,
            frames=self.frames,
        )


class Looks(nn.Module):
    """Images (1, B, C, H, W) to the windows (1, B, S, n, n, C) that would lie in memory if they fitted."""

    def __init__(self, foveate: Foveate, dtype: torch.dtype) -> None:
        super().__init__()
        self.foveate, self.dtype = foveate, dtype

    @torch.no_grad()
    def forward(self, images: Tensor, *_: Tensor) -> Tensor:
        return self.foveate(images[0]).movedim(2, -1)[None].to(self.dtype)


class Alone(nn.Module):
    """One network in the form of a stack of one: inputs (1, B, …) to logits (1, B, K).

    windows    the inputs are windows that were foveated before
    detail     what blurs the windows that it makes of images, in training
    decoys     what else it looks at in training; it then also says what it finds there (1, B, K)
    """

    def __init__(
        self,
        network: Network,
        windows: bool,
        detail: nn.Module | None = None,
        decoys: Decoys | None = None,
    ) -> None:
        super().__init__()
        self.network, self.windows, self.detail, self.decoys = network, windows, detail, decoys

    def forward(self, inputs: Tensor) -> Tensor | tuple[Tensor, Tensor]:
        network: Any = self.network
        if self.decoys is not None and self.training:
            return self._with_decoys(inputs[0])
        if not self.windows and (self.detail is None or not self.training):
            return network(inputs[0])[None]
        windows = inputs
        if self.detail is not None:
            windows = self.detail(network.foveate(inputs[0]).movedim(2, -1)[None])
        return network.from_stack(windows[0].movedim(-1, 2).contiguous())[None]

    def _with_decoys(self, images: Tensor) -> tuple[Tensor, Tensor]:
        network: Any = self.network
        assert self.decoys is not None
        views = self.decoys(images)
        *maps, finer, coarser = network.everywhere.logit_maps(images, network.backbone, *views)
        channels = torch.stack([network.everywhere.over_places(one) for one in maps], 1)  # (B, S, K)
        return network.pool_channels(channels)[None], self.decoys.said(finer, coarser)[None]


def changes_images(config: ResolvedRun) -> bool:
    """Whether each step changes the images themselves, so that they and not windows lie in memory."""
    training, data = config.training, config.data.about
    plain = config.network.name in ("cnn", "swmax") and not data.of_user  # there it has a window
    plain = plain or config.network.is_module
    whole = plain or config.network.look == "everywhere" or config.data.resize is not None
    cropped = training.visible < 1 and (whole or data.filled)
    turned = training.rotation > 0 or training.stretch > 0
    moved = training.flips or training.crops > 0 or turned
    return moved or training.colour > 0 or cropped or (whole and training.detail < 1)


def trains_alone(config: ResolvedRun) -> bool:
    """Whether a run cannot be stacked with others: its images change, or it ends by itself."""
    training = config.training
    return changes_images(config) or training.decoys > 1 or training.patience is not None


def widened(foveate: Foveate, margin: int) -> Foveate:
    """The same windows with so many pixels more on each side."""
    return Foveate(foveate.grid, **{**foveate.arguments(), "window": foveate.window + 2 * margin})


def filled_up(parts: Sequence[Tensor]) -> Tensor:
    """Parts (N, …) that differ in N at most as one (D, N, …), zeros after the shorter ones."""
    if len(parts) == 1:
        return parts[0][None]  # a copy would take as much memory again
    most = max(len(part) for part in parts)
    joined = parts[0].new_zeros(len(parts), most, *parts[0].shape[1:])
    for part, target in zip(parts, joined, strict=True):
        target[: len(part)] = part
    return joined


def fits_in_memory(needed: int) -> bool:
    """Whether so many bytes of images may lie in main memory."""
    return needed <= MEMORY_SHARE * free_memory(torch.device("cpu"))


def free_memory(device: torch.device) -> int:
    """Bytes; of main memory also those that hold copies of files, which the system gives back."""
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[0]
    if (told := Path("/proc/meminfo")).exists():
        for line in told.read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    if "SC_AVPHYS_PAGES" not in os.sysconf_names:  # not every system says; half of all is a fair guess
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2
    return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
