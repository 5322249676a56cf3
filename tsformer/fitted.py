"""A fitted model with all that its use needs, and all that a run folder holds."""

from __future__ import annotations

from dataclasses import dataclass, field

from torch import nn

from tsformer.data.panel import Schema
from tsformer.data.sequences import SequenceSchema
from tsformer.data.statics import Statics
from tsformer.data.transforms import Chain
from tsformer.dependence import Dependence
from tsformer.evaluation.conformal import Calibration
from tsformer.plugin import Problem
from tsformer.settings import Settings
from tsformer.words import Words


@dataclass(frozen=True)
class Fitted:
    """All that a prediction needs.

    Attributes:
        settings: with a complete window.
        schema: the user's table: a `SequenceSchema` where the data were sequences.
        chain: the transforms.
        words: vocabulary and classes, where there are any.
        statics: how static covariates become numbers, where there are any.
        dependence: how the steps of one forecast depend on each other; None where that is not known.
        calibration: errors of forecasts, of which conformal intervals are made; None where there are none.
    """

    settings: Settings
    problem: Problem
    schema: Schema | SequenceSchema
    chain: Chain
    module: nn.Module
    words: Words = field(default_factory=Words)
    statics: Statics = field(default_factory=Statics)
    dependence: Dependence | None = None
    calibration: Calibration | None = None
