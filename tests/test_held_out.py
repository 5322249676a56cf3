"""The test part of a fit: errors as of all windows at once, and how many true values its intervals hold."""

import numpy as np
import pytest

from tsformer import fitting, held_out, sources
from tsformer.calibration import calibrate
from tsformer.config import resolve
from tsformer.config_layer import Layer
from tsformer.predictive import Ask, predictive
from tsformer.preparation import rows_of
from tsformer.report import tables

INTERVALS = ("pinball", "crps", "wql", "coverage_80", "width_80", "msis_80", "coverage_95", "width_95", "msis_95")


@pytest.fixture(scope="module")
def fits():
    def fit(output):
        values = {
            "model": {"name": "ridge"},
            "task": "forecast",
            "data": {"name": "sine", "points": 300, "noise": 0.3},
            "window": {"lookback": 12, "horizon": 5},
            "train": {"output": output},
        }
        settings = resolve([Layer(values)])
        return fitting.fit(settings, sources.load_data(settings.data))

    return {output: fit(output) for output in ("point", "normal", "quantiles")}


def truth_of(result):
    rows = rows_of(result.prepared, result.prepared.test)[:, None] + np.arange(5)
    return result.prepared.panel.values[rows, :1]


@pytest.mark.parametrize("output", ["normal", "quantiles"])
def test_native_intervals_are_those_of_the_model(fits, output):
    result = fits[output]
    assert result.to_json(None)["intervals"] == "native"
    said = predictive(result.fitted, result.prepared.test, result.prepared.data, Ask((80.0, 95.0)))
    low, high = said.quantiles[..., 1], said.quantiles[..., 2]
    truth, found = truth_of(result), result.test.overall
    assert found["coverage_80"] == pytest.approx(((low <= truth) & (truth <= high)).mean())
    assert found["width_80"] == pytest.approx((high - low).mean())
    assert found["mae"] == pytest.approx(np.abs(said.point - truth).mean())


def test_conformal_intervals_are_made_of_errors_before_the_test_part(fits):
    result = fits["point"]
    assert result.to_json(None)["intervals"] == "conformal"
    validation = result.prepared.validation
    rows = rows_of(result.prepared, validation)[:, None] + np.arange(5)
    errors = np.abs(
        result.prepared.panel.values[rows, :1] - predictive(result.fitted, validation, result.prepared.data).point
    )
    rank = int(np.ceil((len(errors) + 1) * 0.8))
    radius = np.sort(errors, axis=0)[rank - 1]
    found, outside = result.test.overall, np.abs(result.forecast - truth_of(result)) > radius
    assert found["coverage_80"] == pytest.approx(1 - outside.mean())
    assert found["width_80"] == pytest.approx(2 * radius.mean())
    assert set(INTERVALS) <= set(found)
    assert len(calibrate(result.fitted, result.prepared).errors) == len(validation)


@pytest.mark.parametrize("output", ["point", "normal"])
def test_no_number_depends_on_how_many_windows_are_looked_at_together(fits, output, monkeypatch):
    result = fits[output]
    monkeypatch.setattr(held_out, "SCORED_AT_ONCE", 40)
    again = held_out.held_out(result.fitted, result.prepared)
    assert again.test.overall == pytest.approx(result.test.overall, rel=1e-6)
    assert again.baselines["last_value"].overall == pytest.approx(result.baselines["last_value"].overall)


def test_the_numbers_of_intervals_are_in_json_and_the_manifest(fits):
    for result in fits.values():
        printed, kept = result.to_json(None), result.summary()["metrics"]
        for metrics in (printed["test"], *printed["by_target"].values(), kept["test"]):
            assert all(isinstance(metrics[name], float) for name in INTERVALS)
            assert metrics["width_80"] < metrics["width_95"]
        assert not set(INTERVALS) & set(printed["baselines"]["last_value"])


def test_a_person_is_told_what_intervals_hold_and_are_worth(fits):
    result = fits["normal"]
    found = result.test.overall
    held = [f"{level} % intervals hold {100 * found[f'coverage_{level}']:.1f} %" for level in (80, 95)]
    assert list(tables.coverage(result.test, "native")) == [
        f"{', '.join(held)} of the true values (native)",
        f"WQL {found['wql']:.4g}, MSIS of 80 % {found['msis_80']:.4g}, MSIS of 95 % {found['msis_95']:.4g}",
    ]
    assert not list(tables.coverage(result.baselines["last_value"], None))
