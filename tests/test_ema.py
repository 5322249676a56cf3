"""The moving average of the weights: against torch's own and by hand."""

import pytest
import torch
from torch import nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from tsformer.training.ema import WeightAverage


@pytest.fixture(autouse=True)
def _seed():
    torch.manual_seed(0)


def wander(module):
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.add_(torch.randn_like(parameter))


def test_equals_torch():
    module = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 2))
    ours, theirs = WeightAverage(module, 0.9), AveragedModel(module, multi_avg_fn=get_ema_multi_avg_fn(0.9))
    theirs.update_parameters(module)  # the first call copies
    for step in range(20):
        wander(module)
        ours.update(1000 + step)  # by then the decay has reached its highest value
        theirs.update_parameters(module)
    expected = dict(theirs.module.named_parameters())
    assert ours.averages.keys() == expected.keys()
    for name, average in ours.averages.items():
        torch.testing.assert_close(average, expected[name])


def test_by_hand():
    module = nn.Linear(1, 1, bias=False)
    module.weight.data.fill_(10.0)
    average = WeightAverage(module, 0.15)
    for step, (weight, expected) in enumerate([(0.0, 1.0), (1.0, 1.0), (3.0, 0.15 * 1.0 + 0.85 * 3.0)]):
        module.weight.data.fill_(weight)
        average.update(step)  # decays 1/10, then 0.15, for 2/11 and 3/12 are above it
        assert average.averages["weight"].item() == pytest.approx(expected)


def test_a_short_run_forgets_its_first_weights():
    module = nn.Linear(1, 1, bias=False)
    module.weight.data.fill_(1e6)
    average = WeightAverage(module, 0.9999)
    module.weight.data.fill_(1.0)
    for step in range(10):
        average.update(step)
    assert average.averages["weight"].item() == pytest.approx(1.0 + 1e6 / 92378, rel=1e-3)  # 10! 10! / 19! is left


def test_stands_in_for_the_weights_and_gives_them_back():
    module = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 2))
    average = WeightAverage(module, 0.9)
    wander(module)
    average.update(0)
    own = {name: weight.clone() for name, weight in module.state_dict().items()}

    def fails_within():
        with average.in_place():
            for name, weight in module.state_dict().items():
                assert torch.equal(weight, average.averages[name])
                assert not torch.equal(weight, own[name])
            raise KeyError

    with pytest.raises(KeyError):
        fails_within()
    for name, weight in module.state_dict().items():
        assert torch.equal(weight, own[name])


class Grows(nn.Module):
    """A weight, a frozen one, and a buffer that becomes longer, as a table of positions does."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(()))
        self.frozen = nn.Parameter(torch.ones(()), requires_grad=False)
        self.register_buffer("table", torch.empty(0), persistent=False)


def test_buffers_and_frozen_weights_are_the_module_s_own():
    module = Grows()
    average = WeightAverage(module, 0.9)
    module.table = torch.arange(3.0)
    module.weight.data.fill_(1.0)
    average.update(0)
    assert list(average.averages) == ["weight"]
    with average.in_place():
        assert module.weight.item() == pytest.approx(0.9)
        assert module.frozen.item() == 1.0
        assert torch.equal(module.table, torch.arange(3.0))


def test_decay_0_keeps_none():
    module = nn.Linear(2, 2)
    average = WeightAverage(module, 0.0)
    wander(module)
    before = module.weight.clone()
    average.update(0)
    assert average.averages == {}
    with average.in_place():
        assert torch.equal(module.weight, before)


@pytest.mark.parametrize(("dtype", "kept"), [(torch.bfloat16, torch.float32), (torch.float64, torch.float64)])
def test_small_changes_of_half_precision_are_not_lost(dtype, kept):
    module = nn.Linear(1, 1, bias=False).to(dtype)
    module.weight.data.fill_(1.0)
    average = WeightAverage(module, 0.999)
    module.weight.data.fill_(2.0)
    for step in range(100_000, 101_000):
        average.update(step)
    assert average.averages["weight"].dtype == kept
    assert average.averages["weight"].item() == pytest.approx(2 - 0.999**1000, rel=1e-3)
    with average.in_place():
        assert module.weight.dtype == dtype
        assert module.weight.item() == pytest.approx(2 - 0.999**1000, rel=1e-2)
    assert module.weight.item() == 2.0


def test_draws_nothing():
    module = nn.Linear(2, 2)
    state = torch.random.get_rng_state()
    average = WeightAverage(module, 0.9)
    average.update(0)
    with average.in_place():
        pass
    assert torch.equal(torch.random.get_rng_state(), state)
