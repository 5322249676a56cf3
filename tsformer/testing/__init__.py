"""The conformance checks that every plugin passes, ours and everybody's.

In a test of your own, of a plugin of any kind:

    @pytest.mark.parametrize("check", checks_of(plugin), ids=lambda check: check.__name__)
    def test_my_plugin(check):
        check(plugin)

`checks_of(plugin)` are those of its kind and of all tasks that it declares; `MODEL_CHECKS` and `DATA_CHECKS` are those
of forecasts. `check(plugin)` runs them all, and returns what failed. A check that does not apply, such as that of
gradients for a model without parameters, returns the reason instead of None.
"""

from tsformer.testing.data import DATA_CHECKS
from tsformer.testing.failure import CheckFailedError
from tsformer.testing.models import CHECKS_BY_TASK, MODEL_CHECKS
from tsformer.testing.sequence_data import SEQUENCE_DATA_CHECKS
from tsformer.testing.suite import Outcome, check, checks_of, outcomes
from tsformer.testing.transforms import TRANSFORM_CHECKS

__all__ = [
    "CHECKS_BY_TASK",
    "DATA_CHECKS",
    "MODEL_CHECKS",
    "SEQUENCE_DATA_CHECKS",
    "TRANSFORM_CHECKS",
    "CheckFailedError",
    "Outcome",
    "check",
    "checks_of",
    "outcomes",
]
