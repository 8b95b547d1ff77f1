"""Several networks of one shape as one: every weight has a leading axis of runs.

At the paper's batch size a training step is made of kernels too small for a GPU. Trained together, R runs
share them: a convolution becomes one batched matrix product over patches, (R, N·h·w, 9·C) by (R, 9·C, F).
Even for R = 1 this form is faster there than the library's convolutions, whose overhead is made for larger
layers; torch.compile turns the patches, batch norm and ReLU into a few fused kernels.

Law: run r of the stack computes what its own network computes, forward and backward.
Limit: up to the order of summation; dropout draws other numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from scalechannels.backbones.paper import ConvBackbone
from scalechannels.network import Explanation, ScaleChannelNetwork
from scalechannels.plain import PlainNetwork
from scalechannels.pooling import ConcatScales, MaxOverScales
from scalechannels.training.stacking.canvas import Canvas
from scalechannels.training.stacking.products import patches, product
from scalechannels.training.stacking.strongest import kernel, strongest_places

SEARCHED = 256
"""Images searched at once."""


def can_stack(network: nn.Module) -> bool:
    """Whether a network has the form that StackedNetwork knows."""
    if not isinstance(network.backbone, ConvBackbone):
        return False
    pool: nn.Module = getattr(network, "pool", nn.Identity())
    if not isinstance(pool, ConcatScales) and any(True for _ in pool.parameters()):
        return False  # of pools with weights, every run would have to have its own
    if isinstance(network, ScaleChannelNetwork) and network.everywhere is not None:
        # Batch norm would need more than the strongest places, and so would other pools than the maximum.
        pooled = network.everywhere.places == "max" and isinstance(network.pool, MaxOverScales)
        sampled = network.foveate.outside == "border" and not network.foveate.antialias  # as a canvas is
        normed = network.everywhere.norm is not None or network.backbone.batch_norm
        return pooled and sampled and not normed and not network.everywhere.area_power
    return isinstance(network, PlainNetwork) or network.head is None


class StackedNetwork(nn.Module):
    """R networks of one shape: inputs (R, B, S, n, n, C), channels last, to logits (R, B, K)."""

    def __init__(self, networks: Sequence[Any]) -> None:
        super().__init__()
        if not all(can_stack(network) for network in networks):
            raise TypeError("only networks around a ConvBackbone that pool logits can be stacked")
        self.backbone = StackedBackbone([network.backbone for network in networks])
        pools = [network.pool for network in networks if isinstance(network, ScaleChannelNetwork)]
        mixing = [pool for pool in pools if isinstance(pool, ConcatScales)]
        if mixing and len(mixing) < len(pools):
            raise TypeError("a concatenation of scales has weights, so it cannot be stacked with other pools")
        self.pool: nn.Module | None = None
        if pools:
            self.pool = _StackedConcat([pool.mix for pool in mixing]) if mixing else _Each(pools)

    def forward(self, inputs: Tensor) -> Tensor:
        R, B, S = inputs.shape[:3]
        channels = self.backbone(inputs.flatten(1, 2)).view(R, B, S, -1).float()  # (R, B, S, K)
        return channels[:, :, 0] if self.pool is None else self.pool(channels)

    @torch.no_grad()
    def unstack(self, networks: Sequence[Any]) -> None:
        """Write run r's weights into networks[r]."""
        for run, network in enumerate(networks):
            self.backbone.unstack(run, network.backbone)
            if isinstance(self.pool, _StackedConcat):
                self.pool.unstack(run, network.pool.mix)


class StackedSliding(StackedNetwork):
    """R sliding-window networks, each on a canvas: images (R, B, C, H, W) to logits (R, B, K).

    In two passes, see `strongest`: where each class is strongest, then the logits of these windows alone.
    """

    def __init__(self, networks: Sequence[ScaleChannelNetwork], height: int, width: int) -> None:
        super().__init__(networks)
        self.canvas = Canvas(networks[0], height, width)
        self.per_place = not networks[0].everywhere.drop_features

    def forward(self, inputs: Tensor) -> Tensor:
        return self.search(inputs)[0]

    def search(self, inputs: Tensor) -> tuple[Tensor, Tensor]:
        """The logits, and at which places of the canvas they were found (R, B, K)."""
        R, B = inputs.shape[:2]
        canvases = self.canvas(inputs.flatten(0, 1).float()).to(inputs.dtype)  # (R·B, C, height, width)
        canvases = canvases.unflatten(0, (R, B)).movedim(2, -1)  # (R, B, height, width, C)
        seed = torch.randint(2**31, (1,), device=inputs.device)
        dropout = self.backbone.drop.p if self.training else 0.0
        with torch.no_grad():
            places, kept = strongest_places(
                canvases.bfloat16() if canvases.is_cuda else canvases,
                *self.backbone.arguments(),
                self.canvas.places,
                seed,
                dropout,
                self.per_place,
            )  # (R, B, K), (R, B, K, hidden)
        windows = self.canvas.windows(canvases.flatten(0, 1), places.flatten(0, 1))  # (R·B, K, n, n, C)
        windows = windows.unflatten(0, (R, B)).flatten(1, 2)  # (R, B·K, n, n, C)
        logits = self.backbone(windows, kept.flatten(1, 2) / (1 - dropout))  # (R, B·K, K)
        return logits.view(*places.shape, -1).diagonal(dim1=2, dim2=3).float(), places  # (R, B, K)


class SearchedSliding(nn.Module):
    """SWMax tested by search, for images of one size; the network's weights are copied.

    Where each class is strongest is found by the training's kernels, then looked at.

    Law: logits and contributions are the network's own. Limit: on a GPU the search is in bfloat16, so
    of two places that tie within its rounding the weaker may be taken; its logit is that place's own in
    float32.
    """

    def __init__(self, network: ScaleChannelNetwork, height: int, width: int) -> None:
        super().__init__()
        self.grid = network.grid
        self.stack = StackedSliding([network], height, width).to(next(network.parameters()).device)

    def explain(self, images: Tensor) -> Explanation:
        """The logits, and 1 for the channel that decided; what the others say is not looked at."""
        logits, channels = zip(*(self._search(part) for part in images.split(SEARCHED)), strict=True)
        decided = torch.cat(channels)  # (B,)
        shares = F.one_hot(decided, len(self.grid)).to(images.dtype)
        return Explanation(torch.cat(logits), None, shares, self.grid.scales.to(decided.device)[decided])

    def _search(self, images: Tensor) -> tuple[Tensor, Tensor]:
        logits, places = (found[0] for found in self.stack.search(images[None]))  # (B, K)
        winner = places.gather(1, logits.argmax(1, keepdim=True))[:, 0]  # (B,)
        return logits, self.stack.canvas.channels[winner]


class StackedBackbone(nn.Module):
    """R ConvBackbones: windows (R, N, n, n, C), channels last, to logits (R, N, K)."""

    def __init__(self, backbones: Sequence[ConvBackbone]) -> None:
        super().__init__()
        first = backbones[0]
        shapes = {(b.features, b.window, b.channels, b.classes, b.hidden, b.batch_norm) for b in backbones}
        if len(shapes) > 1:
            raise ValueError(f"only backbones of one shape can be stacked, got {shapes}")
        self.layers = nn.ModuleList(
            _StackedBlock(blocks) for blocks in zip(*(b.convolutions for b in backbones), strict=True)
        )
        self.dense = _StackedLayer([b.dense for b in backbones], first.side)
        self.drop = first.drop
        self.classifier = _StackedLayer([b.classifier for b in backbones])

    def forward(self, windows: Tensor, kept: Tensor | None = None) -> Tensor:
        """`kept` (R, N, hidden): what dropout leaves of the codes, where it was drawn before."""
        maps = windows
        for layer in self.layers:
            maps = layer(maps)  # finally (R, N, side, side, F)
        codes = F.relu(self.dense(maps.flatten(2)))  # (R, N, hidden)
        codes = self.drop(codes) if kept is None else codes * kept.to(codes.dtype)
        return self.classifier(codes)  # (R, N, K)

    def arguments(self) -> tuple[list[Tensor], list[Tensor], list[int]]:
        """Weights and biases of all layers in turn, and the strides of the convolutions."""
        layers = [*self.layers, self.dense, self.classifier]
        weights, biases = ([getattr(layer, name) for layer in layers] for name in ("weight", "bias"))
        return weights, biases, [layer.stride for layer in self.layers]  # type: ignore[misc]

    def unstack(self, run: int, backbone: ConvBackbone) -> None:
        for layer, block in zip(self.layers, backbone.convolutions, strict=True):
            layer.unstack(run, block)  # type: ignore[operator]
        self.dense.unstack(run, backbone.dense)
        self.classifier.unstack(run, backbone.classifier)


class _StackedLayer(nn.Module):
    """R dense layers or convolutions over patches: (R, N, side·side·C), features last, to (R, N, F).

    side       of a patch; of codes that lie in no plane, 1
    """

    def __init__(self, layers: Sequence[Any], side: int = 1) -> None:
        super().__init__()
        self.side = side
        kernels = [layer.weight.detach().view(len(layer.weight), -1, side, side) for layer in layers]
        self.weight = nn.Parameter(torch.stack([k.permute(2, 3, 1, 0).flatten(0, 2) for k in kernels]))
        self.bias = nn.Parameter(torch.stack([layer.bias.detach() for layer in layers])[:, None])  # (R, 1, F)

    def forward(self, rows: Tensor) -> Tensor:
        return product(rows, self.weight.to(rows.dtype)) + self.bias.to(rows.dtype)

    def unstack(self, run: int, layer: Any) -> None:
        layer.weight.copy_(kernel(self.weight[run], self.side).reshape(layer.weight.shape))
        layer.bias.copy_(self.bias[run, 0])


class _StackedBlock(_StackedLayer):
    """3x3 convolution, batch norm where the blocks have it, ReLU."""

    running_mean: Tensor
    running_var: Tensor

    def __init__(self, blocks: Sequence[Any]) -> None:
        super().__init__([block[0] for block in blocks], side=3)
        self.stride = blocks[0][0].stride[0]
        norms = [block[1] for block in blocks if isinstance(block[1], nn.BatchNorm2d)]
        self.normed = bool(norms)
        self.bias.requires_grad_(not norms)
        if norms:
            self.eps, self.momentum = norms[0].eps, norms[0].momentum or 0.1
            self.gain = nn.Parameter(torch.stack([n.weight.detach() for n in norms])[:, None])  # (R, 1, F)
            self.shift = nn.Parameter(torch.stack([n.bias.detach() for n in norms])[:, None])
            for name in ("running_mean", "running_var"):
                self.register_buffer(name, torch.stack([getattr(norm, name) for norm in norms]))  # (R, F)

    def forward(self, maps: Tensor) -> Tensor:
        columns, size = patches(maps, 3, self.stride)
        # Matrix units want a multiple of 8 columns: what the patches have more meets zeros here.
        weight = F.pad(self.weight, (0, 0, 0, columns.shape[2] - self.weight.shape[1]))
        out = product(columns, weight.to(maps.dtype))  # (R, N·h·w, F)
        out = self._normalise(out) if self.normed else out + self.bias.to(out.dtype)
        return F.relu(out).view(*maps.shape[:2], *size, -1)

    def _normalise(self, out: Tensor) -> Tensor:
        """Batch norm of out + bias. But for the running mean the bias falls out, so it needs no gradient."""
        exact = out.float()
        if self.training:
            variance, mean = torch.var_mean(exact, dim=1, correction=0, keepdim=True)  # (R, 1, F)
            with torch.no_grad():
                unbiased = variance[:, 0] * (out.shape[1] / (out.shape[1] - 1))
                self.running_mean.lerp_((mean + self.bias)[:, 0], self.momentum)
                self.running_var.lerp_(unbiased, self.momentum)
        else:
            variance, mean = self.running_var[:, None], self.running_mean[:, None] - self.bias
        return ((exact - mean) * torch.rsqrt(variance + self.eps) * self.gain + self.shift).to(out.dtype)

    def unstack(self, run: int, layer: Any) -> None:
        convolution, norm = layer[:2]
        super().unstack(run, convolution)
        if self.normed:
            norm.weight.copy_(self.gain[run, 0])
            norm.bias.copy_(self.shift[run, 0])
            norm.running_mean.copy_(self.running_mean[run])
            norm.running_var.copy_(self.running_var[run])


class _StackedConcat(_StackedLayer):
    """R concatenations of scales: (R, B, S, K) to (R, B, K)."""

    def forward(self, channels: Tensor) -> Tensor:
        # The logits are float32 and stay so, as in the other poolings.
        with torch.autocast(channels.device.type, enabled=False):
            return super().forward(channels.flatten(2))


class _Each(nn.Module):
    """Every run's own pooling, all of them without weights: (R, B, S, K) to (R, B, K)."""

    kind: Tensor

    def __init__(self, pools: Sequence[nn.Module]) -> None:
        super().__init__()
        kinds = {type(pool): pool for pool in pools}
        self.kinds = nn.ModuleList(kinds.values())
        of_run = [list(kinds).index(type(pool)) for pool in pools]
        self.register_buffer("kind", torch.tensor(of_run)[:, None, None], persistent=False)  # (R, 1, 1)

    def forward(self, channels: Tensor) -> Tensor:
        # All runs by every kind and then a choice: three small kernels, not one for each of many runs.
        pooled = [pool(channels.flatten(0, 1)).view(*channels.shape[:2], -1) for pool in self.kinds]
        chosen = pooled[0]
        for number, other in enumerate(pooled[1:], start=1):
            chosen = torch.where(self.kind.eq(number), other, chosen)
        return chosen
