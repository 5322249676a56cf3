"""Pieces of words, learned from the texts by the package tokenizers.

Only its merges and words are kept, not its own files: what it needs besides is here, so that a run folder cannot bring
along anything else. It trains byte pairs the same way each time; its trainer for word pieces does not, and numbers
them by chance. Word pieces are therefore those that byte-pair merges make of the training texts.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from tsformer.data.tokens_words import join_words
from tsformer.data.vocabulary import SPECIAL, UNK, Vocabulary, most_frequent
from tsformer.errors import UsageError

Merges = tuple[tuple[str, str], ...]
"""Pairs of pieces that become one, the first learned first."""

CONTINUES = "##"
"""Begins a word piece that does not begin a word, as in BERT (Devlin et al. 2019)."""

_RUNS = " ?[^ ]{1,100}"
"""Longer runs without a blank are cut: the time to learn and to find pieces grows with the square of their length."""

_ALONE = "\\p{Han}|[\U0001f1e6-\U0001f1ff]{2}|\\p{S}(?:\\p{M}|\\p{Sk}|\u200d\\p{S})*"
_CONTRACTION = re.compile(r" ' (?=(?:s|t|m|d|re|ve|ll)\b)", re.IGNORECASE)

FEWEST_BYTES = len(SPECIAL) + 256
_AT_ONCE = 1024


def require() -> None:
    """Raises UsageError when the package tokenizers is not installed."""
    try:
        import tokenizers  # noqa: F401
    except ImportError:  # not there, or for another Python
        raise UsageError(
            "pieces of words need the package tokenizers: pip install 'tsformer[text]'; "
            "or give --tokens.tokenizer word or char"
        ) from None


def fit_bpe(texts: Sequence[str], min_count: int, max_size: int) -> tuple[Vocabulary, Merges]:
    """All bytes, and what is merged of them (Sennrich et al. 2016, on bytes as in GPT-2); nothing is unknown.

    Args:
        texts: `normal` ones.
        min_count: occurrences of a pair below which it is not merged; those of a single one teach nothing.
        max_size: pieces at most.

    Raises:
        UsageError: there is no place for all bytes, or tokenizers is not installed.
    """
    require()
    if max_size < FEWEST_BYTES:
        raise UsageError(f"--tokens.max_size {max_size} is too small for bpe: {FEWEST_BYTES} hold its bytes")
    from tokenizers import pre_tokenizers

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = _trained(texts, _bytes(), min_count, max_size, alphabet)
    numbers = tokenizer.get_vocab()
    merges = json.loads(tokenizer.to_str())["model"]["merges"]
    words = sorted(numbers, key=numbers.__getitem__)
    return Vocabulary((*SPECIAL, *words)), tuple((left, right) for left, right in merges)


def fit_wordpiece(texts: Sequence[str], min_count: int, max_size: int) -> Vocabulary:
    """Characters and what is merged of them, the most frequent first: what a piece is made of comes before it.

    Args and Raises are those of `fit_bpe`; ValueError when nothing is frequent enough.
    """
    require()
    tokenizer = _trained(texts, _bert(), min_count, max_size, [])
    pieces: Counter[tuple[str, bool]] = Counter()
    for start in range(0, len(texts), _AT_ONCE):
        for found in tokenizer.encode_batch([*map(_spaced, texts[start : start + _AT_ONCE])]):
            words = found.word_ids
            pieces.update(zip(found.tokens, map(int.__eq__, words, [-1, *words]), strict=False))
    counts: Counter[str] = Counter()
    for (piece, continues), count in pieces.items():
        signs = [(CONTINUES if continues or place else "") + sign for place, sign in enumerate(piece)]
        for word in (*signs, *([(CONTINUES if continues else "") + piece] if len(piece) > 1 else [])):
            counts[word] += count
    return most_frequent(counts, min_count, max_size)


def load(kind: str, vocabulary: Vocabulary, merges: Merges) -> Any:
    """The `tokenizers.Tokenizer` of kind "bpe" or "wordpiece"; without special tokens, which a text could name.

    Raises:
        UsageError: tokenizers is not installed.
    """
    require()
    from tokenizers import Tokenizer, models

    numbers = {word: index for index, word in enumerate(vocabulary.words)}
    unknown = vocabulary.word(UNK)
    if kind == "bpe":
        tokenizer = Tokenizer(models.BPE(numbers, list(merges), unk_token=unknown))
        tokenizer.pre_tokenizer = _bytes()
    else:
        tokenizer = Tokenizer(models.WordPiece(numbers, unk_token=unknown))
        tokenizer.pre_tokenizer = _bert()
    return tokenizer


def encode(tokenizer: Any, texts: Sequence[str]) -> Iterator[list[int]]:
    """The ids of each text, by what `load` returns."""
    for start in range(0, len(texts), _AT_ONCE):
        for found in tokenizer.encode_batch_fast([*map(_spaced, texts[start : start + _AT_ONCE])]):
            yield found.ids


def join(kind: str, pieces: Sequence[str]) -> str:
    """The text of pieces, by the decoder of their kind."""
    if kind == "bpe":
        require()
        from tokenizers import decoders

        return decoders.ByteLevel().decode(list(pieces)).strip()
    words: list[str] = []
    for piece in pieces:
        if piece.startswith(CONTINUES) and words and piece != CONTINUES:
            words[-1] += piece.removeprefix(CONTINUES)
        else:
            words.append(piece)
    return _CONTRACTION.sub("'", join_words(words))


def _trained(texts: Sequence[str], cut: Any, min_count: int, max_size: int, alphabet: list[str]) -> Any:
    from tokenizers import Tokenizer, models, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = cut
    tokenizer.train_from_iterator(
        map(_spaced, texts),
        trainers.BpeTrainer(
            vocab_size=max_size - len(SPECIAL),
            min_frequency=max(2, min_count),
            initial_alphabet=alphabet,
            show_progress=False,
        ),
    )
    return tokenizer


def _spaced(text: str) -> str:
    """With a blank before the first word, which is then the same piece as elsewhere."""
    return f" {text}" if text else text


def _bytes() -> Any:
    """Words with the blank before them, numbers, and runs of other characters, as in GPT-2."""
    from tokenizers import Regex, pre_tokenizers

    runs = pre_tokenizers.Split(Regex(_RUNS), "isolated")
    return pre_tokenizers.Sequence([runs, pre_tokenizers.ByteLevel(add_prefix_space=False)])


def _bert() -> Any:
    """Words and punctuation marks as in BERT; Chinese characters and symbols, such as emoji, stand alone."""
    from tokenizers import Regex, pre_tokenizers

    cuts = [pre_tokenizers.Split(Regex(pattern), "isolated") for pattern in (_RUNS, _ALONE)]
    return pre_tokenizers.Sequence([*cuts, pre_tokenizers.BertPreTokenizer()])
