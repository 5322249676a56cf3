"""Texts as tokens, of every kind: by hand, there and back, out of a stranger's file, and with any text at all."""

import json
import sys
import unicodedata

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tsformer.data import tokens_words
from tsformer.data.tokens import Tokenizer, fit_tokenizer
from tsformer.data.vocabulary import CLS, PAD, SEP, SPECIAL, UNK, Vocabulary
from tsformer.errors import DataError, UsageError
from tsformer.settings import TokensConfig

KINDS = ("char", "word", "bpe", "wordpiece")
TEXTS = [
    "The cat sat on the mat, and the cat can't see the hat.",
    "A hat on a cat is 3.14 times better than a cat on a mat! #cats https://cats.example/a?b=c.",
    "这家酒店很好, 房间干净, 早餐不错. 我们很喜欢这家酒店.",
    "iPhone手机很好用 👍🏽 👨\u200d👩\u200d👧 🇩🇪 مرحبا हिन्दी",
    "",
]


def fitted(kind, texts=TEXTS, **options):
    return fit_tokenizer(texts, TokensConfig(tokenizer=kind, **options))


@pytest.fixture(scope="module")
def tokenizers():
    return {kind: fitted(kind) for kind in KINDS}


def test_characters_by_hand():
    tokenizer = fitted("char", ["abba", "b c"], lower=False)
    assert tokenizer.vocabulary.words == (*SPECIAL, "b", "a", " ", "c")
    tokens = tokenizer.encode(["cab", "", "  \t ", "a\u00a0 \n b", "A"])
    assert tokens.values.tolist() == [7, 5, 4, 5, 6, 4, UNK]
    assert tokens.lengths.tolist() == [3, 0, 0, 3, 1]
    assert tokens.values.dtype == np.int64
    assert tokenizer.decode(tokens[0]) == "cab"


def test_words_by_hand():
    tokenizer = fitted("word", ["b a, b", "a b"])
    assert tokenizer.vocabulary.words == (*SPECIAL, "b", "a", ",")
    assert tokenizer.encode(["A,x B"]).values.tolist() == [5, 6, UNK, 4]
    assert fitted("word", ["A a"], lower=False).vocabulary.words[4:] == ("A", "a")
    assert fitted("word", ["b a, b", "a b"], min_count=2, max_size=8).vocabulary.words[4:] == ("b", "a")


@pytest.mark.parametrize("kind", KINDS)
def test_decode_drops_special_tokens_and_stops_at_the_end(tokenizers, kind):
    tokenizer = tokenizers[kind]
    ids = tokenizer.encode(["the cat"])[0].tolist()
    assert tokenizer.decode([CLS, *ids, SEP, *ids, PAD]) == "the cat"
    assert tokenizer.decode([PAD, CLS, PAD]) == tokenizer.decode([]) == ""
    assert "[UNK]" in tokenizer.decode([UNK])
    with pytest.raises(IndexError):
        tokenizer.decode([len(tokenizer.vocabulary)])


@pytest.mark.parametrize("kind", KINDS)
def test_there_and_back(tokenizers, kind):
    for text in TEXTS[:1] + TEXTS[2:3]:
        clean = tokens_words.normal(text, lower=True)
        found = tokenizers[kind].decode(tokenizers[kind].encode([text])[0])
        assert found.replace(" ", "") == clean.replace(" ", "")
        if kind in ("char", "bpe"):
            assert found == clean


@settings(max_examples=60, deadline=None)
@given(texts=st.lists(st.text(st.characters()), max_size=4))
def test_any_text_there_and_back(tokenizers, texts):
    """No text fails or becomes a special token, and what is not unknown comes back."""
    for kind, tokenizer in tokenizers.items():
        tokens = tokenizer.encode(texts)
        assert len(tokens) == len(texts)
        assert not np.isin(tokens.values, [PAD, CLS, SEP]).any()
        assert tokens.values.max(initial=0) < len(tokenizer.vocabulary)
        for position, text in enumerate(texts):
            clean = tokens_words.normal(text, lower=True)
            assert clean == tokens_words.normal(clean, lower=True) == unicodedata.normalize("NFKC", clean)
            single = tokenizer.encode([text])[0]
            assert single.tolist() == tokens[position].tolist()
            back = tokenizer.decode(single)
            if kind == "bpe" or (kind == "char" and UNK not in single):
                assert back == clean


@settings(max_examples=30, deadline=None)
@given(text=st.text(st.sampled_from("ab 中好éE.,!'([)]#3👍"), min_size=1, max_size=40))
def test_characters_that_were_seen_come_back(text):
    clean = tokens_words.normal(text, lower=True)
    if clean:
        tokenizer = fitted("char", [text])
        assert tokenizer.decode(tokenizer.encode([text])[0]) == clean


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "text", ["中" * 30_000, "a" * 30_000, "👍" * 30_000, "1." * 30_000, "\ud83d" * 30_000, " " * 10**6]
)
def test_long_texts(tokenizers, kind, text):
    tokens = tokenizers[kind].encode([text, "cat"])
    assert (tokens.lengths[0] == 0) == text.isspace()
    assert tokenizers[kind].decode(tokens[1]) == "cat"


@pytest.mark.parametrize("kind", ["bpe", "wordpiece"])
def test_long_texts_teach_pieces(kind):
    assert UNK not in fitted(kind, ["ab" * 30_000, "中" * 30_000], max_size=300).encode(["abab中中"]).values


@pytest.mark.parametrize("kind", KINDS)
def test_saved_and_loaded(tokenizers, kind):
    tokenizer = tokenizers[kind]
    again = Tokenizer.from_json(json.loads(json.dumps(tokenizer.to_json(), allow_nan=False)))
    assert again == tokenizer
    texts = [*TEXTS, "unknown: 龘 zebra [PAD]"]
    assert again.encode(texts).values.tolist() == tokenizer.encode(texts).values.tolist()


@pytest.mark.parametrize("kind", ["bpe", "wordpiece"])
def test_the_same_texts_teach_the_same(kind):
    texts = [" ".join(f"{a}{b}{c}" for c in "xyzuvw") for a in "abcdefgh" for b in "klmnopq"]
    found = [fitted(kind, texts, max_size=340) for _ in range(4)]
    assert found[1:] == found[:-1]
    assert len(found[0].vocabulary) <= 340


def test_bytes_against_the_library():
    """Our merges and words, loaded as a GPT-2 tokenizer by the library's own pipeline, give the same tokens."""
    from tokenizers import ByteLevelBPETokenizer

    ours = fitted("bpe")
    numbers = {word: index for index, word in enumerate(ours.vocabulary.words)}
    theirs = ByteLevelBPETokenizer(numbers, list(ours.merges), add_prefix_space=True)
    for text in map(str.lower, TEXTS[:3]):
        encoded = theirs.encode(text)
        assert ours.encode([text])[0].tolist() == encoded.ids
        assert ours.decode(encoded.ids) == theirs.decode(encoded.ids).strip() == text


def test_word_pieces_against_the_library():
    from tokenizers import BertWordPieceTokenizer

    ours = fitted("wordpiece")
    theirs = BertWordPieceTokenizer({word: index for index, word in enumerate(ours.vocabulary.words)}, lowercase=True)
    for text in [*TEXTS[:3], "thecat canthat"]:
        assert ours.encode([text])[0].tolist() == theirs.encode(text, add_special_tokens=False).ids


def test_word_pieces_by_hand():
    words = fitted("wordpiece", ["ab ab abc"]).vocabulary.words[4:]
    assert words == ("##b", "a", "ab", "##c")
    tokenizer = Tokenizer("wordpiece", True, Vocabulary((*SPECIAL, "a", "##b", "##c", "ab")))
    assert tokenizer.encode(["abc ab xa, [UNK]"])[0].tolist() == [7, 6, 7, UNK, UNK, UNK, UNK, UNK]
    assert tokenizer.decode([7, 6, 4, 5]) == "abc ab"


@pytest.mark.parametrize(
    ("texts", "kind"),
    [
        (["plain words", "and more"], "word"),
        (["한국어 좋아요"], "word"),
        (["一点儿中文", "and rather more than a few English words"], "word"),
        (["这家酒店很好", "ok"], "char"),
        (["สวัสดีครับ"], "char"),
        (["123", "!!"], "word"),
    ],
)
def test_the_kind_that_suits_the_texts(texts, kind):
    assert fitted(None, texts).kind == kind


def test_jieba_is_for_texts_with_many_chinese_letters():
    assert fitted("word").chinese
    assert not fitted("word", ["many English words and no more than one of them in Chinese: 好"]).chinese


@pytest.mark.parametrize("kind", [None, *KINDS])
@pytest.mark.parametrize("texts", [[], ["", " \n", "\u200b\ufeff"]])
def test_nothing_to_learn_from(kind, texts):
    with pytest.raises(DataError, match="all empty"):
        fitted(kind, texts)


@pytest.mark.parametrize("kind", ["char", "word", "wordpiece"])
def test_nothing_frequent_enough(kind):
    with pytest.raises(
        DataError, match=r"no token occurs 1000 times in the 5 training texts: lower --tokens.min_count"
    ):
        fitted(kind, min_count=1000)


def test_no_place_for_bytes():
    with pytest.raises(UsageError, match=r"max_size 259 is too small for bpe: 260"):
        fitted("bpe", max_size=259)
    assert len(fitted("bpe", max_size=260).vocabulary) == 260


def test_packages_that_are_not_there(monkeypatch):
    tokens_words._jieba.cache_clear()
    for package in ("jieba", "tokenizers"):
        monkeypatch.setitem(sys.modules, package, None)  # whose import then fails, as that of a broken one does
    with pytest.raises(UsageError, match=r"need the package jieba: pip install 'tsformer\[text\]'.*tokenizer char"):
        fitted("word")
    for kind in ("bpe", "wordpiece"):
        with pytest.raises(UsageError, match=r"package tokenizers: pip install 'tsformer\[text\]'"):
            fitted(kind)
    assert fitted("word", ["no need of it"]).encode(["好"]).values.tolist() == [UNK]
    tokens_words._jieba.cache_clear()


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(), max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=8,
)
WORDS = st.lists(st.sampled_from(["a", "b", "ab", "##b", "Ġ", "[PAD]", "", "\ud800", 5, None]), max_size=6)
DOCUMENTS = st.fixed_dictionaries(
    {
        "kind": st.sampled_from(KINDS) | JSON,
        "lower": st.booleans() | JSON,
        "chinese": st.just(False) | JSON,
        "words": WORDS.map(lambda words: [*SPECIAL, *words]) | JSON,
        "merges": st.just([]) | st.lists(st.lists(st.sampled_from(["a", "b", "[PA", "D]", 5]), max_size=3)) | JSON,
    }
)


@settings(max_examples=200, deadline=None)
@given(document=JSON | DOCUMENTS)
def test_a_strangers_document(document):
    """It is refused, or is a tokenizer that takes any text."""
    try:
        tokenizer = Tokenizer.from_json(document)
    except (TypeError, ValueError):
        return
    assert not np.isin(tokenizer.encode(["ab [PAD] b"]).values, [PAD, CLS, SEP]).any()
    assert isinstance(tokenizer.decode(range(len(tokenizer.vocabulary))), str)


@pytest.mark.parametrize(
    "change",
    [
        {"kind": "pickle"},
        {"lower": 1},
        {"chinese": True},
        {"words": ["a", *SPECIAL]},
        {"words": [*SPECIAL, "a", "b", "[PAD]"]},
        {"words": [*SPECIAL, "\ud800"]},
        {"merges": [["a", "b"]]},
        {"merges": [["a"]]},
        {"merges": ["ab"]},
        {"merges": [["[PA", "D]"]]},
        {"code": "print()"},
    ],
)
def test_what_is_no_tokenizer(change):
    document = {"kind": "bpe", "lower": True, "chinese": False, "words": [*SPECIAL, "a", "b"], "merges": []}
    Tokenizer.from_json(document)
    with pytest.raises((TypeError, ValueError)):
        Tokenizer.from_json(document | change)
