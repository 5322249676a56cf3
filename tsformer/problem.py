"""What is asked of a model, and all that it may know of the data: the shapes, derived once.

This module imports no torch, so that plugins can be listed quickly.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Annotated, Any

import pydantic


class Task(StrEnum):
    """What a model is asked to do."""

    FORECAST = "forecast"
    CLASSIFY = "classify"
    SEQUENCE = "sequence"
    PRETRAIN = "pretrain"


Size = Annotated[int, pydantic.Field(ge=0, le=100_000_000)]
Probability = Annotated[float, pydantic.Field(gt=0, lt=1)]


@dataclass(frozen=True)
class Problem:
    """All that a model may know about the data: shapes and the season. Every shape is derived here, once.

    Attributes:
        task: what is asked.
        lookback: steps the model sees, at most where examples are of unequal length.
        horizon: steps it predicts.
        targets: number of target channels; they come first in `Batch.past`.
        past_covariates: channels known up to the origin only; they follow the targets in `Batch.past`.
        future_covariates: channels known beyond the origin.
        static_covariates: numbers per series.
        static_cardinalities: size of each categorical static covariate.
        season: steps in one season, 1 if there is none.
        output: what is predicted: "point", "quantiles", "normal", "student_t" or "negative_binomial" of each target,
            "classes", "tokens", or "hidden" steps.
        outputs: numbers that describe one predicted value; 1 for a point forecast, 2 for a normal distribution.
        quantiles: the probabilities of the quantiles that are predicted, ascending, 0.5 among them; of other outputs
            none.
        vocabulary: words that a token may be, the special ones included; 0 when there are no tokens.
        text_length: tokens of the text at each step; 0 when the tokens are the sequence itself.
        target_vocabulary: words of an answer; the answer has up to `horizon` tokens, its end included.
        classes: labels that there are.
    """

    task: Task = Task.FORECAST
    lookback: Size = 0
    horizon: Size = 0
    targets: Size = 0
    past_covariates: Size = 0
    future_covariates: Size = 0
    static_covariates: Size = 0
    static_cardinalities: tuple[Size, ...] = ()
    season: Size = 1
    output: str = "point"
    outputs: Size = 1
    vocabulary: Size = 0
    text_length: Size = 0
    target_vocabulary: Size = 0
    classes: Size = 0
    quantiles: tuple[Probability, ...] = ()

    @property
    def channels(self) -> int:
        """Channels of `Batch.past`: targets, then past covariates."""
        return self.targets + self.past_covariates

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "task": self.task.value}

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Problem:
        """Raises ValueError when the document is not a problem."""
        return pydantic.TypeAdapter(cls).validate_json(json.dumps(document), strict=True)
