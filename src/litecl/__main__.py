"""Runs the ``litecl`` command as ``python -m litecl``."""

import sys

from litecl.cli import process

if __name__ == "__main__":
    sys.exit(process())
