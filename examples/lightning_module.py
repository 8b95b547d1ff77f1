"""The same network in a module of Lightning, which trains, validates and saves it.

pip install "scalechannels[lightning]"
python examples/lightning_module.py
"""

import tempfile

import lightning
import torch
from plain_loop import accuracy, digits, network
from torch import Tensor, nn
from torch.utils.data import DataLoader

from scalechannels import ScaleChannelNetwork


class SizeRobust(lightning.LightningModule):
    """Classifies images (B, C, H, W) of any size, by any network that gives logits (B, K)."""

    def __init__(self, model: ScaleChannelNetwork, rate: float = 3e-3) -> None:
        super().__init__()
        self.model, self.rate = model, rate

    def forward(self, images: Tensor) -> Tensor:
        return self.model(images)

    def training_step(self, batch: list[Tensor], _: int) -> Tensor:
        images, labels = batch
        return nn.functional.cross_entropy(self(images), labels)

    def validation_step(self, batch: list[Tensor], _: int) -> None:
        images, labels = batch
        self.log("accuracy", (self(images).argmax(1) == labels).double().mean(), prog_bar=True)

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.Adam(self.parameters(), self.rate)


def main() -> tuple[float, float]:
    """The accuracy at the size of training and at twice that size."""
    lightning.seed_everything(0, verbose=False)
    module = SizeRobust(network())
    trainer = lightning.Trainer(max_epochs=4, logger=False, enable_checkpointing=False)
    learnt, tested = digits(1000, "train", scale=1.0), digits(300, "test", scale=1.0)
    trainer.fit(module, DataLoader(learnt, 32, shuffle=True), DataLoader(tested, 300))
    with tempfile.TemporaryDirectory() as folder:  # what was trained is a network as any other
        module.model.save_pretrained(folder)
        saved = ScaleChannelNetwork.from_pretrained(folder, backbone=network().backbone)
    return accuracy(saved, tested), accuracy(saved, digits(300, "test", scale=2.0))


if __name__ == "__main__":
    print("as large as in training: {:.0%}; twice as large: {:.0%}".format(*main()))
