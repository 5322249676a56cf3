"""The global random generators of Python, numpy and torch: seeded for a while, and compared."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch

from tsformer.building import same_random_state


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Within this the global generators of Python, numpy and torch start from a seed; the caller's are put back."""
    callers = random.getstate(), np.random.get_state()  # noqa: NPY002
    with same_random_state():
        random.seed(seed)
        np.random.seed(seed)  # noqa: NPY002
        torch.manual_seed(seed)
        try:
            yield
        finally:
            random.setstate(callers[0])
            np.random.set_state(callers[1])  # noqa: NPY002


def generators() -> dict[str, object]:
    """The state of each global random generator, to be compared."""
    return {
        "Python's": random.getstate(),
        "numpy's": repr(np.random.get_state()),  # noqa: NPY002
        "torch's": torch.random.get_rng_state().tolist(),
    }
