"""Letters to be written backwards: the share of answers to the unseen test part that are right as a whole.

    python tests/benchmarks/reversal.py [--systems sinusoidal none] [--steps 500 1000 2000] [--seeds 1]
        [--option train.lr=0.003]

Each number of steps is a fit of its own, for the learning rate falls to its end. Without positions nothing tells the
order of the letters, and the task cannot be learned.
"""

import argparse
import time

import numpy as np
from trials import fit, options_of

import tsformer
from tsformer.building import device_in_use
from tsformer.prediction import searched

SYSTEMS = {
    **{kind: {"positions": kind} for kind in ("sinusoidal", "learned", "rotary", "relative", "none")},
    "tied": {"tie_embeddings": True},
}
BEAM = 4


def right(result, beam):
    """Share of the test answers that are right as a whole, and the processor's seconds of the search."""
    test, started = result.prepared.parts.test, time.process_time()
    found, _ = searched(result.fitted, test, beam, device_in_use(result.fitted.module))
    seconds = time.process_time() - started
    return np.mean([ids == test.targets[int(i)].tolist() for ids, i in zip(found, test.index, strict=True)]), seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--systems", nargs="+", choices=list(SYSTEMS), default=list(SYSTEMS), metavar="NAME")
    parser.add_argument("--model", default="transformer")
    parser.add_argument("--steps", type=int, nargs="+", default=[500, 1000, 2000])
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--beam", action="store_true", help=f"also search with a beam of {BEAM}")
    parser.add_argument("--option", nargs="*", default=[], metavar="PATH=VALUE", help="for example train.lr=0.003")
    arguments = parser.parse_args()
    options = options_of(arguments.option)
    data = tsformer.read("reversal")
    for name in arguments.systems:
        for steps in arguments.steps:
            for seed in range(arguments.seeds):
                values = {
                    **options,
                    "model": {**SYSTEMS[name], **options.get("model", {})},
                    "train": {"max_steps": steps, **options.get("train", {})},
                }
                result, seconds = fit(data, "sequence", arguments.model, seed, values)
                score, history = result.score.overall, result.history
                beam = "  beam {:.4f}, {:.1f} s".format(*right(result, BEAM)) if arguments.beam else ""
                print(
                    f"{name:<10} seed {seed}  {history.steps:5} of {steps:5} steps (best {history.best_step})  right "
                    f"{score['sequence_accuracy']:.4f}, words {score['token_accuracy']:.4f}  {seconds:6.1f} s{beam}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
