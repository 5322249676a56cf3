"""How a check says that a plugin does not keep its contract."""


class CheckFailedError(AssertionError):
    """A plugin does not keep its contract; the message says how and what to look for."""
