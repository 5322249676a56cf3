"""The loss of tokens against torch's own, and that what is not real counts nothing."""

import math
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from tsformer.data.vocabulary import PAD
from tsformer.data.windows import Batch
from tsformer.nn.token_output import TokenOutput

BATCH, LENGTH, WORDS = 4, 6, 7


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(0)


def given() -> tuple[Tensor, Batch]:
    mask = torch.arange(LENGTH) < torch.tensor([6, 1, 3, 4])[:, None]
    tokens = torch.randint(3, WORDS, (BATCH, LENGTH)).masked_fill(~mask, PAD)
    return torch.randn(BATCH, LENGTH, WORDS), Batch(target_tokens=tokens, target_token_mask=mask)


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.5])
def test_loss_is_that_of_torch_over_real_tokens(smoothing: float) -> None:
    prediction, batch = given()
    expected = F.cross_entropy(
        prediction.transpose(1, 2), batch.target_tokens, ignore_index=PAD, label_smoothing=smoothing
    )
    torch.testing.assert_close(TokenOutput(smoothing).loss(prediction, batch), expected)


def test_smoothed_labels_sum_to_one_over_the_vocabulary() -> None:
    """By hand: 0.9 + 0.1 / 4 of the true word, 0.1 / 4 of each other one."""
    batch = Batch(target_tokens=torch.tensor([[2]]), target_token_mask=torch.tensor([[True]]))
    probability = torch.tensor([0.1, 0.2, 0.3, 0.4])
    loss = TokenOutput(0.1).loss(probability.log()[None, None], batch)
    expected = -(0.925 * math.log(0.3) + 0.025 * (math.log(0.1) + math.log(0.2) + math.log(0.4)))
    assert float(loss) == pytest.approx(expected, abs=1e-6)
    # where all logits are equal, labels of any smoothing cost log(words), for they sum to 1
    assert float(TokenOutput(0.5).loss(torch.zeros(1, 1, 4), batch)) == pytest.approx(math.log(4), abs=1e-6)


def test_what_is_not_real_counts_nothing_not_even_nan() -> None:
    prediction, batch = given()
    output = TokenOutput(0.1)
    dirty = torch.where(batch.target_token_mask[..., None], prediction, math.nan).requires_grad_()
    dirty_batch = Batch(
        target_tokens=batch.target_tokens.masked_fill(~batch.target_token_mask, -7),
        target_token_mask=batch.target_token_mask,
    )
    loss = output.loss(dirty, dirty_batch)
    assert torch.equal(loss, output.loss(prediction, batch))
    assert torch.equal(output.tally(dirty, dirty_batch), output.tally(prediction, batch))
    loss.backward()
    assert dirty.grad is not None
    assert torch.equal(dirty.grad.abs().sum(-1) > 0, batch.target_token_mask)


def test_no_real_token_is_a_loss_of_zero() -> None:
    prediction, batch = given()
    nothing = Batch(target_tokens=batch.target_tokens, target_token_mask=torch.zeros(BATCH, LENGTH, dtype=torch.bool))
    output = TokenOutput()
    assert float(output.loss(prediction, nothing)) == 0.0
    verdict = output.verdict(output.tally(prediction, nothing).tolist())
    assert (verdict.loss, verdict.measures) == (0.0, {"validation_token_accuracy": 0.0})


def test_logits_of_a_free_run_beyond_the_truth_count_nothing() -> None:
    prediction, batch = given()
    longer = torch.cat([prediction, torch.randn(BATCH, 3, WORDS)], dim=1)
    output = TokenOutput(0.2)
    assert torch.equal(output.loss(longer, batch), output.loss(prediction, batch))


def test_a_verdict_depends_on_no_batch_size() -> None:
    prediction, batch = given()
    output = TokenOutput(0.1)
    rows = [
        output.tally(
            prediction[row : row + 1],
            Batch(
                target_tokens=batch.target_tokens[row : row + 1],
                target_token_mask=batch.target_token_mask[row : row + 1],
            ),
        )
        for row in range(BATCH)
    ]
    verdict = output.verdict(torch.stack(rows).sum(0).tolist())
    assert verdict.loss == pytest.approx(float(output.loss(prediction, batch)), abs=1e-6)
    assert verdict.rank == (-verdict.loss,)
    right = (prediction.argmax(-1) == batch.target_tokens)[batch.target_token_mask].double().mean()
    assert verdict.measures == {"validation_token_accuracy": pytest.approx(float(right))}
    assert 0 < float(right) < 1


@pytest.mark.parametrize(
    ("shape", "changes"),
    [
        ((BATCH, LENGTH, WORDS), {"target_tokens": None}),
        ((BATCH, LENGTH, WORDS), {"target_token_mask": None}),
        ((BATCH, LENGTH - 1, WORDS), {}),
        ((BATCH + 1, LENGTH, WORDS), {}),
        ((BATCH, WORDS), {}),
    ],
)
def test_what_does_not_fit_is_refused(shape: tuple[int, ...], changes: dict[str, Any]) -> None:
    _, batch = given()
    parts = {"target_tokens": batch.target_tokens, "target_token_mask": batch.target_token_mask, **changes}
    with pytest.raises(ValueError, match="target"):
        TokenOutput().loss(torch.zeros(shape), Batch(**parts))


@pytest.mark.parametrize("smoothing", [-0.1, 1.0])
def test_smoothing_is_a_share(smoothing: float) -> None:
    with pytest.raises(ValueError, match="smoothing"):
        TokenOutput(smoothing)
