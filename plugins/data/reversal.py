"""Sequences of letters, and their reverse as the answer: a task that needs the order of every token."""

from __future__ import annotations

import string
from collections.abc import Iterator

import numpy as np

from tsformer.data.sequences import Sequences, SequenceSchema
from tsformer.plugin import Config, DataPlugin, Field, Task

LONGEST = 1000


class ReversalConfig(Config):
    """Number, length and letters of the sequences."""

    pairs: int = Field(20_000, ge=3, le=1_000_000, description="number of sequences, all different")
    symbols: int = Field(20, ge=2, le=26, description="number of letters that occur, from a on")
    shortest: int = Field(5, ge=1, le=LONGEST, description="letters of the shortest sequences")
    longest: int = Field(
        20,
        ge=1,
        le=LONGEST,
        description="letters of the longest sequences; each length is drawn as often, and each sequence there once",
    )
    seed: int = Field(0, ge=0, description="seed of the letters")

    def faults(self) -> Iterator[str]:
        yield from super().faults()
        if self.shortest > self.longest:
            yield f"shortest {self.shortest} is above longest {self.longest}"
            return
        there = sum(self.symbols**length for length in range(self.shortest, self.longest + 1))
        if 2 * self.pairs > there:
            yield f"pairs {self.pairs} must be at most half of the {there} sequences that there are: raise longest"


def load(config: ReversalConfig) -> Sequences:
    generator = np.random.default_rng(config.seed)
    letters = np.array(list(string.ascii_lowercase[: config.symbols]))
    found: dict[str, None] = {}  # in order, each once
    while len(found) < config.pairs:
        length = generator.integers(config.shortest, config.longest, endpoint=True)
        found[" ".join(generator.choice(letters, length))] = None
    texts = tuple(found)
    return Sequences(
        schema=SequenceSchema(text="source", target="target"),
        ids=tuple(str(number) for number in range(1, len(texts) + 1)),
        texts=texts,
        targets=tuple(text[::-1] for text in texts),
    )


plugin = DataPlugin(
    config=ReversalConfig, load=load, example=ReversalConfig(pairs=60, symbols=5, longest=8), tasks={Task.SEQUENCE}
)
