"""The loop: best weights on every way out, free-running validation, seeds, schedules, divergence."""

import itertools
import math

import numpy as np
import pytest
import torch
from torch import nn
from torch.overrides import TorchFunctionMode

from tsformer.config import validate_options
from tsformer.data.windows import cut_windows
from tsformer.errors import UsageError
from tsformer.nn.points import Point
from tsformer.settings import TrainConfig
from tsformer.training.loop import evaluate, predictions, train
from tsformer.training.schedules import rate, truth

CPU = torch.device("cpu")


def windows(rows=200, lookback=8, horizon=3):
    values = torch.sin(torch.arange(float(rows)) / 5)[:, None]
    return cut_windows(
        values,
        np.array([0, rows]),
        np.array([lookback]),
        np.array([rows]),
        lookback=lookback,
        horizon=horizon,
        targets=1,
    )


class Linear(nn.Module):
    """Notes the truth that it is called with."""

    def __init__(self) -> None:
        super().__init__()
        self.map = nn.Linear(8, 3)
        self.called: list[tuple[bool, float]] = []

    def forward(self, batch, truth=0.0):
        self.called.append((self.training, truth))
        return self.map(batch.past[..., 0])[..., None, None]


def run(module, **options):
    interrupted = options.pop("interrupted", lambda: False)
    on_step = options.pop("on_step", lambda progress: None)
    torch.manual_seed(0)
    return train(
        module,
        windows(),
        windows(60),
        Point(),
        TrainConfig(**{"max_steps": 40, "eval_every": 10, "lr": 0.05, **options}),
        generator=np.random.default_rng(0),
        device=CPU,
        on_step=on_step,
        interrupted=interrupted,
    )


def test_it_learns_and_records_each_evaluation():
    history = run(Linear(), max_steps=200)
    assert [record["step"] for record in history.evaluations] == list(range(10, 201, 10))
    assert history.evaluations[-1]["validation_loss"] < 0.1 * history.evaluations[0]["validation_loss"]
    assert history.stopped == "finished"


@pytest.mark.parametrize("schedule", ["linear", "exponential", "inverse_sigmoid"])
def test_validation_is_free_running_and_training_is_fed_as_scheduled(schedule):
    module = Linear()
    decay = {} if schedule == "linear" else {"truth_decay": 4.0}
    run(module, max_steps=20, truth_start=1.0, truth_end=0.0, truth_schedule=schedule, **decay)
    fed = [fed for training, fed in module.called if training]
    assert fed == [truth(schedule, step, 20, 1.0, 0.0, 4.0) for step in range(20)]
    assert {fed for training, fed in module.called if not training} == {0.0}


class GetsWorse(Linear):
    """The prediction is a counter of the steps taken, so the first evaluation is the best one."""

    def __init__(self, good=10) -> None:
        super().__init__()
        self.good, self.steps = good, 0
        self.register_buffer("counter", torch.zeros(()))

    def forward(self, batch, truth=0.0):
        if self.training:
            self.steps += 1
            self.counter.fill_(abs(self.steps - self.good))
        return super().forward(batch, truth) * 0 + self.counter


def test_stops_early_with_the_best_weights():
    module = GetsWorse(good=20)
    history = run(module, max_steps=200, patience=3)
    assert (history.best_step, history.steps, history.stopped) == (20, 50, "early")
    assert module.counter == 0


def test_interrupted_keeps_the_best_weights():
    module = GetsWorse(good=20)
    history = run(module, max_steps=200, patience=99, interrupted=lambda: module.steps >= 35)
    assert (history.best_step, history.steps, history.stopped) == (20, 35, "interrupted")
    assert module.counter == 0


class Explodes(GetsWorse):
    def forward(self, batch, truth=0.0):
        prediction = super().forward(batch, truth)
        return prediction * math.inf if self.training and self.steps == 25 else prediction


def test_a_loss_that_is_not_finite_stops_with_the_best_weights():
    module = Explodes(good=20)
    history = run(module, max_steps=200)
    assert (history.best_step, history.stopped) == (20, "diverged")
    assert "diverged at step 25: loss" in str(history.error)
    assert "best weights are those of step 20" in str(history.error)
    assert module.counter == 0


def test_an_exception_leaves_the_best_weights_too():
    class Fails(GetsWorse):
        def forward(self, batch, truth=0.0):
            if self.steps == 25:
                raise MemoryError
            return super().forward(batch, truth)

    module = Fails(good=20)
    with pytest.raises(MemoryError):
        run(module, max_steps=200)
    assert module.counter == 0


def test_same_seed_same_bytes():
    first, second, other = Linear(), Linear(), Linear()
    second.load_state_dict(first.state_dict())
    other.load_state_dict(first.state_dict())
    run(first)
    run(second)
    run(other, lr=0.04)
    assert torch.equal(first.map.weight, second.map.weight)
    assert not torch.equal(first.map.weight, other.map.weight)


def test_the_moving_average_is_what_is_validated_and_kept():
    raw, averaged = seeded_linear(), seeded_linear()
    optimised = []
    for module, ema in ((raw, 0.0), (averaged, 0.9)):
        history = run(
            module,
            ema=ema,
            max_steps=20,
            patience=99,
            lr_schedule="constant",
            on_step=lambda _, m=module: optimised.append(m.map.weight.detach().clone()),
        )
        kept = evaluate(module, windows(60), Point(), CPU).loss
        assert kept == min(record["validation_loss"] for record in history.evaluations)
        assert kept == history.evaluations[-1]["validation_loss"]
    for ours, theirs in zip(optimised[:20], optimised[20:], strict=True):
        assert torch.equal(ours, theirs)  # the optimiser goes on from the weights themselves, not from the average
    by_hand = seeded_linear().map.weight.detach()
    for step, weight in enumerate(optimised[:20]):
        decay = min(0.9, (1 + step) / (10 + step))
        by_hand = decay * by_hand + (1 - decay) * weight
    torch.testing.assert_close(averaged.map.weight.detach(), by_hand)
    assert torch.equal(raw.map.weight, optimised[19])
    assert not torch.allclose(averaged.map.weight, raw.map.weight, atol=1e-3)


def test_every_window_counts_once_whatever_the_batch_size():
    module, data = Linear(), windows(60)
    losses = [evaluate(module, data, Point(), CPU, size).loss for size in (1, 7, 1000)]
    assert losses == pytest.approx([losses[0]] * 3)
    paths = [torch.cat([path for path, _ in predictions(module, data, CPU, size)]) for size in (1, 7, 1000)]
    assert paths[0].shape == (len(data), 3, 1, 1)
    torch.testing.assert_close(paths[1], paths[0])
    torch.testing.assert_close(paths[2], paths[0])


@pytest.mark.parametrize("schedule", ["cosine", "linear", "noam", "constant"])
def test_each_step_takes_its_rate_and_a_clipped_gradient(monkeypatch, schedule):
    from tsformer.training import loop

    taken = []

    class Recording(torch.optim.SGD):
        def step(self):
            gradients = torch.cat([p.grad.flatten() for group in self.param_groups for p in group["params"]])
            taken.append((self.param_groups[0]["lr"], float(gradients.norm())))
            super().step()

    monkeypatch.setattr(loop, "_adamw", lambda groups, config: Recording(groups, lr=config.lr))
    run(Linear(), max_steps=40, lr=0.01, warmup=3, clip=0.05, lr_schedule=schedule)
    assert [lr for lr, _ in taken] == pytest.approx([0.01 * rate(schedule, step, 40, 3) for step in range(40)])
    assert max(norm for _, norm in taken) <= 0.05 + 1e-6
    taken.clear()
    run(Linear(), max_steps=5, clip=100.0)
    assert max(norm for _, norm in taken) > 0.05


@pytest.mark.parametrize(("warmup", "steps", "first"), [(None, 40, 4), (None, 2000, 50), (7, 40, 7), (80, 40, 80)])
def test_a_warm_up_is_as_long_as_asked_for(warmup, steps, first):
    rates = []
    options = {"lr_schedule": "constant", "lr": 1.0, "max_steps": steps, "interrupted": lambda: len(rates) >= 3}
    run(Linear(), warmup=warmup, on_step=lambda progress: rates.append(progress.learning_rate), **options)
    assert rates == pytest.approx([1 / first, 2 / first, 3 / first])


class Reads(TorchFunctionMode):
    """Counts how often a number is read from a tensor, for which a device must finish all it has to do."""

    READING = (torch.Tensor.item, torch.Tensor.tolist, torch.Tensor.__float__, torch.Tensor.__int__)

    def __init__(self):
        super().__init__()
        self.times = 0

    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.times += func in self.READING
        return func(*args, **(kwargs or {}))


def test_numbers_are_read_from_the_device_once_a_step_and_not_for_each_batch():
    with Reads() as reads:
        float(torch.ones(()))
    assert reads.times >= 1
    found = []
    for steps in (5, 25):
        with Reads() as reads:
            run(Linear(), max_steps=steps, eval_every=1000)
        found.append(reads.times)
    assert found[1] - found[0] == 20
    module, data = Linear(), windows(60)
    found = []
    for size in (1, 1000):
        with Reads() as reads:
            evaluate(module, data, Point(), CPU, size)
        found.append(reads.times)
    assert found[0] == found[1] <= 2


def test_weight_decay_shrinks_weights():
    free, decayed = Linear(), Linear()
    decayed.load_state_dict(free.state_dict())
    run(free, weight_decay=0.0)
    run(decayed, weight_decay=5.0)
    assert decayed.map.weight.norm() < free.map.weight.norm()


def test_every_window_is_seen_once_in_an_epoch_in_an_order_of_its_own(monkeypatch):
    seen = []

    class Notes(Linear):
        def forward(self, batch, truth=0.0):
            if self.training:
                seen.append(batch.origin.tolist())
            return super().forward(batch, truth)

    data = windows()
    run(Notes(), epochs=2, max_steps=None, batch_size=50)
    size = -(-len(data) // 50)
    epochs = [list(itertools.chain(*seen[:size])), list(itertools.chain(*seen[size:]))]
    assert [sorted(epoch) for epoch in epochs] == [data.origins.tolist()] * 2
    assert epochs[0] != epochs[1] != data.origins.tolist()


def test_an_evaluation_tells_the_mean_loss_since_the_last_one():
    history = run(GetsWorse(good=0), max_steps=20, patience=99, batch_size=1000)  # all windows in each step
    future = windows().batch().future
    assert future is not None
    by_hand = [((step - future) ** 2).mean() for step in range(1, 21)]
    got = [record["train_loss"] for record in history.evaluations]
    assert got == pytest.approx([float(sum(by_hand[:10]) / 10), float(sum(by_hand[10:]) / 10)])


def test_patience_starts_anew_at_each_improvement():
    class TwoDips(GetsWorse):
        def forward(self, batch, truth=0.0):
            prediction = super().forward(batch, truth)
            if self.training:
                self.counter.fill_({10: 5.0, 40: 4.0, 70: 3.0}.get(self.steps, 9.0))
            return prediction

    history = run(TwoDips(), max_steps=200, patience=4)
    assert (history.best_step, history.steps) == (70, 110)


def test_validation_is_thinned_to_the_windows_asked_for():
    rows = []

    class Counts(Linear):
        def forward(self, batch, truth=0.0):
            if not self.training:
                rows.append(len(batch.past))
            return super().forward(batch, truth)

    run(Counts(), max_steps=10, eval_windows=7)
    assert rows == [7]


def test_nothing_can_look_at_the_truth_when_it_is_judged():
    class Looks(Linear):
        def forward(self, batch, truth=0.0):
            if not self.training:
                assert batch.future is None
            return super().forward(batch, truth)

    module = Looks()
    run(module, max_steps=10)
    assert sum(len(batch.future) for _, batch in predictions(module, windows(60), CPU)) == len(windows(60))


def test_masked_values_do_not_make_the_validation_loss_depend_on_the_batch_size(monkeypatch):
    from dataclasses import replace

    from tsformer.data.windows import Windows

    original = Windows.batch

    def masked(self, index=None):
        batch = original(self, index)
        return replace(batch, future_mask=batch.future > 0.3)

    monkeypatch.setattr(Windows, "batch", masked)
    losses = [evaluate(seeded_linear(), windows(60), Point(), CPU, size).loss for size in (1, 2, 6, 100)]
    assert losses == pytest.approx([losses[-1]] * 4)


def seeded_linear():
    torch.manual_seed(0)
    return Linear()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"output": "normal", "loss": "mae"}, "loss mae is for point forecasts, leave it out with output normal"),
        ({"huber_delta": 0.5}, "huber_delta 0.5 needs loss huber, not mse"),
        ({"truth_schedule": "constant", "truth_end": 0.5}, "stays at truth_start 1 and never reaches truth_end 0.5"),
        ({"ema": 1.0}, "less than 1"),
        ({"truth_decay": 0.0}, "greater than 0"),
    ],
)
def test_options_that_do_not_fit_together_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        TrainConfig(**options)


@pytest.mark.parametrize(
    ("options", "unread"),
    [
        ({"truth_schedule": "exponential"}, "truth_schedule exponential needs another truth_end than truth_start 1"),
        (
            {"truth_decay": 5.0, "truth_end": 0.0},
            "truth_decay 5 needs truth_schedule exponential or .*, not linear",
        ),
        ({"truth_schedule": "constant", "truth_start": 0.5, "truth_decay": 5.0}, "truth_decay 5 needs truth_schedule"),
    ],
)
def test_what_nothing_reads_is_refused(options, unread):
    with pytest.raises(ValueError, match=unread):
        TrainConfig(**options)


def test_all_faults_are_said_at_once():
    with pytest.raises(UsageError) as caught:
        validate_options(
            TrainConfig,
            "train",
            {"output": "normal", "loss": "mae", "huber_delta": 0.5, "truth_schedule": "constant", "truth_end": 0.5},
        )
    line = str(caught.value)
    assert "\n" not in line
    assert [fault.split()[0] for fault in line.removeprefix("--train: ").split("; ")] == [
        "loss",
        "huber_delta",
        "truth_schedule",
    ]


@pytest.mark.parametrize(
    "options",
    [
        {"truth_schedule": "constant", "truth_start": 0.5},
        {"truth_schedule": "constant", "truth_start": 0.5, "truth_end": 0.5},
        {"truth_start": 0.0, "truth_end": 1.0},
        {"loss": "huber", "huber_delta": 0.5},
        {"output": "normal"},
    ],
)
def test_options_that_fit_together_survive_a_file(options):
    config = TrainConfig(**options)
    assert TrainConfig.model_validate(config.model_dump(mode="json")) == config
