"""A torchvision or timm model as the backbone of scale channels, saved and rebuilt by its name.

Both libraries are optional (`pip install "scalechannels[backbones]"`) and imported when a model is made. A
model of your own needs nothing of this: ScaleChannelNetwork takes any (N, C, n, n) to (N, K).
"""

from __future__ import annotations

import importlib
import importlib.metadata
from collections.abc import Sequence
from typing import Any, Literal, get_args

import torch
from torch import Tensor, nn

from scalechannels.backbones.constants import WithConstants
from scalechannels.backbones.inference import Backbone

Library = Literal["torchvision", "timm"]
IMAGENET_MEAN, IMAGENET_STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


class LibraryBackbone(WithConstants, Backbone):
    """Windows (N, C, n, n) from 0 to 1 to logits (N, K), by a model of torchvision or timm.

    library    "torchvision" or "timm"
    name       as the library names its models, such as "resnet18"
    classes    K; pretrained weights for another number of classes come without those of the last layer
    channels   C, 3 unless the library can make the model for another number (timm)
    weights    None: fresh ones, as the paper advises. "pretrained": the library's, fetched by it
    mean, std  subtracted and divided by first: ImageNet's by default, for 3 channels

    Law: what `save_pretrained` writes of a network around it comes back without a download. A config that
    would need one, for weights or for a name of timm's such as "hf-hub:…", is refused when it is loaded.
    Limit: the library has to be installed then as well. The paper trained its channels from scratch: with
    pretrained ones it saw considerably worse generalisation over large ranges of scale.

    Example:
        >>> import torch
        >>> from scalechannels import LibraryBackbone, MaxOverScales, ScaleChannelNetwork, ScaleGrid
        >>> backbone = LibraryBackbone("torchvision", "resnet18", classes=4)
        >>> network = ScaleChannelNetwork(backbone, ScaleGrid.of(1, 2), MaxOverScales(), window=64)
        >>> network(torch.rand(2, 3, 100, 150)).shape
        torch.Size([2, 4])
    """

    mean: Tensor
    std: Tensor

    def __init__(
        self,
        library: Library,
        name: str,
        *,
        classes: int,
        channels: int = 3,
        weights: Literal["pretrained"] | None = None,
        mean: Sequence[float] | None = None,
        std: Sequence[float] | None = None,
    ) -> None:
        super().__init__()
        if library not in get_args(Library):
            raise ValueError(f"library must be one of {', '.join(get_args(Library))}; got {library!r}")
        if weights not in (None, "pretrained"):
            raise ValueError(f'weights must be None (fresh) or "pretrained"; got {weights!r}')
        if library == "torchvision" and channels != 3:
            raise ValueError(
                f"channels must be 3 for torchvision's models; got {channels}. timm makes others"
            )
        self.library, self.name, self.classes, self.channels = library, name, classes, channels
        neutral = channels != 3
        self.normalised: dict[str, tuple[float, ...]] = {}
        for key, given, usual, other in (("mean", mean, IMAGENET_MEAN, 0.0), ("std", std, IMAGENET_STD, 1.0)):
            values = tuple(given or ([other] * channels if neutral else usual))
            if len(values) != channels:
                raise ValueError(f"{key} must hold one value for each of {channels} channels; got {given}")
            self.normalised[key] = values
        self.keep_constants()
        make = _torchvision_model if library == "torchvision" else _timm_model
        self.model = make(name, classes, channels, weights is not None)

    def forward(self, windows: Tensor) -> Tensor:
        try:
            logits = self.model((windows - self.mean.to(windows)) / self.std.to(windows))
        except AssertionError as error:  # how vision transformers refuse another size than their own
            raise ValueError(
                f"{self.library}'s {self.name} does not take windows of {windows.shape[-1]} pixels: {error} "
                "Give the network the window that the model is made for, such as window=224"
            ) from error
        if not isinstance(logits, Tensor):
            raise ValueError(
                f"{self.library}'s {self.name} gives {type(logits).__name__}, not logits (N, K): wrap it "
                "in a module of your own that does"
            )
        return logits

    def arguments(self) -> dict[str, Any]:
        """What rebuilds it; the weights come from the saved file."""
        return {
            "library": self.library,
            "name": self.name,
            "classes": self.classes,
            "channels": self.channels,
            **{key: list(values) for key, values in self.normalised.items()},
        }

    def constants(self) -> dict[str, Tensor]:
        return {
            key: torch.tensor(values, dtype=torch.float32, device="cpu")[:, None, None]  # (C, 1, 1)
            for key, values in self.normalised.items()
        }


def _torchvision_model(name: str, classes: int, channels: int, pretrained: bool) -> nn.Module:
    models = import_library("torchvision").models
    # Those that segment or detect are no backbones, and fetch weights of their own without being asked.
    if name not in models.list_models(module=models):
        raise ValueError(f"torchvision has no model {name!r} that classifies images")
    model = models.get_model(name, weights=None, num_classes=classes)
    if pretrained:
        state = models.get_model_weights(name).DEFAULT.get_state_dict(progress=False)
        own = model.state_dict()
        fitting = {key: value for key, value in state.items() if key in own and value.shape == own[key].shape}
        model.load_state_dict({**own, **fitting})
    return model


def _timm_model(name: str, classes: int, channels: int, pretrained: bool) -> nn.Module:
    timm = import_library("timm")
    try:
        return timm.create_model(name, pretrained=pretrained, num_classes=classes, in_chans=channels)
    except RuntimeError as error:
        if "nknown model" not in str(error):
            raise
        raise ValueError(f"timm has no model {name!r}: {error}") from error


def import_library(name: str) -> Any:
    """The library, or an ImportError that says whether it is missing or does not fit the installed torch."""
    advice = "ScaleChannelNetwork takes a model of your own without it"
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        missing = (error.name or name).split(".")[0]
        needs = "" if missing == name else f"{name} needs {missing}, and "
        raise ImportError(
            f'{needs}{missing} is not installed: pip install "scalechannels[backbones]". {advice}'
        ) from error
    except (ImportError, RuntimeError, AttributeError, OSError) as error:
        # Such as "operator torchvision::nms does not exist": its compiled part was built for another torch.
        found = importlib.metadata.distributions(name=name)
        version = next((one.version for one in found), "(of unknown version)")
        raise ImportError(
            f"{name} {version} is installed but cannot be imported with torch {torch.__version__} "
            f"({error}): the two builds must match. Install torchvision from where this torch came from, in "
            f"the same build (CPU or CUDA). {advice}"
        ) from error
