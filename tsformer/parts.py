"""What training and scoring need of the data, whatever the task."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from tsformer.data.examples import Examples
from tsformer.data.hidden_steps import HiddenSteps
from tsformer.data.statics import Statics
from tsformer.data.transforms import Chain
from tsformer.nn.objective import Objective
from tsformer.nn.pretraining import HiddenOutput
from tsformer.plugin import Problem
from tsformer.settings import TrainConfig
from tsformer.words import Words

_HIDING = 11  # sets the draws of hidden steps apart from others of the same seed


@dataclass(frozen=True)
class Parts:
    """The parts of the data as a model is given them.

    Attributes:
        problem: all that a model may know.
        objective: what is minimised, and judged by.
        train, validation, test: the parts.
        chain: the transforms, fitted on the training part.
        words: the vocabulary of the training part, and the classes.
        statics: how static covariates become numbers, where there are any.
    """

    problem: Problem
    objective: Objective
    train: Examples
    validation: Examples
    test: Examples
    chain: Chain
    words: Words = field(default_factory=Words)
    statics: Statics = field(default_factory=Statics)


def with_hidden_steps(parts: Parts, train: TrainConfig) -> Parts:
    """The same examples with some steps hidden: others in each training step, always the same for judging."""
    fresh = np.random.default_rng(np.random.SeedSequence((train.seed, _HIDING)))

    def hiding(examples: Examples, seed: int | np.random.Generator) -> HiddenSteps:
        return HiddenSteps(examples, train.hidden_share, train.hidden_span, seed)

    return replace(
        parts,
        objective=HiddenOutput(),
        train=hiding(parts.train, fresh),
        validation=hiding(parts.validation, train.seed),
        test=hiding(parts.test, train.seed),
    )
