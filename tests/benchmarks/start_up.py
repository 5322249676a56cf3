"""Seconds of `tsformer --help` beside those of `import torch`; the best of seven."""

import subprocess
import sys
import time


def seconds(*words):
    best = float("inf")
    for _ in range(7):
        start = time.perf_counter()
        subprocess.run([sys.executable, *words], check=True, capture_output=True)
        best = min(best, time.perf_counter() - start)
    return best


for words in (
    ("-m", "tsformer", "--help"),
    ("-m", "tsformer", "fit", "--help"),
    ("-m", "tsformer", "plugins", "list"),
    ("-c", "import torch"),
):
    print(f"{' '.join(words):<24} {seconds(*words):.2f} s")
