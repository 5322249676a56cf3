"""Decoders: what they are fed, what they may see, and that short cuts change nothing."""

import math
from typing import Any

import pytest
import torch
from scipy import stats
from torch import Tensor, nn

from tsformer.errors import UsageError
from tsformer.nn.decoders import AutoregressiveDecoder
from tsformer.nn.direct import FlatHead, QueryDecoder
from tsformer.nn.distributions import Normal
from tsformer.nn.layers import Decoder, LayerSpec
from tsformer.nn.points import Point
from tsformer.nn.positions import NoPositions, SinusoidalPositions

BATCH, TOKENS, D, TARGETS, HORIZON = 3, 6, 16, 2, 5
CLOSE = {"atol": 1e-5, "rtol": 1e-5}


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(0)


def stack(norm_first: bool = True, dropout: float = 0.0) -> Decoder:
    return Decoder(2, LayerSpec(D, 4, 32, dropout, norm_first=norm_first))


def autoregressive(horizon: int = HORIZON, norm_first: bool = True, **options: Any) -> AutoregressiveDecoder:
    options = {"output": Point(), "sampling": "steps", **options}
    return AutoregressiveDecoder(stack(norm_first), targets=TARGETS, horizon=horizon, **options)


def given(batch: int = BATCH) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """memory, memory_mask, last, future"""
    mask = torch.arange(TOKENS)[None] >= torch.arange(batch)[:, None]
    return torch.randn(batch, TOKENS, D), mask, torch.randn(batch, TARGETS), torch.randn(batch, HORIZON, TARGETS)


def fed(decoder: AutoregressiveDecoder) -> list[Tensor]:
    """Collects what the decoder embeds."""
    seen: list[Tensor] = []
    decoder.embed.register_forward_pre_hook(lambda _, args: seen.append(args[0].clone()))
    return seen


DECODERS = {
    "steps": autoregressive,
    "two_pass": lambda: autoregressive(sampling="two_pass"),
    "samples": lambda: autoregressive(output=Normal(), sampling="two_pass", feedback="sample"),
    "query": lambda: QueryDecoder(stack(), Point(), TARGETS, HORIZON),
    "flat": lambda: FlatHead(Point(), TARGETS, HORIZON, TOKENS, D),
}


@pytest.mark.parametrize("kind", DECODERS)
class TestEveryDecoder:
    def test_shape_and_gradients(self, kind: str) -> None:
        decoder = DECODERS[kind]()
        memory, mask, last, future = given()
        memory.requires_grad_()
        for truth in (0.0, 0.5, 1.0):
            decoder.zero_grad()
            prediction = decoder(memory, mask, last, future, truth)
            assert prediction.shape == (BATCH, HORIZON, TARGETS, 2 if kind == "samples" else 1)
            prediction.square().sum().backward()
            for parameter in decoder.parameters():
                assert parameter.grad is not None
                assert parameter.grad.isfinite().all()
        assert torch.equal(memory.grad.abs().sum(-1) > 0, mask)

    def test_the_future_does_not_matter_at_truth_0(self, kind: str) -> None:
        decoder = DECODERS[kind]().eval()
        memory, mask, last, future = given()
        expected = decoder(memory, mask, last)
        assert torch.equal(decoder(memory, mask, last, future), expected)
        assert torch.equal(decoder(memory, mask, last, torch.full_like(future, math.nan), 0.0), expected)

    def test_nan_behind_the_mask_changes_nothing(self, kind: str) -> None:
        decoder = DECODERS[kind]().eval()
        memory, mask, last, _ = given()
        dirty = torch.where(mask[..., None], memory, math.nan)
        assert torch.equal(decoder(dirty, mask, last), decoder(memory, mask, last))

    def test_a_row_does_not_depend_on_its_batch(self, kind: str) -> None:
        decoder = DECODERS[kind]().eval()
        memory, mask, last, _ = given()
        whole = decoder(memory, mask, last)
        for row in range(BATCH):
            alone = decoder(memory[row : row + 1], mask[row : row + 1], last[row : row + 1])
            torch.testing.assert_close(alone[0], whole[row], **CLOSE)

    def test_steps_differ(self, kind: str) -> None:
        memory, mask, last, _ = given()
        prediction = DECODERS[kind]().eval()(memory, mask, last)[..., 0]
        assert ((prediction[:, 1:] - prediction[:, :-1]).abs().amax((0, 2)) > 1e-3).all()


def test_teacher_forcing_shifts_by_one() -> None:
    decoder = autoregressive()
    seen = fed(decoder)
    memory, mask, last, _ = given(1)
    last = torch.tensor([[7.0, 70.0]])
    future = torch.tensor([[[1.0, 10.0], [2.0, 20.0], [3.0, 30.0], [4.0, 40.0], [5.0, 50.0]]])
    decoder(memory, mask, last, future, 1.0)
    expected = torch.tensor([[[7.0, 70.0], [1.0, 10.0], [2.0, 20.0], [3.0, 30.0], [4.0, 40.0]]])
    assert len(seen) == 1
    assert torch.equal(seen[0], expected)


@pytest.mark.parametrize("step", range(HORIZON))
def test_teacher_forcing_is_causal(step: int) -> None:
    decoder = autoregressive()
    memory, mask, last, future = given()
    before = decoder(memory, mask, last, future, 1.0)
    future[:, step:] += torch.randn(BATCH, HORIZON - step, TARGETS)
    changed = (decoder(memory, mask, last, future, 1.0) - before).abs().amax((0, 2, 3)) > 1e-6
    assert changed.tolist() == [later > step for later in range(HORIZON)]


def test_free_running_feeds_its_own_point() -> None:
    decoder = autoregressive()
    seen = fed(decoder)
    memory, mask, last, future = given()
    with torch.no_grad():
        prediction = decoder(memory, mask, last, future)
    inputs = torch.cat(seen, 1)
    assert torch.equal(inputs[:, 0], last)
    assert torch.equal(inputs[:, 1:], prediction[:, :-1, :, 0])


@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("truth", [0.0, 0.5])
def test_cached_equals_uncached(norm_first: bool, truth: float) -> None:
    decoder = autoregressive(norm_first=norm_first)
    memory, mask, last, future = given()
    results = []
    for decoder.cache in (True, False):
        torch.manual_seed(1)
        with torch.inference_mode():
            results.append(decoder(memory, mask, last, future, truth))
    torch.testing.assert_close(results[0], results[1], **CLOSE)


@pytest.mark.parametrize("truth", [0.0, 0.5, 1.0])
def test_same_outputs_with_and_without_gradients(truth: float) -> None:
    decoder = autoregressive()
    memory, mask, last, future = given()
    torch.manual_seed(1)
    with_gradients = decoder(memory, mask, last, future, truth)
    torch.manual_seed(1)
    with torch.inference_mode():
        without = decoder(memory, mask, last, future, truth)
    assert with_gradients.requires_grad
    torch.testing.assert_close(with_gradients.detach(), without, **CLOSE)


@pytest.mark.parametrize("truth", [0.0, 0.5])
def test_gradients_are_those_of_steps_with_detached_feedback(truth: float) -> None:
    decoder = autoregressive()
    memory, mask, last, future = (tensor.requires_grad_(tensor.is_floating_point()) for tensor in given())
    sources = [memory, last, *([future] if truth else []), *decoder.parameters()]
    goal = torch.randn(BATCH, HORIZON, TARGETS)
    torch.manual_seed(1)
    loss = decoder(memory, mask, last, future, truth).sub(goal[..., None]).square().sum()
    parallel = torch.autograd.grad(loss, sources)

    torch.manual_seed(1)
    coins = torch.rand(BATCH, HORIZON, 1) < truth
    inputs, loss = last[:, None], torch.zeros(())
    for step in range(HORIZON):
        x = decoder.layers(decoder.positions(decoder.embed(inputs)), memory, mask)
        prediction = decoder.head(x)[:, -1]
        loss = loss + (prediction - goal[:, step]).square().sum()
        fed_back = torch.where(coins[:, step], future[:, step], prediction.detach())
        inputs = torch.cat([inputs, fed_back[:, None]], 1)
    for a, b in zip(parallel, torch.autograd.grad(loss, sources), strict=True):
        torch.testing.assert_close(a, b, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("sampling", ["steps", "two_pass"])
def test_scheduled_sampling_tosses_a_coin_for_each_step_and_sample(sampling: str) -> None:
    batch = 2000
    decoder = AutoregressiveDecoder(Decoder(1, LayerSpec(4, 1, 4)), Point(), TARGETS, HORIZON, sampling=sampling)
    seen = fed(decoder)
    last, future = torch.zeros(batch, TARGETS), torch.full((batch, HORIZON, TARGETS), 99.0)
    decoder(torch.randn(batch, 2, 4), torch.ones(batch, 2, dtype=torch.bool), last, future, 0.3)
    true = (seen[-1] == 99.0)[:, 1:]
    assert torch.equal(true[..., 0], true[..., 1])  # a step is fed whole
    coins = true[..., 0].double()
    torch.testing.assert_close(coins.mean(0), torch.full((HORIZON - 1,), 0.3, dtype=torch.float64), atol=0.05, rtol=0)
    correlation = torch.corrcoef(coins.T) - torch.eye(HORIZON - 1, dtype=torch.float64)
    assert correlation.abs().max() < 0.1  # neither tossed once for a sample ...
    assert coins.mean(1).unique().numel() == HORIZON  # ... nor once for a step
    assert not (seen[-1][:, 0] == 99.0).any()


@pytest.mark.parametrize("sampling", ["steps", "two_pass"])
def test_scheduled_sampling_ends_in_its_limits(sampling: str) -> None:
    decoder = autoregressive(sampling=sampling)
    memory, mask, last, future = given()
    forced, free = decoder(memory, mask, last, future, 1.0), decoder(memory, mask, last, future, 0.0)
    torch.testing.assert_close(decoder(memory, mask, last, future, 1 - 1e-7), forced, **CLOSE)
    between = decoder(memory, mask, last, future, 0.5)
    assert not torch.allclose(between, forced)
    assert not torch.allclose(between, free)
    if sampling == "steps":  # two passes start from the truth even at 1e-7: an approximation, in the limit too
        torch.testing.assert_close(decoder(memory, mask, last, future, 1e-7), free, **CLOSE)


class TestTwoPasses:
    def test_equal_a_composition_by_hand(self) -> None:
        decoder = autoregressive(sampling="two_pass")
        memory, mask, last, future = (tensor.requires_grad_(tensor.is_floating_point()) for tensor in given())
        sources = [memory, last, future, *decoder.parameters()]
        torch.manual_seed(1)
        prediction = decoder(memory, mask, last, future, 0.5)

        torch.manual_seed(1)
        coins = torch.rand(BATCH, HORIZON, 1) < 0.5
        assert 0 < coins.sum() < coins.numel()
        first = decoder(memory, mask, last, future, 1.0)[..., 0].detach()
        mixed = torch.where(coins, future, first)
        expected = decoder(memory, mask, last, mixed, 1.0)  # teacher forcing on the mixture
        torch.testing.assert_close(prediction, expected, **CLOSE)
        goal = torch.randn(prediction.shape)
        ours = torch.autograd.grad((prediction * goal).sum(), sources)
        for a, b in zip(ours, torch.autograd.grad((expected * goal).sum(), sources), strict=True):
            torch.testing.assert_close(a, b, **CLOSE)

    @pytest.mark.parametrize(
        ("truth", "training", "widths"),
        [(0.5, True, [HORIZON] * 2), (0.5, False, [1] * HORIZON), (0.0, True, [1] * HORIZON + [HORIZON])],
    )
    def test_are_for_training_with_some_truth(self, truth: float, training: bool, widths: list[int]) -> None:
        decoder = autoregressive(sampling="two_pass").train(training)
        seen = fed(decoder)
        with torch.set_grad_enabled(training):
            decoder(*given(), truth)
        assert [inputs.shape[1] for inputs in seen] == widths

    def test_see_nothing_of_what_is_to_come(self) -> None:
        decoder = autoregressive(sampling="two_pass")
        memory, mask, last, future = given()
        for step in range(HORIZON):
            changed = future.clone()
            changed[:, step:] += 1.0
            torch.manual_seed(1)
            before = decoder(memory, mask, last, future, 0.5)
            torch.manual_seed(1)
            after = decoder(memory, mask, last, changed, 0.5)
            torch.testing.assert_close(after[:, : step + 1], before[:, : step + 1], **CLOSE)


class TestFeedbackOfSamples:
    @pytest.mark.parametrize("sampling", ["steps", "two_pass"])
    def test_draws_from_the_predicted_distribution(self, sampling: str) -> None:
        decoder = autoregressive(output=Normal(), sampling=sampling, feedback="sample")
        nn.init.zeros_(decoder.head.weight)  # the same distribution everywhere, whatever was fed
        decoder.head.bias.data = torch.tensor([3.0, 1.0, -3.0, 2.0])
        seen, batch = fed(decoder), 500
        memory, mask = torch.randn(batch, TOKENS, D), torch.ones(batch, TOKENS, dtype=torch.bool)
        decoder(memory, mask, torch.zeros(batch, TARGETS), torch.full((batch, HORIZON, TARGETS), 99.0), 0.5)
        own = seen[-1][:, 1:].detach()
        own = own[own[..., 0] != 99.0].double().numpy()
        assert len(own) > 900
        for target, (mean, raw) in enumerate([(3.0, 1.0), (-3.0, 2.0)]):
            expected = stats.norm(mean, math.log(1 + math.exp(raw)))
            assert stats.kstest(own[:, target], expected.cdf).pvalue > 0.001

    def test_a_rollout_feeds_what_it_drew(self) -> None:
        decoder = autoregressive(output=Normal(), feedback="sample")
        seen = fed(decoder)
        memory, mask, last, _ = given()
        prediction = decoder(memory, mask, last)
        stepped, again = torch.cat(seen[:HORIZON], 1), seen[HORIZON]
        assert torch.equal(stepped, again)  # the parallel pass sees the very values of the rollout
        assert not torch.allclose(again[:, 1:], decoder.output.point(prediction)[:, :-1], atol=1e-2)

    def test_prediction_feeds_the_mean_and_draws_nothing(self) -> None:
        decoder = autoregressive(output=Normal(), feedback="sample").eval()
        seen = fed(decoder)
        memory, mask, last, _ = given()
        state = torch.random.get_rng_state()
        with torch.inference_mode():
            prediction = decoder(memory, mask, last)
        assert torch.equal(torch.random.get_rng_state(), state)
        assert torch.equal(torch.cat(seen, 1)[:, 1:], prediction[:, :-1, :, 0])

    def test_needs_a_distribution(self) -> None:
        with pytest.raises(UsageError, match=r"output point has none; choose another output"):
            autoregressive(feedback="sample")


def test_values_of_its_own_carry_no_gradient() -> None:
    for options in ({"sampling": "steps"}, {"sampling": "two_pass"}, {"output": Normal(), "feedback": "sample"}):
        decoder = autoregressive(**options)
        inputs: list[Tensor] = []
        decoder.embed.register_forward_pre_hook(lambda _, args, inputs=inputs: inputs.append(args[0]))
        for truth in (0.0, 0.5):
            decoder(*given(), truth)
            assert not inputs[-1].requires_grad


def test_positions_can_be_chosen() -> None:
    assert isinstance(autoregressive().positions, SinusoidalPositions)
    layers = Decoder(1, LayerSpec(D, 4, 32))
    decoder = AutoregressiveDecoder(layers, Point(), TARGETS, HORIZON, positions=NoPositions())
    memory, mask, last, future = given()
    before = decoder(memory, mask, last, future, 1.0)
    after = decoder(memory, mask, last, future[:, [1, 0, 2, 3, 4]], 1.0)
    torch.testing.assert_close(after[:, 3:], before[:, 3:], **CLOSE)  # which of the two came first is not seen
    assert not torch.allclose(after[:, 1], before[:, 1])


def test_the_same_weights_reach_further() -> None:
    short, long = autoregressive(), autoregressive(horizon=40)
    long.load_state_dict(short.state_dict())
    memory, mask, last, _ = given()
    prediction = long(memory, mask, last)
    assert prediction.shape[1] == 40
    torch.testing.assert_close(prediction[:, :HORIZON], short(memory, mask, last), **CLOSE)


@pytest.mark.parametrize("truth", [0.5, 1.0])
def test_truth_needs_a_future(truth: float) -> None:
    memory, mask, last, future = given()
    for wrong in (None, future[:, 1:]):
        with pytest.raises(ValueError, match=f"truth {truth} needs the true future of 5 steps"):
            autoregressive()(memory, mask, last, wrong, truth)


@pytest.mark.parametrize("truth", [-0.1, 1.1, math.nan])
def test_truth_is_a_probability(truth: float) -> None:
    with pytest.raises(ValueError, match="truth is a probability"):
        autoregressive()(*given(), truth)


def test_queries_see_each_other() -> None:
    decoder = QueryDecoder(stack(), Point(), TARGETS, HORIZON)
    memory, mask, last, _ = given()
    decoder(memory, mask, last)[:, 0].sum().backward()
    assert (decoder.queries.grad.abs().amax(-1) > 0).all()


def test_a_flat_head_is_one_linear_map() -> None:
    head = FlatHead(Point(), TARGETS, HORIZON, TOKENS, D)
    memory, mask, last, _ = given()
    zeroed = memory * mask[..., None]
    expected = nn.functional.linear(zeroed.reshape(BATCH, -1), head.head.weight, head.head.bias)
    torch.testing.assert_close(head(memory, mask, last), expected.view(BATCH, HORIZON, TARGETS, 1), **CLOSE)


def test_a_flat_head_needs_its_tokens() -> None:
    memory, mask, last, _ = given()
    with pytest.raises(ValueError, match="built for 9 tokens was given 6"):
        FlatHead(Point(), TARGETS, HORIZON, 9, D)(memory, mask, last)


def test_a_decoder_built_for_covariates_needs_them() -> None:
    memory, mask, last, _ = given()
    with pytest.raises(ValueError, match="needs what is known of each step"):
        autoregressive(known=3)(memory, mask, last)


@pytest.mark.parametrize("sampling", ["steps", "two_pass"])
@pytest.mark.parametrize("truth", [0.0, 0.5, 1.0])
def test_what_is_known_of_a_step_reaches_it_and_no_earlier_one(sampling: str, truth: float) -> None:
    decoder = autoregressive(sampling=sampling, known=3)
    memory, mask, last, future = given()
    known = torch.randn(BATCH, HORIZON, 3)

    def predicted(known: Tensor) -> Tensor:
        torch.manual_seed(0)  # the same coins
        return decoder(memory, mask, last, future, truth, known)

    before = predicted(known)
    for step in range(HORIZON):
        other = known.clone()
        other[:, step] += 1
        changed = (predicted(other) - before).abs().amax((0, 2, 3)) > 1e-6
        assert changed.tolist()[: step + 1] == [False] * step + [True]
