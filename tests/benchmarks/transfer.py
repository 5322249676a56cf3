"""What pretraining saves: steps until a fit from an earlier run is as good as the best of one that starts from nothing.

    python tests/benchmarks/transfer.py [--texts FOLDER] [--cases thucnews us_gasoline] [--labels 500] [--seeds 3]
        [--pretraining train.max_steps=3000] [--option train.patience=20]

FOLDER as in `texts.py`. A model is pretrained on the training part, without labels or targets; then one classifies,
with few labelled examples, or forecasts, once from nothing and once from the pretrained run. "As good" is the same
macro-F1 or loss on the validation part, which is looked at every 10 steps; "-" where that never comes. The last figures
are those of the test part: macro-F1, or MASE.
"""

import argparse
import tempfile
from pathlib import Path

from trials import FILES, corpus, few, fit, options_of, parted

import tsformer
from tsformer import fitting
from tsformer.run import Writer

SERIES = {
    "cylinder_bell_funnel": ("series", {"id": "series", "label": "shape", "channels": ["value"]}),
    "us_gasoline": ("csv", {}),
    "sunspots": ("csv", {}),
}


def read(name, folder):
    """A set of sequences with its parts named, or a panel."""
    if name in FILES:
        return corpus(folder, name)
    plugin, options = SERIES[name]
    data = tsformer.read(plugin, path=name, **options)
    return data if plugin == "csv" else parted(data)


def pretrained(data, model, options, folder):
    """Pretrain, keep the run in that folder, and tell how it went."""
    writer = Writer(folder)
    watch = fitting.Watch(start=writer.start, evaluation=writer.log)
    result, seconds = fit(data, "pretrain", model, 0, options, watch=watch)
    writer.finish(result.fitted, result.summary())
    history = result.history
    return f"{history.steps} steps (best {history.best_step}), {seconds:.1f} s: {result.metrics()}"


def quality(record):
    """What an evaluation is judged by; more is better."""
    return record.get("validation_f1", -record["validation_loss"])


def first(evaluations, goal):
    """The step that is first as good as the goal; None where none is."""
    return next((record["step"] for record in evaluations if quality(record) >= goal), None)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--texts", type=Path, metavar="FOLDER")
    parser.add_argument("--cases", nargs="+", choices=[*FILES, *SERIES], default=list(SERIES), metavar="NAME")
    parser.add_argument("--model", default="transformer")
    parser.add_argument("--labels", type=int, default=500, help="training examples with a label")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--pretraining", nargs="*", default=[], metavar="PATH=VALUE", help="options of the first run")
    parser.add_argument("--option", nargs="*", default=[], metavar="PATH=VALUE", help="options of the others")
    arguments = parser.parse_args()
    if arguments.texts is None and not set(arguments.cases).isdisjoint(FILES):
        parser.error("texts need --texts FOLDER")
    options = options_of(arguments.option)
    for name in arguments.cases:
        data = read(name, arguments.texts)
        panel = isinstance(data, tsformer.Panel)
        taught = data if panel else few(data, arguments.labels)
        with tempfile.TemporaryDirectory() as folder:
            run = Path(folder) / "run"
            print(f"{name}: {pretrained(data, arguments.model, options_of(arguments.pretraining), run)}", flush=True)
            goal = None
            for seed in range(arguments.seeds):
                for way, transfer in (("from nothing", {}), ("pretrained", {"init_from": str(run)})):
                    train = {"eval_every": 10, "patience": 20, **options.get("train", {})}
                    values = {**options, "train": train, "transfer": {**options.get("transfer", {}), **transfer}}
                    task = "forecast" if panel else "classify"
                    result, seconds = fit(taught, task, arguments.model, seed, values)
                    records = result.history.evaluations
                    if not transfer:
                        goal = max(map(quality, records))
                    test = result.test.overall["mase"] if panel else result.score.overall["macro_f1"]
                    print(
                        f"  seed {seed}  {way:<13} as good at step {first(records, goal) or '-':>4}  validation "
                        f"{abs(max(map(quality, records))):.4f} at {result.history.best_step:>4}  test {test:.4f}  "
                        f"{seconds:6.1f} s",
                        flush=True,
                    )


if __name__ == "__main__":
    main()
