"""What the tests of leaks share: panels with garbage behind a cut-off, and all that a fit leaves behind."""

import hashlib
import json
from dataclasses import fields, replace

import numpy as np
import pandas as pd
import torch
from torch import nn

from tsformer import Config, ModelPlugin, TransformPlugin, fitting
from tsformer.calibration import calibrate
from tsformer.config import resolve
from tsformer.config_layer import Layer
from tsformer.data.panel import Panel, Schema
from tsformer.data.split import Split
from tsformer.predictive import Ask, predictive

HORIZON, LOOKBACK = 4, 12
WORDS = ("calm", "rain", "wind", "sun", "fog")


def settings_for(model="linear", transforms=(), *, short="error", steps=6, **options):
    """A fit of a second or less, with explicit windows; further sections of the configuration by name."""
    sizes = {"d_model": 8, "d_ff": 8, "n_heads": 2} if "transformer" in model else {}
    values = {
        "model": {"name": model, **sizes, **options.pop("model_options", {})},
        "transform": [{"name": name} for name in transforms],
        "window": {"lookback": LOOKBACK, "horizon": HORIZON, "season": 4, "short": short},
        "train": {"max_steps": steps, "eval_every": 2, "patience": 2, "lr": 0.01, **options.pop("train", {})},
        **options,
    }
    return resolve([Layer(values)], needs_data=False)


def world(lengths=(90, 70, 81), *, covariates=True, masked=True, gap=True, texts=True, targets=2):
    """Positive series of unequal ends with all kinds of covariates, missing values and a gap."""
    rng = np.random.default_rng(5)
    more = 2 if covariates else 0
    parts = []
    for length in lengths:
        wave = 20 + 5 * np.sin(np.arange(length) * np.pi / 2)[:, None] + rng.normal(0, 1, (length, targets + more))
        parts.append(wave + rng.uniform(0, 9))
    values = np.concatenate(parts)
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    if masked:
        values[rng.uniform(size=values.shape) < 0.05] = np.nan
    days = [pd.date_range("2024-01-01", periods=length) for length in lengths]
    statics = ("size", "kind") if covariates else ()
    return Panel(
        np.ascontiguousarray(values),
        offsets,
        days[0].append(days[1:]),
        tuple(f"s{number}" for number in range(len(lengths))),
        Schema(
            tuple(f"y{number}" for number in range(targets)),
            "day",
            "id",
            past_covariates=("past",) if covariates else (),
            future_covariates=("ahead",) if covariates else (),
            static_covariates=statics,
            calendar=("dayofweek",) if covariates else (),
            frequency="D",
            text="news" if texts else None,
        ),
        texts=tuple(" ".join(rng.choice(WORDS, 2)) for _ in values) if texts else None,
        masked=masked,
        breaks=offsets[:1] + 40 if gap else np.zeros(0, dtype=np.int64),
        static=pd.DataFrame({"size": [1.0, 3.0, 2.0], "kind": ["a", "b", "a"]}) if statics else None,
    )


def spoiled(panel, cut, *, size=1e5, sign=1, known=0, missing=True, gaps=True):
    """The panel with garbage from row `cut[i]` of each series on.

    Args:
        size, sign: of the numbers that take the place of all columns.
        known: rows from there on of which future covariates stay, since they may be read ahead.
        missing, gaps: whether some of the numbers are missing, and whether there is a gap before the last row.
    """
    rng = np.random.default_rng(99)
    values, breaks = panel.values.copy(), panel.breaks
    texts = None if panel.texts is None else list(panel.texts)
    ahead = len(panel.schema.future_covariates)
    for series, first in enumerate(np.asarray(cut).tolist()):
        start, stop = panel.rows(series).start + first, panel.rows(series).stop
        stay = values[start : start + known, values.shape[1] - ahead :].copy()
        values[start:stop] = sign * size * rng.uniform(1, 2, (stop - start, values.shape[1]))
        if missing and panel.masked:
            values[start + 1 : stop : 3, 0] = np.nan
        if ahead:
            values[start : start + len(stay), values.shape[1] - ahead :] = stay
        if texts is not None:
            texts[start:stop] = ["unseen garbage words"] * (stop - start)
        if gaps and len(breaks) and stop - start > 1:
            breaks = np.union1d(breaks, [stop - 1])
    return replace(panel, values=values, texts=None if texts is None else tuple(texts), breaks=breaks)


def without_test_part(panel, cut):
    """A split whose validation part ends at the cut-off, and nothing follows."""
    cut = np.asarray(cut, dtype=np.int64)
    return Split(cut - 2 * HORIZON, cut, cut)


def digest(batch):
    """A hash of all tensors of a batch."""
    found = hashlib.sha256()
    for field in fields(batch):
        tensor = getattr(batch, field.name)
        if tensor is not None:
            found.update(field.name.encode() + tensor.numpy().tobytes())
    return found.hexdigest()


def fit_traces(settings, panel, split=None):
    """What is left of a fit, by name, and the fitted model with its data.

    Among the traces are hashes of all windows for training and validation, and of every batch that the module was
    given in the order in which it came.
    """
    given, notes = [], []

    def watched(fitted):
        fitted.module.register_forward_pre_hook(lambda module, inputs: given.append(digest(inputs[0])))

    watch = fitting.Watch(start=watched, note=lambda line: notes.append(str(line)))
    learned = fitting.learn(settings, panel, split=split, watch=watch)
    fitted, prepared, history = learned.fitted, learned.prepared, learned.history
    traces = {
        "states": json.dumps(fitted.chain.to_json()),
        "words": repr(fitted.words.tokenizer and fitted.words.tokenizer.vocabulary),
        "statics": repr(fitted.statics),
        "problem": repr(fitted.problem),
        "settings": json.dumps(fitted.settings.to_json()),
        "training windows": digest(prepared.train.batch()),
        "validation windows": digest(prepared.validation.batch()),
        "batches": json.dumps(given),
        "evaluations": json.dumps([{**each, "seconds": 0} for each in history.evaluations]),
        "chosen step": f"{history.best_step} of {history.steps}, {history.stopped}",
        "weights": digest_of_weights(fitted.module),
        "dependence": repr(fitted.dependence),
        "calibration": hashlib.sha256(calibrate(fitted, prepared).to_bytes()).hexdigest(),
        "notes": repr(notes),
    }
    return traces, fitted, prepared


def digest_of_weights(module):
    found = hashlib.sha256()
    for name, tensor in sorted(module.state_dict().items()):
        found.update(name.encode() + tensor.cpu().numpy().tobytes())
    return found.hexdigest()


def forecasts_at(fitted, prepared, cut):
    """Bytes of points, and of quantiles where there are any, from the cut-off of each series."""
    first = torch.from_numpy(prepared.data.offsets[:-1] + np.asarray(cut) - prepared.chain.lost)
    chosen = torch.isin(prepared.test.origins, first)
    windows = replace(
        prepared.test,
        starts=prepared.test.starts[chosen],
        origins=prepared.test.origins[chosen],
        series=prepared.test.series[chosen],
    )
    assert len(windows) == len(first)
    made = predictive(fitted, windows, prepared.data, Ask(levels=(80.0,), samples=20))
    return made.point.tobytes() + (b"" if made.quantiles is None else made.quantiles.tobytes())


def changed(one, other):
    """The names of the traces that differ."""
    assert one.keys() == other.keys()
    return [name for name in one if one[name] != other[name]]


class _PeekingScale:
    """Centres rows by the mean of all that it is given in `forward`, later ones too."""

    lost_rows, pointwise = 0, True

    def fit(self, rows):
        return {"mean": rows.mean(axis=0).tolist()}

    def forward(self, values, state):
        return values - values.mean(axis=0)

    def inverse(self, path, state, anchor):
        return path + np.array(state["mean"])[: path.shape[-1]]


class _Constant(nn.Module):
    def __init__(self, problem):
        super().__init__()
        self.problem = problem
        self.register_buffer("level", torch.zeros(()))

    def forward(self, batch, truth=0.0):
        return self.level.expand(len(batch.past), self.problem.horizon, self.problem.targets, self.problem.outputs)


def _peeking_fit(module, train, validation):
    module.level.copy_(train.values.mean())  # the rows of all parts


PEEKING_TRANSFORM = TransformPlugin(config=Config, build=lambda config: _PeekingScale(), example=Config())
PEEKING_MODEL = ModelPlugin(
    config=Config, build=lambda config, problem: _Constant(problem), example=Config(), fit=_peeking_fit
)
