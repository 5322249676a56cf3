"""Every registered transform passes every check; for each check there is a bad one that fails it and no other."""

import numpy as np
import pytest

from tsformer import registry, testing
from tsformer.errors import InvalidValuesError
from tsformer.plugin import Config, Field, TransformPlugin
from tsformer.registry import Kind
from tsformer.testing import TRANSFORM_CHECKS

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")  # of numpy, about what bad plugins compute


@pytest.mark.parametrize("check", TRANSFORM_CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("name", registry.entries(Kind.TRANSFORM))
def test_transform_passes(name, check):
    check(registry.get(Kind.TRANSFORM, name))


class Nothing(Config):
    pass


def plugin_of(transform, scaler=False):
    return TransformPlugin(config=Nothing, build=lambda config: transform(), example=Nothing(), scaler=scaler)


class Scale:
    """Keeps the contract; most of the bad ones below spoil one thing of it."""

    pointwise = True
    lost_rows = 0

    def fit(self, rows):
        spread = rows.std(axis=0)
        return {"mean": rows.mean(axis=0).tolist(), "scale": np.where(spread > 0, spread, 1.0).tolist()}

    def forward(self, values, state):
        return (values - np.array(state["mean"])) / np.array(state["scale"])

    def inverse(self, path, state, anchor):
        channels = path.shape[-1]
        return path * np.array(state["scale"][:channels]) + np.array(state["mean"][:channels])


class Difference:
    pointwise = False
    lost_rows = 1

    def fit(self, rows):
        return {}

    def forward(self, values, state):
        return np.diff(values, axis=0)

    def inverse(self, path, state, anchor):
        return anchor[..., -1:, :] + np.cumsum(path, axis=-2)


class Square:
    """Of positive values."""

    pointwise = True
    lost_rows = 0

    def fit(self, rows):
        return {}

    def forward(self, values, state):
        bad = values < 0
        if bad.any():
            raise InvalidValuesError(bad, "are negative", "leave this transform out")
        return values**2

    def inverse(self, path, state, anchor):
        return np.sqrt(np.maximum(path, 0.0))


class Period(Config):
    period: int | None = Field(None, ge=1, description="steps in one season")


class Seasonal(Difference):
    """Differences to the season before."""

    def __init__(self, config):
        self.lost_rows = config.period

    def forward(self, values, state):
        return values[self.lost_rows :] - values[: -self.lost_rows]

    def inverse(self, path, state, anchor):
        path = path.copy()
        for step in range(path.shape[-2]):
            before = path if step >= self.lost_rows else anchor
            path[..., step, :] += before[..., step % self.lost_rows, :]
        return path


class AssumesTheSeasonOfTheExample(Seasonal):
    def inverse(self, path, state, anchor):
        return super().inverse(path, state, anchor[..., :4, :])


def fills_what_is_open(config, season):
    return config if config.period else Period(period=season)


def seasonal(transform, with_season):
    return TransformPlugin(config=Period, build=transform, example=Period(period=4), with_season=with_season)


class Logit:
    """Bound to the range of the training rows and a margin, as a share is to 0 and 1."""

    pointwise = True
    lost_rows = 0

    def fit(self, rows):
        margin = 0.1 * np.where(np.ptp(rows, axis=0) > 0, np.ptp(rows, axis=0), 1.0)
        return {"low": (rows.min(axis=0) - margin).tolist(), "high": (rows.max(axis=0) + margin).tolist()}

    def forward(self, values, state):
        share = (values - state["low"]) / (np.array(state["high"]) - state["low"])
        bad = (share <= 0) | (share >= 1)
        if bad.any():
            raise InvalidValuesError(bad, "are outside the range seen in training", "leave this transform out")
        return np.log(share / (1 - share))

    def inverse(self, path, state, anchor):
        low, high = (np.array(state[name][: path.shape[-1]]) for name in ("low", "high"))
        return low + (high - low) * 0.5 * (1 + np.tanh(path / 2))


class Ten:
    """Between 10 and 20 only."""

    pointwise = True
    lost_rows = 0

    def fit(self, rows):
        return {}

    def forward(self, values, state):
        bad = (values < 10) | (values > 20)
        if bad.any():
            raise InvalidValuesError(bad, "are not between 10 and 20", "leave this transform out")
        return values

    def inverse(self, path, state, anchor):
        return np.clip(path, 10, 20)


class LosesARowUnsaid(Difference):
    lost_rows = 0


class DoesNotSayWhetherItIsPointwise(Scale):
    pointwise = None


class LetsNaNPass(Square):
    """The logarithm of a negative value."""

    def forward(self, values, state):
        return np.log(values)

    def inverse(self, path, state, anchor):
        return np.exp(path)


class ComputesInSinglePrecision(Scale):
    def forward(self, values, state):
        return super().forward(values, state).astype(np.float32).astype(np.float64)


class ClipsToTheRangeOfFit(Scale):
    def fit(self, rows):
        return {**super().fit(rows), "high": rows.max(axis=0).tolist()}

    def forward(self, values, state):
        return super().forward(np.minimum(values, state["high"]), state)


class StartsFromTheLastTrainingRow(Difference):
    """Instead of the anchor: right for the first window after the training part only."""

    def fit(self, rows):
        return {"last": rows[-1].tolist()}

    def inverse(self, path, state, anchor):
        return np.array(state["last"])[: path.shape[-1]] + np.cumsum(path, axis=-2)


class NeedsEveryChannel(Scale):
    def inverse(self, path, state, anchor):
        return path * np.array(state["scale"]) + np.array(state["mean"])


class TakesTheRootOfAnyPath(Square):
    def inverse(self, path, state, anchor):
        return np.sqrt(path)


class KeepsItsStateInItself(Scale):
    def fit(self, rows):
        self.state = super().fit(rows)
        return {}

    def forward(self, values, state):
        return super().forward(values, self.state)

    def inverse(self, path, state, anchor):
        return super().inverse(path, self.state, anchor)


class RemembersNumpyNumbers(Scale):
    def fit(self, rows):
        return {name: [np.float32(value) for value in values] for name, values in super().fit(rows).items()}


class FitsOnASample(Scale):
    def fit(self, rows):
        return super().fit(rows[np.random.default_rng().integers(len(rows), size=10)])


class SubtractsInPlace(Scale):
    def forward(self, values, state):
        values -= np.array(state["mean"])
        return values / np.array(state["scale"])


class CountsInTheState(Scale):
    def inverse(self, path, state, anchor):
        state["paths"] = state.get("paths", 0) + 1
        return super().inverse(path, state, anchor)


class SeesTheFutureALittle(Scale):
    """Statistics of all rows, validation and test included, too small to show in the inverse."""

    pointwise = False

    def forward(self, values, state):
        return super().forward(values, state) + 1e-12 * values.mean(axis=0) / np.array(state["scale"])


class IsNotPointwise(Difference):
    """The first row as it is, then differences."""

    pointwise = True
    lost_rows = 0

    def forward(self, values, state):
        return np.diff(values, axis=0, prepend=0.0)


class DividesByZero(Scale):
    def fit(self, rows):
        return {"mean": rows.mean(axis=0).tolist(), "scale": rows.std(axis=0).tolist()}


class BlamesWholeRows(Square):
    def forward(self, values, state):
        bad = (values < 0).any(axis=1)
        if bad.any():
            raise InvalidValuesError(bad, "are negative", "leave this transform out")
        return values**2


class TakesMinusOneForMissing(Scale):
    def forward(self, values, state):
        return super().forward(np.where(values == -1, np.nan, values), state)


class RefusesInOtherWords(Scale):
    def forward(self, values, state):
        if (values == -1).any():
            raise ValueError("-1 is no value")
        return super().forward(values, state)


class SeedsTheWorld(Scale):
    def fit(self, rows):
        np.random.seed(0)  # noqa: NPY002
        return super().fit(rows)


class SkipsMissing(Scale):
    """Keeps what `takes_missing` promises."""

    takes_missing = True

    def fit(self, rows):
        spread = np.nanstd(rows, axis=0)
        scale = np.where(spread > 1e-12 * np.nanmax(np.abs(rows), axis=0), spread, 1.0)
        return {"mean": np.nanmean(rows, axis=0).tolist(), "scale": scale.tolist()}


class DifferenceOfWhatIsThere(Difference):
    takes_missing = True


class SaysMaybe(Scale):
    takes_missing = "maybe"


class CountsMissingAsZero(SkipsMissing):
    def fit(self, rows):
        return super().fit(np.nan_to_num(rows))


class HasStatisticsOfNaN(SkipsMissing):
    fit = Scale.fit


class TakesMissingForNegative(Square):
    takes_missing = True

    def forward(self, values, state):
        bad = ~(values >= 0)
        if bad.any():
            raise InvalidValuesError(bad, "are negative", "leave this transform out")
        return values**2


class MakesAValueOfNaN(SkipsMissing):
    def forward(self, values, state):
        return np.nan_to_num(super().forward(values, state))


class LosesTheChannel(SkipsMissing):
    pointwise = False

    def forward(self, values, state):
        return super().forward(values, state) + 0.0 * np.add.accumulate(values, axis=0)


BAD = [
    ("check_shapes", plugin_of(LosesARowUnsaid)),
    ("check_shapes", plugin_of(DoesNotSayWhetherItIsPointwise)),
    ("check_shapes", plugin_of(LetsNaNPass)),
    ("check_inverse", plugin_of(ComputesInSinglePrecision)),
    ("check_inverse", plugin_of(ClipsToTheRangeOfFit)),
    ("check_inverse", plugin_of(StartsFromTheLastTrainingRow)),
    ("check_inverse", plugin_of(NeedsEveryChannel)),
    ("check_inverse", seasonal(AssumesTheSeasonOfTheExample, lambda config, season: Period(period=season))),
    ("check_inverse", seasonal(AssumesTheSeasonOfTheExample, fills_what_is_open)),
    ("check_inverse_is_defined", plugin_of(TakesTheRootOfAnyPath)),
    ("check_state", plugin_of(KeepsItsStateInItself)),
    ("check_state", plugin_of(RemembersNumpyNumbers)),
    ("check_state", plugin_of(FitsOnASample)),
    ("check_leaves_inputs_alone", plugin_of(SubtractsInPlace)),
    ("check_leaves_inputs_alone", plugin_of(CountsInTheState)),
    ("check_causality", plugin_of(SeesTheFutureALittle)),
    ("check_pointwise", plugin_of(IsNotPointwise)),
    ("check_constant_channel", plugin_of(DividesByZero)),
    ("check_domain", plugin_of(BlamesWholeRows)),
    ("check_domain", plugin_of(TakesMinusOneForMissing)),
    ("check_domain", plugin_of(RefusesInOtherWords)),
    ("check_missing", plugin_of(SaysMaybe)),
    ("check_missing", plugin_of(CountsMissingAsZero)),
    ("check_missing", plugin_of(HasStatisticsOfNaN)),
    ("check_missing", plugin_of(TakesMissingForNegative)),
    ("check_missing", plugin_of(MakesAValueOfNaN)),
    ("check_missing", plugin_of(LosesTheChannel)),
    ("check_scaler", plugin_of(Difference, scaler=True)),
    ("check_leaves_rng_alone", plugin_of(SeedsTheWorld)),
]


def name_of(value):
    return type(value.build(value.example)).__name__ if isinstance(value, TransformPlugin) else value


def test_every_check_has_a_bad_plugin():
    assert {check for check, _ in BAD} == {check.__name__ for check in TRANSFORM_CHECKS}


@pytest.mark.parametrize(
    "good",
    [
        plugin_of(Scale, scaler=True),
        plugin_of(Difference),
        plugin_of(Square),
        plugin_of(Logit),
        plugin_of(SkipsMissing, scaler=True),
        plugin_of(DifferenceOfWhatIsThere),
        seasonal(Seasonal, fills_what_is_open),
    ],
    ids=name_of,
)
def test_the_good_plugins_pass(good):
    assert testing.check(good) == {}


@pytest.mark.parametrize(("check", "bad"), BAD, ids=name_of)
def test_a_bad_plugin_fails_exactly_one_check(check, bad):
    failed = testing.check(bad)
    assert list(failed) == [check], failed


def test_what_is_refused_in_every_size_is_said_with_what_was_tried():
    said = testing.check(plugin_of(Ten))["check_shapes"]
    assert "random values are refused, since they are not between 10 and 20" in said
    assert "as they are, from -" in said
    assert "between 0 and 1" in said


def test_an_inverse_that_needs_every_channel_is_told_why():
    said = testing.check(plugin_of(NeedsEveryChannel))["check_inverse"]
    assert "with the first 2 of the 3 channels that fit saw: ValueError: operands could not be broadcast" in said
    assert "only targets are predicted, and they come first: take state[...][: path.shape[-1]]" in said


def test_what_stands_on_a_failed_first_check_is_not_run():
    found = list(testing.outcomes(plugin_of(LosesARowUnsaid)))
    assert [outcome.passed for outcome in found] == [False] + [None] * (len(TRANSFORM_CHECKS) - 1)


def test_an_unexpected_error_is_told_with_its_place():
    class Fails(Scale):
        def forward(self, values, state):
            return 1 / 0

    assert testing.check(plugin_of(Fails))["check_shapes"].startswith(
        "ZeroDivisionError: division by zero (test_conformance_transforms.py, line "
    )


def test_what_does_not_apply_is_said():
    found = {outcome.check: outcome.explanation for outcome in testing.outcomes(plugin_of(Difference))}
    assert found["check_pointwise"] == "does not apply: pointwise is False"
    assert found["check_scaler"] == "does not apply: scaler is False"
