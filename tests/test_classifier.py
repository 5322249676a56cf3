"""The Classifier: scikit-learn's manners, every kind of X and y, the same runs as the command line."""

import json

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics import get_scorer, log_loss
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import tsformer
from tsformer import Classifier
from tsformer.errors import DataError, PluginError, RunError, UsageError

SMALL = {"d_model": 16, "d_ff": 16, "encoder_layers": 1}
FAST = {"model_options": SMALL, "train_options": {"max_steps": 60, "lr": 0.01, "warmup": 5}}
TWO = {"model_options": SMALL, "train_options": {"max_steps": 2}}
TEXTS = [f"{word} film {number}" for number in range(20) for word in ("good", "bad")]


@pytest.fixture(scope="module")
def waves():
    """Slow and fast waves of 16 steps, `[36, 16]`, and which they are; the fast ones are fewer."""
    rng = np.random.default_rng(0)
    fast = np.arange(36) % 3 == 0
    steps = np.arange(16) * np.where(fast, 0.8, 0.2)[:, None]
    return np.sin(steps) + 0.1 * rng.normal(size=(36, 16)), fast


@pytest.fixture(scope="module")
def fitted(waves):
    return Classifier(**FAST).fit(*waves)


def test_waves_are_told_apart(fitted, waves):
    series, fast = waves
    assert fitted.score(series, fast) > 0.9
    assert fitted.classes_.tolist() == [False, True]
    assert fitted.predict(series).dtype == bool
    probabilities = fitted.predict_proba(series)
    assert probabilities.shape == (36, 2)
    np.testing.assert_allclose(probabilities.sum(1), 1)
    np.testing.assert_array_equal(fitted.predict(series), probabilities[:, 1] > 0.5)


def test_nothing_is_held_out_and_the_score_says_so(fitted):
    assert fitted.metrics_["validation"]["examples"] == 7  # a fifth of each class
    assert "test" not in fitted.metrics_
    assert set(fitted.metrics_["baselines"]["majority"]) == set(fitted.metrics_["validation"])
    assert fitted.history_.steps == 60


@pytest.mark.parametrize(
    "y",
    [
        np.array([10, 9, 100] * 12),
        np.array([10, 9, 100] * 12, dtype=np.uint8),
        np.array([1.0, 2.0, -1.0] * 12),
        ["b", "a", "c"] * 12,
        pd.Series(["b", "a", "c"] * 12, index=range(100, 136)),
        pd.Series(["b", "a", "c"] * 12, dtype="category"),
        pd.Series([10, 9, 100] * 12, dtype="Int64"),
        pd.DataFrame({"kind": [10, 9, 100] * 12}),
    ],
    ids=["int", "uint8", "float", "list", "Series", "category", "Int64", "DataFrame"],
)
def test_labels_come_back_in_their_own_type_and_order(waves, tmp_path, y):
    series = waves[0]
    classifier = Classifier(**TWO).fit(series, y)
    plain = np.asarray(y).ravel()
    known = np.unique(plain)
    assert classifier.classes_.tolist() == known.tolist()  # 9 before 10 before 100, which text would not have
    found = classifier.predict(series)
    np.testing.assert_array_equal(found, known[classifier.predict_proba(series).argmax(1)])
    if not isinstance(y, list | pd.DataFrame | pd.Series):
        assert found.dtype == y.dtype
    loss = get_scorer("neg_log_loss")(classifier, series, plain.tolist())
    assert loss == pytest.approx(-log_loss(plain.tolist(), classifier.predict_proba(series)))
    loaded = tsformer.load(classifier.save(tmp_path / "run"))
    assert loaded.classes_.tolist() == known.tolist()
    np.testing.assert_array_equal(loaded.predict(series), found)
    assert loaded.score(series, plain.tolist()) == pytest.approx((found == plain).mean())


def test_columns_of_probabilities_belong_to_their_classes(waves):
    series, fast = waves
    words = Classifier(**FAST).fit(series, np.where(fast, "9", "10"))
    numbers = Classifier(**FAST).fit(series, np.where(fast, 9, 10))
    assert words.classes_.tolist() == ["10", "9"]
    assert numbers.classes_.tolist() == [9, 10]
    np.testing.assert_allclose(words.predict_proba(series), numbers.predict_proba(series)[:, ::-1])
    assert numbers.score(series, np.where(fast, 9, 10)) > 0.9


def test_the_layouts(waves):
    series, fast = waves
    both = np.stack([series, series[::-1]], axis=2)
    first = Classifier(layout="NTC", **TWO).fit(both, fast)
    second = Classifier(layout="NCT", **TWO).fit(both.transpose(0, 2, 1), fast)
    third = Classifier(layout="NTC", **TWO).fit(list(both), fast)
    assert first.fitted_.problem.channels == 2
    for other, given in ((second, both.transpose(0, 2, 1)), (third, torch.from_numpy(both))):
        np.testing.assert_array_equal(first.predict_proba(both), other.predict_proba(given))
    with pytest.raises(UsageError, match=r"shape \(16, 2\): give layout='NTC' if that is 16 step"):
        Classifier(**TWO).fit(both, fast)
    with pytest.raises(DataError, match=r"X has 1 channel\(s\), and the model was fitted on 2"):
        first.predict(series)


def test_series_of_unequal_length_with_missing_values(waves):
    series, fast = waves
    short = [values[number % 5 :].copy() for number, values in enumerate(series)]
    short[3][:4] = np.nan
    classifier = Classifier(**FAST).fit(short, fast)
    assert classifier.score(short, fast) > 0.8
    alone = np.concatenate([classifier.predict_proba([values]) for values in short[:8]])
    np.testing.assert_allclose(alone, classifier.predict_proba(short)[:8], atol=1e-5)  # padding changes nothing


def test_texts(tmp_path):
    labels = ["+" if text.startswith("good") else "-" for text in TEXTS]
    classifier = Classifier(token_options={"tokenizer": "word"}, **FAST).fit(pd.Series(TEXTS), labels)
    assert classifier.predict(["a good film", "what a bad film"]).tolist() == ["+", "-"]
    assert classifier.predict(np.array(["good", "bad"])).tolist() == ["+", "-"]
    loaded = tsformer.load(classifier.save(tmp_path / "run"))
    np.testing.assert_array_equal(loaded.predict_proba(TEXTS), classifier.predict_proba(TEXTS))
    with pytest.raises(DataError, match="the model was fitted on"):
        classifier.predict(np.zeros((2, 5)))


def test_what_read_gives_brings_its_labels_and_its_test_part(in_tmp):
    sequences = tsformer.read("text", path="reviews", text=["review"], label="sentiment")
    classifier = Classifier("bag_of_words", train_options={"max_steps": 20}).fit(sequences)
    assert set(classifier.classes_) == set(sequences.labels)
    by_hand = np.mean(classifier.predict(sequences) == np.array(sequences.labels, dtype=object))
    assert classifier.score(sequences) == pytest.approx(by_hand)
    lines = "@univariate true\n@classLabel true up down\n@data\n"
    for part, count in (("TRAIN", 12), ("TEST", 3)):
        rows = [f"{i},{2 * i},{3 * i}:up\n{3 * i},{2 * i},{i}:down\n" for i in range(1, count + 1)]
        (in_tmp / f"X_{part}.ts").write_text(lines + "".join(rows))
    published = tsformer.read("series", path="X_TRAIN.ts", test="X_TEST.ts")
    assert Classifier(**FAST).fit(published).metrics_["test"]["examples"] == 6


def test_scikit_learns_manners(waves):
    classifier = Classifier("no such model", layout="NCT", model_options={"d_model": 32})
    assert clone(classifier).get_params() == classifier.get_params()
    assert clone(classifier).set_params(seed=4).seed == 4
    with pytest.raises(NotFittedError, match="this Classifier is not fitted"):
        classifier.predict(waves[0])
    with pytest.raises(PluginError, match="no such model"):
        classifier.fit(waves[0][:, None], waves[1])


def test_model_selection_of_scikit_learn(waves):
    series, fast = waves
    scores = cross_val_score(Classifier(**FAST), list(series), fast, cv=3)
    assert scores.shape == (3,)
    assert scores.mean() > 0.75
    grid = {"model_options": [{**SMALL, "pooling": pooling} for pooling in ("mean", "max")]}
    search = GridSearchCV(Classifier(**TWO), grid, cv=2, error_score="raise").fit(series, fast)
    assert search.best_params_ in [{"model_options": options} for options in grid["model_options"]]
    pipeline = make_pipeline(FunctionTransformer(np.cumsum, kw_args={"axis": 1}), Classifier(**TWO))
    pipeline.fit(series, fast)
    direct = Classifier(**TWO).fit(series.cumsum(1), fast)
    np.testing.assert_array_equal(pipeline.predict_proba(series), direct.predict_proba(series.cumsum(1)))


def test_the_callers_random_state_is_left_alone(waves):
    torch.manual_seed(3)
    np.random.seed(3)  # noqa: NPY002
    before = torch.random.get_rng_state(), np.random.get_state()[1].copy()  # noqa: NPY002
    first, second = (Classifier(**TWO).fit(*waves).predict_proba(waves[0]) for _ in range(2))
    np.testing.assert_array_equal(first, second)
    assert torch.equal(before[0], torch.random.get_rng_state())
    np.testing.assert_array_equal(before[1], np.random.get_state()[1])  # noqa: NPY002


def test_save_and_load(waves, tmp_path):
    series, fast = waves
    classifier = Classifier(layout="NCT", lookback=10, **TWO).fit(series[:, None], fast.astype(int))
    loaded = tsformer.load(classifier.save(tmp_path / "run"))
    assert isinstance(loaded, Classifier)
    assert (loaded.layout, loaded.lookback, loaded.history_) == ("NCT", 10, None)
    assert loaded.metrics_ == classifier.metrics_
    np.testing.assert_array_equal(loaded.predict_proba(series[:, None]), classifier.predict_proba(series[:, None]))
    again = clone(loaded).fit(series[:, None], fast.astype(int))
    np.testing.assert_array_equal(again.predict_proba(series[:, None]), classifier.predict_proba(series[:, None]))
    assert tsformer.load(loaded.save(tmp_path / "again")).classes_.tolist() == [0, 1]
    manifest = json.loads((tmp_path / "run/manifest.json").read_text())
    manifest["python"]["labels"] = "complex"
    (tmp_path / "run/manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(RunError, match="the classes of the run are no complex"):
        tsformer.load(tmp_path / "run")


def test_an_encoder_of_an_earlier_run(waves, fitted, tmp_path):
    run = fitted.save(tmp_path / "run")
    with pytest.warns(UserWarning, match="run"):
        frozen = Classifier(init_from=run, freeze=True, **TWO).fit(*waves)
    before, after = fitted.fitted_.module.state_dict(), frozen.fitted_.module.state_dict()
    assert any(torch.equal(before[name], after[name]) for name in before if "encoder" in name)


@pytest.mark.parametrize(
    ("y", "said"),
    [
        (["x"] * 36, "all 36 examples have the label 'x'; at least two are needed"),
        (["x", "y"], "X has 36 examples and y 2 labels"),
        (["x", None] * 18, r"18 missing label\(s\), the first is y\[1\]"),
        (np.where(np.arange(36) == 5, np.nan, 1.0), r"1 missing label\(s\), the first is y\[5\]"),
        (np.linspace(0, 1, 36), "a measurement and no class"),
        ([1, "1"] * 18, "y holds mixed-integer values"),
        (np.zeros((36, 2)), r"not an array of shape \(36, 2\)"),
        (pd.date_range("2020-01-01", periods=36), "labels are text, whole numbers or bool"),
    ],
)
def test_labels_that_are_refused(waves, y, said):
    with pytest.raises(DataError, match=said):
        Classifier(**TWO).fit(waves[0], y)


@pytest.mark.parametrize(
    ("options", "error", "said"),
    [
        ({"layout": "TNC"}, UsageError, "layout is 'NTC'"),
        ({"model_options": {"d_modl": 3}}, UsageError, "did you mean 'd_model'"),
        ({"train_options": {"seed": 3}}, UsageError, r"give it as Classifier\(seed=...\)"),
        ({"token_options": 3}, UsageError, "an argument of Classifier is of the wrong type"),
        ({"freeze": True}, UsageError, "give init_from RUN"),
        ({"model": "naive"}, PluginError, "naive"),
    ],
)
def test_arguments_that_are_refused(waves, options, error, said):
    with pytest.raises(error, match=said):
        Classifier(**options).fit(*waves)


def test_labels_are_needed(waves):
    with pytest.raises(UsageError, match=r"fit needs labels: fit\(X, y\)"):
        Classifier(**TWO).fit(waves[0])


def test_the_validation_score_is_called_so_in_warnings(waves):
    with pytest.warns(UserWarning, match="does not beat the majority class on the validation part"):
        Classifier(model_options=SMALL, train_options={"max_steps": 1, "lr": 1e-9}).fit(*waves)
