"""Fits as of an earlier moment: on a panel of which nothing is left from the first origin on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from tsformer import fitting
from tsformer.calibration import calibrate
from tsformer.data.panel import Panel
from tsformer.data.selection import beginnings, named, selected
from tsformer.data.split import Split, too_short
from tsformer.evaluation.plan import Block
from tsformer.fitted import Fitted
from tsformer.preparation import Prepared, build_chain, complete
from tsformer.settings import Settings
from tsformer.training.loop import Progress


def fit_before(
    settings: Settings,
    panel: Panel,
    block: Block,
    horizon: int,
    note: Callable[[str], None] = lambda line: None,
    on_step: Callable[[Progress], None] = lambda progress: None,
) -> Fitted:
    """A model fitted for a block, on a panel of which nothing is left from the first of its origins on.

    Its calibration is of the validation part.

    Args:
        settings: whose horizon is that of the plan, where they leave it open.
        note: told of what the user should hear.
        on_step: told of the training.

    Raises:
        DataError: series are too short to learn from, and the settings do not leave them out.
        TsformerError: what `fitting.learn` raises.
    """
    split = block.split
    there = split.lengths > 0
    settings = replace(settings, window=settings.window.model_copy(update={"horizon": horizon}))
    settings = complete(settings, beginnings(selected(panel, there), split.lengths[there]))
    lookback, short = settings.window.lookback, settings.window.short
    assert lookback is not None
    lost = build_chain(settings, panel.schema).lost
    few = there & (split.train < lookback + lost + horizon)
    if few.any() and (short == "error" or few[there].all()):
        ids = panel.ids if panel.schema.id else None
        needs = (
            f"a lookback of {lookback}{f', {lost} rows lost to transforms' if lost else ''} and horizon {horizon} need "
            f"{lookback + lost + horizon} in the training part"
        )
        remedy = "use a smaller --lookback, fewer --origins, or --short skip"
        raise too_short(split.train, np.flatnonzero(few), ids, needs, remedy)
    if few.any():
        note(f"not learned from, too short before the origin: {named(panel, few)}")
    keep = there & ~few
    own = Split(*(ends[keep] for ends in (split.train, split.validation, split.lengths)))
    cut = beginnings(selected(panel, keep), own.lengths)
    learned = fitting.learn(settings, cut, split=own, watch=fitting.Watch(note=note, step=on_step))
    if learned.history.error is not None:
        note(str(learned.history.error))
    fitted = learned.fitted
    if fitted.calibration is None and isinstance(learned.prepared, Prepared):
        fitted = replace(fitted, calibration=calibrate(fitted, learned.prepared))
    return fitted
