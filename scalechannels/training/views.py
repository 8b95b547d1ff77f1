"""What runs that are trained together see: every way of looking at a training set lies in memory once."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from scalechannels.data.image_set import ImageSet
from scalechannels.network import ScaleChannelNetwork
from scalechannels.sampling import Foveate
from scalechannels.saving.saved_network import Network
from scalechannels.training.augment.detail import Coarsen
from scalechannels.training.augment.flips_and_crops import Augment
from scalechannels.training.augment.jitter import Jitter
from scalechannels.training.augment.visible import Cut
from scalechannels.training.config import RunConfig
from scalechannels.training.resident import (
    filled_up,
    fits,
    image_inputs,
    put_windows,
    resident_inputs,
    widened,
    window_bytes,
)


class Views:
    """Runs share inputs where they learn from the same images, sampled in the same way.

    configs    of runs of one shape
    networks   one for each run, on the device
    data_of    for each run, which of the training sets it learns from

    `of_run` says for each run which view is its own. Where images are `augmented`, they lie in memory
    themselves: the windows are others in each step.
    """

    def __init__(
        self, configs: Sequence[RunConfig], networks: Sequence[Network], data_of: Sequence[int]
    ) -> None:
        kinds = [
            (data, config.network.antialias, config.network.blur)
            for data, config in zip(data_of, configs, strict=True)
        ]
        wanted = list(dict.fromkeys(kinds))
        self.of_run = [wanted.index(kind) for kind in kinds]
        self.data = [data for data, _, _ in wanted]
        self.networks = [networks[kinds.index(kind)] for kind in wanted]
        self.trainings = [config.training for config in configs]
        self.precision = self.trainings[0].precision or "float32"
        self.margin = max(training.jitter for training in self.trainings)
        self.finer = _wider(networks[0], self.margin)
        self.augmented = configs[0].augmented
        self.own = configs[0].data if configs[0].data.name == "folder" else None
        self.smooth = configs[0].data.name != "cifar10"  # digits are blurred in proportion to their size

    @property
    def plain(self) -> bool:
        """Whether networks learn from what they would see in testing, which needs nothing in memory."""
        untouched = all(training.visible == training.detail == 1 for training in self.trainings)
        return self.finer is None and untouched and not self.augmented

    def fit_in_memory(self, sets: Sequence[ImageSet]) -> bool:
        """Whether the windows of these training sets, if any, fit into the memory that is free."""
        if self.augmented:
            return True
        needed = window_bytes(self.networks, self._seen(sets), self.precision, self.finer)
        return fits(needed, sets[0].images.device)

    def inputs(self, sets: Sequence[ImageSet], *, channels_last: bool) -> tuple[Tensor, bool]:
        """(D, N, …), and whether they are windows already; see `resident_inputs`."""
        if self.augmented:
            return filled_up([made.images for made in self._seen(sets)]), False
        return resident_inputs(
            self.networks, self._seen(sets), self.precision, channels_last=channels_last, finer=self.finer
        )

    def renew(self, inputs: Tensor, sets: Sequence[ImageSet], *, windows: bool, channels_last: bool) -> None:
        """Put the sets, drawn anew, where `inputs` put the first ones: as windows if it made windows."""
        seen = self._seen(sets)
        if windows:
            put_windows(inputs, self.networks, seen, channels_last=channels_last, finer=self.finer)
        else:
            inputs.copy_(image_inputs(self.networks[0], seen, inputs.dtype, channels_last=channels_last))

    def labels(self, sets: Sequence[ImageSet]) -> Tensor:
        return filled_up([made.labels for made in self._seen(sets)])  # (D, N)

    def cut(self, sets: Sequence[ImageSet], *, channels_last: bool) -> Cut | None:
        """What cuts windows off, where a run wants that."""
        visible = [training.visible for training in self.trainings]
        if min(visible) == 1 or self.augmented:
            return None
        foveate = self._foveate()
        assert foveate is not None
        scales = filled_up([made.scales for made in self._seen(sets)])  # (D, N)
        frame: float = foveate.window  # the side of what holds an object of size 1
        if self.own is not None:
            assert self.own.object_size is not None
            assert self.own.reduce is not None
            frame = self.own.object_size / self.own.reduce
        return Cut(foveate, frame * scales, visible, channels_last)

    def jitter(self, *, channels_last: bool) -> Jitter | None:
        """What shifts windows, where a run wants that."""
        if not self.margin:
            return None
        return Jitter([training.jitter for training in self.trainings], channels_last).to(self._device)

    def coarsen(self, *, channels_last: bool) -> Coarsen | None:
        """What takes detail from windows, where a run wants that."""
        detail = [training.detail for training in self.trainings]
        if min(detail) == 1:
            return None
        foveates = [self._foveate(view) for view in self.of_run]
        made = Coarsen(
            [foveate for foveate in foveates if foveate is not None],
            detail,
            smooth=self.smooth,
            channels_last=channels_last,
        )
        return made.to(self._device)

    def augment(self) -> Augment | None:
        """What makes canvases of images, where a run wants that."""
        if not self.augmented:
            return None
        first = self.trainings[0]
        made = Augment(self._foveate(), flips=first.flips, crops=first.crops, visible=first.visible)
        return made.to(self._device)

    def foveate_in_step(self) -> Foveate | None:
        """What looks at images in each step, where it is not the network itself."""
        coarsened = any(training.detail < 1 for training in self.trainings)
        return self._foveate() if self.augmented and coarsened else None

    @property
    def _device(self) -> torch.device:
        device: torch.device = next(self.networks[0].parameters()).device
        return device

    def _foveate(self, view: int = 0) -> Foveate | None:
        """What makes the windows of a view, where there are any."""
        network = self.networks[view]
        return network.foveate if isinstance(network, ScaleChannelNetwork) else None

    def _seen(self, sets: Sequence[ImageSet]) -> list[ImageSet]:
        return [sets[data] for data in self.data]


def _wider(network: Network, margin: int) -> Callable[[Foveate], Foveate] | None:
    """What makes the windows to train on, where they are not those of the network itself."""
    if network.look != "centre" or not margin:
        return None
    device: torch.device = next(network.parameters()).device
    return lambda foveate: widened(foveate, margin).to(device)
