"""Words and their numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

PAD, UNK, CLS, SEP = 0, 1, 2, 3
SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]")
"""What fills up, what is unknown, what begins an answer or stands for a whole text, and what ends an answer."""


@dataclass(frozen=True)
class Vocabulary:
    """Words in the order of their ids. Raises TypeError or ValueError when they are none.

    Attributes:
        words: the special ones first; each once.
    """

    words: tuple[str, ...]

    def __post_init__(self) -> None:
        if not isinstance(self.words, tuple) or not all(isinstance(word, str) for word in self.words):
            raise TypeError("a vocabulary holds words only")
        if self.words[: len(SPECIAL)] != SPECIAL or len(self.words) == len(SPECIAL):
            raise ValueError(f"a vocabulary begins with {' '.join(SPECIAL)}, and has a word besides")
        if "" in self.words or len(set(self.words)) < len(self.words):
            raise ValueError("a vocabulary has a word twice, or an empty one")

    def __len__(self) -> int:
        return len(self.words)

    def ids(self, words: Iterable[str]) -> list[int]:
        """The id of each word, `UNK` where it is unknown; a text cannot name the special ones."""
        ids = self._ids
        return [ids.get(word, UNK) for word in words]

    def word(self, index: int) -> str:
        """The word of an id; raises IndexError where there is none."""
        if index < 0:
            raise IndexError(f"no word has the id {index}")
        return self.words[index]

    @cached_property
    def _ids(self) -> dict[str, int]:
        return {word: index for index, word in enumerate(self.words) if index >= len(SPECIAL)}


def count_words(texts: Iterable[Sequence[str]], min_count: int, max_size: int) -> Vocabulary:
    """`most_frequent` of the words of each text."""
    counts: Counter[str] = Counter()
    for words in texts:
        counts.update(words)
    return most_frequent(counts, min_count, max_size)


def most_frequent(counts: Mapping[str, int], min_count: int, max_size: int) -> Vocabulary:
    """The most frequent words first, and in the order of their characters where they are equally frequent.

    Args:
        counts: occurrences of each word.
        min_count: occurrences that a word must have.
        max_size: words at most, the special ones included.

    Raises:
        ValueError: no word is left.
    """
    words = [word for word, count in counts.items() if count >= min_count and word not in SPECIAL]
    words.sort(key=lambda word: (-counts[word], word))
    return Vocabulary((*SPECIAL, *words[: max_size - len(SPECIAL)]))
