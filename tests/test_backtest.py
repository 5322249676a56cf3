"""Rolling origins, models beside naive forecasts, parts that are kept, and what is said of models that fail."""

import json

import numpy as np
import pandas as pd
import pytest
from leaks import settings_for, world
from torch import nn

import tsformer
from tsformer import Config, Forecaster, ModelPlugin, fitting, register
from tsformer.data.selection import beginnings
from tsformer.errors import DataError, RunError, TsformerError, UsageError
from tsformer.evaluation.backtest import backtest
from tsformer.evaluation.baselines import seasonal_naive
from tsformer.evaluation.leaderboard import leaderboard
from tsformer.evaluation.losses import Losses
from tsformer.evaluation.metrics import score
from tsformer.evaluation.origin_table import forecasts_table
from tsformer.evaluation.origins import needs, rolling_plan
from tsformer.evaluation.protocols import ltsf
from tsformer.evaluation.scales import seasonal_scale
from tsformer.predictive import Ask


def wave(rows, seed=0, noise=0.3):
    """A season of 4 with noise, from 10 up."""
    return 12 + 2 * np.sin(np.arange(rows) * np.pi / 2) + np.random.default_rng(seed).normal(0, noise, rows)


class TestPlan:
    """Where the origins are, and what may be learned before them."""

    def test_the_last_one_reaches_to_the_end_of_each_series(self, make_panel):
        panel = make_panel([np.arange(60.0), np.arange(50.0)])
        plan = rolling_plan(panel, 4, 3, 2, seen=8)
        (block,) = plan.blocks
        assert block.series.tolist() == [0, 1, 0, 1, 0, 1]
        assert block.origins.tolist() == [52, 42, 54, 44, 56, 46]
        assert block.number.tolist() == [0, 0, 1, 1, 2, 2]
        assert block.split.lengths.tolist() == block.split.validation.tolist() == [52, 42]
        assert block.split.train.tolist() == [47, 38]  # a tenth of 52 is 5; a tenth of 42 less than a horizon
        assert plan.before.tolist() == [52, 42]
        assert plan.notes == ("3 origins, 2 rows apart, horizon 4, fitted once, before the first",)

    @pytest.mark.parametrize(
        ("refit", "numbers"), [("every", [[0], [1], [2]]), (2, [[0, 1], [2]]), ("never", [[0, 1, 2]])]
    )
    def test_refits(self, make_panel, refit, numbers):
        plan = rolling_plan(make_panel([np.arange(60.0)]), 4, 3, refit=refit)
        assert [block.number.tolist() for block in plan.blocks] == numbers
        for block in plan.blocks:
            assert block.split.lengths[0] == block.origins.min()

    def test_series_that_are_too_short_are_left_out_where_they_are(self, make_panel):
        panel = make_panel([np.arange(60.0), np.arange(30.0), np.arange(12.0)])
        plan = rolling_plan(panel, 4, 3, seen=12)
        (block,) = plan.blocks
        assert block.origins[block.series == 1].tolist() == [22, 26]  # 22 - 4 hold 12 + 4 rows, 18 - 4 do not
        assert block.number[block.series == 1].tolist() == [1, 2]
        assert block.split.lengths.tolist() == [48, 22, 0]
        assert plan.before.tolist() == [48, 22, 12]
        assert plan.notes[1:] == (
            "left out, too short for any origin: 1 of 3 series (s2)",
            "1 of 3 origins left out of 1 of 3 series (s1), too short there",
        )

    def test_no_steps_that_are_forecast_hold_a_gap(self, make_panel):
        panel = make_panel([np.arange(60.0)], breaks=np.array([52]))
        plan = rolling_plan(panel, 4, 3)
        assert plan.blocks[0].origins.tolist() == [48, 56]  # not 52, which the steps of no earlier row lead to
        assert "1 origin(s) left out, for gaps" in plan.notes[1]

    def test_none_left_says_what_is_needed(self, make_panel):
        rolling_plan(make_panel([np.arange(24.0)]), 4, 3, seen=12)
        with pytest.raises(
            DataError, match=r"the table has 23 rows; one origin .* of 12 \+ 4 rows to learn from need 24"
        ):
            rolling_plan(make_panel([np.arange(23.0)]), 4, 3, seen=12)
        for wrong in ({"origins": 0}, {"step": 0}, {"refit": "often"}, {"refit": 0}):
            with pytest.raises(UsageError, match=f"--{next(iter(wrong))}"):
                rolling_plan(make_panel([np.arange(60.0)]), 4, **wrong)

    def test_horizon_and_season_of_several_models(self, make_panel):
        panel = make_panel([np.arange(60.0)])
        assert needs({"a": settings_for("ridge", ["log_return"])}, panel) == (4, 4, 13)
        with pytest.raises(UsageError, match=r"different numbers of steps \(a 4, b 5\)"):
            needs({"a": settings_for(), "b": settings_for(window={"horizon": 5})}, panel)


class TestBacktest:
    """Models fitted before origins, and measured after them."""

    def test_errors_are_those_of_the_forecasts(self, make_panel):
        panel = make_panel([wave(60), wave(50, 1)])
        plan = rolling_plan(panel, 4, 3, seen=12)
        made = backtest({"ridge": settings_for("ridge")}, panel, plan)
        assert list(made.entries) == ["ridge", "last_value", "seasonal_naive", "naive2"]
        (block,) = plan.blocks
        first = panel.offsets[block.series] + block.origins
        truth = panel.values[first[:, None] + np.arange(4), :1]
        naive = made.entries["seasonal_naive"]
        np.testing.assert_array_equal(naive.forecasts[0].point, seasonal_naive(panel, block.series, first, 4, 4))
        scale = seasonal_scale(panel, plan.before, 4)
        for entry in made.entries.values():
            expected = score(entry.forecasts[0].point, truth, block.series, scale, ["y0"]).overall
            for name in ("mae", "rmse", "mase", "smape"):
                assert entry.score.overall[name] == pytest.approx(expected[name])
        fitted = fitting.learn(settings_for("ridge"), panel, split=block.split).fitted
        again = backtest({"run": fitted}, panel, plan).entries["run"]
        np.testing.assert_array_equal(again.forecasts[0].point, made.entries["ridge"].forecasts[0].point)
        assert (again.fits, made.entries["ridge"].fits) == (0, 1)
        assert again.notes == (
            "whether the run was fitted on some of these rows is not known: its errors are too small then",
        )

    def test_each_block_has_a_fit_of_its_own(self, make_panel):
        panel = make_panel([wave(80)])
        plan = rolling_plan(panel, 4, 3, refit="every", seen=12)
        made = backtest({"ridge": settings_for("ridge")}, panel, plan).entries["ridge"]
        assert made.fits == 3
        for block, said in zip(plan.blocks, made.forecasts, strict=True):
            cut = beginnings(panel, block.origins)
            fitted = fitting.learn(settings_for("ridge"), cut, split=block.split).fitted
            alone = Forecaster.from_run(fitted, {"status": "complete", "metrics": {}, "steps": 0, "best_step": 0})
            np.testing.assert_allclose(said.point[0, :, 0], alone.predict(cut)["y0"], rtol=1e-6)

    def test_errors_of_standardised_values(self, make_panel):
        panel = make_panel([wave(200)])
        plan = ltsf(panel, 4)
        made = backtest({"ridge": settings_for("ridge")}, panel, plan)
        board = leaderboard(made)
        assert board.metric == "mse"
        own = next(row for row in board.rows if row.name == "ridge")
        (block,) = plan.blocks
        truth = panel.values[block.origins[:, None] + np.arange(4), :1]
        error = (made.entries["ridge"].forecasts[0].point - truth) / plan.scale[0, 0, 1]
        assert own.metrics["mse"] == pytest.approx((error**2).mean())
        assert own.metrics["mae"] == pytest.approx(np.abs(error).mean())

    def test_series_too_short_to_learn_from(self, make_panel):
        panel = make_panel([wave(80), wave(24, 1)])
        plan = rolling_plan(panel, 4, 2)  # nothing is known of a lookback there
        made = backtest({"a": settings_for("ridge"), "b": settings_for("ridge", short="skip")}, panel, plan)
        (failure,) = made.entries["a"].failures
        assert "series 's1' has 12 rows; a lookback of 12 and horizon 4 need 16 in the training part" in failure.reason
        assert (failure.windows, failure.exit_code) == (4, 3)
        b = made.entries["b"]
        assert b.notes == ("not learned from, too short before the origin: 1 of 2 series (s1)",)
        assert np.isfinite(b.forecasts[0].point).all()  # all the same, each with 12 rows to look back on

    def test_names(self, make_panel):
        panel = make_panel([wave(60)])
        plan = rolling_plan(panel, 4, 2, seen=12)
        with pytest.raises(UsageError, match="last_value is the name of a naive forecast"):
            backtest({"last_value": settings_for("ridge")}, panel, plan)
        made = backtest({"seasonal_naive": settings_for("seasonal_naive")}, panel, plan)
        assert not made.entries["seasonal_naive"].yardstick
        board = leaderboard(made)
        assert next(row for row in board.rows if row.name == "seasonal_naive").skill is None


class Odd(Config):
    """Options of a model that fails."""


class Failing(nn.Module):
    """Fails to answer where a window ends above 13."""

    def __init__(self, config, problem):
        super().__init__()
        self.problem = problem

    def forward(self, batch, truth=0.0):
        if bool((batch.past[:, -1] > 13).any()):
            raise ValueError("too high")
        shape = (len(batch.past), self.problem.horizon, self.problem.targets, self.problem.outputs)
        return batch.past.new_zeros(shape)


class TestFailures:
    """A model that fails somewhere ends nothing."""

    @pytest.fixture
    def failing(self, own_registry):
        plugin = ModelPlugin(config=Odd, build=Failing, example=Odd(), fit=lambda module, train, validation: None)
        register("failing", plugin)
        return settings_for("failing", scale="none")

    def test_at_one_origin(self, failing, make_panel):
        values = np.full(60, 10.0) + np.arange(60) % 2
        values[51] = 20.0  # the last row that the second of three origins sees
        panel = make_panel([values])
        made = backtest({"failing": failing, "ridge": settings_for("ridge")}, panel, rolling_plan(panel, 4, 3, seen=12))
        entry = made.entries["failing"]
        (failure,) = entry.failures
        assert (failure.numbers, failure.windows, failure.exit_code) == ((1,), 1, 5)
        assert "too high" in failure.reason
        assert np.isnan(entry.forecasts[0].point[1]).all()
        assert entry.score.left_out == 4
        assert not made.entries["ridge"].failures
        row = next(row for row in leaderboard(made).rows if row.name == "failing")
        assert (row.windows, row.without) == (3, 1)
        assert made.entries["ridge"].losses.mean("mae").shape == (1, 3)

    def test_at_all_of_them(self, failing, make_panel):
        panel = make_panel([np.full(60, 20.0) + np.arange(60) % 2])
        with pytest.raises(TsformerError, match=r"failing: .*too high") as caught:
            backtest({"failing": failing}, panel, rolling_plan(panel, 4, 3, seen=12))
        assert caught.value.exit_code == 5


class TestFolder:
    """What is finished is not done again."""

    def line(self, panel, folder, *, refit="every", interrupted=None, **candidates):
        seen = []

        def on_progress(progress):
            seen.append((progress.name, progress.part))
            if interrupted is not None and progress.part == interrupted:
                raise KeyboardInterrupt

        plan = rolling_plan(panel, 4, 3, refit=refit, seen=12)
        made = backtest(
            candidates or {"ridge": settings_for("ridge"), "other": settings_for("ridge", ["log"])},
            panel,
            plan,
            folder=folder,
            on_progress=on_progress,
            ask=Ask((50.0,)),
        )
        return made, seen

    def test_goes_on_where_it_was(self, make_panel, tmp_path, monkeypatch):
        panel, folder = make_panel([wave(80), wave(70, 1)]), tmp_path / "kept"
        whole, _ = self.line(panel, tmp_path / "whole")
        with pytest.raises(KeyboardInterrupt):
            self.line(panel, folder, interrupted=5)
        kept = sorted(file.name for file in folder.glob("*.json"))
        assert len(kept) == 1 + 4
        fits = []
        monkeypatch.setattr(fitting, "learn", lambda *args, **more: fits.append(1) or learn(*args, **more))
        again, _ = self.line(panel, folder)
        assert len(fits) == 2
        for name, entry in whole.entries.items():
            other = again.entries[name]
            assert other.score == entry.score
            assert other.fits == entry.fits
            for one, two in zip(entry.forecasts, other.forecasts, strict=True):
                np.testing.assert_array_equal(one.point, two.point)
                np.testing.assert_array_equal(one.quantiles, two.quantiles)
        assert again.entries["ridge"].seconds > 0
        self.line(panel, folder)
        assert len(fits) == 2

    def test_another_backtest_is_refused(self, make_panel, tmp_path):
        panel, folder = make_panel([wave(80)]), tmp_path / "kept"
        self.line(panel, folder, ridge=settings_for("ridge"))
        self.line(panel, folder, ridge=settings_for("ridge"), more=settings_for("mean"))  # one more is welcome
        with pytest.raises(UsageError, match="holds a backtest with other ridge; give another folder"):
            self.line(panel, folder, ridge=settings_for("ridge", ["log"]))
        with pytest.raises(UsageError, match="other origins"):
            self.line(panel, folder, refit="never", ridge=settings_for("ridge"))
        with pytest.raises(UsageError, match="other data"):
            self.line(make_panel([wave(80) + 1e-9]), folder, ridge=settings_for("ridge"))
        (tmp_path / "other").mkdir()
        (tmp_path / "other" / "file").touch()
        with pytest.raises(UsageError, match="is not empty and holds no backtest"):
            self.line(panel, tmp_path / "other")

    def test_damage_is_named(self, make_panel, tmp_path):
        panel = make_panel([wave(80)])
        self.line(panel, tmp_path / "kept", ridge=settings_for("ridge"))
        part = next((tmp_path / "kept").glob("ridge*0000-0.safetensors"))
        part.write_bytes(part.read_bytes()[:40])
        with pytest.raises(RunError, match="cannot be read"):
            self.line(panel, tmp_path / "kept", ridge=settings_for("ridge"))
        part.unlink()
        with pytest.raises(RunError, match="is missing; the backtest is damaged"):
            self.line(panel, tmp_path / "kept", ridge=settings_for("ridge"))
        json_file = next((tmp_path / "kept").glob("ridge*0000.json"))
        json_file.write_text(json.dumps({"failures": 3}))
        with pytest.raises(RunError, match="is no part of a backtest"):
            self.line(panel, tmp_path / "kept", ridge=settings_for("ridge"))


learn = fitting.learn


class TestIntervals:
    """Of points, by errors that were known at the origin."""

    @pytest.mark.parametrize("intervals", ["conformal", "adaptive"])
    def test_cover_what_comes(self, make_panel, intervals):
        panel = make_panel([wave(420, seed) for seed in range(3)])
        plan = rolling_plan(panel, 4, 20, seen=12)
        made = backtest({"a": settings_for("ridge")}, panel, plan, ask=Ask((80.0,)), intervals=intervals)
        said = made.entries["a"].forecasts[0]
        (block,) = plan.blocks
        first = panel.offsets[block.series] + block.origins
        truth = panel.values[first[:, None] + np.arange(4), :1]
        low, high = said.quantiles[..., 0], said.quantiles[..., 1]
        assert 0.72 < ((low <= truth) & (truth <= high)).mean() < 0.9
        table = forecasts_table(made)
        assert list(table.columns) == ["id", "origin", "ds", "step", "model", "y", "forecast", "lo_80", "hi_80"]
        own = table[table.model == "a"]
        np.testing.assert_array_equal(own.lo_80.to_numpy().reshape(-1, 4), low[..., 0])

    def test_follow_the_errors_of_earlier_origins_and_of_no_later_ones(self, make_panel):
        values = wave(300)
        values[240:] += np.random.default_rng(1).normal(0, 3, 60)  # ten times the noise
        panel = make_panel([values])
        plan = rolling_plan(panel, 4, 15, seen=12)

        def widths(panel, intervals):
            made = backtest({"a": settings_for("ridge")}, panel, plan, ask=Ask((80.0,)), intervals=intervals)
            quantiles = made.entries["a"].forecasts[0].quantiles
            return (quantiles[..., 1] - quantiles[..., 0])[..., 0]

        still, following = widths(panel, "conformal"), widths(panel, "adaptive")
        np.testing.assert_allclose(still, still[:1].repeat(15, axis=0))
        assert following[-1].mean() > 1.5 * still[-1].mean()
        later = values.copy()
        later[280:] = 1e4
        np.testing.assert_array_equal(widths(make_panel([later]), "adaptive")[:11], following[:11])

    def test_too_few_errors_leave_the_points(self, make_panel):
        panel = make_panel([wave(80)])
        made = backtest({"a": settings_for("ridge")}, panel, rolling_plan(panel, 4, 3, seen=12), ask=Ask((99.0,)))
        entry = made.entries["a"]
        assert "needs the errors of 99 forecasts" in entry.notes[-1]
        assert np.isfinite(entry.forecasts[0].point).all()
        assert np.isnan(entry.forecasts[0].quantiles).all()


class TestLosses:
    """Losses by series and origin."""

    def test_by_hand(self):
        losses = Losses(np.array([[2.0], [np.nan]]), 2, (0.1, 0.9))
        truth, forecast = np.array([[[1.0], [3.0]], [[4.0], [np.nan]]]), np.array([[[2.0], [1.0]], [[2.0], [9.0]]])
        quantiles = np.stack([forecast - 1, forecast + 1], axis=-1)
        losses.add(forecast, truth, np.array([0, 1]), np.array([1, 0]), quantiles)
        nan = np.nan
        np.testing.assert_allclose(losses.mean("mae"), [[nan, 1.5], [2, nan]])
        np.testing.assert_allclose(losses.mean("mase"), [[nan, 0.75], [nan, nan]])
        np.testing.assert_allclose(losses.mean("mse"), [[nan, 2.5], [4, nan]])
        np.testing.assert_allclose(losses.mean("smape"), [[nan, (200 / 3 + 100) / 2], [200 * 2 / 6, nan]])
        # 1 in [1, 3]: 0.1 * 0 and 0.1 * 2; 3 above [0, 2]: 0.1 * 3 and 0.9 * 1; times 2, over two probabilities
        np.testing.assert_allclose(losses.mean("wql")[0, 1], (0.2 + 1.2) / 2)


class TestLeaderboard:
    """Order, skill and words."""

    def made(self, make_panel, series=1, **candidates):
        panel = make_panel([wave(120, seed) + 5 * (np.arange(120) // 4 % 2) for seed in range(series)])
        plan = rolling_plan(panel, 4, 8, seen=12)
        return backtest(candidates or {"ridge": settings_for("ridge")}, panel, plan)

    @pytest.mark.parametrize("series", [1, 25])
    def test_skill_spread_and_words(self, make_panel, series):
        made = self.made(make_panel, series)
        board = leaderboard(made)
        names = [row.name for row in board.rows]
        assert names[0] == "ridge"
        best, naive = board.rows[0], next(row for row in board.rows if row.name == "seasonal_naive")
        assert best.skill == pytest.approx(1 - best.metrics["mase"] / naive.metrics["mase"])
        each = [
            1 - mine / other
            for mine, other in zip(board.by_origin["ridge"], board.by_origin["seasonal_naive"], strict=True)
        ]
        assert (best.skill_low, best.skill_high) == pytest.approx((min(each), max(each)))
        assert best.skill_sd == pytest.approx(np.std(each, ddof=1))
        assert best.p_reference == naive.p_best
        assert best.p_best is None
        test = "bootstrap over 25 series x 8" if series > 1 else "Diebold-Mariano over 8"
        assert (
            f"less MASE than seasonal_naive: a real difference (p = {best.p_reference:.2g}, {test}" in board.verdict[0]
        )
        naive2 = next(row for row in board.rows if row.name == "naive2")
        assert naive2.metrics["owa"] == 1
        owa = [best.metrics[name] / naive2.metrics[name] for name in ("mase", "smape")]
        assert best.metrics["owa"] == pytest.approx(sum(owa) / 2)
        assert json.loads(json.dumps(board.to_json(), allow_nan=False))["leaderboard"][0]["model"] == "ridge"

    def test_another_metric(self, make_panel):
        made = self.made(make_panel)
        board = leaderboard(made, "rmse")
        assert board.rows[0].skill == pytest.approx(
            1 - board.rows[0].metrics["rmse"] / made.entries["seasonal_naive"].score.overall["rmse"]
        )
        with pytest.raises(UsageError, match=r"--metric mas: this backtest has .*; did you mean 'mase'"):
            leaderboard(made, "mas")

    def test_naive_forecasts_may_be_the_best(self, make_panel):
        panel = make_panel([np.tile([1.0, 5.0, 2.0, 8.0], 30) + np.random.default_rng(0).normal(0, 1e-3, 120)])
        made = backtest({"last": settings_for("last_value")}, panel, rolling_plan(panel, 4, 4, seen=12))
        assert leaderboard(made).verdict[0] == "no model beats naive2 by MASE"

    def test_a_series_that_repeats_itself_has_no_mase(self, make_panel):
        panel = make_panel([np.tile([1.0, 5.0, 2.0, 8.0], 30)])
        made = backtest({"ridge": settings_for("ridge")}, panel, rolling_plan(panel, 4, 4, seen=12))
        board = leaderboard(made)
        assert board.metric == "mae"
        assert board.rows[0].metrics["mase"] is None


class TestPython:
    """`tsformer.backtest`."""

    def test_models_by_name(self, make_panel, tmp_path):
        days = make_panel([wave(100)]).times
        table = pd.DataFrame({"day": days, "sold": wave(100)})
        ridge = Forecaster("ridge", horizon=4, lookback=12, season=4, time_column="day", targets="sold")
        ridge.fit(table)
        ridge.save(tmp_path / "run")
        found = tsformer.backtest(
            {"ridge": ridge, "mean": "mean", "run": tmp_path / "run"}, table, origins=3, levels=[50], refit="every"
        )
        assert set(found.leaderboard.model) >= {"ridge", "mean", "run", "last_value", "seasonal_naive"}
        assert found.leaderboard.set_index("model").fits[["ridge", "run"]].tolist() == [3, 0]
        assert list(found.forecasts.columns) == [
            "origin",
            "day",
            "step",
            "model",
            "y",
            "forecast",
            "lo_50",
            "hi_50",
        ]
        assert len(found.forecasts) == 3 * 4 * len(found.leaderboard)
        assert not found.leaderboard.without_forecast.any()
        assert found.verdict[0].startswith("ridge has ")
        with pytest.raises(UsageError, match="two models are called 'ridge'"):
            tsformer.backtest(["ridge", "ridge"], table)
        with pytest.raises(UsageError, match="a model is a Forecaster"):
            tsformer.backtest({"a": 3}, table)


def test_texts_covariates_masks_and_gaps_of_one_world():
    panel = world()
    plan = rolling_plan(panel, 4, 2, seen=12)
    made = backtest({"a": settings_for("tcn_transformer")}, panel, plan)
    assert not made.entries["a"].failures
    table = forecasts_table(made)
    assert list(table.columns[:5]) == ["id", "origin", "day", "step", "target"]
