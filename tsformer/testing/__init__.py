"""The conformance checks that every plugin passes, ours and everybody's.

In a test of your own:

    @pytest.mark.parametrize("check", MODEL_CHECKS, ids=lambda check: check.__name__)
    def test_my_model(check):
        check(plugin)
"""

from tsformer.testing.models import MODEL_CHECKS, check_model
from tsformer.testing.trials import CheckFailedError

__all__ = ["MODEL_CHECKS", "CheckFailedError", "check_model"]
