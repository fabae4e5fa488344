"""The modules of a package, imported on demand by the names that they define."""

from collections.abc import Collection, Container, Iterator, Mapping, Sequence
from importlib import import_module
from types import ModuleType


class Modules:
    """The modules of a package, each imported when a name in its row is asked for.

    package: its name. rows: by module, the names that it defines, in one text. others: modules of many small things,
    which may define a name that is in no row. elsewhere: names that the others do not define.
    """

    def __init__(
        self, package: str, rows: Mapping[str, str], others: Sequence[str] = (), elsewhere: Container[str] = ()
    ) -> None:
        self._package, self._others, self._elsewhere = package, tuple(others), elsewhere
        self._modules = tuple(sorted({*rows, *others}))
        self._by_name: dict[str, list[str]] = {}
        for module, names in rows.items():
            for name in names.split():
                self._by_name.setdefault(name, []).append(module)

    @property
    def names(self) -> Collection[str]:
        """The names in all rows."""
        return self._by_name.keys()

    def __contains__(self, name: object) -> bool:
        """Return whether a name is in a row."""
        return name in self._by_name

    def naming(self, name: str) -> Iterator[ModuleType]:
        """Yield the modules that define a name, or may define it."""
        default = () if name in self._elsewhere else self._others
        return map(self._imported, self._by_name.get(name, default))

    def __iter__(self) -> Iterator[ModuleType]:
        """Yield all modules."""
        return map(self._imported, self._modules)

    def _imported(self, module: str) -> ModuleType:
        return import_module(f"{self._package}.{module}")
