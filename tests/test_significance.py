"""Tests of differences, against statsmodels, numbers worked out by hand, and what chance gives."""

import numpy as np
import pytest
import statsmodels.api as sm
from scipy import stats

from tsformer.evaluation import significance
from tsformer.evaluation.significance import MANY, bootstrap, compare, diebold_mariano


@pytest.mark.parametrize(("count", "overlap"), [(8, 1), (40, 1), (40, 3), (200, 12)])
def test_statsmodels_hac_gives_the_same_statistic(count, overlap):
    rng = np.random.default_rng(count + overlap)
    difference = np.convolve(rng.normal(0.2, 1, count + overlap - 1), np.ones(overlap), "valid")
    model = sm.OLS(difference, np.ones(count))
    kernel = {"maxlags": overlap - 1, "kernel": lambda lags: np.ones(lags + 1), "use_correction": False}
    statistic = model.fit(cov_type="HAC", cov_kwds=kernel).tvalues[0]
    correction = np.sqrt((count + 1 - 2 * overlap + overlap * (overlap - 1) / count) / count)
    expected = 2 * stats.t.sf(abs(statistic * correction), count - 1)
    assert diebold_mariano(difference, overlap) == pytest.approx(expected, rel=1e-9)


def test_by_hand():
    # mean 2, covariance of lag 0: 2/3; DM = 2 / sqrt(2/9) = 4.2426; correction sqrt(2/3): 3.4641, t with 2 degrees
    assert diebold_mariano(np.array([1.0, 2.0, 3.0])) == pytest.approx(0.0741799, abs=1e-6)


def test_what_cannot_be_told():
    assert diebold_mariano(np.array([1.0, 2.0])) is None
    assert diebold_mariano(np.array([1.0, 1.0, 1.0])) is None  # as large at each origin, and no scatter
    assert diebold_mariano(np.zeros(5)) == 1.0
    assert diebold_mariano(np.arange(5.0), overlap=5) is None
    assert compare(np.full((1, 3), np.nan), np.ones((1, 3))) is None
    assert bootstrap(np.ones((30, 2))) is None
    assert bootstrap(np.zeros((30, 2))) == 1.0


def test_a_negative_variance_is_taken_without_overlap():
    swinging = np.array([1.0, -1.0] * 6) + 0.1
    assert diebold_mariano(swinging, 2) == pytest.approx(diebold_mariano(swinging, 1))


@pytest.mark.parametrize(("overlap", "hard"), [(1, 1.0), (2, 1.0), (1, 0.0)])
def test_the_bootstrap_errs_no_more_often_than_it_says(overlap, hard, monkeypatch):
    """Without a difference p is below 5 % in 5 % of cases at most, though moments be hard for all series at once."""
    monkeypatch.setattr(significance, "DRAWS", 400)
    found, naive = [], []
    for seed in range(120):
        rng = np.random.default_rng(seed)
        moments = hard * np.convolve(rng.normal(0, 1, 12 + overlap - 1), np.ones(overlap), "valid")
        cells = rng.normal(0, 1, (40, 12)) + rng.normal(0, 1, (40, 1)) + moments
        found.append(bootstrap(cells, overlap, seed))
        naive.append(stats.ttest_1samp(cells.reshape(-1), 0).pvalue)
    assert np.mean(np.array(found) < 0.05) < 0.11  # three standard errors over 5 %
    assert np.mean(np.array(found) < 0.5) > 0.25  # and it is no test that finds nothing
    assert np.mean(np.array(naive) < 0.05) > 0.3  # as one that takes all cells for independent


def test_the_bootstrap_finds_a_difference():
    rng = np.random.default_rng(0)
    cells = rng.normal(-0.5, 1, (200, 8))
    assert bootstrap(cells[:, :1]) == pytest.approx(stats.ttest_1samp(cells[:, 0], 0).pvalue, rel=1, abs=1e-6)
    assert bootstrap(cells, 2) < 0.001
    assert bootstrap(cells, seed=1) == bootstrap(cells, seed=1)


def test_few_series_are_averaged_and_many_are_drawn():
    rng = np.random.default_rng(0)
    few, many = rng.normal(0, 1, (2, 10)), rng.normal(0, 1, (MANY, 10))
    few[0, 0] = np.nan  # then the other series stands for that origin
    found = compare(few, np.zeros_like(few), 2)
    assert (found.test, found.origins, found.series) == ("Diebold-Mariano", 10, 2)
    assert found.p == diebold_mariano(np.nanmean(few, axis=0), 2)
    assert found.mean == pytest.approx(np.nanmean(few))
    assert compare(many, np.zeros_like(many)).test == "bootstrap"
    assert compare(few[:, :2], np.zeros((2, 2))).test == ""
