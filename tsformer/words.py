"""The words of a run: its vocabulary and the names of its classes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tsformer.data.tokens import Tokenizer, fit_tokenizer
from tsformer.data.vocabulary import UNK
from tsformer.settings import TokensConfig

LEAST_KNOWN = 0.8
"""Share of the tokens of new texts that an earlier run's tokenizer knows, for it to be taken over."""


def learn_tokenizer(texts: Sequence[str], config: TokensConfig, earlier: Tokenizer | None = None) -> Tokenizer:
    """What turns texts into tokens: that of an earlier run where it knows these texts, or else what they teach.

    An earlier run has usually seen many more texts, and its table of words fits its own tokenizer best.

    Args:
        texts: of the training part.
        earlier: None when there is none.

    Raises:
        DataError, UsageError: nothing can be learned, or a package is missing.
    """
    if earlier is not None and config == TokensConfig():
        ids = earlier.encode(texts).values
        if len(ids) and (ids != UNK).mean() >= LEAST_KNOWN:
            return earlier
    return fit_tokenizer(texts, config)


@dataclass(frozen=True)
class Words:
    """What turns words into numbers and back.

    Attributes:
        tokenizer: of the texts; None when there are none.
        classes: the labels, in the order of the logits.
    """

    tokenizer: Tokenizer | None = None
    classes: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return self.tokenizer is not None or bool(self.classes)

    def to_json(self) -> dict[str, Any]:
        return {"tokenizer": self.tokenizer.to_json() if self.tokenizer else None, "classes": list(self.classes)}

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Words:
        """Raises KeyError, TypeError or ValueError when the document holds no words."""
        tokenizer, classes = document["tokenizer"], document["classes"]
        if not isinstance(classes, list) or not all(isinstance(name, str) for name in classes):
            raise ValueError("the classes are not names")
        if len(set(classes)) < len(classes):
            raise ValueError("a class is there twice")
        return cls(None if tokenizer is None else Tokenizer.from_json(tokenizer), tuple(classes))
