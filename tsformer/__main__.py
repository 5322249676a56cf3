"""`python -m tsformer` is the `tsformer` command."""

from tsformer.cli.app import main

if __name__ == "__main__":
    main()
