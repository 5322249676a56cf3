"""Memory of a fit: counted by hand, and refused before it is taken."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from tsformer import Config, Field, ModelPlugin, fitting, machine, memory, preparation, register
from tsformer.building import build_module
from tsformer.config import resolve
from tsformer.config_layer import Layer
from tsformer.data.split import Split
from tsformer.dry_run import dry_run
from tsformer.errors import PluginError, ResourceError
from tsformer.fitting import fit
from tsformer.machine import in_units
from tsformer.memory import Memory


class Options(Config):
    width: int = Field(8, gt=0, description="width of the hidden layer")
    real: bool = Field(False, description="look at numbers in build")


class Net(nn.Module):
    """Two linear maps with a tanh between them, of which autograd keeps what hand arithmetic says."""

    def __init__(self, options, problem):
        super().__init__()
        if options.real and float(torch.ones(1)) != 1:
            raise ValueError
        self.problem = problem
        self.first = nn.Linear(problem.lookback, options.width)
        self.second = nn.Linear(options.width, problem.horizon)

    def forward(self, batch, truth=0.0):
        return self.second(torch.tanh(self.first(batch.past[:, :, 0]))).view(-1, self.problem.horizon, 1, 1)


@pytest.fixture
def chosen(own_registry, make_panel):
    """`chosen(width=8, train...)`: settings with a complete window, and the panel of 100 rows."""
    register("net", ModelPlugin(config=Options, build=Net, example=Options()))
    panel = make_panel([np.sin(np.arange(100.0))])

    def make(*, train=None, lookback=10, horizon=5, **options):
        values = {"model": {"name": "net", **options}, "train": train or {}}
        values["window"] = {"lookback": lookback, "horizon": horizon}
        settings = resolve([Layer(values)], needs_data=False)
        return preparation.complete(settings, panel), panel

    return make


def test_by_hand(chosen):
    settings, panel = chosen(train={"batch_size": 32})
    made = dry_run(settings, panel)
    parameters = 10 * 8 + 8 + 8 * 5 + 5
    tests = 20 - 5 + 1
    # float64 values in, after the scaler, float32 for the windows, times, and three int64 for each window
    windows = (70 - 10 - 5 + 1) + (10 - 5 + 1) + tests
    data = 100 * (8 + 4 + 8) + windows * 3 * 8
    assert made.memory.weights == made.memory.gradients == 4 * parameters
    assert made.memory.optimiser == made.memory.kept == 8 * parameters
    assert made.memory.scoring == memory.SCORED_COPIES * 8 * tests * 5
    assert data <= made.memory.data <= data + 2 * 8 * 100 + 200  # what transforms keep beside, offsets
    assert made.parameters == parameters


def test_a_mask_takes_a_byte_for_each_value(chosen):
    settings, panel = chosen()
    plain = memory.held_by(preparation.prepare(settings, panel))
    values = panel.values.copy()
    values[5] = np.nan
    masked = memory.held_by(preparation.prepare(settings, replace(panel, values=values, masked=True)))
    assert masked - plain == values.size


def test_what_autograd_keeps_by_hand(chosen):
    settings, panel = chosen(train={"batch_size": 32})
    prepared = preparation.prepare(settings, panel)
    module = build_module(settings.model, prepared.problem)
    found = memory.activations(settings, prepared.parts, module)
    # the input of each linear map, 10 and 8 numbers; the tanh keeps the second one. The loss keeps some more of 5.
    least = memory.STEP_OVERHEAD * 32 * 4 * (10 + 8) + memory.LIVE_TENSORS * 16 * 4 * 10
    assert least <= found <= least + memory.STEP_OVERHEAD * 32 * 4 * 5 * 6


def test_weights_and_weight_shaped_views_are_not_activations(chosen):
    small, large = (chosen(width=width, train={"batch_size": 2}) for width in (8, 8000))
    found = []
    for settings, panel in (small, large):
        prepared = preparation.prepare(settings, panel)
        module = build_module(settings.model, prepared.problem)
        found.append(memory.activations(settings, prepared.parts, module))
    extra = memory.STEP_OVERHEAD * 2 * 4 * (8000 - 8)
    evaluation = memory.LIVE_TENSORS * 16 * 4 * 8000
    assert extra + evaluation <= found[1] <= found[0] + extra + evaluation


def test_the_moving_average_is_one_copy_more(chosen):
    plain, averaged = (dry_run(*chosen(train={"ema": ema})).memory for ema in (0.0, 0.9))
    assert averaged.kept - plain.kept == plain.weights


def test_the_peak_is_that_of_training_or_of_scoring():
    base = Memory(data=1, weights=2, gradients=2, optimiser=4, kept=4, activations=8, scoring=10)
    assert base.peak == 1 + 2 + 2 + 16
    assert replace(base, scoring=100).peak == 1 + 2 + 2 + 100


def test_random_state_and_result_are_those_without_a_dry_run(chosen):
    settings, panel = chosen(train={"max_steps": 3})
    before = torch.get_rng_state()
    dry_run(settings, panel)
    assert torch.equal(torch.get_rng_state(), before)


def test_a_dry_run_builds_what_the_fit_builds(chosen, monkeypatch):
    settings, panel = chosen(train={"max_steps": 1, "seed": 3})
    split = Split(*(np.array([row]) for row in (60, 80, 95)))
    built = []
    real = fitting.try_out

    def try_out(model, module, *rest):
        built.append(module.first.weight.detach().clone())
        real(model, module, *rest)

    monkeypatch.setattr(fitting, "try_out", try_out)
    for seed in (1, 2):
        torch.manual_seed(seed)
        made = dry_run(settings, panel, split)
    result = fit(settings, panel, split=split)
    assert torch.equal(built[0], built[1])
    assert torch.equal(built[0], built[2])
    assert made.to_json()["windows"]["test"] == result.test.overall["windows"] == 95 - 80 - 5 + 1


@pytest.mark.parametrize("entry", [fit, dry_run])
def test_an_absurd_size_is_refused_before_it_is_taken(chosen, entry, monkeypatch):
    built = []
    monkeypatch.setattr("tsformer.fitting.build_module", lambda *given: built.append(given))
    with pytest.raises(ResourceError) as caught:
        entry(*chosen(width=10**13))
    line = str(caught.value)
    for said in ("PiB", "free", "160,000,000,000,005 parameters", "lower --model.width (10000000000000)"):
        assert said in line
    assert not built


def test_a_model_that_needs_numbers_in_its_build_is_not_refused(chosen):
    settings, panel = chosen(real=True, train={"max_steps": 2})
    assert memory.size_of_model(settings.model, preparation.prepare(settings, panel).problem) is None
    assert fit(settings, panel).history.steps == 2


def test_activations_that_do_not_fit_are_refused(chosen, monkeypatch):
    made = dry_run(*chosen(train={"batch_size": 1000}))
    made.require_memory()
    monkeypatch.setattr(machine, "available", lambda device: made.memory.activations // 2)
    with pytest.raises(ResourceError, match=r"lower --train\.batch-size, --window\.horizon"):
        made.require_memory()


def test_a_model_that_fails_in_training_only_is_named(chosen, monkeypatch):
    monkeypatch.setattr(Net, "forward", lambda self, batch, truth=0.0: torch.zeros(len(batch.past), 5, 1, 1))
    with pytest.raises(PluginError, match=r"model 'net' .* fails in a training step with truth=1"):
        dry_run(*chosen())


def test_available_memory_is_that_of_the_machine():
    assert 2**20 < machine.available(torch.device("cpu")) < 2**50
    assert machine.resident() > 2**20


def test_a_containers_limit_counts(monkeypatch, tmp_path):
    for name, text in (("memory.max", "1000"), ("memory.current", "700"), ("memory.stat", "anon 1\ninactive_file 50")):
        (tmp_path / name).write_text(text)
    assert machine.group_memory(tmp_path, tmp_path) == 350
    (tmp_path / "memory.max").write_text("max\n")
    assert machine.group_memory(tmp_path, tmp_path) is None


@pytest.mark.parametrize(
    ("count", "text"), [(0, "0 B"), (1023, "1023 B"), (1536, "1.5 KiB"), (2**30, "1 GiB"), (2**60, "1024 PiB")]
)
def test_units(count, text):
    assert in_units(count) == text
