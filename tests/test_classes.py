"""Scores of classes: against scikit-learn, by hand where it has no answer, and what is said of them."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.dummy import DummyClassifier
from sklearn.metrics import accuracy_score, classification_report, confusion_matrix, f1_score, log_loss

from tsformer.evaluation.classes import ClassScore, cautions, class_score, majority

NAMES = ("a", "b", "c", "d")


def certain(predicted, classes=4):
    return np.eye(classes)[predicted]


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000), st.integers(2, 6), st.integers(1, 30))
def test_it_agrees_with_scikit_learn(seed, classes, examples):
    generator = np.random.default_rng(seed)
    labels = generator.integers(0, classes, examples)
    probabilities = generator.dirichlet(np.full(classes, 0.3), examples)
    names = tuple(f"class {i}" for i in range(classes))
    score = class_score(labels, probabilities, names)
    predicted, every = probabilities.argmax(1), list(range(classes))
    assert score.overall["examples"] == examples
    assert score.overall["accuracy"] == pytest.approx(accuracy_score(labels, predicted))
    assert score.overall["macro_f1"] == pytest.approx(f1_score(labels, predicted, average="macro", zero_division=0))
    assert score.overall["log_loss"] == pytest.approx(log_loss(labels, probabilities, labels=every))
    np.testing.assert_array_equal(score.confusion, confusion_matrix(labels, predicted, labels=every))
    assert score.confusion.dtype == np.int64
    report = classification_report(
        labels, predicted, labels=every, target_names=names, output_dict=True, zero_division=0
    )
    for number, name in enumerate(names):
        theirs = report[name]
        if number in labels or number in predicted:
            expected = (theirs["precision"], theirs["recall"], theirs["f1-score"], theirs["support"])
            assert tuple(score.by_class[name].values()) == pytest.approx(expected)
        else:
            assert tuple(score.by_class[name].values()) == (None, None, None, 0)


def test_numbers_by_hand():
    score = class_score(np.array([0, 0, 1, 2]), certain([0, 1, 1, 1]), NAMES)
    assert score.by_class["a"] == {"precision": 1.0, "recall": 0.5, "f1": pytest.approx(2 / 3), "support": 2}
    assert score.by_class["b"] == {"precision": pytest.approx(1 / 3), "recall": 1.0, "f1": 0.5, "support": 1}
    assert score.by_class["c"] == {"precision": 0.0, "recall": 0.0, "f1": 0.0, "support": 1}
    assert score.overall["macro_f1"] == pytest.approx((2 / 3 + 1 / 2 + 0) / 3)  # "d" occurs nowhere
    assert score.names == NAMES


def test_no_examples_have_no_score():
    score = class_score(np.array([], dtype=np.int64), np.zeros((0, 4)), NAMES)
    assert score.overall == {"accuracy": None, "macro_f1": None, "log_loss": None, "examples": 0}
    assert score.confusion.shape == (4, 4)
    assert not score.confusion.any()


def test_json_holds_plain_numbers():
    score = class_score(np.array([0, 1]), certain([0, 2]), NAMES)
    document = json.loads(json.dumps(score.to_json(), allow_nan=False))
    assert document["accuracy"] == 0.5
    assert document["by_class"]["d"]["f1"] is None
    assert document["confusion"] == [[1, 0, 0, 0], [0, 0, 1, 0], [0, 0, 0, 0], [0, 0, 0, 0]]


def test_the_majority_is_that_of_the_training_part():
    train, test = np.array([1, 1, 1, 0, 2]), np.array([0, 1, 2, 2, 2])
    theirs = DummyClassifier(strategy="prior").fit(np.zeros((5, 1)), train)
    score = majority(train, test, NAMES[:3])
    assert score.overall == class_score(test, theirs.predict_proba(np.zeros((5, 1))), NAMES[:3]).overall
    assert score.overall["accuracy"] == 0.2
    assert score.confusion[:, 1].tolist() == [1, 1, 3]


def test_a_class_that_training_lacks_has_a_finite_loss():
    assert majority(np.array([0, 0]), np.array([1]), NAMES).overall["log_loss"] == pytest.approx(-np.log(2**-52))


def said(labels, predicted, train=(0, 1, 2, 3)) -> list[str]:
    labels, train = np.array(labels), np.array(train)
    score: ClassScore = class_score(labels, certain(predicted), NAMES)
    return list(cautions("tcn", score, majority(train, labels, NAMES), train))


def test_nothing_is_said_of_a_good_score():
    assert said([0, 1, 2, 3], [0, 1, 2, 3]) == []
    assert said([0, 0], [0, 0]) == []  # both are perfect


def test_a_majority_that_is_not_beaten_is_named():
    (line, never) = said([0, 0, 0, 1], [0, 0, 0, 0])
    assert line == (
        "tcn does not beat the majority class on the test part: "
        "macro-F1 0.4286 against 0.4286, accuracy 0.75 against 0.75, log loss 9.011 against 1.386"
    )
    assert never == "tcn never predicts class b, though the test part has examples"
    assert said([0, 0, 0, 1, 1], [1, 1, 1, 0, 0])[0].endswith(
        "macro-F1 0 against 0.375, accuracy 0 against 0.6, log loss 36.04 against 1.386"
    )


def test_classes_that_are_lacking_are_named_once():
    assert said([0, 1, 2, 3], [0, 1, 0, 0], train=(0, 1, 3))[-2:] == [
        "the training part has no example of class c, which no model can learn",
        "tcn never predicts class d, though the test part has examples",
    ]
    assert said([0, 1, 2, 3], [0, 1, 0, 0], train=(0, 1))[-1] == (
        "the training part has no example of 2 of the classes (c, d), which no model can learn"
    )
