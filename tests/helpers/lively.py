"""Networks whose answers say something: fresh ones hardly tell one image from another."""

from typing import TypeVar

import torch
from torch import nn

Made = TypeVar("Made", bound=nn.Module)


def lively(network: Made) -> Made:
    """Weights whose logits differ by several units, so that agreement says something."""
    torch.manual_seed(3)
    for module in network.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.running_mean.uniform_(-0.5, 0.5)
            module.running_var.uniform_(0.2, 2)
            nn.init.uniform_(module.weight, 0.5, 2)
        elif isinstance(module, (nn.Linear, nn.Conv2d)):
            nn.init.kaiming_uniform_(module.weight, a=0.5)
    return network.eval()
