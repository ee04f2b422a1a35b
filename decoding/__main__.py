"""Command line: python -m decoding run | compare | replay | fetch."""

from decoding.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
