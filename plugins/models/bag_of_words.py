"""TF-IDF of words and pairs of words, and logistic regression on it: the model of texts to beat (Wang & Manning 2012).

The order of words beyond pairs is not seen. Nothing is trained step by step: the regression is convex and is solved to
its end, for each penalty, and the penalty is the one with the best macro-F1 on the validation part. Training options
such as the learning rate change nothing. On a few thousand texts most networks that start from nothing lose to it.

Pairs are counted in a fixed number of buckets (Weinberger et al. 2009), for a module's shapes must not depend on texts;
where all pairs of the vocabulary fit in, each has a bucket of its own.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from copy import deepcopy

import numpy as np
import torch
import torch.nn.functional as F
from scipy.sparse import csr_matrix, vstack
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score
from torch import Tensor, nn

from tsformer.data.examples import Examples
from tsformer.data.windows import Batch
from tsformer.errors import PluginError
from tsformer.plugin import Config, Field, ModelPlugin, Problem, Task

PENALTIES = (1.0, 0.3, 0.1, 0.03, 0.01)
EXAMPLES_AT_ONCE = 1024

Rows = tuple[csr_matrix, np.ndarray]
"""Features `[examples, features]`, and labels int64 `[examples]`."""


class BagOfWordsConfig(Config):
    """Options of the bag of words."""

    buckets: int = Field(
        2**17, ge=0, le=2**24, description="buckets in which pairs of neighbouring tokens are counted; 0 = single ones"
    )
    penalty: float | None = Field(
        None,
        ge=1e-6,
        le=1e6,
        description="penalty on half the squared weights, beside the sum of losses (default: of 5 from 0.01 to 1 the "
        "best on the validation part)",
    )


class BagOfWords(nn.Module):
    """One linear map from the TF-IDF of a text, of length 1, to the logits of the classes."""

    def __init__(self, config: BagOfWordsConfig, problem: Problem) -> None:
        super().__init__()
        _texts_only(problem)
        self.config, self.vocabulary = config, problem.vocabulary
        self.pairs = min(config.buckets, problem.vocabulary**2)
        features = problem.vocabulary + self.pairs
        self.weight = nn.Parameter(torch.zeros(features, problem.classes), requires_grad=False)
        self.bias = nn.Parameter(torch.zeros(problem.classes), requires_grad=False)
        self.idf: Tensor
        self.penalty: Tensor
        self.register_buffer("idf", torch.ones(features))
        self.register_buffer("penalty", torch.zeros(()))

    def forward(self, batch: Batch, truth: float = 0.0) -> Tensor:
        """Logits `[batch, classes]`; `truth` is ignored. A text without tokens has the bias alone."""
        offsets, feature, count = self.counts(batch)
        value = count * self.idf[feature]
        length = torch.segment_reduce(value.square(), "sum", offsets=offsets).sqrt()
        share = value / length.clamp_min(1e-12).repeat_interleave(offsets.diff())
        return self.bias + F.embedding_bag(feature, self.weight, offsets[:-1], mode="sum", per_sample_weights=share)

    def counts(self, batch: Batch) -> tuple[Tensor, Tensor, Tensor]:
        """How often each text has each of its features, a row of a sparse matrix for each text.

        Returns:
            int64 `[batch + 1]`, where each row begins; and int64 feature and float32 count, both `[entries]`.
        """
        tokens, mask = batch.tokens, batch.token_mask
        if tokens is None or mask is None:
            raise ValueError("bag_of_words reads tokens")
        features, real = [tokens], [mask]
        if self.pairs:
            features.append(self.vocabulary + self._bucket(tokens[:, :-1], tokens[:, 1:]))
            real.append(mask[:, :-1] & mask[:, 1:])
        row = torch.arange(len(tokens), device=tokens.device)[:, None]
        width = len(self.idf)
        numbers, count = torch.unique((row * width + torch.cat(features, 1))[torch.cat(real, 1)], return_counts=True)
        offsets = torch.searchsorted(numbers, torch.arange(len(tokens) + 1, device=tokens.device) * width)
        return offsets, numbers % width, count.to(self.idf.dtype)

    def _bucket(self, first: Tensor, second: Tensor) -> Tensor:
        """The bucket of each pair, by multiplicative hashing (Knuth 1973)."""
        if self.pairs == self.vocabulary**2:
            return first * self.vocabulary + second
        mixed = first * 2654435761 + second * 2246822519
        return (mixed ^ (mixed >> 16)) % self.pairs


def _texts_only(problem: Problem) -> None:
    """Raises PluginError where there is more or less to read than one text for each example."""
    if not problem.vocabulary:
        raise PluginError("model 'bag_of_words' reads texts, and this data has none: use another model")
    if problem.text_length or problem.channels:
        raise PluginError("model 'bag_of_words' reads one text for each example and no numbers: use another model")


def table(module: BagOfWords, examples: Examples) -> Rows:
    """How often each feature occurs in each example, float64."""
    parts, labels = [], []
    for batch in examples.batches(EXAMPLES_AT_ONCE):
        if batch.label is None:
            raise ValueError("bag_of_words is fitted on examples with labels")
        offsets, feature, count = (part.numpy() for part in module.counts(batch))
        parts.append(csr_matrix((count.astype(np.float64), feature, offsets), (len(batch.label), len(module.idf))))
        labels.append(batch.label.numpy())
    return vstack(parts, format="csr"), np.concatenate(labels)


def best_regression(train: Rows, validation: Rows, penalties: Sequence[float]) -> LogisticRegression:
    """The regression with the best macro-F1 on `validation`; of equal ones that of the penalty that comes first."""
    regression, best, highest = LogisticRegression(warm_start=True, max_iter=1000), None, -1.0
    for penalty in penalties:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # what is nearly solved is good enough
            regression.set_params(C=1 / penalty).fit(*train)
        f1 = f1_score(validation[1], regression.predict(validation[0]), average="macro", zero_division=0.0)
        if f1 > highest:
            best, highest = deepcopy(regression), f1
    return best


def fit(module: BagOfWords, train: Examples, validation: Examples) -> None:
    """Set idf, weight, bias and penalty.

    A class that the training part lacks gets no weights, and a bias that lets it be one in as many texts as there are.
    """
    counts, labels = table(module, train)
    there, seen = np.unique(labels), np.unique(counts.indices)  # what is not seen has weight 0, and no length either
    scaling = TfidfTransformer().fit(counts[:, seen])
    bias = np.full(len(module.bias), -np.log(len(labels)))
    bias[there] = 0.0
    with torch.no_grad():
        module.idf.zero_()[seen] = torch.from_numpy(scaling.idf_).float()
        if len(there) > 1:
            held_out, truth = table(module, validation)
            penalties = PENALTIES if module.config.penalty is None else (module.config.penalty,)
            rows = scaling.transform(counts[:, seen]), labels
            found = best_regression(rows, (scaling.transform(held_out[:, seen]), truth), penalties)
            sides = np.array([[-0.5], [0.5]]) if len(there) == 2 else np.eye(len(there))  # one row serves two classes
            module.weight[np.ix_(seen, there)] = torch.from_numpy(sides @ found.coef_).float().T
            bias[there] = sides @ found.intercept_
            module.penalty.fill_(1 / found.C)
        module.bias.copy_(torch.from_numpy(bias))


plugin = ModelPlugin(
    config=BagOfWordsConfig,
    build=BagOfWords,
    example=BagOfWordsConfig(buckets=256),
    tasks={Task.CLASSIFY},
    fit=fit,
)
