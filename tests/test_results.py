"""What a fit gives, task by task: the score beside naive answers, in plain numbers."""

import json

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, confusion_matrix, f1_score, log_loss

from tsformer import fitting, results, sources
from tsformer.config import resolve
from tsformer.config_layer import Layer
from tsformer.evaluation.hidden import HiddenScore
from tsformer.prediction import answer

SMALL = {"name": "transformer", "d_model": 8, "n_heads": 2, "d_ff": 8, "encoder_layers": 1}
TASKS = {
    "classify": {"name": "text", "path": "reviews", "text": "review", "label": "sentiment"},
    "sequence": {"name": "reversal", "pairs": 60, "symbols": 5, "longest": 8},
    "pretrain": {"name": "text", "path": "reviews", "text": "review"},
    "forecast": {"name": "sine", "points": 200},
}


def fitted(task, **train):
    values = {"model": SMALL, "task": task, "data": TASKS[task], "train": {"max_steps": 3, **train}}
    settings = resolve([Layer(values)])
    return fitting.fit(settings, sources.load_data(settings.data))


@pytest.fixture(scope="module")
def made():
    return {task: fitted(task) for task in TASKS}


def test_each_task_has_its_own(made):
    kinds = {
        "classify": results.ClassResult,
        "sequence": results.AnswerResult,
        "pretrain": results.HiddenResult,
        "forecast": results.ForecastResult,
    }
    assert {task: type(result) for task, result in made.items()} == kinds


@pytest.mark.parametrize("task", TASKS)
def test_in_plain_numbers(made, task):
    result = made[task]
    found = json.loads(json.dumps(result.to_json("a folder"), allow_nan=False))
    assert (found["schema"], found["task"], found["run"], found["model"]) == (1, task, "a folder", "transformer")
    assert found["data"] == TASKS[task]["name"]
    assert found["steps"] == 3
    assert found["parameters"] == sum(p.numel() for p in result.fitted.module.parameters())
    assert found["seconds"] >= 0
    summary = json.loads(json.dumps(result.summary(), allow_nan=False))
    assert (summary["status"], summary["steps"], summary["best_step"]) == ("complete", 3, 3)
    assert summary["metrics"] == {name: found[name] for name in summary["metrics"]}
    if task != "forecast":
        assert found["examples"] == {part: len(getattr(result.prepared.parts, part)) for part in found["examples"]}
        assert set(found["padding"]) == {"bucketing", "bucketed", "shuffled"}
        assert found["padding"]["bucketing"] is (task != "sequence")


def test_the_score_of_classes_is_scikit_learns(made):
    result = made["classify"]
    data = sources.load_data(result.fitted.settings.data)
    test = np.flatnonzero(result.prepared.partition == 2)
    probabilities = answer(result.fitted, data).probabilities[test]
    names = np.array(result.fitted.words.classes)
    truth, found = np.array(data.labels)[test], names[probabilities.argmax(1)]
    metrics = result.metrics()
    assert metrics["test"] == {
        "accuracy": pytest.approx(accuracy_score(truth, found)),
        "macro_f1": pytest.approx(f1_score(truth, found, average="macro")),
        "log_loss": pytest.approx(log_loss(truth, probabilities, labels=names), rel=1e-5),
        "examples": len(test),
    }
    assert metrics["confusion"] == confusion_matrix(truth, found, labels=names).tolist()
    training = np.array(data.labels)[result.prepared.partition == 0]
    shares = np.tile([np.mean(training == name) for name in names], (len(test), 1))
    assert metrics["baselines"]["majority"]["log_loss"] == pytest.approx(log_loss(truth, shares, labels=names))


def test_the_labels_of_each_part(made):
    result = made["classify"]
    data = sources.load_data(result.fitted.settings.data)
    for number, part in enumerate(("train", "validation", "test")):
        found = [result.fitted.words.classes[i] for i in results.labels_of(result.prepared, part)]
        assert found == [data.labels[i] for i in np.flatnonzero(result.prepared.partition == number)]


def test_the_naive_answers(made):
    """A copy of a text that is to be turned round has its length."""
    metrics = made["sequence"].metrics()
    copy, own = metrics["baselines"]["copy"], metrics["test"]
    assert copy["mean_length"] == copy["true_length"] == own["true_length"]
    data = sources.load_data(made["sequence"].fitted.settings.data)
    test = np.flatnonzero(made["sequence"].prepared.partition == 2)
    same = [data.texts[i] == data.targets[i] for i in test]
    assert copy["sequence_accuracy"] == np.mean(same)


def test_hidden_steps(made):
    score = made["pretrain"].score
    assert isinstance(score, HiddenScore)
    assert score.kind == "cross_entropy"
    assert score.examples == len(made["pretrain"].prepared.parts.test)
    assert np.isfinite([score.loss, score.baseline]).all()


@pytest.mark.parametrize("task", TASKS)
def test_the_same_seed_gives_the_same_result(made, task):
    again = fitted(task)
    assert again.metrics() == made[task].metrics()
    assert fitted(task, seed=1).metrics() != made[task].metrics()


def test_the_status_is_how_the_training_ended():
    values = {
        "model": SMALL,
        "task": "classify",
        "data": TASKS["classify"],
        "train": {"max_steps": 50, "eval_every": 1},
    }
    settings = resolve([Layer(values)])
    steps = []
    data = sources.load_data(settings.data)
    result = fitting.fit(settings, data, watch=fitting.Watch(step=steps.append, interrupted=lambda: len(steps) == 4))
    assert (result.summary()["status"], result.summary()["steps"]) == ("interrupted", 4)
    early = {**values, "train": {"max_steps": 50, "eval_every": 1, "patience": 1, "lr": 1e-9}}
    result = fitting.fit(resolve([Layer(early)]), data)
    assert result.history.stopped == "early"
    assert result.summary()["status"] == "complete"
