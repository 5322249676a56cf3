"""Whole networks: our two models with every switch, against what holds for all forecasters."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import product

import pytest
import torch
from torch import Tensor, nn
from tsformer_plugins.models import tcn_transformer, transformer

from tsformer.data.windows import Batch
from tsformer.nn.network import Network, last_real
from tsformer.nn.normalisation import RevIN
from tsformer.plugin import Config, Problem

CLOSE = {"atol": 1e-5, "rtol": 1e-5}
PROBLEM = Problem(lookback=12, horizon=5, targets=2, past_covariates=1)


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(0)


def configured(example: Config, **options: object) -> Config:
    return type(example)(**{**example.model_dump(), **options})


def networks() -> Iterator[object]:
    for module in (transformer, tcn_transformer):
        name = module.__name__.rsplit(".", 1)[-1]
        for decoder, revin, independent in product(("autoregressive", "direct"), (False, True), (False, True)):
            config = configured(
                module.plugin.example, decoder=decoder, revin=revin, channel_independent=independent, norm_first=revin
            )
            label = f"{name}-{decoder}{'-revin' * revin}{'-independent' * independent}"
            yield pytest.param(module.plugin.build, config, id=label)


every_network = pytest.mark.parametrize(("build", "config"), list(networks()))


def batch_of(size: int = 3, problem: Problem = PROBLEM, dirt: float = 0.0) -> Batch:
    """Left padding in the second row, a hole in one channel of the third; `dirt` stands behind every mask."""
    generator = torch.Generator().manual_seed(1)
    past = 3 + 2 * torch.randn(size, problem.lookback, problem.channels, generator=generator)
    future = 3 + 2 * torch.randn(size, problem.horizon, problem.targets, generator=generator)
    mask = torch.ones_like(past, dtype=torch.bool)
    future_mask = torch.ones_like(future, dtype=torch.bool)
    mask[1:2, :5] = False
    mask[2:3, -2:, 0] = False
    future_mask[2:3, 1, 1] = False
    past, future = torch.where(mask, past, dirt), torch.where(future_mask, future, dirt)
    return Batch(past=past, past_mask=mask, future=future, future_mask=future_mask)


def rows(batch: Batch, index: slice) -> Batch:
    return Batch(
        batch.past[index], batch.past_mask[index], future=batch.future[index], future_mask=batch.future_mask[index]
    )


@every_network
class TestEveryNetwork:
    @pytest.mark.parametrize("truth", [0.0, 0.5, 1.0])
    def test_shape_and_gradients(self, build, config, truth: float) -> None:
        network = build(config, PROBLEM)
        batch = batch_of(dirt=float("nan"))
        prediction = network(batch, truth)
        assert prediction.shape == (3, 5, 2, 1)
        network.output.loss(prediction, batch).backward()
        for name, parameter in network.named_parameters():
            assert parameter.grad is not None, name
            assert parameter.grad.isfinite().all(), name

    @pytest.mark.parametrize("truth", [0.0, 1.0])
    def test_what_stands_behind_a_mask_changes_nothing(self, build, config, truth: float) -> None:
        network = build(config, PROBLEM).eval()
        expected = network(batch_of(), truth)
        for dirt in (1e6, float("nan"), float("inf")):
            assert torch.equal(network(batch_of(dirt=dirt), truth), expected)

    def test_a_row_does_not_depend_on_its_batch(self, build, config) -> None:
        network, batch = build(config, PROBLEM).eval(), batch_of()
        whole = network(batch, 1.0)
        for row in range(3):
            torch.testing.assert_close(network(rows(batch, slice(row, row + 1)), 1.0)[0], whole[row], **CLOSE)

    def test_truth_0_ignores_the_future(self, build, config) -> None:
        network, batch = build(config, PROBLEM).eval(), batch_of()
        expected = network(replace(batch, future=None, future_mask=None))
        assert torch.equal(network(batch, 0.0), expected)
        assert torch.equal(network(replace(batch, future=torch.full_like(batch.future, torch.nan))), expected)

    def test_truth_1_is_causal(self, build, config) -> None:
        network, batch = build(config, PROBLEM).eval(), batch_of()
        before = network(batch, 1.0)
        for step in range(PROBLEM.horizon):
            future = batch.future.clone()
            future[:, step:] += torch.randn(3, PROBLEM.horizon - step, 2)
            after = network(replace(batch, future=future), 1.0)
            torch.testing.assert_close(after[:, : step + 1], before[:, : step + 1], **CLOSE)
            if config.decoder == "autoregressive" and step + 1 < PROBLEM.horizon:
                assert not torch.allclose(after[:, step + 1], before[:, step + 1])

    def test_a_window_without_a_real_step_stays_finite(self, build, config) -> None:
        network, batch = build(config, PROBLEM), batch_of()
        batch = replace(batch, past_mask=torch.zeros_like(batch.past_mask))
        prediction = network(batch, 0.0)
        prediction.sum().backward()
        assert prediction.isfinite().all()
        assert all(p.grad.isfinite().all() for p in network.parameters())


def shaken(network: nn.Module) -> nn.Module:
    """Moved away from weights that start at zero."""
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.add_(0.2 * torch.randn(parameter.shape))
    return network.eval()


@pytest.mark.parametrize("module", [transformer, tcn_transformer])
@pytest.mark.parametrize("revin", [False, True])
@pytest.mark.parametrize("positions", ["sinusoidal", "learned", "relative", "rotary", "none"])
def test_left_padding_shifts_nothing(module, revin: bool, positions: str) -> None:
    """An autoregressive network sees 9 steps alike, whether they come alone or behind 7 steps of padding."""
    config = configured(module.plugin.example, decoder="autoregressive", revin=revin, positions=positions)
    network = shaken(module.plugin.build(config, PROBLEM))
    past = torch.randn(2, 9, 3)
    real = torch.ones_like(past, dtype=torch.bool)
    padded = nn.functional.pad(past, (0, 0, 7, 0), value=torch.nan), nn.functional.pad(real, (0, 0, 7, 0))
    torch.testing.assert_close(network(Batch(*padded)), network(Batch(past, real)), **CLOSE)


@pytest.mark.parametrize("module", [transformer, tcn_transformer])
@pytest.mark.parametrize("positions", ["sinusoidal", "relative", "rotary", "none"])
def test_the_same_weights_reach_further(module, positions: str) -> None:
    config = configured(module.plugin.example, decoder="autoregressive", positions=positions)
    short = shaken(module.plugin.build(config, PROBLEM))
    long = module.plugin.build(config, replace(PROBLEM, horizon=9)).eval()
    long.load_state_dict(short.state_dict())
    batch = batch_of()
    torch.testing.assert_close(long(batch)[:, :5], short(batch), **CLOSE)


@pytest.mark.parametrize("module", [transformer, tcn_transformer])
@pytest.mark.parametrize("positions", ["sinusoidal", "learned", "relative", "rotary", "none"])
def test_a_rollout_equals_the_parallel_pass_over_what_it_fed(module, positions: str) -> None:
    network = shaken(
        module.plugin.build(configured(module.plugin.example, decoder="autoregressive", positions=positions), PROBLEM)
    )
    batch = batch_of()
    own = network(batch)
    fed = replace(batch, future=own[..., 0], future_mask=torch.ones_like(batch.future_mask))
    torch.testing.assert_close(network(fed, 1.0), own, **CLOSE)


class Probe(nn.Module):
    """Stands in for encoder and decoder, and remembers what it was called with."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: tuple[Tensor | float | None, ...] = ()

    def forward(self, *arguments: Tensor) -> tuple[Tensor, Tensor] | Tensor:
        self.seen = arguments
        if len(arguments) == 2:
            return arguments
        last = arguments[2]
        return last[:, None, :, None].expand(-1, 5, -1, -1)


def test_a_value_missing_in_one_channel_is_missing_there_alone() -> None:
    batch = batch_of()
    encoder, decoder = Probe(), Probe()
    Network(PROBLEM, encoder, decoder)(batch)
    past, mask = encoder.seen
    expected = batch.past.clone()
    expected[2, -2:, 0] = expected[2, -3, 0]  # the last value before the hole
    assert torch.equal(past, expected)
    assert mask[2].all()
    assert mask[1].tolist() == [False] * 5 + [True] * 7
    last = decoder.seen[2]
    torch.testing.assert_close(last[2], torch.stack([batch.past[2, -3, 0], batch.past[2, -1, 1]]))


def test_channels_are_folded_into_the_batch_and_back() -> None:
    batch, encoder, decoder = batch_of(), Probe(), Probe()
    prediction = Network(PROBLEM, encoder, decoder, channel_independent=True)(batch, 1.0)
    past, _ = encoder.seen
    assert past.shape == (6, 12, 2)
    for row, target in product(range(3), range(2)):
        channels, real = batch.past[row][:, [target, 2]], batch.past_mask[row][:, [target, 2]]
        assert torch.equal(past[2 * row + target][real], channels[real])
        assert torch.equal(decoder.seen[3][2 * row + target, 0, 0], batch.future[row, 0, target])
        last = last_real(batch.past, batch.past_mask)[row, target]
        assert torch.equal(prediction[row, :, target, 0], last.expand(5))


def test_under_channel_independence_a_hole_in_one_channel_is_none_in_another() -> None:
    problem, encoder = replace(PROBLEM, past_covariates=0), Probe()
    Network(problem, encoder, Probe(), channel_independent=True)(batch_of(problem=problem))
    _, mask = encoder.seen
    assert mask[4].tolist() == [True] * 10 + [False] * 2
    assert mask[5].all()


def test_a_missing_true_value_is_replaced_by_the_last_one_known() -> None:
    batch, decoder = batch_of(dirt=float("nan")), Probe()
    Network(PROBLEM, Probe(), decoder)(batch, 1.0)
    expected = batch.future.clone()
    expected[2, 1, 1] = expected[2, 0, 1]
    assert torch.equal(decoder.seen[3], expected)


@pytest.mark.parametrize("affine", [False, True])
def test_revin_covers_all_that_goes_in_and_is_undone_on_the_way_out(affine: bool) -> None:
    revin = RevIN(3, affine)
    for parameter in revin.parameters():
        nn.init.normal_(parameter)
    batch, encoder, decoder = batch_of(dirt=float("nan")), Probe(), Probe()
    prediction = Network(PROBLEM, encoder, decoder, revin)(batch, 1.0)
    scale, shift = revin.statistics(batch.past, batch.past_mask)
    past, _ = encoder.seen
    mask = batch.past_mask
    torch.testing.assert_close((past * scale + shift)[mask], batch.past[mask])
    assert not past[1, :5].any()
    assert torch.equal(past[2, -2:, 0], past[2, -3, 0].expand(2))
    future = decoder.seen[3] * scale[..., :2] + shift[..., :2]
    torch.testing.assert_close(future[batch.future_mask], batch.future[batch.future_mask])
    last = last_real(batch.past, mask)[:, :2]
    torch.testing.assert_close(prediction[..., 0], last[:, None].expand(-1, 5, -1))


def test_revin_follows_level_and_scale() -> None:
    config = configured(transformer.plugin.example, revin=True)
    network, batch = transformer.plugin.build(config, PROBLEM).eval(), batch_of()
    moved = replace(batch, past=torch.where(batch.past_mask, 8 * batch.past + 100, 0.0))
    torch.testing.assert_close(network(moved), 8 * network(batch) + 100, atol=1e-3, rtol=1e-4)


def test_last_real() -> None:
    values = torch.tensor([[[1.0, 4.0], [2.0, 5.0], [3.0, 6.0]]])
    mask = torch.tensor([[[True, False], [True, False], [False, False]]])
    assert last_real(values, mask).tolist() == [[2.0, 0.0]]


@pytest.mark.parametrize("off", [{"tcn_layers": 0}, {"encoder_layers": 0}, {"tcn_layers": 0, "encoder_layers": 0}])
@pytest.mark.parametrize("decoder", ["direct", "autoregressive"])
def test_parts_can_be_left_out(off: dict[str, int], decoder: str) -> None:
    config = tcn_transformer.plugin.config(d_model=16, stride=2, decoder=decoder, **off)
    network = tcn_transformer.plugin.build(config, PROBLEM)
    network(batch_of()).sum().backward()
    assert all(p.grad is not None for p in network.parameters())


@pytest.mark.parametrize(("lookback", "stride"), [(1, 1), (24, 1), (29, 1), (30, 2), (60, 4), (336, 16), (512, 32)])
def test_the_stride_suits_the_lookback(lookback: int, stride: int) -> None:
    assert tcn_transformer.stride_for(lookback) == stride
    problem = replace(PROBLEM, lookback=lookback)
    config = configured(tcn_transformer.plugin.example, stride=None)
    assert tcn_transformer.plugin.build(config, problem)(batch_of(problem=problem)).shape == (3, 5, 2, 1)
