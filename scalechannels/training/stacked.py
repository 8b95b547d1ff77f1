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

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from scalechannels.backbones import ConvBackbone
from scalechannels.network import ScaleChannelNetwork
from scalechannels.plain import PlainNetwork
from scalechannels.pooling import ConcatScales
from scalechannels.sliding import SlidingWindowNetwork
from scalechannels.training.canvas import Canvas

PIECES, PIECE_ROWS = 512, 128
"""At most so many pieces of at least so many rows in a product."""


def stack_networks(networks: Sequence[nn.Module], height: int, width: int) -> StackedNetwork:
    """The stack for these networks and images of this size."""
    if isinstance(networks[0], SlidingWindowNetwork):
        return StackedSliding([n for n in networks if isinstance(n, SlidingWindowNetwork)], height, width)
    return StackedNetwork(networks)


def can_stack(network: nn.Module) -> bool:
    """Whether a network has the form that StackedNetwork knows."""
    known = isinstance(network, PlainNetwork | SlidingWindowNetwork) or (
        isinstance(network, ScaleChannelNetwork) and network.head is None
    )
    return known and isinstance(network.backbone, ConvBackbone)


class StackedNetwork(nn.Module):
    """R networks of one shape: inputs (R, B, S, n, n, C), channels last, to logits (R, B, K)."""

    def __init__(self, networks: Sequence[nn.Module]) -> None:
        super().__init__()
        if not all(can_stack(network) for network in networks):
            raise TypeError("only networks around a ConvBackbone that pool logits can be stacked")
        self.backbone = StackedBackbone([_backbone(network) for network in networks])
        pools = [network.pool for network in networks if isinstance(network, ScaleChannelNetwork)]
        self.pool: nn.Module | None = None
        if pools and isinstance(pools[0], ConcatScales):
            self.pool = _StackedConcat([pool for pool in pools if isinstance(pool, ConcatScales)])
        elif pools:
            self.pool = _Each(pools[0])

    def forward(self, inputs: Tensor) -> Tensor:
        R, B, S = inputs.shape[:3]
        channels = self.backbone(inputs.flatten(1, 2)).view(R, B, S, -1).float()  # (R, B, S, K)
        return channels[:, :, 0] if self.pool is None else self.pool(channels)

    @torch.no_grad()
    def unstack(self, networks: Sequence[nn.Module]) -> None:
        """Write run r's weights into networks[r]."""
        self.backbone.unstack([_backbone(network) for network in networks])
        if isinstance(self.pool, _StackedConcat):
            for run, network in enumerate(networks):
                assert isinstance(network, ScaleChannelNetwork)
                assert isinstance(network.pool, ConcatScales)
                network.pool.mix.weight.copy_(self.pool.weight[run].T)
                network.pool.mix.bias.copy_(self.pool.bias[run, 0])


class StackedSliding(StackedNetwork):
    """R sliding-window networks, each on a canvas: images (R, B, C, H, W) to logits (R, B, K)."""

    def __init__(self, networks: Sequence[SlidingWindowNetwork], height: int, width: int) -> None:
        super().__init__(networks)
        self.canvas = Canvas(networks[0], height, width)

    def forward(self, inputs: Tensor) -> Tensor:
        R, B = inputs.shape[:2]
        canvases = self.canvas(inputs.flatten(0, 1).float())  # (R·B, C, height, width)
        canvases = canvases.to(inputs.dtype).unflatten(0, (R, B)).movedim(2, -1)
        return self.canvas.maximum(self.backbone.logit_map(canvases).float())


class StackedBackbone(nn.Module):
    """R ConvBackbones: windows (R, N, n, n, C), channels last, to logits (R, N, K)."""

    def __init__(self, backbones: Sequence[ConvBackbone]) -> None:
        super().__init__()
        first = backbones[0]
        shapes = {(b.features, b.window, b.channels, b.classes, b.hidden, b.batch_norm) for b in backbones}
        if len(shapes) > 1:
            raise ValueError(f"only backbones of one shape can be stacked, got {shapes}")
        self.side = first.side
        self.layers = nn.ModuleList(
            _StackedBlock([b.convolutions[index] for b in backbones]) for index in range(len(first.features))
        )
        self.dense = _StackedLinear(
            [_channels_last(b.dense.weight, b.side) for b in backbones], [b.dense.bias for b in backbones]
        )
        self.drop = first.drop
        self.classifier = _StackedLinear(
            [b.classifier.weight for b in backbones], [b.classifier.bias for b in backbones]
        )

    def forward(self, windows: Tensor) -> Tensor:
        maps = self._maps(windows)  # (R, N, side, side, F)
        return self._classify(maps.flatten(2))  # (R, N, K)

    def logit_map(self, images: Tensor) -> Tensor:
        """Logits (R, N, h, w, K) at every place of images (R, N, H, W, C)."""
        maps = self._maps(images)
        rows, size = _patches(maps, self.side, 1, self.side**2 * maps.shape[-1])
        return self._classify(rows).view(*maps.shape[:2], *size, -1)

    def _maps(self, images: Tensor) -> Tensor:
        for layer in self.layers:
            images = layer(images)
        return images

    def _classify(self, rows: Tensor) -> Tensor:
        codes = F.relu(self.dense(rows))  # (R, M, hidden)
        return self.classifier(self.drop(codes))  # (R, M, K)

    @torch.no_grad()
    def unstack(self, backbones: Sequence[ConvBackbone]) -> None:
        for run, backbone in enumerate(backbones):
            for layer, block in zip(self.layers, backbone.convolutions, strict=True):
                layer.unstack(run, block)  # type: ignore[operator]
            weight = self.dense.weight[run].T  # (hidden, side·side·C)
            blocks = weight.view(len(weight), self.side, self.side, -1).permute(0, 3, 1, 2)
            backbone.dense.weight.copy_(blocks.flatten(1))
            backbone.dense.bias.copy_(self.dense.bias[run, 0])
            backbone.classifier.weight.copy_(self.classifier.weight[run].T)
            backbone.classifier.bias.copy_(self.classifier.bias[run, 0])


class _StackedBlock(nn.Module):
    """3x3 convolution, batch norm where the blocks have it, ReLU."""

    running_mean: Tensor
    running_var: Tensor

    def __init__(self, blocks: Sequence[nn.Module]) -> None:
        super().__init__()
        convolutions = [block[0] for block in blocks]  # type: ignore[index]
        self.stride = convolutions[0].stride[0]
        # Rows beyond 9·C stay zero: matrix units want a multiple of 8 of them.
        self.rows = -(-convolutions[0].in_channels * 9 // 8) * 8
        self.weight = nn.Parameter(torch.stack([self._rows(c.weight) for c in convolutions]))  # (R, rows, F)
        self.bias = nn.Parameter(torch.stack([c.bias.detach() for c in convolutions])[:, None])  # (R, 1, F)
        norms = [block[1] for block in blocks if isinstance(block[1], nn.BatchNorm2d)]  # type: ignore[index]
        self.normed = bool(norms)
        if norms:
            self.eps, self.momentum = norms[0].eps, norms[0].momentum or 0.1
            self.gain = nn.Parameter(torch.stack([n.weight.detach() for n in norms])[:, None])  # (R, 1, F)
            self.shift = nn.Parameter(torch.stack([n.bias.detach() for n in norms])[:, None])
            for name in ("running_mean", "running_var"):
                self.register_buffer(name, torch.stack([getattr(norm, name) for norm in norms]))  # (R, F)

    def _rows(self, weight: Tensor) -> Tensor:
        columns = weight.detach().permute(2, 3, 1, 0).flatten(0, 2)  # (9·C, F)
        return F.pad(columns, (0, 0, 0, self.rows - len(columns)))

    def forward(self, maps: Tensor) -> Tensor:
        columns, size = _patches(maps, 3, self.stride, self.rows)
        out = _product(columns, self.weight.to(maps.dtype)) + self.bias.to(maps.dtype)  # (R, N·h·w, F)
        if self.normed:
            out = self._normalise(out)
        return F.relu(out).view(*maps.shape[:2], *size, -1)

    def _normalise(self, out: Tensor) -> Tensor:
        exact = out.float()
        if self.training:
            variance, mean = torch.var_mean(exact, dim=1, correction=0, keepdim=True)  # (R, 1, F)
            with torch.no_grad():
                unbiased = variance[:, 0] * (out.shape[1] / (out.shape[1] - 1))
                self.running_mean.lerp_(mean[:, 0], self.momentum)
                self.running_var.lerp_(unbiased, self.momentum)
        else:
            variance, mean = self.running_var[:, None], self.running_mean[:, None]
        return ((exact - mean) * torch.rsqrt(variance + self.eps) * self.gain + self.shift).to(out.dtype)

    @torch.no_grad()
    def unstack(self, run: int, block: nn.Module) -> None:
        convolution = block[0]  # type: ignore[index]
        F_, C = convolution.weight.shape[:2]
        convolution.weight.copy_(self.weight[run, : 9 * C].view(3, 3, C, F_).permute(3, 2, 0, 1))
        convolution.bias.copy_(self.bias[run, 0])
        if self.normed:
            norm = block[1]  # type: ignore[index]
            norm.weight.copy_(self.gain[run, 0])
            norm.bias.copy_(self.shift[run, 0])
            norm.running_mean.copy_(self.running_mean[run])
            norm.running_var.copy_(self.running_var[run])


class _StackedLinear(nn.Module):
    """R dense layers: (R, N, in) to (R, N, out)."""

    def __init__(self, weights: Sequence[Tensor], biases: Sequence[Tensor]) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.stack([weight.detach().T for weight in weights]))  # (R, in, out)
        self.bias = nn.Parameter(torch.stack([bias.detach() for bias in biases])[:, None])  # (R, 1, out)

    def forward(self, codes: Tensor) -> Tensor:
        return _product(codes, self.weight.to(codes.dtype)) + self.bias.to(codes.dtype)


class _StackedConcat(_StackedLinear):
    """R ConcatScales: (R, B, S, K) to (R, B, K)."""

    def __init__(self, pools: Sequence[ConcatScales]) -> None:
        super().__init__([pool.mix.weight for pool in pools], [pool.mix.bias for pool in pools])

    def forward(self, channels: Tensor) -> Tensor:
        return super().forward(channels.flatten(2))


class _Each(nn.Module):
    """A pooling without weights, applied to every run: (R, B, S, K) to (R, B, K)."""

    def __init__(self, pool: nn.Module) -> None:
        super().__init__()
        self.pool = pool

    def forward(self, channels: Tensor) -> Tensor:
        return self.pool(channels.flatten(0, 1)).view(*channels.shape[:2], -1)


def _patches(maps: Tensor, side: int, stride: int, columns: int) -> tuple[Tensor, tuple[int, int]]:
    """All side x side patches of maps (R, N, H, W, C) as rows (R, N·h·w, columns), and (h, w).

    A row holds the patch with the features last, then zeros up to `columns`.
    """
    R, N, H, W, C = maps.shape
    h, w = (H - side) // stride + 1, (W - side) // stride + 1
    last = (stride * (h - 1) + 1, stride * (w - 1) + 1)
    pieces = [
        maps[:, :, y : y + last[0] : stride, x : x + last[1] : stride]
        for y in range(side)
        for x in range(side)
    ]
    if columns > side**2 * C:
        pieces.append(maps.new_zeros(R, N, h, w, columns - side**2 * C))
    return torch.cat(pieces, dim=-1).view(R, N * h * w, columns), (h, w)


def _product(rows: Tensor, weight: Tensor) -> Tensor:
    """rows (R, M, in) by weight (R, in, out), in G pieces of the rows.

    The gradient of a weight is a sum over all rows into a tiny matrix, which one matrix product leaves to a
    few of a GPU's processors; as G products and a sum it fills them.
    """
    R, M, inputs = rows.shape
    most = max(1, min(PIECES // R, M // PIECE_ROWS))
    pieces = max(count for count in range(1, most + 1) if M % count == 0)
    split = weight[:, None].expand(R, pieces, inputs, -1).reshape(R * pieces, inputs, -1)
    return torch.bmm(rows.reshape(R * pieces, M // pieces, inputs), split).view(R, M, -1)


def _backbone(network: nn.Module) -> ConvBackbone:
    backbone = network.backbone
    assert isinstance(backbone, ConvBackbone)
    return backbone


def _channels_last(weight: Tensor, side: int) -> Tensor:
    """A dense layer's weight for maps that are flattened with the features last."""
    return weight.view(len(weight), -1, side, side).permute(0, 2, 3, 1).flatten(1)
