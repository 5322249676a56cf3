"""Where `tsformer` and `python -m tsformer` begin: signals are handled before anything is imported that takes time."""

import signal
import sys


def main() -> None:
    """Run the command line; always ends in `SystemExit`."""
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    try:
        from tsformer.cli.app import main as run

        run()
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
