"""Where `tsformer` and `python -m tsformer` begin: signals are handled before anything is imported that takes time."""

import contextlib
import os
import signal
import sys
from types import FrameType


def leave(number: int, frame: FrameType | None) -> None:
    """End the process at once. An exception would be lost, or worse, within the imports of extension modules."""
    show_cursor = "\x1b[?25h" if sys.stderr is not None and sys.stderr.isatty() else ""
    with contextlib.suppress(OSError):  # stderr is closed
        os.write(2, f"{show_cursor}stopped by {signal.Signals(number).name}\n".encode())
    os._exit(128 + number)


def main() -> None:
    """Run the command line; always ends in `SystemExit`."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, leave)
    # pydantic would look for plugins of its own, and fail, when any installed package has unreadable entry points
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "1")
    from tsformer.cli.app import main as run

    run()


if __name__ == "__main__":
    main()
