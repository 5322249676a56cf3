"""The textbook sine with default options: seconds and free-running test RMSE (amplitude 1)."""

from tsformer import Forecaster, read

print(f"{'model':<16} {'decoder':<15} {'seconds':>8} {'RMSE':>8}")
for model in ("tcn_transformer", "transformer"):
    for decoder in ("direct", "autoregressive"):
        forecaster = Forecaster(model, model_options={"decoder": decoder}).fit(read("sine"))
        seconds = forecaster.history_.evaluations[-1]["seconds"]
        print(f"{model:<16} {decoder:<15} {seconds:8.1f} {forecaster.metrics_['test']['rmse']:8.4f}", flush=True)
