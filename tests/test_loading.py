"""A run folder as the estimator of its task."""

import numpy as np
import pandas as pd
import pytest

import tsformer
from tsformer import Classifier, Forecaster, fitting
from tsformer import run as runs
from tsformer.config import resolve
from tsformer.config_layer import Layer
from tsformer.data.arrays import examples_from
from tsformer.errors import UsageError
from tsformer.loading import ELSEWHERE
from tsformer.plugin import Task


def test_the_task_decides(in_tmp):
    days = pd.date_range("2024-01-01", periods=40)
    forecaster = Forecaster("last_value", horizon=2, lookback=3).fit(pd.DataFrame({"ds": days, "y": np.arange(40.0)}))
    texts = [f"{word} {number}" for number in range(10) for word in ("yes", "no")]
    classifier = Classifier("bag_of_words", train_options={"max_steps": 2}).fit(texts, ["+", "-"] * 10)
    assert isinstance(tsformer.load(forecaster.save("a")), Forecaster)
    assert isinstance(tsformer.load(classifier.save("b")), Classifier)
    assert set(ELSEWHERE) == set(Task) - {Task.FORECAST, Task.CLASSIFY}


def test_a_pretrained_run_is_refused_with_what_it_is_for(in_tmp):
    small = {"name": "transformer", "d_model": 16, "d_ff": 16, "encoder_layers": 1}
    settings = resolve([Layer({"task": "pretrain", "model": small, "train": {"max_steps": 1}})], needs_data=False)
    result = fitting.fit(settings, examples_from(np.random.default_rng(0).normal(size=(20, 8))))
    writer = runs.Writer(in_tmp / "run")
    writer.start(result.fitted)
    writer.finish(result.fitted, result.summary())
    with pytest.raises(UsageError, match=r"run' was pretrained and predicts nothing by itself: Classifier\(init_from="):
        tsformer.load("run")
