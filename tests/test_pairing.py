"""Which task a model and data are for, which options it reads, and what is said when they do not go together."""

import pytest

from tsformer import Config, DataPlugin, ModelPlugin, register, registry
from tsformer.errors import UsageError
from tsformer.pairing import READ_BY, partners, settle_task, shared_tasks, task_of, unread
from tsformer.plugin import Task
from tsformer.registry import Kind
from tsformer.settings import Chosen, TrainConfig, WindowConfig

FORECAST, CLASSIFY, SEQUENCE, PRETRAIN = Task


def model(*tasks, name="reader"):
    return Chosen(Kind.MODEL, name, ModelPlugin(Config, print, Config(), tasks=set(tasks)), Config())


def data(*tasks, name="letters"):
    return Chosen(Kind.DATA, name, DataPlugin(Config, print, Config(), tasks=set(tasks)), Config())


@pytest.fixture
def known(own_registry, monkeypatch):
    """Only these plugins, one of which cannot be imported."""
    monkeypatch.setattr(registry, "_built_in", lambda kind: ())
    monkeypatch.setattr(registry, "_installed", lambda kind: ())
    for one in (
        model(FORECAST, name="ridge"),
        model(*Task, name="all"),
        model(CLASSIFY, name="bag"),
        data(FORECAST, name="rows"),
        data(CLASSIFY, PRETRAIN, name="text"),
    ):
        register(one.name, one.plugin)
    broken = registry.Entry(Kind.MODEL, "broken", "register()", lambda: 1 / 0, "broken")
    monkeypatch.setitem(registry._added, (Kind.MODEL, "broken", "broken"), broken)


@pytest.mark.parametrize("wanted", [None, *Task])
@pytest.mark.parametrize("ours", [(FORECAST,), (PRETRAIN, CLASSIFY), tuple(Task)])
@pytest.mark.parametrize("theirs", [None, (FORECAST, PRETRAIN), (SEQUENCE, CLASSIFY), tuple(Task)])
def test_the_wish_or_the_first_that_both_can_do(known, wanted, ours, theirs):
    both = [task for task in Task if task in ours and (theirs is None or task in theirs)]
    chosen = model(*ours), None if theirs is None else data(*theirs)
    assert shared_tasks(*chosen) == both
    if both and wanted in (None, *both):
        assert settle_task(*chosen, wanted) is (wanted or both[0])
    else:
        with pytest.raises(UsageError) as caught:
            settle_task(*chosen, wanted)
        assert len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize(
    ("ours", "theirs", "wanted", "said"),
    [
        (
            (FORECAST,),
            (CLASSIFY, PRETRAIN),
            None,
            "model 'ridge' is for forecast, and data 'text' is for classify or pretrain; models for 'text': all, bag; "
            "data for 'ridge': rows",
        ),
        (
            (FORECAST,),
            (CLASSIFY, PRETRAIN),
            CLASSIFY,
            "task classify: model 'ridge' is for forecast; models for classify: all, bag",
        ),
        (
            (FORECAST, SEQUENCE),
            (FORECAST,),
            SEQUENCE,
            "task sequence: data 'text' is for forecast; data for sequence: none is here; without a task it is fore",
        ),
        ((FORECAST,), None, PRETRAIN, "task pretrain: model 'ridge' is for forecast; models for pretrain: all; "),
        ((), None, None, "model 'ridge' is for no task; take another model"),
    ],
)
def test_what_goes_together_is_said(known, ours, theirs, wanted, said):
    with pytest.raises(UsageError) as caught:
        settle_task(model(*ours, name="ridge"), data(*theirs, name="text") if theirs else None, wanted)
    assert str(caught.value).startswith(said)


def test_partners_by_task_without_broken_ones(known):
    assert partners(Kind.MODEL, {CLASSIFY, FORECAST}) == {"forecast": ["ridge", "all"], "classify": ["all", "bag"]}
    assert partners(Kind.DATA, {SEQUENCE}) == {"sequence": []}


def test_words_for_tasks():
    assert [task_of(word) for word in ("forecast", "classify", "sequence", "pretrain")] == list(Task)
    with pytest.raises(UsageError, match="unknown task 'clasify'; did you mean 'classify'"):
        task_of("clasify")


def test_every_option_of_the_table_is_one():
    for section, config in {"window": WindowConfig, "train": TrainConfig}.items():
        assert set(READ_BY[section]) <= set(config.model_fields)


@pytest.mark.parametrize(
    ("task", "given", "said"),
    [
        (CLASSIFY, {"loss": "mae", "truth_end": 0.5, "lr": 0.1, "class_weights": "balanced"}, ["loss", "truth_end"]),
        (SEQUENCE, {"output": "normal", "truth_end": 0.5, "label_smoothing": 0.1}, ["output"]),
        (PRETRAIN, {"hidden_share": 0.3, "label_smoothing": 0.1, "class_weights": "balanced"}, ["label_smoothing"]),
        (FORECAST, {"hidden_share": 0.3, "hidden_span": 2, "bucketing": False, "loss": "mae"}, ["hidden_share"]),
        (FORECAST, {"loss": "mse", "label_smoothing": 0.0}, []),
    ],
)
def test_options_that_a_task_never_reads(task, given, said):
    found = dict(unread("train", TrainConfig(**given), task))
    assert set(said) <= set(found)
    assert all(str(task) in line for line in found.values())
    assert "lr" not in found
    assert bool(found) == bool(said)


def test_the_reason_names_value_and_tasks():
    (found,) = unread("window", WindowConfig(horizon=3, lookback=5), CLASSIFY)
    assert found == ("horizon", "horizon 3 is for forecast and pretrain, and the task is classify")
