"""Devices and precisions that are not at hand: nothing is made on a wrong device, and half precision trains."""

from dataclasses import replace

import pytest
import torch
from tsformer_plugins.models import linear, lstm, tcn, tcn_transformer, transformer

from tsformer import registry
from tsformer.data.windows import Batch
from tsformer.nn import relative
from tsformer.nn.outputs import output_of
from tsformer.nn.positions import KINDS
from tsformer.plugin import Problem
from tsformer.registry import Kind

PROBLEM = Problem(lookback=12, horizon=2, targets=2, past_covariates=1, output="normal", outputs=2)
COVARIATES = replace(PROBLEM, future_covariates=2, static_covariates=1, static_cardinalities=(3,))
SMALL = {"d_model": 8, "n_heads": 2, "d_ff": 8, "encoder_layers": 1, "dropout": 0.1, "attention_dropout": 0.1}
SAMPLES = {"decoder": "autoregressive", "decoder_layers": 1, "feedback": "sample"}


def batch_of(device: str, problem: Problem = PROBLEM) -> Batch:
    past, future = torch.randn(3, 12, 3, device=device), torch.randn(3, 2, 2, device=device)
    mask = torch.ones_like(past, dtype=torch.bool)
    batch = Batch(past=past, past_mask=mask, future=future, future_mask=mask[:, :2, :2])
    if problem is PROBLEM:
        return batch
    return replace(
        batch,
        past_known=torch.randn(3, 12, 2, device=device),
        future_known=torch.randn(3, 2, 2, device=device),
        static=torch.randn(3, 1, device=device),
        static_codes=torch.zeros(3, 1, dtype=torch.long, device=device),
    )


def trained(network: torch.nn.Module, batch: Batch, problem: Problem = PROBLEM) -> None:
    """One step in each way of being fed, and a forecast."""
    output = output_of(problem)
    for truth in (0.0, 0.5, 1.0):
        output.loss(network(batch, truth=truth), batch).backward()
    with torch.no_grad():
        output.point(network.eval()(batch))
    network.train()


def on_meta(module: object, problem: Problem = PROBLEM, **options: object) -> None:
    """A training step on the meta device: nothing is computed there, but tensors of another device are refused."""
    network, batch = module.plugin.build(module.plugin.config(**options), problem).to("meta"), batch_of("meta", problem)
    output_of(problem).loss(network(batch, truth=0.5), batch).backward()


@pytest.mark.parametrize("independent", [False, True])
@pytest.mark.parametrize("decoder", [{}, SAMPLES])
@pytest.mark.parametrize("positions", KINDS)
def test_no_tensor_is_made_on_another_device(
    monkeypatch: pytest.MonkeyPatch, positions: str, decoder: dict[str, str], independent: bool
) -> None:
    monkeypatch.setattr(relative, "_gaps", lambda mask: independent)  # which reads a number, and there is none
    on_meta(transformer, **SMALL, **decoder, positions=positions, channel_independent=independent)


@pytest.mark.parametrize("decoder", [{}, {**SAMPLES, "sampling": "two_pass"}])
def test_nor_with_convolutions(decoder: dict[str, str]) -> None:
    on_meta(tcn_transformer, **SMALL, **decoder, tcn_layers=1)


@pytest.mark.parametrize("module", [lstm, tcn])
@pytest.mark.parametrize("options", [{"head": "last"}, {"head": "flat"}, SAMPLES])
def test_nor_by_models_of_states(module: object, options: dict[str, object]) -> None:
    on_meta(module, d_model=8, dropout=0.1, n_layers=1, **options)


@pytest.mark.parametrize("independent", [False, True])
@pytest.mark.parametrize("decoder", [{}, SAMPLES])
@pytest.mark.parametrize("module", [lstm, tcn])
def test_nor_with_covariates(module: object, decoder: dict[str, object], independent: bool) -> None:
    on_meta(module, COVARIATES, d_model=8, n_layers=1, **decoder, channel_independent=independent)


def test_nor_by_a_linear_map() -> None:
    on_meta(linear, COVARIATES)


HALF = [
    *(
        (module, {**SMALL, **decoder, "positions": p})
        for module in ("transformer", "tcn_transformer")
        for decoder in ({}, SAMPLES)
        for p in KINDS
    ),
    *((module, {"d_model": 8, **decoder}) for module in ("lstm", "tcn") for decoder in ({}, SAMPLES)),
    ("linear", {}),
]


WITH_COVARIATES = [
    (name, {"d_model": 8, **decoder}) for name in ("tcn_transformer", "tcn") for decoder in ({}, SAMPLES)
]


@pytest.mark.parametrize(
    ("model", "options", "problem"),
    [
        *((*each, PROBLEM) for each in HALF),
        *((*each, COVARIATES) for each in [*WITH_COVARIATES, ("linear", {})]),
    ],
)
def test_half_precision_trains(model: str, options: dict[str, object], problem: Problem) -> None:
    torch.manual_seed(0)
    plugin = registry.get(Kind.MODEL, model)
    network, batch = plugin.build(plugin.config(**options), problem), batch_of("cpu", problem)
    batch.past_mask[0, 2] = False  # a gap
    with torch.autocast("cpu", torch.bfloat16):
        trained(network, batch, problem)
    for parameter in network.parameters():
        assert parameter.grad is not None
        assert parameter.grad.isfinite().all()
