"""bag_of_words: against scikit-learn's TF-IDF and logistic regression on the same tokens, and what it refuses."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score
from tsformer_plugins.models import bag_of_words

from tsformer.data.ragged import ragged
from tsformer.data.sequence_set import SequenceSet
from tsformer.data.windows import Batch
from tsformer.errors import PluginError
from tsformer.plugin import Problem, Task

PROBLEM = Problem(task=Task.CLASSIFY, lookback=12, output="classes", vocabulary=20, classes=3)


class Texts:
    """Examples of tokens with labels, in batches of `size` at most, padded on the right."""

    def __init__(self, texts, labels, size=7):
        self.texts, self.labels, self.size = texts, labels, size

    def __len__(self):
        return len(self.texts)

    def batch(self, index=None):
        chosen = range(len(self)) if index is None else index.tolist()
        return padded([self.texts[i] for i in chosen], [self.labels[i] for i in chosen])

    def batches(self, size):
        for start in range(0, len(self), self.size):
            yield self.batch(torch.arange(start, min(start + self.size, len(self))))


def padded(texts, labels=None, more=0):
    """A batch; behind the mask stand tokens of every kind."""
    length = max(map(len, texts)) + more
    tokens = torch.randint(0, PROBLEM.vocabulary, (len(texts), length), generator=torch.Generator().manual_seed(more))
    mask = torch.arange(length) < torch.tensor([len(text) for text in texts])[:, None]
    for row, text in enumerate(texts):
        tokens[row, : len(text)] = torch.tensor(text, dtype=torch.int64)
    return Batch(tokens=tokens, token_mask=mask, label=None if labels is None else torch.tensor(labels))


def texts(count, seed, classes=3):
    """Each class has its own mixture of tokens, and many tokens that say nothing."""
    generator = np.random.default_rng(seed)
    labels = generator.integers(0, classes, count)
    weights = np.ones((classes, 20))
    weights[np.arange(classes), 4 + np.arange(classes)] = 4
    weights /= weights.sum(1, keepdims=True)
    return Texts(
        [generator.choice(20, size=generator.integers(0, 12), p=weights[label]).tolist() for label in labels],
        labels.tolist(),
    )


def fitted(train, validation, problem=PROBLEM, **options):
    module = bag_of_words.BagOfWords(bag_of_words.BagOfWordsConfig(**options), problem)
    bag_of_words.fit(module, train, validation)
    return module


def words_of(text):
    return text


def words_and_pairs_of(text):
    return [str(word) for word in (*text, *itertools.pairwise(text))]


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("buckets", [0, 2**17])
def test_probabilities_are_those_of_scikit_learn(classes, buckets):
    problem = replace(PROBLEM, classes=classes)
    train, other = texts(150, 0, classes), texts(60, 1, classes)
    module = fitted(train, other, problem, buckets=buckets, penalty=0.2)
    features = words_and_pairs_of if buckets else words_of
    words = TfidfVectorizer(analyzer=features)
    theirs = LogisticRegression(C=5, max_iter=1000).fit(words.fit_transform(train.texts), train.labels)
    seen = {word for text in train.texts for word in features(text)}
    assert any(not seen.issuperset(features(text)) for text in other.texts) or not buckets  # what is new counts nothing
    expected = theirs.predict_proba(words.transform(other.texts))
    found = module(other.batch()).softmax(1).numpy()
    np.testing.assert_allclose(found, expected, atol=2e-3)  # both stop when it no longer matters
    assert float(module.penalty) == pytest.approx(0.2)


def macro_f1(module, some):
    return f1_score(some.labels, module(some.batch()).argmax(1).numpy(), average="macro")


def test_the_penalty_is_the_best_on_validation():
    train, validation = texts(60, 0), texts(200, 3)
    chosen = fitted(train, validation)
    each = [macro_f1(fitted(train, validation, penalty=penalty), validation) for penalty in bag_of_words.PENALTIES]
    assert len(set(each)) > 1
    assert macro_f1(chosen, validation) >= max(each) - 0.01
    assert float(chosen.penalty) in [pytest.approx(penalty) for penalty in bag_of_words.PENALTIES]
    assert macro_f1(chosen, validation) > 0.5


@settings(max_examples=50, deadline=None)
@given(st.lists(st.lists(st.integers(0, 19), max_size=9), min_size=1, max_size=5), st.sampled_from([0, 7, 400, 2**17]))
def test_counts_are_those_of_brute_force(some, buckets):
    module = bag_of_words.BagOfWords(bag_of_words.BagOfWordsConfig(buckets=buckets), PROBLEM)
    offsets, feature, count = module.counts(padded(some, more=2))
    assert len(offsets) == len(some) + 1
    for row, text in enumerate(some):
        entries = slice(int(offsets[row]), int(offsets[row + 1]))
        found = dict(zip(feature[entries].tolist(), count[entries].tolist(), strict=True))
        single = {word: text.count(word) for word in set(text)}
        pairs = list(itertools.pairwise(text))
        assert {word: n for word, n in found.items() if word < 20} == single
        assert sum(n for word, n in found.items() if word >= 20) == (len(pairs) if buckets else 0)
        if buckets >= 400:  # each pair has its own
            assert {word: n for word, n in found.items() if word >= 20} == {
                20 + 20 * a + b: pairs.count((a, b)) for a, b in pairs
            }


def test_pairs_are_spread_evenly_over_buckets():
    module = bag_of_words.BagOfWords(
        bag_of_words.BagOfWordsConfig(buckets=1024), replace(PROBLEM, vocabulary=256, classes=2)
    )
    first, second = torch.arange(256).repeat_interleave(256), torch.arange(256).repeat(256)
    batch = Batch(tokens=torch.stack([first, second], 1), token_mask=torch.ones(65536, 2, dtype=torch.bool))
    _, feature, _ = module.counts(batch)
    each = torch.bincount(feature[feature >= 256] - 256, minlength=1024)
    assert each.sum() == 65536
    assert each.min() > 16  # of 64 on average
    assert each.max() < 160


def test_padding_and_neighbours_change_nothing():
    module = fitted(texts(100, 0), texts(50, 1))
    some = texts(20, 5).texts
    whole = module(padded(some))
    assert torch.allclose(module(padded(some, more=9)), whole, atol=1e-6)
    for row, text in enumerate(some):
        assert torch.allclose(module(padded([text]))[0], whole[row], atol=1e-6)


def test_a_text_without_tokens_has_the_bias_alone():
    module = fitted(texts(100, 0), texts(50, 1))
    assert torch.equal(module(padded([[], [4, 4]]))[0], module.bias)
    assert torch.equal(module(padded([[], []])), module.bias.expand(2, 3))


def test_batches_of_like_lengths_give_the_same_model():
    some, validation = texts(60, 0), texts(40, 1)
    rows = SequenceSet(np.arange(60), 12, tokens=ragged(some.texts), labels=np.array(some.labels))
    state, again = fitted(some, validation).state_dict(), fitted(rows, validation).state_dict()
    for name, tensor in state.items():
        assert torch.allclose(again[name], tensor, atol=2e-3), name


@pytest.mark.parametrize("there", [[1], [0, 2], [0, 1, 2]])
def test_a_class_that_training_lacks_is_the_rarest(there):
    problem = replace(PROBLEM, classes=4)
    some = texts(200, 0)
    kept = [i for i, label in enumerate(some.labels) if label in there]
    train = Texts([some.texts[i] for i in kept], [some.labels[i] for i in kept])
    module = fitted(train, texts(50, 1), problem)
    probability = module(some.batch()).softmax(1)
    lacking = sorted({0, 1, 2, 3} - set(there))
    assert 0 < float(probability[:, lacking].max()) < 0.05
    assert float(probability[:, there].sum(1).min()) > 0.9


def test_what_it_keeps_has_the_shapes_of_build():
    config = bag_of_words.BagOfWordsConfig(buckets=64)
    built = bag_of_words.BagOfWords(config, PROBLEM).state_dict()
    state = fitted(texts(50, 0), texts(50, 1), buckets=64).state_dict()
    assert {name: t.shape for name, t in state.items()} == {name: t.shape for name, t in built.items()}
    again = bag_of_words.BagOfWords(config, PROBLEM)
    again.load_state_dict(state)
    some = texts(10, 2).batch()
    assert torch.equal(again(some), fitted(texts(50, 0), texts(50, 1), buckets=64)(some))


@pytest.mark.parametrize(
    ("more", "line"),
    [
        ({"vocabulary": 0, "targets": 2}, "reads texts, and this data has none"),
        ({"targets": 2}, "one text for each example and no numbers"),
        ({"targets": 1, "text_length": 5}, "one text for each example and no numbers"),
    ],
)
def test_what_it_refuses(more, line):
    with pytest.raises(PluginError, match=f"model 'bag_of_words' .*{line}"):
        bag_of_words.BagOfWords(bag_of_words.BagOfWordsConfig(), replace(PROBLEM, **more))
