"""The loop for tasks other than forecasts: what is kept, how fast each part learns, what stays as it is."""

import numpy as np
import pytest
import torch
from torch import nn

from tsformer.data.ragged import ragged
from tsformer.data.sequence_set import SequenceSet
from tsformer.nn.classification import ClassOutput
from tsformer.nn.objective import Verdict
from tsformer.settings import TrainConfig
from tsformer.training.loop import everything, train

CPU = torch.device("cpu")


def examples(count=24, seed=0):
    generator = np.random.default_rng(seed)
    labels = np.arange(count) % 2
    made = [generator.normal(label, 0.5, size=(1, 2)) for label in labels]
    return SequenceSet(np.arange(count), 10, series=ragged(made, np.float32), labels=labels)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.first = nn.Linear(2, 4)
        self.second = nn.Linear(4, 2)

    def forward(self, batch, truth=0.0):
        return self.second(torch.tanh(self.first(batch.past[:, -1])))


def run(module, objective=None, groups=None, **options):
    return train(
        module,
        examples(),
        examples(seed=1),
        objective or ClassOutput(2),
        TrainConfig(**{"max_steps": 8, "eval_every": 1, "lr": 0.05, "batch_size": 4, "warmup": 1, **options}),
        groups=groups,
        generator=np.random.default_rng(0),
        device=CPU,
    )


class Told(ClassOutput):
    """Says of each validation what it is told to."""

    def __init__(self, verdicts):
        super().__init__(2)
        self.verdicts = iter(verdicts)

    def verdict(self, tally):
        f1, loss = next(self.verdicts)
        return Verdict(loss, (f1, -loss), {"validation_f1": f1})


@pytest.mark.parametrize(
    ("verdicts", "best"),
    [
        ([(0.5, 1.0), (0.6, 9.0), (0.5, 0.1)], 2),  # F1 first, whatever the loss
        ([(0.5, 1.0), (0.5, 0.9), (0.5, 0.95)], 2),  # then the loss
        ([(0.5, 1.0), (0.5, 1.0), (0.5, 1.0)], 1),  # the first of equals
        ([(0.0, 3.0), (0.0, 2.0), (0.1, 5.0)], 3),
    ],
)
def test_the_best_f1_is_kept_and_then_the_least_loss(verdicts, best):
    module = Net()
    history = run(module, Told(verdicts), max_steps=3)
    assert history.best_step == best
    assert [record["validation_f1"] for record in history.evaluations] == [f1 for f1, _ in verdicts]
    again = Net()
    run(again, Told(verdicts), max_steps=best, lr_schedule="constant")
    kept = Net()
    run(kept, Told(verdicts), max_steps=3, lr_schedule="constant")
    for name, weight in kept.state_dict().items():
        assert torch.equal(weight, again.state_dict()[name]), name


def test_patience_goes_by_the_same_order():
    verdicts = [(0.5, 1.0), (0.4, 0.1), (0.4, 0.05), (0.5, 0.9), (0.5, 0.95), (0.1, 0.0), (0.9, 0.0)]
    history = run(Net(), Told(verdicts), patience=2, max_steps=20)
    assert (history.stopped, history.steps, history.best_step) == ("early", 3, 1)
    history = run(Net(), Told(verdicts), patience=3, max_steps=7)
    assert (history.stopped, history.best_step) == ("finished", 7)


@pytest.mark.parametrize("ema", [0.0, 0.9])
def test_frozen_parameters_stay_bit_for_bit(ema):
    module = Net()
    before = {name: weight.clone() for name, weight in module.state_dict().items()}
    module.first.weight.requires_grad_(False)
    run(module, ema=ema, weight_decay=0.5)
    after = module.state_dict()
    assert torch.equal(after["first.weight"], before["first.weight"])
    assert module.first.weight.grad is None
    for name in ("first.bias", "second.weight", "second.bias"):
        assert not torch.equal(after[name], before[name]), name


def test_groups_learn_at_their_own_rates():
    """The first step of AdamW without decay moves each weight by the learning rate, whatever the gradient."""
    module = Net()
    before = {name: weight.clone() for name, weight in module.state_dict().items()}
    groups = [
        {"params": list(module.first.parameters()), "rate": 0.25},
        {"params": list(module.second.parameters()), "rate": 2.0},
    ]
    run(module, groups=groups, max_steps=1, lr=1e-3, weight_decay=0.0, lr_schedule="constant")
    for name, weight in module.state_dict().items():
        step = 0.25e-3 if name.startswith("first") else 2e-3
        torch.testing.assert_close((weight - before[name]).abs(), torch.full_like(weight, step), rtol=1e-3, atol=1e-6)


def test_the_schedule_moves_every_group():
    rates = []

    class Spy(torch.optim.AdamW):
        def step(self, *args, **kwargs):
            rates.append([group["lr"] for group in self.param_groups])
            return super().step(*args, **kwargs)

    module = Net()
    groups = [
        {"params": list(module.first.parameters()), "rate": 0.5},
        {"params": list(module.second.parameters()), "rate": 1.0},
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch.optim, "AdamW", Spy)
        run(module, groups=groups, lr_schedule="linear", warmup=2)
    assert len({tuple(pair) for pair in rates}) > 3
    assert all(half == pytest.approx(whole / 2) for half, whole in rates)


def test_without_groups_all_is_one():
    (group,) = everything(Net())
    assert group["rate"] == 1.0
    assert sum(parameter.numel() for parameter in group["params"]) == 2 * 4 + 4 + 4 * 2 + 2
    one, two = Net(), Net()
    run(one)
    run(two, groups=everything(two))
    assert all(torch.equal(a, b) for a, b in zip(one.parameters(), two.parameters(), strict=True))


def test_examples_without_a_label_teach_nothing():
    spoilt = examples()
    spoilt.labels[:] = -1
    module = Net()
    before = [parameter.clone() for parameter in module.parameters()]
    history = train(
        module,
        spoilt,
        spoilt,
        ClassOutput(2),
        TrainConfig(max_steps=2, eval_every=1, weight_decay=0.0),
        generator=np.random.default_rng(0),
        device=CPU,
    )
    assert history.evaluations[-1]["train_loss"] == history.evaluations[-1]["validation_loss"] == 0
    assert all(torch.equal(a, b) for a, b in zip(before, module.parameters(), strict=True))
