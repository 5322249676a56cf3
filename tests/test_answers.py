"""Scores of answers by hand, and the edit distance against its definition."""

import json
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tsformer.evaluation.answers import answer_score, edit_distance

words = st.lists(st.sampled_from("abc"), max_size=7)


def by_definition(answer: list[str], truth: list[str]) -> int:
    @cache
    def distance(i: int, j: int) -> int:
        if i == 0 or j == 0:
            return i + j
        return min(
            distance(i - 1, j) + 1, distance(i, j - 1) + 1, distance(i - 1, j - 1) + (answer[i - 1] != truth[j - 1])
        )

    return distance(len(answer), len(truth))


@given(words, words)
def test_edit_distance_is_that_of_its_definition(answer: list[str], truth: list[str]) -> None:
    assert edit_distance(answer, truth) == by_definition(answer, truth) == edit_distance(truth, answer)


def test_edit_distance_of_the_textbook() -> None:
    assert edit_distance("kitten", "sitting") == 3
    assert edit_distance([4, 5, 6], [5, 6, 4]) == 2
    assert edit_distance([], ["a", "b"]) == 2
    assert edit_distance([], []) == 0


def test_a_score_by_hand() -> None:
    truth = [["a", "b", "c"], ["a", "b"], ["a"], []]
    answers = [["a", "b", "c"], ["a", "c", "b"], [], []]
    score = answer_score(answers, truth, answers, truth)
    assert score.overall == {
        "sequence_accuracy": 2 / 4,
        "token_accuracy": (4 + 1 + 0 + 1) / (4 + 3 + 2 + 1),  # with the end as a word
        "edit_distance": (0 + 1 + 1 + 0) / 4,
        "mean_length": 6 / 4,
        "true_length": 6 / 4,
        "examples": 4,
    }
    document = json.loads(json.dumps(score.to_json(), allow_nan=False))
    assert document == {"test": score.overall, "baselines": score.baselines}


def test_no_examples_have_no_score() -> None:
    score = answer_score([], [], [], [["a"]]).overall
    assert score["examples"] == 0
    assert {value for name, value in score.items() if name != "examples"} == {None}


def test_an_answer_is_needed_to_each_example() -> None:
    with pytest.raises(ValueError, match="1 answers to 2 examples"):
        answer_score([["a"]], [["a"], ["b"]], [["a"], ["b"]], [["a"]])


def test_naive_answers_are_the_text_itself_and_the_most_frequent_one() -> None:
    truth = [["a"], ["y"], ["y", "b"]]
    score = answer_score(truth, truth, [["a"], ["b"], ["y"]], [["x"], ["y"], ["y"], ["x"], ["y"]])
    copy, frequent = score.baselines["copy"], score.baselines["most_frequent"]
    assert copy["sequence_accuracy"] == pytest.approx(1 / 3)
    assert (copy["edit_distance"], copy["mean_length"]) == (pytest.approx(2 / 3), 1.0)
    assert frequent["sequence_accuracy"] == pytest.approx(1 / 3)
    assert frequent["token_accuracy"] == pytest.approx((1 + 2 + 1) / 7)
    assert answer_score([["x"]], [["x"]], [["a"]], [["x"], ["y"]]).baselines["most_frequent"]["sequence_accuracy"] == 1


def test_a_model_no_better_than_naive_answers_is_said() -> None:
    truth, texts, train = [["a", "b"], ["b", "c"]], [["a", "b"], ["c", "b"]], [["z"]]  # distances 1 and 2 on average
    [line] = answer_score([["a"], ["b"]], truth, texts, train).cautions("tiny")
    assert line == "tiny does not beat a copy of the text on the test part: edit distance 1 against 1"
    assert len(list(answer_score([[], []], truth, texts, train).cautions("tiny"))) == 2
    assert not list(answer_score(truth, truth, texts, train).cautions("tiny"))
    assert not list(answer_score(truth, truth, truth, truth).cautions("tiny"))
