"""Beam search against all answers that there are, and against the most probable word each time."""

import itertools
import math
from typing import Any

import pytest
import torch
from torch import Tensor

from tsformer.data.vocabulary import CLS, PAD, SEP
from tsformer.nn.beam import beam_search

WORDS = (4, 5, 6, 7, 8)
VOCABULARY = 9


class Chain:
    """Answers whose next word depends on the last two, and on the example: logits out of a table, one to each."""

    def __init__(self, tables: Tensor) -> None:
        self.tables = tables  # [batch, vocabulary, vocabulary, vocabulary]
        self.examples = torch.arange(len(tables))
        self.last = torch.full((len(tables),), PAD)
        self.before = self.last
        self.calls = 0

    def logits(self, newest: Tensor) -> Tensor:
        self.calls += 1
        self.before, self.last = self.last, newest
        return self.tables[self.examples, self.before, self.last]

    def take(self, rows: Tensor) -> None:
        self.examples, self.before, self.last = self.examples[rows], self.before[rows], self.last[rows]


def tables(batch: int = 4, spread: float = 1.5, seed: int = 0) -> Tensor:
    return spread * torch.randn(batch, *[VOCABULARY] * 3, generator=torch.Generator().manual_seed(seed))


def search(table: Tensor, **options: Any) -> tuple[Tensor, Tensor]:
    given = {"beam": 1, "most": 4, "length_penalty": 1.0, **options}
    return beam_search(Chain(table), len(table), device=torch.device("cpu"), **given)


def log_probability(table: Tensor, answer: tuple[int, ...]) -> float:
    """Word by word, in plain arithmetic over the words that may be said."""
    before, last, total = PAD, CLS, 0.0
    for word in answer:
        said = {other: math.exp(float(table[before, last, other])) for other in (SEP, *WORDS)}
        total += math.log(said[word] / sum(said.values()))
        before, last = last, word
    return total


def all_answers(most: int) -> list[tuple[int, ...]]:
    return [(*words, SEP) for length in range(most) for words in itertools.product(WORDS, repeat=length)]


def words_of(row: Tensor) -> tuple[int, ...]:
    return tuple(int(word) for word in row if word != PAD)


@pytest.mark.parametrize("length_penalty", [0.0, 0.6, 1.0, 3.0])
def test_a_wide_beam_finds_the_best_of_all_answers(length_penalty: float) -> None:
    table = tables()
    tokens, scores = search(table, beam=1000, length_penalty=length_penalty)
    lengths = set()
    for row in range(len(table)):
        merit = {
            answer: log_probability(table[row], answer) / ((5 + len(answer)) / 6) ** length_penalty
            for answer in all_answers(4)
        }
        best = max(merit, key=merit.__getitem__)
        assert (*words_of(tokens[row]), SEP) == best
        assert float(scores[row]) == pytest.approx(log_probability(table[row], best), abs=1e-4)
        lengths.add(len(best))
    assert len(lengths) > 1 or length_penalty == 3.0


def test_a_beam_of_one_takes_the_likeliest_word_each_time() -> None:
    table = tables(batch=20, spread=3.0)
    tokens, scores = search(table, most=8)
    for row in range(len(table)):
        before, last, said = PAD, CLS, []
        while len(said) < 8 and last != SEP:
            before, last = last, max((SEP, *WORDS), key=lambda word: float(table[row, before, last, word]))
            said.append(last)
        assert words_of(tokens[row]) == tuple(word for word in said if word != SEP)
        assert float(scores[row]) == pytest.approx(log_probability(table[row], tuple(said)), abs=1e-4)


def test_a_wider_beam_finds_what_a_narrow_one_misses() -> None:
    """The classic trap: the likeliest first word leads to nothing good."""
    table = torch.full((1, *[VOCABULARY] * 3), -20.0)
    table[0, PAD, CLS, 4], table[0, PAD, CLS, 5] = math.log(0.6), math.log(0.4)
    for word in WORDS:
        table[0, CLS, 4, word] = math.log(0.24 if word == 4 else 0.19)
        table[0, 4, word, SEP] = 0.0
    table[0, CLS, 5, SEP] = 0.0
    for beam, answer, probability in ((1, (4, 4), 0.144), (2, (5,), 0.4)):
        tokens, scores = search(table, beam=beam, length_penalty=0.0)
        assert words_of(tokens[0]) == answer
        assert float(scores[0].exp()) == pytest.approx(probability, abs=1e-4)


def test_longer_answers_win_with_a_higher_penalty() -> None:
    table = tables(batch=50)
    mean = [
        (search(table, beam=1000, length_penalty=penalty)[0] != PAD).sum(1).double().mean()
        for penalty in (0.0, 1.0, 3.0)
    ]
    assert mean[0] < mean[1] < mean[2]


def test_a_row_does_not_depend_on_its_batch() -> None:
    table = tables(batch=8, spread=3.0)
    tokens, scores = search(table, beam=3, most=10)
    assert len(set((tokens != PAD).sum(1).tolist())) > 2  # some end early
    for row in range(len(table)):
        alone, score = search(table[row : row + 1], beam=3, most=10)
        assert words_of(alone[0]) == words_of(tokens[row])
        assert torch.equal(score[0], scores[row])


def test_words_that_are_no_answer_never_come() -> None:
    table = tables()
    table[..., :3] = 50.0
    tokens, scores = search(table, beam=5, most=6)
    assert torch.equal((tokens < SEP).long().cumsum(1) > 0, tokens == PAD)  # padding, at the end alone
    assert (scores > -30).all()


def test_an_answer_without_end_is_cut_and_one_with_an_end_preferred() -> None:
    table = torch.zeros(2, *[VOCABULARY] * 3)
    table[0, ..., SEP] = -math.inf
    table[1, ..., SEP] = -9.0
    tokens, scores = search(table, beam=6, most=5)
    assert (tokens[0] != PAD).all()
    assert tokens.shape == (2, 5)
    assert float(scores[0]) == pytest.approx(5 * math.log(1 / 5), abs=1e-4)
    assert len(words_of(tokens[1])) < 5


def test_it_stops_when_nothing_better_can_come() -> None:
    table = torch.zeros(1, *[VOCABULARY] * 3)
    table[..., SEP] = -20.0
    table[0, PAD, CLS, SEP] = 10.0
    chain = Chain(table)
    tokens, _ = beam_search(chain, 1, 4, 50, 0.0, torch.device("cpu"))
    assert tokens.shape == (1, 0)
    assert chain.calls == 1


@pytest.mark.parametrize(("ratio", "words"), [(1.15, (4,)), (1.18, ())])
def test_the_penalty_is_that_of_wu(ratio: float, words: tuple[int, ...]) -> None:
    """An answer of two tokens, its end included, may cost 7/6 = 1.167 of what one of a single token does."""
    table = torch.full((1, *[VOCABULARY] * 3), -20.0)
    end = 0.3**ratio / 0.7
    table[0, PAD, CLS, SEP], table[0, PAD, CLS, 4] = math.log(0.3), math.log(0.7)
    table[0, CLS, 4, SEP], table[0, CLS, 4, 5] = math.log(end), math.log(1 - end)
    tokens, _ = search(table, beam=10, most=3)
    assert words_of(tokens[0]) == words


def test_an_answer_that_ended_leaves_its_place_empty() -> None:
    """The first answer ends at once. Of two places one is left, in which the likelier word leads astray."""
    table = torch.full((1, *[VOCABULARY] * 3), -20.0)
    table[0, PAD, CLS, SEP], table[0, PAD, CLS, 4] = math.log(0.501), math.log(0.499)
    table[0, CLS, 4, 5], table[0, CLS, 4, 6] = math.log(0.6), math.log(0.4)
    table[0, 4, 6, SEP] = 0.0
    for beam, words in ((2, ()), (3, (4, 6))):
        assert words_of(search(table, beam=beam, length_penalty=4.0)[0][0]) == words


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"beam": 0}, "beam 0"),
        ({"most": 0}, "most 0"),
        ({"length_penalty": -0.5}, "length_penalty"),
        ({"length_penalty": 10.5}, "length_penalty"),
        ({"length_penalty": math.nan}, "length_penalty"),
    ],
)
def test_senseless_numbers_are_refused(wrong: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        search(tables(), **wrong)
