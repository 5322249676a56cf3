"""Every model passes every check of forecasts; for each check there is a bad plugin that fails it and no other."""

import contextlib
from dataclasses import replace

import numpy as np
import pytest
import torch
from pydantic import ValidationError
from torch import Tensor, nn

from tsformer import registry, testing
from tsformer.data.windows import Batch
from tsformer.errors import UsageError
from tsformer.nn.dropout import Dropout
from tsformer.nn.network import last_real
from tsformer.plugin import Config, Field, ModelPlugin, Problem, Task, option_type
from tsformer.registry import Kind
from tsformer.testing import MODEL_CHECKS, CheckFailedError
from tsformer.testing.forecasts import check_shapes
from tsformer.testing.problem import build


def variants() -> dict[str, ModelPlugin]:
    """Each model as it is, and with every other choice of each option that is one of several words, or yes or no.

    What a model itself refuses to put together is left out.
    """
    found = {}
    for name in registry.entries(Kind.MODEL):
        plugin = registry.get(Kind.MODEL, name)
        if Task.FORECAST not in plugin.tasks:
            continue
        found[name] = plugin
        for option, field in plugin.config.model_fields.items():
            kind = option_type(field.annotation)
            choices = (False, True) if kind.words == "BOOLEAN" else kind.choices
            for choice in choices:
                if choice == getattr(plugin.example, option):
                    continue
                with contextlib.suppress(ValidationError, UsageError):
                    config = plugin.config.model_validate({**plugin.example.model_dump(), option: choice})
                    variant = replace(plugin, example=config)
                    build(variant)
                    found[f"{name}-{option}-{choice}"] = variant
    return found


VARIANTS = variants()


def case(name, check):
    """A check of a variant; only a model's own example is trained in the default run."""
    slow = check.__name__ == "check_overfits_one_batch" and name not in registry.entries(Kind.MODEL)
    return pytest.param(name, check, id=f"{name}-{check.__name__}", marks=[pytest.mark.slow] if slow else [])


@pytest.mark.parametrize(("name", "check"), [case(name, check) for name in VARIANTS for check in MODEL_CHECKS])
def test_model_passes(name, check):
    check(VARIANTS[name])


class Options(Config):
    width: int = Field(32, gt=0, description="width of the hidden layer")


class Good(nn.Module):
    """A small network that keeps the contract; each bad one below spoils one thing."""

    covariates: frozenset[str] = frozenset()
    steps_apart = False

    def __init__(self, options: Options, problem: Problem) -> None:
        super().__init__()
        self.problem = problem
        inputs = problem.lookback * problem.channels
        self.hidden = nn.Linear(inputs, options.width)
        self.head = nn.Linear(options.width, problem.horizon * problem.targets * problem.outputs)

    def clean(self, batch: Batch) -> Tensor:
        return torch.where(batch.past_mask, batch.past, 0.0)

    def predict(self, past: Tensor) -> Tensor:
        return self.shaped(torch.tanh(self.hidden(past.flatten(1))))

    def shaped(self, hidden: Tensor) -> Tensor:
        return self.head(hidden).view(-1, self.problem.horizon, self.problem.targets, self.problem.outputs)

    def forward(self, batch: Batch, truth: float = 0.0) -> Tensor:
        return self.predict(self.clean(batch))


class WrongShape(Good):
    def forward(self, batch, truth=0.0):
        return super().forward(batch, truth).squeeze(-1)


class KnowsTargetsOnly(Good):
    """Takes the number of targets for that of channels, which holds until there are covariates."""

    def __init__(self, options, problem):
        super().__init__(options, problem)
        self.hidden = nn.Linear(problem.lookback * problem.targets, options.width)


class KnowsPointsOnly(Good):
    """Gives one number for each value, whatever is asked for."""

    def __init__(self, options, problem):
        super().__init__(options, replace(problem, outputs=1))


class RefusesWithAnAssertion(Good):
    def __init__(self, options, problem):
        assert problem.outputs == 1
        super().__init__(options, problem)


class FillsTheScaleWithZeros(KnowsPointsOnly):
    """Of the right shape, but what is asked for beside the mean is never learned."""

    def __init__(self, options, problem):
        super().__init__(options, problem)
        self.more = problem.outputs - 1

    def predict(self, past):
        return nn.functional.pad(super().predict(past), (0, self.more))


class SeesTheTruth(Good):
    """Copies target j into output j, as a decoder without the shift by one step learns to do."""

    def forward(self, batch, truth=0.0):
        prediction = super().forward(batch, truth)
        if truth > 0 and batch.future is not None:
            prediction = prediction + 0.1 * batch.future[..., None]
        return prediction


class SeesTheTruthAtTimes(Good):
    """As above, but only where both true and own values are fed."""

    def forward(self, batch, truth=0.0):
        prediction = super().forward(batch, truth)
        if 0 < truth < 1 and batch.future is not None:
            prediction = prediction + 0.1 * batch.future[..., None]
        return prediction


class SeesTheTruthInTraining(Good):
    def forward(self, batch, truth=0.0):
        prediction = super().forward(batch, truth)
        if self.training and torch.is_grad_enabled() and 0 < truth < 1 and batch.future is not None:
            prediction = prediction + 0.1 * batch.future[..., None]
        return prediction


class IgnoresTheMask(Good):
    def clean(self, batch):
        return torch.nan_to_num(batch.past)  # does away with NaN, but not with a number behind the mask


class NeedsAValue(Good):
    """Divides by the number of real values, which may be none."""

    def forward(self, batch, truth=0.0):
        mean = self.clean(batch).sum((1, 2)) / batch.past_mask.sum((1, 2))
        return super().forward(batch, truth) + mean[:, None, None, None]


class HidesNaNTooLate(Good):
    """A masked value is multiplied first and thrown away afterwards: the gradient of the weight is 0 * NaN."""

    def __init__(self, options, problem):
        super().__init__(options, problem)
        self.gain = nn.Parameter(torch.ones(()))

    def clean(self, batch):
        return torch.where(batch.past_mask, self.gain * batch.past, 0.0)


class AveragesPaddedTexts(Good):
    """Reads the text of each step, and what it is filled up with."""

    def __init__(self, options, problem):
        super().__init__(options, problem)
        self.words = nn.Embedding(problem.vocabulary, 1) if problem.vocabulary else None

    def forward(self, batch, truth=0.0):
        prediction = super().forward(batch, truth)
        return prediction if self.words is None else prediction + self.words(batch.tokens).mean((1, 2))[..., None, None]


class ReadsCovariates(Good):
    """Keeps the contract with covariates of both kinds."""

    covariates = frozenset({"future", "static"})

    def __init__(self, options, problem):
        super().__init__(options, problem)
        self.known = bool(problem.future_covariates)
        self.static = bool(problem.static_covariates)

    def of_lookback(self, batch):
        return batch.past_known.mean((1, 2))[:, None, None, None] if self.known else 0.0

    def of_horizon(self, batch):
        return batch.future_known.mean(2)[..., None, None] if self.known else 0.0

    def of_series(self, batch):
        found = batch.static[:, :1] + batch.static_codes.sum(1, keepdim=True) if self.static else torch.zeros(1, 1)
        return found[..., None, None]

    def forward(self, batch, truth=0.0):
        known = self.of_lookback(batch) + self.of_horizon(batch) + self.of_series(batch)
        return super().forward(batch, truth) + 0.1 * known


class DoesNotDeclareFuture(ReadsCovariates):
    covariates = frozenset({"static"})


class DoesNotDeclareStatic(ReadsCovariates):
    covariates = frozenset({"future"})


class KnowsNothingOfThePast(ReadsCovariates):
    def of_lookback(self, batch):
        return 0.0


class TakesTheFirstStepForAll(ReadsCovariates):
    def of_horizon(self, batch):
        return batch.future_known[:, :1].mean(2)[..., None, None] if self.known else 0.0


class ReadsAllStepsAtEach(ReadsCovariates):
    """A linear map of all steps, as one that declares steps_apart must not be."""

    steps_apart = True

    def of_horizon(self, batch):
        return (
            (batch.future_known.mean(2) + batch.future_known.sum((1, 2))[:, None])[..., None, None]
            if self.known
            else 0.0
        )


class LeavesOutACode(ReadsCovariates):
    def of_series(self, batch):
        found = batch.static[:, :1] + batch.static_codes[:, :1] if self.static else torch.zeros(1, 1)
        return found[..., None, None]


class LooksAtItsNeighbours(Good):
    def clean(self, batch):
        past = super().clean(batch)
        return past - past.mean(0)


class LosesAGradient(Good):
    def predict(self, past):
        hidden = torch.nn.functional.linear(past.flatten(1), self.hidden.weight, self.hidden.bias.detach())
        return self.shaped(torch.tanh(hidden))


class HasADeadParameter(Good):
    def __init__(self, options, problem):
        super().__init__(options, problem)
        self.dead = nn.Parameter(torch.ones(3))

    def predict(self, past):
        return super().predict(past) + 0.0 * self.dead.sum()


class CannotLearn(Good):
    """All parameters get a gradient, but what they do is lost in the noise."""

    def predict(self, past):
        return 1e-6 * super().predict(past)


class ForgetsItsState(Good):
    def __init__(self, options, problem):
        super().__init__(options, problem)
        self.offset = torch.randn(())  # neither parameter nor buffer

    def predict(self, past):
        return super().predict(past) + self.offset


class GrowsInTraining(Good):
    """A buffer that is first there after a step."""

    def forward(self, batch, truth=0.0):
        if self.training and not hasattr(self, "steps"):
            self.register_buffer("steps", torch.ones(()))
        return super().forward(batch, truth)


class GrowsInForward(Good):
    def forward(self, batch, truth=0.0):
        if not hasattr(self, "steps"):
            self.register_buffer("steps", torch.ones(()))
        return super().forward(batch, truth)


class RemembersTrainingInAnAttribute(Good):
    """A running mean that is no buffer."""

    mean = 0.0

    def predict(self, past):
        if self.training:
            self.mean = float(past.mean())
        return super().predict(past + self.mean)


class IsLazy(Good):
    def __init__(self, options, problem):
        super().__init__(options, problem)
        self.hidden = nn.LazyLinear(options.width)


class ReadsTheFutureAlways(Good):
    def forward(self, batch, truth=0.0):
        return super().forward(batch, truth) + truth * 0.0 * batch.future[..., None]


class DrawsWithAGeneratorOfItsOwn(Good):
    def __init__(self, options, problem):
        super().__init__(options, problem)
        with torch.no_grad():
            self.head.bias += torch.from_numpy(np.random.default_rng().normal(size=len(self.head.bias)))


class ClipsTheBatch(Good):
    def clean(self, batch):
        return torch.where(batch.past_mask, batch.past.clamp_(max=0.5), 0.0)


class Remembers(Good):
    """A prediction depends, ever so little, on how many were made before."""

    calls = 0

    def predict(self, past):
        self.calls += not self.training
        return super().predict(past) + 1e-7 * self.calls


class SeedsTheWorld(Good):
    def __init__(self, options, problem):
        super().__init__(options, problem)
        np.random.seed(0)  # noqa: NPY002


class SeedsTorch(Good):
    """With the seed that anybody would take."""

    def __init__(self, options, problem):
        torch.manual_seed(0)
        super().__init__(options, problem)


class SeedsTorchInTraining(Good):
    def forward(self, batch, truth=0.0):
        if self.training:
            torch.manual_seed(0)
        return super().forward(batch, truth)


class LeastSquares(nn.Module):
    """A linear map in closed form, for the `fit` hooks below: one that keeps the contract, and bad ones."""

    def __init__(self, options: Options, problem: Problem) -> None:
        super().__init__()
        self.problem = problem
        shape = (problem.lookback * problem.channels, problem.horizon * problem.targets)
        self.register_buffer("weight", torch.zeros(shape))

    def forward(self, batch: Batch, truth: float = 0.0) -> Tensor:
        past = torch.where(batch.past_mask, batch.past, 0.0).flatten(1)
        return (past @ self.weight).view(-1, self.problem.horizon, self.problem.targets, 1)


def solve(module, train, validation, penalty=1e-2):
    batch = train.batch()
    past, future = batch.past.flatten(1), batch.future.flatten(1)
    module.weight.copy_(torch.linalg.solve(past.T @ past + penalty * torch.eye(past.shape[1]), past.T @ future))


def fits_on_all_rows(module, train, validation):
    solve(module, train, validation, penalty=float(train.values.var()))


def looks_behind_the_validation_windows(module, train, validation):
    solve(module, train, validation, penalty=float(validation.values.var()))


def learns_nothing(module, train, validation):
    pass


def centres_in_place(module, train, validation):
    train.values.sub_(train.values.mean(0))
    solve(module, train, validation)


def draws_unseeded(module, train, validation):
    solve(module, train, validation, penalty=np.random.default_rng().uniform(0.1, 1))


def seeds_torch(module, train, validation):
    torch.manual_seed(0)
    solve(module, train, validation)


def adds_a_buffer(module, train, validation):
    solve(module, train, validation)
    module.register_buffer("windows", torch.tensor(len(train)))


def with_fit(fit):
    return ModelPlugin(config=Options, build=LeastSquares, example=Options(), fit=fit, outputs={"point"})


def of_class(build):
    return ModelPlugin(
        config=Options,
        build=build,
        example=Options(),
        covariates=build.covariates,
        steps_apart=build.steps_apart,
    )


BAD = [
    ("check_shapes", WrongShape),
    ("check_shapes", KnowsTargetsOnly),
    ("check_shapes", IsLazy),
    ("check_shapes", ReadsTheFutureAlways),
    ("check_outputs", KnowsPointsOnly),
    ("check_outputs", RefusesWithAnAssertion),
    ("check_outputs", FillsTheScaleWithZeros),
    ("check_causality", SeesTheTruth),
    ("check_causality", SeesTheTruthAtTimes),
    ("check_causality", SeesTheTruthInTraining),
    ("check_mask_invariance", IgnoresTheMask),
    ("check_mask_invariance", NeedsAValue),
    ("check_mask_invariance", HidesNaNTooLate),
    ("check_text_at_steps", AveragesPaddedTexts),
    ("check_future_covariates", DoesNotDeclareFuture),
    ("check_future_covariates", KnowsNothingOfThePast),
    ("check_future_covariates", TakesTheFirstStepForAll),
    ("check_future_covariates", ReadsAllStepsAtEach),
    ("check_static_covariates", DoesNotDeclareStatic),
    ("check_static_covariates", LeavesOutACode),
    ("check_batch_invariance", LooksAtItsNeighbours),
    ("check_gradients", LosesAGradient),
    ("check_gradients", HasADeadParameter),
    ("check_overfits_one_batch", CannotLearn),
    ("check_save_and_load", ForgetsItsState),
    ("check_save_and_load", GrowsInTraining),
    ("check_save_and_load", GrowsInForward),
    ("check_save_and_load", RemembersTrainingInAnAttribute),
    ("check_repeats_itself", DrawsWithAGeneratorOfItsOwn),
    ("check_repeats_itself", ClipsTheBatch),
    ("check_repeats_itself", Remembers),
    ("check_leaves_rng_alone", SeedsTheWorld),
    ("check_leaves_rng_alone", SeedsTorch),
    ("check_leaves_rng_alone", SeedsTorchInTraining),
]
BAD_HOOKS = [
    ("check_fit_hook", fits_on_all_rows),
    ("check_fit_hook", looks_behind_the_validation_windows),
    ("check_fit_hook", learns_nothing),
    ("check_fit_hook", centres_in_place),
    ("check_fit_hook", draws_unseeded),
    ("check_save_and_load", adds_a_buffer),
    ("check_leaves_rng_alone", seeds_torch),
]


def test_every_check_has_a_bad_plugin():
    assert {check for check, _ in BAD + BAD_HOOKS} == {check.__name__ for check in MODEL_CHECKS}


def test_the_good_plugins_pass():
    for good in (Good, ReadsCovariates):
        assert testing.check(of_class(good)) == {}
    assert testing.check(with_fit(solve)) == {}


@pytest.mark.parametrize(("check", "bad"), BAD, ids=lambda value: getattr(value, "__name__", value))
def test_a_bad_plugin_fails_exactly_one_check(check, bad):
    failed = testing.check(of_class(bad))
    assert list(failed) == [check], failed


@pytest.mark.parametrize(("check", "bad"), BAD_HOOKS, ids=lambda value: getattr(value, "__name__", value))
def test_a_bad_fit_hook_fails_exactly_one_check(check, bad):
    failed = testing.check(with_fit(bad))
    assert list(failed) == [check], failed


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        (IsLazy, r"'hidden\.weight' has no shape until the first forward \(nn.LazyLinear"),
        (
            ReadsTheFutureAlways,
            r"fails when batch\.future is None, as it is when predicting: TypeError.*test_conformance",
        ),
    ],
)
def test_what_beginners_meet_is_explained(bad, said):
    with pytest.raises(CheckFailedError, match=said):
        check_shapes(ModelPlugin(config=Options, build=bad, example=Options()))


class StartsAtZero(Good):
    """A head of zeros, below which all gradients are zero until the first step."""

    def __init__(self, options, problem):
        super().__init__(options, problem)
        nn.init.zeros_(self.head.weight)


class HasADefault(Good):
    """A parameter that takes part for windows without a past only."""

    def __init__(self, options, problem):
        super().__init__(options, problem)
        self.default = nn.Parameter(torch.zeros(()))

    def forward(self, batch, truth=0.0):
        some = batch.past_mask.any(2).any(1)[:, None, None, None]
        return torch.where(some, super().forward(batch, truth), self.default)


class SeedsAForkOfItsOwn(Good):
    """Draws as it likes and leaves the caller's generator alone."""

    def __init__(self, options, problem):
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            super().__init__(options, problem)


class DropsOut(Good):
    def predict(self, past):
        return super().predict(nn.functional.dropout(past, 0.05, self.training))


class DropsHalf(Good):
    """Few hidden units, of which every other is dropped: enough for a batch, but not in training."""

    def __init__(self, options, problem):
        super().__init__(Options(width=8), problem)
        self.net = nn.Sequential(self.hidden, nn.ReLU(), nn.Dropout(0.5), self.head)

    def predict(self, past):
        return self.net(past.flatten(1)).view(-1, self.problem.horizon, self.problem.targets, self.problem.outputs)


class DropsHalfCheaply(DropsHalf):
    def __init__(self, options, problem):
        super().__init__(options, problem)
        self.net[2] = Dropout(0.5)


class TiesWeights(Good):
    """One layer under two names."""

    def __init__(self, options, problem):
        super().__init__(options, problem)
        self.first = nn.Linear(options.width, options.width)
        self.second = self.first

    def predict(self, past):
        hidden = torch.tanh(self.hidden(past.flatten(1)))
        return self.shaped(torch.tanh(self.second(torch.tanh(self.first(hidden)))))


class HasSpectralNorm(Good):
    """Whose power iteration goes a step in each forward in training."""

    def __init__(self, options, problem):
        super().__init__(options, problem)
        self.hidden = nn.utils.parametrizations.spectral_norm(self.hidden)


class Counts(Good):
    """A buffer that is another tensor after each forward in training, and counts in the prediction."""

    def __init__(self, options, problem):
        super().__init__(options, problem)
        self.register_buffer("steps", torch.zeros(()))

    def predict(self, past):
        if self.training:
            self.steps = self.steps + 1
        return super().predict(past) + 1e-4 * self.steps


ODD = [
    StartsAtZero,
    HasADefault,
    SeedsAForkOfItsOwn,
    DropsOut,
    DropsHalf,
    DropsHalfCheaply,
    TiesWeights,
    HasSpectralNorm,
    Counts,
]


@pytest.mark.parametrize("good", ODD)
def test_a_plugin_that_is_odd_but_right_passes(good):
    assert testing.check(ModelPlugin(config=Options, build=good, example=Options())) == {}


def test_a_model_without_parameters_is_a_model():
    class LastValue(nn.Module):
        def __init__(self, options: Options, problem: Problem) -> None:
            super().__init__()
            self.problem = problem

        def forward(self, batch: Batch, truth: float = 0.0) -> Tensor:
            last = last_real(batch.past, batch.past_mask)[:, None, : self.problem.targets, None]
            return last.expand(-1, self.problem.horizon, -1, -1)

    plugin = ModelPlugin(config=Options, build=LastValue, example=Options(), outputs={"point"})
    assert testing.check(plugin) == {}
    assert not_applicable(plugin) == ["check_gradients", "check_overfits_one_batch", "check_fit_hook"]


def not_applicable(plugin):
    outcomes = [outcome for outcome in testing.outcomes(plugin) if outcome.passed is None]
    assert all(outcome.explanation.startswith("does not apply: ") for outcome in outcomes)
    return [outcome.check for outcome in outcomes]


def test_what_does_not_apply_is_said():
    good = ModelPlugin(config=Options, build=Good, example=Options(), persistent=False)
    assert not_applicable(good) == ["check_fit_hook", "check_save_and_load"]
    assert not_applicable(with_fit(solve)) == ["check_text_at_steps", "check_gradients", "check_overfits_one_batch"]


def test_models_for_other_tasks_are_not_judged_as_forecasters():
    def build(options, problem):
        assert problem.task is Task.CLASSIFY
        raise UsageError("not today")

    plugin = ModelPlugin(config=Options, build=build, example=Options(), tasks={Task.CLASSIFY})
    assert testing.checks_of(plugin) == testing.CHECKS_BY_TASK[Task.CLASSIFY]
    assert list(testing.check(plugin)) == ["check_classify_shapes"]


def test_a_declaration_of_other_covariates_is_refused():
    with pytest.raises(TypeError, match=r"covariates must be a set of 'future' and 'static', not {'past'}"):
        ModelPlugin(config=Options, build=Good, example=Options(), covariates={"past"})
