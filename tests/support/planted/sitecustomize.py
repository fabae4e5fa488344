"""Lets every Python whose path has this folder first take its kernels from the folder LITECL_PLANTED."""

import os
from pathlib import Path

from litecl import kernels_cl

kernels_cl.__file__ = str(Path(os.environ["LITECL_PLANTED"]) / "__init__.py")
