"""lstm and tcn: against torch's own LSTM and against a chain of convolutions; padding changes nothing."""

import json

import pytest
import torch
from torch import nn
from tsformer_plugins.models import lstm, tcn
from tsformer_plugins.models.lstm import LSTMConfig, LSTMEncoder
from tsformer_plugins.models.tcn import TCNConfig, TCNEncoder, layers_for, receptive_field

from tsformer.data.windows import Batch
from tsformer.errors import UsageError
from tsformer.nn.states import LastState
from tsformer.plugin import Problem

CLOSE = {"atol": 1e-6, "rtol": 1e-5}
PROBLEM = Problem(lookback=12, horizon=5, targets=2, past_covariates=1)


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(0)


def encoders():
    """By name, for three channels."""
    return {
        "lstm": LSTMEncoder(LSTMConfig(d_model=8, n_layers=2), 3),
        "tcn": TCNEncoder(TCNConfig(d_model=8, n_layers=2), PROBLEM),
    }


def test_states_are_those_of_torchs_lstm():
    encoder, theirs = encoders()["lstm"], nn.LSTM(3, 8, num_layers=2, batch_first=True)
    with torch.no_grad():
        for level, layer in enumerate(encoder.layers):
            for name, weight in layer.named_parameters():
                getattr(theirs, name.replace("l0", f"l{level}")).copy_(weight)
    x = torch.randn(4, 12, 3)
    states, mask = encoder(x, torch.ones(4, 12, dtype=torch.bool))
    assert torch.allclose(states, theirs(x)[0], **CLOSE)
    assert mask.all()


def test_a_step_without_values_is_skipped_by_the_lstm():
    encoder = encoders()["lstm"]
    x, mask = torch.randn(1, 12, 3), torch.ones(1, 12, dtype=torch.bool)
    mask[0, :3] = mask[0, 7] = False
    x[~mask] = float("nan")
    states, _ = encoder(x, mask)
    alone, _ = encoder(x[mask][None], torch.ones(1, 8, dtype=torch.bool))
    assert torch.allclose(states[mask], alone[0], **CLOSE)
    assert (states[~mask] == 0).all()


@pytest.mark.parametrize("name", ["lstm", "tcn"])
def test_padding_changes_nothing(name):
    encoder = encoders()[name]
    x = torch.randn(2, 9, 3)
    alone, _ = encoder(x, torch.ones(2, 9, dtype=torch.bool))
    padded = torch.cat([torch.full((2, 3, 3), float("nan")), x], dim=1)
    mask = torch.arange(12).expand(2, -1) >= 3
    states, _ = encoder(padded, mask)
    assert torch.allclose(states[:, 3:], alone, **CLOSE)
    last, last_mask = LastState(encoder)(padded, mask)
    assert torch.allclose(last[:, 0], alone[:, -1], **CLOSE)
    assert last_mask.tolist() == [[True], [True]]


@pytest.mark.parametrize("name", ["lstm", "tcn"])
def test_states_do_not_see_later_steps(name):
    encoder = encoders()[name]
    x, mask = torch.randn(2, 12, 3), torch.ones(2, 12, dtype=torch.bool)
    before, _ = encoder(x, mask)
    x[:, 6] += 1
    after, _ = encoder(x, mask)
    assert torch.allclose(after[:, :6], before[:, :6], **CLOSE)
    assert ((after[:, 6] - before[:, 6]).abs() > 1e-5).any()


def test_the_last_state_is_that_of_the_last_real_step():
    mask = torch.tensor([[True, True, False], [False, False, False]])
    states = torch.arange(6.0).view(2, 3, 1) + 1
    last, last_mask = LastState(lambda x, mask: (x, mask))(states, mask)
    assert last[:, 0, 0].tolist() == [2.0, 0.0]
    assert last_mask[:, 0].tolist() == [True, False]


@pytest.mark.parametrize(("n_layers", "kernel", "steps"), [(1, 2, 3), (2, 2, 7), (2, 3, 13), (3, 3, 29), (2, 5, 25)])
def test_the_receptive_field_is_what_the_last_state_sees(n_layers, kernel, steps):
    assert receptive_field(n_layers, kernel) == steps
    problem = Problem(lookback=40, horizon=1, targets=1)
    encoder = TCNEncoder(TCNConfig(d_model=8, kernel=kernel, n_layers=n_layers), problem)
    with torch.no_grad():
        for name, parameter in encoder.named_parameters():
            parameter.fill_(0.0) if "bias" in name else parameter.abs_()  # nothing is cut off or cancelled
    x = torch.ones(1, 40, 1, requires_grad=True)
    states, _ = encoder(x, torch.ones(1, 40, dtype=torch.bool))
    states[:, -1].sum().backward()
    assert (x.grad[0, :, 0] != 0).tolist() == [False] * (40 - steps) + [True] * steps


@pytest.mark.parametrize(("lookback", "kernel", "n_layers"), [(1, 3, 1), (5, 3, 1), (6, 3, 2), (24, 3, 3), (336, 3, 7)])
def test_as_many_blocks_as_the_lookback_needs(lookback, kernel, n_layers):
    assert layers_for(lookback, kernel) == n_layers
    encoder = TCNEncoder(TCNConfig(d_model=8, kernel=kernel), Problem(lookback=lookback, horizon=1, targets=1))
    assert len(encoder.blocks) == n_layers


@pytest.mark.parametrize("plugin", [lstm.plugin, tcn.plugin], ids=["lstm", "tcn"])
@pytest.mark.parametrize("options", [{"head": "last"}, {"head": "flat"}, {"decoder": "autoregressive"}])
@pytest.mark.parametrize("independent", [False, True])
def test_every_decoder_predicts_the_whole_shape(plugin, options, independent):
    config = plugin.config(d_model=16, n_layers=2, channel_independent=independent, **options)
    network = plugin.build(config, PROBLEM)
    past, future = torch.randn(3, 12, 3), torch.randn(3, 5, 2)
    batch = Batch(past=past, past_mask=torch.ones_like(past, dtype=torch.bool), future=future)
    assert network(batch, truth=1.0).shape == (3, 5, 2, 1)


def test_heads_divide_only_where_there_are_heads():
    lstm.build(LSTMConfig(d_model=50), PROBLEM)
    with pytest.raises(UsageError, match="n_heads 4 does not divide d_model 50"):
        lstm.build(LSTMConfig(d_model=50, decoder="autoregressive"), PROBLEM)


@pytest.mark.parametrize("name", ["lstm", "tcn"])
def test_the_command_line(tsformer, name):
    code, out, err = tsformer("fit", "--model", name, "--data", "csv", "--help")
    assert code == 0, err
    for word in (f"Model {name}", "--model.n-layers", "--model.head", "--model.decoder"):
        assert word in out
    small = (
        "--model.decoder",
        "autoregressive",
        "--model.d-model",
        "8",
        "--model.decoder-layers",
        "1",
        "--model.n-heads",
        "2",
    )
    code, out, err = tsformer(
        "fit", "--model", name, "--data", "csv", "--path", "air_passengers", *small, "--max-steps", "2", "--json"
    )
    assert code == 0, err
    code, out, err = tsformer("predict", json.loads(out)["run"], "--horizon", "20")
    assert code == 0, err
    assert len(out.splitlines()) == 21
