"""Words and their numbers: the order is by frequency, and no text can name a special word."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tsformer.data.vocabulary import CLS, PAD, SEP, SPECIAL, UNK, Vocabulary, count_words, most_frequent

WORDS = st.lists(st.lists(st.sampled_from(["a", "b", "c", "d", "ä", "中", *SPECIAL]), max_size=8), max_size=8)


def test_special_words_come_first():
    assert [SPECIAL[index] for index in (PAD, UNK, CLS, SEP)] == ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
    assert (PAD, UNK, CLS, SEP) == (0, 1, 2, 3)


def test_most_frequent_first_and_ties_by_word():
    vocabulary = count_words([["b", "a", "c"], ["c", "b"], [], ["c"]], min_count=1, max_size=100)
    assert vocabulary.words == (*SPECIAL, "c", "b", "a")
    assert vocabulary.ids(["a", "b", "c", "x"]) == [6, 5, 4, UNK]
    assert vocabulary.word(4) == "c"
    assert len(vocabulary) == 7
    assert count_words([["b"], ["a"]], 1, 100).words[4:] == ("a", "b")


def test_limits():
    texts = [["a"] * 3 + ["b"] * 2 + ["c"]]
    assert count_words(texts, min_count=2, max_size=100).words[4:] == ("a", "b")
    assert count_words(texts, min_count=1, max_size=6).words == (*SPECIAL, "a", "b")
    with pytest.raises(ValueError, match="has a word besides"):
        count_words(texts, min_count=4, max_size=100)


@given(WORDS, st.integers(1, 3), st.integers(5, 9))
def test_against_a_plain_count(texts, min_count, max_size):
    counts = Counter(word for words in texts for word in words)
    frequent = {word: count for word, count in counts.items() if count >= min_count and word not in SPECIAL}
    if not frequent:
        with pytest.raises(ValueError, match="vocabulary"):
            count_words(texts, min_count, max_size)
        return
    found = count_words(texts, min_count, max_size)
    assert found == count_words([words[::-1] for words in texts[::-1]], min_count, max_size)
    kept = found.words[4:]
    assert len(kept) == min(len(frequent), max_size - 4)
    dropped = [count for word, count in frequent.items() if word not in kept]
    assert min(frequent[word] for word in kept) >= max(dropped, default=0)
    assert all(found.word(index) == word for word, index in zip(kept, found.ids(kept), strict=True))


def test_a_text_cannot_name_special_words():
    vocabulary = most_frequent({"[PAD]": 9, "[SEP]": 9, "a": 1}, min_count=1, max_size=10)
    assert vocabulary.words == (*SPECIAL, "a")
    assert vocabulary.ids(SPECIAL) == [UNK] * 4


def test_no_word_before_the_first_or_after_the_last():
    vocabulary = Vocabulary((*SPECIAL, "a"))
    for index in (-1, 5):
        with pytest.raises(IndexError):
            vocabulary.word(index)


@pytest.mark.parametrize(
    ("words", "error"),
    [
        ([*SPECIAL, "a"], TypeError),
        ((*SPECIAL, 5), TypeError),
        (SPECIAL, ValueError),
        (("a", *SPECIAL), ValueError),
        ((*SPECIAL, "a", "a"), ValueError),
        ((*SPECIAL, "[PAD]"), ValueError),
        ((*SPECIAL, ""), ValueError),
    ],
)
def test_what_is_no_vocabulary(words, error):
    with pytest.raises(error, match="vocabulary"):
        Vocabulary(words)
