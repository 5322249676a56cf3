"""Levels of intervals as people write them."""

import numpy as np
import pytest

from tsformer.errors import UsageError
from tsformer.levels import ends_of, level_name, read_intervals, read_levels
from tsformer.predictive import Ask


@pytest.mark.parametrize(
    ("given", "levels"),
    [
        ("80,95", (80, 95)),
        (" 95 , 80 ", (80, 95)),
        ("99.5", (99.5,)),
        ([95, "80"], (80, 95)),
        (90, (90,)),
        (np.array([50.0, 80.0]), (50, 80)),
        ((), ()),
    ],
)
def test_levels(given, levels):
    assert read_levels(given) == levels


@pytest.mark.parametrize("given", ["", ",", "80,", "0", "100", "-5", "0.8", "a", "nan", "inf", "80;95", [None], [True]])
def test_what_is_no_level(given):
    with pytest.raises(UsageError, match="--levels are in percent, from 1 to below 100"):
        read_levels(given)


def test_a_level_twice():
    with pytest.raises(UsageError, match="--levels names 80 twice"):
        read_levels("80,95,80.0")


def test_names_and_ends():
    assert [level_name(level) for level in read_levels("80,99.5")] == ["80", "99.5"]
    levels = (50.0, 80.0, 95.0)
    assert Ask(levels).probabilities == (0.025, 0.1, 0.25, 0.75, 0.9, 0.975)
    ends = np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    assert [ends_of(ends, levels, level) for level in levels] == [(3, 4), (2, 5), (1, 6)]


def test_where_they_come_from():
    assert read_intervals(None) is None
    assert read_intervals("adaptive") == "adaptive"
    with pytest.raises(UsageError, match="--intervals must be one of native, conformal, adaptive, not 'bootstrap'"):
        read_intervals("bootstrap")
