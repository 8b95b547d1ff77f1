"""The trainer on a problem that can be followed by hand: Adam on a linear classifier."""

from functools import partial

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from scalechannels.training.trainer import Trainer, balancing, mix, shuffled


class Linear(nn.Module):
    """R linear classifiers of three features: (R, B, 3) to (R, B, 2)."""

    def __init__(self, runs: int = 1) -> None:
        super().__init__()
        draw = torch.Generator().manual_seed(0)
        self.weight = nn.Parameter(torch.randn(runs, 3, 2, generator=draw))

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        return torch.bmm(inputs, self.weight)


def data(count: int = 24, sets: int = 1) -> tuple[torch.Tensor, torch.Tensor]:
    inputs = torch.randn(sets, count, 3, generator=torch.Generator().manual_seed(1))
    return inputs, (inputs.sum(2) > 0).long()


def trainer(runs: int = 1, sets: int = 1, **options) -> Trainer:
    inputs, labels = data(sets=sets)
    data_of = [run % sets for run in range(runs)]
    return Trainer(Linear(runs), inputs, labels, data_of, precision="float32", **options)


def orders(seeds: list[int], epoch: int, batch: int = 4) -> torch.Tensor:
    return torch.stack([shuffled(24, batch, seed, epoch) for seed in seeds])


def test_an_epoch_is_adam_on_the_mean_loss_of_each_batch() -> None:
    found = trainer()
    weight = Linear().weight[0].detach().requires_grad_()
    adam = torch.optim.Adam([weight], lr=0.1)
    inputs, labels = data()
    for epoch, rate in enumerate((0.1, 0.01)):
        adam.param_groups[0]["lr"] = rate
        losses = []
        for chosen in shuffled(24, 4, 7, epoch):
            loss = F.cross_entropy(inputs[0, chosen] @ weight, labels[0, chosen])
            adam.zero_grad()
            loss.backward()
            adam.step()
            losses.append(loss.item())
        (mean,) = found.epoch(orders([7], epoch), rate)
        assert mean == pytest.approx(sum(losses) / len(losses), rel=1e-5)
        torch.testing.assert_close(found.model.weight[0], weight, rtol=1e-5, atol=1e-6)


def test_balanced_classes_count_the_same_in_the_loss() -> None:
    """Nine images of one class and three of another; a class without images weighs nothing."""
    labels = torch.tensor([0] * 9 + [1] * 3)
    weights = balancing(labels, 3)
    assert weights.tolist() == pytest.approx([12 / 18, 12 / 6, 0])
    assert float(weights[labels].mean()) == pytest.approx(1)  # the rate stays what it was
    inputs, labels = data()
    weights = torch.tensor([[0.5, 2.0], [1.0, 1.0]])
    both = trainer(runs=2, class_weights=weights, smoothing=[0.1, 0.1])
    found = both._objective(inputs[[0, 0], :12], labels[[0, 0], :12])
    each = F.cross_entropy(
        inputs[0, :12] @ Linear(2).weight[0], labels[0, :12], reduction="none", label_smoothing=0.1
    )
    assert found[0].item() == pytest.approx((each * weights[0][labels[0, :12]]).mean().item(), rel=1e-5)
    plain = trainer(runs=2, smoothing=[0.1, 0.1])._objective(inputs[[0, 0], :12], labels[[0, 0], :12])
    assert found[1].item() == pytest.approx(plain[1].item(), rel=1e-6)  # runs beside it keep their own
    assert found[0].item() != pytest.approx(plain[0].item(), rel=1e-3)


def test_slow_weights_learn_at_their_share_of_the_rate() -> None:
    """Adam's first step is as long as the rate, whatever the gradient."""
    inputs, labels = data()
    model = nn.Sequential(Linear(), nn.Linear(2, 2))
    before = {name: weight.detach().clone() for name, weight in model.named_parameters()}
    slow = list(model[0].parameters())
    found = Trainer(model, inputs, labels, [0], precision="float32", slow=slow, share=0.1)
    found.epoch(orders([7], 0)[:, :1], 0.02)
    moved = {name: (weight.detach() - before[name]).abs().max() for name, weight in model.named_parameters()}
    assert float(moved["0.weight"]) == pytest.approx(0.002, rel=1e-3)
    assert float(moved["1.weight"]) == pytest.approx(0.02, rel=1e-3)


def test_runs_have_their_own_data_and_order_and_do_not_see_each_other() -> None:
    both = trainer(runs=3, sets=2)
    losses = both.epoch(orders([0, 1, 2], 0), 0.1)
    inputs, labels = data(sets=2)
    for run in range(3):
        model = Linear(3)
        model.weight = nn.Parameter(model.weight[run : run + 1].detach().clone())
        alone = Trainer(model, inputs[[run % 2]], labels[[run % 2]], [0], precision="float32")
        assert alone.epoch(orders([run], 0), 0.1) == pytest.approx([losses[run]], rel=1e-5)
        torch.testing.assert_close(both.model.weight[run], model.weight[0], rtol=1e-5, atol=1e-6)


def test_what_training_changes_can_be_taken_out_and_put_back() -> None:
    whole = trainer()
    whole.epoch(orders([0], 0), 0.1)
    saved = {name: value.clone() for name, value in whole.tensors().items()}
    assert set(saved) == {
        "model.weight", "adam.exp_avg.weight", "adam.exp_avg_sq.weight", "adam.step.weight",
    }  # fmt: skip
    assert float(saved["adam.step.weight"]) == 6
    whole.epoch(orders([0], 1), 0.1)
    again = trainer()
    again.load_tensors(saved)
    again.epoch(orders([0], 1), 0.1)
    assert torch.equal(again.model.weight, whole.model.weight)


def test_tensors_of_another_network_are_refused() -> None:
    found = trainer()
    with pytest.raises(ValueError, match="another network"):
        found.load_tensors({"model.other": torch.zeros(3)})
    other = {name: torch.zeros(9, 9) for name in found.tensors()}
    before = found.model.weight.clone()
    with pytest.raises(ValueError, match="another network"):
        found.load_tensors(other)
    assert torch.equal(found.model.weight, before)


def test_a_loss_that_is_no_number_names_the_step_and_what_to_try() -> None:
    found = trainer()
    order = orders([0], 0)
    found.inputs[0, order[0, 2, 1]] = float("nan")  # an image of the third batch
    with pytest.raises(
        FloatingPointError, match=r"step 3 of 6, .* rate of 0\.1; try a smaller training\.rate"
    ):
        found.epoch(order, 0.1)


def test_a_loss_beyond_all_numbers_is_told_too() -> None:
    found = trainer()
    found.inputs.mul_(1e38)
    with pytest.raises(FloatingPointError, match="step 1 of 6"):
        found.epoch(orders([0], 0), 0.1)


def test_every_step_is_reported() -> None:
    seen: list[int] = []
    trainer().epoch(orders([0], 0), 0.1, seen.append)
    assert seen == [1, 2, 3, 4, 5, 6]


def test_any_number_of_shapes_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "compile", partial(torch.compile, backend="eager"))
    limits = {"recompile_limit": 1, "fail_on_recompile_limit_hit": True}
    with torch._dynamo.config.patch(**limits):
        for runs in (1, 2, 3):
            trainer(runs, compiled=True).epoch(orders(list(range(runs)), 0), 0.1)


def test_bfloat16_comes_close_to_float32() -> None:
    inputs, labels = data()
    weights = {}
    for precision in ("float32", "bfloat16"):
        found = Trainer(Linear(), inputs, labels, [0], precision=precision)
        found.epoch(orders([0], 0), 0.01)
        weights[precision] = found.model.weight.detach()
        assert weights[precision].dtype == torch.float32
    assert not torch.equal(weights["float32"], weights["bfloat16"])
    torch.testing.assert_close(weights["float32"], weights["bfloat16"], rtol=0, atol=0.05)


def test_an_order_holds_each_image_once_and_leaves_out_a_rest() -> None:
    assert sorted(shuffled(24, 4, 0, 0).flatten().tolist()) == list(range(24))
    order = shuffled(10, 4, 0, 0)
    assert order.shape == (2, 4)
    assert len(order.unique()) == 8


def test_an_order_depends_on_seed_and_epoch_alone() -> None:
    assert torch.equal(shuffled(24, 4, 3, 5), shuffled(24, 4, 3, 5))
    found = {
        tuple(shuffled(24, 4, seed, epoch).flatten().tolist()) for seed in range(8) for epoch in range(8)
    }
    assert len(found) == 64
    assert len({mix(seed, epoch) for seed in range(50) for epoch in range(200)}) == 10_000


def test_a_batch_larger_than_the_data() -> None:
    with pytest.raises(
        ValueError, match=r"training\.batch must be at most 24, the number of training images; got 32"
    ):
        shuffled(24, 32, 0, 0)


def test_a_smoothed_target_is_that_of_torch() -> None:
    found, (inputs, labels) = trainer(smoothing=0.2), data()
    expected = F.cross_entropy(inputs[0] @ found.model.weight[0], labels[0], label_smoothing=0.2)
    torch.testing.assert_close(found._objective(inputs, labels)[0], expected)
    assert not torch.allclose(trainer()._objective(inputs, labels)[0], expected)


def test_the_average_follows_the_weights_and_becomes_the_model() -> None:
    found = trainer(average=0.75)
    expected = found.model.weight.detach().clone()
    for step in range(6):
        found.epoch(orders([0], 0)[:, [step]], 0.1)
        expected = 0.75 * expected + 0.25 * found.model.weight.detach()
    assert not torch.allclose(found.model.weight, expected)
    assert "average.weight" in found.tensors()  # a resumed run goes on with it
    found.take_average()
    torch.testing.assert_close(found.model.weight.detach(), expected)


def test_a_corrected_average_is_the_weighted_mean_of_the_steps_alone() -> None:
    decay, found, seen = 0.75, trainer(average=0.75, corrected=True), []
    for step in range(6):
        found.epoch(orders([0], 0)[:, [step]], 0.1)
        seen.append(found.model.weight.detach().clone())
        shares = torch.tensor([decay**age for age in range(len(seen))]).flip(0)
        expected = torch.einsum("t,t...->...", shares / shares.sum(), torch.stack(seen))
        torch.testing.assert_close(found.averaged["weight"], expected)


class Normed(nn.Module):
    """Batch norm, whose statistics begin far from the data, then dropout: (1, B, 3) to (1, B, 2)."""

    def __init__(self) -> None:
        super().__init__()
        self.norm, self.drop, self.linear = nn.BatchNorm1d(3), nn.Dropout(0.5), nn.Linear(3, 2)
        self.norm.running_mean.fill_(100.0)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        return self.linear(self.drop(self.norm(inputs[0])))[None]


def test_recomputed_statistics_are_the_means_over_the_batches() -> None:
    inputs, labels = data()
    found = Trainer(Normed(), inputs, labels, [0], precision="float32", average=0.9, corrected=True)
    order = orders([0], 0)
    found.recompute_statistics(order)
    batches = inputs[0, order[0]]  # (steps, B, 3)
    torch.testing.assert_close(found.model.norm.running_mean, batches.mean((0, 1)))
    torch.testing.assert_close(found.model.norm.running_var, batches.var(1).mean(0))
    assert found.model.norm.momentum == 0.1
    assert all(module.training for module in found.model.modules())


def test_only_corrected_averages_are_recomputed() -> None:
    assert trainer(average=0.9, corrected=True).corrects
    assert not trainer(average=0.9).corrects
    assert not trainer(corrected=True).corrects  # nothing is averaged


def test_each_run_has_its_own_targets_and_average() -> None:
    both = trainer(2, smoothing=[0.2, 0.0], average=[0.0, 0.75])
    both.epoch(orders([3, 4], 0), 1e-2)
    for run, options in enumerate(({"smoothing": 0.2}, {"average": 0.75})):
        alone = trainer(**options)
        with torch.no_grad():
            for start in (alone.model.weight, *alone.averaged.values()):
                start.copy_(Linear(2).weight[[run]])
        alone.epoch(orders([3 + run], 0), 1e-2)
        torch.testing.assert_close(both.model.weight[[run]], alone.model.weight)
    torch.testing.assert_close(both.averaged["weight"][0], both.model.weight[0].detach())
    torch.testing.assert_close(both.averaged["weight"][[1]], alone.averaged["weight"])
    assert not torch.allclose(both.averaged["weight"][1], both.model.weight[1])


def test_few_images_come_again_in_another_order() -> None:
    found = shuffled(10, 4, 0, 0, images=25)
    assert found.shape == (6, 4)
    assert all(sorted(found.flatten()[start : start + 10].tolist()) == list(range(10)) for start in (0, 10))
    assert not torch.equal(found.flatten()[:10], found.flatten()[10:20])
    assert shuffled(10, 4, 0, 0, images=8).shape == (2, 4)
    with pytest.raises(ValueError, match="at most 10,"):
        shuffled(10, 12, 0, 0, images=100)
    with pytest.raises(ValueError, match="at most 3,"):
        shuffled(10, 4, 0, 0, images=3)
