"""The modules of a package, each imported when a name is needed that stands in its source."""

from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from importlib import import_module
from pkgutil import iter_modules
from types import ModuleType


class Modules:
    """The modules of a package, found by what their sources name: nothing lists them, and few are imported.

    package, path: its name and ``__path__``; packages within it stay apart.
    names: returns the names in a source.
    """

    def __init__(self, package: str, path: Iterable[str], names: Callable[[str], Iterable[str]]) -> None:
        self._package, self._path, self._names = package, path, names

    @cached_property
    def index(self) -> dict[str, frozenset[str] | None]:
        """The names in every module, by module; None for one that comes without its source, so may have any.

        Raises ImportError for a folder that cannot be listed, which ``iter_modules`` takes for an empty one.
        """
        index: dict[str, frozenset[str] | None] = {}
        for finder, module, is_package in iter_modules(self._path, f"{self._package}."):
            if not is_package:
                source = _source(finder, module)
                index[module] = None if source is None else frozenset(self._names(source))
        if not index:
            raise ImportError(f"the modules of {self._package} cannot be listed: is there a file descriptor left?")
        return index

    @cached_property
    def names(self) -> frozenset[str]:
        """The names in all modules."""
        return frozenset(name for names in self.index.values() for name in names or ())

    def naming(self, name: str) -> Iterator[ModuleType]:
        """Yield the modules in whose source a name stands."""
        for module, names in self.index.items():
            if names is None or name in names:
                yield import_module(module)

    def __iter__(self) -> Iterator[ModuleType]:
        """Yield all modules."""
        return map(import_module, self.index)


def _source(finder: object, module: str) -> str | None:
    spec = finder.find_spec(module, None)  # type: ignore[attr-defined]  # of a path entry, or of what is frozen
    get_source = getattr(spec and spec.loader, "get_source", None)
    return get_source(module) if get_source else None
