"""Studies: what is searched, how trials are judged, that nothing of the test part is seen, stopping and going on."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from leaks import digest_of_weights, spoiled, world

from tsformer import Config, Field, Forecaster, ModelPlugin, fitting, register, tune
from tsformer.config_layer import Layer
from tsformer.errors import DivergedError, RunError, UsageError
from tsformer.forecast import forecast
from tsformer.search import Choices, Range
from tsformer.tuning import study as studies
from tsformer.tuning.proposals import Proposals
from tsformer.tuning.record import Trial, opened
from tsformer.tuning.space import Dimension, SearchSpace

HORIZON = 4


def layers(model="linear", *, steps=4, options=None, window=None, **train):
    return [
        Layer(
            {
                "model": {"name": model, **(options or {})},
                "window": {"horizon": HORIZON, "season": 4, **(window or {})},
                "train": {"max_steps": steps, "eval_every": 1, **train},
            }
        )
    ]


@pytest.fixture
def panel(make_panel):
    rng = np.random.default_rng(3)
    waves = [20 + 5 * np.sin(np.arange(n) * np.pi / 2) + 0.02 * np.arange(n) + rng.normal(0, 1, n) for n in (120, 100)]
    return make_panel(waves, names=["y"])


def plain(study):
    return [{**trial.to_json(), "seconds": 0} for trial in study.trials]


@pytest.fixture(scope="module")
def many():
    """A study of some short trials with covariates, gaps and missing values, and its panel."""
    panel, given = world((150, 140), covariates=False, texts=False), layers(steps=20)
    return given, panel, studies.tune(given, panel, trials=10)


def test_nothing_of_the_test_part_is_seen(many):
    given, panel, found = many
    ends = found.judge.known.split.lengths
    assert ends.tolist() == [120, 112]  # 20 % are held out
    assert len(found.judge.known.panel.values) == ends.sum()
    again = studies.tune(given, spoiled(panel, ends), trials=10)
    assert plain(again) == plain(found)
    assert (again.naive, again.best.number) == (found.naive, found.best.number)
    seen = studies.tune(given, spoiled(panel, ends - 3), trials=2)
    assert plain(seen) != plain(found)[:2]


def test_the_first_trial_is_what_is_given_and_the_best_is_no_worse(many):
    _, _, found = many
    scores = [trial.score for trial in found.trials if trial.score is not None]
    assert found.trials[0].options == {
        "model.variant": "rlinear",
        "train.lr": 0.001,
        "train.weight_decay": 0.01,
        "train.loss": "mse",
    }
    assert found.best.score == min(scores) <= scores[0]
    assert {trial.state for trial in found.trials} <= {"complete", "pruned"}
    assert len({json.dumps(trial.options) for trial in found.trials}) == len(found.trials)


def test_a_study_that_was_stopped_has_the_trials_of_one_that_was_not(many, tmp_path):
    given, panel, found = many
    file = tmp_path / "study"
    for trials in (3, 7):
        studies.tune(given, panel, trials=trials, path=file)
    with file.open("ab") as opened_again:
        opened_again.write(b'{"number": 8, "opt')  # of a process that was killed
    again = studies.tune(given, panel, trials=10, path=file)
    assert plain(again) == plain(found)
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert [line.get("number") for line in lines] == [None, *range(1, 11)]


def test_a_trial_that_is_ended_from_outside_is_not_counted(panel, tmp_path):
    given, file, asked = layers(steps=30), tmp_path / "study", []

    def interrupted():
        asked.append(None)
        return len(asked) > 50  # amid the second trial

    found = studies.tune(given, panel, trials=3, path=file, watch=studies.Watch(interrupted=interrupted))
    assert len(found.trials) == 1
    again = studies.tune(given, panel, trials=3, path=file)
    assert plain(again) == plain(studies.tune(given, panel, trials=3))


def test_after_a_timeout_there_is_one_trial_at_least(panel):
    found = studies.tune(layers(), panel, trials=50, timeout=1e-6)
    assert [trial.state for trial in found.trials] == ["complete"]


def test_another_study_in_the_file_is_refused_in_one_line(panel, tmp_path):
    file = tmp_path / "study"
    studies.tune(layers(), panel, trials=1, path=file)
    before = file.read_bytes()
    other = replace(panel, values=panel.values + 1.0)
    for given, rows, options, what in (
        (layers(), other, {}, "data"),
        (layers(steps=5), panel, {}, "model or training options"),
        (layers(), panel, {"fix": ["train.lr"]}, "search space"),
        (layers(window={"horizon": 6}), panel, {}, "windows, model or training options"),
    ):
        with pytest.raises(UsageError, match=f"holds a study with other {what}; give another file"):
            studies.tune(given, rows, trials=2, path=file, **options)
    assert file.read_bytes() == before
    notes = tmp_path / "notes.txt"
    notes.write_text("my notes")
    with pytest.raises(UsageError, match="holds no study"):
        studies.tune(layers(), panel, trials=1, path=notes)
    assert notes.read_text() == "my notes"


def test_a_study_that_is_in_use_or_damaged_is_refused(tmp_path):
    file = tmp_path / "study"
    with opened(file, {"data": "a"}) as record:
        record.add(Trial(1, {"train.lr": 0.1}, {"train.lr": 0.1}, "complete", 2.0, curve={5: 3.0}))
        with pytest.raises(UsageError, match="in use by another process"), opened(file, {"data": "a"}):
            pass
    with opened(file, {"data": "a"}) as record:
        assert record.trials == [Trial(1, {"train.lr": 0.1}, {"train.lr": 0.1}, "complete", 2.0, curve={5: 3.0})]
    whole = file.read_bytes()
    file.write_bytes(whole[:30])  # killed while the first line was written
    with opened(file, {"data": "a"}) as record:
        assert record.trials == []
    file.write_bytes(whole.replace(b'"curve"', b'"curse"'))
    with pytest.raises(RunError, match="a line of it is no trial"), opened(file, {"data": "a"}):
        pass


@pytest.mark.parametrize("output", ["point", "normal"])
def test_trials_are_judged_in_the_users_units_by_the_same_windows(panel, output):
    """Beside forecasts one by one, from tables that end where each window begins."""
    found = studies.tune(
        layers("tcn", options={"d_model": 8, "n_layers": 1}, output=output),
        panel,
        search={"window.lookback": "6,12"},
        only=True,
        trials=2,
    )
    judge = found.judge
    windows = judge.windows
    assert judge.metric == ("mase" if output == "point" else "wql")
    assert len(windows) == (12 - HORIZON + 1) + (10 - HORIZON + 1)
    trial = found.trials[1]
    learned = fitting.learn(found.settings_of(trial.options), judge.known.panel, split=judge.known.split)
    assert judge.score(learned.fitted) == pytest.approx(trial.score, rel=1e-12)
    rows, series = [], windows.series.numpy()
    for number, origin in zip(series, windows.origins.numpy(), strict=True):
        within = int(origin - judge.prepared.data.offsets[number])
        rows.append(within)
    errors = {0: [], 1: []}
    numerator = denominator = 0.0
    for number, within in zip(series, rows, strict=True):
        start = panel.offsets[number]
        past = replace(
            panel,
            values=panel.values[start : start + within],
            offsets=np.array([0, within]),
            times=panel.times[start : start + within],
            ids=(panel.ids[number],),
        )
        made = forecast(learned.fitted, past, ask=judge.ask)
        truth = panel.values[start + within : start + within + HORIZON, :1]
        errors[number].append(np.abs(made.values[0] - truth).mean())
        if output == "normal":
            levels = np.array(judge.ask.probabilities)
            under = truth[..., None] - made.quantiles[0]
            numerator += 2 * np.maximum(levels * under, (levels - 1) * under).mean(-1).sum()
            denominator += np.abs(truth).sum()
    if output == "normal":
        assert trial.score == pytest.approx(numerator / denominator, rel=1e-5)
        return
    mase = []
    for number, train in enumerate((84, 70)):
        own = panel.values[panel.rows(number), 0][:train]
        mase.append(np.mean(errors[number]) / np.abs(own[4:] - own[:-4]).mean())
    assert trial.score == pytest.approx(np.mean(mase), rel=1e-5)


def test_a_fit_with_the_best_options_is_the_trial_itself(panel):
    """It sees the same training and validation rows, and what the study never saw is left to score it."""
    found = studies.tune(layers("tcn", options={"d_model": 8, "n_layers": 1}, steps=6), panel, trials=3)
    known, settings = found.judge.known, found.settings_of(found.best.options)
    trial = fitting.learn(settings, known.panel, split=known.split)
    result = fitting.fit(settings, panel)
    assert digest_of_weights(result.fitted.module) == digest_of_weights(trial.fitted.module)
    assert (result.prepared.split.validation == known.split.lengths).all()


def test_lookbacks_fit_the_data_and_are_judged_by_windows_that_all_can_see(panel):
    found = studies.tune(layers(), panel, trials=1)
    space = next(each.space for each in found.space.dimensions if each.key == "window.lookback")
    assert space == Choices((8, 16, 24, 32))  # 24 is the usual one; half of the 70 training rows stay targets
    broken = replace(panel, breaks=np.array([panel.offsets[1] + 50]))
    found = studies.tune(layers(), broken, trials=1)
    space = next(each.space for each in found.space.dimensions if each.key == "window.lookback")
    assert space == Choices((8, 16, 24))  # 32 would leave the second series with nothing to be judged by
    assert set(found.judge.windows.series.tolist()) == {0, 1}
    asked = studies.tune(layers(), broken, trials=1, search={"window.lookback": "8,32"})
    assert len(asked.judge.windows) < len(found.judge.windows)
    given = studies.tune(layers(window={"lookback": 10}), panel, trials=1)
    assert "window.lookback" not in [each.key for each in given.space.dimensions]
    assert given.settings.window.lookback == 10


@pytest.mark.parametrize(
    ("search", "why"),
    [
        ({"model.d_model": "0:64"}, "--search model.d_model: input should be greater than 0"),
        ({"model.d-model": (8, 100_000)}, "--search model.d_model: input should be less than or equal to 16384"),
        ({"model.dmodel": "8:64"}, "unknown option; did you mean 'd_model'"),
        ({"lr": "1e-4:1e-2"}, "named with their section"),
        ({"window.horizon": "2:4"}, "not for a study: it says what is forecast"),
        ({"train.output": "point,normal"}, "tune for each"),
        ({"train.seed": "0:9"}, "not for a study"),
        ({"model.decoder_layers": "1:3"}, "decoder_layers 1 needs decoder autoregressive"),
        ({"train.label_smoothing": "0:0.3"}, "label_smoothing"),
    ],
)
def test_what_cannot_be_searched_is_refused(panel, search, why):
    with pytest.raises(UsageError) as caught:
        studies.tune(layers("tcn_transformer"), panel, search=search)
    assert why in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1


def test_options_that_go_together_only_with_others_are_searched(panel):
    found = studies.tune(layers(), panel, search={"model.kernel": "5,9"}, trials=4)
    variants = {trial.options["model.variant"]: trial for trial in found.trials}
    assert "model.kernel" not in found.trials[0].options  # 25 is not asked for, and rlinear reads none
    assert set(variants) == {"rlinear", "dlinear"}
    assert variants["dlinear"].options["model.kernel"] in (5, 9)


def test_nothing_to_search_is_an_error(panel):
    with pytest.raises(UsageError, match="nothing to search: all options of model 'ridge'"):
        studies.tune(layers("ridge", window={"lookback": 8}), panel, fix=["model.normalise"])
    with pytest.raises(UsageError, match="not trained step by step"):
        studies.tune(layers("ridge"), panel, search={"train.lr": "1e-3:1e-2"})
    with pytest.raises(UsageError, match="contradict each other"):
        studies.tune(layers(), panel, search={"train.lr": "1e-3:1e-2"}, fix=["train.lr"])


def test_a_small_space_ends_when_all_of_it_was_tried(panel):
    notes = []
    found = studies.tune(
        layers("ridge", window={"lookback": 8}), panel, trials=30, watch=studies.Watch(note=notes.append)
    )
    assert sorted(trial.options["model.normalise"] for trial in found.trials) == ["last", "none", "standard"]
    assert notes == ["every combination that is allowed has been tried"]


FRAGILE = []


class FragileConfig(Config):
    width: int = Field(2, ge=1, le=9, search=[2, 3, 4, 5], description="what breaks it")


class Fragile(torch.nn.Module):
    def __init__(self, config, problem):
        super().__init__()
        self.config, self.problem = config, problem
        self.level = torch.nn.Parameter(torch.zeros(()))

    def forward(self, batch, truth=0.0):
        if self.training and self.config.width == 3:
            raise torch.OutOfMemoryError("CUDA out of memory")
        last = batch.past[:, -1:, : self.problem.targets, None] + self.level
        if self.training and self.config.width in FRAGILE:
            last = last * torch.nan
        return last.expand(-1, self.problem.horizon, -1, self.problem.outputs)


def test_trials_that_fail_do_not_end_the_study(panel, own_registry, monkeypatch):
    plugin = ModelPlugin(config=FragileConfig, build=Fragile, example=FragileConfig())
    register("fragile", plugin)
    monkeypatch.setattr("test_tuning.FRAGILE", FRAGILE, raising=False)
    FRAGILE[:] = [4]
    found = studies.tune(layers("fragile"), panel, search={"model.width": "2,3,4,5"}, only=True, trials=9)
    said = {trial.options["model.width"]: trial for trial in found.trials}
    assert {width: trial.state for width, trial in said.items()} == {
        2: "complete",
        3: "failed",
        4: "failed",
        5: "complete",
    }
    assert (said[3].exit_code, said[4].exit_code) == (7, 6)
    assert "out of memory" in said[3].reason.lower()
    assert "training diverged at step 1" in said[4].reason
    FRAGILE[:] = [2, 4]
    with pytest.raises(Exception, match=r"no trial of 2 succeeded; the first: training diverged") as caught:
        studies.tune(layers("fragile"), panel, search={"model.width": "3,2"}, only=True, trials=9)
    assert caught.value.exit_code == DivergedError.exit_code


def test_combinations_that_a_model_refuses_are_not_tried(panel):
    notes = []
    sizes = {"d_ff": 8, "encoder_layers": 1, "tcn_layers": 1, "d_model": 8, "n_heads": 2}
    found = studies.tune(
        layers("tcn_transformer", steps=1, options=sizes, window={"lookback": 8}),
        panel,
        search={"model.d_model": [6, 8], "model.n_heads": [2, 3, 4]},
        only=True,
        trials=9,
        watch=studies.Watch(note=notes.append),
    )
    pairs = sorted((trial.options["model.d_model"], trial.options["model.n_heads"]) for trial in found.trials)
    assert pairs == [(6, 2), (6, 3), (8, 2), (8, 4)]
    assert notes == ["every combination that is allowed has been tried"]


def test_a_trial_worse_than_the_median_at_the_same_share_is_ended():
    space = SearchSpace((Dimension("train.lr", Range(1e-4, 1e-2, True, False), 1e-3),))
    trials = [
        Trial(n, {"train.lr": n * 1e-3}, {"train.lr": n * 1e-3}, "complete", float(n), curve={5: n, 10: n / 2})
        for n in range(1, 6)
    ]
    assert not Proposals(space, 0, trials[:4]).pruned({5: 99.0, 10: 99.0})  # too few to be compared with
    proposals = Proposals(space, 0, trials)
    assert proposals.pruned({5: 9.0, 10: 1.6})
    assert not proposals.pruned({5: 9.0, 10: 1.4})
    assert not proposals.pruned({4: 99.0})


def test_bad_trials_are_pruned_in_a_study(make_panel):
    rng = np.random.default_rng(0)
    rows = make_panel([10 + np.sin(np.arange(300) * np.pi / 2) + rng.normal(0, 0.1, 300)])
    found = studies.tune(layers("linear", steps=40), rows, search={"train.lr": "1e-6:1"}, only=True, trials=14)
    states = [trial.state for trial in found.trials]
    assert "pruned" in states[5:]
    assert "pruned" not in states[:5]
    ended = next(trial for trial in found.trials if trial.state == "pruned")
    assert ended.steps < 40
    assert ended.score is None
    assert max(ended.curve) < 20


def test_from_python(panel):
    frame = panel_frame(panel)
    forecaster = Forecaster("linear", horizon=HORIZON, season=4, id_column="id", time_column="ds", targets="y",
                            train_options={"max_steps": 4, "eval_every": 1})  # fmt: skip
    with pytest.warns(UserWarning, match="the best trial of linear does not beat seasonal_naive"):
        found = tune(forecaster, frame, trials=3, search={"train.lr": (1e-8, 1e-7)}, only=True)
    assert list(found.trials.columns) == [
        "trial",
        "state",
        "mase",
        "seconds",
        "steps",
        "parameters",
        "train.lr",
        "reason",
    ]
    assert found.score == found.trials["mase"].min()
    assert found.metric == "mase"
    assert found.naive[0] == "seasonal_naive"
    tuned = found.forecaster
    assert tuned.train_options == {"max_steps": 4, "eval_every": 1, "lr": found.options["train.lr"]}
    assert 1e-8 <= found.options["train.lr"] <= 1e-7
    assert forecaster.train_options == {"max_steps": 4, "eval_every": 1}
    assert tuned.fit(frame).metrics_["test"]["windows"] > 0
    with pytest.raises(UsageError, match="a whole number from 1 on"):
        tune(forecaster, frame, trials=0)


def panel_frame(panel):
    import pandas as pd

    ids = np.repeat(panel.ids, panel.lengths)
    return pd.DataFrame({"id": ids, "ds": panel.times, "y": panel.values[:, 0]})
