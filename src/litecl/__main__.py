"""``python -m litecl`` is the command ``litecl``."""

import sys

from litecl.cli import main

if __name__ == "__main__":
    sys.exit(main())
