"""What is said of a score: every metric by which a naive forecast is as good, and why MASE is undefined."""

import numpy as np
import pandas as pd
import pytest

from tsformer import Forecaster
from tsformer.evaluation.cautions import not_beaten, without_mase
from tsformer.evaluation.metrics import Score


def score(mase, mae, rmse, smape, **more):
    overall = {"mase": mase, "mae": mae, "rmse": rmse, "smape": smape, "windows": 3}
    return Score(overall, {"y": overall}, **more)


def said(own, naive, season=12, model="tcn"):
    return list(not_beaten(model, own, {"last_value": naive}, season))


def test_every_metric_that_is_not_better_is_named():
    better = score(0.5, 10.0, 20.0, 3.0)
    assert said(better, score(0.6, 11.0, 21.0, 4.0)) == []
    assert said(score(0.5, 4932.0, 20.0, 4.6), score(0.6, 2370.0, 21.0, 4.5)) == [
        "tcn does not beat last_value on the test part: MAE 4932 against 2370, sMAPE 4.6 against 4.5"
    ]
    assert said(better, score(0.6, 11.0, 19.0, 4.0)) == [
        "tcn does not beat last_value on the test part: RMSE 20 against 19"
    ]
    assert said(better, better)[0].count("against") == 4  # as good is not better


def test_what_is_undefined_is_not_compared():
    assert said(score(None, 1.0, 1.0, 1.0), score(0.1, 2.0, 2.0, 2.0)) == []


def test_a_yardstick_is_not_compared_with_itself():
    own = score(1.0, 1.0, 1.0, 1.0)
    assert said(own, own, model="last_value") == []
    assert list(not_beaten("tcn", own, {"seasonal_naive": own}, 1)) == []


@pytest.mark.parametrize(
    ("season", "more", "words"),
    [
        (200, {}, "the season of 200 is not shorter than the 115 rows before the test part"),
        (12, {}, "where a series repeats itself each season; left out of it: y"),
        (12, {"series": 4, "series_without_mase": 2}, "undefined for 2 of 4 series"),
    ],
)
def test_why_mase_is_undefined(season, more, words):
    (line,) = without_mase(score(None, 1.0, 1.0, 1.0, without_mase=("y",), **more), season, 115)
    assert words in line
    assert not list(without_mase(score(1.0, 1.0, 1.0, 1.0), season, 115))


def test_a_season_longer_than_the_rows_on_the_command_line(tsformer):
    words = ("--model", "last_value", "--data", "csv", "--path", tsformer.air, "--season", "200")
    code, _, err = tsformer("fit", *words)
    assert code == 0
    assert "warning: MASE is undefined: the season of 200 is not shorter than the 114 rows before" in err
    assert "repeats itself" not in err


def test_python_warns_with_the_same_lines():
    values = 50 + np.cumsum(np.random.default_rng(0).normal(size=120))
    table = pd.DataFrame({"ds": pd.date_range("2020-01-06", periods=120), "y": values})
    with pytest.warns(UserWarning, match="^seasonal_naive does not beat last_value on the test part: MASE .* against"):
        Forecaster("seasonal_naive", horizon=2, lookback=14).fit(table)
