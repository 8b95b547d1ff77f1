"""ScaleChannelNetwork = look -> backbone -> pool: the one network with scales."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

import torch
from torch import Tensor, nn

from scalechannels.backbones.inference import (
    binds_images,
    evaluating,
    in_pieces,
    logits_of,
    require_same_type,
    stated,
)
from scalechannels.sampling import Foveate, Outside, require_images
from scalechannels.saving.saved_network import Network
from scalechannels.scales import ScaleGrid

Look = Literal["centre", "everywhere"]
Places = Literal["max", "mean", "logmeanexp"]
Norm = Literal["joint", "each"]

FOVEATED_AT_ONCE = 8
"""So many pieces of the backbone are foveated together: one sampling of many windows costs less than many."""


class Explanation(NamedTuple):
    """What a network says about images, and what decided it.

    Example:
        >>> import torch, scalechannels
        >>> network = scalechannels.load("fovlse-mnist")
        >>> images = torch.full((1, 1, 112, 112), -0.76)        # black, (B, C, H, W)
        >>> images[:, :, 36:76, 54:58] = 0.76                   # a bar of 40 pixels: a one
        >>> why = network.explain(images)
        >>> why.logits.argmax(1), why.channels.shape, why.contributions.shape
        (tensor([1]), torch.Size([1, 17, 10]), torch.Size([1, 17]))
        >>> why.scales                                          # of the channel that decided
        tensor([0.8409])
    """

    logits: Tensor  # (B, K)
    channels: Tensor | None = None  # (B, S, K): what each scale channel says; None without channels
    contributions: Tensor | None = None  # (B, S): each channel's share in the winning class; see `pooling`
    scales: Tensor | None = None  # (B,): σ of the channel that contributes most
    places: Tensor | None = None  # (B, 2): row and column of the deciding window, where all were looked at


class NotFiniteError(ValueError):
    """A network's answer is not a number, or infinite."""


def require_finite(logits: Tensor, names: Sequence[str] = ()) -> None:
    """An error unless all answers (…, K) have a most likely class: of NaN, the first is taken for it.

    names      of the images (B, K), for the error
    """
    wrong = ~logits.amax(-1).isfinite()  # NaN is the largest
    if wrong.any():
        image = f"'{names[int(wrong.int().argmax())]}': " if names else ""
        raise NotFiniteError(f"{image}the network's answer is not finite")


class ScaleChannelNetwork(Network):
    """One backbone that looks through a window of every scale, pooled over scale.

        look="centre"      image (B,C,H,W) → windows (B,S,C,n,n) → backbone → (B,S,K) → pool → logits (B,K)
        look="everywhere"  image → rescaled by 1/σ → backbone slides → for each σ logits at its places
                           (B,P_σ,K) → over places (B,S,K) → pool → logits (B,K)

    backbone   any module that maps (N, C, n, n) to (N, K); all channels share its weights and batch norm. To
               look everywhere it needs a method logit_map, (N, C, H, W) to (N, K, h, w)
    grid       the scales of the channels
    pool       maps (B, S, K) to (B, K): one of scalechannels.pooling, or your own
    window     n
    look       through windows about the centre of the image, or at every place
    places     everywhere: what pools the places of a channel
    head       None: the backbone gives logits, which are pooled. A module (…, F) to (…, K): the backbone
               gives features, which are pooled, and the head classifies the pooled features
    outside, fill, antialias, blur   see Foveate
    shifts     centre: in eval mode every window is also seen so many pixels up, down, left and right, and a
               channel says what the pool makes of these five; 0 for none. It takes five times as long
    margin, centred, area_power, drop_features, norm   everywhere: see `everywhere`

    Law: with a pool that is symmetric in the channels, scaling the object by the grid's ratio leaves the
    output unchanged. Limit: inside the grid's range, up to interpolation, and as far as the responses at the
    grid's ends are small. Batch norm is shared: it sees all B·S windows of a batch as one.

    Everywhere, moving the object by whole steps of a channel's lattice, stride·σ pixels, leaves what the
    channel says unchanged, while the object stays clear of the border. By less, a maximum over places changes
    by no more than the logits vary within a step of their peak. Scaling holds about the image's centre with
    `centred`, whose lattices are scaled with the image; else it holds up to such a shift. The channels of
    fine scales look at more views of the object than those of coarse scales.

    Example:
        >>> import torch
        >>> from scalechannels import LogMeanExpOverScales, ScaleChannelNetwork, ScaleGrid
        >>> backbone = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3 * 32 * 32, 5))
        >>> grid = ScaleGrid.from_sizes(training=40, deployment=(20, 160), window=32)
        >>> network = ScaleChannelNetwork(backbone, grid, LogMeanExpOverScales(), window=32)
        >>> network(torch.rand(2, 3, 200, 300)).shape           # images of any size to (B, K)
        torch.Size([2, 5])
    """

    def __init__(
        self,
        backbone: nn.Module,
        grid: ScaleGrid,
        pool: nn.Module,
        window: int = 28,
        *,
        look: Look = "centre",
        places: Places = "max",
        head: nn.Module | None = None,
        outside: Outside = "border",
        fill: float = 0.0,
        antialias: bool = False,
        blur: float | None = None,
        shifts: int = 0,
        margin: int = 0,
        centred: bool = False,
        area_power: float = 0.0,
        drop_features: bool = False,
        norm: Norm | None = None,
    ) -> None:
        super().__init__()
        for name, part in {"backbone": backbone, "pool": pool}.items():
            if not isinstance(part, nn.Module):
                raise TypeError(f"{name} must be a torch module, such as MaxOverScales(); got {part!r}")
        for name, value, choices in (("look", look, Look), ("places", places, Places)):
            if value not in get_args(choices):
                raise ValueError(f"{name} must be one of {get_args(choices)}; got {value!r}")
        wanted = stated(backbone, "window")
        if wanted is not None and wanted != window:
            raise ValueError(f"this backbone takes windows of {wanted} pixels, the network gives {window}")
        fixed, made_for = getattr(pool, "of_fixed_scales", False), getattr(pool, "scales", None)
        if fixed and made_for not in (None, len(grid)):
            raise ValueError(f"the pooling was made for {made_for} scales, the grid has {len(grid)}")
        if not isinstance(shifts, int) or not 0 <= shifts <= window:
            raise ValueError(
                f"shifts must be a whole number of window pixels, 0 or more, up to {window}; got {shifts!r}"
            )
        if shifts and fixed:
            raise ValueError(
                f"shifted windows are pooled like channels, which {type(pool).__name__} cannot do"
            )
        self.foveate = Foveate(grid, window, outside=outside, fill=fill, antialias=antialias, blur=blur)
        self.look, self.shifts = look, shifts
        self.wider: Foveate | None = None  # what shifted windows are cut from
        if shifts:
            self.wider = Foveate(**{**self.foveate.arguments(), "grid": grid, "window": window + 2 * shifts})
        sliding: dict[str, Any] = {
            "margin": margin,
            "centred": centred,
            "area_power": area_power,
            "drop_features": drop_features,
            "norm": norm,
        }
        self.everywhere: Any = None
        if look == "everywhere":
            if head is not None or shifts:
                raise ValueError("a network that looks everywhere has no head and no shifts")
            from scalechannels.everywhere import Everywhere

            self.everywhere = Everywhere(self.foveate, backbone, places, **sliding)
            self.norms = self.everywhere.norms  # theirs are weights of the network
        elif any(sliding.values()):
            raise ValueError(f'{", ".join(sliding)} are for look="everywhere"')
        # Small 3x3 convolutions are faster in this layout, on CPUs by a quarter and more.
        self.backbone = backbone.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        self.pool, self.head = pool, head

    if TYPE_CHECKING:  # torch says that a module gives anything

        def __call__(self, images: Tensor, centres: Tensor | None = None) -> Tensor: ...

    @property
    def grid(self) -> ScaleGrid:
        return self.foveate.grid

    def forward(self, images: Tensor, centres: Tensor | None = None) -> Tensor:
        """Logits (B, K) of images (B, C, H, W) of any H and W; `centres` (B, 2) as in Foveate."""
        return self.pool_channels(self._in_pieces(self._channels, images, centres))

    def channel_logits(self, images: Tensor, centres: Tensor | None = None) -> Tensor:
        """What each channel says before pooling: (B, S, K).

        Example:
            >>> import torch
            >>> from scalechannels import ScaleGrid, fovlse
            >>> network = fovlse(ScaleGrid.of(1, 2, 4)).eval()
            >>> images = torch.rand(2, 1, 112, 112)
            >>> channels = network.channel_logits(images)
            >>> channels.shape
            torch.Size([2, 3, 10])
            >>> torch.equal(network.pool_channels(channels), network(images))
            True
        """
        channels = self._in_pieces(self._channels, images, centres)
        return channels if self.head is None else self.head(channels)

    def explain(self, images: Tensor, centres: Tensor | None = None) -> Explanation:
        """Logits, each channel's logits and contribution, the deciding scale and place, from one pass.

        Law: in eval mode, whatever mode the network is in; the logits are those of `forward` then.

        Example:
            >>> import torch, scalechannels
            >>> network = scalechannels.load("fovlse-mnist")
            >>> images = torch.full((1, 1, 112, 112), -0.76)        # black, (B, C, H, W)
            >>> images[:, :, 36:76, 54:58] = 0.76                   # a bar of 40 pixels: a one
            >>> images[:, :, 16:96, 52:60] = 0.76                   # twice as large
            >>> why = network.explain(images)
            >>> why.logits.argmax(1), why.scales                    # the same class, by a coarser channel
            (tensor([1]), tensor([1.6818]))
        """
        with evaluating(self):
            if self.everywhere is None:
                return self.explain_channels(self._in_pieces(self._channels, images, centres))
            where: list[Tensor] = []  # beside the logits: places have a type of their own

            def found(part: Tensor, _: Tensor | None) -> Tensor:
                channels, places = self.everywhere.found(part, self.backbone)
                where.append(places)
                return channels

            said = self.explain_channels(self._in_pieces(found, images, centres))
            if said.contributions is None:
                return said
            places = torch.cat(where)  # (B, S, K, 2)
            strongest, winner = said.contributions.argmax(1), said.logits.argmax(1)  # (B,) each
            at = (strongest * places.shape[2] + winner)[:, None, None].expand(-1, 1, 2)
            return said._replace(places=places.flatten(1, 2).gather(1, at)[:, 0])

    def explain_channels(self, channels: Tensor) -> Explanation:
        """The same from what the channels of any N windows gave: (N, S, K), or features (N, S, F)."""
        logits = self.pool_channels(channels)
        if self.head is not None:  # whose channels do not add up to the answer
            return Explanation(logits, self.head(channels))
        if not hasattr(self.pool, "contributions"):
            return Explanation(logits, channels)
        contributions: Tensor = self.pool.contributions(channels, logits.argmax(1))  # type: ignore[operator]
        scales = self.grid.scales.to(logits.device)[contributions.argmax(1)]
        return Explanation(logits, channels, contributions, scales)

    def pool_channels(self, channels: Tensor) -> Tensor:
        """Channel outputs (B, S, K or F) to logits (B, K)."""
        pooled = self.pool(channels)  # (B, K or F)
        return pooled if self.head is None else self.head(pooled)

    def from_stack(self, stack: Tensor) -> Tensor:
        """Logits (B, K) of windows (B, S, C, n, n) that were foveated before, such as cached ones."""
        return self.pool_channels(self._backbone(stack))

    def _channels(self, images: Tensor, centres: Tensor | None) -> Tensor:
        """What the backbone gives in each channel: (B, S, K or F)."""
        if self.everywhere is not None:
            return self.everywhere(images, self.backbone)
        if self.training or self.wider is None:
            return self._backbone(self.foveate(images, centres))
        wide = self.wider(images, centres)  # (B, S, C, n + 2·shifts, n + 2·shifts)
        s, n = self.shifts, self.foveate.window
        corners = ((s, s), (0, s), (2 * s, s), (s, 0), (s, 2 * s))
        windows = torch.stack([wide[..., y : y + n, x : x + n] for y, x in corners], 2)  # (B, S, 5, C, n, n)
        outputs = self._backbone(windows.flatten(1, 2)).unflatten(1, (-1, len(corners)))  # (B, S, 5, K)
        return self.pool(outputs.flatten(0, 1)).unflatten(0, outputs.shape[:2])

    def _backbone(self, stack: Tensor) -> Tensor:
        B, S = stack.shape[:2]
        try:
            outputs = logits_of(self.backbone, stack.flatten(0, 1))  # (B·S, K)
        except torch.OutOfMemoryError:
            raise  # no fault of the window, and callers may know what to do
        except RuntimeError as error:
            n = self.foveate.window
            raise ValueError(
                f"the backbone {type(self.backbone).__name__} failed on windows of the shape "
                f"(N, {stack.shape[2]}, {n}, {n}); does the window of {n} pixels fit it? It said: {error}"
            ) from error
        return outputs.view(B, S, -1)  # (B, S, K)

    def _in_pieces(self, function: Callable[..., Tensor], images: Tensor, centres: Tensor | None) -> Tensor:
        """function(images, centres), the images checked and as many at once as fit."""
        require_images(images, stated(self.backbone, "channels"))
        if self.everywhere is not None:
            if centres is not None:
                raise ValueError("a network that looks everywhere takes no centres")
            pixels = self.everywhere.pixels(images)
        else:  # windows are small beside what the backbone makes of them
            windows = len(self.grid) * (5 if self.shifts else 1)
            pixels = max(1, windows * images.shape[1] * self.foveate.window**2 // FOVEATED_AT_ONCE)
        try:
            return in_pieces(function, images, centres, pixels, training=binds_images(self))
        except RuntimeError as error:
            require_same_type(self.backbone, images, error)
            raise

    def arguments(self) -> dict[str, Any]:
        return {
            "backbone": self.backbone,
            "grid": self.grid,
            "pool": self.pool,
            "head": self.head,
            **self.foveate.arguments(),
            **({"shifts": self.shifts} if self.shifts else {}),
            **({} if self.everywhere is None else {"look": self.look, **self.everywhere.arguments()}),
        }
