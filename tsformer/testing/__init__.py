"""The conformance checks that every plugin passes, ours and everybody's.

In a test of your own, here of a model; `DATA_CHECKS` and `TRANSFORM_CHECKS` work the same way:

    @pytest.mark.parametrize("check", MODEL_CHECKS, ids=lambda check: check.__name__)
    def test_my_model(check):
        check(plugin)

`check(plugin)` runs all that belong to a plugin's kind, and returns what failed. A check that does not apply, such as
that of gradients for a model without parameters, returns the reason instead of None.
"""

from tsformer.testing.data import DATA_CHECKS
from tsformer.testing.failure import CheckFailedError
from tsformer.testing.models import MODEL_CHECKS
from tsformer.testing.suite import Outcome, check, checks_of, outcomes
from tsformer.testing.transforms import TRANSFORM_CHECKS

__all__ = [
    "DATA_CHECKS",
    "MODEL_CHECKS",
    "TRANSFORM_CHECKS",
    "CheckFailedError",
    "Outcome",
    "check",
    "checks_of",
    "outcomes",
]
