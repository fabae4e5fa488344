"""The modules of a package by the names of what they define: a table, of which few modules are imported."""

from collections.abc import Collection, Container, Iterator, Mapping, Sequence
from importlib import import_module
from types import ModuleType


class Modules:
    """The modules of a package, each imported when a name is asked for that is in its row.

    package: its name. rows: by module, the names of what is in it, in one text. others: modules of many small things,
    where a name may be that is in no row. elsewhere: names that these do not have.
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
        """Yield the modules that have a name, or may have it."""
        default = () if name in self._elsewhere else self._others
        return map(self._imported, self._by_name.get(name, default))

    def __iter__(self) -> Iterator[ModuleType]:
        """Yield all modules."""
        return map(self._imported, self._modules)

    def _imported(self, module: str) -> ModuleType:
        return import_module(f"{self._package}.{module}")
