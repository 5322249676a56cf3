"""Texts as tokens: what a tokenizer learns from the training texts, and how a run keeps it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np

from tsformer.data import tokens_pieces
from tsformer.data.ragged import Ragged, offsets_of
from tsformer.data.tokens_words import HAN, UNSPACED, join_words, normal, share, split_words
from tsformer.data.vocabulary import CLS, PAD, SEP, SPECIAL, Vocabulary, count_words
from tsformer.errors import DataError
from tsformer.settings import TokensConfig

_KINDS = ("char", "word", "bpe", "wordpiece")
_MANY_UNSPACED = 1 / 3
"""Share of letters of scripts without spaces above which tokens are characters, unless the user says otherwise."""

_MANY_CHINESE = 1 / 20
"""Share of Chinese letters from which on jieba is needed; a few of them in other texts stand alone."""


@dataclass(frozen=True)
class Tokenizer:
    """What makes tokens of texts. Raises TypeError or ValueError when the parts do not fit together.

    Every text is first brought into one form, `normal`. Characters are Unicode's code points: an emoji with a skin tone
    is two, and comes back as it was.

    Attributes:
        kind: "char", "word", "bpe" or "wordpiece".
        lower: capital letters count as small ones.
        vocabulary: the tokens.
        chinese: Chinese words are found by jieba; of kind "word" only.
        merges: what is merged of bytes, the first first; of kind "bpe" only.
    """

    kind: str
    lower: bool
    vocabulary: Vocabulary
    chinese: bool = False
    merges: tokens_pieces.Merges = ()

    def __post_init__(self) -> None:
        if not isinstance(self.lower, bool) or not isinstance(self.chinese, bool):
            raise TypeError("a tokenizer's lower and chinese are true or false")
        if self.kind not in _KINDS:
            raise ValueError(f"a tokenizer is one of {', '.join(_KINDS)}")
        if (self.chinese and self.kind != "word") or (self.merges and self.kind != "bpe"):
            raise ValueError(f"chinese is for words, and merges are for bpe, not for {self.kind}")
        if not all(isinstance(pair, tuple) and list(map(type, pair)) == [str, str] for pair in self.merges):
            raise TypeError("merges are pairs of pieces")
        pieces = set(self.vocabulary.words[len(SPECIAL) :])
        if not pieces.issuperset(piece for left, right in self.merges for piece in (left, right, left + right)):
            raise ValueError("merges are of pieces that the vocabulary does not hold")

    def encode(self, texts: Sequence[str]) -> Ragged:
        """The tokens of each text, int64, without special ones; a text of blanks has none.

        Raises:
            UsageError: a package that the kind needs is not installed.
        """
        clean = [normal(text, self.lower) for text in texts]
        if self.kind in ("bpe", "wordpiece"):
            ids = list(tokens_pieces.encode(self._pieces, clean))
        else:
            ids = [self.vocabulary.ids(words) for words in _split(self.kind, self.chinese, clean)]
        return Ragged(np.fromiter(chain.from_iterable(ids), np.int64), offsets_of([len(found) for found in ids]))

    def decode(self, ids: Sequence[int]) -> str:
        """The text of tokens up to `SEP`; `PAD` and `CLS` say nothing. Raises IndexError for an id of no word."""
        words = []
        for index in map(int, ids):
            if index == SEP:
                break
            if index not in (PAD, CLS):
                words.append(self.vocabulary.word(index))
        if self.kind in ("bpe", "wordpiece"):
            return tokens_pieces.join(self.kind, words)
        return "".join(words) if self.kind == "char" else join_words(words)

    def to_json(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "lower": self.lower,
            "chinese": self.chinese,
            "words": list(self.vocabulary.words),
            "merges": [list(pair) for pair in self.merges],
        }

    @classmethod
    def from_json(cls, document: Any) -> Tokenizer:
        """Raises TypeError or ValueError when the document is not a tokenizer."""
        if not isinstance(document, Mapping) or set(document) != {"kind", "lower", "chinese", "words", "merges"}:
            raise ValueError("a tokenizer has kind, lower, chinese, words and merges")
        words, merges = document["words"], document["merges"]
        if not isinstance(words, list) or not isinstance(merges, list):
            raise TypeError("a tokenizer's words and merges are lists")
        vocabulary = Vocabulary(tuple(words))
        "".join(words).encode()  # UnicodeEncodeError is a ValueError: half a surrogate pair is in no text
        pairs = tuple(tuple(pair) if isinstance(pair, list) else pair for pair in merges)
        return cls(document["kind"], document["lower"], vocabulary, document["chinese"], pairs)

    @cached_property
    def _pieces(self) -> Any:
        return tokens_pieces.load(self.kind, self.vocabulary, self.merges)


def fit_tokenizer(texts: Sequence[str], config: TokensConfig) -> Tokenizer:
    """What the training texts teach; the same texts teach the same, in any process.

    Raises:
        DataError: the texts hold nothing, or nothing that is frequent enough.
        UsageError: a package that the kind needs is not installed, or there is no place for all bytes of "bpe".
    """
    clean = [normal(text, config.lower) for text in texts]
    if not any(clean):
        raise DataError(f"the {len(clean)} training texts are all empty: no token can be learned from them")
    few = [text[:1000] for text in clean[:: max(1, len(clean) // 2000)]]
    kind = config.tokenizer or ("char" if share(few, UNSPACED) > _MANY_UNSPACED else "word")
    if kind == "bpe":
        vocabulary, merges = tokens_pieces.fit_bpe(clean, config.min_count, config.max_size)
        return Tokenizer(kind, config.lower, vocabulary, merges=merges)
    # Unasked, Chinese stands character by character, so that the same texts teach the same wherever jieba is installed.
    chinese = config.tokenizer == "word" and share(few, HAN) >= _MANY_CHINESE
    try:
        if kind == "wordpiece":
            vocabulary = tokens_pieces.fit_wordpiece(clean, config.min_count, config.max_size)
        else:
            vocabulary = count_words(_split(kind, chinese, clean), config.min_count, config.max_size)
    except ValueError:
        raise DataError(
            f"no token occurs {config.min_count} times in the {len(clean)} training texts: lower --tokens.min_count"
        ) from None
    return Tokenizer(kind, config.lower, vocabulary, chinese)


def _split(kind: str, chinese: bool, clean: Sequence[str]) -> Iterable[Sequence[str]]:
    """The characters or words of each text; a text is a sequence of its characters."""
    return clean if kind == "char" else split_words(clean, chinese)
