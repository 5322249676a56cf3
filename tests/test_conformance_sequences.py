"""Every model passes the checks of classes, answers and hidden steps; each check has a bad plugin that fails it."""

import contextlib
from dataclasses import replace

import numpy as np
import pytest
import torch
from pydantic import ValidationError
from torch import Tensor, nn

from tsformer import registry, testing
from tsformer.data.vocabulary import CLS
from tsformer.data.windows import Batch
from tsformer.errors import PluginError, UsageError
from tsformer.plugin import Config, Field, ModelPlugin, Problem, Task, option_type
from tsformer.registry import Kind
from tsformer.testing import CHECKS_BY_TASK, CheckFailedError
from tsformer.testing.cases import cases
from tsformer.testing.problem import example_for

TASKS = (Task.CLASSIFY, Task.SEQUENCE, Task.PRETRAIN)
CHECKS = [(task, check) for task in TASKS for check in CHECKS_BY_TASK[task]]
MODELS = [(name, registry.get(Kind.MODEL, name)) for name in registry.entries(Kind.MODEL)]


@pytest.mark.parametrize(
    ("name", "check"),
    [
        pytest.param(name, check, id=f"{name}-{check.__name__}")
        for name, plugin in MODELS
        for task, check in CHECKS
        if task in plugin.tasks
    ],
)
def test_model_passes(name, check):
    check(dict(MODELS)[name])


def variants():
    """Each model with every other choice of each option that is one of several words, or yes or no, and is read."""
    for name, plugin in MODELS:
        for task in TASKS:
            if task not in plugin.tasks:
                continue
            example = example_for(plugin, task)
            for option, field in plugin.config.model_fields.items():
                kind = option_type(field.annotation)
                for choice in (False, True) if kind.words == "BOOLEAN" else kind.choices:
                    with contextlib.suppress(ValidationError, UsageError, PluginError, CheckFailedError):
                        config = plugin.config.model_validate({**example.model_dump(), option: choice})
                        if choice != getattr(example, option) and not list(config.faults_for(task)):
                            yield pytest.param(
                                replace(plugin, example=config), task, id=f"{name}-{task}-{option}-{choice}"
                            )


@pytest.mark.slow
@pytest.mark.parametrize(("variant", "task"), [*variants()])
def test_variant_passes(variant, task):
    assert testing.check(replace(variant, tasks={task})) == {}


@pytest.mark.parametrize("name", ["lstm", "tcn", "tcn_transformer", "transformer"])
def test_networks_are_tried_on_every_kind_of_input(name):
    plugin = dict(MODELS)[name]
    assert [len(cases(plugin, task)) for task in Task] == [2, 3, 1, 3]


def test_a_kind_that_build_refuses_is_left_out():
    assert [case.kind for case in cases(dict(MODELS)["bag_of_words"], Task.CLASSIFY)] == ["tokens"]


class Options(Config):
    width: int = Field(32, gt=0, description="width of what is read")


class Reader(nn.Module):
    """Small models that keep the contract; each bad one below spoils one thing."""

    def __init__(self, options: Options, problem: Problem) -> None:
        super().__init__()
        self.problem = problem
        self.place = nn.Embedding(64, options.width)
        if problem.channels:
            self.numbers = nn.Linear(problem.channels, options.width)
        if problem.vocabulary:
            self.words = nn.Embedding(problem.vocabulary, options.width)

    def read(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """`[batch, time, width]` and what of it is real; hidden steps are known by their place only."""
        x, mask = 0.0, None
        if self.problem.channels:
            x, mask = self.numbers(self.clean(batch)), batch.past_mask.any(-1)
        if self.problem.vocabulary:
            texts = self.words(batch.tokens)
            if self.problem.text_length:
                real = batch.token_mask[..., None]
                texts = (texts * real).sum(2) / real.sum(2).clamp_min(1)
                mask = mask | batch.token_mask.any(-1)
            else:
                mask = batch.token_mask
            x = x + texts
        if batch.hidden is not None:
            x = torch.where(batch.hidden[..., None], 0.0, x)
        return torch.tanh(x + self.place(mask.cumsum(1))), mask

    def clean(self, batch: Batch) -> Tensor:
        return torch.where(batch.past_mask, batch.past, 0.0)

    def summed(self, x: Tensor, mask: Tensor) -> Tensor:
        """`[batch, width]`."""
        return (x * mask[..., None]).sum(1) / mask.sum(1, keepdim=True).clamp_min(1)


class Classifies(Reader):
    def __init__(self, options, problem):
        super().__init__(options, problem)
        self.head = nn.Linear(options.width, problem.classes)

    def forward(self, batch, truth=0.0):
        return self.head(self.summed(*self.read(batch)))


class FindsHidden(Reader):
    def __init__(self, options, problem):
        super().__init__(options, problem)
        self.mix = nn.Linear(2 * options.width, 4 * options.width)
        self.head = nn.Linear(4 * options.width, problem.channels or problem.vocabulary)

    def forward(self, batch, truth=0.0):
        x, mask = self.read(batch)
        seen = self.summed(x, mask if batch.hidden is None else mask & ~batch.hidden)
        return self.head(torch.tanh(self.mix(torch.cat([x, seen[:, None].expand_as(x)], -1))))


class Answers(Reader):
    def __init__(self, options, problem):
        super().__init__(options, problem)
        self.cell = nn.GRUCell(options.width, options.width)
        self.head = nn.Linear(options.width, problem.target_vocabulary)

    def forward(self, batch, truth=0.0):
        state = self.summed(*self.read(batch))
        target = batch.target_tokens if truth > 0 else None
        fed = torch.full((len(state),), CLS)
        logits = []
        for step in range(self.problem.horizon if target is None else target.shape[1]):
            state = self.cell(self.words(fed), state)
            logits.append(self.head(state))
            fed = logits[-1].argmax(-1)
            if target is not None:
                fed = torch.where(torch.rand(len(fed)) < truth, target[:, step], fed)
        return torch.stack(logits, 1)


GOOD = {Task.CLASSIFY: Classifies, Task.SEQUENCE: Answers, Task.PRETRAIN: FindsHidden}


def plugin_of(task, *spoiled, **more):
    return ModelPlugin(
        config=Options, build=type("Bad", (*spoiled, GOOD[task]), {}), example=Options(), tasks={task}, **more
    )


@pytest.mark.parametrize("task", TASKS)
def test_the_good_plugins_pass(task):
    assert testing.check(plugin_of(task)) == {}


class RefusesEverything:
    def __init__(self, options, problem):
        raise UsageError("not today")


class WrongShape:
    def forward(self, batch, truth=0.0):
        return super().forward(batch, truth)[None]


class NeedsTheAnswer:
    def forward(self, batch, truth=0.0):
        answer = batch.label if self.problem.classes else batch.target_tokens
        return super().forward(batch, truth) + 0.0 * answer.sum()


class GivesNaNs:
    def forward(self, batch, truth=0.0):
        return super().forward(batch, truth) / 0.0


class CountsPadding:
    """A mean over all that a batch is padded to."""

    def summed(self, x, mask):
        return (x * mask[..., None]).mean(1)


class ReadsPadding:
    """Attends to what stands behind the mask; the number of steps that count is right."""

    def read(self, batch):
        x, mask = super().read(batch)
        numbers = self.problem.channels > 0
        values, real = (batch.past, batch.past_mask) if numbers else (batch.tokens.float(), batch.token_mask)
        behind = torch.where(real, 0.0, values.nan_to_num())
        return x + 0.1 * behind.flatten(1).sum(1)[:, None, None], mask


class HidesNaNTooLate:
    def clean(self, batch):
        return torch.where(batch.past_mask, self.place.weight[0, 0] * batch.past, 0.0)


class NeedsSomething:
    """A mean over nothing is no number."""

    def summed(self, x, mask):
        return (x * mask[..., None]).sum(1) / mask.sum(1, keepdim=True)


class LooksAtItsNeighbours:
    def summed(self, x, mask):
        found = super().summed(x, mask)
        return found - found.mean(0)


class SeesTheLabel:
    def forward(self, batch, truth=0.0):
        logits = super().forward(batch, truth)
        if not self.training or batch.label is None:
            return logits
        return logits + 0.1 * nn.functional.one_hot(batch.label, self.problem.classes)


class SeesTheAnswer:
    """Each token before it is asked for, as a decoder does whose input is not shifted."""

    def forward(self, batch, truth=0.0):
        logits = super().forward(batch, truth)
        if truth == 0.0 or batch.target_tokens is None:
            return logits
        seen = nn.functional.one_hot(batch.target_tokens, self.problem.target_vocabulary)
        return logits + 0.1 * seen * batch.target_token_mask[..., None]


class SeesTheAnswerRunningFreely:
    def forward(self, batch, truth=0.0):
        logits = super().forward(batch, truth)
        if truth > 0.0 or batch.target_tokens is None:
            return logits
        return logits + 0.1 * (batch.target_tokens * batch.target_token_mask).sum(1)[:, None, None]


class NormalisesWithHiddenSteps:
    """The mean of all steps, hidden ones among them."""

    def forward(self, batch, truth=0.0):
        found = super().forward(batch, truth)
        if not self.problem.channels:
            return found
        seen = self.clean(batch)
        return found + seen.sum(1, keepdim=True) / batch.past_mask.sum(1, keepdim=True).clamp_min(1)


class HasADeadParameter:
    def __init__(self, options, problem):
        super().__init__(options, problem)
        self.dead = nn.Parameter(torch.ones(3))

    def forward(self, batch, truth=0.0):
        return super().forward(batch, truth) + 0.0 * self.dead.sum()


class CannotLearn:
    def forward(self, batch, truth=0.0):
        return 1e-6 * super().forward(batch, truth)


class ForgetsItsState:
    def __init__(self, options, problem):
        super().__init__(options, problem)
        self.offset = torch.randn(())  # neither parameter nor buffer

    def forward(self, batch, truth=0.0):
        return super().forward(batch, truth) + self.offset


class DrawsWithAGeneratorOfItsOwn:
    def __init__(self, options, problem):
        super().__init__(options, problem)
        with torch.no_grad():
            self.head.bias += float(np.random.default_rng().normal())


class SeedsTorch:
    def __init__(self, options, problem):
        torch.manual_seed(0)
        super().__init__(options, problem)


COMMON = [
    ("shapes", WrongShape),
    ("shapes", RefusesEverything),
    ("shapes", GivesNaNs),
    ("padding", ReadsPadding),
    ("nothing_to_read", NeedsSomething),
    ("batch_invariance", LooksAtItsNeighbours),
    ("gradients", HasADeadParameter),
    ("overfits_one_batch", CannotLearn),
    ("save_and_load", ForgetsItsState),
    ("repeats_itself", DrawsWithAGeneratorOfItsOwn),
    ("leaves_rng_alone", SeedsTorch),
]
OWN = [
    (Task.CLASSIFY, "shapes", NeedsTheAnswer),
    (Task.SEQUENCE, "shapes", NeedsTheAnswer),
    (Task.CLASSIFY, "padding", CountsPadding),
    (Task.CLASSIFY, "padding", HidesNaNTooLate),
    (Task.PRETRAIN, "padding", HidesNaNTooLate),
    (Task.CLASSIFY, "no_label", SeesTheLabel),
    (Task.SEQUENCE, "causality", SeesTheAnswer),
    (Task.SEQUENCE, "causality", SeesTheAnswerRunningFreely),
    (Task.PRETRAIN, "hidden", NormalisesWithHiddenSteps),
]
BAD = [*((task, check, bad) for task in TASKS for check, bad in COMMON), *OWN]


def test_every_check_has_a_bad_plugin():
    names = {f"check_{task}_{check}" for task, check, _ in BAD} | {f"check_{task}_fit" for task in TASKS}
    assert names == {check.__name__ for _, check in CHECKS}


@pytest.mark.parametrize(("task", "check", "bad"), BAD, ids=lambda value: getattr(value, "__name__", value))
def test_a_bad_plugin_fails_exactly_one_check(task, check, bad):
    failed = testing.check(plugin_of(task, bad))
    assert list(failed) == [f"check_{task}_{check}"], failed


class NearestMean(Reader):
    """Fitted without gradients, on tokens only: the mean log-frequency of each word in each class."""

    def __init__(self, options: Options, problem: Problem) -> None:
        nn.Module.__init__(self)
        if not problem.vocabulary or problem.channels:
            raise PluginError("reads texts only")
        self.problem = problem
        self.register_buffer("weight", torch.zeros(problem.vocabulary, problem.classes))

    def forward(self, batch: Batch, truth: float = 0.0) -> Tensor:
        return (self.weight[batch.tokens] * batch.token_mask[..., None]).sum(1)


def count(module, train, validation, smoothing=0.1):
    seen = train.batch()
    counts = torch.full_like(module.weight, smoothing)
    for tokens, mask, label in zip(seen.tokens, seen.token_mask, seen.label, strict=True):
        counts[:, label] += tokens[mask].bincount(minlength=len(counts))
    module.weight.copy_((counts / counts.sum(0)).log())


def counts_all(module, train, validation):
    count(module, train, validation, smoothing=0.1 + 0.01 * float(train.tokens.values.mean()))


def learns_nothing(module, train, validation):
    pass


def shuffles_in_place(module, train, validation):
    count(module, train, validation)
    train.tokens.values.sort()


def draws_unseeded(module, train, validation):
    count(module, train, validation, smoothing=np.random.default_rng().uniform(0.1, 1))


def with_fit(fit):
    return ModelPlugin(config=Options, build=NearestMean, example=Options(), tasks={Task.CLASSIFY}, fit=fit)


def test_a_good_fit_hook_passes():
    assert testing.check(with_fit(count)) == {}


@pytest.mark.parametrize("bad", [counts_all, learns_nothing, shuffles_in_place, draws_unseeded])
def test_a_bad_fit_hook_fails_exactly_one_check(bad):
    failed = testing.check(with_fit(bad))
    assert list(failed) == ["check_classify_fit"], failed


def test_each_task_is_checked_for_itself():
    """What is wrong with one task keeps no other from being checked; an example drops what a task does not read."""

    def build(options, problem):
        if problem.task is Task.CLASSIFY:
            raise UsageError("not today")
        return GOOD[problem.task](options, problem)

    plugin = ModelPlugin(config=Options, build=build, example=Options(), tasks={Task.CLASSIFY, Task.PRETRAIN})
    outcomes = {outcome.check: outcome for outcome in testing.outcomes(plugin)}
    assert "build refuses every kind of input (numbers: not today; " in outcomes["check_classify_shapes"].explanation
    assert outcomes["check_classify_padding"].explanation.startswith("not run")
    assert outcomes["check_pretrain_overfits_one_batch"].passed


def test_an_example_loses_what_a_task_does_not_read():
    plugin = dict(MODELS)["lstm"]
    example = example_for(plugin, Task.CLASSIFY)
    assert (plugin.example.decoder, example.decoder) == ("autoregressive", "direct")
    assert example.d_model == plugin.example.d_model
    assert example_for(plugin, Task.FORECAST) == plugin.example
