"""Monthly air passengers, horizon 12, default options: MASE of the test part, three seeds."""

from tsformer import Forecaster, read

panel = read("csv", path="air_passengers")
for model in ("tcn_transformer", "transformer"):
    scores = []
    for seed in range(3):
        forecaster = Forecaster(model, horizon=12, seed=seed).fit(panel)
        scores.append(forecaster.metrics_["test"]["mase"])
        seconds = forecaster.history_.evaluations[-1]["seconds"]
        print(f"{model:<16} seed {seed}: MASE {scores[-1]:.3f}, {seconds:.1f} s", flush=True)
    print(f"{model:<16} mean {sum(scores) / 3:.3f}")
print(forecaster.evaluate().to_string())
