"""What a run keeps of words and classes: there and back, and what is refused."""

import json

import pytest

from tsformer.data.tokens import fit_tokenizer
from tsformer.settings import TokensConfig
from tsformer.words import Words, learn_tokenizer

TEXTS = ["the good film", "the bad film", "a very good one"]
WORDS = Words(fit_tokenizer(TEXTS, TokensConfig(tokenizer="word")), ("a,b", 'say "x"', "two\nlines", "数"))


@pytest.mark.parametrize("words", [WORDS, Words(), Words(None, ("x", "y")), Words(WORDS.tokenizer)])
def test_there_and_back_through_a_file(words):
    again = Words.from_json(json.loads(json.dumps(words.to_json(), ensure_ascii=False)))
    assert again == words
    assert bool(again) == bool(words)


def test_there_are_words_where_there_is_a_tokenizer_or_a_class():
    assert not Words()
    assert Words(None, ("x",))
    assert Words(WORDS.tokenizer)


@pytest.mark.parametrize(
    ("change", "fault", "said"),
    [
        ({"classes": ["x", "y", "x"]}, ValueError, "twice"),
        ({"classes": "xy"}, ValueError, "not names"),
        ({"classes": ["x", 1]}, ValueError, "not names"),
        ({"classes": None}, ValueError, "not names"),
        ({"tokenizer": []}, ValueError, "tokenizer"),
        ({"tokenizer": {"kind": "word"}}, ValueError, "tokenizer"),
        ({"tokenizer": {**WORDS.to_json()["tokenizer"], "words": ["x", "y"]}}, ValueError, r"\[PAD\]"),
        ({"tokenizer": {**WORDS.to_json()["tokenizer"], "kind": ["word"]}}, ValueError, "one of"),
        ({"tokenizer": {**WORDS.to_json()["tokenizer"], "lower": 1}}, TypeError, "lower"),
    ],
)
def test_a_document_that_holds_no_words(change, fault, said):
    with pytest.raises(fault, match=said):
        Words.from_json({**WORDS.to_json(), **change})


@pytest.mark.parametrize("missing", ["tokenizer", "classes"])
def test_a_document_that_lacks_a_part(missing):
    document = WORDS.to_json()
    del document[missing]
    with pytest.raises(KeyError, match=missing):
        Words.from_json(document)


def test_an_earlier_runs_words_are_taken_over_where_they_know_the_texts():
    earlier = fit_tokenizer(["a good film", "a bad film", "what a film"], TokensConfig())
    few = ["a good film", "a film"]
    assert learn_tokenizer(few, TokensConfig(), earlier) == earlier
    assert learn_tokenizer(few, TokensConfig()) == fit_tokenizer(few, TokensConfig()) != earlier
    assert learn_tokenizer(["a good film in town"], TokensConfig(), earlier) != earlier  # three of five
    assert learn_tokenizer(few, TokensConfig(tokenizer="char"), earlier).kind == "char"  # what is asked for counts
