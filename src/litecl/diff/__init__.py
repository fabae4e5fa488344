"""Compares two models node by node and layer by layer: ``litecl.diff.diff_models`` and ``litecl diff``."""

from litecl.diff.compare import Difference as Difference
from litecl.diff.compare import diff_models as diff_models
