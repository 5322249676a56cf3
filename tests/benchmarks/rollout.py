"""Autoregressive prediction of 200 windows, horizon 30, with and without the cache of keys and values."""

import statistics
import time

import torch

from tsformer import fitting, read
from tsformer.config import resolve
from tsformer.config_layer import Layer
from tsformer.nn.decoders import AutoregressiveDecoder

settings = resolve(
    [Layer({"model": {"name": "transformer", "decoder": "autoregressive"}, "train": {"max_steps": 5}})],
    needs_data=False,
)
result = fitting.fit(settings, read("sine"))
module, batch = result.fitted.module, result.prepared.test.batch(torch.arange(200))
(decoder,) = (part for part in module.modules() if isinstance(part, AutoregressiveDecoder))


def seconds(cache):
    decoder.cache = cache
    times = []
    with torch.inference_mode():
        for _ in range(7):
            start = time.perf_counter()
            prediction = module(batch)
            times.append(time.perf_counter() - start)
    return statistics.median(times), prediction


(cached, a), (uncached, b) = seconds(True), seconds(False)
print(f"cached {cached:.3f} s, uncached {uncached:.3f} s: {uncached / cached:.1f} times")
print(f"largest difference {float((a - b).abs().max()):.1e}")
