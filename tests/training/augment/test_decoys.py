"""training.decoys: what is looked at, what the network says of it, and that it can only mislead."""

import math

import pytest
import torch
from helpers.tiny_runs import tiny, trained, weights
from torch import Tensor, nn

import scalechannels
from scalechannels import LogMeanExpOverScales, ScaleChannelNetwork, ScaleGrid
from scalechannels.backbones.paper import mnist_backbone
from scalechannels.training.augment.decoys import PLACES, Decoys
from scalechannels.training.inputs import Alone
from scalechannels.training.trainer import Trainer, misled

GRID = ScaleGrid.of(1.0, 2.0)


def network(grid: ScaleGrid = GRID, **options: object) -> ScaleChannelNetwork:
    torch.manual_seed(0)
    backbone = mnist_backbone(window=13, classes=3)
    made = ScaleChannelNetwork(backbone, grid, LogMeanExpOverScales(), 13, look="everywhere", **options)
    return made.double()


def bar(batch: int = 2) -> Tensor:
    """One bar on an even image."""
    images = torch.zeros(batch, 1, 41, 37, dtype=torch.float64)
    images[:, :, 10:30, 20:23] = 1.0
    return images


@pytest.mark.parametrize(
    ("grid", "factor", "finer", "coarser"),
    [
        (GRID, 4.0, (0.25, 0.5), (4.0, 8.0)),
        (GRID, 7.9, (0.25, 0.5), (4.0, 8.0)),
        (GRID, 1.5, (0.5,), (4.0,)),
        (ScaleGrid.of(0.5, 0.5 * 2**0.5), 2.0, (0.25, 2**-1.5), (1.0, 2**0.5)),
        (ScaleGrid.of(1.0), 4.0, (0.25, 0.5), (2.0, 4.0)),
    ],
)
def test_views_are_finer_and_coarser_than_all_channels(
    grid: ScaleGrid, factor: float, finer: tuple[float, ...], coarser: tuple[float, ...]
):
    decoys = Decoys(network(grid), factor)
    assert decoys.finer.grid.factors == pytest.approx(finer)
    assert decoys.coarser.grid.factors == pytest.approx(coarser)


def test_fine_views_are_taken_where_the_image_changes():
    decoys, images = Decoys(network(), 4.0), bar(500)
    centres = decoys.drawn(images)
    rows, columns = centres.unbind(1)
    on_edge = (rows >= 9) & (rows <= 29) & (columns >= 19) & (columns <= 22)
    assert on_edge.double().mean() > 0.9
    assert len(centres.unique(dim=0)) > 30
    assert not on_edge.all()  # elsewhere seldom, so that an even background is not left out
    anywhere = decoys.drawn(torch.zeros(300, 1, 41, 37))
    assert len(anywhere.unique(dim=0)) > 200  # an empty image has no edge


def test_what_they_say_is_what_networks_of_their_scales_say():
    net = network(area_power=1.0).eval()
    decoys, images = Decoys(net, 4.0), bar()
    torch.manual_seed(3)
    views = decoys(images)
    torch.manual_seed(3)
    centres = decoys.drawn(images)
    side = 13 + (PLACES - 1) * 4
    assert views[0].shape == (4, 1, side, side)
    assert views[1].shape == (4, 1, 13, 13)
    *_, finer, coarser = net.everywhere.logit_maps(images, net.backbone, *views)
    assert finer.shape[2:] == (PLACES, PLACES)
    said = decoys.said(finer, coarser)

    def alone(sigma: float, **options: object) -> ScaleChannelNetwork:
        one = ScaleChannelNetwork(net.backbone, ScaleGrid.of(sigma), LogMeanExpOverScales(), 13, **options)
        return one.eval()

    for image, centre in enumerate(centres):
        each = []
        for sigma in (0.25, 0.5):
            best = torch.full((3,), -math.inf, dtype=torch.float64)
            for row in (-4, 0, 4):
                for column in (-4, 0, 4):
                    moved = centre + sigma * torch.tensor([row, column], dtype=torch.float64)
                    best = best.maximum(alone(sigma)(images[image : image + 1], moved[None])[0])
            each.append(best + 2 * math.log(sigma))
        for sigma in (4.0, 8.0):
            whole = alone(sigma, look="everywhere")(images[image : image + 1])[0]
            each.append(whole + 2 * math.log(sigma))
        expected = torch.stack(each).logsumexp(0) - math.log(2)  # of two channels
        torch.testing.assert_close(said[image].double(), expected, rtol=1e-5, atol=1e-5)


def test_the_answer_beside_them_is_the_networks_own():
    net = network()
    net(bar())  # statistics
    for module in net.modules():
        if isinstance(module, nn.BatchNorm2d | nn.Dropout):
            module.eval()
    alone = Alone(net, windows=False, decoys=Decoys(net, 4.0))
    logits, decoys = alone(bar()[None])
    torch.testing.assert_close(logits[0], net(bar()), rtol=0, atol=1e-10)
    assert decoys.shape == (1, 2, 3)
    alone.eval()
    torch.testing.assert_close(alone(bar()[None])[0], net(bar()), rtol=0, atol=1e-10)


def test_batch_norm_sees_them_with_the_channels():
    net, other = network(), network()
    torch.manual_seed(1)
    Alone(net, windows=False, decoys=Decoys(net, 4.0))(bar()[None])
    other(bar())
    first = [one.backbone.convolutions[0][1].running_mean for one in (net, other)]
    assert not torch.allclose(*first, atol=1e-4)


def test_they_can_only_mislead():
    logits = torch.randn(1, 5, 3, dtype=torch.float64, requires_grad=True)
    decoys = torch.randn(1, 5, 3, dtype=torch.float64, requires_grad=True)
    labels = torch.tensor([[0, 1, 2, 0, 1]])
    right = torch.nn.functional.one_hot(labels, 3).bool()
    found = misled(logits, decoys, labels)
    torch.testing.assert_close(found[right], logits[right].float())
    assert (found[~right] > logits[~right]).all()
    loss = torch.nn.functional.cross_entropy(found[0], labels[0])
    loss.backward()
    assert (decoys.grad[right] == 0).all()
    assert (decoys.grad[~right] > 0).all()  # all that can be learnt of them is to say less
    silent = torch.full_like(decoys, -math.inf)
    torch.testing.assert_close(misled(logits, silent, labels), logits.float())


def test_a_network_learns_to_be_silent_about_them():
    """Bars are of class 0, crosses of class 1; magnified, a cross has bars."""
    torch.manual_seed(0)
    bars, crosses = bar(8).float(), bar(8).float()
    crosses[:, :, 18:21, 12:31] = 1.0
    images, labels = torch.cat((bars, crosses))[None], torch.arange(2).repeat_interleave(8)[None]
    wrong = 1 - labels[0]
    louder = []  # by how much such views say another class louder than the answer says the right one
    for taught in (False, True):
        net = network().float()
        decoys = Decoys(net, 4.0)
        alone = Alone(net, windows=False, decoys=decoys if taught else None)
        trainer = Trainer(alone, images, labels, [0], precision="float32")
        order = torch.randperm(16, generator=torch.Generator().manual_seed(0)).view(1, 2, 8)
        for _ in range(20):
            trainer.epoch(order, 3e-3)
        net.eval()
        torch.manual_seed(5)
        with torch.no_grad():
            *_, finer, coarser = net.everywhere.logit_maps(images[0], net.backbone, *decoys(images[0]))
            said, answer = decoys.said(finer, coarser), net(images[0])
        louder.append(float((said.gather(1, wrong[:, None]) - answer.gather(1, labels.T)).mean()))
    assert louder[1] < louder[0] - 0.3


def test_a_run_learns_with_them_and_keeps_nothing_of_them(tmp_path):
    network = {"look": "everywhere", "area_power": 1.0}
    taught, plain = (
        trained(tiny("fovlse", samples=40, batch=20, epochs=1, network=network, **options), tmp_path / name)
        for name, options in {"taught": {"decoys": 4.0}, "plain": {}}.items()
    )
    assert taught.config.training.augments
    assert taught.config.name != plain.config.name
    assert weights(taught).keys() == weights(plain).keys()
    assert not torch.equal(weights(taught)["backbone.dense.weight"], weights(plain)["backbone.dense.weight"])
    saved, images = scalechannels.load(taught.folder), torch.rand(2, 1, 50, 60)
    assert saved.everywhere.area_power == 1.0
    counted = saved(images)
    saved.everywhere.area_power = 0.0
    assert (counted - saved(images)).min() > 0.1
