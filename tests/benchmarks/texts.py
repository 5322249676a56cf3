"""Sets of labelled texts: networks with default options, and what they have to beat.

    python tests/benchmarks/texts.py FOLDER [--sets waimai] [--systems transformer bag_of_words] [--seeds 3]
        [--option train.epochs=5]

FOLDER holds the files that `trials.py` names. Each set is split once, and all systems and seeds get the same parts.
Accuracy and macro-F1 on the test part, with the F1 of each seed; F1 on the validation part, to choose options by;
and the processor's seconds of a fit. `tfidf` is scikit-learn's TfidfVectorizer (one and two words, of Chinese one and
two characters) and LogisticRegression, whose C of 1, 10 and 100 is the best on the validation part.
"""

import argparse
import time
from pathlib import Path

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, f1_score
from trials import FILES, OF_CHARACTERS, corpus, fit, options_of

from tsformer.data.sequences import TEST, TRAIN, VALIDATION

NETWORKS = ("transformer", "tcn_transformer")
SYSTEMS = ("tfidf", "bag_of_words", *NETWORKS)


def tfidf(data, analyzer):
    """Accuracy, macro-F1, that of validation, seconds, and the C that was chosen."""
    started = time.process_time()
    labels = np.array(data.labels)
    places = [np.flatnonzero(data.parts == part) for part in (TRAIN, VALIDATION, TEST)]
    vectorizer = TfidfVectorizer(analyzer=analyzer, ngram_range=(1, 2))
    vectorizer.fit([data.texts[i] for i in places[0]])
    rows = [vectorizer.transform([data.texts[i] for i in place]) for place in places]
    train, validation, test = (labels[place] for place in places)
    tried = {c: LogisticRegression(C=c, max_iter=1000).fit(rows[0], train) for c in (1, 10, 100)}
    scores = {c: f1_score(validation, tried[c].predict(rows[1]), average="macro") for c in tried}
    best = max(scores, key=scores.get)
    found = tried[best].predict(rows[2])
    f1 = f1_score(test, found, average="macro")
    return accuracy_score(test, found), f1, scores[best], time.process_time() - started, f"C {best}"


def network(data, model, seed, options):
    """Accuracy, macro-F1, that of validation, seconds, and the step whose weights were kept."""
    result, seconds = fit(data, "classify", model, seed, options)
    score, history = result.score.overall, result.history
    kept = f"{history.best_step}/{history.steps}" if history.steps else ""
    validation = max(record["validation_f1"] for record in history.evaluations)
    return score["accuracy"], score["macro_f1"], validation, seconds, kept


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--sets", nargs="+", choices=list(FILES), default=list(FILES), metavar="NAME")
    parser.add_argument("--systems", nargs="+", default=SYSTEMS, metavar="NAME")
    parser.add_argument("--seeds", type=int, default=3, help="of networks")
    parser.add_argument(
        "--option", nargs="*", default=[], metavar="PATH=VALUE", help="of networks, for example train.epochs=5"
    )
    arguments = parser.parse_args()
    options = options_of(arguments.option)
    for name in arguments.sets:
        data = corpus(arguments.folder, name)
        print(f"{name}: {', '.join(map(str, np.bincount(data.parts)))} examples for training, validation and test")
        for system in arguments.systems:
            if system == "tfidf":
                rows = [tfidf(data, "char" if name in OF_CHARACTERS else "word")]
            elif system == "bag_of_words":
                rows = [network(data, system, 0, {})]
            else:
                rows = [network(data, system, seed, options) for seed in range(arguments.seeds)]
            accuracy, f1, validation, seconds, kept = zip(*rows, strict=True)
            print(
                f"  {system:<16} accuracy {np.mean(accuracy):.4f}  F1 {np.mean(f1):.4f} "
                f"({', '.join(f'{value:.4f}' for value in f1)})  validation {np.mean(validation):.4f}  "
                f"{np.mean(seconds):6.1f} s  {', '.join(kept)}",
                flush=True,
            )


if __name__ == "__main__":
    main()
