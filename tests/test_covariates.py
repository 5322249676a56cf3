"""Covariates in networks: that they are read where they should be, learned, and leave everything else alone."""

from dataclasses import fields, replace
from itertools import product

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn
from tsformer_plugins.models import last_value, lstm, seasonal_naive, tcn, tcn_transformer, transformer

from tsformer.config import resolve
from tsformer.config_layer import Layer
from tsformer.data.windows import Batch
from tsformer.fitting import make_ready
from tsformer.nn.covariates import Covariates, KnownSteps, Words, as_past
from tsformer.nn.network import Network
from tsformer.nn.outputs import output_of
from tsformer.plugin import Problem
from tsformer.testing.problem import build

CLOSE = {"atol": 1e-5, "rtol": 1e-5}
PROBLEM = Problem(
    lookback=12, horizon=5, targets=2, past_covariates=1, future_covariates=2, static_covariates=1,
    static_cardinalities=(3, 4),
)  # fmt: skip
ENCODERS = (transformer, tcn_transformer, lstm, tcn)


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(0)


def batch_of(size: int = 3, problem: Problem = PROBLEM) -> Batch:
    past = 3 + 2 * torch.randn(size, problem.lookback, problem.channels)
    future = 3 + 2 * torch.randn(size, problem.horizon, problem.targets)
    return Batch(
        past=past,
        past_mask=torch.ones_like(past, dtype=torch.bool),
        past_known=torch.randn(size, problem.lookback, problem.future_covariates),
        future_known=torch.randn(size, problem.horizon, problem.future_covariates),
        static=torch.randn(size, problem.static_covariates),
        static_codes=torch.stack([torch.arange(size) % n for n in problem.static_cardinalities], 1),
        future=future,
        future_mask=torch.ones_like(future, dtype=torch.bool),
    )


def built(module, problem: Problem = PROBLEM, shake: bool = True, **options: object) -> Network:
    example = type(module.plugin.example)(**{**module.plugin.example.model_dump(), **options})
    network = build(replace(module.plugin, example=example), problem=problem)
    if shake:  # away from weights that start at zero
        with torch.no_grad():
            for parameter in network.parameters():
                parameter.add_(0.2 * torch.randn(parameter.shape))
    return network.eval()


class TestFeatures:
    def test_what_is_known_of_each_step_beside_what_belongs_to_the_series(self) -> None:
        covariates, batch = Covariates(PROBLEM, scales=2), batch_of()
        scale = torch.tensor([[[1.0, 2.0]], [[3.0, 4.0]], [[5.0, 6.0]]])
        lookback, horizon = covariates(batch, scale)
        assert lookback.shape == (3, 12, covariates.width)
        assert horizon.shape == (3, 5, covariates.width)
        assert torch.equal(lookback[..., :2], batch.past_known)
        assert torch.equal(horizon[..., :2], batch.future_known)
        for steps in (lookback, horizon):
            assert torch.equal(steps[:, :, 2], batch.static.expand(-1, steps.shape[1]))
            assert torch.equal(steps[:, 0, -2:], scale[:, 0].log())
            assert (steps[:, 1:, 2:] == steps[:, :1, 2:]).all()

    def test_an_unknown_word_is_the_mean_of_all_others(self) -> None:
        words = Words(4)
        embedded = words(torch.tensor([0, 1, 2, 3]))
        assert torch.equal(embedded[1:], words.table)
        torch.testing.assert_close(embedded[0], words.table.mean(0))

    def test_copies_follow_each_other_each_with_a_vector_of_its_own(self) -> None:
        covariates, batch = Covariates(PROBLEM, scales=1, copies=2), batch_of()
        scale = torch.arange(1.0, 7.0).view(6, 1, 1)
        lookback, horizon = covariates(batch, scale)
        assert lookback.shape == (6, 12, covariates.width)
        for row, copy in product(range(3), range(2)):
            assert torch.equal(horizon[2 * row + copy, :, :2], batch.future_known[row])
            assert torch.equal(horizon[2 * row + copy, 0, -3:-1], covariates.target[copy])
            assert torch.equal(lookback[2 * row + copy, :, -1], scale[2 * row + copy, 0].log().expand(12))

    @pytest.mark.parametrize("name", ["past_known", "future_known", "static", "static_codes"])
    def test_what_a_batch_lacks_is_named(self, name: str) -> None:
        with pytest.raises(ValueError, match=f"needs {name}"):
            Covariates(PROBLEM, scales=0)(replace(batch_of(), **{name: None}))


def test_a_direct_decoder_starts_from_its_own_forecast() -> None:
    class Constant(nn.Module):
        def forward(self, memory, *rest):
            return torch.arange(20.0).view(1, 5, 2, 2).expand(len(memory), -1, -1, -1)

    inner, covariates = replace(as_past(PROBLEM, 6), outputs=2), Covariates(PROBLEM, scales=0)
    decoder = KnownSteps(Constant(), inner, covariates, d_model=8)
    memory, mask, known = (
        torch.randn(3, 4, 8),
        torch.tensor([[False, True, True, True]] * 3),
        torch.randn(3, 5, covariates.width),
    )
    arguments = (memory, mask, torch.zeros(3, 2), None, 0.0)
    assert torch.equal(decoder(*arguments, known), Constant()(memory))
    nn.init.normal_(decoder.output.weight), nn.init.normal_(decoder.line)
    step = torch.cat([known[1, 3], memory[1, 1:].mean(0)])
    expected = torch.arange(12.0, 16.0) + decoder.output(decoder.hidden(step).relu()) + known[1, 3] @ decoder.line[0]
    torch.testing.assert_close(decoder(*arguments, known)[1, 3].flatten(), expected, **CLOSE)
    dirty = torch.where(mask[..., None], memory, torch.nan)
    assert decoder(dirty, *arguments[1:], known).isfinite().all()


def every_network():
    for module, decoder in product(ENCODERS, ("direct", "autoregressive")):
        for revin, alone in ((True, True), (True, False), (False, False)):
            name = module.__name__.rsplit(".", 1)[-1]
            options = {"decoder": decoder, "revin": revin, "channel_independent": alone}
            if module in (transformer, tcn_transformer) or alone:
                yield pytest.param(module, options, id=f"{name}-{decoder}{'-revin' * revin}{'-independent' * alone}")


@pytest.mark.parametrize(("module", "options"), list(every_network()))
class TestEveryNetwork:
    def test_each_step_sees_what_is_known_of_it(self, module, options) -> None:
        network, batch = built(module, **options), batch_of()
        for truth in (0.0, 1.0):
            before = network(batch, truth)
            assert before.shape == (3, 5, 2, 1)
            for step in range(5):
                known = batch.future_known.clone()
                known[:, step] += 1
                moved = (network(replace(batch, future_known=known), truth) - before).abs().amax((0, 2, 3)) > 1e-6
                assert moved[step]
                if options["decoder"] == "direct":
                    assert moved.sum() == 1
                else:
                    assert not moved[:step].any()

    def test_the_truth_does_not_leak(self, module, options) -> None:
        network, batch = built(module, **options), batch_of()
        before = network(batch, 1.0)
        for step in range(5):
            future = batch.future.clone()
            future[:, step:] += torch.randn(3, 5 - step, 2)
            after = network(replace(batch, future=future), 1.0)
            torch.testing.assert_close(after[:, : step + 1], before[:, : step + 1], **CLOSE)

    def test_what_is_behind_the_mask_of_one_channel_changes_nothing(self, module, options) -> None:
        network, batch = built(module, **options), batch_of()
        mask = batch.past_mask.clone()
        mask[0, :4] = mask[1, 5:7, 0] = mask[1, -1, 1] = mask[2, :, 1] = False
        batch = replace(batch, past_mask=mask)
        clean = network(replace(batch, past=torch.where(mask, batch.past, 0.0)))
        assert clean.isfinite().all()
        for dirt in (1e30, torch.nan, -torch.inf):
            assert torch.equal(network(replace(batch, past=torch.where(mask, batch.past, dirt))), clean)

    def test_what_is_known_of_padding_changes_nothing(self, module, options) -> None:
        network, batch = built(module, **options), batch_of()
        mask, known = batch.past_mask.clone(), batch.past_known.clone()
        mask[:, :4] = False
        known[:, :4] = 100.0
        batch = replace(batch, past_mask=mask)
        torch.testing.assert_close(network(replace(batch, past_known=known)), network(batch), **CLOSE)


@pytest.mark.parametrize("module", ENCODERS)
@pytest.mark.parametrize("decoder", ["direct", "autoregressive"])
def test_weights_of_a_problem_without_covariates_keep_their_names(module, decoder: str) -> None:
    plain = as_past(PROBLEM, 0)
    without, with_them = (built(module, problem, decoder=decoder).state_dict() for problem in (plain, PROBLEM))
    assert not any(name.startswith("covariates.") or "known" in name for name in without)
    inner = "decoder.decoder." if decoder == "direct" else "decoder."
    moved = {name.replace("decoder.", inner, 1) if name.startswith("decoder.") else name for name in without}
    assert moved <= with_them.keys()


@pytest.mark.parametrize("module", ENCODERS)
def test_the_same_weights_reach_further(module) -> None:
    short = built(module, decoder="autoregressive")
    long = built(module, replace(PROBLEM, horizon=9), decoder="autoregressive")
    long.load_state_dict(short.state_dict())
    batch = batch_of()
    further = replace(batch, future_known=torch.cat([batch.future_known, torch.randn(3, 4, 2)], 1))
    torch.testing.assert_close(long(further)[:, :5], short(batch), **CLOSE)
    with pytest.raises(ValueError, match="future_known has 5 steps, and the horizon 9"):
        long(batch)


@pytest.mark.parametrize("module", ENCODERS)
@pytest.mark.parametrize("positions", ["sinusoidal", "learned", "relative", "rotary"])
def test_a_rollout_equals_the_parallel_pass_over_what_it_fed(module, positions: str) -> None:
    options = {} if module in (lstm, tcn) else {"positions": positions}
    network, batch = built(module, decoder="autoregressive", **options), batch_of()
    own = network(batch)
    torch.testing.assert_close(network(replace(batch, future=own[..., 0]), 1.0), own, **CLOSE)
    network.decoder.cache = False
    with torch.no_grad():
        torch.testing.assert_close(network(batch), own, **CLOSE)


def series_of(seed: int, size: int, kind: str) -> Batch:
    """Waves, with what x tells of each step (y = 2 x + ...), or with the side to which a word sends the future."""
    generator = torch.Generator().manual_seed(seed)

    def noise(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=generator)

    known, codes = noise(size, 30, 1), torch.randint(1, 3, (size, 1), generator=generator)
    steps = torch.arange(30)[None, :, None]
    values = 0.5 * torch.sin(2 * torch.pi * steps / 12 + 6 * noise(size, 1, 1)) + 0.1 * noise(size, 30, 1)
    if kind == "opposite":  # two targets: what lifts one lowers the other
        values = torch.cat([values + 2 * known, values - 2 * known], -1)
    else:
        values = values + (2 * known if kind == "known" else torch.where(steps < 24, 0, 4 * codes[..., None] - 6))
    past, future = values[:, :24], values[:, 24:]
    mask = torch.ones_like(values, dtype=torch.bool)
    return Batch(
        past=past, past_mask=mask[:, :24], past_known=known[:, :24], future_known=known[:, 24:], static_codes=codes,
        future=future, future_mask=mask[:, 24:],
    )  # fmt: skip


def error_of(network: nn.Module, problem: Problem, kind: str) -> float:
    batch = series_of(1, 256, kind)
    with torch.no_grad():
        return float(output_of(problem).loss(network.eval()(batch), batch))


def learned(module, decoder: str, problem: Problem, kind: str) -> float:
    """The error on other series after 150 steps."""
    train, network = series_of(0, 512, kind), built(module, problem, shake=False, decoder=decoder)
    optimizer = torch.optim.Adam(network.train().parameters(), lr=5e-3)
    for _ in range(150):
        some = torch.randint(0, 512, (32,))
        parts = {field.name: getattr(train, field.name) for field in fields(train)}
        batch = Batch(**{name: part if part is None else part[some] for name, part in parts.items()})
        optimizer.zero_grad()
        output_of(problem).loss(network(batch, 1.0), batch).backward()
        optimizer.step()
    return error_of(network, problem, kind)


@pytest.mark.parametrize("decoder", ["direct", "autoregressive"])
@pytest.mark.parametrize("module", [transformer, tcn_transformer])
@pytest.mark.parametrize(
    ("kind", "extra"), [("known", {"future_covariates": 1}), ("word", {"static_cardinalities": (3,)})]
)
def test_what_covariates_tell_is_learned(module, decoder: str, kind: str, extra) -> None:
    """Half of what is to be forecast comes from x, or from a word, alone; no forecast without it can know that."""
    problem = Problem(lookback=24, horizon=6, targets=1, season=12)
    naive = min(error_of(built(model, problem, shake=False), problem, kind) for model in (last_value, seasonal_naive))
    assert naive > 4
    assert learned(module, decoder, replace(problem, **extra), kind) < 0.15 * naive


@pytest.mark.parametrize(("model", "said"), [("transformer", 0), ("tcn_transformer", 0), ("ridge", 0), ("drift", 2)])
def test_what_a_model_does_not_read_is_said_once(make_panel, model: str, said: int) -> None:
    generator = np.random.default_rng(0)
    panel = make_panel([generator.normal(size=(80, 2)) for _ in range(3)])
    schema = replace(
        panel.schema,
        targets=("y0",),
        future_covariates=("y1",),
        static_covariates=("size", "place"),
        calendar=("month",),
    )
    static = pd.DataFrame({"size": [1.0, 2.0, 5.0], "place": ["a", "b", "a"]})
    panel = replace(panel, schema=schema, static=static)
    layer = {"model": {"name": model}, "window": {"lookback": 10, "horizon": 3}}
    ready = make_ready(resolve([Layer(layer)], needs_data=False), panel)
    problem = ready.fitted.problem
    assert (problem.future_covariates, problem.static_covariates, problem.static_cardinalities) == (3, 1, (3,))
    lines = [str(note) for note in ready.notes if "without effect" in str(note)]
    assert len(lines) == said, lines
    if said:
        assert lines == [
            "--future-covariates and --calendar without effect: model 'drift' reads no future covariates to forecast",
            "--static-covariates without effect: model 'drift' reads no static covariates to forecast",
        ]


@pytest.mark.parametrize("decoder", ["direct", "autoregressive"])
def test_shared_weights_tell_targets_apart(decoder: str) -> None:
    problem = Problem(lookback=24, horizon=6, targets=2, season=12, future_covariates=1)
    assert tcn_transformer.plugin.example.channel_independent
    assert learned(tcn_transformer, decoder, problem, "opposite") < 0.8
    assert error_of(built(last_value, problem), problem, "opposite") > 4
