"""Runs the ``litecl`` command as ``python -m litecl``."""

import sys

from litecl.cli import main

if __name__ == "__main__":
    sys.exit(main())
