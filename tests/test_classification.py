"""Classes: the loss against a definition and torch, measures against scikit-learn, and batches that add up."""

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score, f1_score
from sklearn.utils.class_weight import compute_class_weight

from tsformer.data.windows import Batch
from tsformer.nn.classification import ClassificationHead, ClassOutput, balanced_weights
from tsformer.nn.pooling import POOLINGS, PoolingKind

WEIGHTS = [0.5, 2.0, 1.0, 0.0]


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(0)


def _batch(labels) -> Batch:
    return Batch(label=torch.as_tensor(labels, dtype=torch.int64))


def _labels(count: int, classes: int = 4) -> torch.Tensor:
    """Some of them unlabelled."""
    return torch.randint(-1, classes, (count,))


@pytest.mark.parametrize("kind", POOLINGS)
def test_the_head_gives_logits_and_every_parameter_a_gradient(kind: PoolingKind) -> None:
    head = ClassificationHead(6, 3, kind, dropout=0.5)
    memory, mask = torch.randn(5, 7, 6), torch.rand(5, 7) < 0.7
    mask[:, -1] = True
    head(memory, mask).logsumexp(1).sum().backward()
    assert all((parameter.grad != 0).any() for parameter in head.parameters())
    head.eval()
    expected = head.pooling(memory, mask) @ head.linear.weight.T + head.linear.bias
    torch.testing.assert_close(head(memory, mask), expected)
    assert head(memory, mask).shape == (5, 3)


def test_the_head_drops_in_training_only() -> None:
    head, memory, mask = ClassificationHead(64, 3, dropout=0.5), torch.randn(5, 7, 64), torch.ones(5, 7).bool()
    assert not torch.equal(head(memory, mask), head(memory, mask))
    head.eval()
    assert torch.equal(head(memory, mask), head(memory, mask))


@pytest.mark.parametrize("weights", [None, WEIGHTS])
@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.7])
def test_the_loss_is_the_cross_entropy_with_smoothed_labels(smoothing: float, weights: list[float] | None) -> None:
    logits, labels = torch.randn(9, 4, dtype=torch.float64), torch.tensor([0, 1, 2, 3, 0, 1, -1, 2, -1])
    output = ClassOutput(4, smoothing, weights)
    loss = output.loss(logits, _batch(labels)).item()

    weight = np.ones(4) if weights is None else np.array(weights)
    logs = logits.numpy() - np.log(np.exp(logits.numpy()).sum(1, keepdims=True))
    total = count = 0.0
    for row, label in zip(logs, labels.tolist(), strict=True):
        if label >= 0:
            smoothed = (1.0 - smoothing) * np.eye(4)[label] + smoothing / 4
            assert smoothed.sum() == pytest.approx(1.0)
            total -= (weight * smoothed * row).sum()
            count += weight[label]
    assert loss == pytest.approx(total / count, rel=1e-12)

    by_torch = F.cross_entropy(logits, labels, torch.tensor(weight), ignore_index=-1, label_smoothing=smoothing)
    assert loss == pytest.approx(by_torch.item(), rel=1e-12)


def test_smoothing_punishes_certainty() -> None:
    certain, fair = torch.tensor([[50.0, 0.0, 0.0]]), torch.tensor([[math.log(0.8 + 0.2 / 3), 0.0, 0.0]])
    fair[0, 1:] = math.log(0.2 / 3)
    output = ClassOutput(3, smoothing=0.2)
    assert output.loss(fair, _batch([0])) < output.loss(certain, _batch([0]))
    logits = fair.clone().requires_grad_()
    output.loss(logits, _batch([0])).backward()
    torch.testing.assert_close(logits.grad, torch.zeros(1, 3), atol=1e-6, rtol=0)  # the smoothed labels are its minimum


def test_what_is_unlabelled_counts_nothing() -> None:
    output = ClassOutput(4, 0.1, WEIGHTS)
    logits = torch.randn(3, 4)
    labelled = output.loss(logits[:2], _batch([1, 2]))
    logits[2] = math.nan
    logits.requires_grad_()
    loss = output.loss(logits, _batch([1, 2, -1]))
    assert torch.equal(loss, labelled)
    loss.backward()
    assert (logits.grad[2] == 0).all()
    assert logits.grad.isfinite().all()
    assert torch.equal(output.tally(logits, _batch([1, 2, -1])), output.tally(logits[:2], _batch([1, 2])))


@pytest.mark.parametrize("labels", [[-1, -1], [3, 3]])  # none labelled; none with a weight
def test_nothing_that_counts_is_a_loss_of_zero(labels: list[int]) -> None:
    output, logits = ClassOutput(4, weights=WEIGHTS), torch.randn(2, 4, requires_grad=True)
    loss = output.loss(logits, _batch(labels))
    loss.backward()
    assert loss.item() == 0.0
    assert (logits.grad == 0).all()
    assert output.verdict(output.tally(logits, _batch(labels)).tolist()).loss == 0.0


def test_no_label_at_all_has_a_verdict() -> None:
    output = ClassOutput(3)
    verdict = output.verdict(output.tally(torch.randn(2, 3), _batch([-1, -1])).tolist())
    assert verdict.rank == (0.0, 0.0)
    assert verdict.measures == {"validation_accuracy": 0.0, "validation_f1": 0.0}


def test_probabilities() -> None:
    logits = torch.tensor([[0.0, math.log(3.0)], [1000.0, 0.0]])
    torch.testing.assert_close(ClassOutput(2).probabilities(logits), torch.tensor([[0.25, 0.75], [1.0, 0.0]]))


def test_the_tally_holds_the_confusion_matrix() -> None:
    logits = torch.eye(3)[[0, 1, 1, 2, 0]] * 9.0
    tally = ClassOutput(3).tally(logits, _batch([0, 0, 1, 1, -1]))
    assert tally.dtype == torch.float64
    assert tally[1:].tolist() == [4.0, 1.0, 1.0, 0.0, 0.0, 1.0, 1.0, 0.0, 0.0, 0.0]


@given(
    classes=st.integers(2, 6),
    count=st.integers(1, 40),
    size=st.integers(1, 40),
    seed=st.integers(0, 10**6),
    weighted=st.booleans(),
)
def test_the_verdict_of_any_batches_is_that_of_scikit_learn(
    classes: int, count: int, size: int, seed: int, weighted: bool
) -> None:
    generator = torch.Generator().manual_seed(seed)
    logits = torch.randn(count, classes, generator=generator)
    labels = torch.randint(-1, classes, (count,), generator=generator)
    labels[0] = 0  # at least one
    weights = torch.rand(classes, generator=generator).add(0.1).tolist() if weighted else None
    output = ClassOutput(classes, smoothing=0.1, weights=weights)
    tally = sum(
        output.tally(logits[start : start + size], _batch(labels[start : start + size]))
        for start in range(0, count, size)
    )
    verdict = output.verdict(tally.tolist())
    truth, guess = labels[labels >= 0], logits.argmax(1)[labels >= 0]
    f1 = f1_score(truth, guess, average="macro", zero_division=0)
    assert verdict.measures["validation_f1"] == pytest.approx(f1, abs=1e-12)
    assert verdict.measures["validation_accuracy"] == pytest.approx(accuracy_score(truth, guess), abs=1e-12)
    assert verdict.loss == pytest.approx(output.loss(logits.double(), _batch(labels)).item(), rel=1e-9)
    assert verdict.rank == (verdict.measures["validation_f1"], -verdict.loss)


def test_f1_comes_before_loss() -> None:
    output = ClassOutput(2)
    verdicts = [
        output.verdict(output.tally(torch.tensor(logits), _batch([0, 1])).tolist())
        for logits in ([[0.1, 0.0], [0.0, 0.1]], [[0.2, 0.0], [0.0, 0.2]], [[9.0, 0.0], [0.1, 0.0]])
    ]
    barely, better, wrong = verdicts
    assert wrong.loss < better.loss < barely.loss
    assert better.rank > barely.rank > wrong.rank


@pytest.mark.parametrize("labels", [[0, 0, 0, 1], [2, 2, 1, 0, 0, 0, 0], [1]])
def test_balanced_weights_are_those_of_scikit_learn(labels: list[int]) -> None:
    truth, present = np.array(labels), np.unique(labels)
    expected = np.ones(4)
    expected[present] = compute_class_weight("balanced", classes=present, y=truth)
    assert balanced_weights(np.array([-1, *labels, -1]), 4) == pytest.approx(expected.tolist())


def test_balanced_weights_without_labels() -> None:
    assert balanced_weights(np.full(3, -1), 2) == [1.0, 1.0]


def test_balanced_classes_weigh_the_same_in_the_loss() -> None:
    labels = torch.tensor([0] * 9 + [1])
    output = ClassOutput(2, weights=balanced_weights(labels.numpy(), 2))
    logits = torch.zeros(10, 2, requires_grad=True)
    output.loss(logits, _batch(labels)).backward()
    assert logits.grad.sum(0).abs().max().item() < 1e-7  # nine examples pull one way as much as one the other


def test_what_does_not_fit_is_refused() -> None:
    output, logits = ClassOutput(3), torch.zeros(2, 3)
    for labels, message in (
        ([0, 3], "label 3 is none of 3 classes, counted from 0; -1 = unlabelled"),
        ([-2, 0], "label -2 is none of 3 classes"),
        ([0, 1, 2], r"a prediction \(2, 3\) does not fit 3 labels of 3 classes"),
    ):
        for method in (output.loss, output.tally):
            with pytest.raises(ValueError, match=message):
                method(logits, _batch(labels))
    with pytest.raises(ValueError, match=r"a prediction \(2, 4\) does not fit 2 labels of 3 classes"):
        output.loss(torch.zeros(2, 4), _batch([0, 1]))
    with pytest.raises(ValueError, match=r"a loss needs batch\.label"):
        output.loss(logits, Batch())
    with pytest.raises(ValueError, match=r"labels must be int64 \[batch\], not torch.float32 \(2,\)"):
        output.loss(logits, Batch(label=torch.zeros(2)))
    with pytest.raises(ValueError, match="labels 0 to 3 are not all among 3 classes"):
        balanced_weights(np.array([0, 3]), 3)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"smoothing": 1.0}, r"label smoothing must be in \[0, 1\), not 1.0"),
        ({"smoothing": math.nan}, "label smoothing"),
        ({"weights": [1.0, 2.0]}, "3 classes need as many weights, not 2"),
        ({"weights": [1.0, -1.0, 2.0]}, "must be finite and not negative"),
        ({"weights": [1.0, math.nan, 2.0]}, "must be finite and not negative"),
    ],
)
def test_options_that_make_no_sense_are_refused(options: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ClassOutput(3, **options)
