"""Refuses to build from a checkout without symbolic links; everything else is declared in pyproject.toml."""

import sys
from pathlib import Path

from setuptools import setup

_PACKAGES = Path(__file__).resolve().parent / "src" / "litecl"
_PARTS = ("cases", "converter", "delegate", "interpreter", "kernels_cl", "perf", "random_graphs")

_absent = [name for name in _PARTS if not (_PACKAGES / name / "__init__.py").is_file()]
if _absent:
    sys.exit(
        f"src/litecl: {', '.join(_absent)}: expected packages, got none there. In a checkout these are symbolic links "
        "to its folders: clone again where links are allowed (git config --global core.symlinks true; on "
        "Windows also Developer Mode), not from a ZIP file, or install the wheel or the sdist."
    )
setup()
