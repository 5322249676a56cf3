"""The current folder, which a plugin may change and which relative paths on a command line are meant from."""

import contextlib
import os
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def same_folder() -> Iterator[None]:
    """Whatever folder is current in the end, it is the one of the beginning again."""
    try:
        here = os.getcwd()
    except OSError:  # it was deleted
        here = ""
    try:
        yield
    finally:
        if here:
            with contextlib.suppress(OSError):  # it was deleted; what else went wrong is not to be hidden
                os.chdir(here)
