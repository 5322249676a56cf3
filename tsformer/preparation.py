"""From a panel to windows: choose the window, split, fit the transforms, cut."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from tsformer.data.calendar import calendar_features, calendar_width
from tsformer.data.counts import check_counts
from tsformer.data.empty_columns import refuse_empty, without_unlearned
from tsformer.data.frequency import hours_in_week, season_of
from tsformer.data.panel import Panel, Schema
from tsformer.data.precision import check_precision
from tsformer.data.ragged import Ragged
from tsformer.data.selection import beginnings, named
from tsformer.data.short_series import check_windows, stretches, without_short
from tsformer.data.split import Split, check_ends, check_split, split_by_time, without_test
from tsformer.data.statics import Statics
from tsformer.data.tokens import Tokenizer
from tsformer.data.transforms import Chain, Link, Transformed
from tsformer.data.windows import Windows, cut_windows, padded
from tsformer.errors import PluginError, UsageError
from tsformer.nn.outputs import build_output
from tsformer.parts import Parts, with_hidden_steps
from tsformer.plugin import Problem, State, Task
from tsformer.settings import Chosen, Settings
from tsformer.words import Words, learn_tokenizer

LONGEST_TEXT = 64
"""Tokens of the text at a step that a model sees, at most."""
MOST_LOST = 2**31
"""Rows that a transform may lose."""


@dataclass(frozen=True)
class Prepared:
    """A panel, split, transformed and cut into windows.

    Attributes:
        data: the panel after the transforms.
        train, validation, test: windows.
        parts: what a model is given of all this.
        notes: what the user should hear of, one line each.
    """

    panel: Panel
    split: Split
    chain: Chain
    data: Transformed
    problem: Problem
    train: Windows
    validation: Windows
    test: Windows
    parts: Parts
    notes: tuple[str, ...] = ()


def complete(settings: Settings, panel: Panel) -> Settings:
    """Fill in the windows that the user left open: from the data plugin, else from frequency and number of rows."""
    # the middle series decides, so that one short series does not cut the windows of all; the split will name it
    window, defaults = settings.window, panel.defaults
    middle = np.median if window.short == "error" else _of_middle_row  # short ones will not be among them
    rows, last = (int(middle(lengths)) for lengths in stretches(panel))
    season = window.season or defaults.season or season_of(panel.schema.frequency)
    horizon = window.horizon or defaults.horizon
    if horizon is None:
        horizon = max(1, min(season if 1 < season <= 24 else 12, rows // 10))
    lookback = window.lookback or defaults.lookback
    if lookback is None:
        wanted = max(2 * season, 2 * horizon, 24, hours_in_week(panel.schema.frequency))
        # at least half of the training rows stay targets
        known = replace(settings, window=window.model_copy(update={"season": season}))
        lost = build_chain(known, panel.schema).lost
        # and what comes after the last gap is enough to predict from
        lookback = max(1, min(wanted, (rows - lost) * 7 // 20 - horizon, last - lost))
    if window.lookback is None:
        lookback = max(lookback, _least_lookback(settings, season))
    stride = window.stride or defaults.stride or 1
    found = {"lookback": lookback, "horizon": horizon, "season": season, "stride": stride}
    return replace(settings, window=window.model_copy(update=found))


def _least_lookback(settings: Settings, season: int) -> int:
    """The fewest steps that the model has to see."""
    with settings.model.at_fault("lookback"):
        return settings.model.least_lookback(season) or 1


def _of_middle_row(lengths: np.ndarray) -> int:
    """The length of the series in which the middle one of all rows stands."""
    ordered = np.sort(lengths)
    total = np.cumsum(ordered)
    return int(ordered[np.searchsorted(total, total[-1] / 2)])


def prepare(settings: Settings, panel: Panel, split: Split | None = None, earlier: Tokenizer | None = None) -> Prepared:
    """Split, fit the transforms on training rows, cut windows.

    Args:
        settings: with a complete window.
        split: where the parts end, for a published split; by default 70/10/20. Rows after `split.lengths` are not
            looked at.
        earlier: of a run that the model starts from; see `learn_tokenizer`.

    Raises:
        DataError: too few rows, or values outside a transform's domain.
        UsageError: a split that does not fit the panel.
    """
    window = settings.window
    lookback, horizon, season = window.lookback, window.horizon, window.season
    if lookback is None or horizon is None or season is None:
        raise UsageError("the window is not complete; see complete")
    targets = len(panel.schema.targets)
    chain = build_chain(settings, panel.schema)
    notes: tuple[str, ...] = ()
    fewest = np.full_like(panel.lengths, lookback)
    if split is None:
        panel, fewest, notes = without_short(panel, window, chain.lost)
        ids = panel.ids if panel.schema.id else None
        split = split_by_time(panel.lengths, horizon, lookback, chain.lost, ids, fewest)
    else:
        panel = up_to_end(panel, split)
        check_split(split, panel.lengths, horizon, lookback, chain.lost, panel.ids if panel.schema.id else None)
    if settings.train.counts:
        check_counts(panel)
    refuse_empty(panel, split.train)
    unlearned = np.zeros((len(panel.ids), len(panel.schema.columns)), dtype=bool)
    if chain.links:
        panel, unlearned = without_unlearned(panel, split.train)
        notes += _unlearned(panel, unlearned)
    chain.fit(panel, split.train)
    data = chain.forward(panel)
    if unlearned.any():  # a forecast learns of these series from the rows that it follows
        partly = {panel.ids[series] for series in np.flatnonzero(unlearned.any(axis=1))}
        chain = Chain(chain.links, {name: states for name, states in chain.states.items() if name not in partly})
    tensor, mask = model_rows(panel, chain, data)
    check_precision(panel, chain, data)
    words, tokens = _texts(settings, panel, split, chain.lost, earlier)
    statics = Statics.fit(panel)
    numbers, codes = model_statics(panel, statics)
    known = len(panel.schema.future_covariates) + calendar_width(panel.schema)

    def windows(first: np.ndarray, stop: np.ndarray, stride: int = 1) -> Windows:
        return cut_windows(
            tensor,
            data.offsets,
            first - chain.lost,
            stop - chain.lost,
            lookback=lookback,
            horizon=horizon,
            targets=targets,
            known=known,
            stride=stride,
            tokens=tokens,
            mask=mask,
            breaks=data.breaks,
            fewest=fewest,
            static=numbers,
            static_codes=codes,
        )

    levels = settings.train.quantile_levels()
    output = build_output(settings.train.output, settings.train.loss, settings.train.huber_delta, levels)
    forecasts = settings.task is Task.FORECAST
    problem = Problem(
        task=settings.task,
        lookback=lookback,
        horizon=horizon,
        targets=targets,
        past_covariates=len(panel.schema.past_covariates),
        future_covariates=known,
        static_covariates=len(statics.scales),
        static_cardinalities=statics.cardinalities,
        season=season,
        output=output.name if forecasts else "hidden",
        outputs=output.outputs if forecasts else 1,
        vocabulary=len(words.tokenizer.vocabulary) if words.tokenizer else 0,
        text_length=0 if tokens is None else tokens.shape[1],
        quantiles=levels if forecasts else (),
    )
    train = windows(fewest + chain.lost, split.train, window.stride or 1)
    validation, test = windows(split.train, split.validation), windows(split.validation, split.lengths)
    held_out = {} if without_test(split) else {"test": test}
    notes += check_windows({"training": train, "validation": validation, **held_out}, panel)
    parts = Parts(problem, output, train, validation, test, chain, words, statics)
    if settings.task is Task.PRETRAIN:
        parts = with_hidden_steps(parts, settings.train)
    return Prepared(panel, split, chain, data, problem, train, validation, test, parts, notes)


def up_to_end(panel: Panel, split: Split) -> Panel:
    """The panel without what comes after a split: neither values nor gaps there may decide anything.

    Raises:
        UsageError: the split ends beyond the panel.
    """
    check_ends(split, panel.lengths, panel.ids if panel.schema.id else None)
    return beginnings(panel, np.maximum(split.lengths, 1))  # what is shorter is refused for its windows


def _unlearned(panel: Panel, unlearned: np.ndarray) -> tuple[str, ...]:
    """A line for each column that is left out in some series."""
    return tuple(
        f"{name!r} is left out, without a value in the training rows, of {named(panel, some)}"
        for name, some in zip(panel.schema.columns, unlearned.T, strict=True)
        if some.any()
    )


def model_rows(panel: Panel, chain: Chain, data: Transformed) -> tuple[Tensor, Tensor | None]:
    """What windows are cut from: the transformed columns, and after them what the calendar says of each row.

    Args:
        data: what `chain.forward` made of the panel.

    Returns:
        float32 `[rows, channels]`, 0 where a value is missing; boolean of the same shape, where values are real, or
        None when all are.
    """
    tensor, mask = data.tensor(), data.mask()
    if not panel.schema.calendar:
        return tensor, mask
    features = torch.from_numpy(calendar_features(panel.times[_kept_rows(panel, chain.lost)], panel.schema))
    if mask is not None:
        mask = torch.cat([mask, torch.ones_like(features, dtype=torch.bool)], dim=1)
    return torch.cat([tensor, features], dim=1), mask


def model_statics(panel: Panel, statics: Statics) -> tuple[Tensor | None, Tensor | None]:
    """Numbers and codes of each series, float32 `[series, numbers]` and int64 `[series, categories]`, or None."""
    numbers = torch.from_numpy(statics.numbers(panel)) if statics.scales else None
    return numbers, torch.from_numpy(statics.codes(panel)) if statics.words else None


def _texts(
    settings: Settings, panel: Panel, split: Split, lost: int, earlier: Tokenizer | None
) -> tuple[Words, Tensor | None]:
    """The words of a panel's training rows, and the texts of all rows in tokens, as `tokens_at_steps` gives them."""
    if panel.texts is None:
        return Words(), None
    starts = panel.offsets[:-1]
    training = np.concatenate([start + np.arange(rows) for start, rows in zip(starts, split.train, strict=True)])
    tokenizer = learn_tokenizer([panel.texts[row] for row in training], settings.tokens, earlier)
    coded = tokenizer.encode(panel.texts)
    longest = int(coded.lengths[training].max(initial=1))
    return Words(tokenizer), tokens_at_steps(panel, coded, lost, max(1, min(longest, LONGEST_TEXT)))


def tokens_at_steps(panel: Panel, coded: Ragged, lost: int, length: int) -> Tensor:
    """The text of each row in tokens, int32 `[rows, length]`; without the first `lost` rows of each series."""
    return padded(coded.take(_kept_rows(panel, lost)), length)


def _kept_rows(panel: Panel, lost: int) -> np.ndarray:
    """The rows of a panel without the first `lost` ones of each series, int64."""
    within = np.arange(len(panel.values)) - np.repeat(panel.offsets[:-1], panel.lengths)
    return np.flatnonzero(within >= lost)


def build_chain(settings: Settings, schema: Schema, states: Mapping[str, list[State]] | None = None) -> Chain:
    """The chain of transforms: those named act on the targets, the scaler on every column, but not on counts."""
    built = []
    for chosen, columns in links_of(settings, schema):
        with chosen.at_fault("build"):
            with_season, config = chosen.plugin.with_season, chosen.config
            transform = chosen.plugin.build(with_season(config, settings.window.season or 1) if with_season else config)
        lost = getattr(transform, "lost_rows", None)
        if not isinstance(lost, int) or isinstance(lost, bool) or not 0 <= lost <= MOST_LOST:
            raise PluginError(f"{chosen}: what build returns needs lost_rows, a whole number from 0 to {MOST_LOST}")
        built.append(Link(chosen.name, transform, columns))
    return Chain(built, states)


def links_of(settings: Settings, schema: Schema) -> list[tuple[Chosen, tuple[int, int]]]:
    """The transforms, and the first column and the one behind the last that each acts on."""
    wanted = [(chosen, (0, len(schema.targets))) for chosen in settings.transforms]
    first = len(schema.targets) if settings.train.counts else 0
    if settings.scale is not None and first < len(schema.columns):
        wanted.append((settings.scale, (first, len(schema.columns))))
    return wanted


def origin_rows(prepared: Prepared) -> np.ndarray:
    """Row in `panel.values` of the first predicted step of each test window, int64 `[windows]`."""
    return rows_of(prepared, prepared.test)


def rows_of(prepared: Prepared, windows: Windows) -> np.ndarray:
    """The same of any windows of these data."""
    series = windows.series.numpy()
    within = windows.origins.numpy() - prepared.data.offsets[series]
    return np.asarray(prepared.panel.offsets[series] + within + prepared.chain.lost)
