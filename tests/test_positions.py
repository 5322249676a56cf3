"""Positions that are added: the formula, any width, any length, left padding, and a table that ends."""

import math

import pytest
import torch

from tsformer.errors import UsageError
from tsformer.nn.positions import LearnedPositions, NoPositions, SinusoidalPositions, additive_positions, sinusoid


@pytest.mark.parametrize("d_model", [1, 2, 7, 16])
def test_formula(d_model: int) -> None:
    table = sinusoid(12, d_model)
    assert table.shape == (12, d_model)
    for position in (0, 1, 11):
        for index in range(d_model):
            angle = position / 10_000 ** (2 * (index // 2) / d_model)
            expected = math.sin(angle) if index % 2 == 0 else math.cos(angle)
            assert table[position, index].item() == pytest.approx(expected, abs=1e-6)


def test_far_positions_keep_their_phase() -> None:
    assert sinusoid(1_000_001, 2)[1_000_000, 0].item() == pytest.approx(math.sin(1_000_000), abs=1e-6)


def test_grows_without_changing_what_was() -> None:
    positions = SinusoidalPositions(6)
    short = positions(torch.zeros(1, 3, 6))
    long = positions(torch.zeros(1, 50, 6))
    assert torch.equal(long[:, :3], short)
    assert torch.equal(long[0], sinusoid(50, 6))


def test_is_not_saved() -> None:
    positions = SinusoidalPositions(6)
    positions(torch.zeros(1, 9, 6))
    assert positions.state_dict() == {}


def test_left_padding_does_not_shift() -> None:
    positions = SinusoidalPositions(8)
    mask = torch.tensor([[False, False, True, True, True], [True] * 5])
    added = positions(torch.zeros(2, 5, 8), mask)
    assert torch.equal(added[0, 2:], sinusoid(3, 8))
    assert torch.equal(added[1], sinusoid(5, 8))


def test_a_gap_is_no_step() -> None:
    added = SinusoidalPositions(4)(torch.zeros(1, 4, 4), torch.tensor([[True, False, True, True]]))
    assert torch.equal(added[0, [0, 2, 3]], sinusoid(3, 4))


def test_offset_continues() -> None:
    positions = SinusoidalPositions(8)
    x = torch.randn(2, 6, 8)
    parts = [positions(x[:, step : step + 1], offset=step) for step in range(6)]
    assert torch.equal(torch.cat(parts, 1), SinusoidalPositions(8)(x))


def test_a_table_born_in_inference_mode_can_be_trained_with() -> None:
    positions = SinusoidalPositions(4)
    with torch.inference_mode():
        positions(torch.zeros(1, 5, 4))
    assert not positions.table(5).is_inference()
    x = torch.zeros(1, 5, 4, requires_grad=True)
    (positions(x) * positions(x)).sum().backward()
    torch.testing.assert_close(x.grad[0], 2 * sinusoid(5, 4))


def learned(length: int, d_model: int) -> LearnedPositions:
    positions = LearnedPositions(d_model, length)
    torch.nn.init.normal_(positions.table)
    return positions


def test_learned_equals_an_embedding_layer() -> None:
    positions = learned(7, 6)
    theirs = torch.nn.Embedding.from_pretrained(positions.table.detach().clone(), freeze=False)
    x, weight = torch.randn(2, 5, 6), torch.randn(2, 5, 6)
    for mask, steps in (
        (None, torch.arange(5).expand(2, 5)),
        (
            torch.tensor([[False, False, True, True, True], [True] * 5]),
            torch.tensor([[0, 0, 0, 1, 2], [0, 1, 2, 3, 4]]),
        ),
    ):
        for offset in (0, 2):
            ours, expected = positions(x, mask, offset), x + theirs(steps + offset)
            assert torch.equal(ours, expected)
            positions.zero_grad()
            theirs.zero_grad()
            (ours * weight).sum().backward()
            (expected * weight).sum().backward()
            torch.testing.assert_close(positions.table.grad, theirs.weight.grad)


def test_learned_starts_as_sines() -> None:
    assert torch.equal(LearnedPositions(6, 9).table, sinusoid(9, 6))


@pytest.mark.parametrize(("steps", "offset"), [(8, 0), (1, 7)])
def test_learned_says_when_its_table_ends(steps: int, offset: int) -> None:
    with pytest.raises(UsageError, match=r"learned positions end after 7 steps, and 8 were given; .*other positions"):
        learned(7, 4)(torch.zeros(1, steps, 4), offset=offset)


def test_learned_counts_real_steps_up_to_the_end() -> None:
    positions, mask = learned(3, 4), torch.arange(9)[None] >= 6
    added = positions(torch.zeros(1, 9, 4), mask)
    assert torch.equal(added[0, 6:], positions.table)
    with pytest.raises(UsageError, match="3 steps, and 4 were given"):
        positions(torch.zeros(1, 9, 4), torch.arange(9)[None] >= 5)


def test_kinds() -> None:
    x = torch.randn(1, 3, 4)
    assert torch.equal(additive_positions("sinusoidal", 4, 3)(x), x + sinusoid(3, 4))
    assert isinstance(additive_positions("learned", 4, 3), LearnedPositions)
    for kind in ("relative", "rotary", "none"):
        nothing = additive_positions(kind, 4, 3)
        assert isinstance(nothing, NoPositions)
        assert torch.equal(nothing(x, torch.ones(1, 3, dtype=torch.bool), offset=9), x)
    with pytest.raises(ValueError, match="unknown positions 'sines'"):
        additive_positions("sines", 4, 3)
