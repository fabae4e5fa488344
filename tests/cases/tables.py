"""The tables of cases: every module of this package that has ``CASES``."""

from importlib import import_module
from pkgutil import iter_modules
from types import ModuleType

from litecl import cases


def _tables() -> tuple[ModuleType, ...]:
    names = sorted(module.name for module in iter_modules(cases.__path__, "litecl.cases.") if module.name != __name__)
    return tuple(module for name in names if hasattr(module := import_module(name), "CASES"))


TABLES = _tables()
